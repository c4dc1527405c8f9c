/* runner gc: what nothing refers to any more is removed. */
#include <inttypes.h>
#include <stdio.h>

#include "runner/command.h"
#include "runner/database.h"
#include "runner/removal.h"
#include "runner/table.h"

static const struct option options[] = {
    {.name = "dry-run", .kind = OPTION_FLAG, .doc = "Counts what would be removed; removes nothing."},
    {.name = "db", .kind = OPTION_TEXT, .argument = "PATH", .doc = "Database. Default: results/results.db."},
    {0},
};

static void found_print(const struct garbage_found *found, bool removed, bool json)
{
    struct table *table = table_create();
    table_column(table, removed ? "removed" : "would_remove", TABLE_LEFT);
    table_column(table, "count", TABLE_RIGHT);
    table_column(table, "bytes", TABLE_RIGHT);
    for (int i = 0; i < GARBAGE_COUNT; i++) {
        table_text(table, garbage_name((enum garbage)i));
        table_integer(table, found->count[i]);
        if (i == GARBAGE_RUNS)
            table_absent(table, "-");
        else
            table_integer(table, (int64_t)found->bytes[i]);
    }
    table_write(table, json ? TABLE_JSON : TABLE_TEXT, 0, stdout);
    table_free(table);
}

static int gc_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    struct error err, closing;
    struct garbage_found found;
    const char *path = option_text(arguments, "db", "results/results.db");
    bool dry = option_flag(arguments, "dry-run"), closed = true;
    sqlite3 *reader = database_open_reader(path, &err);
    if (!reader)
        die(EXIT_ENVIRONMENT, "%s", err.text);
    bool ok = true;
    if (dry)
        ok = garbage_collect(reader, path, false, &found, &err);
    sqlite3_close(reader);
    if (!dry) {
        struct database_options opening = {.command = "runner gc", .note = message_note};
        struct database *database = database_open(path, &opening, &err);
        if (!database)
            die(EXIT_ENVIRONMENT, "%s", err.text);
        ok = garbage_collect(database_handle(database), path, true, &found, &err);
        closed = database_close(database, &closing);
    }
    if (!ok || !closed)
        die(EXIT_ENVIRONMENT, "%s", ok ? closing.text : err.text);
    found_print(&found, !dry, arguments->json);
    return EXIT_DONE;
}

extern const struct command command_gc;
const struct command command_gc = {
    .name = "gc",
    .arguments = "",
    .summary = "Remove hidden runs for good, and files that nothing needs.",
    .help =
        "Removes: runs that `runner rm` hid or that no experiment has any more, with their curves; checkpoints, "
        "weights and logs of runs that are not in the database; what a cluster sweep wrote none of whose runs is in "
        "it; checkpoints of finished runs (their final weights stay); cached tokens, which are made anew when "
        "needed; files that killed processes left half-written. What it does not know it leaves. Runs that are "
        "finished or can go on are never touched. Waits for nobody: while a sweep trains, here or on a cluster, it "
        "says so and does nothing.\n\n"
        "Example:\n  runner gc --dry-run\n  runner gc",
    .options = options,
    .json = true,
    .run = gc_run,
};
