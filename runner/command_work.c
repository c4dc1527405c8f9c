/* `runner work`: one run in a process of its own; what `runner run` starts, or a batch system. */
#include "runner/command.h"
#include "runner/task.h"
#include "runner/worker.h"

static int work(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    const char *task = option_text(arguments, "task", NULL);
    if (!task)
        return worker_main();
    return task_run(task, (size_t)option_integer(arguments, "index", 0), option_text(arguments, "claim", NULL),
                    option_text(arguments, "token", NULL));
}

static const struct option options[] = {
    {.name = "task",
     .kind = OPTION_TEXT,
     .argument = "LIST",
     .doc = "A task of a batch system: trains one run of the list into a database of its own."},
    {.name = "index",
     .kind = OPTION_INTEGER,
     .argument = "N",
     .doc = "Which one, from 0.",
     .minimum = 0,
     .maximum = 1000000000},
    {.name = "claim", .kind = OPTION_TEXT, .argument = "FILE", .doc = "Says which array has the list's runs."},
    {.name = "token", .kind = OPTION_TEXT, .argument = "TEXT", .doc = "The list's, when the task was submitted."},
    {.name = NULL},
};

const struct command command_work = {
    .name = "work",
    .arguments = "",
    .summary = "Train one run: the job comes as JSON on standard input, records go to standard output.",
    .help = "Started by `runner run`, one process a run; not meant to be typed.\n\nExample:\n  runner work < job.json",
    .options = options,
    .hidden = true,
    .run = work,
};
