/* Matrix products in fp32, through OpenBLAS or oneDNN. */
#ifndef CORE_GEMM_H
#define CORE_GEMM_H

#include <stdint.h>

#include "core/gemm_form.h"
#include "core/real.h"

/* c = alpha * a * b + beta * c; with beta 0 what c held is not read. Sizes up to INT32_MAX. */
void gemm(enum gemm_form form, int64_t M, int64_t N, int64_t K, real alpha, const real *a, int64_t lda, const real *b,
          int64_t ldb, real beta, real *c, int64_t ldc);

/* The same through OpenBLAS, also where oneDNN would be taken: to compare the two. */
void gemm_openblas(enum gemm_form form, int64_t M, int64_t N, int64_t K, real alpha, const real *a, int64_t lda,
                   const real *b, int64_t ldb, real beta, real *c, int64_t ldc);

/* Version of oneDNN when it makes some of the products (processors with AVX-512); NULL: OpenBLAS makes all. */
const char *gemm_second_library(void);

#endif
