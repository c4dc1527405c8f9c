/* Matrix products: tiles of our own (tiles.c) where the processor has AVX2 or better, OpenBLAS elsewhere and for the
 * few that it makes faster. A rule fixed by processor level and shape, not by a clock, so that bits do not depend on
 * noise. Not from two threads at once. */
#ifndef CORE_GEMM_H
#define CORE_GEMM_H

#include <stddef.h>
#include <stdint.h>

#include "core/product.h"

/* c = alpha * a * b + beta * c; with beta 0 what c held is not read. Sizes up to INT32_MAX. */
void gemm(enum gemm_form form, int64_t M, int64_t N, int64_t K, real alpha, const real *a, int64_t lda, const real *b,
          int64_t ldb, real beta, real *c, int64_t ldc);

/* The same with a bias and an addend, or of a triangle. */
void gemm_product(const struct product *product);

/* Adds them to a product that was made without, and says that its rows are done. */
void product_finish(const struct product *product);

/* gemm() through OpenBLAS, also where it would not be taken: to compare the two. */
void gemm_openblas(enum gemm_form form, int64_t M, int64_t N, int64_t K, real alpha, const real *a, int64_t lda,
                   const real *b, int64_t ldb, real beta, real *c, int64_t ldc);

/* Bytes that large products write besides c: one buffer for all. */
size_t gemm_memory(void);

#endif
