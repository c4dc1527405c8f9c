/* Products at each precision, in software and in hardware, against sums in double of the same rounded parts. */
#include "core/multiplier.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/bf16.h"
#include "core/cpu.h"
#include "core/kernels.h"
#include "core/knob.h"
#include "core/memory.h"
#include "core/random.h"

enum { PAD = 3 }; /* rows are stored further apart than they are wide */

static real *matrix_new(const char *name, int64_t rows, int64_t ld)
{
    real *matrix = memory_alloc((size_t)(rows * ld), sizeof *matrix);
    struct random_stream stream = random_stream_make(1, name);
    random_normal_fill(&stream, 1, matrix, (size_t)(rows * ld));
    return matrix;
}

/* The two parts of a number, by arithmetic: half a unit of the eighth bit, ties to even. */
static double rounded(double x)
{
    int exponent;
    frexp(x, &exponent);
    double unit = ldexp(1, exponent - 8);
    return nearbyint(x / unit) * unit;
}

static double scalar_product(int precision, double a, double b)
{
    if (precision == PRECISION_FP32)
        return a * b;
    double a_high = rounded(a), b_high = rounded(b);
    if (precision == PRECISION_BF16)
        return a_high * b_high;
    double a_low = rounded(a - a_high), b_low = rounded(b - b_high);
    return a_high * b_high + a_high * b_low + a_low * b_high;
}

struct sizes {
    int64_t M, N, K;
};

static void assert_product(struct multiplier *multiplier, int precision, enum gemm_form form, struct sizes s,
                           real alpha, real beta)
{
    bool a_transposed = form == GEMM_TN, b_transposed = form == GEMM_NT;
    int64_t lda = (a_transposed ? s.M : s.K) + PAD, ldb = (b_transposed ? s.K : s.N) + PAD, ldc = s.N + PAD;
    real *a = matrix_new("a", a_transposed ? s.K : s.M, lda), *b = matrix_new("b", b_transposed ? s.N : s.K, ldb);
    real *c = matrix_new("c", s.M, ldc), *before = matrix_new("c", s.M, ldc);
    multiply(multiplier, form, s.M, s.N, s.K, alpha, a, lda, b, ldb, beta, c, ldc);
    for (int64_t i = 0; i < s.M; i++)
        for (int64_t j = 0; j < ldc; j++) {
            double sum = 0, size = 0, old = (double)before[i * ldc + j];
            for (int64_t k = 0; j < s.N && k < s.K; k++) {
                double left = (double)(a_transposed ? a[k * lda + i] : a[i * lda + k]);
                double right = (double)(b_transposed ? b[j * ldb + k] : b[k * ldb + j]);
                sum += scalar_product(precision, left, right);
                size += fabs(left * right);
            }
            double expected = j < s.N ? (double)alpha * sum + (double)beta * old : old;
            /* What is multiplied is exact; any order of 3 K additions is within as many roundings of the sum of sizes.
             * Hardware may cut instead of rounding: two units of the last place. */
            double bound =
                j < s.N ? 2 * (double)(3 * s.K + 3) * FLT_EPSILON * (fabs((double)alpha) * size + fabs(old)) : 0;
            cr_assert(fabs((double)c[i * ldc + j] - expected) <= bound,
                      "precision %d, form %d, %d x %d x %d: element (%d, %d) is %g, not %g", precision, (int)form,
                      (int)s.M, (int)s.N, (int)s.K, (int)i, (int)j, (double)c[i * ldc + j], expected);
        }
    memory_free(a);
    memory_free(b);
    memory_free(c);
    memory_free(before);
}

static void each_product(void)
{
    static const struct sizes sizes[] = {{1, 1, 1}, {1, 17, 13},  {17, 1, 13},  {17, 13, 1},
                                         {7, 5, 3}, {31, 37, 41}, {64, 48, 127}};
    for (int precision = PRECISION_FP32; precision <= PRECISION_BF16; precision++) {
        struct multiplier *multiplier = multiplier_create(precision, 50);
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (int form = GEMM_NN; form <= GEMM_TN; form++) {
                assert_product(multiplier, precision, (enum gemm_form)form, sizes[s], 1, 0);
                assert_product(multiplier, precision, (enum gemm_form)form, sizes[s], 1, 1);
                assert_product(multiplier, precision, (enum gemm_form)form, sizes[s], (real)0.25, (real)-0.5);
            }
        multiplier_free(multiplier);
    }
}

/* False, and the test is over, on a processor without it. */
static bool hardware_select(void)
{
    struct error err;
    if (bf16_select(BF16_HARDWARE, &err))
        return true;
    cr_assert_neq(err.text[0], 0, "a refusal says why");
    cr_skip_test("%s", err.text);
    return false;
}

