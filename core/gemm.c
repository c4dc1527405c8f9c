/* Matrix products through OpenBLAS. */
#include "core/gemm.h"

#include <cblas.h>

#ifdef CORE_DOUBLE
#define blas_gemm cblas_dgemm
#define blas_gemv cblas_dgemv
#else
#define blas_gemm cblas_sgemm
#define blas_gemv cblas_sgemv
#endif

void gemm(enum gemm_form form, int64_t M, int64_t N, int64_t K, real alpha, const real *a, int64_t lda, const real *b,
          int64_t ldb, real beta, real *c, int64_t ldc)
{
    if (M == 1 && form == GEMM_NT) { /* one row: a third of the time */
        blas_gemv(CblasRowMajor, CblasNoTrans, (blasint)N, (blasint)K, alpha, b, (blasint)ldb, a, 1, beta, c, 1);
        return;
    }
    enum CBLAS_TRANSPOSE trans_a = form == GEMM_TN ? CblasTrans : CblasNoTrans;
    enum CBLAS_TRANSPOSE trans_b = form == GEMM_NT ? CblasTrans : CblasNoTrans;
    blas_gemm(CblasRowMajor, trans_a, trans_b, (blasint)M, (blasint)N, (blasint)K, alpha, a, (blasint)lda, b,
              (blasint)ldb, beta, c, (blasint)ldc);
}
