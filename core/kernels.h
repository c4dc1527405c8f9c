/* The loops over elements that cost time, compiled once for each x86-64 level and picked at start (cpu.h).
 *
 * Every function is plain C over contiguous rows; outputs first, sizes last; `+=` in a comment means it adds to what is
 * there. None allocates. NaN goes in, NaN comes out. */
#ifndef CORE_KERNELS_H
#define CORE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/knob.h"
#include "core/product.h"
#include "core/random.h"
#include "core/real.h"

enum { KERNEL_LANES = 16 };

/* One kind of norm over rows of length C. mean is NULL-able where the kind has none (rmsnorm), bias too. */
struct norm_kernel {
    /* out [N, C] = normalised in [N, C] * weight (+ bias); mean, rstd [N] */
    void (*forward)(real *out, real *mean, real *rstd, const real *in, const real *weight, const real *bias,
                    real epsilon, size_t N, size_t C);
    /* din [N, C] (+)= , dweight [C] +=, dbias [C] += */
    void (*backward)(real *din, bool add, real *dweight, real *dbias, const real *dout, const real *in,
                     const real *weight, const real *mean, const real *rstd, size_t N, size_t C);
};

/* One activation: out [N, F] from rows of F, of a gated one [up F | gate F], each at its distance. What was read
 * becomes the slope of `out` by it, which is all that backward needs. */
typedef void activation_kernel(real *out, size_t out_ld, real *in, size_t in_ld, size_t N, size_t F);

struct adamw {
    real gradient_scale, beta1, beta2, one_minus_beta1, one_minus_beta2, epsilon;
    real step_size;         /* learning rate / (1 - beta1^t) */
    real second_correction; /* 1 / sqrt(1 - beta2^t) */
    real keep;              /* 1 - learning rate * decay */
};

/* Rows of some matrices that are needed soon. */
struct soon {
    size_t count, width; /* matrices, columns */
    struct {
        const real *rows;
        size_t ld;
    } of[4];
};

struct kernels {
    const char *level;
    void (*product)(const struct product *product); /* NULL: BLAS is as good */
    struct norm_kernel norm[NORM_COUNT];
    activation_kernel *activation[FEED_FORWARD_COUNT];
    /* Rows of `inputs` parts of F, at distance ld: each *= dout [N, F], at dout_ld; dbias [inputs * F], unless NULL, +=
     * what comes out. */
    void (*slopes_multiply)(real *slopes, size_t ld, real *dbias, const real *dout, size_t dout_ld, size_t N,
                            size_t inputs, size_t F);

    void (*add)(real *out, const real *a, const real *b, size_t n); /* out = a + b; out may be a or b */
    void (*bias_gradient)(real *dbias, const real *dout, size_t ld, size_t N, size_t F); /* += column sums */

    /* Rows of scores, with room for whole lanes (ld): row r keeps its first `first + r` entries, the rest up to width
     * become 0. Forward: scores -> probabilities; most [R] and scale [R] = 1 / sum of exponentials(score - most) of
     * each row. Again: the same bits from those. With row r of scores goes row r of what is needed soon, into the
     * second cache: rows of a head lie too far apart for a processor to foresee them. */
    void (*softmax_causal)(real *scores, size_t ld, real *most, real *scale, size_t R, size_t first, size_t width,
                           const struct soon *soon);
    void (*softmax_again)(real *scores, size_t ld, const real *most, const real *scale, size_t R, size_t first,
                          size_t width, const struct soon *soon);
    /* dp = p * (dp - the row's sum of p * dp) * scale, rows as above */
    void (*softmax_backward)(real *dp, const real *p, size_t ld, real scale, size_t R, size_t first, size_t width);

    /* Sum of nats over rows [N, V] at distance ld whose target is not -1. gradient: logits become scale * (softmax -
     * one-hot), 0 for ignored. */
    double (*cross_entropy)(real *logits, size_t ld, const int32_t *targets, bool gradient, real scale, size_t N,
                            size_t V);

    /* Rotates pairs of each head (Su et al., "RoFormer", 2021): position of row n = first + n % T; cosines, sines [T,
     * D/2]; sign -1 turns back. x: rows at distance ld, heads side by side. split: pairs (i, i + D/2), else (2i, 2i +
     * 1). */
    void (*rotate)(real *x, size_t ld, const real *cosines, const real *sines, real sign, bool split, size_t N,
                   size_t first, size_t T, size_t heads, size_t D);

    /* Zeroes elements with probability `rate`, scales the rest by 1 / (1 - rate). Element (row, column) of a site draws
     * word column % 4 at index step * 2^34 + row * ceil(columns / 4) + column / 4 of its stream; `columns` is the width
     * of a row in the site's numbering, `width` how many of it are here. */
    void (*dropout)(real *x, size_t ld, const struct random_stream *stream, uint64_t step, uint64_t first_row,
                    double rate, size_t N, size_t columns, size_t width);

    /* x to the nearest bf16, ties to even; NaN and infinity stay. low, unless NULL: the nearest bf16 of what is left, 0
     * beside a high part that is not finite. As reals, and as the 16 bits of the format. */
    void (*bf16_split)(real *high, real *low, const real *x, size_t n);
    void (*bf16_split_words)(uint16_t *high, uint16_t *low, const real *x, size_t n);

    double (*sum_of_squares)(const real *x, size_t n);
    void (*adamw)(const struct adamw *adamw, real *parameter, real *first, real *second, const real *gradient,
                  size_t n);
    void (*exponential)(real *out, const real *in, size_t n); /* exposed for its test */
};

/* Those of the level in use. */
const struct kernels *kernels(void);

#endif
