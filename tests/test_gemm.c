/* Matrix products against plain loops in double. */
#include "core/gemm.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

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

/* Element (i, k) of the left, (k, j) of the right operand as multiplied. */
static double left(enum gemm_form form, const real *a, int64_t lda, int64_t i, int64_t k)
{
    return (double)(form == GEMM_TN ? a[k * lda + i] : a[i * lda + k]);
}

static double right(enum gemm_form form, const real *b, int64_t ldb, int64_t k, int64_t j)
{
    return (double)(form == GEMM_NT ? b[j * ldb + k] : b[k * ldb + j]);
}

static void assert_product(enum gemm_form form, int64_t M, int64_t N, int64_t K, real alpha, real beta)
{
    int64_t lda = (form == GEMM_TN ? M : K) + PAD, ldb = (form == GEMM_NT ? K : N) + PAD, ldc = N + PAD;
    real *a = matrix_new("a", form == GEMM_TN ? K : M, lda), *b = matrix_new("b", form == GEMM_NT ? N : K, ldb);
    real *c = matrix_new("c", M, ldc), *before = matrix_new("c", M, ldc);
    gemm(form, M, N, K, alpha, a, lda, b, ldb, beta, c, ldc);
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < ldc; j++) {
            double sum = 0, size = 0, old = (double)before[i * ldc + j];
            for (int64_t k = 0; j < N && k < K; k++) {
                double product = left(form, a, lda, i, k) * right(form, b, ldb, k, j);
                sum += product;
                size += fabs(product);
            }
            double expected = j < N ? (double)alpha * sum + (double)beta * old : old;
            /* Any order of K additions is within K roundings of the sum of sizes. */
            double bound = j < N ? (double)(K + 3) * FLT_EPSILON * (fabs((double)alpha) * size + fabs(old)) : 0;
            cr_assert(fabs((double)c[i * ldc + j] - expected) <= bound,
                      "form %d, %d x %d x %d: element (%d, %d) is %g, not %g", (int)form, (int)M, (int)N, (int)K,
                      (int)i, (int)j, (double)c[i * ldc + j], expected);
        }
    memory_free(a);
    memory_free(b);
    memory_free(c);
    memory_free(before);
}

Test(gemm, equals_plain_loops_in_every_form_and_at_odd_sizes)
{
    /* The last four are past the sizes at which another library takes over, or past that again. */
    static const int64_t sizes[][3] = {{1, 1, 1},    {1, 17, 13},   {17, 1, 13},  {17, 13, 1},   {7, 5, 3},
                                       {31, 37, 41}, {64, 48, 127}, {67, 71, 73}, {5, 1031, 67}, {1031, 5, 67}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int form = GEMM_NN; form <= GEMM_TN; form++) {
            assert_product((enum gemm_form)form, sizes[s][0], sizes[s][1], sizes[s][2], 1, 0);
            assert_product((enum gemm_form)form, sizes[s][0], sizes[s][1], sizes[s][2], 1, 1);
            assert_product((enum gemm_form)form, sizes[s][0], sizes[s][1], sizes[s][2], (real)0.25, (real)-0.5);
        }
}

Test(gemm, does_not_read_the_old_result_when_beta_is_zero)
{
    const real a[2] = {1, 2}, b[2] = {3, 4};
    for (int form = GEMM_NN; form <= GEMM_TN; form++) {
        real c = NAN;
        gemm((enum gemm_form)form, 1, 1, 2, 1, a, form == GEMM_TN ? 1 : 2, b, form == GEMM_NT ? 2 : 1, 0, &c, 1);
        cr_assert_float_eq(c, 11, 0, "form %d", form);
    }
}

Test(gemm, keeps_not_a_number)
{
    const real a[2] = {NAN, 2}, b[2] = {0, 4};
    real c = 0;
    gemm(GEMM_NT, 1, 1, 2, 1, a, 2, b, 2, 0, &c, 1);
    cr_assert(isnan(c));
}

