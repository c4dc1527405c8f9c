/* This program as a child of itself, measured. */
#include "runner/bench_lab.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/clock.h"
#include "runner/file.h"
#include "runner/signals.h"

enum { TAIL_SIZE = 400, LOOK_MILLISECONDS = 10 };

/* In a session of its own, so that a Ctrl-C of the terminal does not reach it, and with nothing of ours but the pipe.
 */
static int remover_spawn(const struct bench_lab *lab, int read_end, pid_t *pid)
{
    static char script[] = "cat; exec rm -rf -- \"$0\"";
    char *const command[] = {(char[]){"sh"}, (char[]){"-c"}, script, lab->folder, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return failed;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    failed = posix_spawn_file_actions_adddup2(&actions, read_end, STDIN_FILENO);
    if (!failed)
        failed = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!failed)
        failed = posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    if (!failed)
        failed = posix_spawnp(pid, command[0], &actions, &attributes, command, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static bool remover_start(struct bench_lab *lab, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_set(err, "cannot make a pipe: %s", strerror(errno));
    int failed = remover_spawn(lab, ends[0], &lab->remover);
    close(ends[0]);
    if (failed) {
        close(ends[1]);
        return error_set(err, "cannot start what removes '%s': sh: %s", lab->folder, strerror(failed));
    }
    fcntl(ends[1], F_SETFD, 0);
    lab->alive = ends[1];
    return true;
}

bool bench_lab_open(struct bench_lab *lab, struct error *err)
{
    lab->folder = folder_temporary("runner-bench", err);
    if (lab->folder && remover_start(lab, err))
        return true;
    if (lab->folder)
        rmdir(lab->folder);
    memory_free(lab->folder);
    lab->folder = NULL;
    return false;
}

static int entry_remove(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

static void tree_remove(const char *path)
{
    enum { DESCRIPTORS = 8 };
    nftw(path, entry_remove, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
}

void bench_lab_close(struct bench_lab *lab)
{
    if (!lab->folder)
        return;
    tree_remove(lab->folder);
    memory_free(lab->folder);
    lab->folder = NULL;
    kill(lab->remover, SIGKILL);
    while (waitpid(lab->remover, NULL, 0) < 0 && errno == EINTR) {
    }
    close(lab->alive);
}

char *bench_lab_path(const struct bench_lab *lab, const char *name)
{
    return path_join(lab->folder, name);
}

bool bench_lab_file(const struct bench_lab *lab, const char *name, const char *text, struct error *err)
{
    char *path = bench_lab_path(lab, name);
    bool good = file_write(path, text, strlen(text), err);
    memory_free(path);
    return good;
}

bool bench_lab_folder(const struct bench_lab *lab, const char *name, struct error *err)
{
    char *path = bench_lab_path(lab, name);
    bool good = folder_make(path, err);
    memory_free(path);
    return good;
}

void bench_lab_remove(const struct bench_lab *lab, const char *name)
{
    char *path = bench_lab_path(lab, name);
    tree_remove(path);
    memory_free(path);
}

/* One number of a file under /proc/PID; `label` NULL: the first there is. 0 when it cannot be read. */
static int64_t proc_number(pid_t pid, const char *file, const char *label)
{
    char path[64], line[256];
    int64_t value = 0;
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, file);
    FILE *stream = fopen(path, "r");
    while (stream && fgets(line, sizeof line, stream)) {
        size_t length = label ? strlen(label) : 0;
        if (label && strncmp(line, label, length) != 0)
            continue;
        value = strtoll(line + length, NULL, 10);
        break;
    }
    if (stream)
        fclose(stream);
    return value;
}

int64_t process_peak_memory(pid_t pid)
{
    return proc_number(pid, "status", "VmHWM:") * 1024;
}

/* Nanoseconds on a processor of the process's first thread: ours have no other. */
static double cpu_of(pid_t pid)
{
    return (double)proc_number(pid, "schedstat", NULL) * 1e-9;
}

/* ---- a terminal for its messages ---- */

struct terminal {
    int ours, theirs;
    char tail[TAIL_SIZE + 1]; /* end of what came */
};

static bool terminal_open(struct terminal *terminal, struct error *err)
{
    *terminal = (struct terminal){.ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), .theirs = -1};
    char name[64];
    if (terminal->ours >= 0 && grantpt(terminal->ours) == 0 && unlockpt(terminal->ours) == 0 &&
        ptsname_r(terminal->ours, name, sizeof name) == 0)
        terminal->theirs = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal->theirs >= 0 && fcntl(terminal->ours, F_SETFL, O_NONBLOCK) == 0)
        return true;
    return error_set(err, "cannot make a terminal: %s", strerror(errno));
}

static void terminal_close(struct terminal *terminal)
{
    if (terminal->ours >= 0)
        close(terminal->ours);
    if (terminal->theirs >= 0)
        close(terminal->theirs);
}

/* Takes what is there, so that the child never waits; keeps the end of it. */
static void terminal_read(struct terminal *terminal)
{
    char bytes[4096];
    ssize_t got;
    while ((got = read(terminal->ours, bytes, sizeof bytes)) > 0) {
        size_t size = (size_t)got, used = strlen(terminal->tail);
        size_t taken = size < TAIL_SIZE ? size : TAIL_SIZE, keep = used + taken > TAIL_SIZE ? TAIL_SIZE - taken : used;
        memmove(terminal->tail, terminal->tail + used - keep, keep);
        memcpy(terminal->tail + keep, bytes + size - taken, taken);
        terminal->tail[keep + taken] = 0;
    }
}

/* ---- the child ---- */

static int child_spawn(pid_t *pid, const char *folder, const char *const *words, const struct terminal *terminal)
{
    posix_spawn_file_actions_t actions;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return failed;
    size_t count = 0;
    while (words[count])
        count++;
    const char **command = memory_alloc(count + 2, sizeof *command);
    command[0] = "/proc/self/exe";
    memcpy(command + 1, words, count * sizeof *command);
    failed = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!failed)
        failed = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!failed)
        failed = posix_spawn_file_actions_adddup2(&actions, terminal->theirs, STDERR_FILENO);
    if (!failed)
        failed = posix_spawn_file_actions_addchdir_np(&actions, folder);
    if (!failed) /* posix_spawn's argv is not const, but it changes nothing */
        failed = posix_spawn(pid, command[0], &actions, NULL, (char *const *)(uintptr_t)command, environ);
    memory_free(command);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static double time_of(const struct timeval *time)
{
    return (double)time->tv_sec + (double)time->tv_usec * 1e-6;
}

