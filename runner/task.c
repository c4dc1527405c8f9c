/* A task's life: is this array the one, is there progress at all, then the supervisor with one worker. */
#include "runner/task.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/checkpoint.h"
#include "runner/command.h"
#include "runner/database.h"
#include "runner/file.h"
#include "runner/signals.h"
#include "runner/supervisor.h"
#include "runner/task_claim.h"
#include "runner/task_line.h"

enum { TRIES_LIMIT = 200, LOCK_SECONDS = 240, FLUSH_SECONDS = 60 };

/* ---- which array ---- */

/* *ours: the list is the one that the task was submitted for. */
static bool token_check(const char *list, const char *token, bool *ours, struct error *err)
{
    char written[TASK_TOKEN_SIZE];
    if (!task_list_token(list, written, err))
        return false;
    *ours = strcmp(written, token ? token : "") == 0;
    if (!*ours)
        message("'%s' has been written anew since this task was submitted: it leaves", list);
    return true;
}

/* *ours: this array has the runs. */
static bool claim_check(const char *claim, bool *ours, struct error *err)
{
    const char *array = getenv("SLURM_ARRAY_JOB_ID");
    char holder[24];
    *ours = true;
    if (!claim || !array || !*array || strlen(array) > 20)
        return true;
    if (!claim_make(claim, array, err))
        return false;
    if (!claim_holder(claim, holder))
        return error_set(err, "cannot read '%s'", claim);
    *ours = strcmp(holder, array) == 0;
    if (!*ours)
        message("array %s has these runs already: array %s leaves them to it", holder, array);
    return true;
}

/* ---- progress from task to task ---- */

/* Counts this task; *tries: those in a row, this one included, that began where the one before had begun. */
static bool tries_count(const struct task_line *task, int64_t *tries, struct error *err)
{
    char *path = task_path(task->job.checkpoint_folder, task->job.key, "tries"), *text = NULL;
    int64_t step = checkpoint_newest(task->job.checkpoint_folder, task->job.key), stood = -2;
    size_t size;
    *tries = 0;
    if (access(path, F_OK) == 0 && file_read(path, TRIES_LIMIT, &text, &size, NULL)) {
        char *end;
        *tries = strtoll(text, &end, 10);
        stood = strtoll(end, NULL, 10);
    }
    *tries = stood == step ? *tries + 1 : 1;
    char line[64];
    snprintf(line, sizeof line, "%" PRId64 " %" PRId64 "\n", *tries, step);
    bool ok = file_write(path, line, strlen(line), err);
    memory_free(text);
    memory_free(path);
    return ok;
}

/* ---- the run ---- */

/* A sweep of one run. The parts are the task's and the caller's. */
struct single {
    struct sweep sweep;
    struct experiment experiment;
    struct variant variant;
    struct run run;
    struct dataset dataset;
};

static bool single_make(const struct task_line *task, struct single *single, struct error *err)
{
    const struct job *job = &task->job;
    memset(single, 0, sizeof *single);
    if (!dataset_open(job->dataset_path, job->config.model.context_length, &single->dataset, err))
        return false;
    single->variant = (struct variant){.label = task->label, .config = job->config};
    single->experiment.variants = &single->variant;
    single->experiment.variant_count = 1;
    single->run = (struct run){.seed = job->seed,
                               .parameters = task->parameters,
                               .flops_per_token = task->flops_per_token,
                               .config_json = config_json(&job->config, true)};
    memcpy(single->run.key, job->key, sizeof job->key);
    single->sweep = (struct sweep){.experiment = &single->experiment,
                                   .datasets = &single->dataset,
                                   .dataset_count = 1,
                                   .runs = &single->run,
                                   .run_count = 1};
    return true;
}

static void single_release(struct single *single)
{
    memory_free(single->run.config_json);
    dataset_close(&single->dataset);
}

static int code_of(const struct supervisor_outcome *outcome)
{
    return outcome->failed ? EXIT_RUNS_FAILED : outcome->interrupted ? EXIT_STOPPED : EXIT_DONE;
}

static bool run_train(const struct task_line *task, const struct single *single, struct database *database, int *code,
                      struct error *err)
{
    struct supervisor_outcome outcome;
    bool wanted = true;
    int signals = signals_open(err);
    if (signals < 0)
        return false;
    struct supervisor_options options = {.workers = 1,
                                         .checkpoint_every = task->job.checkpoint_every,
                                         .hang_after = (double)task->hang_after,
                                         .checkpoint_folder = task->job.checkpoint_folder,
                                         .log_folder = task->logs,
                                         .signals = signals,
                                         .progress = PROGRESS_PLAIN};
    bool ok = supervise(database, &single->sweep, &wanted, &options, &outcome, err) &&
              database_flush(database, FLUSH_SECONDS, err);
    signals_close(signals);
    *code = ok ? code_of(&outcome) : EXIT_ENVIRONMENT;
    return ok;
}

static bool run_give_up(const struct task_line *task, struct database *database, struct error *err)
{
    char reason[128];
    snprintf(reason, sizeof reason, "%d tasks in a row made no progress", TASK_TRIES);
    message("%s: not trained again (--retry failed does)", reason);
    return database_run_end(database, task->job.key, RUN_FAILED, reason, NULL, err) &&
           database_flush(database, FLUSH_SECONDS, err);
}

static bool shard_work(const struct task_line *task, struct single *single, struct database *database, int *code,
                       struct error *err)
{
    int64_t tries = 0;
    if (!database_recover(database, err) || !database_freeze_runs(database, &single->sweep, err))
        return false;
    enum run_state state = database_run_state(database_handle(database), task->job.key, NULL, NULL, 0);
    *code = EXIT_DONE;
    if (state == RUN_FINISHED || state == RUN_DIVERGED) {
        message("nothing to do: the run is %s", run_state_name(state));
        return true;
    }
    if (!tries_count(task, &tries, err))
        return false;
    *code = EXIT_RUNS_FAILED;
    return tries > TASK_TRIES ? run_give_up(task, database, err) : run_train(task, single, database, code, err);
}

static bool shard_train(const struct task_line *task, int *code, struct error *err)
{
    struct single single;
    struct database_options options = {
        .command = "runner work", .wait_seconds = LOCK_SECONDS, .no_wal = true, .note = message_note};
    struct error closing;
    if (!single_make(task, &single, err)) {
        single_release(&single);
        return false;
    }
    char *path = task_path(task->job.checkpoint_folder, task->job.key, "run.db");
    struct database *database = database_open(path, &options, err);
    bool ok = database && shard_work(task, &single, database, code, err);
    bool closed = database_close(database, &closing);
    if (ok && !closed)
        ok = error_set(err, "%s", closing.text);
    memory_free(path);
    single_release(&single);
    return ok;
}

int task_run(const char *list, size_t index, const char *claim, const char *token)
{
    struct task_line *task = memory_alloc(1, sizeof *task);
    struct error err;
    bool ours = true;
    int code = EXIT_ENVIRONMENT;
    if (claim && !token_check(list, token, &ours, &err)) {
        message("runner work: %s", err.text);
        code = EXIT_USAGE;
    } else if (ours && !claim_check(claim, &ours, &err)) {
        message("runner work: %s", err.text);
    } else if (!ours) {
        code = EXIT_DONE;
    } else if (!task_line_read(list, index, task, &err)) {
        message("runner work: %s", err.text);
        code = EXIT_USAGE;
    } else if (!shard_train(task, &code, &err)) {
        message("runner work: %s", err.text);
        code = EXIT_ENVIRONMENT;
    }
    task_line_release(task);
    memory_free(task);
    return code;
}
