/* Puts one classic mistake into a reference case. */
#include "runner/mistake.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/case.h"
#include "runner/rewire.h"

static const struct {
    const char *name;
    enum mistake mistake;
} names[] = {
    {"rope-pairs", MISTAKE_ROPE_PAIRS}, {"gate-up", MISTAKE_GATE_UP}, {"epsilon", MISTAKE_EPSILON},
    {"qk-norm", MISTAKE_QK_NORM},       {"kv-tile", MISTAKE_KV_TILE}, {"shift", MISTAKE_SHIFT},
};

enum mistake mistake_find(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].mistake;
    return MISTAKE_NONE;
}

/* ---- by settings ---- */

static bool put_rope_pairs(struct reference_case *c, char *text, struct error *err)
{
    bool split = c->model.rope_layout == ROPE_SPLIT;
    if (c->model.position != POSITION_ROPE)
        return error_set(err, "the model has no rotation: expected position rope");
    if (model_shape_of(&c->model, c->vocab_size).head_dim == 2)
        return error_set(err, "head_dim is 2, one pair, which both layouts rotate alike");
    c->model.rope_layout = split ? ROPE_ADJACENT : ROPE_SPLIT;
    snprintf(text, MISTAKE_TEXT_SIZE, "rotation of %s", split ? "(0, 1), not (0, D/2)" : "(0, D/2), not (0, 1)");
    return true;
}

static bool put_gate_up(struct reference_case *c, char *text, struct error *err)
{
    if (model_shape_of(&c->model, c->vocab_size).ff_inputs < 2)
        return error_set(err, "the model has no gate: expected a gated feed_forward, as swiglu");
    snprintf(text, MISTAKE_TEXT_SIZE, "activation(up) * gate, not activation(gate) * up");
    return true;
}

static bool put_epsilon(struct reference_case *c, char *text, struct error *err)
{
    (void)err;
    double old = model_shape_of(&c->model, c->vocab_size).norm_epsilon;
    bool is_large = old > 0.99e-5 && old < 1.01e-5;
    c->model.norm_epsilon = is_large ? 1e-6 : 1e-5;
    snprintf(text, MISTAKE_TEXT_SIZE, "norm epsilon %s, not %g", is_large ? "1e-6" : "1e-5", old);
    return true;
}

static bool put_qk_norm(struct reference_case *c, char *text, struct error *err)
{
    if (!c->model.qk_norm)
        return error_set(err, "the model has no norm of queries and keys: expected qk_norm");
    c->model.qk_norm = false;
    snprintf(text, MISTAKE_TEXT_SIZE, "queries and keys without their norms");
    return true;
}

static bool put_kv_tile(struct reference_case *c, char *text, struct error *err)
{
    struct model_shape s = model_shape_of(&c->model, c->vocab_size);
    if (s.kv_heads == 1 || s.kv_heads == s.n_heads)
        return error_set(err, "%" PRId64 " query and %" PRId64 " key/value heads: repeated and tiled are the same",
                         s.n_heads, s.kv_heads);
    snprintf(text, MISTAKE_TEXT_SIZE, "query head h reads key/value head h %% %" PRId64 ", not h / %" PRId64,
             s.kv_heads, s.n_heads / s.kv_heads);
    return true;
}

static bool put_shift(struct reference_case *c, char *text, struct error *err)
{
    bool trains = c->targets && (case_expects(c, "grad.") || case_expects(c, "train"));
    if (!trains && !safetensors_find(c->expected, "greedy.tokens"))
        return error_set(err, "the case has no gradients, no training and no greedy.tokens, so nothing is shifted");
    for (int64_t i = 0; c->targets && i < c->steps * c->batch_size * c->length; i++)
        c->targets[i] = c->targets[i] < 0 ? -1 : c->inputs[i];
    snprintf(text, MISTAKE_TEXT_SIZE, "%s",
             trains ? "each token's target is itself, not the next one"
                    : "the next token is read at the place before the last");
    return true;
}

bool mistake_put_in(enum mistake mistake, struct reference_case *reference, char text[MISTAKE_TEXT_SIZE],
                    struct error *err)
{
    static bool (*const put[])(struct reference_case *, char *, struct error *) = {
        [MISTAKE_ROPE_PAIRS] = put_rope_pairs, [MISTAKE_GATE_UP] = put_gate_up, [MISTAKE_EPSILON] = put_epsilon,
        [MISTAKE_QK_NORM] = put_qk_norm,       [MISTAKE_KV_TILE] = put_kv_tile, [MISTAKE_SHIFT] = put_shift,
    };
    reference->mistake = mistake;
    return put[mistake](reference, text, err);
}

/* ---- by weights ---- */

void mistake_move_weights(enum mistake mistake, struct model *model)
{
    if (mistake == MISTAKE_GATE_UP)
        rewire_gate_up(model);
    else if (mistake == MISTAKE_KV_TILE)
        rewire_kv_tile(model, false);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

real *mistake_restore(enum mistake mistake, const struct model *model, const char *name, const real *data,
                      const int64_t *shape)
{
    struct model_shape s = model_shape(model);
    bool queries = ends_with(name, ".attention.query"), mix = ends_with(name, ".attention.mix");
    if (mistake != MISTAKE_KV_TILE || (!queries && !mix))
        return NULL;
    int64_t rows = queries ? shape[0] : shape[0] * shape[1]; /* [B, H, T, D] or [B, T, H * D] */
    int64_t piece = queries ? shape[2] * shape[3] : s.head_dim;
    real *out = memory_alloc((size_t)(rows * s.n_heads * piece), sizeof *out);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t h = 0; h < s.n_heads; h++)
            memcpy(out + (r * s.n_heads + h) * piece, data + (r * s.n_heads + rewire_tiled_place(&s, h)) * piece,
                   (size_t)piece * sizeof *out);
    return out;
}
