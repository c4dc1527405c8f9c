/* Signals through a signalfd. */
#include "runner/signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static sigset_t mask_before;
static struct sigaction pipe_before, limit_before;

/* A background job of a script starts with SIGINT ignored: whoever sends it one all the same wants it to stop, so only
 * SIGHUP, which nohup ignores for good reason, is left alone. */
static void wanted_fill(sigset_t *wanted)
{
    struct sigaction hangup;
    sigemptyset(wanted);
    sigaddset(wanted, SIGCHLD);
    sigaddset(wanted, SIGINT);
    sigaddset(wanted, SIGTERM);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        sigaddset(wanted, SIGHUP);
}

int signals_open(struct error *err)
{
    sigset_t wanted;
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    wanted_fill(&wanted);
    int fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) {
        error_set(err, "cannot receive signals: %s", strerror(errno));
        return -1;
    }
    sigprocmask(SIG_BLOCK, &wanted, &mask_before);
    sigaction(SIGPIPE, &ignore, &pipe_before);
    sigaction(SIGXFSZ, &ignore, &limit_before);
    return fd;
}

int signals_next(int fd)
{
    struct signalfd_siginfo info;
    ssize_t got = read(fd, &info, sizeof info);
    return got == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}

void signals_close(int fd)
{
    close(fd);
    sigaction(SIGPIPE, &pipe_before, NULL);
    sigaction(SIGXFSZ, &limit_before, NULL);
    sigprocmask(SIG_SETMASK, &mask_before, NULL);
}

const char *signal_name(int number)
{
    const char *name = sigdescr_np(number);
    return name ? name : "unknown signal";
}
