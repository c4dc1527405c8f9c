/* oneDNN, loaded when it is first asked for: 40 MB that the commands which only read need not map. One thread always.
 *
 *   if (onednn_load(NULL)) onednn_sgemm(...); */
#ifndef CORE_ONEDNN_H
#define CORE_ONEDNN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/product.h"

/* False when the library is not there, or the program was built without its headers; err, unless NULL, says which. The
 * first call decides for all. */
bool onednn_load(struct error *err);
const char *onednn_version(void); /* "2.6.3"; NULL when it is not loaded */

/* What the processor has, as oneDNN sees it; both false when it is not loaded. */
bool onednn_has_bf16(void); /* AVX512_BF16 */
bool onednn_has_amx(void);

/* Like gemm(), in fp32. Only once it is loaded. */
void onednn_sgemm(enum gemm_form form, int64_t M, int64_t N, int64_t K, float alpha, const float *a, int64_t lda,
                  const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

/* Products of bf16 operands summed in fp32, compiled for each shape when it first comes; a bounded number of them is
 * kept. Owner: caller, onednn_products_free(). */
struct onednn_products;
struct onednn_products *onednn_products_create(void);
void onednn_products_free(struct onednn_products *products); /* takes NULL */

/* c = alpha * a * b + beta * c with a and b without gaps between rows. False, with c as it was, for a shape that oneDNN
 * has nothing for. */
bool onednn_multiply(struct onednn_products *products, enum gemm_form form, int64_t M, int64_t N, int64_t K,
                     float alpha, const uint16_t *a, const uint16_t *b, float beta, float *c, int64_t ldc);

#endif
