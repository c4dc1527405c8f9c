/* Matrix products at the precision of a run (training.precision): every product of a model goes through one.
 *
 *   struct multiplier *m = multiplier_create(PRECISION_BF16, largest);
 *   multiply(m, GEMM_NT, N, outputs, inputs, 1, in, inputs, weight, inputs, 0, out, outputs);
 *   multiplier_free(m);
 *
 * fp32    gemm() and nothing else.
 * bf16    both operands rounded to the nearest bf16; products exact, their sums fp32.
 * bf16x3  an operand is the sum of two bf16 parts, high and low: three products are summed, all but low * low. They are
 *         one product of operands side by side along K:
 *
 *             in bf16       [a high | a high | a low ]     in software   [a high       | a low ]
 *                         x [b high | b low  | b high]                 x [b high + low | b high]
 *
 * Where the processor multiplies bf16 fast (bf16.h), oneDNN does; elsewhere operands are rounded here and multiplied in
 * fp32: the same products, slower. */
#ifndef CORE_MULTIPLIER_H
#define CORE_MULTIPLIER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/gemm.h"

struct multiplier;

/* largest: elements of the largest operand that will come; larger ones take memory when they do. Owner: caller,
 * multiplier_free(). */
struct multiplier *multiplier_create(int precision, int64_t largest);
void multiplier_free(struct multiplier *multiplier); /* takes NULL */

/* Like gemm_product() and gemm(). */
void multiply_product(struct multiplier *multiplier, const struct product *product);
void multiply(struct multiplier *multiplier, enum gemm_form form, int64_t M, int64_t N, int64_t K, real alpha,
              const real *a, int64_t lda, const real *b, int64_t ldb, real beta, real *c, int64_t ldc);

/* Bytes of workspace that multiplier_create() will ask for. */
size_t multiplier_memory(int precision, int64_t largest);

#endif
