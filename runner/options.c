/* Parsing a command line by the option rows of a command. */
#include "runner/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/problem.h"

struct option_value {
    const struct option *option;
    const char **texts; /* as given, in order */
    size_t count;
    int64_t integer;
    double number;
};

struct parser {
    const struct command *command;
    struct arguments *arguments;
    struct option_value *values; /* one for each row, then the end row */
    const char **positional;
};

static const struct option json_option = {.name = "json", .kind = OPTION_FLAG, .doc = "Print JSON on standard output."};

static size_t row_count(const struct command *command)
{
    size_t count = 0;
    if (command->options)
        while (command->options[count].name)
            count++;
    return count;
}

static struct option_value *value_find(const struct parser *parser, const char *name, size_t length)
{
    for (struct option_value *value = parser->values; value->option; value++)
        if (strlen(value->option->name) == length && !strncmp(value->option->name, name, length))
            return value;
    return NULL;
}

static bool unknown_report(const struct parser *parser, const char *given, size_t length, struct error *err)
{
    size_t count = 0;
    const char **names = memory_alloc(row_count(parser->command) + 2, sizeof *names);
    for (const struct option_value *value = parser->values; value->option; value++)
        names[count++] = value->option->name;
    names[count++] = "help";
    char *name = memory_copy_bytes(given + 2, length > 2 ? length - 2 : 0);
    const char *nearest = given[1] == '-' ? suggest_nearest(name, names, count) : NULL;
    if (nearest)
        error_set(err, "%s: unknown option '%.*s', did you mean '--%s'?", parser->command->name, (int)length, given,
                  nearest);
    else
        error_set(err, "%s: unknown option '%.*s' ('runner %s --help' lists them)", parser->command->name, (int)length,
                  given, parser->command->name);
    memory_free(name);
    memory_free(names);
    return false;
}

static bool choice_check(const char *command, const struct option *option, const char *text, struct error *err)
{
    size_t size = strlen(text);
    for (const char *choice = option->choices; choice; choice = *choice ? choice + 1 : NULL) {
        size_t length = strcspn(choice, "|");
        if (length == size && !strncmp(choice, text, size))
            return true;
        choice += length;
        if (!*choice)
            break;
    }
    char *choices = memory_copy_text(option->choices);
    const char *names[32];
    size_t count = 0;
    char *rest = choices;
    for (char *name = strsep(&rest, "|"); name && count < sizeof names / sizeof *names; name = strsep(&rest, "|"))
        names[count++] = name;
    const char *nearest = suggest_nearest(text, names, count);
    error_set(err, "%s: --%s is '%s', expected one of %s%s%s%s", command, option->name, text, option->choices,
              nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "");
    memory_free(choices);
    return false;
}

static bool integer_read(const char *command, struct option_value *value, const char *text, struct error *err)
{
    const struct option *option = value->option;
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    bool bounded = option->minimum || option->maximum;
    bool digits = *text && text[strspn(text, "+-0123456789")] == 0 && !*end;
    if (digits && !errno && (!bounded || (number >= option->minimum && number <= option->maximum))) {
        value->integer = number;
        return true;
    }
    if (!bounded)
        return error_set(err, "%s: --%s is '%s', expected a whole number", command, option->name, text);
    if (option->maximum == INT64_MAX)
        return error_set(err, "%s: --%s is '%s', expected a whole number, at least %lld", command, option->name, text,
                         (long long)option->minimum);
    return error_set(err, "%s: --%s is '%s', expected a whole number from %lld to %lld", command, option->name, text,
                     (long long)option->minimum, (long long)option->maximum);
}

static bool number_read(const char *command, struct option_value *value, const char *text, struct error *err)
{
    char *end;
    double number = strtod(text, &end);
    bool decimal = *text && text[strspn(text, "+-.0123456789eE")] == 0 && !*end;
    if (!decimal || !isfinite(number))
        return error_set(err, "%s: --%s is '%s', expected a number", command, value->option->name, text);
    value->number = number;
    return true;
}

static bool value_add(const char *command, struct option_value *value, const char *text, struct error *err)
{
    const struct option *option = value->option;
    if (value->count && option->kind != OPTION_LIST)
        return error_set(err, "%s: --%s is given twice", command, option->name);
    if (option->choices && !choice_check(command, option, text, err))
        return false;
    if (option->kind == OPTION_INTEGER && !integer_read(command, value, text, err))
        return false;
    if (option->kind == OPTION_NUMBER && !number_read(command, value, text, err))
        return false;
    value->texts =
        memory_grow(value->texts, value->count * sizeof *value->texts, value->count + 1, sizeof *value->texts);
    value->texts[value->count++] = text;
    return true;
}

