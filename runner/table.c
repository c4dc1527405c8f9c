/* Rows and columns, and their forms as aligned text, CSV and JSON; marked-up ones are table_markup.c's. */
#include "runner/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "core/memory.h"
#include "runner/layout.h"
#include "runner/table_cells.h"

enum { WRAP_LEAST = 12 }; /* a last column is not wrapped narrower than this */

bool table_format_find(const char *name, enum table_format *format)
{
    static const char *const names[] = {"text", "md", "csv", "json", "latex"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) {
            *format = (enum table_format)i;
            return true;
        }
    return false;
}

struct table *table_create(void)
{
    return memory_alloc(1, sizeof(struct table));
}

static void list_add(struct list *list, char *text)
{
    list->texts = memory_grow(list->texts, list->count * sizeof *list->texts, list->count + 1, sizeof *list->texts);
    list->texts[list->count++] = text;
}

static void list_release(struct list *list)
{
    for (size_t i = 0; i < list->count; i++)
        memory_free(list->texts[i]);
    memory_free(list->texts);
}

void table_free(struct table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->column_count; i++)
        memory_free(table->columns[i].heading);
    for (size_t i = 0; i < table->cell_count; i++)
        memory_free(table->cells[i].shown);
    list_release(&table->captions);
    list_release(&table->notes);
    memory_free(table->columns);
    memory_free(table->cells);
    memory_free(table);
}

void table_column(struct table *table, const char *heading, enum table_align align)
{
    size_t old = table->column_count * sizeof *table->columns;
    table->columns = memory_grow(table->columns, old, table->column_count + 1, sizeof *table->columns);
    table->columns[table->column_count++] = (struct column){memory_copy_text(heading), align};
}

static void cell_add(struct table *table, struct cell cell)
{
    if (table->cell_count == table->cell_room) {
        table->cell_room = table->cell_room ? 2 * table->cell_room : 64;
        table->cells =
            memory_grow(table->cells, table->cell_count * sizeof cell, table->cell_room, sizeof *table->cells);
    }
    table->cells[table->cell_count++] = cell;
}

static char *text_format(const char *format, va_list args) __attribute__((format(printf, 1, 0), nonnull(1)));

static char *text_format(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = memory_alloc((size_t)length + 1, 1);
    vsnprintf(text, (size_t)length + 1, format, args);
    return text;
}

void table_text(struct table *table, const char *text)
{
    if (!text)
        table_absent(table, "");
    else
        cell_add(table, (struct cell){.kind = CELL_TEXT, .shown = memory_copy_text(text)});
}

void table_textf(struct table *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cell_add(table, (struct cell){.kind = CELL_TEXT, .shown = text_format(format, args)});
    va_end(args);
}

void table_shown(struct table *table, double value, const char *shown)
{
    if (!isfinite(value))
        table_absent(table, shown);
    else
        cell_add(table, (struct cell){.kind = CELL_NUMBER, .shown = memory_copy_text(shown), .number = value});
}

/* The format is checked where it is written: table_number() is only called with literals of one double. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
void table_number(struct table *table, double value, const char *format)
{
    char shown[64];
    if (isfinite(value))
        snprintf(shown, sizeof shown, format, value);
    table_shown(table, value, isfinite(value) ? shown : "n/a");
}
#pragma GCC diagnostic pop

void table_integer(struct table *table, int64_t value)
{
    char shown[32];
    cell_add(table, (struct cell){
                        .kind = CELL_INTEGER, .shown = memory_copy_text(format_count(value, shown)), .integer = value});
}

void table_absent(struct table *table, const char *shown)
{
    cell_add(table, (struct cell){.kind = CELL_ABSENT, .shown = memory_copy_text(shown)});
}

void table_caption(struct table *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    list_add(&table->captions, text_format(format, args));
    va_end(args);
}

void table_note(struct table *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    list_add(&table->notes, text_format(format, args));
    va_end(args);
}

size_t table_row_count(const struct table *table)
{
    return table->column_count ? table->cell_count / table->column_count : 0;
}

const char *format_count(int64_t value, char buf[32])
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    size_t length = strlen(digits), used = 0, sign = digits[0] == '-';
    for (size_t i = 0; i < length; i++) {
        if (i > sign && (length - i) % 3 == 0)
            buf[used++] = ',';
        buf[used++] = digits[i];
    }
    buf[used] = 0;
    return buf;
}

/* ---- text ---- */

