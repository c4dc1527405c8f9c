/* runner table: the comparison table of an experiment. */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/command.h"
#include "runner/database.h"
#include "runner/loss_table.h"
#include "runner/sql.h"

static const struct option options[] = {
    {.name = "metric",
     .kind = OPTION_TEXT,
     .argument = "M",
     .doc = "loss, bits_per_byte or perplexity (default: the file's)"},
    {.name = "split",
     .kind = OPTION_TEXT,
     .argument = "S",
     .doc = "validation, a kind of text, or train (default: the file's)"},
    {.name = "format",
     .kind = OPTION_TEXT,
     .argument = "F",
     .doc = "text, or something to paste",
     .choices = TABLE_FORMATS},
    {.name = "db", .kind = OPTION_TEXT, .argument = "PATH", .doc = "database (default results/results.db)"},
    {0},
};

enum { WIDTH_STANDARD = 100 };

/* Of the terminal that reads it, at least 60. */
static int width_of_output(void)
{
    struct winsize size;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
        return WIDTH_STANDARD;
    return size.ws_col < 60 ? 60 : size.ws_col;
}

static int table_print(sqlite3 *db, const struct arguments *arguments, enum table_format format)
{
    struct error err;
    char *metric = NULL, *split = NULL;
    struct loss_table *table = NULL;
    int code = EXIT_USAGE;
    int64_t id = database_find_experiment(db, arguments->positional[0], &err);
    if (id && loss_table_choose(db, id, option_text(arguments, "metric", NULL), option_text(arguments, "split", NULL),
                                &metric, &split, &err)) {
        code = EXIT_ENVIRONMENT;
        table = loss_table_read(db, id, metric, split, &err);
    }
    if (table) {
        loss_table_write(table, format, width_of_output(), stdout);
        code = EXIT_DONE;
    } else {
        message("runner: %s", err.text);
    }
    loss_table_free(table);
    memory_free(metric);
    memory_free(split);
    return code;
}

static int table_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    struct error err;
    enum table_format format = TABLE_TEXT;
    const char *name = option_text(arguments, "format", arguments->json ? "json" : "text");
    table_format_find(name, &format);
    if (arguments->json && format != TABLE_JSON)
        die(EXIT_USAGE, "--json and --format %s ask for two things: give one of them", name);
    sqlite3 *db = database_open_reader(option_text(arguments, "db", "results/results.db"), &err);
    if (!db)
        die(EXIT_ENVIRONMENT, "%s", err.text);
    if (!sql_script(db, "begin", &err)) { /* one moment for all its queries */
        sqlite3_close(db);
        die(EXIT_ENVIRONMENT, "%s", err.text);
    }
    int code = table_print(db, arguments, format);
    sqlite3_close(db);
    return code;
}

extern const struct command command_table;
const struct command command_table = {
    .name = "table",
    .arguments = "EXPERIMENT",
    .summary = "Compare the variants of an experiment: mean, spread, difference to the baseline, verdict.",
    .help = "Final values over the seeds of each variant, and each variant against the baseline, paired by seed: mean\n"
            "difference, t interval, p adjusted by Holm over the table, minimum detectable effect (mde) at 80 % power, "
            "and a\n"
            "verdict: better, worse, same (within the margin), not separated, or n/a for one seed. Diverged runs are\n"
            "counted, not averaged.\n\n"
            "Example:\n"
            "  runner table day2-norms\n"
            "  runner table day2-norms --split code --format md",
    .options = options,
    .json = true,
    .minimum_arguments = 1,
    .maximum_arguments = 1,
    .run = table_run,
};
