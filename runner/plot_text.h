/* Texts for figures: made harmless, measured, broken into lines, quoted for gnuplot. They come from files that others
 * wrote. */
#ifndef RUNNER_PLOT_TEXT_H
#define RUNNER_PLOT_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* Valid UTF-8 without control characters: each bad byte becomes U+FFFD, each control character a space. gnuplot
 * writes "]]>" into SVG as it is, which no XML text may have: a zero-width space parts it. Owner: caller,
 * memory_free(). */
char *plot_text_clean(const char *text);

/* Width in units of the font's size, as DejaVu Sans would be set: an estimate that errs on the wide side. */
double plot_text_width(const char *text);

/* The text with '\n' put in so that no line is wider than width (in font sizes): at spaces, else after one of "-_/,=",
 * else anywhere. Owner: caller, memory_free(). */
char *plot_text_wrap(const char *text, double width);

size_t plot_text_lines(const char *text);

/* Width of the widest line. */
double plot_text_widest(const char *text);

/* As an expression of gnuplot's language: 'it''s'."\n".'second line'. Single quotes expand nothing. */
void plot_text_quote(FILE *out, const char *text);

#endif
