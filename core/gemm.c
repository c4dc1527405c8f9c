/* Matrix products through OpenBLAS. */
#include "core/gemm.h"

#include <cblas.h>

#ifdef CORE_DOUBLE
#define blas_gemm cblas_dgemm
#else
#define blas_gemm cblas_sgemm
#endif

void gemm(enum gemm_form form, int64_t M, int64_t N, int64_t K, real alpha, const real *a, int64_t lda, const real *b,
          int64_t ldb, real beta, real *c, int64_t ldc)
{
    enum CBLAS_TRANSPOSE trans_a = form == GEMM_TN ? CblasTrans : CblasNoTrans;
    enum CBLAS_TRANSPOSE trans_b = form == GEMM_NT ? CblasTrans : CblasNoTrans;
    blas_gemm(CblasRowMajor, trans_a, trans_b, (blasint)M, (blasint)N, (blasint)K, alpha, a, (blasint)lda, b,
              (blasint)ldb, beta, c, (blasint)ldc);
}
