/* Completions of bash, zsh and fish. Names of experiments come from the database at the moment they are asked for. */
#include "runner/completion.h"

#include <stdbool.h>
#include <string.h>

#include "runner/command.h"

static const struct option json_row = {.name = "json", .kind = OPTION_FLAG, .doc = "Print JSON on standard output."};
static const struct option help_row = {.name = "help", .kind = OPTION_FLAG, .doc = "Show this and exit."};

/* Each option of the command, --json and --help with them. */
static void options_walk(const struct command *command,
                         void (*visit)(const struct command *command, const struct option *option, FILE *out),
                         FILE *out)
{
    for (const struct option *option = command->options; option && option->name; option++)
        visit(command, option, out);
    if (command->json)
        visit(command, &json_row, out);
    visit(command, &help_row, out);
}

static void commands_walk(void (*visit)(const struct command *command, FILE *out), FILE *out)
{
    for (size_t i = 0; commands[i]; i++)
        if (!commands[i]->hidden)
            visit(commands[i], out);
}

static bool wants_experiment(const struct command *command)
{
    return command->arguments && strncmp(command->arguments, "EXPERIMENT", 10) == 0;
}

static void name_put(const struct command *command, FILE *out)
{
    fprintf(out, "%s ", command->name);
}

/* "a|b|c" with blanks between. */
static void choices_put(const char *choices, FILE *out)
{
    for (; *choices; choices++)
        fputc(*choices == '|' ? ' ' : *choices, out);
}

/* Within single quotes, with these characters behind a backslash as well. */
static void quoted_put(const char *text, const char *special, const char *quote, FILE *out)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs(quote, out);
            continue;
        }
        if (strchr(special, *text))
            fputc('\\', out);
        fputc(*text == '\n' ? ' ' : *text, out);
    }
}

/* ---- bash ---- */

static void bash_option(const struct command *command, const struct option *option, FILE *out)
{
    (void)command;
    fprintf(out, "--%s ", option->name);
}

static void bash_options(const struct command *command, FILE *out)
{
    fprintf(out, "    %s) options='", command->name);
    options_walk(command, bash_option, out);
    fprintf(out, "'%s ;;\n", wants_experiment(command) ? " words=$(runner complete experiments 2>/dev/null)" : "");
}

static void bash_choice(const struct command *command, const struct option *option, FILE *out)
{
    if (!option->choices)
        return;
    fprintf(out, "    '%s --%s') words='", command->name, option->name);
    choices_put(option->choices, out);
    fputs("' options= ;;\n", out);
}

static void bash_choices(const struct command *command, FILE *out)
{
    options_walk(command, bash_choice, out);
}

void completion_write_bash(FILE *out)
{
    fputs("# bash completion of runner\n"
          "_runner() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
          "    local options= words=\n"
          "    if ((COMP_CWORD == 1)); then\n        mapfile -t COMPREPLY < <(compgen -W '",
          out);
    commands_walk(name_put, out);
    fputs("' -- \"$current\")\n        return\n    fi\n    case $command in\n    help) words='", out);
    commands_walk(name_put, out);
    fputs("' ;;\n", out);
    for (size_t i = 0; commands[i]; i++)
        if (!commands[i]->hidden && strcmp(commands[i]->name, "help") != 0)
            bash_options(commands[i], out);
    fputs("    esac\n    case \"$command $previous\" in\n", out);
    commands_walk(bash_choices, out);
    fputs("    esac\n"
          "    if [[ $current == -* ]]; then words=$options; fi\n"
          "    if [[ $words ]]; then\n"
          "        local IFS=$' \\n'\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
          "    else\n"
          "        mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
          "        compopt -o filenames 2>/dev/null\n"
          "    fi\n"
          "}\n"
          "complete -F _runner runner\n",
          out);
}

/* ---- zsh ---- */

static void zsh_command(const struct command *command, FILE *out)
{
    fprintf(out, "        '%s:", command->name);
    quoted_put(command->summary, ":\\", "'\\''", out);
    fputs("'\n", out);
}

static void zsh_option(const struct command *command, const struct option *option, FILE *out)
{
    (void)command;
    fprintf(out, "        '%s--%s%s[", option->kind == OPTION_LIST ? "*" : "", option->name,
            option->kind == OPTION_FLAG ? "" : "=");
    quoted_put(option->doc ? option->doc : "", "[]\\", "'\\''", out);
    fputc(']', out);
    if (option->kind != OPTION_FLAG) {
        fputc(':', out);
        quoted_put(option->argument ? option->argument : "value", ":\\", "'\\''", out);
        fputc(':', out);
        if (option->choices) {
            fputc('(', out);
            choices_put(option->choices, out);
            fputc(')', out);
        } else {
            fputs("_files", out);
        }
    }
    fputs("' \\\n", out);
}

static void zsh_case(const struct command *command, FILE *out)
{
    fprintf(out, "    %s)\n        _arguments \\\n", command->name);
    options_walk(command, zsh_option, out);
    fprintf(out, "        '*: :%s'\n        ;;\n",
            wants_experiment(command)            ? "_runner_experiments"
            : strcmp(command->name, "help") == 0 ? "_runner_commands"
                                                 : "_files");
}

void completion_write_zsh(FILE *out)
{
    fputs("#compdef runner\n"
          "_runner_experiments() {\n"
          "    local -a names\n"
          "    names=(${(f)\"$(runner complete experiments 2>/dev/null)\"})\n"
          "    compadd -a names\n"
          "}\n"
          "_runner_commands() {\n"
          "    local -a names\n"
          "    names=(\n",
          out);
    commands_walk(zsh_command, out);
    fputs("    )\n"
          "    _describe command names\n"
          "}\n"
          "_runner() {\n"
          "    if ((CURRENT == 2)); then\n"
          "        _runner_commands\n"
          "        return\n"
          "    fi\n"
          "    local command=$words[2]\n"
          "    shift words\n"
          "    ((CURRENT--))\n"
          "    case $command in\n",
          out);
    commands_walk(zsh_case, out);
    fputs("    esac\n"
          "}\n"
          "_runner \"$@\"\n",
          out);
}

/* ---- fish ---- */

static void fish_command(const struct command *command, FILE *out)
{
    fprintf(out, "complete -c runner -f -n __fish_use_subcommand -a %s -d '", command->name);
    quoted_put(command->summary, "\\", "\\'", out);
    fputs("'\n", out);
    if (wants_experiment(command))
        fprintf(out,
                "complete -c runner -f -n '__fish_seen_subcommand_from %s' -a '(runner complete experiments "
                "2>/dev/null)'\n",
                command->name);
}

static void fish_option(const struct command *command, const struct option *option, FILE *out)
{
    fprintf(out, "complete -c runner -n '__fish_seen_subcommand_from %s' -l %s", command->name, option->name);
    if (option->choices) {
        fputs(" -x -a '", out);
        choices_put(option->choices, out);
        fputc('\'', out);
    } else if (option->kind != OPTION_FLAG) {
        fputs(" -r", out);
    }
    fputs(" -d '", out);
    quoted_put(option->doc ? option->doc : "", "\\", "\\'", out);
    fputs("'\n", out);
}

static void fish_options(const struct command *command, FILE *out)
{
    options_walk(command, fish_option, out);
}

void completion_write_fish(FILE *out)
{
    fputs("# fish completion of runner\n", out);
    commands_walk(fish_command, out);
    commands_walk(fish_options, out);
}
