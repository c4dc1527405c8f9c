/* Which Hugging Face architecture a variant is, and its config.json. */
#include <stdio.h>
#include <string.h>

#include "runner/hf_export.h"

#define DECODERS "Hugging Face's decoders"

/* ---- the name ---- */

enum { FOR_LLAMA = 1, FOR_QWEN3 = 2, FOR_GPT2 = 4, FOR_ALL = 7 };

/* What a knob must be. met: NULL for a choice or boolean that must be `choice`. */
struct requirement {
    int architectures, choice;
    const char *knob;
    bool (*met)(const struct config *config);
    const char *needs;
};

static bool one_depth(const struct config *config)
{
    return config->model.mtp_depth == 1;
}

static bool tokens_of_bytes(const struct config *config)
{
    return config->tokenizer.kind != TOKENIZER_CHAR;
}

static bool as_many_kv_heads(const struct config *config)
{
    return !config->model.kv_heads || config->model.kv_heads == config->model.n_heads;
}

static bool heads_fill_width(const struct config *config)
{
    struct model_shape shape = model_shape_of(&config->model, 1);
    return shape.head_dim * shape.n_heads == shape.d_model;
}

/* To add an architecture: its rows here, its keys below, its tensors in hf_architecture.c. */
static const struct requirement requirements[] = {
    {FOR_ALL, RESIDUAL_PRE, "model.residual", NULL, "pre"},
    {FOR_ALL, 0, "model.mtp_depth", one_depth, "1: there is no place for adapters of further depths"},
    {FOR_ALL, 0, "data.tokenizer.kind", tokens_of_bytes, "bpe or byte: tokenizer.json holds tokens of bytes"},
    {FOR_LLAMA | FOR_QWEN3, NORM_RMSNORM, "model.norm", NULL, "rmsnorm"},
    {FOR_LLAMA | FOR_QWEN3, FEED_FORWARD_SWIGLU, "model.feed_forward", NULL, "swiglu"},
    {FOR_LLAMA | FOR_QWEN3, POSITION_ROPE, "model.position", NULL, "rope"},
    {FOR_QWEN3, false, "model.linear_bias", NULL, "false: its feed-forward matrices have no bias"},
    {FOR_GPT2, NORM_LAYERNORM, "model.norm", NULL, "layernorm"},
    {FOR_GPT2, FEED_FORWARD_GELU_TANH, "model.feed_forward", NULL, "gelu_tanh"},
    {FOR_GPT2, POSITION_LEARNED, "model.position", NULL, "learned"},
    {FOR_GPT2, 0, "model.kv_heads", as_many_kv_heads, "0, or as many as n_heads"},
    {FOR_GPT2, 0, "model.head_dim", heads_fill_width, "0, or d_model / n_heads"},
    {FOR_GPT2, false, "model.qk_norm", NULL, "false"},
};
enum { REQUIREMENTS = sizeof requirements / sizeof *requirements };

static bool requirement_met(const struct requirement *row, const struct config *config)
{
    const struct knob *knob = knob_find(row->knob);
    if (row->met)
        return row->met(config);
    union knob_value value = knob_get(knob, config);
    return knob->kind == KNOB_BOOLEAN ? value.boolean == (bool)row->choice : value.choice == row->choice;
}

/* Problems with the rows of `who`, those of everybody under one name for all. */
static size_t requirements_check(const struct config *config, int who, const char *name, struct problems *problems)
{
    size_t failed = 0;
    char text[KNOB_TEXT_SIZE];
    for (int i = 0; i < REQUIREMENTS; i++) {
        const struct requirement *row = &requirements[i];
        bool asked = who == FOR_ALL ? row->architectures == FOR_ALL
                                    : row->architectures != FOR_ALL && (row->architectures & who);
        if (!asked || requirement_met(row, config))
            continue;
        const struct knob *knob = knob_find(row->knob);
        failed++;
        problem_add(problems, (struct place){.file = NULL}, "%s is %s: %s %s %s", row->knob,
                    knob_format(knob, knob_get(knob, config), text), name, who == FOR_ALL ? "need" : "needs",
                    row->needs);
    }
    return failed;
}

const struct hf_architecture *hf_export_architecture(const struct config *config, struct problems *problems)
{
    struct problems rotary, learned;
    const struct hf_architecture *llama = config->model.qk_norm ? &hf_qwen3 : &hf_llama, *found = NULL;
    problems_init(&rotary);
    problems_init(&learned);
    bool all = requirements_check(config, FOR_ALL, DECODERS, problems) == 0;
    if (requirements_check(config, config->model.qk_norm ? FOR_QWEN3 : FOR_LLAMA, llama->name, &rotary) == 0)
        found = llama;
    else if (requirements_check(config, FOR_GPT2, hf_gpt2.name, &learned) == 0)
        found = &hf_gpt2;
    const struct problems *lists[] = {&rotary, &learned};
    for (size_t k = 0; k < 2 && !found; k++)
        for (size_t i = 0; i < lists[k]->count; i++)
            problem_add(problems, (struct place){.file = NULL}, "%s", lists[k]->items[i].text);
    problems_release(&rotary);
    problems_release(&learned);
    return all ? found : NULL;
}

