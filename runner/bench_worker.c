/* A worker started as the supervisor starts it, and watched. */
#include "runner/bench_worker.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/clock.h"
#include "runner/record.h"
#include "runner/signals.h"
#include "runner/spawn.h"
#include "runner/worker.h"

enum { LOOK_MILLISECONDS = 5 };
static const char checkpoints[] = "bench-checkpoints", log_name[] = "worker.log";

static bool job_make(const struct bench_lab *lab, const struct dataset *dataset, const struct config *config,
                     struct job *job, struct error *err)
{
    char *folder = bench_lab_path(lab, checkpoints);
    bool fits = strlen(folder) < sizeof job->checkpoint_folder && strlen(dataset->path) < sizeof job->dataset_path;
    memset(job, 0, sizeof *job);
    memset(job->key, 'b', sizeof job->key - 1);
    job->config = *config;
    job->seed = 1;
    if (fits) {
        memcpy(job->checkpoint_folder, folder, strlen(folder));
        memcpy(job->dataset_path, dataset->path, strlen(dataset->path));
    }
    memory_free(folder);
    return fits || error_set(err, "the temporary folder's path is too long");
}

/* The token file among the mappings, "r--s". */
static bool maps_shared(pid_t pid, const char *path)
{
    char name[64], line[4600];
    bool found = false;
    snprintf(name, sizeof name, "/proc/%ld/maps", (long)pid);
    FILE *maps = fopen(name, "r");
    while (maps && !found && fgets(line, sizeof line, maps))
        found = strstr(line, path) && strstr(line, " r--s ");
    if (maps)
        fclose(maps);
    return found;
}

/* What is learned from its records, and from looking at it while they come. */
struct watch {
    const char *dataset_path;
    double began;
    bool first_seen, finished;
};

static void record_watch(struct watch *watch, const struct record *record, pid_t pid, struct bench_worker *worker)
{
    if (record->kind == RECORD_START)
        worker->shared = maps_shared(pid, watch->dataset_path);
    if (record->kind == RECORD_STEP && !watch->first_seen) {
        worker->start = seconds_now() - watch->began - record->steps->seconds;
        watch->first_seen = true;
    }
    watch->finished |= record->kind == RECORD_FINISHED;
}

static void process_watch(const struct process *process, struct watch *watch, struct bench_worker *worker)
{
    struct record_reader reader = {.bytes = NULL};
    struct record record;
    struct error err;
    ssize_t got;
    for (;;) {
        struct pollfd wait = {.fd = process->out, .events = POLLIN};
        poll(&wait, 1, LOOK_MILLISECONDS);
        int64_t peak = process_peak_memory(process->pid);
        worker->peak_memory = peak > worker->peak_memory ? peak : worker->peak_memory;
        got = record_reader_fill(&reader, process->out);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            break;
        while (got > 0 && record_next(&reader, &record, &err) == RECORD_READY)
            record_watch(watch, &record, process->pid, worker);
    }
    record_reader_release(&reader);
}

bool bench_worker_run(const struct bench_lab *lab, const struct dataset *dataset, const struct config *config,
                      struct bench_worker *worker, struct error *err)
{
    static const char *const command[] = {"/proc/self/exe", "work", NULL};
    struct job job;
    struct process process;
    int64_t log_begin;
    *worker = (struct bench_worker){.start = NAN};
    if (!job_make(lab, dataset, config, &job, err))
        return false;
    char *text = job_json(&job), *log = bench_lab_path(lab, log_name);
    struct watch watch = {.dataset_path = dataset->path, .began = seconds_now()};
    bool good = process_start(&process, command, text, log, &log_begin, err);
    if (good) {
        struct bench_end end;
        signals_helper(process.pid);
        process_watch(&process, &watch, worker);
        close(process.out);
        good = bench_child_wait(process.pid, 0, &end, err);
        signals_helper(0);
        if (good && !watch.finished)
            good = error_set(err, "a worker did not finish: see 'runner doctor'");
    }
    bench_lab_remove(lab, checkpoints);
    memory_free(text);
    memory_free(log);
    return good;
}
