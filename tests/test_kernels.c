/* The element loops of every level this processor can run, against libm in double. The gradient checks run the core in
 * double, whose exponential and normal distribution are libm's: what float uses is tested here. */
#include "core/kernels.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/knob.h"
#include "core/memory.h"
#include "tests/levels.h"

enum { POINTS = 20001 };

/* POINTS numbers from low to high. */
static void fill_range(real *x, double low, double high)
{
    for (int i = 0; i < POINTS; i++)
        x[i] = (real)(low + (high - low) * i / (POINTS - 1));
}

static void exponential_of_a_range(void)
{
    const struct kernels *k = kernels();
    static real x[POINTS], y[POINTS];
    fill_range(x, -87, 88);
    k->exponential(y, x, POINTS);
    for (int i = 0; i < POINTS; i++) {
        double expected = exp((double)x[i]);
        /* Polynomial 3e-9, and three float roundings of 6e-8. */
        cr_assert_float_eq((double)y[i], expected, 2e-7 * expected, "%s: exp(%g) is %g", level, (double)x[i],
                           (double)y[i]);
    }
    const real ends[4] = {0, -200, -INFINITY, NAN};
    k->exponential(y, ends, 4);
    cr_assert(y[0] >= 1 && y[0] <= 1 && y[1] <= 0 && y[1] >= 0 && y[2] <= 0 && y[2] >= 0 && isnan(y[3]), "%s", level);
}

Test(kernels, the_exponential_is_right_to_float_precision)
{
    each_level(exponential_of_a_range);
}

/* Value and slope of each activation in double. */
static double gelu(double x, double *slope)
{
    double below = 0.5 * erfc(-x * sqrt(0.5));
    *slope = below + x * exp(-0.5 * x * x) / sqrt(2 * acos(-1));
    return x * below;
}

static double gelu_tanh(double x, double *slope)
{
    double c = sqrt(2 / acos(-1)), t = tanh(c * (x + 0.044715 * x * x * x));
    *slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
    return 0.5 * x * (1 + t);
}

static void plain_activations_up_to(double end)
{
    const struct kernels *k = kernels();
    static real x[POINTS], y[POINTS], one[POINTS], dx[POINTS];
    double (*const functions[FEED_FORWARD_COUNT])(double, double *) = {
        [FEED_FORWARD_GELU] = gelu, [FEED_FORWARD_GELU_TANH] = gelu_tanh};
    fill_range(x, -end, end);
    for (int i = 0; i < POINTS; i++)
        one[i] = 1;
    for (int kind = 0; kind < FEED_FORWARD_COUNT; kind++) {
        if (model_shape_of(&(struct model_config){.n_heads = 1, .d_model = 1, .feed_forward = kind}, 1).ff_inputs > 1)
            continue;
        cr_assert(functions[kind], "what is activation %d in double?", kind);
        memcpy(dx, x, sizeof dx);
        k->activation[kind](y, POINTS, dx, POINTS, 1, POINTS);
        k->slopes_multiply(dx, POINTS, NULL, one, POINTS, 1, 1, POINTS);
        for (int i = 0; i < POINTS; i++) {
            double slope, value = functions[kind]((double)x[i], &slope);
            /* A few roundings of a result of up to |x|; near 0 of the factor beside it. */
            double bound = 3e-7 * fmax(1, fabs((double)x[i]));
            cr_assert_float_eq((double)y[i], value, bound, "%s: kind %d of %g is %g", level, kind, (double)x[i],
                               (double)y[i]);
            /* 1 - sigmoid has lost 6e-8 where sigmoid is near 1, times x and an inner slope of up to 7. */
            cr_assert_float_eq((double)dx[i], slope, bound + 2e-6, "%s: slope of kind %d at %g is %g", level, kind,
                               (double)x[i], (double)dx[i]);
        }
    }
}

/* Where they bend; and where an exponential is past what a float holds. */
static void plain_activations_of_a_range(void)
{
    plain_activations_up_to(12);
    plain_activations_up_to(1e4);
}