Test(gemm, rows_do_not_depend_on_other_rows)
{
    enum { M = 37, N = 29, K = 31 };
    real *a = matrix_new("a", M, K), *b = matrix_new("b", N, K);
    real *c = memory_alloc(M * N, sizeof *c), *changed = memory_alloc(M * N, sizeof *changed);
    gemm(GEMM_NT, M, N, K, 1, a, K, b, K, 0, c, N);
    for (int k = 0; k < K; k++)
        a[(M - 1) * K + k] = 1e30f;
    gemm(GEMM_NT, M, N, K, 1, a, K, b, K, 0, changed, N);
    cr_assert_arr_eq(c, changed, (M - 1) * N * sizeof *c, "causality bit for bit needs this");
    memory_free(a);
    memory_free(b);
    memory_free(c);
    memory_free(changed);
}

/* Buffers lie elsewhere in every process, and a resumed run must end with the same bits. */
Test(gemm, has_the_same_bits_wherever_operands_lie)
{
    enum { M = 96, N = 80, K = 72, ROOM = M * N + 64 };
    for (int form = GEMM_NN; form <= GEMM_TN; form++) {
        real *first = memory_alloc(M * N, sizeof *first);
        for (int64_t shift = 0; shift < 40; shift += 13) {
            real *a = matrix_new("a", 1, ROOM), *b = matrix_new("b", 1, ROOM), *c = memory_alloc(ROOM, sizeof *c);
            memmove(a + shift, a, M * K * sizeof *a);
            memmove(b + shift, b, N * K * sizeof *b);
            gemm((enum gemm_form)form, M, N, K, 1, a + shift, form == GEMM_TN ? M : K, b + shift,
                 form == GEMM_NT ? K : N, 0, c + shift, N);
            if (shift == 0)
                memcpy(first, c, M * N * sizeof *c);
            cr_assert_eq(memcmp(first, c + shift, M * N * sizeof *c), 0, "form %d, %d off", form, (int)shift);
            memory_free(a);
            memory_free(b);
            memory_free(c);
        }
        memory_free(first);
    }
}

static volatile sig_atomic_t signals_seen;

static void signal_count(int number)
{
    (void)number;
    signals_seen++;
}

/* A frame of a handler written over the heap shows as another product, or as a free() that aborts. */
Test(gemm, signals_amid_products_change_neither_the_numbers_nor_the_heap)
{
    enum { M = 128, N = 32, K = 257, PRODUCTS = 4000 };
    const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    const struct sigaction count = {.sa_handler = signal_count, .sa_flags = SA_RESTART};
    for (int form = GEMM_NN; form <= GEMM_TN; form++) {
        int64_t lda = form == GEMM_TN ? M : K, ldb = form == GEMM_NT ? K : N;
        real *a = matrix_new("a", form == GEMM_TN ? K : M, lda), *b = matrix_new("b", form == GEMM_NT ? N : K, ldb);
        real *quiet = memory_alloc(M * N, sizeof *quiet), *disturbed = memory_alloc(M * N, sizeof *disturbed);
        gemm((enum gemm_form)form, M, N, K, 1, a, lda, b, ldb, 0, quiet, N);
        signals_seen = 0;
        sigaction(SIGALRM, &count, NULL);
        setitimer(ITIMER_REAL, &often, NULL);
        for (int i = 0; i < PRODUCTS; i++) {
            gemm((enum gemm_form)form, M, N, K, 1, a, lda, b, ldb, 0, disturbed, N);
            cr_assert(memcmp(quiet, disturbed, M * N * sizeof *quiet) == 0, "form %d, product %d", form, i);
            memory_free(memory_alloc(PRODUCTS, 1));
        }
        setitimer(ITIMER_REAL, &never, NULL);
        cr_assert_gt(signals_seen, 0);
        memory_free(a);
        memory_free(b);
        memory_free(quiet);
        memory_free(disturbed);
    }
}
