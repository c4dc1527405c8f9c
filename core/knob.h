/* The settings that make a run what it is, as one table walked everywhere: parsing, checking, help, JSON, database.
 *
 *   struct config config;
 *   config_init(&config);
 *   union knob_value value;
 *   const struct knob *knob = knob_find("model.norm");
 *   if (!knob_parse(knob, "rmsnorm", false, &value, &err)) ...
 *   knob_set(knob, &config, value); */
#ifndef CORE_KNOB_H
#define CORE_KNOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum { RESIDUAL_PRE, RESIDUAL_POST };
/* clang-format off */
enum {
#define NORM(NAME, ...) NORM_##NAME,
#include "core/parts.def"
    NORM_COUNT
};
enum {
#define ACTIVATION(NAME, ...) FEED_FORWARD_##NAME,
#include "core/parts.def"
    FEED_FORWARD_COUNT
};
/* clang-format on */
enum { POSITION_LEARNED, POSITION_SINUSOIDAL, POSITION_ROPE, POSITION_NONE };
enum { ROPE_ADJACENT, ROPE_SPLIT };
enum { PRECISION_FP32, PRECISION_BF16X3, PRECISION_BF16 };
enum { TOKENIZER_BPE, TOKENIZER_CHAR, TOKENIZER_BYTE };

/* One struct a group, one field a row: struct model_config, training_config, evaluation_config, data_config,
 * tokenizer_config. */
#define GROUP(group) struct group##_config {
#define INTEGER(group, field, ...) int64_t field;
#define NUMBER(group, field, ...) double field;
#define BOOLEAN(group, field, ...) bool field;
#define CHOICE(group, field, ...) int field;
#define END_GROUP                                                                                                      \
    }                                                                                                                  \
    ;
#include "core/knobs.def"
#undef GROUP
#undef INTEGER
#undef NUMBER
#undef BOOLEAN
#undef CHOICE
#undef END_GROUP

struct config {
    struct model_config model;
    struct training_config training;
    struct evaluation_config evaluation;
    struct data_config data;
    struct tokenizer_config tokenizer;
};

enum knob_kind { KNOB_INTEGER, KNOB_NUMBER, KNOB_BOOLEAN, KNOB_CHOICE };

union knob_value {
    int64_t integer;
    double number;
    bool boolean;
    int choice;
};

struct knob {
    const char *name;  /* full path, as in YAML and --set: "model.norm", "data.tokenizer.kind" */
    const char *group; /* path without the field: "model" */
    const char *field;
    const char *doc;
    enum knob_kind kind;
    size_t offset;             /* of the field in struct config */
    int64_t minimum, maximum;  /* integers */
    const char *range;         /* numbers: interval notation */
    const char *choices;       /* choices: "a|b|c" */
    union knob_value standard; /* the default */
};

extern const struct knob knobs[];
extern const size_t knob_count;

/* NULL when there is none. name is the full path. */
const struct knob *knob_find(const char *name);

/* Text as written in a file or after --set to a value, range checked. quoted: the YAML scalar was in quotes, so a
 * number, boolean or integer is refused. The message says what was written and what would be accepted. */
bool knob_parse(const struct knob *knob, const char *text, bool quoted, union knob_value *value, struct error *err);

union knob_value knob_get(const struct knob *knob, const struct config *config);
void knob_set(const struct knob *knob, struct config *config, union knob_value value);
bool knob_equal(const struct knob *knob, union knob_value a, union knob_value b);

/* Canonical text: shortest decimal that reads back the same, true/false, the choice's name. Returns buf. */
enum { KNOB_TEXT_SIZE = 64 };
const char *knob_format(const struct knob *knob, union knob_value value, char buf[KNOB_TEXT_SIZE]);

const char *knob_kind_name(enum knob_kind kind); /* "integer", "number", "boolean", "choice" */

/* What is accepted, for help and messages: "a whole number from 1 to 65536", "layernorm or rmsnorm". Returns buf. */
const char *knob_describe(const struct knob *knob, char *buf, size_t size);

/* All defaults. */
void config_init(struct config *config);

/* Combinations that cannot be trained (36 columns over 8 heads, odd rotary head, warmup longer than the run...).
 * Calls report once a problem with the knob to point at. Returns how many. */
size_t config_check(const struct config *config,
                    void (*report)(void *context, const struct knob *knob, const char *text), void *context);

/* The same of what is known: unknown, if not NULL, has knob_count entries and is true for each knob whose value could
 * not be read; a combination in which such a knob has a part is left out. */
size_t config_check_known(const struct config *config, const bool *unknown,
                          void (*report)(void *context, const struct knob *knob, const char *text), void *context);

/* Settings that mean the same become equal: derived sizes written out go back to 0, knobs that others make
 * meaningless (rope_base with learned positions) go back to their default. ignored, if not NULL, has knob_count
 * entries and is set true for each knob of the second sort that was not at its default. */
void config_canonicalize(struct config *config, bool *ignored);

/* What the settings mean for the model's form: every 0 replaced by what it stands for. */
struct model_shape {
    int64_t context_length, d_model, n_heads, kv_heads, head_dim, ff_hidden, n_layers, vocab_size, mtp_depth;
    double norm_epsilon;
    double qk_norm_epsilon; /* of the RMSNorm of queries and keys */
    int64_t ff_inputs;      /* matrices into the activation: 2 of a gated one (up, gate) */
    bool norm_bias;         /* norms have a bias beside the gain */
    bool learned_positions; /* position_embedding.weight exists */
    bool qk_norm, linear_bias, tied_embeddings;
};
struct model_shape model_shape_of(const struct model_config *model, int64_t vocab_size);

/* Radians a position of rotated pair `pair` of D / 2: 1 / (rope_scale * rope_base^(2 pair/D)). */
double rotation_speed(const struct model_config *model, int64_t pair, int64_t D);

/* Whether a number holds the angle of every position there can be. */
bool rotation_speed_fits(double speed);

#endif