static void row_put(const struct table *table, size_t row, bool heading, const int *widths, int width, FILE *out)
{
    int start = 0;
    for (size_t c = 0; c < table->column_count; c++) {
        const struct column *column = &table->columns[c];
        const char *text = heading ? column->heading : cell_at(table, row, c)->shown;
        bool last = c + 1 == table->column_count;
        int padding = widths[c] - layout_columns(text);
        if (column->align == TABLE_RIGHT)
            layout_spaces(padding, out);
        if (last) {
            int room = width ? width - start : 0;
            layout_wrap(text, room && room < WRAP_LEAST ? WRAP_LEAST : room, start, out);
            return;
        }
        layout_put(text, strlen(text), NULL, out);
        if (column->align == TABLE_LEFT)
            layout_spaces(padding, out);
        layout_spaces(2, out);
        start += widths[c] + 2;
    }
}

static int column_width(const struct table *table, size_t c)
{
    int width = layout_columns(table->columns[c].heading);
    for (size_t r = 0; r < table_row_count(table); r++) {
        int columns = layout_columns(cell_at(table, r, c)->shown);
        width = columns > width ? columns : width;
    }
    return width;
}

int table_text_width(const struct table *table, int last_least)
{
    int total = 0;
    for (size_t c = 0; c < table->column_count; c++) {
        int width = column_width(table, c);
        bool wraps = c + 1 == table->column_count && width > last_least;
        total += (wraps ? last_least : width) + (c ? 2 : 0);
    }
    return total;
}

static void write_text(const struct table *table, int width, FILE *out)
{
    size_t rows = table_row_count(table);
    int *widths = memory_alloc(table->column_count, sizeof *widths);
    int total = 0;
    for (size_t c = 0; c < table->column_count; c++) {
        widths[c] = column_width(table, c);
        total += widths[c] + (c ? 2 : 0);
    }
    for (size_t i = 0; i < table->captions.count; i++)
        layout_wrap(table->captions.texts[i], width, 0, out);
    row_put(table, 0, true, widths, width, out);
    for (int i = 0; i < total && (!width || i < width); i++)
        fputc('-', out);
    fputc('\n', out);
    for (size_t r = 0; r < rows; r++)
        row_put(table, r, false, widths, width, out);
    for (size_t i = 0; i < table->notes.count; i++)
        layout_wrap(table->notes.texts[i], width ? width - 4 : 0, 4, out);
    memory_free(widths);
}

/* ---- CSV ---- */

static void csv_put(const char *text, FILE *out)
{
    if (!text[strcspn(text, ",\"\r\n")] && text[0] != ' ') {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void write_csv(const struct table *table, FILE *out)
{
    char number[JSON_NUMBER_SIZE];
    for (size_t c = 0; c < table->column_count; c++) {
        fputs(c ? "," : "", out);
        csv_put(table->columns[c].heading, out);
    }
    fputc('\n', out);
    for (size_t i = 0; i < table_row_count(table) * table->column_count; i++) {
        const struct cell *cell = &table->cells[i];
        switch (cell->kind) {
        case CELL_ABSENT: break;
        case CELL_TEXT: csv_put(cell->shown, out); break;
        case CELL_INTEGER: fprintf(out, "%" PRId64, cell->integer); break;
        case CELL_NUMBER: fputs(json_number_format(cell->number, number), out); break;
        }
        fputc((i + 1) % table->column_count ? ',' : '\n', out);
    }
}

/* ---- JSON ---- */

json_t *table_json(const struct table *table)
{
    json_t *rows = json_array();
    for (size_t r = 0; r < table_row_count(table); r++) {
        json_t *object = json_object();
        for (size_t c = 0; c < table->column_count; c++) {
            const struct cell *cell = cell_at(table, r, c);
            json_t *value = NULL;
            switch (cell->kind) {
            case CELL_ABSENT: value = json_null(); break;
            case CELL_TEXT: value = json_from_text(cell->shown); break;
            case CELL_INTEGER: value = json_integer(cell->integer); break;
            case CELL_NUMBER: value = json_from_double(cell->number); break;
            }
            json_put(object, table->columns[c].heading, value);
        }
        json_push(rows, object);
    }
    return rows;
}

static void write_json(const struct table *table, FILE *out)
{
    json_t *rows = table_json(table);
    json_print(rows, out);
    json_decref(rows);
}

void table_write(const struct table *table, enum table_format format, int width, FILE *out)
{
    switch (format) {
    case TABLE_TEXT: write_text(table, width, out); break;
    case TABLE_MD: table_write_md(table, out); break;
    case TABLE_CSV: write_csv(table, out); break;
    case TABLE_JSON: write_json(table, out); break;
    case TABLE_LATEX: table_write_latex(table, out); break;
    }
}
