/* Text on a terminal: how wide it is, what must not reach it, where a line ends. */
#ifndef RUNNER_LAYOUT_H
#define RUNNER_LAYOUT_H

#include <stddef.h>
#include <stdio.h>

/* A line whose control bytes come from texts that others wrote and could drive the terminal: they are shown as \xNN,
 * those of `kept` as they are. */
void layout_line_put(const char *text, const char *kept, FILE *out);

/* Columns that layout_put() fills: wide characters count two, control and invalid bytes four. */
int layout_columns(const char *text);

/* size bytes of text. Control bytes and bytes that are no UTF-8 come out as \xNN. escape, if not NULL, gives what
 * stands for an ASCII character (NULL: itself) and must know the backslash. */
void layout_put(const char *text, size_t size, const char *(*escape)(char c), FILE *out);

void layout_spaces(int count, FILE *out);

/* On lines of width columns (0: one line), broken at spaces, later lines indented; with a newline at the end. */
void layout_wrap(const char *text, int width, int indent, FILE *out);

#endif
