/* Command lines: what is accepted, what is refused with which words, and help made from the rows. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/command.h"
#include "runner/help.h"
#include "runner/options.h"

static const struct option rows[] = {
    {.name = "workers", .kind = OPTION_INTEGER, .argument = "N", .doc = "How many.", .minimum = 1, .maximum = 64},
    {.name = "tokens", .kind = OPTION_INTEGER, .argument = "N", .doc = "Any."},
    {.name = "set", .kind = OPTION_LIST, .argument = "K=V", .doc = "Again and again."},
    {.name = "format", .kind = OPTION_TEXT, .argument = "F", .doc = "Layout.", .choices = "md|csv|latex"},
    {.name = "temperature", .kind = OPTION_NUMBER, .argument = "T", .doc = "Heat."},
    {.name = "dry-run", .kind = OPTION_FLAG, .doc = "Only say."},
    {.name = NULL},
};
static const struct command example = {
    .name = "train",
    .arguments = "FILE",
    .summary = "Trains.",
    .help = "Example:\n  runner train x",
    .options = rows,
    .json = true,
    .minimum_arguments = 1,
    .maximum_arguments = 1,
};

enum { WORDS = 16 };

/* line is cut at spaces into words, which belong to it. */
static bool parse(char *line, struct arguments *arguments, bool *help, struct error *err)
{
    char *words[WORDS];
    int count = 0;
    for (char *rest = line, *word; (word = strsep(&rest, " ")) && count < WORDS;)
        words[count++] = word;
    *err = (struct error){0};
    return arguments_parse(&example, count, words, arguments, help, err);
}

static void expect_refused(const char *text, const char *message)
{
    char line[256];
    struct arguments arguments;
    struct error err;
    bool help;
    snprintf(line, sizeof line, "%s", text);
    bool good = parse(line, &arguments, &help, &err);
    arguments_release(&arguments);
    cr_expect(!good, "'%s' was accepted", text);
    cr_expect_str_eq(err.text, message);
}

Test(options, every_kind_of_value_arrives)
{
    char line[] = "--workers=3 --set a=1 file --tokens -5 --set=b=2 --temperature 6e-1 --dry-run --json";
    struct arguments arguments;
    struct error err;
    bool help;
    cr_assert(parse(line, &arguments, &help, &err), "%s", err.text);
    cr_assert(!help);
    cr_assert_eq(option_integer(&arguments, "workers", 9), 3);
    cr_assert_eq(option_integer(&arguments, "tokens", 9), -5);
    cr_assert_eq(option_number(&arguments, "temperature", 1), 0.6);
    const char *const *texts;
    cr_assert_eq(option_list(&arguments, "set", &texts), 2);
    cr_assert_str_eq(texts[0], "a=1");
    cr_assert_str_eq(texts[1], "b=2");
    cr_assert(option_flag(&arguments, "dry-run"));
    cr_assert(arguments.json);
    cr_assert_str_eq(option_text(&arguments, "format", "md"), "md");
    cr_assert_eq(arguments.positional_count, 1);
    cr_assert_str_eq(arguments.positional[0], "file");
    arguments_release(&arguments);
}

Test(options, what_follows_two_dashes_is_no_option)
{
    char line[] = "-- --workers";
    struct arguments arguments;
    struct error err;
    bool help;
    cr_assert(parse(line, &arguments, &help, &err), "%s", err.text);
    cr_assert_str_eq(arguments.positional[0], "--workers");
    cr_assert_eq(option_integer(&arguments, "workers", 9), 9);
    arguments_release(&arguments);
}

Test(options, a_mistyped_option_gets_the_nearest_name)
{
    expect_refused("--wrokers 2 f", "train: unknown option '--wrokers', did you mean '--workers'?");
    expect_refused("--jsn f", "train: unknown option '--jsn', did you mean '--json'?");
    expect_refused("--zzzzzzzz=1 f", "train: unknown option '--zzzzzzzz' ('runner train --help' lists them)");
    expect_refused("-w f", "train: unknown option '-w' ('runner train --help' lists them)");
    expect_refused("--work 2 f", "train: unknown option '--work', did you mean '--workers'?");
}