Test(multiplier, sums_in_software_the_products_of_rounded_parts)
{
    cr_assert(bf16_select(BF16_SOFTWARE, NULL));
    cr_assert_not(bf16_in_hardware());
    each_product();
}

Test(multiplier, sums_in_hardware_the_same_products)
{
    if (hardware_select()) {
        cr_assert(bf16_in_hardware());
        each_product();
    }
}

Test(multiplier, says_why_products_are_in_software)
{
    struct error err = {""};
    if (!bf16_in_hardware())
        cr_assert(!bf16_explain(&err) && err.text[0], "by itself");
    cr_assert(bf16_select(BF16_SOFTWARE, NULL));
    cr_assert_not(bf16_explain(&err));
    cr_assert_str_eq(err.text, "bf16 products are asked for in software");
    cr_assert(bf16_select(BF16_AUTOMATIC, NULL));
    if (cpu_select("v2", NULL)) { /* x86-64 */
        cr_assert_not(bf16_in_hardware());
        cr_assert_not(bf16_explain(&err));
        cr_assert_str_eq(err.text, "kernels v2, which are in use, have no fast bf16 products");
    }
}

/* More shapes than are kept, twice over. */
Test(multiplier, forgets_shapes_of_hardware_and_makes_them_again)
{
    if (!hardware_select())
        return;
    struct multiplier *multiplier = multiplier_create(PRECISION_BF16, 64);
    for (int round = 0; round < 2; round++)
        for (int64_t n = 1; n <= 600; n++)
            assert_product(multiplier, PRECISION_BF16, GEMM_NN, (struct sizes){16, n, 2}, 1, 0);
    multiplier_free(multiplier);
}

/* One row of a product that hardware makes, so that each element depends on one row of a. */
static void assert_not_finite(int precision, real value)
{
    enum { M = 32, N = 32, K = 32 };
    struct multiplier *multiplier = multiplier_create(precision, M * K);
    real *a = matrix_new("a", M, K), *b = matrix_new("b", N, K), *c = matrix_new("c", M, N);
    a[3 * K + 5] = value;
    multiply(multiplier, GEMM_NT, M, N, K, 1, a, K, b, K, 0, c, N);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            cr_assert_eq(isfinite(c[i * N + j]) != 0, i != 3, "precision %d, %g: element (%d, %d) is %g", precision,
                         (double)value, i, j, (double)c[i * N + j]);
    multiplier_free(multiplier);
    memory_free(a);
    memory_free(b);
    memory_free(c);
}

static void each_not_finite(void)
{
    const real values[] = {NAN, INFINITY, -INFINITY, FLT_MAX};
    for (int precision = PRECISION_BF16X3; precision <= PRECISION_BF16; precision++)
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            assert_not_finite(precision, values[i]);
}

Test(multiplier, keeps_what_is_not_finite_in_its_row)
{
    cr_assert(bf16_select(BF16_SOFTWARE, NULL));
    each_not_finite();
    if (hardware_select())
        each_not_finite();
}

Test(multiplier, does_not_read_the_old_result_when_beta_is_zero)
{
    enum { M = 32, N = 16, K = 8 };
    for (int path = BF16_AUTOMATIC; path <= BF16_HARDWARE; path++) {
        if (path == BF16_HARDWARE && !hardware_select())
            return;
        cr_assert(bf16_select((enum bf16_path)path, NULL));
        struct multiplier *multiplier = multiplier_create(PRECISION_BF16, M * K);
        real *a = matrix_new("a", M, K), *b = matrix_new("b", N, K), *c = memory_alloc(M * N, sizeof *c);
        for (int i = 0; i < M * N; i++)
            c[i] = NAN;
        multiply(multiplier, GEMM_NT, M, N, K, 1, a, K, b, K, 0, c, N);
        for (int i = 0; i < M * N; i++)
            cr_assert(isfinite(c[i]));
        multiplier_free(multiplier);
        memory_free(a);
        memory_free(b);
        memory_free(c);
    }
}

Test(multiplier, asks_for_the_memory_it_says)
{
    for (int precision = PRECISION_FP32; precision <= PRECISION_BF16; precision++) {
        struct multiplier *multiplier = multiplier_create(precision, 31 * 41);
        size_t before = memory_call_count();
        cr_assert(bf16_select(BF16_SOFTWARE, NULL));
        assert_product(multiplier, precision, GEMM_NT, (struct sizes){31, 31, 41}, 1, 0);
        cr_assert_eq(memory_call_count(), before + 4, "the test's own four");
        multiplier_free(multiplier);
    }
    cr_assert_eq(multiplier_memory(PRECISION_FP32, 100), 0);
    cr_assert_eq(multiplier_memory(PRECISION_BF16, 100), 2 * 100 * sizeof(real));
    cr_assert_eq(multiplier_memory(PRECISION_BF16X3, 100), 2 * 2 * 100 * sizeof(real));
}
