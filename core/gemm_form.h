/* Which operand of a product is stored transposed. */
#ifndef CORE_GEMM_FORM_H
#define CORE_GEMM_FORM_H

/* Row-major; ld = distance between rows as stored.
 *   GEMM_NN: C [M, N] = A [M, K] B [K, N]      inputs from outputs (backward)
 *   GEMM_NT: C [M, N] = A [M, K] B [N, K]^T    a linear layer
 *   GEMM_TN: C [M, N] = A [K, M]^T B [K, N]    gradient of a weight */
enum gemm_form { GEMM_NN, GEMM_NT, GEMM_TN };

#endif