Test(kernels, plain_activations_and_their_slopes_are_right)
{
    each_level(plain_activations_of_a_range);
}

/* A gated one beside it needs a range of its own. */
static void swiglu_of_a_range(void)
{
    const struct kernels *k = kernels();
    enum { F = 1001 };
    static real in[2 * F], out[F], dout[F], din[2 * F], dbias[2 * F];
    for (int i = 0; i < F; i++) {
        in[i] = (real)cos(i);
        in[F + i] = (real)(-200 + 400.0 * i / F); /* the gate, to where exp() is past what a float holds */
        dout[i] = (real)sin(2 * i + 1);
        dbias[i] = dbias[F + i] = 1;
    }
    memcpy(din, in, sizeof din);
    k->activation[FEED_FORWARD_SWIGLU](out, F, din, 2 * F, 1, F);
    k->slopes_multiply(din, 2 * F, dbias, dout, F, 1, 2, F);
    for (int i = 0; i < F; i++) {
        double up = (double)in[i], gate = (double)in[F + i], d = (double)dout[i], s = 1 / (1 + exp(-gate));
        double bound = 5e-7 * fmax(1, fabs(gate));
        cr_assert_float_eq((double)out[i], up * gate * s, bound, "%s, gate %g", level, gate);
        cr_assert_float_eq((double)din[i], d * gate * s, bound, "%s, gate %g", level, gate);
        cr_assert_float_eq((double)din[F + i], d * up * s * (1 + gate * (1 - s)), bound, "%s, gate %g", level, gate);
        cr_assert(dbias[i] == din[i] + 1 && dbias[F + i] == din[F + i] + 1, "%s: added to what is there", level);
    }
}

Test(kernels, swiglu_and_its_slopes_are_right)
{
    each_level(swiglu_of_a_range);
}

static void softmax_of_rows(void)
{
    const struct kernels *k = kernels();
    enum { ROWS = 5, LD = 64, FIRST = 29, WIDTH = 50 };
    static real scores[ROWS * LD], again[ROWS * LD], before[ROWS * LD], largest[ROWS], scale[ROWS];
    struct random_stream stream = random_stream_make(1, "scores");
    random_normal_fill(&stream, 5, before, ROWS * LD);
    before[7] = 200; /* one far above the rest, past what exp() can hold */
    memcpy(scores, before, sizeof scores);
    memcpy(again, before, sizeof again);
    struct soon none = {0}, soon = {1, LD, {{before, LD}}};
    k->softmax_causal(scores, LD, largest, scale, ROWS, FIRST, WIDTH, &soon);
    k->softmax_again(again, LD, largest, scale, ROWS, FIRST, WIDTH, &none);
    cr_assert_arr_eq(scores, again, sizeof scores, "%s: the same bits again", level);
    for (int r = 0; r < ROWS; r++) {
        double sum = 0, most = -INFINITY;
        for (int i = 0; i < FIRST + r; i++)
            most = fmax(most, (double)before[r * LD + i]);
        for (int i = 0; i < FIRST + r; i++)
            sum += exp((double)before[r * LD + i] - most);
        cr_assert_float_eq((double)largest[r], most, 0, "%s", level);
        cr_assert_float_eq((double)scale[r] * sum, 1, 1e-6, "%s: each exponential and their sum are rounded", level);
        for (int i = 0; i < LD; i++) {
            double p = i < FIRST + r ? exp((double)before[r * LD + i] - most) / sum : 0;
            double kept = i < WIDTH ? p : (double)before[r * LD + i]; /* past the width nothing is touched */
            /* Differences of up to 20 are rounded before exp(); what is below 1e-37 is 0. */
            cr_assert_float_eq((double)scores[r * LD + i], kept, 3e-6 * fabs(kept) + 1e-37, "%s", level);
        }
    }
}

Test(kernels, causal_softmax_is_right_and_can_be_made_again)
{
    each_level(softmax_of_rows);
}

