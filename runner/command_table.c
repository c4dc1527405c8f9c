/* runner table: the comparison table of an experiment. */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/metric.h"
#include "runner/command.h"
#include "runner/database.h"
#include "runner/effect.h"
#include "runner/loss_table.h"
#include "runner/sql.h"

#define COMMA_METRIC(name, ...) ", " #name
static const char metric_doc[] = METRICS(COMMA_METRIC) "; default: the file's";

static const struct option options[] = {
    {.name = "metric", .kind = OPTION_TEXT, .argument = "M", .doc = metric_doc + 2},
    {.name = "split",
     .kind = OPTION_TEXT,
     .argument = "S",
     .doc = "validation, a kind of text, or train (default: the file's)"},
    {.name = "at",
     .kind = OPTION_TEXT,
     .argument = "WHEN",
     .doc = "last (default), best, step:N, tokens:N or seconds:N: where in each run"},
    {.name = "by",
     .kind = OPTION_TEXT,
     .argument = "KNOB",
     .doc = "the effect of one knob over all other settings, and how it depends on them"},
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

/* What was asked for, found to be there. */
struct choice {
    int64_t experiment;
    char *metric, *split;
    struct moment moment;
    enum table_format format;
};

static int effects_print(sqlite3 *db, const struct choice *choice, const char *knob, struct error *err)
{
    struct effects *effects =
        effects_read(db, choice->experiment, knob, choice->metric, choice->split, &choice->moment, err);
    if (!effects)
        return EXIT_USAGE;
    effects_write(effects, choice->format, width_of_output(), stdout);
    effects_free(effects);
    return EXIT_DONE;
}

static int losses_print(sqlite3 *db, const struct choice *choice, struct error *err)
{
    struct loss_table *table = loss_table_read(db, choice->experiment, choice->metric, choice->split, err);
    if (!table)
        return EXIT_ENVIRONMENT;
    enum loss_table_result result = loss_table_move(table, db, choice->experiment, &choice->moment, err);
    if (result == LOSS_TABLE_MOVED)
        loss_table_write(table, choice->format, width_of_output(), stdout);
    loss_table_free(table);
    return result == LOSS_TABLE_MOVED ? EXIT_DONE : result == LOSS_TABLE_NOT_THERE ? EXIT_USAGE : EXIT_ENVIRONMENT;
}

static int table_print(sqlite3 *db, const struct arguments *arguments, struct choice *choice)
{
    struct error err;
    int code = EXIT_USAGE;
    const char *knob = option_text(arguments, "by", NULL);
    choice->experiment = database_find_experiment(db, arguments->positional[0], &err);
    if (choice->experiment &&
        loss_table_choose(db, choice->experiment, option_text(arguments, "metric", NULL),
                          option_text(arguments, "split", NULL), &choice->metric, &choice->split, &err))
        code = knob ? effects_print(db, choice, knob, &err) : losses_print(db, choice, &err);
    else if (sql_has_failed(db))
        code = EXIT_ENVIRONMENT;
    if (code != EXIT_DONE)
        message("runner: %s", err.text);
    memory_free(choice->metric);
    memory_free(choice->split);
    return code;
}

static int table_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    struct error err;
    struct choice choice = {.format = TABLE_TEXT};
    const char *name = option_text(arguments, "format", arguments->json ? "json" : "text");
    table_format_find(name, &choice.format);
    if (!moment_parse(option_text(arguments, "at", "last"), &choice.moment, &err))
        die(EXIT_USAGE, "%s", err.text);
    if (arguments->json && choice.format != TABLE_JSON)
        die(EXIT_USAGE, "--json and --format %s ask for two things: give one of them", name);
    sqlite3 *db = database_open_reader(option_text(arguments, "db", "results/results.db"), &err);
    if (!db)
        die(EXIT_ENVIRONMENT, "%s", err.text);
    if (!sql_script(db, "begin", &err)) { /* one moment for all its queries */
        sqlite3_close(db);
        die(EXIT_ENVIRONMENT, "%s", err.text);
    }
    int code = table_print(db, arguments, &choice);
    sqlite3_close(db);
    return code;
}

extern const struct command command_table;
const struct command command_table = {
    .name = "table",
    .arguments = "EXPERIMENT",
    .summary = "Compare the variants of an experiment: mean, spread, difference to the baseline, verdict.",
    .help =
        "Final values over the seeds of each variant, and each variant against the baseline, paired by seed: mean\n"
        "difference, t interval, p adjusted by Holm over the table, minimum detectable effect (mde) at 80 % power, "
        "and a\n"
        "verdict: better, worse, same (within the margin), not separated, or n/a for one seed. Diverged runs are\n"
        "counted, not averaged. --at takes the values elsewhere than at the last step, and says so. --by KNOB shows\n"
        "what one knob of a grid does: the mean over all other settings, paired by seed, the effect at each of\n"
        "them, and how those differ.\n\n"
        "Example:\n"
        "  runner table day2-norms\n"
        "  runner table day2-norms --split code --format md\n"
        "  runner table day2-norms --at step:200\n"
        "  runner table day2-norms --by model.norm",
    .options = options,
    .json = true,
    .minimum_arguments = 1,
    .maximum_arguments = 1,
    .run = table_run,
};
