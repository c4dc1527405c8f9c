/* Workers started as the supervisor starts them, and watched. */
#include "runner/bench_worker.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
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
static const char *const command[] = {"/proc/self/exe", "work", NULL};

/* key: the character that its key is made of. */
static bool job_make(const struct bench_lab *lab, const struct dataset *dataset, const struct config *config, char key,
                     struct job *job, struct error *err)
{
    char *folder = bench_lab_path(lab, checkpoints);
    bool fits = strlen(folder) < sizeof job->checkpoint_folder && strlen(dataset->path) < sizeof job->dataset_path;
    memset(job, 0, sizeof *job);
    memset(job->key, key, sizeof job->key - 1);
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
    struct job job;
    struct process process;
    int64_t log_begin;
    *worker = (struct bench_worker){.start = NAN};
    if (!job_make(lab, dataset, config, 'a', &job, err))
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

/* ---- two of them ---- */

enum { PACE_STEPS = 4, PACE_PATIENCE = 600 };

/* One of the two; steps [from, from + PACE_STEPS) are timed. */
struct paced {
    struct process process;
    struct record_reader reader;
    bool alive, held;
    size_t steps, from;
    double begin, end;
};

static bool paced_start(struct paced *paced, const struct bench_lab *lab, const struct dataset *dataset,
                        const struct config *config, char key, struct error *err)
{
    struct job job;
    int64_t log_begin;
    if (!job_make(lab, dataset, config, key, &job, err))
        return false;
    job.checkpoint_every = config->training.steps;
    char *text = job_json(&job), *log = bench_lab_path(lab, log_name);
    paced->alive = process_start(&paced->process, command, text, log, &log_begin, err);
    memory_free(text);
    memory_free(log);
    return paced->alive;
}

static void paced_end(struct paced *paced)
{
    struct bench_end end;
    struct error err;
    if (!paced->alive)
        return;
    kill(paced->process.pid, SIGKILL);
    bench_child_wait(paced->process.pid, 0, &end, &err);
    close(paced->process.out);
    record_reader_release(&paced->reader);
}

/* When this process dies, a held one goes on, as the system has it for stopped groups that nobody is left to continue,
 * and ends. */
static void paced_hold(struct paced *paced, bool hold)
{
    if (hold != paced->held)
        kill(paced->process.pid, hold ? SIGSTOP : SIGCONT);
    paced->held = hold;
}

/* False when it has no more to say. */
static bool paced_read(struct paced *paced)
{
    struct record record;
    struct error err;
    ssize_t got = record_reader_fill(&paced->reader, paced->process.out);
    while (got > 0 && record_next(&paced->reader, &record, &err) == RECORD_READY) {
        if (record.kind != RECORD_STEP)
            continue;
        paced->steps++;
        if (paced->steps == paced->from)
            paced->begin = seconds_now();
        if (paced->steps == paced->from + PACE_STEPS)
            paced->end = seconds_now();
    }
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

static bool paced_is_timed(const struct paced *paced)
{
    return paced->held || paced->steps >= paced->from + PACE_STEPS;
}

/* Steps a second of those that are not held; the step that each is in now is left out. */
static bool pair_time(struct paced pair[2], double *rate, struct error *err)
{
    double began = seconds_now();
    for (int i = 0; i < 2; i++)
        pair[i].from = pair[i].steps + 1;
    while (!paced_is_timed(&pair[0]) || !paced_is_timed(&pair[1])) {
        struct pollfd wait[2] = {{.fd = pair[0].process.out, .events = POLLIN},
                                 {.fd = pair[1].process.out, .events = POLLIN}};
        poll(wait, 2, 1000);
        for (int i = 0; i < 2; i++)
            if (!paced_read(&pair[i]))
                return error_set(err, "a worker ended while it was timed: see 'runner doctor'");
        if (seconds_now() - began > PACE_PATIENCE)
            return error_set(err, "a worker made no %d steps in %d s", PACE_STEPS, PACE_PATIENCE);
    }
    *rate = 0;
    for (int i = 0; i < 2; i++)
        if (!pair[i].held)
            *rate += PACE_STEPS / (pair[i].end - pair[i].begin);
    return true;
}

bool bench_workers_pace(const struct bench_lab *lab, const struct dataset *dataset, const struct config *config,
                        size_t turns, double *alone, double *both, struct error *err)
{
    struct paced pair[2] = {{.alive = false}};
    double unused; /* first steps touch their memory for the first time */
    bool good = paced_start(&pair[0], lab, dataset, config, 'a', err) &&
                paced_start(&pair[1], lab, dataset, config, 'b', err) && pair_time(pair, &unused, err);
    for (size_t i = 0; good && i <= turns; i++) {
        paced_hold(&pair[i % 2], true);
        good = pair_time(pair, &alone[i], err);
        paced_hold(&pair[i % 2], false);
        good = good && (i == turns || pair_time(pair, &both[i], err));
    }
    paced_end(&pair[0]);
    paced_end(&pair[1]);
    bench_lab_remove(lab, checkpoints);
    return good;
}
