/* Weights of a loaded model moved or scaled, in every block, so that it computes what a model with a classic mistake
 * would: core itself knows no mistakes. */
#ifndef RUNNER_REWIRE_H
#define RUNNER_REWIRE_H

#include "core/model.h"

/* Gate and up change places. Nothing where there is no gate. */
void rewire_gate_up(struct model *model);

/* Query head h reads key/value head h % K, where core has h / (H / K). back: undoes it. The heads of queries, and of
 * what they mix, move: head h is found at rewire_tiled_place(). */
void rewire_kv_tile(struct model *model, bool back);
int64_t rewire_tiled_place(const struct model_shape *shape, int64_t head);

/* Elements (2i, 2i + 1) of a head rotate together where core has (i, i + D/2), or the other way round. */
void rewire_rope_pairs(struct model *model, bool core_splits);

/* Scores are `factor` times as large. */
void rewire_scale_scores(struct model *model, double factor);

#endif
