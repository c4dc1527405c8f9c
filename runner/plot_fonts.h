/* Which characters the fonts of this machine have: cairo draws one that none has as a box that covers the figure. */
#ifndef RUNNER_PLOT_FONTS_H
#define RUNNER_PLOT_FONTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A set of code points, made by asking fontconfig (fc-list) once. */
struct plot_fonts;

/* Owner: caller, plot_fonts_free(). Without fc-list the set is what common fonts have: Latin, Greek, Cyrillic,
 * punctuation and symbols of the same blocks. */
struct plot_fonts *plot_fonts_create(void);
void plot_fonts_free(struct plot_fonts *fonts); /* takes NULL */

/* The answer of `fc-list : charset` as a set: lines of "charset=20-7e a0 ...". */
struct plot_fonts *plot_fonts_parse(const char *text);

bool plot_fonts_have(const struct plot_fonts *fonts, int32_t code_point);

/* True when every font that draws Latin letters has all of the text: no need to ask. */
bool plot_text_common(const char *text);

/* The text with U+FFFD for each character that no font has; NULL when it has all. Owner: caller, memory_free(). */
char *plot_text_drawable(const struct plot_fonts *fonts, const char *text);

#endif
