/* The manual page, in roff. */
#include <stdbool.h>
#include <string.h>

#include "runner/command.h"
#include "runner/completion.h"
#include "runner/version.h"

/* Words as they are: no escapes, no requests. at_start: a line begins here. */
static void roff_put(const char *text, size_t size, bool at_start, FILE *out)
{
    if (at_start && size && (*text == '.' || *text == '\''))
        fputs("\\&", out);
    for (size_t i = 0; i < size; i++)
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-')
            fputs("\\-", out);
        else
            fputc(text[i], out);
}

static void roff_text(const char *text, FILE *out)
{
    roff_put(text, strlen(text), true, out);
}

/* Lines that are indented are examples and stay as they are; empty ones part paragraphs. */
static void paragraphs_put(const char *text, FILE *out)
{
    bool verbatim = false;
    while (*text) {
        size_t length = strcspn(text, "\n");
        bool indented = *text == ' ';
        if (indented != verbatim)
            fputs(indented ? ".nf\n" : ".fi\n", out);
        verbatim = indented;
        if (length == 0)
            fputs(".PP\n", out);
        else {
            roff_put(text, length, true, out);
            fputc('\n', out);
        }
        text += length + (text[length] == '\n');
    }
    if (verbatim)
        fputs(".fi\n", out);
}

static void option_put(const char *name, const char *argument, const char *doc, const char *choices, FILE *out)
{
    fputs(".TP\n\\fB\\-\\-", out);
    roff_put(name, strlen(name), false, out);
    fputs("\\fR", out);
    if (argument) {
        fputs(" \\fI", out);
        roff_put(argument, strlen(argument), false, out);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    roff_text(doc ? doc : "", out);
    if (choices) {
        fputs(" (", out);
        roff_put(choices, strlen(choices), false, out);
        fputc(')', out);
    }
    fputc('\n', out);
}

static void command_put(const struct command *command, FILE *out)
{
    fprintf(out, ".SS %s\n\\fBrunner %s\\fR [OPTIONS] ", command->name, command->name);
    roff_put(command->arguments ? command->arguments : "", command->arguments ? strlen(command->arguments) : 0, false,
             out);
    fputs("\n.PP\n", out);
    roff_text(command->summary, out);
    fputs("\n.PP\n", out);
    paragraphs_put(command->help ? command->help : "", out);
    for (const struct option *option = command->options; option && option->name; option++)
        option_put(option->name, option->kind == OPTION_FLAG ? NULL : option->argument, option->doc, option->choices,
                   out);
    if (command->json)
        option_put("json", NULL, "Print JSON on standard output.", NULL, out);
}

void manual_write(FILE *out)
{
    fprintf(out,
            ".TH RUNNER 1 \"\" \"runner %s\" \"User Commands\"\n"
            ".SH NAME\nrunner \\- answers whether a part of a small decoder matters\n"
            ".SH SYNOPSIS\n\\fBrunner\\fR \\fICOMMAND\\fR [OPTIONS] [ARGUMENTS]\n"
            ".SH DESCRIPTION\nTrains every variant of a small decoder that one YAML file names, logs every loss to one "
            "SQLite file\nand draws the comparison.\n.SH COMMANDS\n",
            version_text());
    for (size_t i = 0; commands[i]; i++)
        if (!commands[i]->hidden)
            command_put(commands[i], out);
    fputs(".SH EXIT STATUS\n"
          ".TP\n0\ndone, also when there was nothing to do\n"
          ".TP\n1\nsome runs failed or diverged, or a match failed\n"
          ".TP\n2\nusage or file error\n"
          ".TP\n3\nenvironment: database, disk, gnuplot\n"
          ".TP\n75\nstopped; the same command goes on\n"
          ".SH FILES\n.TP\nresults/results.db\nevery loss, in views that \\fBrunner schema\\fR describes\n"
          ".SH ENVIRONMENT\n.TP\nNO_COLOR\nno colours on a terminal\n.TP\nRUNNER_CPU\nv2, v3 or v4: which compiled "
          "kernels to use\n.TP\nRUNNER_BF16\nhardware or software: where bf16 products are made\n",
          out);
}
