/* Exports: which variants have a name, that what is read back computes the same bits, and folders whole or not at all.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/model.h"
#include "runner/file.h"
#include "runner/hf_export.h"
#include "runner/hf_weights.h"
#include "runner/rope_rows.h"
#include "tests/core_case.h"
#include "tests/folder_case.h"

static const char base[] = "model.context_length=16 model.d_model=24 model.n_heads=4 model.n_layers=2 "
                           "data.tokenizer.kind=byte";
static const char llama[] = "model.norm=rmsnorm model.feed_forward=swiglu model.position=rope";
static const char gpt2[] = "model.feed_forward=gelu_tanh";

TestSuite(hf_export, .init = folder_open, .fini = folder_close);

/* ---- names ---- */

static struct config config_with(const char *first, const char *second)
{
    char settings[512];
    snprintf(settings, sizeof settings, "%s %s", first, second);
    return config_of(base, settings);
}

static void name_check(const char *first, const char *second, const char *want)
{
    struct config config = config_with(first, second);
    struct problems problems;
    problems_init(&problems);
    const struct hf_architecture *found = hf_export_architecture(&config, &problems);
    cr_expect(found && problems.count == 0, "'%s': %s", second, problems.count ? problems.items[0].text : "none");
    if (found)
        cr_expect_str_eq(found->name, want, "'%s'", second);
    problems_release(&problems);
}

Test(hf_export, variants_have_the_name_of_their_architecture)
{
    name_check(llama, "", "LlamaForCausalLM");
    name_check(llama, "model.kv_heads=1 model.tied_embeddings=false model.head_dim=10", "LlamaForCausalLM");
    name_check(llama, "model.linear_bias=true model.rope_scale=4 model.dropout=0.1", "LlamaForCausalLM");
    name_check(llama, "model.qk_norm=true model.kv_heads=2", "Qwen3ForCausalLM");
    name_check(gpt2, "", "GPT2LMHeadModel");
    name_check(gpt2, "model.linear_bias=true model.tied_embeddings=false model.ff_hidden=40", "GPT2LMHeadModel");
    name_check(gpt2, "model.kv_heads=4 model.head_dim=6", "GPT2LMHeadModel");
}

/* All problems, a line each. */
static void refusal_check(const char *first, const char *second, const char *want)
{
    struct config config = config_with(first, second);
    struct problems problems;
    char got[2048] = "";
    size_t used = 0;
    problems_init(&problems);
    cr_expect_null(hf_export_architecture(&config, &problems), "'%s'", second);
    for (size_t i = 0; i < problems.count; i++)
        used += (size_t)snprintf(got + used, sizeof got - used, "%s\n", problems.items[i].text);
    cr_expect_str_eq(got, want, "'%s' gives\n%s", second, got);
    problems_release(&problems);
}

Test(hf_export, others_are_refused_with_every_knob_that_stands_against_it)
{
    refusal_check("", "",
                  "model.norm is layernorm: LlamaForCausalLM needs rmsnorm\n"
                  "model.feed_forward is gelu: LlamaForCausalLM needs swiglu\n"
                  "model.position is learned: LlamaForCausalLM needs rope\n"
                  "model.feed_forward is gelu: GPT2LMHeadModel needs gelu_tanh\n");
    refusal_check(llama, "model.residual=post model.mtp_depth=2",
                  "model.residual is post: Hugging Face's decoders need pre\n"
                  "model.mtp_depth is 2: Hugging Face's decoders need 1: there is no place for adapters of further "
                  "depths\n");
    refusal_check(llama, "data.tokenizer.kind=char",
                  "data.tokenizer.kind is char: Hugging Face's decoders need bpe or byte: tokenizer.json holds tokens "
                  "of bytes\n");
    refusal_check(llama, "model.qk_norm=true model.linear_bias=true",
                  "model.linear_bias is true: Qwen3ForCausalLM needs false: its feed-forward matrices have no bias\n"
                  "model.norm is rmsnorm: GPT2LMHeadModel needs layernorm\n"
                  "model.feed_forward is swiglu: GPT2LMHeadModel needs gelu_tanh\n"
                  "model.position is rope: GPT2LMHeadModel needs learned\n"
                  "model.qk_norm is true: GPT2LMHeadModel needs false\n");
    refusal_check(gpt2, "model.kv_heads=2 model.head_dim=10 model.position=none",
                  "model.norm is layernorm: LlamaForCausalLM needs rmsnorm\n"
                  "model.feed_forward is gelu_tanh: LlamaForCausalLM needs swiglu\n"
                  "model.position is none: LlamaForCausalLM needs rope\n"
                  "model.position is none: GPT2LMHeadModel needs learned\n"
                  "model.kv_heads is 2: GPT2LMHeadModel needs 0, or as many as n_heads\n"
                  "model.head_dim is 10: GPT2LMHeadModel needs 0, or d_model / n_heads\n");
}