Test(options, a_bad_value_says_what_is_accepted)
{
    expect_refused("f --workers 0", "train: --workers is '0', expected a whole number from 1 to 64");
    expect_refused("f --workers 2x", "train: --workers is '2x', expected a whole number from 1 to 64");
    expect_refused("f --workers 99999999999999999999",
                   "train: --workers is '99999999999999999999', expected a whole number from 1 to 64");
    expect_refused("f --workers=", "train: --workers is '', expected a whole number from 1 to 64");
    expect_refused("f --tokens 1.5", "train: --tokens is '1.5', expected a whole number");
    expect_refused("f --temperature nan", "train: --temperature is 'nan', expected a number");
    expect_refused("f --temperature 1e999", "train: --temperature is '1e999', expected a number");
    expect_refused("f --temperature 0x10", "train: --temperature is '0x10', expected a number");
    expect_refused("f --format cvs", "train: --format is 'cvs', expected one of md|csv|latex (did you mean 'csv'?)");
    expect_refused("f --format latx",
                   "train: --format is 'latx', expected one of md|csv|latex (did you mean 'latex'?)");
    expect_refused("f --format md|csv", "train: --format is 'md|csv', expected one of md|csv|latex");
    expect_refused("f --dry-run=yes", "train: --dry-run takes no value, got 'yes'");
}

Test(options, a_missing_or_doubled_value_is_refused)
{
    expect_refused("f --workers", "train: --workers needs a value: --workers N");
    expect_refused("f --format --json", "train: --format needs a value: --format F");
    expect_refused("f --workers 1 --workers 2", "train: --workers is given twice");
    expect_refused("--json", "train: missing argument, usage: runner train FILE");
    expect_refused("f g", "train: unexpected argument 'g', usage: runner train FILE");
}

Test(options, help_wins_over_whatever_else_is_wrong)
{
    char line[] = "--workers none --help";
    struct arguments arguments;
    struct error err;
    bool help;
    cr_assert(parse(line, &arguments, &help, &err));
    cr_assert(help);
    arguments_release(&arguments);
}

static char *help_text(const struct command *command)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    help_command(command, out);
    fclose(out);
    return text;
}

Test(options, help_names_every_option_within_80_columns)
{
    char *text = help_text(&example);
    for (const struct option *row = rows; row->name; row++) {
        cr_expect(strstr(text, row->name), "--%s is not in: %s", row->name, text);
        cr_expect(strstr(text, row->doc), "'%s' is not in: %s", row->doc, text);
    }
    cr_assert(strstr(text, "(md|csv|latex)"));
    cr_assert(strstr(text, "--json"));
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        cr_assert_leq(strcspn(line, "\n"), 80);
    free(text);
}

Test(options, every_command_has_help_with_an_example_of_itself)
{
    for (size_t i = 0; commands[i]; i++) {
        const struct command *command = commands[i];
        char usage[64], call[64];
        snprintf(usage, sizeof usage, "usage: runner %s ", command->name);
        snprintf(call, sizeof call, "  runner %s", command->name);
        char *text = help_text(command);
        cr_expect(strstr(text, usage) == text);
        cr_expect(command->hidden || (strstr(text, "Example") && strstr(text, call)), "no example for %s",
                  command->name);
        cr_expect(command->summary && command->run, "%s lacks its summary or function", command->name);
        cr_expect_eq(command_find(command->name), command, "%s stands twice in the table", command->name);
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
            cr_expect_leq(strcspn(line, "\n"), 80, "help of %s: line wider than 80: %.*s", command->name,
                          (int)strcspn(line, "\n"), line);
        free(text);
    }
}
