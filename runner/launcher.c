/* Settings of a job, passed through as they are, and its script. */
#include "runner/launcher.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/file.h"
#include "runner/shell_word.h"

static const char *const ours[] = {"job-name", "array", "output", "error", "open-mode", "parsable", "wrap", "wait"};

static size_t key_length(const char *setting)
{
    return strcspn(setting, "=");
}

bool launcher_setting_check(const char *setting, struct error *err)
{
    size_t length = key_length(setting);
    bool good = length && length < 60 && setting[0] != '-' &&
                strspn(setting, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
    if (!good)
        return error_set(err,
                         "'%.200s' is no setting of a job: expected key=value with a long option of sbatch without its "
                         "dashes, as in partition=gpu or time=2:00:00",
                         setting);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strlen(ours[i]) == length && strncmp(ours[i], setting, length) == 0)
            return error_set(err, "'%s' is set by runner itself: expected another option of sbatch", ours[i]);
    for (const char *c = setting + length; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127 || strchr("\"'\\`", *c))
            return error_set(err, "the value of '%.*s' is '%.200s': expected text without quotes and control bytes",
                             (int)length, setting, setting + length + 1);
    return true;
}

static bool key_in(const char *setting, const char *const *settings, size_t count)
{
    size_t length = key_length(setting);
    for (size_t i = 0; i < count; i++)
        if (key_length(settings[i]) == length && strncmp(settings[i], setting, length) == 0)
            return true;
    return false;
}

static void setting_print(const char *setting, FILE *out)
{
    size_t length = key_length(setting);
    const char *value = setting[length] ? setting + length + 1 : "";
    fprintf(out, "#SBATCH --%.*s", (int)length, setting);
    if (*value)
        fprintf(out, strpbrk(value, " #;&|<>()$") ? "=\"%s\"" : "=%s", value);
    fputc('\n', out);
}

static void word_print(const char *text, FILE *out)
{
    char *word = shell_word(text);
    fputs(word, out);
    memory_free(word);
}

static void script_print(const struct launcher_script *script, const char *program, FILE *out)
{
    fprintf(
        out,
        "#!/bin/sh\n"
        "# %zu runs of a sweep, one a task. Written by `runner run --launcher slurm`, which submits it under a name\n"
        "# that is looked for first. By hand, one run without Slurm: sh THIS-FILE 0\n"
        "#SBATCH --job-name=%s\n"
        "#SBATCH --array=0-%zu",
        script->tasks, script->name, script->tasks - 1);
    if (script->at_once)
        fprintf(out, "%%%zu", script->at_once);
    fprintf(out,
            "\n#SBATCH --output=\"%s\"\n"
            "#SBATCH --open-mode=append\n"
            "#SBATCH --ntasks=1\n"
            "#SBATCH --requeue\n",
            script->log);
    for (size_t i = 0; i < script->setting_counts[0]; i++)
        if (!key_in(script->settings[0][i], script->settings[1], script->setting_counts[1]))
            setting_print(script->settings[0][i], out);
    for (size_t i = 0; i < script->setting_counts[1]; i++)
        setting_print(script->settings[1][i], out);
    fprintf(out, "\nOFFSET=%zu # the array's first line of the list\n", script->offset);
    fputs("exec ", out);
    word_print(program, out);
    fputs(" work --index $((OFFSET + ${SLURM_ARRAY_TASK_ID:-$1})) \\\n    --claim ", out);
    word_print(script->claim, out);
    fprintf(out, " \\\n    --token %s --task ", script->token);
    word_print(script->list, out);
    fputc('\n', out);
}

bool launcher_script_write(const struct launcher_script *script, struct error *err)
{
    struct file_writer writer;
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return error_set(err, "cannot find this program's own path: %s", strerror(errno));
    program[length] = 0;
    if (strpbrk(script->log, "\"\\\n"))
        return error_set(err, "'%s' has a quote, a backslash or a line break: Slurm cannot write logs there",
                         script->log);
    if (!file_writer_open(&writer, script->path, err))
        return false;
    script_print(script, program, writer.stream);
    bool ok = file_writer_commit(&writer, err);
    file_writer_abandon(&writer);
    return ok;
}
