/* Starting workers, hearing what they say, and telling how each ended. */
#include "runner/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/cause.h"
#include "runner/checkpoint.h"
#include "runner/clock.h"
#include "runner/command.h"
#include "runner/file.h"
#include "runner/record.h"
#include "runner/signals.h"
#include "runner/spawn.h"
#include "runner/sweep_progress.h"
#include "runner/worker.h"

enum { POLL_MILLISECONDS = 100, LOG_TAIL = 2000, READS_IN_A_ROW = 16, FLUSH_SECONDS = 60, FAILURES_MOST = 3 };

/* A loop that took longer than this was not running: the machine slept, or somebody stopped this process. */
#define ASLEEP_SECONDS 5.0

/* What a worker's own last record said. */
enum outcome { OUTCOME_NONE, OUTCOME_FINISHED, OUTCOME_DIVERGED, OUTCOME_ENVIRONMENT, OUTCOME_MALFORMED };

struct slot {
    bool used;
    size_t run;      /* index in the sweep */
    size_t position; /* index in the progress */
    struct process process;
    struct record_reader reader;
    enum outcome outcome;
    bool started, ended, reaped; /* START seen; pipe at its end; exit status known */
    int status;
    char reason[256]; /* of the outcome */
    char *log_path;
    int64_t log_begin; /* where this process's part of the log starts */
    double heard;      /* when its last record came */
    bool hung;
    int64_t memory_kills; /* of the machine, when it started */
};

struct supervisor {
    struct database *database;
    const struct sweep *sweep;
    const struct supervisor_options *options;
    struct supervisor_outcome *outcome;
    struct progress *progress;
    size_t *queue; /* runs to train, in order */
    size_t queued, next;
    struct slot *slots;
    bool *leftovers; /* finished runs whose checkpoints are still there */
    bool stopping;   /* nothing new is started */
    enum cause last_cause;
    size_t failed_variants[FAILURES_MOST]; /* of that cause, in a row */
    int failures_in_a_row;                 /* how many these are */
    bool failed;                           /* the machine or the database failed: failure says how */
    struct error failure;
};

size_t supervisor_cores(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    if (count < 1)
        count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (size_t)count : 1;
}

static const struct run *slot_run(const struct supervisor *supervisor, const struct slot *slot)
{
    return &supervisor->sweep->runs[slot->run];
}

static void signal_workers(const struct supervisor *supervisor, int number)
{
    for (size_t i = 0; i < supervisor->options->workers; i++)
        if (supervisor->slots[i].used && !supervisor->slots[i].reaped)
            kill(number == SIGKILL ? -supervisor->slots[i].process.pid : supervisor->slots[i].process.pid, number);
}

/* No run of the sweep can do better now: keep what there is and leave. */
static void environment_failed(struct supervisor *supervisor, const char *text)
{
    if (!supervisor->failed) {
        supervisor->failed = true;
        error_set(&supervisor->failure, "%s", text);
    }
    if (!supervisor->stopping)
        signal_workers(supervisor, SIGTERM);
    supervisor->stopping = true;
}

static bool database_ok(struct supervisor *supervisor, bool ok, const struct error *err)
{
    if (!ok)
        environment_failed(supervisor, err->text);
    return ok;
}

static bool job_fill(const struct supervisor *supervisor, const struct run *run, struct job *job, struct error *err)
{
    const char *dataset = supervisor->sweep->datasets[run->dataset].path;
    char *folder = realpath(supervisor->options->checkpoint_folder, NULL);
    memset(job, 0, sizeof *job);
    memcpy(job->key, run->key, sizeof job->key);
    job->config = supervisor->sweep->experiment->variants[run->variant].config;
    job->seed = run->seed;
    job->checkpoint_every = supervisor->options->checkpoint_every;
    bool ok = folder && strlen(folder) < sizeof job->checkpoint_folder && strlen(dataset) < sizeof job->dataset_path;
    if (ok) {
        memcpy(job->checkpoint_folder, folder, strlen(folder) + 1);
        memcpy(job->dataset_path, dataset, strlen(dataset) + 1);
    } else if (!folder) {
        error_set(err, "checkpoint folder '%s': %s", supervisor->options->checkpoint_folder, strerror(errno));
    } else {
        bool long_dataset = strlen(dataset) >= sizeof job->dataset_path;
        error_set(err, "the path of the %s is too long: '%.300s'",
                  long_dataset ? "tokenised text" : "checkpoint folder", long_dataset ? dataset : folder);
    }
    free(folder);
    return ok;
}

