/* Slurm's commands, run with patience and without trust in what they answer. */
#include "runner/slurm.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/child.h"
#include "runner/lockfile.h"
#include "runner/task_claim.h"

enum { ATTEMPTS = 3, LOOKS = 2, CALL_SECONDS_MOST = 120, OUTPUT_SMALL = 1 << 16, LINE_ROOM = 400 };
static const char line_mark[] = "runner|";

double slurm_patience(void)
{
    const char *text = getenv("RUNNER_SLURM_SECONDS");
    double seconds = text ? strtod(text, NULL) : 10;
    return isfinite(seconds) && seconds > 0 && seconds < 1000 ? seconds : 10;
}

/* ---- calls ---- */

struct call {
    struct child_output out;
    bool ok; /* exit code 0 */
};

static void call_release(struct call *call)
{
    memory_free(call->out.text);
    *call = (struct call){.ok = false};
}

/* The first line that says something, for a message. */
static const char *first_line(const struct call *call, char line[300])
{
    const char *text = call->out.text + strspn(call->out.text, " \t\r\n");
    snprintf(line, 300, "%.*s", (int)strcspn(text, "\r\n"), text);
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    return *line ? line : "nothing";
}

/* False with err when it did not run, hung or failed. *final: trying again is of no use. */
static bool call_make(char *const argv[], size_t room, struct call *call, bool *final, struct error *err)
{
    char line[300];
    int status;
    *call = (struct call){.out = {.text = memory_alloc(room, 1), .size = room}};
    *final = false;
    enum child_result result =
        child_run(NULL, argv, fmin(6 * slurm_patience(), CALL_SECONDS_MOST), &call->out, &status, err);
    if (result == CHILD_NOT_STARTED) {
        *final = true;
        return error_wrap(err, "Slurm's commands are needed for --launcher slurm");
    }
    if (result == CHILD_HUNG)
        return false;
    call->ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return call->ok || error_set(err, "%s failed: %s", argv[0], first_line(call, line));
}

/* What a busy or restarting controller says; anything else is its judgement of what it was asked. */
static bool is_passing(const struct call *call)
{
    static const char *const texts[] = {"timed out",      "Unable to contact",  "temporarily", "Connection",
                                        "Zero Bytes",     "Communication",      "try again",   "Transport endpoint",
                                        "not responding", "Unexpected message", "busy",        "rate limit"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcasestr(call->out.text, texts[i]))
            return true;
    return !call->out.used;
}

/* ---- looking ---- */

/* "runner|NAME|JOB|INDEX|STATE|REASON". */
static bool line_parse(char *line, struct slurm_task *task)
{
    char *fields[5], *rest = line + sizeof line_mark - 1, *end;
    for (size_t i = 0; i < 5; i++)
        if (!(fields[i] = strsep(&rest, "|")))
            return false;
    *task = (struct slurm_task){.index = strtoll(fields[2], &end, 10)};
    bool whole = *fields[2] && !*end;
    if (!whole) /* "N/A": not an array */
        task->index = -1;
    snprintf(task->name, sizeof task->name, "%s", fields[0]);
    snprintf(task->job, sizeof task->job, "%s", fields[1]);
    snprintf(task->state, sizeof task->state, "%s", fields[3]);
    snprintf(task->reason, sizeof task->reason, "%s", fields[4]);
    return fields[1][0] && fields[1][strspn(fields[1], "0123456789")] == 0 && *fields[3];
}

static bool queue_parse(struct call *call, struct slurm_queue *queue, struct error *err)
{
    size_t room = 0;
    char *rest = call->out.text;
    if (call->out.used + 1 >= call->out.size)
        return error_set(err, "squeue answered more than %zu bytes", call->out.size);
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (!line[strspn(line, " \t\r")] || strncmp(line, "squeue: ", 8) == 0)
            continue;
        if (queue->count == room) {
            queue->tasks = memory_grow(queue->tasks, room * sizeof *queue->tasks, 2 * room + 16, sizeof *queue->tasks);
            room = 2 * room + 16;
        }
        if (strncmp(line, line_mark, sizeof line_mark - 1) != 0 || !line_parse(line, &queue->tasks[queue->count]))
            return error_set(err, "squeue answered '%.100s', which is no line of its queue", line);
        queue->count++;
    }
    return true;
}

