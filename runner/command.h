/* The commands and their options, each declared once; help, parsing and nearest-name hints come from the rows.
 *
 * To add a command: (1) one file runner/command_<name>.c with its `const struct command command_<name>`; (2) its row in
 * runner/commands.c. */
#ifndef RUNNER_COMMAND_H
#define RUNNER_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum exit_code { EXIT_DONE = 0, EXIT_RUNS_FAILED = 1, EXIT_USAGE = 2, EXIT_ENVIRONMENT = 3, EXIT_STOPPED = 75 };

enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_INTEGER, OPTION_NUMBER, OPTION_LIST /* may be given again */ };

struct option {
    const char *name; /* "workers" for --workers */
    enum option_kind kind;
    const char *argument; /* "N", shown in help; NULL for flags */
    const char *doc;
    const char *choices;      /* "md|csv|json|latex" or NULL */
    int64_t minimum, maximum; /* integers */
};

struct arguments;

struct command {
    const char *name;
    const char *arguments;        /* "FILE", "[--run RUN] PATH..." */
    const char *summary;          /* one line */
    const char *help;             /* a paragraph or two, ends with an example */
    const struct option *options; /* ends with a row whose name is NULL; --help and, where json, --json are added */
    bool json;
    int minimum_arguments, maximum_arguments; /* -1 = any number */
    bool hidden;
    int (*run)(const struct command *command, const struct arguments *arguments);
};

/* Parsed command line; texts belong to argv. */
struct arguments {
    const char *const *positional;
    size_t positional_count;
    bool json;
    const struct option_value *values; /* private */
};

bool option_flag(const struct arguments *arguments, const char *name);
const char *option_text(const struct arguments *arguments, const char *name, const char *otherwise);
int64_t option_integer(const struct arguments *arguments, const char *name, int64_t otherwise);
double option_number(const struct arguments *arguments, const char *name, double otherwise);
size_t option_list(const struct arguments *arguments, const char *name, const char *const **texts);

extern const struct command *const commands[]; /* ends with NULL */

/* Messages to stderr. die() exits: only for commands, never below them. */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a text, as what takes notes of others is called; context is not used. */
void message_note(void *context, const char *text);
_Noreturn void die(enum exit_code code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
