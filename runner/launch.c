/* What `run` and Slurm have to do with each other. */
#include "runner/launch.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/checkpoint.h"
#include "runner/cluster_refresh.h"
#include "runner/file.h"
#include "runner/launcher.h"
#include "runner/shell_word.h"
#include "runner/slurm.h"

enum { HANG_SECONDS = 3600 };

bool launch_wanted(const struct arguments *arguments)
{
    return option_text(arguments, "launcher", NULL) != NULL;
}

bool launch_check(const struct arguments *arguments, struct error *err)
{
    const char *const *settings;
    size_t count = option_list(arguments, "slurm", &settings);
    if (!launch_wanted(arguments) && (count || option_flag(arguments, "detach")))
        return error_set(err, "--%s goes with --launcher slurm", count ? "slurm" : "detach");
    if (launch_wanted(arguments) && option_text(arguments, "shard", NULL))
        return error_set(err, "--shard and --launcher do not go together: expected one of them");
    for (size_t i = 0; i < count; i++)
        if (!launcher_setting_check(settings[i], err))
            return error_wrap(err, "--slurm");
    return true;
}

static bool cluster_of(const struct session *session, struct cluster *cluster, struct error *err)
{
    return cluster_open(cluster, session->folder, session->logs, session->database_path,
                        session->sweep->experiment->name, err);
}

bool launch(const struct session *session, struct database *database, const struct schedule *schedule, int signals,
            struct follow_outcome *outcome, struct error *err)
{
    const struct arguments *arguments = session->arguments;
    const struct experiment *experiment = session->sweep->experiment;
    struct cluster cluster;
    struct follow_options options = {.checkpoints = session->checkpoints,
                                     .again = session->words,
                                     .detach = option_flag(arguments, "detach"),
                                     .signals = signals,
                                     .progress = progress_mode_of(stderr)};
    options.cluster.at_once = (size_t)option_integer(arguments, "workers", 0);
    options.cluster.settings[0] = (const char *const *)experiment->launcher;
    options.cluster.setting_counts[0] = experiment->launcher_count;
    options.cluster.setting_counts[1] = option_list(arguments, "slurm", &options.cluster.settings[1]);
    bool ok =
        cluster_of(session, &cluster, err) && folder_make(session->logs, err) && folder_make(session->checkpoints, err);
    options.cluster.tasks = (struct task_settings){.shards = cluster.shards,
                                                   .logs = session->logs,
                                                   .checkpoint_every = option_integer(arguments, "checkpoint-every", 0),
                                                   .hang_after = option_integer(arguments, "hang-after", HANG_SECONDS)};
    message("%s: %zu run%s, %zu to train on the cluster", experiment->name, schedule->total,
            schedule->total == 1 ? "" : "s", schedule->to_train);
    ok = ok && follow(database, session->sweep, schedule, &cluster, &options, outcome, err);
    cluster_close(&cluster);
    return ok;
}

bool launch_left(const struct session *session, const struct follow_outcome *outcome, int *code)
{
    bool detached = option_flag(session->arguments, "detach");
    if (!outcome->active || (!detached && !outcome->stop_signal))
        return false;
    message("%s: %zu task%s on the cluster, which go on by themselves", detached ? "submitted" : "stopped following",
            outcome->active, outcome->active == 1 ? "" : "s");
    message("to follow: %s%s", session->words, detached ? "  (without --detach)" : "");
    char *path = shell_word(session->database_path), *cancel = session_command(session, "cancel");
    message("to look: runner status --db %s", path);
    message("to cancel: %s", cancel);
    memory_free(cancel);
    memory_free(path);
    *code = detached ? EXIT_DONE : EXIT_STOPPED;
    return true;
}

bool launch_is_clear(const struct session *session, const struct schedule *schedule, struct error *err)
{
    struct cluster cluster;
    size_t active = 0, round, chunk, index, placed = 0;
    bool ok = cluster_of(session, &cluster, err);
    for (size_t i = 0; ok && i < session->sweep->run_count; i++)
        placed += run_action_trains(schedule->runs[i].action) &&
                  cluster_find(&cluster, session->sweep->runs[i].key, &round, &chunk, &index);
    if (ok && placed) {
        ok = cluster_active(&cluster, &active, err) ||
             error_wrap(err, "%zu of the runs were submitted to a cluster, and whether they are still there is unknown",
                        placed);
        if (ok && active) {
            char *cancel = session_command(session, "cancel");
            ok = error_set(err,
                           "%zu tasks of '%s' are on a cluster: the same command with --launcher slurm follows them, "
                           "`%s` ends them",
                           active, session->sweep->experiment->name, cancel);
            memory_free(cancel);
        }
    }
    for (size_t i = 0; ok && placed && i < session->sweep->run_count; i++)
        if (run_action_trains(schedule->runs[i].action))
            ok = checkpoint_move(cluster.shards, session->checkpoints, session->sweep->runs[i].key, err);
    cluster_close(&cluster);
    return ok;
}
