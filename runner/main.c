/* The program `runner`: makes the processor ready, finds the command, parses its arguments, runs it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/bf16.h"
#include "core/cpu.h"
#include "core/memory.h"
#include "runner/command.h"
#include "runner/help.h"
#include "runner/options.h"

static const char exec_guard[] = "RUNNER_BLAS_CHOSEN";

static void memory_report(size_t size)
{
    fprintf(stderr, "runner: out of memory (%zu bytes asked for)\n", size);
}

/* OpenBLAS chooses its kernels while it is loaded, by processor models it knows, and takes far slower ones for those it
 * does not know. The only way to choose is OPENBLAS_CORETYPE before loading: set it and become this program again. */
static void blas_choose(char *const *argv)
{
    const char *wanted = blas_core_wanted(cpu_level());
    if (getenv(exec_guard)) {
        prctl(PR_SET_NAME, "runner"); /* the kernel named the process after /proc/self/exe */
        return;
    }
    if (!wanted || getenv("OPENBLAS_CORETYPE"))
        return;
    bool set = !setenv("OPENBLAS_CORETYPE", wanted, 1) && !setenv("OPENBLAS_NUM_THREADS", "1", 1) &&
               !setenv(exec_guard, "1", 1);
    if (set)
        execv("/proc/self/exe", argv);
    message("runner: cannot restart with OPENBLAS_CORETYPE=%s (%s): matrix products will be slower", wanted,
            strerror(errno));
}

/* RUNNER_BF16: where bf16 products are made, for tests and for comparing the two. */
static void bf16_choose(void)
{
    struct error err;
    const char *path = getenv("RUNNER_BF16");
    if (!path || !*path)
        return;
    bool hardware = !strcmp(path, "hardware");
    if (!hardware && strcmp(path, "software") != 0)
        die(EXIT_USAGE, "RUNNER_BF16 is '%.40s': expected hardware or software", path);
    if (!bf16_select(hardware ? BF16_HARDWARE : BF16_SOFTWARE, &err))
        die(EXIT_USAGE, "RUNNER_BF16: %s", err.text);
}

static void processor_prepare(char *const *argv)
{
    struct error err;
    const char *level = getenv("RUNNER_CPU");
    if (level && *level && !cpu_select(level, &err))
        die(EXIT_USAGE, "RUNNER_CPU: %s", err.text);
    setenv("OMP_NUM_THREADS", "1", 1); /* of oneDNN, which is loaded later */
    blas_choose(argv);
    bf16_choose();
    blas_use_one_thread();
}

static int command_run(const struct command *command, int count, char *const *argv)
{
    struct arguments arguments;
    struct error err;
    bool help;
    int code = EXIT_USAGE;
    if (!arguments_parse(command, count, argv, &arguments, &help, &err)) {
        message("runner %s", err.text);
    } else if (help) {
        help_command(command, stdout);
        code = EXIT_DONE;
    } else {
        code = command->run(command, &arguments);
    }
    arguments_release(&arguments);
    return code;
}

static const struct command *command_named(const char *name)
{
    if (!strcmp(name, "--help") || !strcmp(name, "-h"))
        name = "help";
    if (!strcmp(name, "--version"))
        name = "version";
    const struct command *command = command_find(name);
    const char *nearest = command ? NULL : command_nearest(name);
    if (nearest)
        die(EXIT_USAGE, "unknown command '%s', did you mean '%s'?", name, nearest);
    if (!command)
        die(EXIT_USAGE, "unknown command '%s' ('runner help' lists them)", name);
    return command;
}

int main(int argc, char **argv)
{
    memory_on_failure(memory_report);
    signal(SIGXFSZ, SIG_IGN); /* a file limit is an error of write(), not a death without a word */
    if (argc < 2) {
        help_overview(stderr);
        return EXIT_USAGE;
    }
    processor_prepare(argv);
    int code = command_run(command_named(argv[1]), argc - 2, argv + 2);
    if (fflush(stdout) || ferror(stdout)) {
        message("runner: cannot write to standard output: %s", strerror(errno));
        return code == EXIT_DONE ? EXIT_ENVIRONMENT : code;
    }
    return code;
}
