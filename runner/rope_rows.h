/* Rows of queries and keys in the order of either rope_layout. A head of D rows that rotates neighbours (0,1), (2,3)..
 * computes what the head with rows 0,2,4.. before 1,3,5.. computes when it rotates halves: the same numbers, added up
 * in another order. */
#ifndef RUNNER_ROPE_ROWS_H
#define RUNNER_ROPE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/real.h"

/* Whether the rows of a tensor of ours ("blocks.0.attention.query.weight") are rotated: weights, biases and norms of
 * queries and keys. */
bool rope_rows_has(const char *tensor);

/* out [rows, columns] = in, heads of D rows each moved from one layout to the other; rows divide by D, D by 2. */
void rope_rows_to_split(real *out, const real *in, int64_t rows, int64_t columns, int64_t D);
void rope_rows_to_adjacent(real *out, const real *in, int64_t rows, int64_t columns, int64_t D);

#endif
