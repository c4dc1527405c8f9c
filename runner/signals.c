/* Signals through a pipe that their handler writes to. */
#include "runner/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const int noted[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
static const int ignored[] = {SIGPIPE, SIGXFSZ};
enum { NOTED = sizeof noted / sizeof *noted, IGNORED = sizeof ignored / sizeof *ignored };

static int write_end = -1;
static struct sigaction noted_before[NOTED], ignored_before[IGNORED];

static const char *volatile leave_text;
static volatile sig_atomic_t leave_length, leave_code, helper;

static void signal_note(int number)
{
    int saved = errno;
    unsigned char byte = (unsigned char)number;
    /* A full pipe holds thousands of signals that nobody has read: one more says nothing new. */
    ssize_t written = write(write_end, &byte, 1);
    (void)written;
    errno = saved;
}

/* A background job of a script starts with SIGINT ignored: whoever sends it one all the same wants it to stop, so only
 * SIGHUP, which nohup ignores for good reason, is left alone. */
static bool left_alone(int number)
{
    struct sigaction action;
    return number == SIGHUP && sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int signals_open(struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        error_set(err, "cannot receive signals: %s", strerror(errno));
        return -1;
    }
    struct sigaction note = {.sa_handler = signal_note, .sa_flags = SA_RESTART}, ignore = {.sa_handler = SIG_IGN};
    write_end = ends[1];
    for (size_t i = 0; i < NOTED; i++)
        sigaction(noted[i], left_alone(noted[i]) ? NULL : &note, &noted_before[i]);
    for (size_t i = 0; i < IGNORED; i++)
        sigaction(ignored[i], &ignore, &ignored_before[i]);
    return ends[0];
}

int signals_next(int fd)
{
    unsigned char byte;
    return read(fd, &byte, 1) == 1 ? byte : 0;
}

void signals_close(int fd)
{
    for (size_t i = 0; i < NOTED; i++)
        sigaction(noted[i], &noted_before[i], NULL);
    for (size_t i = 0; i < IGNORED; i++)
        sigaction(ignored[i], &ignored_before[i], NULL);
    close(fd);
    close(write_end);
    write_end = -1;
}

static void signal_leave(int number)
{
    if (helper)
        kill(helper, SIGKILL);
    ssize_t written = write(STDERR_FILENO, leave_text, (size_t)leave_length);
    (void)written;
    _exit(leave_code ? leave_code : 128 + number);
}

void signals_leave(const char *text, int code)
{
    static const int stopping[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction leave = {.sa_handler = text ? signal_leave : SIG_DFL, .sa_flags = SA_RESTART};
    sigfillset(&leave.sa_mask);
    leave_code = code;
    if (text) {
        leave_text = text;
        leave_length = (sig_atomic_t)strlen(text);
    }
    for (size_t i = 0; i < sizeof stopping / sizeof *stopping; i++)
        if (!left_alone(stopping[i]))
            sigaction(stopping[i], &leave, NULL);
}

void signals_helper(pid_t pid)
{
    helper = pid;
}

int signals_late(int fd)
{
    int number;
    do
        number = signals_next(fd);
    while (number == SIGCHLD);
    return number;
}

const char *signal_name(int number)
{
    const char *name = sigdescr_np(number);
    return name ? name : "unknown signal";
}