static char *log_path_make(const struct supervisor *supervisor, const struct run *run)
{
    char name[sizeof run->key + 4];
    snprintf(name, sizeof name, "%s.log", run->key);
    return path_join(supervisor->options->log_folder, name);
}

static bool slot_start(struct supervisor *supervisor, struct slot *slot, size_t position, struct error *err)
{
    static const char *const self[] = {"/proc/self/exe", "work", NULL};
    const char *const *command = supervisor->options->command ? supervisor->options->command : self;
    struct job job;
    *slot = (struct slot){.run = supervisor->queue[position],
                          .position = position,
                          .heard = seconds_now(),
                          .memory_kills = cause_memory_kills()};
    const struct run *run = slot_run(supervisor, slot);
    if (!job_fill(supervisor, run, &job, err))
        return false;
    char *text = job_json(&job);
    slot->log_path = log_path_make(supervisor, run);
    slot->used = process_start(&slot->process, command, text, slot->log_path, &slot->log_begin, err);
    memory_free(text);
    if (!slot->used)
        memory_free(slot->log_path);
    return slot->used;
}

static void slots_fill(struct supervisor *supervisor)
{
    struct error err;
    for (size_t i = 0; i < supervisor->options->workers; i++) {
        if (supervisor->stopping || supervisor->next == supervisor->queued)
            return;
        if (supervisor->slots[i].used)
            continue;
        if (!slot_start(supervisor, &supervisor->slots[i], supervisor->next, &err))
            environment_failed(supervisor, err.text);
        else
            supervisor->next++;
    }
}

/* Splits whose evaluation at the step it resumes from is in the curve. */
static size_t evaluations_at(const struct record *record)
{
    size_t count = 0;
    for (uint64_t i = 0; i < record->start->evaluation_count; i++)
        count += record->evaluations[i].step == record->start->step;
    return count;
}

static void outcome_set(struct slot *slot, enum outcome outcome, const char *reason)
{
    slot->outcome = outcome;
    snprintf(slot->reason, sizeof slot->reason, "%s", reason);
}

static void record_malformed(struct slot *slot, const char *what)
{
    char reason[sizeof slot->reason];
    cause_describe_records(what, reason, sizeof reason);
    outcome_set(slot, OUTCOME_MALFORMED, reason);
    kill(-slot->process.pid, SIGKILL);
}

static void record_take(struct supervisor *supervisor, struct slot *slot, const struct record *record)
{
    const char *key = slot_run(supervisor, slot)->key;
    double now = seconds_now();
    bool ok = true;
    struct error err;
    bool needs_start =
        record->kind != RECORD_START && record->kind != RECORD_NOTE && record->kind != RECORD_ENVIRONMENT;
    if (slot->outcome != OUTCOME_NONE || (needs_start && !slot->started) ||
        (record->kind == RECORD_START && slot->started)) {
        record_malformed(slot, "record out of order");
        return;
    }
    switch (record->kind) {
    case RECORD_START:
        slot->started = true;
        ok = database_run_start(supervisor->database, key, record->start->step, &record->start->environment,
                                record->steps, record->start->step_count, record->evaluations,
                                record->start->evaluation_count, &err);
        progress_run_start(supervisor->progress, slot->position, record->start->step, evaluations_at(record), now);
        break;
    case RECORD_STEP:
        ok = database_step(supervisor->database, key, record->steps, &err);
        progress_step(supervisor->progress, slot->position, record->steps, now);
        break;
    case RECORD_EVALUATION:
        ok = database_evaluation(supervisor->database, key, record->evaluations, &err);
        progress_evaluation(supervisor->progress, slot->position, record->evaluations, now);
        break;
    case RECORD_CHECKPOINT: break;
    case RECORD_FINISHED: outcome_set(slot, OUTCOME_FINISHED, ""); break;
    case RECORD_DIVERGED: {
        char reason[sizeof slot->reason];
        snprintf(reason, sizeof reason, "%s at step %" PRId64, record->diverged->reason, record->diverged->step);
        outcome_set(slot, OUTCOME_DIVERGED, reason);
        break;
    }
    case RECORD_NOTE: progress_note(supervisor->progress, slot->position, record->text); break;
    case RECORD_ENVIRONMENT:
        outcome_set(slot, OUTCOME_ENVIRONMENT, record->text);
        environment_failed(supervisor, record->text);
        break;
    }
    database_ok(supervisor, ok, &err);
}

