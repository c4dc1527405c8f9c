/* The table of commands, in the order help shows them. */
#include <stddef.h>

#include "runner/command.h"

extern const struct command command_bench;
extern const struct command command_help;
extern const struct command command_match;
extern const struct command command_plot;
extern const struct command command_tokenizer;
extern const struct command command_version;

/* clang-format off */
const struct command *const commands[] = {
    &command_bench,
    &command_match,
    &command_plot,
    &command_tokenizer,
    &command_version,
    &command_help,
    NULL,
};
/* clang-format on */
