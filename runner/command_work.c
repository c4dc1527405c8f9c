/* `runner work`: one run in a process of its own; what `runner run` starts. */
#include "runner/command.h"
#include "runner/worker.h"

static int work(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    (void)arguments;
    return worker_main();
}

const struct command command_work = {
    .name = "work",
    .arguments = "",
    .summary = "Train one run: the job comes as JSON on standard input, records go to standard output.",
    .help = "Started by `runner run`, one process a run; not meant to be typed.\n\nExample:\n  runner work < job.json",
    .hidden = true,
    .run = work,
};
