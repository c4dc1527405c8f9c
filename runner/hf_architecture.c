/* Names of tensors in Llama, Qwen3 and GPT-2 folders. */
#include "runner/hf_architecture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Llama and Qwen3: the norms of queries and keys are the latter's. */
static const struct hf_tensor llama_tensors[] = {
    {.ours = "token_embedding.weight", .theirs = "embed_tokens.weight"},
    {.ours = "blocks.*.attention_norm.weight", .theirs = "layers.*.input_layernorm.weight"},
    {.ours = "blocks.*.attention.query.weight", .theirs = "layers.*.self_attn.q_proj.weight"},
    {.ours = "blocks.*.attention.query.bias", .theirs = "layers.*.self_attn.q_proj.bias", .needs = HF_ATTENTION_BIAS},
    {.ours = "blocks.*.attention.key.weight", .theirs = "layers.*.self_attn.k_proj.weight"},
    {.ours = "blocks.*.attention.key.bias", .theirs = "layers.*.self_attn.k_proj.bias", .needs = HF_ATTENTION_BIAS},
    {.ours = "blocks.*.attention.value.weight", .theirs = "layers.*.self_attn.v_proj.weight"},
    {.ours = "blocks.*.attention.value.bias", .theirs = "layers.*.self_attn.v_proj.bias", .needs = HF_ATTENTION_BIAS},
    {.ours = "blocks.*.attention.output.weight", .theirs = "layers.*.self_attn.o_proj.weight"},
    {.ours = "blocks.*.attention.output.bias", .theirs = "layers.*.self_attn.o_proj.bias", .needs = HF_ATTENTION_BIAS},
    {.ours = "blocks.*.attention.query_norm.weight", .theirs = "layers.*.self_attn.q_norm.weight"},
    {.ours = "blocks.*.attention.key_norm.weight", .theirs = "layers.*.self_attn.k_norm.weight"},
    {.ours = "blocks.*.feed_forward_norm.weight", .theirs = "layers.*.post_attention_layernorm.weight"},
    {.ours = "blocks.*.feed_forward.up.weight", .theirs = "layers.*.mlp.up_proj.weight"},
    {.ours = "blocks.*.feed_forward.up.bias", .theirs = "layers.*.mlp.up_proj.bias", .needs = HF_FEED_FORWARD_BIAS},
    {.ours = "blocks.*.feed_forward.gate.weight", .theirs = "layers.*.mlp.gate_proj.weight"},
    {.ours = "blocks.*.feed_forward.gate.bias", .theirs = "layers.*.mlp.gate_proj.bias", .needs = HF_FEED_FORWARD_BIAS},
    {.ours = "blocks.*.feed_forward.down.weight", .theirs = "layers.*.mlp.down_proj.weight"},
    {.ours = "blocks.*.feed_forward.down.bias", .theirs = "layers.*.mlp.down_proj.bias", .needs = HF_FEED_FORWARD_BIAS},
    {.ours = "final_norm.weight", .theirs = "norm.weight"},
    {.ours = "lm_head.weight", .theirs = "lm_head.weight"},
};

