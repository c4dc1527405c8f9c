/* Help texts, laid out from the command and option rows. */
#include "runner/help.h"

#include <stdio.h>
#include <string.h>

#include "runner/problem.h"

enum { LINE_WIDTH = 80, INDENT = 2, LEFT_LIMIT = 30 };

const struct command *command_find(const char *name)
{
    for (size_t i = 0; commands[i]; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

const char *command_nearest(const char *word)
{
    const char *names[128];
    size_t count = 0;
    for (size_t i = 0; commands[i] && count < sizeof names / sizeof *names; i++)
        if (!commands[i]->hidden)
            names[count++] = commands[i]->name;
    return suggest_nearest(word, names, count);
}

/* Words of the first size bytes of text from column `at` on, broken at LINE_WIDTH, later lines indented by `indent`.
 * Returns the column. */
static int words_print(FILE *out, const char *text, size_t size, int at, int indent)
{
    const char *end = text + size;
    text += strspn(text, " ");
    while (text < end) {
        int length = (int)strcspn(text, " \n");
        if (at > indent && at + 1 + length > LINE_WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            fputc(' ', out);
            at++;
        }
        fwrite(text, 1, (size_t)length, out);
        at += length;
        text += length;
        text += strspn(text, " ");
    }
    return at;
}

static void option_label(const struct option *option, char *buf, size_t size)
{
    const char *argument = option->kind == OPTION_FLAG ? NULL : option->argument ? option->argument : "VALUE";
    snprintf(buf, size, "--%s%s%s", option->name, argument ? " " : "", argument ? argument : "");
}

/* The widest left column that all rows fit in, up to LEFT_LIMIT. */
static int left_width(const struct command *command)
{
    int width = (int)strlen("--help");
    for (const struct option *option = command->options; option && option->name; option++) {
        char label[128];
        option_label(option, label, sizeof label);
        int length = (int)strlen(label);
        if (length > width && length <= LEFT_LIMIT)
            width = length;
    }
    return width;
}

/* "(a|b|c)" from column `at` on, broken after a bar where a line is full. */
static void choices_print(FILE *out, const char *choices, int at, int indent)
{
    fputc('(', out);
    at++;
    while (*choices) {
        int length = (int)strcspn(choices, "|");
        length += choices[length] == '|';
        if (at + length + 1 > LINE_WIDTH) {
            fprintf(out, "\n%*s", indent + 1, "");
            at = indent + 1;
        }
        fwrite(choices, 1, (size_t)length, out);
        at += length;
        choices += length;
    }
    fputc(')', out);
}

static void row_print(FILE *out, const char *label, const char *doc, const char *choices, int width)
{
    int right = INDENT + width + 2;
    fprintf(out, "%*s%-*s  ", INDENT, "", width, label);
    if ((int)strlen(label) > width)
        fprintf(out, "\n%*s", right, "");
    int at = words_print(out, doc ? doc : "", doc ? strlen(doc) : 0, right, right);
    if (choices) {
        bool fits = at + 1 + (int)strlen(choices) + 2 <= LINE_WIDTH;
        if (!fits)
            fprintf(out, "\n%*s", right, "");
        else if (at > right)
            fputc(' ', out);
        choices_print(out, choices, !fits ? right : at > right ? at + 1 : at, right);
    }
    fputc('\n', out);
}

/* Paragraphs are broken anew at LINE_WIDTH; lines that are indented (examples) and empty ones stay as they are. */
static void paragraphs_print(FILE *out, const char *text)
{
    int at = 0;
    while (*text) {
        size_t length = strcspn(text, "\n");
        bool apart = !length || *text == ' ';
        if (apart && at)
            fputc('\n', out);
        if (apart) {
            fprintf(out, "%.*s\n", (int)length, text);
            at = 0;
        } else {
            at = words_print(out, text, length, at, 0);
        }
        text += length + (text[length] == '\n');
    }
    if (at)
        fputc('\n', out);
}

void help_command(const struct command *command, FILE *out)
{
    bool more = command->arguments && *command->arguments;
    fprintf(out, "usage: runner %s [OPTIONS]%s%s\n\n", command->name, more ? " " : "", more ? command->arguments : "");
    paragraphs_print(out, command->summary);
    if (command->help && *command->help) {
        fputc('\n', out);
        paragraphs_print(out, command->help);
    }
    fprintf(out, "\noptions:\n");
    int width = left_width(command);
    for (const struct option *option = command->options; option && option->name; option++) {
        char label[128];
        option_label(option, label, sizeof label);
        row_print(out, label, option->doc, option->choices, width);
    }
    if (command->json)
        row_print(out, "--json", "Print JSON on standard output.", NULL, width);
    row_print(out, "--help", "Show this and exit.", NULL, width);
}

void help_overview(FILE *out)
{
    fprintf(out, "usage: runner COMMAND [OPTIONS] [ARGUMENTS]\n\n"
                 "Trains every variant of a small decoder that one YAML file names, logs every\n"
                 "loss to one SQLite file and draws the comparison.\n\ncommands:\n");
    int width = 0;
    for (size_t i = 0; commands[i]; i++)
        if (!commands[i]->hidden && (int)strlen(commands[i]->name) > width)
            width = (int)strlen(commands[i]->name);
    for (size_t i = 0; commands[i]; i++)
        if (!commands[i]->hidden)
            row_print(out, commands[i]->name, commands[i]->summary, NULL, width);
    fprintf(out, "\nExample:\n  runner run experiments/quick.yaml\n\n"
                 "'runner help COMMAND' tells more about one of them.\n");
}
