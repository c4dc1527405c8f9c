/* runner help: the commands, or one of them. */
#include <stdio.h>

#include "runner/command.h"
#include "runner/help.h"

static int help_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    if (!arguments->positional_count) {
        help_overview(stdout);
        return EXIT_DONE;
    }
    const char *name = arguments->positional[0];
    const struct command *found = command_find(name);
    const char *nearest = found ? NULL : command_nearest(name);
    if (!found && nearest)
        die(EXIT_USAGE, "unknown command '%s', did you mean '%s'?", name, nearest);
    if (!found)
        die(EXIT_USAGE, "unknown command '%s' ('runner help' lists them)", name);
    help_command(found, stdout);
    return EXIT_DONE;
}

extern const struct command command_help;
const struct command command_help = {
    .name = "help",
    .arguments = "[COMMAND]",
    .summary = "Show the commands, or tell about one of them.",
    .help = "Example:\n  runner help run",
    .maximum_arguments = 1,
    .run = help_run,
};