/* ---- config.json ---- */

static void put_integer(json_t *root, const char *key, int64_t value)
{
    json_put(root, key, json_integer(value));
}

static void put_number(json_t *root, const char *key, double value)
{
    json_put(root, key, json_from_double(value));
}

static void put_bool(json_t *root, const char *key, bool value)
{
    json_put(root, key, json_boolean(value));
}

static void put_text(json_t *root, const char *key, const char *value)
{
    json_put(root, key, json_from_text(value));
}

/* rope_theta and rope_scaling: version 5 turns them into its rope_parameters. */
static void put_rope(json_t *root, const struct model_config *config)
{
    json_t *scaling = json_null();
    put_number(root, "rope_theta", config->rope_base);
    if (config->rope_scale > 1 || config->rope_scale < 1) {
        scaling = json_object();
        put_text(scaling, "rope_type", "linear");
        put_number(scaling, "factor", config->rope_scale);
    }
    json_put(root, "rope_scaling", scaling);
    if (config->rope_layout == ROPE_ADJACENT)
        put_text(root, "runner_rope_layout", "adjacent");
}

/* Else the reference library takes its default and warns of a window that is not used. */
static void put_unused_window(json_t *root)
{
    put_bool(root, "use_sliding_window", false);
    json_put(root, "sliding_window", json_null());
}

static void put_llama(json_t *root, const struct model_config *config, const struct model_shape *shape)
{
    put_integer(root, "hidden_size", shape->d_model);
    put_integer(root, "intermediate_size", shape->ff_hidden);
    put_integer(root, "num_hidden_layers", shape->n_layers);
    put_integer(root, "num_attention_heads", shape->n_heads);
    put_integer(root, "num_key_value_heads", shape->kv_heads);
    put_integer(root, "head_dim", shape->head_dim);
    put_text(root, "hidden_act", "silu");
    put_integer(root, "max_position_embeddings", shape->context_length);
    put_number(root, "rms_norm_eps", shape->norm_epsilon);
    put_rope(root, config);
    put_bool(root, "attention_bias", shape->linear_bias);
    if (shape->qk_norm)
        put_unused_window(root);
    else
        put_bool(root, "mlp_bias", shape->linear_bias);
    put_number(root, "attention_dropout", config->dropout);
}

static void put_gpt2(json_t *root, const struct model_config *config, const struct model_shape *shape)
{
    static const char *const dropouts[] = {"embd_pdrop", "attn_pdrop", "resid_pdrop"};
    put_integer(root, "n_embd", shape->d_model);
    put_integer(root, "n_inner", shape->ff_hidden);
    put_integer(root, "n_layer", shape->n_layers);
    put_integer(root, "n_head", shape->n_heads);
    put_integer(root, "n_positions", shape->context_length);
    put_text(root, "activation_function", "gelu_new");
    put_number(root, "layer_norm_epsilon", shape->norm_epsilon);
    for (size_t i = 0; i < sizeof dropouts / sizeof *dropouts; i++)
        put_number(root, dropouts[i], config->dropout);
}

static void put_tokens(json_t *root, const struct tokenizer *tokenizer)
{
    put_integer(root, "bos_token_id", tokenizer_bos(tokenizer));
    put_integer(root, "eos_token_id", tokenizer_eos(tokenizer));
    put_integer(root, "pad_token_id", tokenizer_pad(tokenizer));
}

json_t *hf_export_config_json(const struct hf_architecture *architecture, const struct hf_export *model)
{
    const struct model_config *config = &model->config->model;
    struct model_shape shape = model_shape_of(config, tokenizer_vocab_size(model->tokenizer));
    json_t *root = json_object(), *names = json_array();
    json_push(names, json_from_text(architecture->name));
    json_put(root, "architectures", names);
    put_text(root, "model_type", architecture->model_type);
    put_integer(root, "vocab_size", shape.vocab_size);
    if (architecture == &hf_gpt2)
        put_gpt2(root, config, &shape);
    else
        put_llama(root, config, &shape);
    put_bool(root, "tie_word_embeddings", shape.tied_embeddings);
    put_number(root, "initializer_range", config->init_std);
    put_bool(root, "use_cache", true);
    put_tokens(root, model->tokenizer);
    put_text(root, "torch_dtype", "float32");
    return root;
}

json_t *hf_export_generation_json(const struct hf_export *model)
{
    json_t *root = json_object();
    put_tokens(root, model->tokenizer);
    return root;
}
