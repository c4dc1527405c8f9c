/* Our computation of a reference case beside the expected one, tensor by tensor.
 *
 *   struct match match;
 *   if (!match_run(&reference, 2e-5, NULL, &match, &problems)) ... // the case cannot be compared
 *   for (size_t i = 0; i < match.count; i++) ... match.rows[i].ok
 *   match_release(&match);
 *
 * Rows are in the order of computation: the forward pass of batch 0, the tokens that continue a prompt, the gradients
 * (in the order of the parameters), the losses and gradient norms of training, the trained weights. */
#ifndef RUNNER_MATCH_H
#define RUNNER_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runner/activations.h"
#include "runner/case.h"
#include "runner/problem.h"

/* Expected values are float64 rounded once; a correct float32 computation was measured at 1e-6, and at 6e-6 for weights
 * after training. */
#define MATCH_TOLERANCE 2e-5
#define MATCH_TRAINED_FACTOR 5

/* Expected tensors of tokens [1, N]: what is continued, and that with its continuation. */
#define MATCH_PROMPT "greedy.prompt"
#define MATCH_TOKENS "greedy.tokens"

enum match_pass { MATCH_FORWARD, MATCH_GREEDY, MATCH_GRADIENT, MATCH_TRAINING };

enum { MATCH_HINT_SIZE = 512 };

struct match_row {
    const char *name; /* belongs to the case */
    enum match_pass pass;
    int dims;
    int64_t shape[SAFETENSORS_DIMS];
    double max_abs, rel_l2; /* of ours - expected; NaN when ours is not finite */
    double tolerance;
    bool ok;
    int64_t equal, compared, unequal_at; /* MATCH_GREEDY: tokens, and the place of the first other one */
};

struct match {
    bool ok;
    const struct match_row *first; /* the first that departs, or NULL */
    struct match_row *rows;
    size_t count;
    char hint[MATCH_HINT_SIZE]; /* what kind of mistake the first departure looks like; "" when none is known */
};

/* seen, if not NULL, gets every activation of the forward pass. False with problems when weights are missing or left
 * over, or when an expected tensor is none that this model has, or has another shape. Owner: caller, match_release(),
 * also after false. */
bool match_run(struct reference_case *reference, double tolerance, struct activations *seen, struct match *match,
               struct problems *problems);
void match_release(struct match *match);

/* Fills the row of greedy.tokens: ours are those that follow greedy.prompt at temperature 0, through the decoder. False
 * and err when the two cannot be continued. */
bool match_greedy(const struct reference_case *reference, struct model *model, struct match_row *row,
                  struct error *err);

/* A tensor of the forward pass as we and the other side have it. */
struct match_difference {
    const char *name;
    const real *ours, *expected;
    int dims;
    const int64_t *shape;
    double tolerance;
};
/* What kind of mistake makes such a difference, from its numbers. Returns buf, "" when none is known. Runs the model
 * for some of it. */
const char *match_hint(const struct reference_case *reference, struct model *model,
                       const struct match_difference *difference, char buf[MATCH_HINT_SIZE]);

/* Whether the tensor of a block or branch agrees once a classic mistake is made with the model's weights; says in buf
 * which. The weights are loaded again after each trial. */
bool match_trial(const struct reference_case *reference, struct model *model, const struct match_difference *difference,
                 char buf[MATCH_HINT_SIZE]);

/* What the tensor of a row is computed from: "embed, through blocks.0.attention_norm, blocks.0.attention.query.weight".
 * Returns buf. */
enum { MATCH_UPSTREAM_SIZE = 512 };
const char *match_upstream(const struct reference_case *reference, const struct match_row *row,
                           char buf[MATCH_UPSTREAM_SIZE]);

#endif
