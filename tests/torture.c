/* kill -9 at random moments: of `runner run`, of one of its workers, of both at once, over small sweeps with dropout
 * and evaluations and a checkpoint at every step, until each sweep is whole: one sweep in fp32, the next in bf16x3, the
 * next in bf16. What is in its database then must be what an uninterrupted sweep has, bit for bit.
 *
 *   torture RUNNER KILLS [SEED]
 *
 * Prints the seed, the counts, and "N passed, N failed". */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/random.h"

enum { RUNS = 4, STEPS = 40, ROWS_MOST = 4096, PATH_SIZE = 512, SWEEP_KILLS = 7, PRECISIONS = 3 };

static const char experiment[] = "name: torture\n"
                                 "data: {corpus: text.txt, tokenizer: {kind: byte}}\n"
                                 "model: {d_model: 16, n_heads: 2, n_layers: 1, context_length: 16, dropout: 0.5}\n"
                                 "training: {steps: 40, batch_size: 2, warmup_steps: 2}\n"
                                 "evaluation: {interval: 5, blocks: 4, final_blocks: 8}\n"
                                 "seeds: [1, 2]\n"
                                 "sweep: {method: ablation, parameters: {model.norm: [rmsnorm]}}\n";

static const char *const settings[PRECISIONS] = {"training.precision=fp32", "training.precision=bf16x3",
                                                 "training.precision=bf16"};

struct row {
    char name[128]; /* variant/seed/step/split/metric */
    double value;
};

struct curves {
    struct row rows[ROWS_MOST];
    size_t count;
};

enum victim { VICTIM_PARENT, VICTIM_WORKER, VICTIM_BOTH, VICTIMS };

enum check { CHECK_CURVES, CHECK_ONCE, CHECK_TWICE, CHECK_INTEGRITY, CHECK_KEYS, CHECK_WEIGHTS, CHECK_EXIT, CHECKS };
static const char *const check_names[CHECKS] = {
    "curves equal the uninterrupted ones, as hexadecimal floats",
    "every (run, step, split, metric) once, no hole",
    "no run trained twice to the end",
    "pragma integrity_check",
    "pragma foreign_key_check",
    "final weights byte-equal",
    "every command ended with 0, 1, 3 or our signal",
};

static char folder[PATH_SIZE];
static const char *runner;
static struct random_stream stream;
static uint64_t drawn;
static size_t failures[CHECKS], kills[VICTIMS], missed, commands, sweeps, compared, resumes;
static struct curves whole[PRECISIONS];

__attribute__((format(printf, 2, 3))) static void fail(enum check check, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    failures[check]++;
    printf("FAIL %s: ", check_names[check]);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
}

_Noreturn static void give_up(const char *what)
{
    printf("torture: %s: %s\n0 passed, 1 failed\n", what, strerror(errno));
    exit(1);
}

static const char *inside(const char *name)
{
    static char paths[8][2 * PATH_SIZE];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void file_put(const char *name, const char *text)
{
    FILE *file = fopen(inside(name), "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        give_up("cannot write a file");
}

static void files_make(void)
{
    static char text[16384];
    size_t used = 0;
    for (int i = 0; i < 200; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "line %d of a small text with a few words\n", i);
    file_put("text.txt", text);
    file_put("torture.yaml", experiment);
}

static pid_t command_start(const char *database, size_t precision, const char *errors)
{
    const char *const argv[] = {
        "runner", "run",     "torture.yaml", "--no-plots", "--checkpoint-every", "1",    "--workers",
        "2",      "--retry", "failed",       "--set",      settings[precision],  "--db", database,
        NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, folder);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    errno = posix_spawn(&pid, runner, &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    if (errno)
        give_up("cannot start runner");
    posix_spawn_file_actions_destroy(&actions);
    commands++;
    return pid;
}

/* True when it ended by itself before the moment. */
static bool ended_before(pid_t pid, double moment, int *status)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        give_up("pidfd_open");
    for (double left; (left = moment - seconds_now()) > 0;) {
        struct pollfd event = {.fd = fd, .events = POLLIN};
        struct timespec wait = {.tv_sec = (time_t)left, .tv_nsec = (long)(1e9 * fmod(left, 1))};
        if (ppoll(&event, 1, &wait, NULL) > 0)
            break;
    }
    close(fd);
    return waitpid(pid, status, WNOHANG) == pid;
}

/* One of its workers; 0 when there is none just now. */
static pid_t worker_pick(pid_t parent)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)parent, (long)parent);
    FILE *file = fopen(path, "r");
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    pid_t pids[8];
    uint64_t count = 0;
    if (file)
        fclose(file);
    text[size] = 0;
    for (char *next = text, *end; count < 8; next = end) {
        long pid = strtol(next, &end, 10);
        if (end == next)
            break;
        pids[count++] = (pid_t)pid;
    }
    return count ? pids[random_below(&stream, drawn++, count)] : 0;
}

