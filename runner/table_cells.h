/* What a table is made of, for the files that write it: table.c and table_markup.c. */
#ifndef RUNNER_TABLE_CELLS_H
#define RUNNER_TABLE_CELLS_H

#include "runner/table.h"

enum cell_kind { CELL_ABSENT, CELL_TEXT, CELL_INTEGER, CELL_NUMBER };

struct cell {
    enum cell_kind kind;
    char *shown;
    int64_t integer;
    double number;
};

struct column {
    char *heading;
    enum table_align align;
};

struct list {
    char **texts;
    size_t count;
};

struct table {
    struct column *columns;
    size_t column_count;
    struct cell *cells;
    size_t cell_count, cell_room;
    struct list captions, notes;
};

static inline const struct cell *cell_at(const struct table *table, size_t row, size_t column)
{
    return &table->cells[row * table->column_count + column];
}

void table_write_md(const struct table *table, FILE *out);
void table_write_latex(const struct table *table, FILE *out);

#endif
