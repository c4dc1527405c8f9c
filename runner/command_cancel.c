/* runner cancel: ends the cluster jobs of an experiment. */
#include <math.h>
#include <stdio.h>

#include "core/memory.h"
#include "runner/cluster_refresh.h"
#include "runner/command.h"
#include "runner/file.h"
#include "runner/lockfile.h"
#include "runner/slurm.h"
#include "runner/sql.h"

enum { LOOKS = 12 };

/* Tasks write a checkpoint when they are told to stop: that takes a moment. */
static bool tasks_wait(const struct cluster *cluster, size_t *active, struct error *err)
{
    for (int i = 0; i < LOOKS; i++) {
        if (!cluster_active(cluster, active, err))
            return false;
        if (!*active)
            return true;
        lockfile_pause(slurm_patience() / 2);
    }
    return true;
}

static bool jobs_end(const struct cluster *cluster, struct error *err)
{
    size_t count, tasks;
    char **names = cluster_names(cluster, 0, &count, &tasks);
    bool ok = slurm_cancel((const char *const *)names, count, err);
    cluster_names_free(names, count);
    return ok;
}

static bool outcome_keep(const char *path, const struct cluster *cluster, const char *checkpoints, size_t before,
                         struct error *err)
{
    struct database_options options = {.command = "runner cancel", .wait_seconds = INFINITY, .note = message_note};
    struct error closing;
    size_t left;
    struct database *database = database_open(path, &options, err);
    bool ok = database && cluster_refresh(database, cluster, checkpoints, true, &left, err);
    if (!database_close(database, &closing) && ok)
        ok = error_set(err, "%s", closing.text);
    if (ok)
        message("cancelled: %zu run%s had not ended; --retry cancelled goes on with them", before,
                before == 1 ? "" : "s");
    return ok;
}

static int cancel(struct cluster *cluster, const char *path, const char *checkpoints, size_t before)
{
    struct error err;
    size_t active = 0;
    if (!jobs_end(cluster, &err) || !tasks_wait(cluster, &active, &err)) {
        message("cancel: %s", err.text);
        return EXIT_ENVIRONMENT;
    }
    if (active) {
        message("cancel: %zu tasks have not ended yet; the same command again looks after them", active);
        return EXIT_ENVIRONMENT;
    }
    if (outcome_keep(path, cluster, checkpoints, before, &err))
        return EXIT_DONE;
    message("cancel: %s", err.text);
    return EXIT_ENVIRONMENT;
}

static int cancel_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    struct error err;
    struct cluster cluster;
    const char *path = option_text(arguments, "db", "results/results.db"), *name = arguments->positional[0];
    sqlite3 *db = database_open_reader(path, &err);
    if (!db)
        die(EXIT_ENVIRONMENT, "cancel: %s", err.text);
    if (!database_find_experiment(db, name, &err))
        die(sql_has_failed(db) ? EXIT_ENVIRONMENT : EXIT_USAGE, "cancel: %s", err.text);
    char *folder = path_folder(path), *logs = path_join(folder, "logs"),
         *checkpoints = path_join(folder, "checkpoints");
    bool ok = cluster_open(&cluster, folder, logs, path, name, &err);
    size_t left = ok ? cluster_left(db, &cluster) : 0;
    sqlite3_close(db);
    int code = EXIT_DONE;
    if (!ok) {
        message("cancel: %s", err.text);
        code = EXIT_ENVIRONMENT;
    } else if (!left) {
        message("nothing to cancel: no run of '%s' is on a cluster", name);
    } else {
        code = cancel(&cluster, path, checkpoints, left);
    }
    cluster_close(&cluster);
    memory_free(folder);
    memory_free(logs);
    memory_free(checkpoints);
    return code;
}

static const struct option options[] = {
    {.name = "db", .kind = OPTION_TEXT, .argument = "PATH", .doc = "Database. Default: results/results.db."},
    {.name = NULL},
};

extern const struct command command_cancel;
const struct command command_cancel = {
    .name = "cancel",
    .arguments = "EXPERIMENT",
    .summary = "End the cluster jobs of an experiment.",
    .help = "Its tasks write a checkpoint and leave; what has not ended counts as failed with the reason `cancelled`, "
            "and `runner run FILE --launcher slurm --retry cancelled` goes on from there.\n\n"
            "Example:\n"
            "  runner cancel day2-norms",
    .options = options,
    .minimum_arguments = 1,
    .maximum_arguments = 1,
    .run = cancel_run,
};
