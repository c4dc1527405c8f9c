/* runner status: what runs now, from any terminal. */
#include <stdio.h>

#include "runner/command.h"
#include "runner/database.h"
#include "runner/sql.h"
#include "runner/status.h"

static const struct option options[] = {
    {.name = "db", .kind = OPTION_TEXT, .argument = "PATH", .doc = "database (default results/results.db)"},
    {0},
};

enum { WIDTH = 100 };

static int status_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    struct error err;
    const char *path = option_text(arguments, "db", "results/results.db");
    sqlite3 *db = database_open_reader(path, &err);
    if (!db)
        die(EXIT_ENVIRONMENT, "%s", err.text);
    struct status *status = sql_script(db, "begin", &err) ? status_read(db, path, &err) : NULL;
    sqlite3_close(db);
    if (!status)
        die(EXIT_ENVIRONMENT, "%s", err.text);
    if (arguments->json)
        status_print_json(status, stdout);
    else
        status_print(status, WIDTH, stdout);
    status_free(status);
    return EXIT_DONE;
}

extern const struct command command_status;
const struct command command_status = {
    .name = "status",
    .arguments = "",
    .summary = "Show what is being trained now, how far it is and the time left; from any terminal.",
    .help = "Runs of each experiment by state, and for those that train: step, steps a second, loss, time left.\n\n"
            "Example:\n"
            "  runner status\n"
            "  runner status --json",
    .options = options,
    .json = true,
    .run = status_run,
};