/* ---- there and back ---- */

enum { T = 16, V = 259 };

struct source {
    struct config config;
    struct tokenizer *tokenizer;
    struct model *model;
};

/* Every parameter away from where it starts. */
static struct source source_of(const char *first, const char *second)
{
    struct source source = {.config = config_with(first, second)};
    struct error err;
    source.tokenizer = tokenizer_train(&source.config.tokenizer, NULL, 0, &err);
    source.model = model_create(&source.config.model, V, T, &err);
    cr_assert(source.tokenizer && source.model);
    model_init(source.model, 3);
    size_t count = model_tensors(source.model)->total;
    real *noise = memory_alloc(count, sizeof *noise);
    struct random_stream stream = random_stream_make(3, "test");
    random_normal_fill(&stream, 0.2, noise, count);
    for (size_t i = 0; i < count; i++)
        model_parameters(source.model)[i] += noise[i];
    memory_free(noise);
    return source;
}

static void source_release(struct source *source)
{
    tokenizer_free(source->tokenizer);
    model_free(source->model);
}

static bool export_to(const struct source *source, const char *path, struct error *err)
{
    struct problems problems;
    problems_init(&problems);
    const struct hf_architecture *architecture = hf_export_architecture(&source->config, &problems);
    cr_assert_not_null(architecture, "%s", problems.count ? problems.items[0].text : "");
    problems_release(&problems);
    struct hf_export model = {&source->config, source->tokenizer, model_tensors(source->model),
                              model_parameters(source->model)};
    return hf_export_write(path, architecture, &model, err);
}

/* The folder as a model of ours; split: its rows taken as they are in the file. No problem and no note is expected. */
static struct model *model_back(const char *path, bool split)
{
    struct problems problems;
    struct hf_config config;
    struct error err;
    problems_init(&problems);
    char *json = path_join(path, "config.json");
    cr_assert(hf_config_read(json, &config, &problems), "%s", problems.items[0].text);
    if (split)
        config.config.model.rope_layout = ROPE_SPLIT;
    struct hf_weights *weights = hf_weights_open(path, &config, &problems);
    cr_assert_not_null(weights, "%s", problems.count ? problems.items[0].text : "");
    cr_assert_eq(problems.count, 0, "%s", problems.count ? problems.items[0].text : "");
    struct model *model = model_create(&config.config.model, config.vocab_size, T, &err);
    cr_assert_not_null(model, "%s", err.text);
    hf_weights_load(weights, model);
    hf_weights_close(weights);
    hf_config_release(&config);
    problems_release(&problems);
    memory_free(json);
    return model;
}

static real *logits_of(struct model *model)
{
    int32_t tokens[T];
    real *logits = memory_alloc(T * V, sizeof *logits);
    fill_tokens("export", tokens, T, V);
    model_logits(model, tokens, 1, T, logits);
    return logits;
}

static void there_and_back(const char *first, const char *second)
{
    struct source source = source_of(first, second);
    struct error err;
    char path[128];
    snprintf(path, sizeof path, "%s/model", folder);
    cr_assert(export_to(&source, path, &err), "%s", err.text);
    struct model *back = model_back(path, false);
    real *want = logits_of(source.model), *got = logits_of(back);
    cr_expect_eq(memcmp(want, got, T * V * sizeof *want), 0, "'%s %s': other bits", first, second);
    model_free(back);
    memory_free(got);
    /* The same function with the rows in the order of the file, as every other reader has it; sums of float32 in
     * another order: measured at 5e-7. */
    back = model_back(path, true);
    got = logits_of(back);
    double difference = 0, size = 0;
    for (int i = 0; i < T * V; i++) {
        difference += pow((double)got[i] - (double)want[i], 2);
        size += pow((double)want[i], 2);
    }
    cr_expect_leq(sqrt(difference / size), 1e-5, "'%s %s': another function", first, second);
    memory_free(want);
    memory_free(got);
    model_free(back);
    source_release(&source);
    folder_remove(path);
}