/* One "--name", "--name=value" or "--name value"; *used gets how many words that was. */
static bool option_parse(const struct parser *parser, const char *word, const char *next, int *used, struct error *err)
{
    size_t length = strcspn(word, "=");
    struct option_value *value = word[1] == '-' ? value_find(parser, word + 2, length - 2) : NULL;
    if (!value)
        return unknown_report(parser, word, length, err);
    const char *command = parser->command->name, *name = value->option->name, *argument = value->option->argument;
    *used = 1;
    if (value->option->kind == OPTION_FLAG) {
        if (word[length])
            return error_set(err, "%s: --%s takes no value, got '%s'", command, name, word + length + 1);
        return value_add(command, value, "", err);
    }
    if (word[length])
        return value_add(command, value, word + length + 1, err);
    /* "--db --workers 2" is a forgotten value; one that really starts so can be written --db=--workers. */
    if (!next || !strncmp(next, "--", 2))
        return error_set(err, "%s: --%s needs a value: --%s %s", command, name, name, argument ? argument : "VALUE");
    *used = 2;
    return value_add(command, value, next, err);
}

static bool count_check(const struct command *command, size_t count, const char *const *positional, struct error *err)
{
    const char *usage = command->arguments ? command->arguments : "";
    if (command->maximum_arguments >= 0 && count > (size_t)command->maximum_arguments)
        return error_set(err, "%s: unexpected argument '%s', usage: runner %s%s%s", command->name,
                         positional[command->maximum_arguments], command->name, *usage ? " " : "", usage);
    if (count < (size_t)command->minimum_arguments)
        return error_set(err, "%s: missing argument, usage: runner %s %s", command->name, command->name, usage);
    return true;
}

static void parser_start(struct parser *parser, int count)
{
    size_t rows = row_count(parser->command), used = 0;
    parser->values = memory_alloc(rows + 2, sizeof *parser->values);
    parser->positional = memory_alloc((size_t)count + 1, sizeof *parser->positional);
    for (; used < rows; used++)
        parser->values[used].option = &parser->command->options[used];
    if (parser->command->json)
        parser->values[used].option = &json_option;
    parser->arguments->values = parser->values;
    parser->arguments->positional = parser->positional;
}

static bool help_wanted(int count, char *const *argv)
{
    for (int i = 0; i < count && strcmp(argv[i], "--") != 0; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return true;
    return false;
}

bool arguments_parse(const struct command *command, int count, char *const *argv, struct arguments *arguments,
                     bool *help, struct error *err)
{
    *arguments = (struct arguments){0};
    struct parser parser = {.command = command, .arguments = arguments};
    parser_start(&parser, count);
    *help = help_wanted(count, argv);
    if (*help)
        return true;
    size_t found = 0;
    bool options_ended = false;
    for (int i = 0, used = 1; i < count; i += used, used = 1) {
        if (!options_ended && !strcmp(argv[i], "--"))
            options_ended = true;
        else if (options_ended || argv[i][0] != '-' || !argv[i][1])
            parser.positional[found++] = argv[i];
        else if (!option_parse(&parser, argv[i], i + 1 < count ? argv[i + 1] : NULL, &used, err))
            return false;
    }
    arguments->positional_count = found;
    arguments->json = command->json && option_flag(arguments, "json");
    return count_check(command, found, parser.positional, err);
}

void arguments_release(struct arguments *arguments)
{
    for (const struct option_value *value = arguments->values; value && value->option; value++)
        memory_free(value->texts);
    memory_free((void *)arguments->values);
    memory_free((void *)arguments->positional);
    *arguments = (struct arguments){0};
}

/* Asking for an option that the command's rows do not have is a mistake of ours. */
static const struct option_value *value_get(const struct arguments *arguments, const char *name)
{
    for (const struct option_value *value = arguments->values; value->option; value++)
        if (!strcmp(value->option->name, name))
            return value;
    fprintf(stderr, "runner: bug: no row for option --%s\n", name);
    abort();
}

bool option_flag(const struct arguments *arguments, const char *name)
{
    return value_get(arguments, name)->count > 0;
}

const char *option_text(const struct arguments *arguments, const char *name, const char *otherwise)
{
    const struct option_value *value = value_get(arguments, name);
    return value->count ? value->texts[0] : otherwise;
}

int64_t option_integer(const struct arguments *arguments, const char *name, int64_t otherwise)
{
    const struct option_value *value = value_get(arguments, name);
    return value->count ? value->integer : otherwise;
}

double option_number(const struct arguments *arguments, const char *name, double otherwise)
{
    const struct option_value *value = value_get(arguments, name);
    return value->count ? value->number : otherwise;
}

size_t option_list(const struct arguments *arguments, const char *name, const char *const **texts)
{
    const struct option_value *value = value_get(arguments, name);
    *texts = value->texts;
    return value->count;
}