static void softmax_gradient_of_rows(void)
{
    enum { ROWS = 5, LD = 64, FIRST = 29, WIDTH = 50 };
    static real p[ROWS * LD], dp[ROWS * LD], before[ROWS * LD];
    struct random_stream stream = random_stream_make(1, "probabilities"), other = random_stream_make(1, "dp");
    random_normal_fill(&stream, 1, p, ROWS * LD);
    random_normal_fill(&other, 1, before, ROWS * LD);
    for (int r = 0; r < ROWS; r++)
        for (int i = FIRST + r; i < LD; i++)
            p[r * LD + i] = 0; /* as softmax leaves it */
    memcpy(dp, before, sizeof dp);
    kernels()->softmax_backward(dp, p, LD, (real)0.25, ROWS, FIRST, WIDTH);
    for (int r = 0; r < ROWS; r++) {
        double dot = 0;
        for (int i = 0; i < FIRST + r; i++)
            dot += (double)p[r * LD + i] * (double)before[r * LD + i];
        for (int i = 0; i < WIDTH; i++) {
            double right = (double)p[r * LD + i] * ((double)before[r * LD + i] - dot) * 0.25;
            /* Sums of some thirty products of about 1 are rounded thirty times to 2^-24 of at most 10. */
            cr_assert_float_eq((double)dp[r * LD + i], i < FIRST + r ? right : 0, 2e-5, "%s", level);
        }
    }
}

Test(kernels, the_gradient_of_a_softmax_is_right)
{
    each_level(softmax_gradient_of_rows);
}

static void cross_entropy_of_rows(void)
{
    const struct kernels *k = kernels();
    enum { ROWS = 4, V = 101 };
    static real logits[ROWS * V], before[ROWS * V];
    const int32_t targets[ROWS] = {0, 100, -1, 50};
    struct random_stream stream = random_stream_make(1, "logits");
    random_normal_fill(&stream, 3, before, ROWS * V);
    before[3 * V + 20] = 300;
    memcpy(logits, before, sizeof logits);
    double nats = k->cross_entropy(logits, V, targets, false, 1, ROWS, V), expected = 0;
    memcpy(logits, before, sizeof logits);
    double again = k->cross_entropy(logits, V, targets, true, (real)0.5, ROWS, V);
    cr_assert_float_eq(nats, again, 1e-9 * nats, "%s: the loss does not depend on wanting its gradient", level);
    for (int r = 0; r < ROWS; r++) {
        double sum = 0, most = -INFINITY;
        for (int v = 0; v < V; v++)
            most = fmax(most, (double)before[r * V + v]);
        for (int v = 0; v < V; v++)
            sum += exp((double)before[r * V + v] - most);
        if (targets[r] >= 0)
            expected += most + log(sum) - (double)before[r * V + targets[r]];
        for (int v = 0; v < V; v++) {
            double slope = 0.5 * (exp((double)before[r * V + v] - most) / sum - (v == targets[r]));
            cr_assert_float_eq((double)logits[r * V + v], targets[r] < 0 ? 0 : slope, 5e-7, "%s: row %d", level, r);
        }
    }
    cr_assert_float_eq(nats, expected, 1e-6 * expected, "%s", level);
}

Test(kernels, cross_entropy_and_its_gradient_are_right_and_ignore_minus_one)
{
    each_level(cross_entropy_of_rows);
}