/* Takes what is in the pipe, but not for ever: the other workers wait. */
static void slot_read(struct supervisor *supervisor, struct slot *slot)
{
    struct record record;
    struct error err;
    for (int i = 0; i < READS_IN_A_ROW && !slot->ended; i++) {
        ssize_t got = record_reader_fill(&slot->reader, slot->process.out);
        if (got < 0 && errno == EAGAIN) {
            /* All that a process wrote before it ended is in the pipe: who else holds the pipe does not matter. */
            slot->ended = slot->reaped;
            return;
        }
        slot->ended = got <= 0;
        slot->heard = seconds_now();
        enum record_status status;
        while (slot->outcome != OUTCOME_MALFORMED &&
               (status = record_next(&slot->reader, &record, &err)) != RECORD_MORE) {
            if (status == RECORD_READY)
                record_take(supervisor, slot, &record);
            else
                record_malformed(slot, err.text);
        }
        if (slot->outcome == OUTCOME_MALFORMED)
            slot->ended = true;
    }
}

static void workers_reap(struct supervisor *supervisor)
{
    for (size_t i = 0; i < supervisor->options->workers; i++) {
        struct slot *slot = &supervisor->slots[i];
        if (slot->used && !slot->reaped)
            slot->reaped = waitpid(slot->process.pid, &slot->status, WNOHANG) == slot->process.pid;
    }
}

/* How a worker ended that did not say so itself. */
static enum run_state exit_judge(const struct supervisor *supervisor, struct slot *slot)
{
    int status = slot->status, number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    bool ours = supervisor->outcome->killed && number == SIGKILL;
    /* SIGTERM ends a worker that has not yet come to note it. */
    bool stopped = supervisor->stopping && number == SIGTERM;
    if (stopped || (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_STOPPED)) {
        slot->reason[0] = 0;
        return RUN_INTERRUPTED;
    }
    if (ours)
        snprintf(slot->reason, sizeof slot->reason, "killed by signal %d (%s)", number, signal_name(number));
    else if (slot->hung)
        cause_describe_hang(supervisor->options->hang_after, slot->reason, sizeof slot->reason);
    else
        cause_describe_exit(status, cause_memory_kills() > slot->memory_kills, slot->reason, sizeof slot->reason);
    return ours ? RUN_INTERRUPTED : RUN_FAILED;
}

static enum run_state slot_judge(const struct supervisor *supervisor, struct slot *slot)
{
    switch (slot->outcome) {
    case OUTCOME_FINISHED: return RUN_FINISHED;
    case OUTCOME_DIVERGED: return RUN_DIVERGED;
    case OUTCOME_ENVIRONMENT: return RUN_INTERRUPTED;
    case OUTCOME_MALFORMED: return RUN_FAILED;
    case OUTCOME_NONE: break;
    }
    return exit_judge(supervisor, slot);
}

/* The end of what this process wrote to its log, from the start of a line. Owner: caller; NULL when there is none. */
static char *log_tail(const struct slot *slot)
{
    int fd = open(slot->log_path, O_RDONLY | O_CLOEXEC);
    off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    off_t begin = end - LOG_TAIL > slot->log_begin ? end - LOG_TAIL : slot->log_begin;
    char *text = NULL;
    if (end > begin) {
        text = memory_alloc((size_t)(end - begin) + 1, 1);
        ssize_t got = pread(fd, text, (size_t)(end - begin), begin);
        text[got > 0 ? got : 0] = 0;
        char *line = begin > slot->log_begin ? strchr(text, '\n') : NULL;
        if (line)
            memmove(text, line + 1, strlen(line + 1) + 1);
    }
    if (fd >= 0)
        close(fd);
    return text;
}