Test(hf_export, what_is_read_back_gives_the_same_logits_bit_for_bit)
{
    static const char *const as_llama[] = {
        "",
        "model.rope_layout=split",
        "model.kv_heads=2 model.head_dim=10 model.rope_base=500 model.rope_scale=2.5",
        "model.tied_embeddings=false model.norm_epsilon=1e-3 model.kv_heads=1",
        "model.linear_bias=true",
        "model.qk_norm=true",
        "model.qk_norm=true model.rope_layout=split model.kv_heads=2 model.head_dim=8 model.tied_embeddings=false",
    };
    static const char *const as_gpt2[] = {"", "model.linear_bias=true",
                                          "model.tied_embeddings=false model.ff_hidden=40"};
    for (size_t i = 0; i < sizeof as_llama / sizeof *as_llama; i++)
        there_and_back(llama, as_llama[i]);
    for (size_t i = 0; i < sizeof as_gpt2 / sizeof *as_gpt2; i++)
        there_and_back(gpt2, as_gpt2[i]);
}

Test(hf_export, rows_of_neighbours_move_to_halves_and_back)
{
    static const real in[16] = {0, 10, 1, 11, 2, 12, 3, 13, 4, 14, 5, 15, 6, 16, 7, 17}; /* two heads of 4 rows of 2 */
    static const real want[16] = {0, 10, 2, 12, 1, 11, 3, 13, 4, 14, 6, 16, 5, 15, 7, 17};
    real out[16], back[16];
    rope_rows_to_split(out, in, 8, 2, 4);
    cr_assert_arr_eq(out, want, sizeof want);
    rope_rows_to_adjacent(back, out, 8, 2, 4);
    cr_assert_arr_eq(back, in, sizeof in);
    cr_assert(rope_rows_has("blocks.3.attention.key_norm.weight"));
    cr_assert_not(rope_rows_has("blocks.3.attention.value.weight"));
    cr_assert_not(rope_rows_has("blocks.3.attention_norm.weight"));
}

/* ---- the folder ---- */

static size_t entries_in(const char *path)
{
    size_t count = 0;
    DIR *directory = opendir(path);
    cr_assert_not_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count - 2;
}

Test(hf_export, a_new_and_an_empty_folder_are_filled)
{
    struct source source = source_of(gpt2, "");
    struct error err;
    char path[128];
    snprintf(path, sizeof path, "%s/a/b/", folder);
    cr_assert(export_to(&source, path, &err), "%s", err.text);
    cr_assert_eq(entries_in(path), 5);
    snprintf(path, sizeof path, "%s/empty", folder);
    cr_assert_eq(mkdir(path, 0700), 0);
    cr_assert(export_to(&source, path, &err), "%s", err.text);
    cr_assert_eq(entries_in(path), 5);
    cr_assert_eq(entries_in(folder), 2, "nothing is left beside them");
    source_release(&source);
}

static void place_refused(const struct source *source, const char *path, const char *says)
{
    struct error err = {""};
    size_t before = entries_in(folder);
    cr_expect_not(export_to(source, path, &err), "%s", path);
    cr_expect_not_null(strstr(err.text, says), "%s", err.text);
    cr_expect_eq(entries_in(folder), before, "nothing is left beside '%s'", path);
}

Test(hf_export, what_is_there_already_is_not_touched)
{
    struct source source = source_of(gpt2, "");
    struct error err;
    char path[96], inside[128];
    snprintf(path, sizeof path, "%s/full", folder);
    snprintf(inside, sizeof inside, "%s/notes.txt", path);
    cr_assert(folder_make(path, &err) && file_write(inside, "x", 1, &err));
    place_refused(&source, path, "holds 'notes.txt': expected a new or an empty folder");
    place_refused(&source, inside, "is a file: expected a new or an empty folder");
    cr_assert_eq(entries_in(path), 1);
    char link[96];
    snprintf(link, sizeof link, "%s/link", folder);
    cr_assert_eq(symlink(folder, link), 0);
    place_refused(&source, link, "is a symbolic link");
    source_release(&source);
}