static void dropout_of_rows(void)
{
    const struct kernels *k = kernels();
    enum { ROWS = 64, COLUMNS = 67 };
    static real whole[ROWS * COLUMNS], parts[ROWS * COLUMNS], later[ROWS * COLUMNS];
    struct random_stream stream = random_stream_make(1, "dropout/embedding");
    for (int i = 0; i < ROWS * COLUMNS; i++)
        whole[i] = parts[i] = later[i] = 2;
    k->dropout(whole, COLUMNS, &stream, 3, 100, 0.25, ROWS, COLUMNS, COLUMNS);
    k->dropout(later, COLUMNS, &stream, 4, 100, 0.25, ROWS, COLUMNS, COLUMNS);
    int kept = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        bool stays = whole[i] > 0;
        cr_assert_float_eq((double)whole[i], stays ? 2 / 0.75 : 0, 5e-7, "%s", level);
        kept += stays;
    }
    /* Standard deviation of the share: sqrt(.25 * .75 / 4288) = 0.0066; five of them. */
    cr_assert_float_eq((double)kept / (ROWS * COLUMNS), 0.75, 0.033, "%s", level);
    cr_assert_neq(memcmp(whole, later, sizeof whole), 0, "%s: each step drops others", level);
    /* The same mask however the rows come, and for rows of which only the start is here. */
    k->dropout(parts, COLUMNS, &stream, 3, 100, 0.25, 10, COLUMNS, COLUMNS);
    k->dropout(parts + 10 * COLUMNS, COLUMNS, &stream, 3, 110, 0.25, ROWS - 10, COLUMNS, 33);
    for (int r = 0; r < ROWS; r++)
        cr_assert_arr_eq(parts + r * COLUMNS, whole + r * COLUMNS, (r < 10 ? COLUMNS : 33) * sizeof(real), "%s: row %d",
                         level, r);
    for (int i = 33; i < COLUMNS; i++)
        cr_assert(parts[20 * COLUMNS + i] >= 2 && parts[20 * COLUMNS + i] <= 2, "%s: past the width", level);
}

Test(kernels, dropout_keeps_its_share_and_is_numbered_by_element)
{
    each_level(dropout_of_rows);
}

static void rotation_there_and_back(void)
{
    const struct kernels *k = kernels();
    enum { N = 9, T = 3, HEADS = 3, D = 6, LD = 20 };
    static real x[N * LD], before[N * LD], cosines[8 * D / 2], sines[8 * D / 2];
    struct random_stream stream = random_stream_make(1, "x");
    random_normal_fill(&stream, 1, before, N * LD);
    for (int i = 0; i < 8 * D / 2; i++) {
        cosines[i] = (real)cos(i);
        sines[i] = (real)sin(i);
    }
    for (int split = 0; split < 2; split++) {
        memcpy(x, before, sizeof x);
        k->rotate(x, LD, cosines, sines, 1, split != 0, N, 5, T, HEADS, D);
        cr_assert_neq(memcmp(x, before, sizeof x), 0, "%s", level);
        /* Row 4 is position 5 + 4 % 3; the first pair of the second head turns by its first angle. */
        int angle = (5 + 4 % T) * D / 2, a = 4 * LD + D, b = a + (split ? D / 2 : 1);
        cr_assert_float_eq((double)x[a], (double)before[a] * cos(angle) - (double)before[b] * sin(angle), 1e-6, "%s",
                           level);
        cr_assert_float_eq((double)x[b], (double)before[b] * cos(angle) + (double)before[a] * sin(angle), 1e-6, "%s",
                           level);
        k->rotate(x, LD, cosines, sines, -1, split != 0, N, 5, T, HEADS, D);
        for (int i = 0; i < N * LD; i++)
            cr_assert_float_eq((double)x[i], (double)before[i], 1e-6, "%s", level);
    }
}

Test(kernels, rotation_uses_its_position_and_turns_back)
{
    each_level(rotation_there_and_back);
}

static void not_a_number_stays(void)
{
    const struct kernels *k = kernels();
    enum { C = 19 };
    real in[2 * C], out[2 * C], mean[1], rstd[1], weight[C], scores[3 * KERNEL_LANES], most[1], scale[1];
    for (int kind = 0; kind < FEED_FORWARD_COUNT; kind++) {
        for (int i = 0; i < 2 * C; i++)
            in[i] = 1;
        in[11] = NAN;
        memcpy(scores, in, sizeof in);
        k->activation[kind](out, C, scores, C, 1, C);
        cr_assert(isnan(out[11]), "%s: activation %d", level, kind);
    }
    for (int i = 0; i < C; i++)
        weight[i] = 1;
    for (int kind = 0; kind < NORM_COUNT; kind++) {
        k->norm[kind].forward(out, mean, rstd, in, weight, weight, (real)1e-5, 1, C);
        cr_assert(isnan(out[0]) && isnan(out[C - 1]), "%s: norm %d", level, kind);
    }
    memcpy(scores, in, C * sizeof *in);
    k->softmax_causal(scores, 2 * KERNEL_LANES, most, scale, 1, C, C, &(struct soon){0});
    cr_assert(isnan(scores[0]) && isnan(scale[0]), "%s: softmax", level);
    memcpy(out, in, sizeof out);
    cr_assert(isnan(k->cross_entropy(out, C, (const int32_t[]){3}, false, 1, 1, C)), "%s: cross entropy", level);
    cr_assert(isnan(k->sum_of_squares(in, C)), "%s: sum of squares", level);
}

