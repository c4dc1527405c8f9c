/* runner complete: what `make install` puts beside the program, and names for a shell that completes. */
#include <stdio.h>
#include <string.h>

#include "runner/command.h"
#include "runner/completion.h"
#include "runner/database.h"
#include "runner/sql.h"

/* No database, no names: a shell that completes wants no messages. */
static void experiments_write(FILE *out)
{
    struct error err;
    bool row;
    sqlite3 *db = database_open_reader("results/results.db", &err);
    sqlite3_stmt *s = db ? sql_prepare(db, "select experiment from experiments order by 1", NULL, &err) : NULL;
    while (s && sql_step(s, &row, &err) && row)
        fprintf(out, "%s\n", sql_text(s, 0));
    sqlite3_finalize(s);
    sqlite3_close(db);
}

static const struct {
    const char *name;
    void (*write)(FILE *out);
} kinds[] = {{"man", manual_write},
             {"bash", completion_write_bash},
             {"zsh", completion_write_zsh},
             {"fish", completion_write_fish},
             {"experiments", experiments_write}};

static int complete_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(arguments->positional[0], kinds[i].name) == 0) {
            kinds[i].write(stdout);
            return EXIT_DONE;
        }
    die(EXIT_USAGE, "complete: '%s' is none of man, bash, zsh, fish, experiments", arguments->positional[0]);
}

extern const struct command command_complete;
const struct command command_complete = {
    .name = "complete",
    .arguments = "man|bash|zsh|fish|experiments",
    .summary = "Print the manual page, a shell's completion, or the names of the experiments.",
    .help = "Example:\n  runner complete bash >~/.local/share/bash-completion/completions/runner",
    .minimum_arguments = 1,
    .maximum_arguments = 1,
    .hidden = true,
    .run = complete_run,
};
