/* The model families of the Hugging Face world that our core can compute: what their tensors are called there.
 *
 * To add one: (1) its rows and its entry in hf_architecture.c; (2) the keys of its config.json in hf_keys.c. */
#ifndef RUNNER_HF_ARCHITECTURE_H
#define RUNNER_HF_ARCHITECTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hf_needs { HF_ALWAYS, HF_ATTENTION_BIAS, HF_FEED_FORWARD_BIAS }; /* which setting a tensor hangs on */

/* One tensor of ours and where its numbers are there. A '*' in a name is the block's number. */
struct hf_tensor {
    const char *ours, *theirs;
    enum hf_needs needs;
    bool transposed; /* theirs is [inputs, outputs] */
    int part, parts; /* outputs are the part-th of so many equal parts; parts 0 = the whole */
};

struct hf_architecture {
    const char *name;       /* in "architectures": "LlamaForCausalLM" */
    const char *model_type; /* "llama" */
    const char *prefix;     /* of every name but the head's; files saved from the bare model lack it */
    const struct hf_tensor *tensors;
    size_t tensor_count;
    const char *const *buffers; /* saved besides by some versions, and computed anew by every reader; ends with NULL */
};

extern const struct hf_architecture hf_llama, hf_qwen3, hf_gpt2;
extern const struct hf_architecture *const hf_architectures[]; /* ends with NULL */

/* NULL when there is none of that name. */
const struct hf_architecture *hf_architecture_find(const char *name);

/* The row of one of our tensors ("blocks.3.attention.query.weight") and its block's number (-1: none); NULL when the
 * architecture has no such tensor. */
const struct hf_tensor *hf_tensor_find(const struct hf_architecture *architecture, const char *ours, int64_t *block);

/* Their name of a row: "model.layers.3.self_attn.q_proj.weight". bare: without the prefix. Returns buf. */
enum { HF_NAME_SIZE = 128 };
const char *hf_tensor_name(const struct hf_architecture *architecture, const struct hf_tensor *tensor, int64_t block,
                           bool bare, char buf[HF_NAME_SIZE]);

/* Whether name is pattern with a number in place of '*', as it is written without zeros in front. */
bool hf_name_matches(const char *pattern, const char *name, int64_t *number);

#endif