Test(kernels, not_a_number_goes_in_and_comes_out)
{
    each_level(not_a_number_stays);
}

/* ---- bf16 ---- */

static float float_of(uint32_t word)
{
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static uint32_t word_of(float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

static void bf16_of_single_numbers(void)
{
    const struct kernels *k = kernels();
    static const uint32_t cases[][2] = {
        {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x3f800000, 0x3f80}, /* 0, -0, 1 */
        {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82},                       /* half way: to the even one, below, above */
        {0x3f808001, 0x3f81}, {0x3f807fff, 0x3f80}, {0xbf818000, 0xbf82},
        {0x7f800000, 0x7f80}, {0xff800000, 0xff80},                       /* infinities */
        {0x7f7fffff, 0x7f80}, {0x7f7f7fff, 0x7f7f}, {0xff7fffff, 0xff80}, /* past the largest: infinity */
        {0x7fc00000, 0x7fc0}, {0x7f800001, 0x7fc0}, {0xffffffff, 0xffff}, /* NaN, also one that lives in the low half */
        {0x00000001, 0x0000}, {0x00008001, 0x0001}, {0x007fffff, 0x0080}, /* denormals, one that becomes normal */
    };
    enum { COUNT = sizeof cases / sizeof cases[0] };
    real x[COUNT], high[COUNT], low[COUNT];
    uint16_t words[COUNT], rest[COUNT], alone[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        x[i] = (real)float_of(cases[i][0]);
    k->bf16_split_words(alone, NULL, x, COUNT);
    k->bf16_split_words(words, rest, x, COUNT);
    k->bf16_split(high, low, x, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        bool finite = (cases[i][1] & 0x7f80) != 0x7f80;
        cr_assert_eq(words[i], cases[i][1], "%s: %08x is rounded to %04x", level, cases[i][0], words[i]);
        cr_assert_eq(alone[i], words[i]);
        cr_assert_eq(word_of((float)high[i]), (uint32_t)words[i] << 16, "%s: %08x", level, cases[i][0]);
        cr_assert_eq(word_of((float)low[i]), (uint32_t)rest[i] << 16, "%s: %08x", level, cases[i][0]);
        cr_assert(finite || rest[i] == 0, "%s: nothing beside what is not finite", level);
    }
}

Test(kernels, bf16_is_the_nearest_ties_to_even_and_keeps_what_is_not_finite)
{
    each_level(bf16_of_single_numbers);
}

static void bf16_parts_of_a_range(void)
{
    const struct kernels *k = kernels();
    static real x[POINTS], high[POINTS], low[POINTS];
    fill_range(x, -3, 5);
    k->bf16_split(high, low, x, POINTS);
    for (int i = 0; i < POINTS; i++) {
        double value = (double)x[i];
        /* Half a unit of the last of 8 bits; of what is left the same again. */
        cr_assert_leq(fabs((double)high[i] - value), ldexp(fabs(value), -8), "%s: %g", level, value);
        cr_assert_leq(fabs((double)high[i] + (double)low[i] - value), ldexp(fabs(value), -16), "%s: %g", level, value);
    }
}

Test(kernels, two_bf16_parts_keep_sixteen_bits)
{
    each_level(bf16_parts_of_a_range);
}
