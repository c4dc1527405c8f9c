/* Who makes a product. */
#include "core/gemm.h"

#include <cblas.h>

#include "core/kernels.h"

#ifdef CORE_DOUBLE
#define blas_gemm cblas_dgemm
#define blas_gemv cblas_dgemv
#else
#define blas_gemm cblas_sgemm
#define blas_gemv cblas_sgemv
#endif

/* Copying b pays only when some rows of a meet it. */
enum { FEW_ROWS = 4 };

void gemm_openblas(enum gemm_form form, int64_t M, int64_t N, int64_t K, real alpha, const real *a, int64_t lda,
                   const real *b, int64_t ldb, real beta, real *c, int64_t ldc)
{
    enum CBLAS_TRANSPOSE trans_a = form == GEMM_TN ? CblasTrans : CblasNoTrans;
    enum CBLAS_TRANSPOSE trans_b = form == GEMM_NT ? CblasTrans : CblasNoTrans;
    blas_gemm(CblasRowMajor, trans_a, trans_b, (blasint)M, (blasint)N, (blasint)K, alpha, a, (blasint)lda, b,
              (blasint)ldb, beta, c, (blasint)ldc);
}

void product_finish(const struct product *p)
{
    for (int64_t i = 0; i < p->M; i++) {
        real *row = p->c + i * p->ldc;
        if (p->bias)
            kernels()->add(row, row, p->bias, (size_t)p->N);
        if (p->addend)
            kernels()->add(row, row, p->addend + i * p->ldc, (size_t)p->N);
    }
    if (p->rows_done)
        p->rows_done(p->context, 0, p->M);
}

void gemm_product(const struct product *p)
{
    if (kernels()->product && p->M >= FEW_ROWS) {
        kernels()->product(p);
        return;
    }
    if (p->M == 1 && p->form == GEMM_NT) /* one row: a third of the time */
        blas_gemv(CblasRowMajor, CblasNoTrans, (blasint)p->N, (blasint)p->K, p->alpha, p->b, (blasint)p->ldb, p->a, 1,
                  p->beta, p->c, 1);
    else
        gemm_openblas(p->form, p->M, p->N, p->K, p->alpha, p->a, p->lda, p->b, p->ldb, p->beta, p->c, p->ldc);
    product_finish(p);
}

void gemm(enum gemm_form form, int64_t M, int64_t N, int64_t K, real alpha, const real *a, int64_t lda, const real *b,
          int64_t ldb, real beta, real *c, int64_t ldc)
{
    struct product product = product_of(form, M, N, K, alpha, a, lda, b, ldb, beta, c, ldc);
    gemm_product(&product);
}

size_t gemm_memory(void)
{
    return kernels()->product ? (PRODUCT_PANELS + PRODUCT_COPIES) * sizeof(real) : 0;
}