/* Kills; a worker that has just left is waited for to have a successor. False: the command ended by itself. */
static bool victim_kill(pid_t parent, enum victim victim, int *status)
{
    pid_t worker = 0;
    while (victim != VICTIM_PARENT && !(worker = worker_pick(parent))) {
        missed++;
        if (ended_before(parent, seconds_now() + 0.005, status))
            return false;
    }
    if (worker)
        kill(worker, SIGKILL);
    if (victim != VICTIM_WORKER)
        kill(parent, SIGKILL);
    kills[victim]++;
    return true;
}

/* Half of the moments count from the start, half from the first worker. */
static bool ended_before_moment(pid_t pid, double wait, int *status)
{
    bool from_worker = random_below(&stream, drawn++, 2);
    while (from_worker && !worker_pick(pid))
        if (ended_before(pid, seconds_now() + 0.005, status))
            return true;
    return ended_before(pid, seconds_now() + wait, status);
}

static sqlite3 *reader_open(const char *database)
{
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(inside(database), &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK) {
        sqlite3_busy_timeout(db, 10000);
        return db;
    }
    sqlite3_close(db);
    return NULL;
}

static void text_of(sqlite3 *db, const char *sql, char *text, size_t size)
{
    sqlite3_stmt *s = NULL;
    snprintf(text, size, "%s", "(nothing)");
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK || sqlite3_step(s) == SQLITE_ROW)
        snprintf(text, size, "%s", s ? (const char *)sqlite3_column_text(s, 0) : sqlite3_errmsg(db));
    sqlite3_finalize(s);
}

static void curves_read(const char *database, struct curves *curves)
{
    sqlite3 *db = reader_open(database);
    sqlite3_stmt *s = NULL;
    curves->count = 0;
    if (sqlite3_prepare_v2(db,
                           "select variant || '/' || seed || '/' || step || '/' || split || '/' || metric as name, "
                           "value from curves order by name",
                           -1, &s, NULL) != SQLITE_OK)
        give_up(sqlite3_errmsg(db));
    while (sqlite3_step(s) == SQLITE_ROW && curves->count < ROWS_MOST) {
        struct row *row = &curves->rows[curves->count++];
        snprintf(row->name, sizeof row->name, "%s", (const char *)sqlite3_column_text(s, 0));
        row->value = sqlite3_column_double(s, 1);
    }
    sqlite3_finalize(s);
    sqlite3_close(db);
}

/* Names of the runs ("variant, seed N") that the database holds as finished, each between line breaks. */
static void finished_read(const char *database, char *names, size_t size)
{
    sqlite3 *db = access(inside(database), F_OK) == 0 ? reader_open(database) : NULL;
    char text[1024] = "";
    if (db)
        text_of(db,
                "select coalesce(group_concat(variant || ', seed ' || seed, char(10)), '') from runs where state = "
                "'finished'",
                text, sizeof text);
    snprintf(names, size, "\n%s\n", text);
    sqlite3_close(db);
}

/* What a command said of each run: none that was finished may be begun again. ends: how often each was told finished
 * by a process that had not begun at its last step. */
