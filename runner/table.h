/* Rows and columns for people and programs: aligned text, Markdown, CSV, JSON, LaTeX.
 *
 *   struct table *t = table_create();
 *   table_column(t, "variant", TABLE_LEFT);
 *   table_column(t, "mean", TABLE_RIGHT);
 *   table_text(t, label); table_number(t, 2.12, "%.4f");     // a row is full: the next cell starts another
 *   table_note(t, "[1] ...");
 *   table_write(t, TABLE_TEXT, 100, stdout);
 *   table_free(t);
 *
 * Texts from files that others wrote are escaped as each format needs; control bytes are shown as \xNN. CSV and JSON
 * have the values themselves and no caption or notes; the others have what was formatted. */
#ifndef RUNNER_TABLE_H
#define RUNNER_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runner/json.h"

enum table_format { TABLE_TEXT, TABLE_MD, TABLE_CSV, TABLE_JSON, TABLE_LATEX };
#define TABLE_FORMATS "text|md|csv|json|latex" /* choices of a --format option */

/* "md" and so on; false when there is no such format. */
bool table_format_find(const char *name, enum table_format *format);

enum table_align { TABLE_LEFT, TABLE_RIGHT };

struct table *table_create(void); /* owner: caller, table_free() */
void table_free(struct table *table);

/* Columns first, cells after. heading is copied; in JSON it is the key. */
void table_column(struct table *table, const char *heading, enum table_align align);

/* The next cell. table_text: NULL is absent. table_number: shown with the format (one double), absent when not finite.
 * table_shown: the value for programs, the text for people. table_absent: null, empty in CSV, shown as the text. */
void table_text(struct table *table, const char *text);
void table_textf(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void table_number(struct table *table, double value, const char *format);
void table_integer(struct table *table, int64_t value);
void table_shown(struct table *table, double value, const char *shown);
void table_absent(struct table *table, const char *shown);

/* Above and below the table; each note is a line. Copied. */
void table_caption(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void table_note(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

size_t table_row_count(const struct table *table);

/* Columns of its text, the last column wrapped to last_least where it is wider. */
int table_text_width(const struct table *table, int last_least);

/* width: of text, 0 = no limit: the last column and the notes are wrapped to fit. */
void table_write(const struct table *table, enum table_format format, int width, FILE *out);

/* An HTML table element with caption and heading cells, its notes below it; its headings are buttons for a script that
 * sorts. */
void table_write_html(const struct table *table, FILE *out);

/* One text as it stands in an HTML page or in Markdown: escaped, control bytes shown. */
void html_put(const char *text, FILE *out);
void markdown_put(const char *text, FILE *out);

/* Array of objects, absent cells null. Owner: caller, json_decref(). */
json_t *table_json(const struct table *table);

/* A whole number with commas, "3,740,160". Returns buf. */
const char *format_count(int64_t value, char buf[32]);

#endif
