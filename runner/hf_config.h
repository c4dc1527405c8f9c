/* config.json of a Hugging Face model folder, in our settings.
 *
 *   struct hf_config config;
 *   if (hf_config_read("model/config.json", &config, &problems)) ... config.model, config.vocab_size
 *   hf_config_release(&config);
 *
 * What our core cannot compute is refused by its key. Both layouts are read: `rope_theta`, `rope_scaling`,
 * `torch_dtype`, and since version 5 of the reference library `rope_parameters`, `dtype`. */
#ifndef RUNNER_HF_CONFIG_H
#define RUNNER_HF_CONFIG_H

#include "core/knob.h"
#include "runner/hf_architecture.h"
#include "runner/problem.h"

struct hf_config {
    const struct hf_architecture *architecture;
    struct config config; /* its model: the rest is at the defaults */
    int64_t vocab_size;
    double *frequencies;                    /* [head_dim / 2] for model_set_frequencies(); NULL: those of rope_base */
    bool attention_bias, feed_forward_bias; /* which of the linear layers have one in the files */
};

/* False with problems that name all that is wrong; keys that are not known are named in a note. Owner: caller,
 * hf_config_release(), also after false. */
bool hf_config_read(const char *path, struct hf_config *config, struct problems *problems);
/* The same for text in memory; name is for messages. */
bool hf_config_parse(const char *name, const char *text, size_t size, struct hf_config *config,
                     struct problems *problems);
void hf_config_release(struct hf_config *config);

#endif
