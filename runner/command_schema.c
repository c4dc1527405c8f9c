/* runner schema: the views of results.db, what their columns mean, and the SQL that makes it all. */
#include <stdio.h>

#include "core/memory.h"
#include "runner/command.h"
#include "runner/json.h"
#include "runner/schema.h"
#include "runner/table.h"

static const struct option options[] = {
    {.name = "sql", .kind = OPTION_FLAG, .doc = "the SQL of tables and views instead"},
    {.name = "format", .kind = OPTION_TEXT, .argument = "F", .doc = "how the views are shown", .choices = "text|md"},
    {0},
};

enum { WIDTH = 100 };

static void schema_print(enum table_format format)
{
    const struct schema_view *view;
    for (size_t i = 0; (view = schema_view(i)); i++) {
        struct table *table = table_create();
        table_caption(table, "%s: %s", view->name, view->doc);
        table_column(table, "column", TABLE_LEFT);
        table_column(table, "meaning", TABLE_LEFT);
        for (size_t c = 0; c < view->column_count; c++) {
            table_text(table, view->columns[c].name);
            table_text(table, view->columns[c].doc);
        }
        if (i)
            putchar('\n');
        table_write(table, format, WIDTH, stdout);
        table_free(table);
    }
}

static void schema_print_json(void)
{
    json_t *views = json_array();
    const struct schema_view *view;
    for (size_t i = 0; (view = schema_view(i)); i++) {
        json_t *columns = json_array(), *object = json_object();
        for (size_t c = 0; c < view->column_count; c++) {
            json_t *column = json_object();
            json_put(column, "name", json_from_text(view->columns[c].name));
            json_put(column, "doc", json_from_text(view->columns[c].doc));
            json_push(columns, column);
        }
        json_put(object, "name", json_from_text(view->name));
        json_put(object, "doc", json_from_text(view->doc));
        json_put(object, "columns", columns);
        json_push(views, object);
    }
    json_print(views, stdout);
    json_decref(views);
}

static int schema_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    enum table_format format = TABLE_TEXT;
    table_format_find(option_text(arguments, "format", "text"), &format);
    if (format != TABLE_TEXT && (arguments->json || option_flag(arguments, "sql")))
        die(EXIT_USAGE, "--format md is of the views' description: give it without --json and --sql");
    if (arguments->json && option_flag(arguments, "sql"))
        die(EXIT_USAGE, "--json and --sql ask for two things: give one of them");
    if (option_flag(arguments, "sql")) {
        char *sql = schema_sql();
        fputs(sql, stdout);
        memory_free(sql);
    } else if (arguments->json) {
        schema_print_json();
    } else {
        schema_print(format);
    }
    return EXIT_DONE;
}

extern const struct command command_schema;
const struct command command_schema = {
    .name = "schema",
    .arguments = "",
    .summary = "Document every view and column of results.db.",
    .help = "The views are the interface for SQL clients; tables behind them may change between versions.\n\n"
            "Example:\n"
            "  runner schema\n"
            "  runner schema --sql",
    .options = options,
    .json = true,
    .run = schema_run,
};