static void told_check(const char *errors, const char *finished, int ends[RUNS])
{
    static const char *const runs[RUNS] = {"baseline, seed 1", "baseline, seed 2", "rmsnorm, seed 1",
                                           "rmsnorm, seed 2"};
    bool at_end[RUNS] = {false};
    FILE *file = fopen(errors, "r");
    char line[1024], name[64];
    while (file && fgets(line, sizeof line, file))
        for (size_t i = 0; i < RUNS; i++) {
            const char *said = strstr(line, runs[i]);
            if (!said)
                continue;
            said += strlen(runs[i]);
            snprintf(name, sizeof name, "\n%s\n", runs[i]);
            bool started = strncmp(said, ": started", 9) == 0, resumed = strncmp(said, ": resumed", 9) == 0;
            resumes += resumed;
            if ((started || resumed) && strstr(finished, name))
                fail(CHECK_TWICE, "%s was finished and begun again", runs[i]);
            if (started || resumed)
                at_end[i] = resumed && strtol(said + strlen(": resumed at step "), NULL, 10) == STEPS;
            if (strncmp(said, ": finished", 10) == 0 && !at_end[i] && ++ends[i] > 1)
                fail(CHECK_TWICE, "%s was trained %d times to its end", runs[i], ends[i]);
        }
    if (file)
        fclose(file);
}

static void curves_compare(const struct curves *part, const struct curves *uninterrupted)
{
    if (part->count != uninterrupted->count)
        fail(CHECK_ONCE, "%zu rows, expected %zu", part->count, uninterrupted->count);
    for (size_t i = 0; i < part->count && i < uninterrupted->count; i++) {
        const struct row *got = &part->rows[i], *want = &uninterrupted->rows[i];
        if (strcmp(got->name, want->name) != 0) {
            fail(CHECK_ONCE, "row %zu is %s, expected %s", i, got->name, want->name);
            return;
        }
        if (memcmp(&got->value, &want->value, sizeof got->value) != 0)
            fail(CHECK_CURVES, "%s is %a, expected %a", got->name, got->value, want->value);
        compared++;
    }
}

static void file_compare(const char *first, const char *second)
{
    FILE *a = fopen(first, "r"), *b = fopen(second, "r");
    int x = 0, y = 0;
    while (a && b && x == y && x != EOF) {
        x = fgetc(a);
        y = fgetc(b);
    }
    if (!a || !b || x != y)
        fail(CHECK_WEIGHTS, "%s differs from %s", second, first);
    if (a)
        fclose(a);
    if (b)
        fclose(b);
}

static void weights_compare(const char *name, const char *uninterrupted)
{
    char database[64];
    snprintf(database, sizeof database, "%s/results.db", uninterrupted);
    sqlite3 *db = reader_open(database);
    sqlite3_stmt *s = NULL;
    sqlite3_prepare_v2(db, "select run_key from runs", -1, &s, NULL);
    while (sqlite3_step(s) == SQLITE_ROW) {
        char first[160], second[160];
        const char *key = (const char *)sqlite3_column_text(s, 0);
        snprintf(first, sizeof first, "%s/checkpoints/%s/final.safetensors", uninterrupted, key);
        snprintf(second, sizeof second, "%s/checkpoints/%s/final.safetensors", name, key);
        file_compare(inside(first), inside(second));
    }
    sqlite3_finalize(s);
    sqlite3_close(db);
}

static void database_check(const char *database, const struct curves *uninterrupted)
{
    char text[512];
    static struct curves part;
    sqlite3 *db = reader_open(database);
    text_of(db, "pragma integrity_check", text, sizeof text);
    if (strcmp(text, "ok") != 0)
        fail(CHECK_INTEGRITY, "%s", text);
    text_of(db, "pragma foreign_key_check", text, sizeof text);
    if (strcmp(text, "(nothing)") != 0)
        fail(CHECK_KEYS, "a row of table %s points nowhere", text);
    text_of(db,
            "select count(*) - count(distinct variant || '/' || seed || '/' || split || '/' || metric || '/' || step) "
            "from curves",
            text, sizeof text);
    if (strcmp(text, "0") != 0)
        fail(CHECK_ONCE, "%s rows more than once", text);
    sqlite3_close(db);
    curves_read(database, &part);
    curves_compare(&part, uninterrupted);
}

/* Interrupted until it is whole, or a last time not any more. seconds: within which to kill: less after a command that
 * was faster, more after one that was not. */
