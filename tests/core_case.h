/* Small configurations for tests of the core: settings as text over the defaults, every knob's other values, and the
 * combinations that people train. */
#ifndef TESTS_CORE_CASE_H
#define TESTS_CORE_CASE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/knob.h"
#include "core/random.h"

/* "model.norm=rmsnorm model.d_model=12 ..." over *config. */
static inline void config_apply(struct config *config, const char *settings)
{
    char text[1024], *rest = NULL;
    snprintf(text, sizeof text, "%s", settings);
    for (char *item = strtok_r(text, " ", &rest); item; item = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(item, '=');
        cr_assert_not_null(equals, "'%s' is no setting", item);
        *equals = 0;
        const struct knob *knob = knob_find(item);
        cr_assert_not_null(knob, "no knob is called '%s'", item);
        union knob_value value;
        struct error err;
        cr_assert(knob_parse(knob, equals + 1, false, &value, &err), "%s", err.text);
        knob_set(knob, config, value);
    }
}

static inline void config_refused(void *context, const struct knob *knob, const char *text)
{
    cr_assert_fail("'%s': %s: %s", (const char *)context, knob->name, text);
}

/* A configuration that can be trained. */
static inline struct config config_of(const char *base, const char *settings)
{
    struct config config;
    char all[1024];
    config_init(&config);
    config_apply(&config, base);
    config_apply(&config, settings);
    snprintf(all, sizeof all, "%s %s", base, settings);
    config_check(&config, config_refused, all);
    return config;
}

/* Another value for each knob whose values cannot be listed, fit for a small base (prime sizes where they can be).
 * needs: what must be set for the knob to mean anything. */
static const struct alternative {
    const char *name, *value, *needs;
} alternatives[] = {
    {"model.context_length", "11", ""},
    {"model.d_model", "36", ""},
    {"model.n_heads", "3", ""},
    {"model.n_layers", "3", ""},
    {"model.head_dim", "10", ""},
    {"model.kv_heads", "1", ""},
    {"model.ff_multiplier", "3", "model.ff_hidden=0"},
    {"model.ff_hidden", "7", ""},
    {"model.norm_epsilon", "0.001", ""},
    {"model.rope_base", "100", "model.position=rope"},
    {"model.rope_scale", "2.5", "model.position=rope"},
    {"model.dropout", "0.25", ""},
    {"model.init_std", "0.03", ""},
    {"model.mtp_depth", "2", ""},
    {"training.steps", "30", ""},
    {"training.batch_size", "3", ""},
    {"training.learning_rate", "1e-3", ""},
    {"training.min_learning_rate", "1e-4", ""},
    {"training.warmup_steps", "5", ""},
    {"training.weight_decay", "0.3", ""},
    {"training.beta1", "0.8", ""},
    {"training.beta2", "0.9", ""},
    {"training.adam_epsilon", "1e-3", ""},
    {"training.grad_clip", "0.01", ""},
};

static inline const struct alternative *alternative_of(const struct knob *knob)
{
    for (size_t i = 0; i < sizeof alternatives / sizeof alternatives[0]; i++)
        if (strcmp(alternatives[i].name, knob->name) == 0)
            return &alternatives[i];
    return NULL;
}

/* The number-th value of a knob other than its default, as a setting with what it needs: "model.norm=rmsnorm". False
 * past the last. */
static inline bool knob_other_setting(const struct knob *knob, int number, char *buf, size_t size)
{
    char text[KNOB_TEXT_SIZE];
    const char *needs = strncmp(knob->field, "rope_", 5) == 0 ? "model.position=rope" : "";
    union knob_value value = knob->standard;
    const struct alternative *other = alternative_of(knob);
    switch (knob->kind) {
    case KNOB_BOOLEAN:
        value.boolean = !value.boolean;
        snprintf(buf, size, "%s=%s", knob->name, knob_format(knob, value, text));
        return number == 0;
    case KNOB_CHOICE:
        value.choice = number + (number >= knob->standard.choice);
        snprintf(buf, size, "%s %s=%s", needs, knob->name, knob_format(knob, value, text));
        return knob_format(knob, value, text)[0] != 0;
    case KNOB_INTEGER:
    case KNOB_NUMBER:
        cr_assert(other, "%s has no other value in alternatives: add a row", knob->name);
        snprintf(buf, size, "%s %s=%s", other->needs, other->name, other->value);
        return number == 0;
    }
    return false;
}

/* Choices that meet: what is right alone can be wrong together. */
static const char *const combinations[] = {
    "",
    "model.position=rope model.norm=rmsnorm model.feed_forward=swiglu model.kv_heads=1",
    ("model.position=rope model.rope_layout=split model.norm=rmsnorm model.feed_forward=swiglu model.head_dim=10 "
     "model.qk_norm=true"),
    "model.residual=post model.norm=rmsnorm model.feed_forward=gelu_tanh",
    "model.residual=post model.dropout=0.25 model.mtp_depth=2",
    "model.position=rope model.rope_scale=2.5 model.qk_norm=true model.linear_bias=true",
    "model.linear_bias=true model.feed_forward=gelu_tanh model.dropout=0.25",
    "model.linear_bias=true model.feed_forward=swiglu model.position=none",
    "model.mtp_depth=3 model.tied_embeddings=false model.position=sinusoidal",
    "model.mtp_depth=2 model.position=rope model.dropout=0.25 model.scaled_init=true",
    "model.qk_norm=true model.norm=layernorm model.position=learned model.head_dim=5",
    "model.n_layers=1 model.tied_embeddings=false model.feed_forward=swiglu model.residual=post",
};
enum { COMBINATION_COUNT = sizeof combinations / sizeof combinations[0] };

/* Calls visit with each combination and with each other value of each knob of the group, alone. */
static inline void each_variant(const char *group, void (*visit)(const char *settings))
{
    char settings[256];
    for (size_t i = 0; i < COMBINATION_COUNT; i++)
        visit(combinations[i]);
    for (size_t i = 0; i < knob_count; i++)
        for (int number = 0; strcmp(knobs[i].group, group) == 0 && knob_other_setting(&knobs[i], number, settings, 256);
             number++)
            visit(settings);
}

/* count numbers in [0, bound), the same every time. */
static inline void fill_tokens(const char *stream_name, int32_t *tokens, size_t count, int64_t bound)
{
    struct random_stream stream = random_stream_make(1, stream_name);
    for (size_t i = 0; i < count; i++)
        tokens[i] = (int32_t)random_below(&stream, i, (uint64_t)bound);
}

#endif