bool bench_child_wait(pid_t pid, int options, struct bench_end *end, struct error *err)
{
    struct rusage usage;
    pid_t ended;
    *end = (struct bench_end){.cpu = NAN};
    do
        ended = wait4(pid, &end->status, options, &usage);
    while (ended < 0 && errno == EINTR);
    if (ended < 0)
        return error_set(err, "the system does not tell how a child ended and what it took: %s; is SIGCHLD ignored?",
                         strerror(errno));
    end->ended = ended == pid;
    if (end->ended)
        end->cpu = time_of(&usage.ru_utime) + time_of(&usage.ru_stime);
    return true;
}

/* Its end, looking at it every 10 ms. */
static bool child_watch(pid_t pid, struct terminal *terminal, struct bench_usage *usage, struct bench_end *end,
                        struct error *err)
{
    const double settled = 1;
    double start = seconds_now(), first_at = NAN, first_cpu = 0;
    bool known;
    while ((known = bench_child_wait(pid, WNOHANG, end, err)) && !end->ended) {
        int64_t peak = process_peak_memory(pid);
        usage->peak_memory = peak > usage->peak_memory ? peak : usage->peak_memory;
        double cpu = cpu_of(pid), now = seconds_now();
        if (isnan(first_at) && now - start >= settled) {
            first_at = now;
            first_cpu = cpu;
        } else if (cpu > 0 && now - first_at >= settled) {
            usage->own_share = (cpu - first_cpu) / (now - first_at);
        }
        struct pollfd wait = {.fd = terminal->ours, .events = POLLIN};
        poll(&wait, 1, LOOK_MILLISECONDS);
        terminal_read(terminal);
    }
    usage->wall = seconds_now() - start;
    usage->cpu = end->cpu;
    terminal_read(terminal);
    return known;
}

bool bench_lab_run(const struct bench_lab *lab, const char *const *words, struct bench_usage *usage, struct error *err)
{
    struct terminal terminal;
    pid_t pid;
    *usage = (struct bench_usage){.wall = NAN, .cpu = NAN, .own_share = NAN};
    bool good = terminal_open(&terminal, err);
    int failed = good ? child_spawn(&pid, lab->folder, words, &terminal) : 0;
    if (failed)
        good = error_set(err, "cannot start this program again: %s", strerror(failed));
    if (good) {
        struct bench_end end;
        signals_helper(pid);
        good = child_watch(pid, &terminal, usage, &end, err);
        signals_helper(0);
        if (good && (!WIFEXITED(end.status) || WEXITSTATUS(end.status) != 0))
            good = error_set(err, "'runner %s' failed: %s", words[0], terminal.tail);
    }
    terminal_close(&terminal);
    return good;
}
