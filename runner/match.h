/* Our computation of a reference case beside the expected one, tensor by tensor.
 *
 *   struct match match;
 *   if (!match_run(&reference, 2e-5, &match, &problems)) ...       // the case cannot be compared
 *   for (size_t i = 0; i < match.count; i++) ... match.rows[i].ok
 *   match_release(&match);
 *
 * Rows are in the order of computation: the forward pass of batch 0, its gradients (in the order of the parameters),
 * the losses and gradient norms of training, the trained weights. */
#ifndef RUNNER_MATCH_H
#define RUNNER_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runner/case.h"
#include "runner/problem.h"

/* Expected values are float64 rounded once; a correct float32 computation was measured at 1e-6, and at 6e-6 for weights
 * after training. */
#define MATCH_TOLERANCE 2e-5
#define MATCH_TRAINED_FACTOR 5

enum match_pass { MATCH_FORWARD, MATCH_GRADIENT, MATCH_TRAINING };

struct match_row {
    const char *name; /* belongs to the case */
    enum match_pass pass;
    int dims;
    int64_t shape[SAFETENSORS_DIMS];
    double max_abs, rel_l2; /* of ours - expected; NaN when ours is not finite */
    double tolerance;
    bool ok;
};

struct match {
    bool ok;
    const struct match_row *first; /* the first that departs, or NULL */
    struct match_row *rows;
    size_t count;
};

/* False with problems when weights are missing or left over, or when an expected tensor is none that this model has, or
 * has another shape. Owner: caller, match_release(), also after false. */
bool match_run(const struct reference_case *reference, double tolerance, struct match *match,
               struct problems *problems);
void match_release(struct match *match);

/* What the tensor of a row is computed from: "embed, through blocks.0.attention_norm, blocks.0.attention.query.weight".
 * Returns buf. */
enum { MATCH_UPSTREAM_SIZE = 512 };
const char *match_upstream(const struct reference_case *reference, const struct match_row *row,
                           char buf[MATCH_UPSTREAM_SIZE]);

#endif
