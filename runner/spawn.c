/* posix_spawn, never fork: after OpenBLAS has started, a forked child may hang in it. */
#include "runner/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/environment.h"

enum { INPUT_MOST = 60000, PIPE_SIZE = 1 << 20 };

struct plumbing {
    int in[2], out[2], log;
};

static void plumbing_close(struct plumbing *plumbing)
{
    int *const all[] = {&plumbing->in[0], &plumbing->in[1], &plumbing->out[0], &plumbing->out[1], &plumbing->log};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (*all[i] >= 0)
            close(*all[i]);
        *all[i] = -1;
    }
}

static bool plumbing_open(struct plumbing *plumbing, const char *log_path, struct error *err)
{
    *plumbing = (struct plumbing){{-1, -1}, {-1, -1}, -1};
    plumbing->log = open(log_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (plumbing->log < 0)
        return error_set(err, "cannot write the log '%s': %s", log_path, strerror(errno));
    if (pipe2(plumbing->in, O_CLOEXEC) != 0 || pipe2(plumbing->out, O_CLOEXEC) != 0 ||
        fcntl(plumbing->out[0], F_SETFL, O_NONBLOCK) != 0)
        return error_set(err, "cannot make a pipe to a worker: %s", strerror(errno));
    /* Room for a supervisor that is busy; the default is as good where the system allows no more. */
    fcntl(plumbing->out[1], F_SETPIPE_SZ, PIPE_SIZE);
    return true;
}

static int attributes_make(posix_spawnattr_t *attributes)
{
    sigset_t none, defaults;
    sigemptyset(&none);
    sigfillset(&defaults);
    int failed = posix_spawnattr_init(attributes);
    if (failed)
        return failed;
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &defaults);
    posix_spawnattr_setpgroup(attributes, 0);
    return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

static int process_spawn(pid_t *pid, const char *const *command, const struct plumbing *plumbing)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return failed;
    failed = attributes_make(&attributes);
    if (!failed) {
        static char blas[] = "OPENBLAS_NUM_THREADS=1", omp[] = "OMP_NUM_THREADS=1";
        /* oneDNN would fill the log with a line a product. */
        static char quiet[] = "ONEDNN_VERBOSE=0", also_quiet[] = "DNNL_VERBOSE=0";
        char **environment = environment_with((char *[]){blas, omp, quiet, also_quiet, NULL});
        failed = posix_spawn_file_actions_adddup2(&actions, plumbing->in[0], STDIN_FILENO);
        if (!failed)
            failed = posix_spawn_file_actions_adddup2(&actions, plumbing->out[1], STDOUT_FILENO);
        if (!failed)
            failed = posix_spawn_file_actions_adddup2(&actions, plumbing->log, STDERR_FILENO);
        if (!failed) /* posix_spawn's argv is not const, but it changes nothing */
            failed =
                posix_spawn(pid, command[0], &actions, &attributes, (char *const *)(uintptr_t)command, environment);
        memory_free(environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

/* The pipe is empty and holds all of it, so this never waits. A child that is gone already shows in how it ended. */
static void input_write(int fd, const char *input)
{
    size_t size = strlen(input);
    ssize_t done;
    do
        done = write(fd, input, size);
    while (done < 0 && errno == EINTR);
}

bool process_start(struct process *process, const char *const *command, const char *input, const char *log_path,
                   int64_t *log_begin, struct error *err)
{
    struct plumbing plumbing;
    if (input && strlen(input) > INPUT_MOST)
        return error_set(err, "cannot start '%s': its input has more than %d bytes", command[0], INPUT_MOST);
    bool ok = plumbing_open(&plumbing, log_path, err);
    if (ok) {
        *log_begin = lseek(plumbing.log, 0, SEEK_END);
        int failed = process_spawn(&process->pid, command, &plumbing);
        if (failed)
            ok = error_set(err, "cannot start '%s': %s", command[0], strerror(failed));
    }
    if (ok) {
        process->out = plumbing.out[0];
        process->in = input ? -1 : plumbing.in[1];
        plumbing.out[0] = -1;
        if (input)
            input_write(plumbing.in[1], input);
        else
            plumbing.in[1] = -1;
    }
    plumbing_close(&plumbing);
    return ok;
}