static void sweep_torture(const char *name, size_t wanted, double *seconds)
{
    char database[64], uninterrupted[32], finished[1100];
    int ends[RUNS] = {0}, status = 0;
    size_t precision = sweeps % PRECISIONS;
    snprintf(database, sizeof database, "%s/results.db", name);
    snprintf(uninterrupted, sizeof uninterrupted, "whole-%zu", precision);
    size_t begin = kills[0] + kills[1] + kills[2];
    for (;;) {
        size_t done = kills[0] + kills[1] + kills[2];
        bool last = done >= wanted || done - begin >= SWEEP_KILLS;
        enum victim victim = (enum victim)random_below(&stream, drawn++, VICTIMS);
        double wait = *seconds * random_uniform(&stream, drawn++);
        finished_read(database, finished, sizeof finished);
        double started = seconds_now();
        pid_t pid = command_start(database, precision, inside("errors"));
        bool ended = !last && (ended_before_moment(pid, wait, &status) || !victim_kill(pid, victim, &status));
        if (!last)
            *seconds = ended ? fmin(0.6 * *seconds, 0.5 * (seconds_now() - started)) : 1.1 * *seconds;
        if (!ended)
            waitpid(pid, &status, 0);
        told_check(inside("errors"), finished, ends);
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        if (code == 0)
            break;
        if (WIFSIGNALED(status) ? WTERMSIG(status) != SIGKILL : code != 1 && code != 3)
            fail(CHECK_EXIT, "exit code %d, signal %d", code, WTERMSIG(status));
    }
    sweeps++;
    database_check(database, &whole[precision]);
    weights_compare(name, uninterrupted);
}

/* Seconds that one took. */
static double uninterrupted_run(size_t precision)
{
    char database[64];
    int status;
    double begin = seconds_now();
    snprintf(database, sizeof database, "whole-%zu/results.db", precision);
    if (waitpid(command_start(database, precision, inside("errors")), &status, 0) < 0 || status != 0)
        give_up("an uninterrupted sweep failed");
    double seconds = seconds_now() - begin;
    curves_read(database, &whole[precision]);
    return seconds;
}

static int entry_remove(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

int main(int count, char **arguments)
{
    char name[32];
    size_t wanted = count > 2 ? strtoull(arguments[2], NULL, 10) : 0, failed = 0;
    int64_t seed = count > 3 ? strtoll(arguments[3], NULL, 10) : (int64_t)time(NULL);
    if (count < 3 || !(runner = realpath(arguments[1], NULL)) || !wanted) {
        fprintf(stderr, "usage: torture RUNNER KILLS [SEED]\n");
        return 2;
    }
    snprintf(folder, sizeof folder, "%s/runner-torture-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(folder))
        give_up("cannot make a folder");
    stream = random_stream_make(seed, "torture");
    files_make();
    printf("torture: %zu kills, seed %" PRId64 "\n", wanted, seed);
    double seconds = 0;
    for (size_t i = 0; i < PRECISIONS; i++)
        seconds = 0.3 * uninterrupted_run(i);
    while (kills[0] + kills[1] + kills[2] < wanted) {
        snprintf(name, sizeof name, "part-%zu", sweeps);
        sweep_torture(name, wanted, &seconds);
    }
    printf(
        "%zu kills: %zu of runner, %zu of a worker, %zu of both; %zu times without a worker just then\n"
        "%zu sweeps of %d runs, %zu commands, %zu resumed from a checkpoint, %zu rows compared with %zu of a sweep\n",
        kills[0] + kills[1] + kills[2], kills[VICTIM_PARENT], kills[VICTIM_WORKER], kills[VICTIM_BOTH], missed, sweeps,
        RUNS, commands, resumes, compared, whole[0].count);
    for (size_t i = 0; i < CHECKS; i++) {
        printf("%s: %zu failures\n", check_names[i], failures[i]);
        failed += failures[i] > 0;
    }
    nftw(folder, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
    free((void *)(uintptr_t)runner);
    printf("%zu passed, %zu failed\n", CHECKS - failed, failed);
    return failed > 0;
}
