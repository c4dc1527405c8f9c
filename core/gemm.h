/* Matrix products. The only way the core multiplies matrices, so that another back end joins in one place. */
#ifndef CORE_GEMM_H
#define CORE_GEMM_H

#include <stdint.h>

#include "core/real.h"

/* Which operand is stored transposed. Row-major; ld = distance between rows as stored.
 *   GEMM_NN: C [M, N] = A [M, K] B [K, N]      inputs from outputs (backward)
 *   GEMM_NT: C [M, N] = A [M, K] B [N, K]^T    a linear layer
 *   GEMM_TN: C [M, N] = A [K, M]^T B [K, N]    gradient of a weight */
enum gemm_form { GEMM_NN, GEMM_NT, GEMM_TN };

/* c = alpha * a * b + beta * c; with beta 0 what c held is not read. Sizes up to INT32_MAX. */
void gemm(enum gemm_form form, int64_t M, int64_t N, int64_t K, real alpha, const real *a, int64_t lda, const real *b,
          int64_t ldb, real beta, real *c, int64_t ldc);

#endif
