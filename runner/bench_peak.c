/* Chains of multiply-adds in registers, enough of them that none waits for its own last result: 4 cycles of latency, 2
 * a cycle, so 8 chains are the least, and 12 leave registers for the operands also where there are 16. */
#include "runner/bench_peak.h"

#include <math.h>
#include <stdbool.h>

#include "runner/clock.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { CHAINS = 12, ROUNDS = 2500, UNROLLED = 8, TRIES = 8 };
/* So that counting the rounds takes none of the ports that multiply. */
#define EIGHT_TIMES(statement) statement statement statement statement statement statement statement statement

/* What the chains begin and end with: out of the compiler's sight, or it works some of them out by itself. */
static volatile float source, sink;

/* NOLINTBEGIN(bugprone-macro-repeated-side-effects): what EIGHT_TIMES is for is to repeat them. */
#ifdef __x86_64__
__attribute__((target("avx512f"))) static double chains_512(void)
{
    __m512 sums[CHAINS], factor = _mm512_set1_ps(0.5f), term = _mm512_set1_ps(1);
    for (int i = 0; i < CHAINS; i++)
        sums[i] = _mm512_set1_ps(source + (float)i);
    for (int round = 0; round < ROUNDS; round++) {
        EIGHT_TIMES(for (int i = 0; i < CHAINS; i++) sums[i] = _mm512_fmadd_ps(sums[i], factor, term);)
    }
    for (int i = 0; i < CHAINS; i++)
        sink = _mm512_cvtss_f32(sums[i]);
    return 2.0 * 16 * CHAINS * ROUNDS * UNROLLED;
}

__attribute__((target("avx2,fma"))) static double chains_256(void)
{
    __m256 sums[CHAINS], factor = _mm256_set1_ps(0.5f), term = _mm256_set1_ps(1);
    for (int i = 0; i < CHAINS; i++)
        sums[i] = _mm256_set1_ps(source + (float)i);
    for (int round = 0; round < ROUNDS; round++) {
        EIGHT_TIMES(for (int i = 0; i < CHAINS; i++) sums[i] = _mm256_fmadd_ps(sums[i], factor, term);)
    }
    for (int i = 0; i < CHAINS; i++)
        sink = _mm256_cvtss_f32(sums[i]);
    return 2.0 * 8 * CHAINS * ROUNDS * UNROLLED;
}
#endif

/* Vectors of four, which every 64-bit processor has: multiplied and added where it has no operation for both. */
static double chains_plain(void)
{
    typedef float vector __attribute__((vector_size(16)));
    vector sums[CHAINS], factor = {0.5f, 0.5f, 0.5f, 0.5f}, term = {1, 1, 1, 1};
    for (int i = 0; i < CHAINS; i++)
        sums[i] = term * (source + (float)i);
    for (int round = 0; round < ROUNDS; round++) {
        EIGHT_TIMES(for (int i = 0; i < CHAINS; i++) sums[i] = sums[i] * factor + term;)
    }
    for (int i = 0; i < CHAINS; i++)
        sink = sums[i][0];
    return 2.0 * 4 * CHAINS * ROUNDS * UNROLLED;
}
/* NOLINTEND(bugprone-macro-repeated-side-effects) */

static double best_rate(double (*chains)(void))
{
    double best = 0;
    for (int i = 0; i < TRIES; i++) {
        double start = seconds_now(), flops = chains(), rate = flops / (seconds_now() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

double bench_peak_rate(void)
{
    double best = best_rate(chains_plain);
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        best = fmax(best, best_rate(chains_256));
    if (__builtin_cpu_supports("avx512f"))
        best = fmax(best, best_rate(chains_512));
#endif
    return best;
}
