/* runner export: a trained run as a Hugging Face folder. */
#include <inttypes.h>
#include <stdio.h>

#include "core/memory.h"
#include "runner/command.h"
#include "runner/file.h"
#include "runner/hf_export.h"
#include "runner/signals.h"
#include "runner/trained_run.h"

/* NULL after all that stands against it was told. */
static const struct hf_architecture *architecture_find(const struct trained_run *run)
{
    struct problems problems;
    problems_init(&problems);
    const struct hf_architecture *architecture = hf_export_architecture(&run->config, &problems);
    if (!architecture)
        message("runner: run %.12s is of no architecture that has a name in Hugging Face transformers:", run->key);
    problems_print(&problems, stderr);
    problems_release(&problems);
    return architecture;
}

static void files_print(const char *folder)
{
    for (size_t i = 0; hf_export_files[i]; i++) {
        char *path = path_join(folder, hf_export_files[i]);
        puts(path);
        memory_free(path);
    }
}

/* A signal meanwhile is put off until the folder is whole; a full disk is an error and no death. */
static bool folder_write(const struct trained_run *run, const struct hf_architecture *architecture, const char *folder,
                         struct error *err)
{
    int signals = signals_open(err);
    if (signals < 0)
        return false;
    real *parameters = memory_alloc(run->table->total, sizeof *parameters);
    trained_run_read(run, parameters);
    struct hf_export model = {&run->config, run->tokenizer, run->table, parameters};
    bool good = hf_export_write(folder, architecture, &model, err);
    memory_free(parameters);
    signals_close(signals);
    return good;
}

static enum exit_code run_export(const struct trained_run *run, const char *folder, struct error *err)
{
    const struct hf_architecture *architecture = architecture_find(run);
    if (!architecture)
        return EXIT_USAGE;
    if (!hf_export_place(folder, err)) {
        message("runner: %s", err->text);
        return EXIT_USAGE;
    }
    if (!folder_write(run, architecture, folder, err)) {
        message("runner: %s", err->text);
        return EXIT_ENVIRONMENT;
    }
    message("run %.12s as %s, %zu parameters", run->key, architecture->name, run->table->total);
    files_print(folder);
    return EXIT_DONE;
}

static int export_command(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    struct trained_run run;
    struct error err;
    enum exit_code code =
        trained_run_open(option_text(arguments, "db", "results/results.db"), arguments->positional[0], &run, &err);
    if (code == EXIT_DONE)
        code = run_export(&run, arguments->positional[1], &err);
    else
        message("runner: %s", err.text);
    trained_run_close(&run);
    return (int)code;
}

static const struct option export_options[] = {
    {.name = "db", .kind = OPTION_TEXT, .argument = "PATH", .doc = "the database; results/results.db when not given"},
    {0},
};

extern const struct command command_export;
const struct command command_export = {
    .name = "export",
    .arguments = "RUN DIR",
    .summary = "Write a trained run as a Hugging Face folder.",
    .help = "DIR, which must be new or empty, gets config.json, model.safetensors (float32),\n"
            "tokenizer.json and their companions, where the variant has a name there:\n"
            "\n"
            "  LlamaForCausalLM   pre, rmsnorm, swiglu, rope\n"
            "  Qwen3ForCausalLM   the same with qk_norm, without linear_bias\n"
            "  GPT2LMHeadModel    pre, layernorm, gelu_tanh, learned; no kv_heads or qk_norm\n"
            "\n"
            "Others are refused with every setting that stands against it. The files made are\n"
            "printed. Read back by `runner match --hf`, the logits are the same bit for bit.\n"
            "\n"
            "Example:\n"
            "  runner export day2-modern/modern/1337 exported",
    .options = export_options,
    .json = false,
    .minimum_arguments = 2,
    .maximum_arguments = 2,
    .run = export_command,
};
