/* What each key of a config.json means to us, as tables: one of every architecture, one of what all have. */
#ifndef RUNNER_HF_KEYS_H
#define RUNNER_HF_KEYS_H

#include "runner/hf_architecture.h"

enum hf_role {
    HF_FREE,         /* says nothing about the numbers */
    HF_KNOB,         /* the value of one of our knobs */
    HF_ONLY,         /* one of the accepted values, which are those we compute with */
    HF_VOCABULARY,   /* rows of the embedding */
    HF_ACTIVATION,   /* a name of the architecture's activations */
    HF_BIAS,         /* the linear layers of `part` have a bias */
    HF_LAYER_TYPES,  /* the kind of attention of each block */
    HF_ROPE,         /* read by hf_rope.c */
    HF_ARCHITECTURE, /* said before any other key */
};

enum hf_presence { HF_OPTIONAL, HF_NULLABLE, HF_REQUIRED };

struct hf_key {
    const char *name;
    enum hf_role role;
    const char *knob;     /* of HF_KNOB, and of HF_ROPE where one is set */
    const char *accepted; /* of HF_ONLY: JSON values, "false|null" */
    enum hf_presence presence;
    enum hf_needs part; /* of HF_BIAS */
};

/* The architecture's rows; ends with a row whose name is NULL. */
const struct hf_key *hf_keys_of(const struct hf_architecture *architecture);

/* Also among the keys that all have; NULL when none knows it. */
const struct hf_key *hf_key_find(const struct hf_architecture *architecture, const char *name);

struct hf_activation {
    const char *name;
    int feed_forward; /* FEED_FORWARD_* */
};

/* Ends with a row whose name is NULL. */
const struct hf_activation *hf_activations_of(const struct hf_architecture *architecture);

#endif
