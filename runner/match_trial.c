/* Trials: where a difference does not show of what kind it is, weights are moved as a classic mistake would have it,
 * and the departing tensor is computed again. When it then agrees, that was it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/match.h"
#include "runner/rewire.h"

struct trial {
    const char *text; /* kind, and what was tried */
    void (*rewire)(struct model *model, const struct reference_case *reference);
    bool (*applies)(const struct reference_case *reference, const struct model_shape *shape);
    const char *branch; /* the tensor it shows in: "attention"; also in the block's */
};

static void pairs(struct model *model, const struct reference_case *reference)
{
    rewire_rope_pairs(model, reference->model.rope_layout == ROPE_SPLIT);
}

static void tile(struct model *model, const struct reference_case *reference)
{
    (void)reference;
    rewire_kv_tile(model, false);
}

static void repeat(struct model *model, const struct reference_case *reference)
{
    (void)reference;
    rewire_kv_tile(model, true);
}

static void unscaled(struct model *model, const struct reference_case *reference)
{
    (void)reference;
    rewire_scale_scores(model, sqrt((double)model_shape(model).head_dim));
}

static void scaled_twice(struct model *model, const struct reference_case *reference)
{
    (void)reference;
    rewire_scale_scores(model, 1 / sqrt((double)model_shape(model).head_dim));
}

static void gate_up(struct model *model, const struct reference_case *reference)
{
    (void)reference;
    rewire_gate_up(model);
}

static bool rotates(const struct reference_case *reference, const struct model_shape *shape)
{
    (void)shape;
    return reference->model.position == POSITION_ROPE;
}

static bool groups(const struct reference_case *reference, const struct model_shape *shape)
{
    (void)reference;
    return shape->kv_heads > 1 && shape->kv_heads < shape->n_heads;
}

static bool always(const struct reference_case *reference, const struct model_shape *shape)
{
    (void)reference;
    (void)shape;
    return true;
}

static bool gates(const struct reference_case *reference, const struct model_shape *shape)
{
    (void)reference;
    return shape->ff_inputs == 2;
}

static const struct trial trials[] = {
    {"rotary pairing: with the other one (adjacent for split, or split for adjacent)", pairs, rotates, "attention"},
    {"key/value repeat order: with the other one (tiled for repeated, or repeated for tiled)", tile, groups,
     "attention"},
    {"key/value repeat order: with the other one (repeated for tiled)", repeat, groups, "attention"},
    {"attention scale: with scores sqrt(head_dim) times as large", unscaled, always, "attention"},
    {"attention scale: with scores sqrt(head_dim) times smaller", scaled_twice, always, "attention"},
    {"gate and up: with the two swapped", gate_up, gates, "feed_forward"},
};

/* Whether the trial shows in a tensor of that name first: "blocks.3.attention", or "blocks.3". */
static bool shows_in(const struct trial *trial, const char *name)
{
    const char *part = strncmp(name, "blocks.", 7) == 0 ? strchr(name + 7, '.') : NULL;
    return strncmp(name, "blocks.", 7) == 0 && (!part || strcmp(part + 1, trial->branch) == 0);
}

struct probe {
    const struct match_difference *difference;
    double rel_l2;
};

static void observe(void *context, const char *name, const real *data, int dims, const int64_t *shape)
{
    struct probe *probe = context;
    double difference = 0, size = 0;
    size_t count = 1;
    if (strcmp(name, probe->difference->name) != 0)
        return;
    for (int i = 0; i < dims; i++)
        count *= (size_t)shape[i];
    for (size_t i = 0; i < count; i++) {
        double e = (double)probe->difference->expected[i], d = (double)data[i] - e;
        difference += d * d;
        size += e * e;
    }
    probe->rel_l2 = difference > 0 ? sqrt(difference / size) : difference;
}

static double try_one(const struct trial *trial, const struct reference_case *reference, struct model *model,
                      const struct match_difference *difference, real *logits)
{
    struct probe probe = {difference, INFINITY};
    trial->rewire(model, reference);
    model_observe(model, observe, &probe);
    model_logits(model, reference->inputs, reference->batch_size, reference->length, logits);
    model_observe(model, NULL, NULL);
    case_load_weights(reference, model);
    mistake_move_weights(reference->mistake, model);
    return probe.rel_l2;
}

bool match_trial(const struct reference_case *reference, struct model *model, const struct match_difference *difference,
                 char buf[MATCH_HINT_SIZE])
{
    struct model_shape shape = model_shape(model);
    size_t rows = (size_t)(reference->batch_size * reference->length);
    real *logits = memory_alloc(rows * (size_t)shape.vocab_size, sizeof *logits);
    bool found = false;
    for (size_t i = 0; !found && i < sizeof trials / sizeof trials[0]; i++) {
        if (!shows_in(&trials[i], difference->name) || !trials[i].applies(reference, &shape))
            continue;
        double rel_l2 = try_one(&trials[i], reference, model, difference, logits);
        found = rel_l2 <= difference->tolerance;
        if (found)
            snprintf(buf, MATCH_HINT_SIZE, "%s, %s agrees (relative L2 %.1e)", trials[i].text, difference->name,
                     rel_l2);
    }
    memory_free(logits);
    return found;
}
