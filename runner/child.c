/* Runs a helper program to its end. */
#include "runner/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/clock.h"
#include "runner/environment.h"
#include "runner/lockfile.h"
#include "runner/signals.h"

/* Takes what is there now. False at the end of the pipe. */
static bool output_read(int pipe_end, struct child_output *out)
{
    char bytes[4096];
    for (;;) {
        ssize_t got = read(pipe_end, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 && errno == EAGAIN;
        size_t room = out->size - 1 - out->used;
        size_t taken = (size_t)got < room ? (size_t)got : room;
        memcpy(out->text + out->used, bytes, taken);
        out->used += taken;
        out->text[out->used] = 0;
    }
}

/* Waits for the child's end, killing it at the deadline. A grandchild may keep the pipe open for ever, so the child's
 * own end decides, not the pipe's. */
static enum child_result child_wait(pid_t child, int pipe_end, double timeout, struct child_output *out, int *status)
{
    double deadline = seconds_now() + timeout;
    bool open = true;
    for (;;) {
        lockfile_renew_all();
        pid_t ended = waitpid(child, status, WNOHANG);
        if (ended < 0 && errno != EINTR)
            *status = 0; /* somebody else waits for all children; the output's own check decides */
        if (ended == child || (ended < 0 && errno != EINTR)) {
            output_read(pipe_end, out);
            return CHILD_ENDED;
        }
        if (seconds_now() >= deadline) {
            kill(child, SIGKILL);
            while (waitpid(child, status, 0) < 0 && errno == EINTR) {
            }
            output_read(pipe_end, out);
            return CHILD_HUNG;
        }
        struct pollfd wait = {.fd = open ? pipe_end : -1, .events = POLLIN};
        poll(&wait, 1, open ? 20 : 5);
        if (open && wait.revents)
            open = output_read(pipe_end, out);
    }
}

static int child_start(pid_t *child, int pipe_write, const char *folder, char *const argv[])
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    /* One that is left out would be the child's reading or writing of what is ours. */
    int failure = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!failure)
        failure = posix_spawn_file_actions_adddup2(&actions, pipe_write, STDOUT_FILENO);
    if (!failure)
        failure = posix_spawn_file_actions_adddup2(&actions, pipe_write, STDERR_FILENO);
    if (!failure && folder)
        failure = posix_spawn_file_actions_addchdir_np(&actions, folder);
    /* programs read and write numbers with the locale's decimal sign otherwise */
    static char locale[] = "LC_ALL=C";
    char **environment = environment_with((char *[]){locale, NULL});
    if (!failure)
        failure = posix_spawnp(child, argv[0], &actions, &attributes, argv, environment);
    memory_free(environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failure;
}

enum child_result child_run(const char *folder, char *const argv[], double timeout, struct child_output *out,
                            int *status, struct error *err)
{
    int ends[2];
    *status = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        error_set(err, "%s: no pipe: %s", argv[0], strerror(errno));
        return CHILD_NOT_STARTED;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pid_t child = 0;
    int failure = child_start(&child, ends[1], folder, argv);
    close(ends[1]);
    enum child_result result = CHILD_NOT_STARTED;
    if (failure)
        error_set(err, failure == ENOENT ? "%s is not on PATH" : "%s could not be started: %s", argv[0],
                  strerror(failure));
    else {
        signals_helper(child);
        result = child_wait(child, ends[0], timeout, out, status);
        signals_helper(0);
    }
    if (result == CHILD_HUNG)
        error_set(err, "%s did not end within %g s and was killed", argv[0], timeout);
    close(ends[0]);
    return result;
}
