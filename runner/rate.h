/* What this machine's matrix products can do: how fast they are on the shapes of a training step, and whether they are
 * right. */
#ifndef RUNNER_RATE_H
#define RUNNER_RATE_H

#include <stdint.h>

#include "core/knob.h"

/* The products of one training step over `rows` tokens: for every weight [outputs, inputs] its forward one and the two
 * of backward. Query, key and value share their input and count as one weight, so do up and gate. */
struct products;

struct products *products_create(const struct model_config *model, int64_t vocab_size, int64_t rows);
void products_free(struct products *products); /* takes NULL */

double products_flops(const struct products *products); /* 2 * multiplications */

/* Makes every product once and nothing else: those of the core. Returns the seconds. */
double products_time(struct products *products);

/* The seconds of the same by OpenBLAS's sgemm. */
double products_openblas_time(struct products *products);

/* The seconds of the same with each product by the fastest of ours, OpenBLAS and, where it is there, oneDNN: the best
 * that this machine has. Which one that is is tried out at the first call. oneDNN is left out with kernels below the
 * processor's. */
double products_best_time(struct products *products);

/* Makes an M x K by K x N product in all three forms and compares with a plain loop in double. The result is the
 * largest difference as a multiple of what rounding may cost: above 1 the products are wrong. */
double product_error(int64_t M, int64_t N, int64_t K);

#endif