static char *names_join(const char *option, const char *const *names, size_t count)
{
    size_t size = strlen(option) + 1, used;
    for (size_t i = 0; i < count; i++)
        size += strlen(names[i]) + 1;
    char *text = memory_alloc(size, 1);
    used = (size_t)snprintf(text, size, "%s", option);
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? "," : "", names[i]);
    return text;
}

bool slurm_look(const char *const *names, size_t count, size_t expected, struct slurm_queue *queue, struct error *err)
{
    char squeue[] = "squeue", no_header[] = "--noheader", each[] = "--array", all[] = "--states=all";
    char format[] = "--format=runner|%j|%F|%K|%T|%r";
    char *name = names_join("--name=", names, count);
    char *const argv[] = {squeue, no_header, each, all, format, name, NULL};
    bool ok = false, final = false;
    *queue = (struct slurm_queue){0};
    for (int i = 0; i < ATTEMPTS && !ok && !final; i++) {
        struct call call;
        if (i)
            lockfile_pause(slurm_patience() / 2);
        slurm_queue_release(queue);
        ok = call_make(argv, OUTPUT_SMALL + expected * LINE_ROOM, &call, &final, err) && queue_parse(&call, queue, err);
        call_release(&call);
    }
    memory_free(name);
    if (!ok)
        slurm_queue_release(queue);
    return ok;
}

void slurm_queue_release(struct slurm_queue *queue)
{
    memory_free(queue->tasks);
    *queue = (struct slurm_queue){0};
}

/* ---- submitting ---- */

/* "1234" or "1234;cluster" on a line of its own. */
static bool number_find(const struct call *call, char job[24])
{
    for (const char *line = call->out.text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t digits = strspn(line, "0123456789");
        if (digits && digits < 20 && (line[digits] == ';' || line[digits] == '\n' || !line[digits])) {
            snprintf(job, 24, "%.*s", (int)digits, line);
            return true;
        }
    }
    return false;
}

/* *there: the job is known, as job. */
static bool submitted_find(const char *name, const char *claim, char job[24], bool *there, struct error *err)
{
    struct slurm_queue queue;
    *there = claim_holder(claim, job);
    if (*there)
        return true;
    if (!slurm_look(&name, 1, 100000, &queue, err))
        return false;
    for (size_t i = 0; i < queue.count && !*there; i++)
        if (strcmp(queue.tasks[i].name, name) == 0) {
            memcpy(job, queue.tasks[i].job, sizeof queue.tasks[i].job);
            *there = true;
        }
    slurm_queue_release(&queue);
    return true;
}

bool slurm_submit(const char *name, const char *script, const char *after, const char *claim, char job[24],
                  void (*note)(const char *text), struct error *err)
{
    char sbatch[] = "sbatch", parsable[] = "--parsable", *path = memory_copy_text(script), line[300], dependency[64];
    char *const argv[] = {sbatch, parsable, after ? dependency : path, after ? path : NULL, NULL};
    snprintf(dependency, sizeof dependency, "--dependency=afterany:%s", after ? after : "");
    bool there = false, final = false, ok = submitted_find(name, claim, job, &there, err);
    struct error last = {""};
    for (int i = 0; ok && !there && !final && i < ATTEMPTS; i++) {
        struct call call;
        if (i)
            note(last.text);
        bool answered = call_make(argv, OUTPUT_SMALL, &call, &final, &last);
        there = answered && number_find(&call, job);
        if (answered && !there)
            error_set(&last, "sbatch answered '%s', which is no job's number", first_line(&call, line));
        final = final || (!answered && call.out.used && !is_passing(&call));
        call_release(&call);
        /* It may be in the queue all the same, and a busy controller may show it late. */
        for (int look = 0; ok && !there && !final && look < LOOKS; look++) {
            lockfile_pause(slurm_patience() / 2);
            ok = submitted_find(name, claim, job, &there, err);
        }
    }
    memory_free(path);
    if (ok && !there)
        ok = error_set(err, "%s%s", last.text, final ? "" : "; it is not in the queue after several attempts");
    return ok || error_wrap(err, "job '%s'", name);
}