static void log_show(struct supervisor *supervisor, char *tail)
{
    char *rest = tail;
    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n"))
        if (*line) {
            char shown[512];
            snprintf(shown, sizeof shown, "    | %.500s", line);
            progress_note(supervisor->progress, SIZE_MAX, shown);
        }
}

static void outcome_count(struct supervisor_outcome *outcome, enum run_state state)
{
    outcome->finished += state == RUN_FINISHED;
    outcome->diverged += state == RUN_DIVERGED;
    outcome->failed += state == RUN_FAILED;
    outcome->interrupted += state == RUN_INTERRUPTED;
}

/* A finished run's checkpoints go only when the database has it on disk as finished. */
static void leftovers_remove(struct supervisor *supervisor, double wait_seconds)
{
    struct error err;
    if (!database_flush(supervisor->database, wait_seconds, &err))
        return;
    for (size_t i = 0; i < supervisor->sweep->run_count; i++) {
        if (supervisor->leftovers[i] &&
            !checkpoint_remove(supervisor->options->checkpoint_folder, supervisor->sweep->runs[i].key, &err))
            progress_note(supervisor->progress, SIZE_MAX, err.text);
        supervisor->leftovers[i] = false;
    }
}

/* One bad run costs that run, and one bad variant its runs; several variants of one cause say that the next would end
 * so too. */
static void failures_count(struct supervisor *supervisor, size_t variant, enum run_state state, const char *reason)
{
    if (state == RUN_FINISHED || state == RUN_DIVERGED)
        supervisor->failures_in_a_row = 0;
    if (state != RUN_FAILED)
        return;
    enum cause cause = cause_of(reason);
    if (cause != supervisor->last_cause)
        supervisor->failures_in_a_row = 0;
    supervisor->last_cause = cause;
    int seen = 0;
    while (seen < supervisor->failures_in_a_row && supervisor->failed_variants[seen] != variant)
        seen++;
    if (seen == supervisor->failures_in_a_row && seen < FAILURES_MOST)
        supervisor->failed_variants[supervisor->failures_in_a_row++] = variant;
    if (supervisor->failures_in_a_row < FAILURES_MOST || supervisor->next == supervisor->queued)
        return;
    char text[sizeof supervisor->failure.text];
    snprintf(
        text, sizeof text,
        "%d variants in a row failed of one cause, so the other %zu runs are not begun: %.300s; with that put right, "
        "--retry %s trains these again",
        FAILURES_MOST, supervisor->queued - supervisor->next, reason, cause_name(cause));
    environment_failed(supervisor, text);
}

static void slot_end(struct supervisor *supervisor, struct slot *slot)
{
    const struct run *run = slot_run(supervisor, slot);
    enum run_state state = slot_judge(supervisor, slot);
    const char *reason = *slot->reason ? slot->reason : NULL;
    char *tail = state == RUN_FAILED ? log_tail(slot) : NULL;
    struct error err;
    progress_run_end(supervisor->progress, slot->position, state, reason, seconds_now());
    if (database_ok(supervisor, database_run_end(supervisor->database, run->key, state, reason, tail, &err), &err) &&
        state == RUN_FINISHED) {
        supervisor->leftovers[slot->run] = true;
        leftovers_remove(supervisor, 0);
    }
    outcome_count(supervisor->outcome, state);
    if (tail)
        log_show(supervisor, tail);
    failures_count(supervisor, run->variant, state, slot->reason);
    memory_free(tail);
    memory_free(slot->log_path);
    record_reader_release(&slot->reader);
    close(slot->process.out);
    *slot = (struct slot){0};
}

static void stop_take(struct supervisor *supervisor, int number)
{
    struct supervisor_outcome *outcome = supervisor->outcome;
    if (outcome->stop_signal) {
        outcome->killed = true;
        progress_note(supervisor->progress, SIZE_MAX,
                      "stopping now: what was trained since the last checkpoint is lost");
        signal_workers(supervisor, SIGKILL);
        return;
    }
    outcome->stop_signal = number;
    supervisor->stopping = true;
    progress_note(supervisor->progress, SIZE_MAX,
                  "stopping: each worker ends its step and writes a checkpoint (once more to stop now)");
    signal_workers(supervisor, SIGTERM);
}

static void signals_take(struct supervisor *supervisor)
{
    for (int number; (number = signals_next(supervisor->options->signals));)
        if (number != SIGCHLD)
            stop_take(supervisor, number);
    workers_reap(supervisor);
}

