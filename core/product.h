/* What is asked of a matrix product: row-major operands, ld = distance between rows as stored.
 *
 *   c = alpha * a * b + beta * c + bias + addend, with beta 0 what c held is not read */
#ifndef CORE_PRODUCT_H
#define CORE_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/real.h"

/* Which operand is stored transposed.
 *   GEMM_NN: C [M, N] = A [M, K] B [K, N]      inputs from outputs (backward)
 *   GEMM_NT: C [M, N] = A [M, K] B [N, K]^T    a linear layer
 *   GEMM_TN: C [M, N] = A [K, M]^T B [K, N]    gradient of a weight */
enum gemm_form { GEMM_NN, GEMM_NT, GEMM_TN };

/* Elements that are copied at a time. */
enum { PRODUCT_PANELS = 1 << 18 /* of b */, PRODUCT_COPIES = 384 * 129 * 4 / 3 /* of a, where it has to be */ };

/* Rows [first, first + rows) of C are done: each row once, in order. What comes next finds them in the cache; it must
 * not multiply itself. */
typedef void product_rows(void *context, int64_t first, int64_t rows);

struct product {
    enum gemm_form form;
    int64_t M, N, K;
    real alpha;
    const real *a;
    int64_t lda;
    const real *b;
    int64_t ldb;
    real beta;
    real *c;
    int64_t ldc;
    const real *bias;   /* [N], the same for every row; NULL: none */
    const real *addend; /* [M, N] at distance ldc, not c itself; NULL: none */
    /* Rows of attention: row r of the triangle has `first + r + 1` entries, what is behind them need not be made (NT:
     * C) and is 0 (A as stored, NN and TN). */
    bool causal;
    int64_t first;
    product_rows *rows_done; /* NULL: nobody asks */
    void *context;
};

/* One of plain operands: no bias, no addend, no triangle. */
static inline struct product product_of(enum gemm_form form, int64_t M, int64_t N, int64_t K, real alpha, const real *a,
                                        int64_t lda, const real *b, int64_t ldb, real beta, real *c, int64_t ldc)
{
    struct product product = {.form = form, .M = M, .N = N, .K = K, .alpha = alpha, .beta = beta};
    product.a = a, product.lda = lda;
    product.b = b, product.ldb = ldb;
    product.c = c, product.ldc = ldc;
    return product;
}

#endif