/* ---- the rest ---- */

bool slurm_cancel(const char *const *names, size_t count, struct error *err)
{
    char scancel[] = "scancel", name_option[] = "--name";
    bool all = true;
    for (size_t n = 0; n < count && all; n++) {
        char *name = memory_copy_text(names[n]);
        char *const argv[] = {scancel, name_option, name, NULL};
        bool ok = false, final = false;
        for (int i = 0; i < ATTEMPTS && !ok && !final; i++) {
            struct call call;
            if (i)
                lockfile_pause(slurm_patience() / 2);
            ok = call_make(argv, OUTPUT_SMALL, &call, &final, err);
            final = final || !is_passing(&call);
            call_release(&call);
        }
        memory_free(name);
        all = ok;
    }
    return all;
}

bool slurm_array_limit(size_t *limit, struct error *err)
{
    char scontrol[] = "scontrol", show[] = "show", config[] = "config";
    char *const argv[] = {scontrol, show, config, NULL};
    bool ok = false, final = false;
    for (int i = 0; i < ATTEMPTS && !ok && !final; i++) {
        struct call call;
        if (i)
            lockfile_pause(slurm_patience() / 2);
        ok = call_make(argv, OUTPUT_SMALL, &call, &final, err);
        const char *row = ok ? strstr(call.out.text, "MaxArraySize") : NULL;
        if (row)
            row += strcspn(row, "=\n");
        *limit = row && *row == '=' ? strtoul(row + 1, NULL, 10) : 0;
        if (ok && !*limit)
            ok = error_set(err, "scontrol show config has no MaxArraySize");
        call_release(&call);
    }
    return ok;
}

enum slurm_life slurm_life_of(const char *state)
{
    static const struct {
        const char *word;
        enum slurm_life life;
    } words[] = {
        {"PENDING", SLURM_WAITS},       {"CONFIGURING", SLURM_WAITS},  {"REQUEUED", SLURM_WAITS},
        {"REQUEUE_FED", SLURM_WAITS},   {"REQUEUE_HOLD", SLURM_WAITS}, {"SPECIAL_EXIT", SLURM_WAITS},
        {"RESV_DEL_HOLD", SLURM_WAITS}, {"RUNNING", SLURM_RUNS},       {"COMPLETING", SLURM_RUNS},
        {"SUSPENDED", SLURM_RUNS},      {"RESIZING", SLURM_RUNS},      {"SIGNALING", SLURM_RUNS},
        {"STAGE_OUT", SLURM_RUNS},      {"STOPPED", SLURM_RUNS},       {"COMPLETED", SLURM_OVER},
        {"FAILED", SLURM_OVER},         {"CANCELLED", SLURM_OVER},     {"TIMEOUT", SLURM_OVER},
        {"NODE_FAIL", SLURM_OVER},      {"PREEMPTED", SLURM_OVER},     {"BOOT_FAIL", SLURM_OVER},
        {"OUT_OF_MEMORY", SLURM_OVER},  {"DEADLINE", SLURM_OVER},      {"REVOKED", SLURM_OVER},
    };
    size_t length = strcspn(state, " +");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].word) == length && strncmp(words[i].word, state, length) == 0)
            return words[i].life;
    return SLURM_UNKNOWN;
}