/* Waits until something happens, or a tenth of a second for the clock's sake. */
static void events_wait(struct supervisor *supervisor, struct pollfd *events)
{
    size_t workers = supervisor->options->workers;
    for (size_t i = 0; i < workers; i++) {
        const struct slot *slot = &supervisor->slots[i];
        events[i] = (struct pollfd){.fd = slot->used && !slot->ended ? slot->process.out : -1, .events = POLLIN};
    }
    events[workers] = (struct pollfd){.fd = supervisor->options->signals, .events = POLLIN};
    if (poll(events, workers + 1, POLL_MILLISECONDS) < 0)
        return;
    for (size_t i = 0; i < workers; i++)
        if (events[i].fd >= 0 && (events[i].revents || supervisor->slots[i].reaped))
            slot_read(supervisor, &supervisor->slots[i]);
}

/* Kills what has been silent for too long; a loop that slept has not heard anybody. */
static void hangs_end(struct supervisor *supervisor, double loop_began)
{
    double now = seconds_now(), allowed = supervisor->options->hang_after;
    bool asleep = now - loop_began > ASLEEP_SECONDS;
    for (size_t i = 0; i < supervisor->options->workers && allowed > 0; i++) {
        struct slot *slot = &supervisor->slots[i];
        if (!slot->used || slot->reaped || slot->hung)
            continue;
        if (asleep)
            slot->heard = now;
        slot->hung = now - slot->heard > allowed;
        if (slot->hung)
            kill(-slot->process.pid, SIGKILL);
    }
}

static size_t slots_used(const struct supervisor *supervisor)
{
    size_t used = 0;
    for (size_t i = 0; i < supervisor->options->workers; i++)
        used += supervisor->slots[i].used;
    return used;
}

static void supervisor_loop(struct supervisor *supervisor)
{
    struct pollfd *events = memory_alloc(supervisor->options->workers + 1, sizeof *events);
    struct error err;
    signals_take(supervisor);
    slots_fill(supervisor);
    while (slots_used(supervisor)) {
        double began = seconds_now();
        events_wait(supervisor, events);
        hangs_end(supervisor, began);
        signals_take(supervisor);
        for (size_t i = 0; i < supervisor->options->workers; i++) {
            struct slot *slot = &supervisor->slots[i];
            if (slot->used && slot->ended && slot->reaped)
                slot_end(supervisor, slot);
        }
        database_ok(supervisor, database_pump(supervisor->database, &err), &err);
        slots_fill(supervisor);
        progress_tick(supervisor->progress, seconds_now());
    }
    if (!supervisor->failed)
        leftovers_remove(supervisor, FLUSH_SECONDS);
    memory_free(events);
}

bool supervise(struct database *database, const struct sweep *sweep, const bool *wanted,
               const struct supervisor_options *options, struct supervisor_outcome *outcome, struct error *err)
{
    struct supervisor supervisor = {.database = database, .sweep = sweep, .options = options, .outcome = outcome};
    int64_t *blocks;
    *outcome = (struct supervisor_outcome){0};
    supervisor.queue = memory_alloc(sweep->run_count, sizeof *supervisor.queue);
    supervisor.leftovers = memory_alloc(sweep->run_count, sizeof *supervisor.leftovers);
    supervisor.slots = memory_alloc(options->workers, sizeof *supervisor.slots);
    for (size_t i = 0; i < sweep->run_count; i++)
        if (wanted[i] && !sweep->runs[i].duplicate)
            supervisor.queue[supervisor.queued++] = i;
    supervisor.progress =
        sweep_progress_create(sweep, supervisor.queue, supervisor.queued, options->workers, options->progress, &blocks);
    if (folder_make(options->checkpoint_folder, &supervisor.failure) &&
        folder_make(options->log_folder, &supervisor.failure))
        supervisor_loop(&supervisor);
    else
        supervisor.failed = true;
    progress_free(supervisor.progress);
    memory_free(blocks);
    memory_free(supervisor.slots);
    memory_free(supervisor.leftovers);
    memory_free(supervisor.queue);
    if (supervisor.failed)
        return error_set(err, "%s", supervisor.failure.text);
    return true;
}
