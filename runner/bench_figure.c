/* Verdicts on figures, and the table of them. */
#include "runner/bench_figure.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum bench_verdict bench_verdict(const struct bench_row *row, const struct bench_figure *figure)
{
    if (isnan(figure->value))
        return BENCH_NOT_APPLICABLE;
    if (row->share && figure->value > 100)
        return BENCH_REFUSED;
    if (figure->elsewhere)
        return BENCH_NOT_APPLICABLE;
    if (row->sense == BENCH_SHOWN)
        return BENCH_NO_TARGET;
    bool good = row->sense == BENCH_AT_LEAST ? figure->value >= row->target : figure->value <= row->target;
    return good ? BENCH_OK : BENCH_SHORT;
}

const char *bench_verdict_name(enum bench_verdict verdict)
{
    static const char *const names[] = {
        [BENCH_OK] = "ok",           [BENCH_SHORT] = "short", [BENCH_NOT_APPLICABLE] = "n/a",
        [BENCH_REFUSED] = "refused", [BENCH_NO_TARGET] = "-",
    };
    return names[verdict];
}

void bench_absent(struct bench_figure *figure, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *figure = (struct bench_figure){.value = NAN};
    vsnprintf(figure->note, sizeof figure->note, format, args);
    va_end(args);
}

void bench_value(struct bench_figure *figure, double value, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *figure = (struct bench_figure){.value = value};
    vsnprintf(figure->note, sizeof figure->note, format, args);
    va_end(args);
}

static const char *note_of(const struct bench_row *row, const struct bench_figure *figure)
{
    return bench_verdict(row, figure) == BENCH_REFUSED
               ? "above 100 % of its measured ceiling: something disturbed the measurement; run it again"
               : figure->note;
}

static bool shown(const struct bench_row *row, const struct bench_figure *figure)
{
    return !isnan(figure->value) && bench_verdict(row, figure) != BENCH_REFUSED;
}

static void number_text(char *text, size_t size, const struct bench_row *row, const char *prefix, double value)
{
    size_t used = (size_t)snprintf(text, size, "%s", prefix);
/* The formats are those of the rows, each of one double. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    used += (size_t)snprintf(text + used, size - used, row->format, value);
#pragma GCC diagnostic pop
    snprintf(text + used, size - used, "%s%s", strcmp(row->unit, "x") == 0 ? "" : " ", row->unit);
}

struct table *bench_figures_table(const struct bench_row *rows, const struct bench_figure *figures, size_t count)
{
    char text[64];
    struct table *table = table_create();
    table_column(table, "what", TABLE_LEFT);
    table_column(table, "target", TABLE_RIGHT);
    table_column(table, "measured", TABLE_RIGHT);
    table_column(table, "verdict", TABLE_LEFT);
    table_column(table, "note", TABLE_LEFT);
    for (size_t i = 0; i < count; i++) {
        const struct bench_row *row = &rows[i];
        table_text(table, row->name);
        number_text(text, sizeof text, row, row->sense == BENCH_AT_LEAST ? ">= " : "<= ", row->target);
        table_text(table, row->sense == BENCH_SHOWN ? "" : text);
        number_text(text, sizeof text, row, "", figures[i].value);
        table_text(table, shown(row, &figures[i]) ? text : "-");
        table_text(table, bench_verdict_name(bench_verdict(row, &figures[i])));
        table_text(table, note_of(row, &figures[i]));
    }
    return table;
}

json_t *bench_figures_json(const struct bench_row *rows, const struct bench_figure *figures, size_t count)
{
    static const char *const senses[] = {
        [BENCH_AT_LEAST] = "at least", [BENCH_AT_MOST] = "at most", [BENCH_SHOWN] = "shown"};
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct bench_row *row = &rows[i];
        json_t *figure = json_object();
        json_put(figure, "name", json_from_text(row->name));
        json_put(figure, "unit", json_from_text(row->unit));
        json_put(figure, "sense", json_from_text(senses[row->sense]));
        json_put(figure, "target", json_from_double(row->sense == BENCH_SHOWN ? NAN : row->target));
        json_put(figure, "measured", json_from_double(shown(row, &figures[i]) ? figures[i].value : NAN));
        json_put(figure, "verdict", json_from_text(bench_verdict_name(bench_verdict(row, &figures[i]))));
        json_put(figure, "note", json_from_text(note_of(row, &figures[i])));
        json_push(list, figure);
    }
    return list;
}