/* Linear layers of this family are "Conv1D": weights [inputs, outputs], query, key and value side by side. */
static const struct hf_tensor gpt2_tensors[] = {
    {.ours = "token_embedding.weight", .theirs = "wte.weight"},
    {.ours = "position_embedding.weight", .theirs = "wpe.weight"},
    {.ours = "blocks.*.attention_norm.weight", .theirs = "h.*.ln_1.weight"},
    {.ours = "blocks.*.attention_norm.bias", .theirs = "h.*.ln_1.bias"},
    {"blocks.*.attention.query.weight", "h.*.attn.c_attn.weight", HF_ALWAYS, true, 0, 3},
    {"blocks.*.attention.key.weight", "h.*.attn.c_attn.weight", HF_ALWAYS, true, 1, 3},
    {"blocks.*.attention.value.weight", "h.*.attn.c_attn.weight", HF_ALWAYS, true, 2, 3},
    {"blocks.*.attention.query.bias", "h.*.attn.c_attn.bias", HF_ALWAYS, false, 0, 3},
    {"blocks.*.attention.key.bias", "h.*.attn.c_attn.bias", HF_ALWAYS, false, 1, 3},
    {"blocks.*.attention.value.bias", "h.*.attn.c_attn.bias", HF_ALWAYS, false, 2, 3},
    {.ours = "blocks.*.attention.output.weight", .theirs = "h.*.attn.c_proj.weight", .transposed = true},
    {.ours = "blocks.*.attention.output.bias", .theirs = "h.*.attn.c_proj.bias"},
    {.ours = "blocks.*.feed_forward_norm.weight", .theirs = "h.*.ln_2.weight"},
    {.ours = "blocks.*.feed_forward_norm.bias", .theirs = "h.*.ln_2.bias"},
    {.ours = "blocks.*.feed_forward.up.weight", .theirs = "h.*.mlp.c_fc.weight", .transposed = true},
    {.ours = "blocks.*.feed_forward.up.bias", .theirs = "h.*.mlp.c_fc.bias"},
    {.ours = "blocks.*.feed_forward.down.weight", .theirs = "h.*.mlp.c_proj.weight", .transposed = true},
    {.ours = "blocks.*.feed_forward.down.bias", .theirs = "h.*.mlp.c_proj.bias"},
    {.ours = "final_norm.weight", .theirs = "ln_f.weight"},
    {.ours = "final_norm.bias", .theirs = "ln_f.bias"},
    {.ours = "lm_head.weight", .theirs = "lm_head.weight"},
};

static const char *const rotary_buffers[] = {"rotary_emb.inv_freq", "layers.*.self_attn.rotary_emb.inv_freq", NULL};
static const char *const gpt2_buffers[] = {"h.*.attn.bias", "h.*.attn.masked_bias", NULL};

const struct hf_architecture hf_llama = {"LlamaForCausalLM",   "llama",       "model.", llama_tensors,
                                         COUNT(llama_tensors), rotary_buffers};
const struct hf_architecture hf_qwen3 = {"Qwen3ForCausalLM",   "qwen3",       "model.", llama_tensors,
                                         COUNT(llama_tensors), rotary_buffers};
const struct hf_architecture hf_gpt2 = {"GPT2LMHeadModel",   "gpt2",      "transformer.", gpt2_tensors,
                                        COUNT(gpt2_tensors), gpt2_buffers};
const struct hf_architecture *const hf_architectures[] = {&hf_llama, &hf_qwen3, &hf_gpt2, NULL};

const struct hf_architecture *hf_architecture_find(const char *name)
{
    for (size_t i = 0; hf_architectures[i]; i++)
        if (strcmp(hf_architectures[i]->name, name) == 0)
            return hf_architectures[i];
    return NULL;
}

bool hf_name_matches(const char *pattern, const char *name, int64_t *number)
{
    const char *star = strchr(pattern, '*');
    *number = -1;
    if (!star)
        return strcmp(pattern, name) == 0;
    size_t before = (size_t)(star - pattern);
    if (strncmp(pattern, name, before) != 0)
        return false;
    name += before;
    size_t digits = strspn(name, "0123456789");
    if (digits == 0 || digits > 9 || (digits > 1 && *name == '0') || strcmp(star + 1, name + digits) != 0)
        return false;
    *number = strtoll(name, NULL, 10);
    return true;
}

const struct hf_tensor *hf_tensor_find(const struct hf_architecture *architecture, const char *ours, int64_t *block)
{
    for (size_t i = 0; i < architecture->tensor_count; i++)
        if (hf_name_matches(architecture->tensors[i].ours, ours, block))
            return &architecture->tensors[i];
    return NULL;
}

const char *hf_tensor_name(const struct hf_architecture *architecture, const struct hf_tensor *tensor, int64_t block,
                           bool bare, char buf[HF_NAME_SIZE])
{
    bool head = strcmp(tensor->theirs, "lm_head.weight") == 0;
    const char *star = strchr(tensor->theirs, '*'), *prefix = bare || head ? "" : architecture->prefix;
    if (star)
        snprintf(buf, HF_NAME_SIZE, "%s%.*s%" PRId64 "%s", prefix, (int)(star - tensor->theirs), tensor->theirs, block,
                 star + 1);
    else
        snprintf(buf, HF_NAME_SIZE, "%s%s", prefix, tensor->theirs);
    return buf;
}
