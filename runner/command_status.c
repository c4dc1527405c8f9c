/* runner status: what runs now, from any terminal. */
#include <stdio.h>

#include "runner/cluster_status.h"
#include "runner/command.h"
#include "runner/database.h"
#include "runner/sql.h"
#include "runner/status.h"

static const struct option options[] = {
    {.name = "db", .kind = OPTION_TEXT, .argument = "PATH", .doc = "database (default results/results.db)"},
    {0},
};

enum { WIDTH = 100 };

static void note_print(const char *text)
{
    message("%s", text);
}

static sqlite3 *reader_open(const char *path)
{
    struct error err;
    sqlite3 *db = database_open_reader(path, &err);
    if (!db)
        die(EXIT_ENVIRONMENT, "%s", err.text);
    return db;
}

/* What is on a cluster is picked up. False: as far as is known, no task trains. A cluster that does not answer costs
 * only what it alone knows. *db is opened again where the file was written: it may be a copy of an older one, which
 * takes long to make. */
static bool cluster_look(struct cluster_watch *watch, sqlite3 **db, const char *path)
{
    struct error err;
    if (!cluster_watch_open(watch, *db, path, &err))
        die(EXIT_ENVIRONMENT, "%s", err.text);
    if (!watch->count)
        return false;
    if (cluster_watch_may_gather(watch)) {
        sqlite3_close(*db);
        if (!cluster_watch_gather(watch, &err))
            message("%s", err.text);
        *db = reader_open(path);
    }
    bool ok = cluster_watch_ask(watch, *db, note_print, &err);
    if (!ok)
        message("where the tasks of the cluster are is unknown: %s", err.text);
    return !ok || watch->active;
}

static int status_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    struct error err;
    struct cluster_watch watch;
    const char *path = option_text(arguments, "db", "results/results.db");
    sqlite3 *db = reader_open(path);
    bool elsewhere = cluster_look(&watch, &db, path);
    struct status *status = sql_script(db, "begin", &err) ? status_read_elsewhere(db, path, elsewhere, &err) : NULL;
    sqlite3_close(db);
    if (!status)
        die(EXIT_ENVIRONMENT, "%s", err.text);
    status->tasks = watch.tasks;
    status->task_count = watch.task_count;
    if (arguments->json)
        status_print_json(status, stdout);
    else
        status_print(status, WIDTH, stdout);
    status_free(status);
    cluster_watch_close(&watch);
    return EXIT_DONE;
}

extern const struct command command_status;
const struct command command_status = {
    .name = "status",
    .arguments = "",
    .summary = "Show what is being trained now, how far it is and the time left; from any terminal.",
    .help =
        "Runs of each experiment by state, and for those that train: step, steps a second, loss, time left. "
        "What tasks of a cluster have written is gathered first, from any login node, and Slurm is asked where they "
        "are.\n\n"
        "Example:\n"
        "  runner status\n"
        "  runner status --json",
    .options = options,
    .json = true,
    .run = status_run,
};
