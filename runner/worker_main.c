/* The process around a worker: its signals, its job, its processor. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/cpu.h"
#include "core/memory.h"
#include "runner/command.h"
#include "runner/worker.h"

enum { JOB_MOST = 1 << 20 };

static volatile sig_atomic_t stop_wanted;

static void stop_note(int signal_number)
{
    (void)signal_number;
    stop_wanted = 1;
}

/* A supervisor that dies, however, is a request to stop. A reader that is gone and a file limit are errors of write(),
 * not deaths. */
static void signals_prepare(void)
{
    struct sigaction stop = {.sa_handler = stop_note, .sa_flags = SA_RESTART}, ignore = {.sa_handler = SIG_IGN};
    static const int stopping[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < sizeof stopping / sizeof *stopping; i++)
        sigaction(stopping[i], &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/* When memory runs out the kernel shall take a worker, which costs one run, and not its supervisor. */
static void memory_killer_invite(void)
{
    FILE *file = fopen("/proc/self/oom_score_adj", "w");
    if (!file)
        return;
    fputs("500\n", file);
    fclose(file);
}

/* Owner: caller. NULL and err when it cannot be read or is too long to be one. */
static char *job_read(struct error *err)
{
    char *text = memory_alloc(JOB_MOST, 1);
    size_t size = fread(text, 1, JOB_MOST - 1, stdin);
    if (!ferror(stdin) && size && size < JOB_MOST - 1)
        return text;
    error_set(err,
              ferror(stdin) ? "job: cannot read standard input: %s"
                            : "job: expected a JSON document on standard input (`runner run` writes it)",
              strerror(errno));
    memory_free(text);
    return NULL;
}

/* Standard output is for records alone: what a library prints there goes to the log. -1 and err on failure. */
static int records_open(struct error *err)
{
    int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (out >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
        return out;
    error_set(err, "cannot write records to standard output: %s", strerror(errno));
    return -1;
}

int worker_main(void)
{
    struct job job;
    struct error err;
    signals_prepare();
    memory_killer_invite();
    char *text = job_read(&err);
    int out = text && job_from_json(text, &job, &err) ? records_open(&err) : -1;
    memory_free(text);
    if (out < 0) {
        fprintf(stderr, "%s\n", err.text);
        return EXIT_USAGE;
    }
    cpu_flush_denormals();
    blas_use_one_thread();
    return worker_run(&job, out, &stop_wanted);
}
