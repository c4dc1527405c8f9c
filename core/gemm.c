/* Matrix products through the faster of two libraries: a rule fixed by processor level and shape, not by a clock, so
 * that bits do not depend on noise. */
#include "core/gemm.h"

#include <cblas.h>
#include <string.h>

#include "core/cpu.h"
#include "core/onednn.h"

#ifdef CORE_DOUBLE

#define blas_gemm cblas_dgemm
#define blas_gemv cblas_dgemv

const char *gemm_second_library(void)
{
    return NULL;
}

#else

#define blas_gemm cblas_sgemm
#define blas_gemv cblas_sgemv

const char *gemm_second_library(void)
{
    return strcmp(cpu_level(), "v4") == 0 && onednn_load(NULL) ? onednn_version() : NULL;
}

/* Measured on AVX-512 (SPEED.md): oneDNN is 5 to 25 % faster but for small products and gradients of tall weights; with
 * AVX2 it is not. */
static bool onednn_is_faster(enum gemm_form form, int64_t M, int64_t N, int64_t K)
{
    enum { SMALL_NT = 1 << 15, SMALL = 1 << 18, TALL = 1024 };
    int64_t size = M * N * K;
    bool faster = form == GEMM_NT ? size >= SMALL_NT : size > SMALL && (form == GEMM_NN || M < TALL);
    return faster && gemm_second_library();
}

#endif

void gemm_openblas(enum gemm_form form, int64_t M, int64_t N, int64_t K, real alpha, const real *a, int64_t lda,
                   const real *b, int64_t ldb, real beta, real *c, int64_t ldc)
{
    enum CBLAS_TRANSPOSE trans_a = form == GEMM_TN ? CblasTrans : CblasNoTrans;
    enum CBLAS_TRANSPOSE trans_b = form == GEMM_NT ? CblasTrans : CblasNoTrans;
    blas_gemm(CblasRowMajor, trans_a, trans_b, (blasint)M, (blasint)N, (blasint)K, alpha, a, (blasint)lda, b,
              (blasint)ldb, beta, c, (blasint)ldc);
}

void gemm(enum gemm_form form, int64_t M, int64_t N, int64_t K, real alpha, const real *a, int64_t lda, const real *b,
          int64_t ldb, real beta, real *c, int64_t ldc)
{
    if (M == 1 && form == GEMM_NT) { /* one row: a third of the time */
        blas_gemv(CblasRowMajor, CblasNoTrans, (blasint)N, (blasint)K, alpha, b, (blasint)ldb, a, 1, beta, c, 1);
        return;
    }
#ifndef CORE_DOUBLE
    if (onednn_is_faster(form, M, N, K)) {
        onednn_sgemm(form, M, N, K, alpha, a, lda, b, ldb, beta, c, ldc);
        return;
    }
#endif
    gemm_openblas(form, M, N, K, alpha, a, lda, b, ldb, beta, c, ldc);
}
