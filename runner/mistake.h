/* The classic mistakes, put into our own computation on purpose, so that one sees where each shows: by other settings
 * or by moving weights; core knows nothing of them. */
#ifndef RUNNER_MISTAKE_H
#define RUNNER_MISTAKE_H

#include "core/model.h"

struct reference_case;

enum mistake {
    MISTAKE_NONE,
    MISTAKE_ROPE_PAIRS, /* the other elements of a head rotate together */
    MISTAKE_GATE_UP,    /* gate and up change places */
    MISTAKE_EPSILON,    /* 1e-5 for 1e-6, or the other way round */
    MISTAKE_QK_NORM,    /* norms of queries and keys are skipped */
    MISTAKE_KV_TILE,    /* query head h reads key/value head h % K, not h / (H / K) */
    MISTAKE_SHIFT,      /* tokens are compared with what was read at their own place, not at the one before */
};
#define MISTAKE_CHOICES "rope-pairs|gate-up|epsilon|qk-norm|kv-tile|shift"

/* One of MISTAKE_CHOICES. */
enum mistake mistake_find(const char *name);

/* Changes what the case runs; says so in text (MISTAKE_TEXT_SIZE). False and err with the reason when the model has
 * nothing to get wrong in this way. */
enum { MISTAKE_TEXT_SIZE = 128 };
bool mistake_put_in(enum mistake mistake, struct reference_case *reference, char text[MISTAKE_TEXT_SIZE],
                    struct error *err);

/* Moves the weights of a loaded model, where that is how the mistake is made. */
void mistake_move_weights(enum mistake mistake, struct model *model);

/* What an observer sees with the mistake in, in the order that the other side has: queries and mixed values of moved
 * heads go back to their places. NULL when nothing was moved. Owner: caller, memory_free(). */
real *mistake_restore(enum mistake mistake, const struct model *model, const char *name, const real *data,
                      const int64_t *shape);

#endif
