/* The element loops. Compiled with -DKERNEL_LEVEL=v2, v3, v4 (or generic), each with that level's instructions.
 *
 * `omp simd` marks what may be vectorised, sums included; the flags leave NaN and infinity their meaning. The
 * exponential and the normal distribution are ours so that one source gives the same bits with any libm: exp by 2^n
 * times a polynomial on [-ln2/2, ln2/2] (relative error 3e-9 before rounding), the normal tail by Mills' ratio as a
 * polynomial in 1 / (1 + 0.33 z) (error of the product with the density 2e-9). Both were fitted by reweighted least
 * squares. */
#include "core/kernels.h"

#include <math.h>

#define SIMD _Pragma("omp simd")
#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#define INLINE static inline __attribute__((always_inline))

/* ---- functions of one number ---- */

#ifdef CORE_DOUBLE

INLINE real root(real x)
{
    return sqrt(x);
}

INLINE real exponential(real x)
{
    return exp(x);
}

/* Normal density and distribution function. */
INLINE void normal_at(real x, real *density, real *below)
{
    *density = exp(-0.5 * x * x) * 0.3989422804014327;
    *below = 0.5 * erfc(-x * 0.7071067811865476);
}

#else

INLINE real root(real x)
{
    return sqrtf(x);
}

union bits {
    float value;
    int32_t word;
};

/* Of x up to 88; below -87 it is 0. */
INLINE real exponential(real x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number kept in the low bits */
    union bits shifted = {.value = x * 1.44269504f + magic};
    float n = shifted.value - magic;
    float r = x - n * 0.693359375f;
    r = r + n * 2.12194440e-4f; /* ln 2 in two parts */
    float q = 1.3814248e-3f;
    q = q * r + 8.3689047e-3f;
    q = q * r + 4.1668406e-2f;
    q = q * r + 1.66665191e-1f;
    q = q * r + 4.99999933e-1f;
    union bits power = {.word = (int32_t)(((uint32_t)shifted.word << 23) + 0x3f800000u)};
    float result = (q * r * r + r + 1.0f) * power.value;
    return x < -87.0f ? 0.0f : result;
}

INLINE void normal_at(real x, real *density, real *below)
{
    float z = x < 0 ? -x : x;
    float d = exponential(-0.5f * z * z) * 0.398942280f;
    float t = 1.0f / (1.0f + 0.33f * z);
    float m = 0.109516878f;
    m = m * t - 0.530583008f;
    m = m * t + 0.785903272f;
    m = m * t - 0.177195899f;
    m = m * t + 0.426447560f;
    m = m * t + 0.307883675f;
    m = m * t + 0.331341665f;
    float tail = d * m * t;
    *density = d;
    *below = x < 0 ? tail : 1.0f - tail;
}

#endif

INLINE real sigmoid(real x)
{
    return 1 / (1 + exponential(x < -88 ? 88 : -x));
}

/* ---- norms ---- */

INLINE void norm_forward(bool centred, real *out, real *mean, real *rstd, const real *in, const real *weight,
                         const real *bias, real epsilon, size_t N, size_t C)
{
    for (size_t n = 0; n < N; n++) {
        const real *x = in + n * C;
        real *y = out + n * C;
        real sum = 0, squares = 0;
        if (centred) {
#pragma omp simd reduction(+ : sum)
            for (size_t c = 0; c < C; c++)
                sum += x[c];
        }
        real centre = sum / (real)C;
#pragma omp simd reduction(+ : squares)
        for (size_t c = 0; c < C; c++)
            squares += (x[c] - centre) * (x[c] - centre);
        real r = 1 / root(squares / (real)C + epsilon);
        if (bias) {
            SIMD for (size_t c = 0; c < C; c++) y[c] = (x[c] - centre) * r * weight[c] + bias[c];
        } else {
            SIMD for (size_t c = 0; c < C; c++) y[c] = (x[c] - centre) * r * weight[c];
        }
        if (centred)
            mean[n] = centre;
        rstd[n] = r;
    }
}

INLINE void norm_backward(bool centred, real *din, bool add, real *dweight, real *dbias, const real *dout,
                          const real *in, const real *weight, const real *mean, const real *rstd, size_t N, size_t C)
{
    for (size_t n = 0; n < N; n++) {
        const real *x = in + n * C, *dy = dout + n * C;
        real *dx = din + n * C;
        real centre = centred ? mean[n] : 0, r = rstd[n], sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
        for (size_t c = 0; c < C; c++) {
            real d = dy[c] * weight[c];
            sum += d;
            product += d * ((x[c] - centre) * r);
        }
        real average = centred ? sum / (real)C : 0, along = product / (real)C;
        if (dbias) {
            SIMD for (size_t c = 0; c < C; c++) dbias[c] += dy[c];
        }
        SIMD for (size_t c = 0; c < C; c++)
        {
            real normal = (x[c] - centre) * r;
            dweight[c] += dy[c] * normal;
            real d = r * (dy[c] * weight[c] - average - normal * along);
            dx[c] = add ? dx[c] + d : d;
        }
    }
}

static void layernorm_forward(real *out, real *mean, real *rstd, const real *in, const real *weight, const real *bias,
                              real epsilon, size_t N, size_t C)
{
    norm_forward(true, out, mean, rstd, in, weight, bias, epsilon, N, C);
}

static void layernorm_backward(real *din, bool add, real *dweight, real *dbias, const real *dout, const real *in,
                               const real *weight, const real *mean, const real *rstd, size_t N, size_t C)
{
    norm_backward(true, din, add, dweight, dbias, dout, in, weight, mean, rstd, N, C);
}

static void rmsnorm_forward(real *out, real *mean, real *rstd, const real *in, const real *weight, const real *bias,
                            real epsilon, size_t N, size_t C)
{
    norm_forward(false, out, mean, rstd, in, weight, bias, epsilon, N, C);
}

static void rmsnorm_backward(real *din, bool add, real *dweight, real *dbias, const real *dout, const real *in,
                             const real *weight, const real *mean, const real *rstd, size_t N, size_t C)
{
    norm_backward(false, din, add, dweight, dbias, dout, in, weight, mean, rstd, N, C);
}

/* ---- activations ---- */

static void gelu(real *out, size_t out_ld, real *in, size_t in_ld, size_t N, size_t F)
{
    for (size_t n = 0; n < N; n++, out += out_ld, in += in_ld)
        SIMD for (size_t i = 0; i < F; i++)
        {
            real x = in[i], density, below;
            normal_at(x, &density, &below);
            out[i] = x * below;
            in[i] = below + x * density;
        }
}

/* gelu_tanh(x) = x (1 + tanh(u)) / 2 = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3)
 * (Hendrycks and Gimpel, "Gaussian error linear units", 2016). */
static void gelu_tanh(real *out, size_t out_ld, real *in, size_t in_ld, size_t N, size_t F)
{
    const real twice = (real)1.5957691216057308, cubic = (real)0.044715;
    for (size_t n = 0; n < N; n++, out += out_ld, in += in_ld)
        SIMD for (size_t i = 0; i < F; i++)
        {
            real x = in[i], s = sigmoid(twice * (x + cubic * x * x * x));
            out[i] = x * s;
            in[i] = s + x * s * (1 - s) * twice * (1 + 3 * cubic * x * x);
        }
}

/* swiglu = silu(gate) * up (Shazeer, "GLU variants improve transformer", 2020). */
static void swiglu(real *out, size_t out_ld, real *in, size_t in_ld, size_t N, size_t F)
{
    for (size_t n = 0; n < N; n++) {
        real *up = in + n * in_ld, *gate = up + F, *y = out + n * out_ld;
        SIMD for (size_t i = 0; i < F; i++)
        {
            real u = up[i], g = gate[i], s = sigmoid(g);
            y[i] = g * s * u;
            up[i] = g * s;
            gate[i] = u * (s + g * s * (1 - s));
        }
    }
}

static void slopes_multiply(real *slopes, size_t ld, real *dbias, const real *dout, size_t dout_ld, size_t N,
                            size_t inputs, size_t F)
{
    for (size_t n = 0; n < N; n++)
        for (size_t part = 0; part < inputs; part++) {
            real *slope = slopes + n * ld + part * F;
            const real *d = dout + n * dout_ld;
            if (!dbias) {
                SIMD for (size_t i = 0; i < F; i++) slope[i] *= d[i];
                continue;
            }
            real *sum = dbias + part * F;
            SIMD for (size_t i = 0; i < F; i++)
            {
                slope[i] *= d[i];
                sum[i] += slope[i];
            }
        }
}

/* ---- sums and biases ---- */

static void add(real *out, const real *a, const real *b, size_t n)
{
    SIMD for (size_t i = 0; i < n; i++) out[i] = a[i] + b[i];
}

static void bias_gradient(real *dbias, const real *dout, size_t ld, size_t N, size_t F)
{
    for (size_t n = 0; n < N; n++) {
        const real *row = dout + n * ld;
        SIMD for (size_t i = 0; i < F; i++) dbias[i] += row[i];
    }
}

static double sum_of_squares(const real *x, size_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

static void exponential_all(real *out, const real *in, size_t n)
{
    SIMD for (size_t i = 0; i < n; i++) out[i] = exponential(in[i]);
}

/* ---- softmax ---- */

enum { LANES = KERNEL_LANES };

/* Largest of the lanes, halved until one is left. */
INLINE real lanes_maximum(real *lane)
{
    _Static_assert(LANES == 16, "four halvings");
    SIMD for (size_t j = 0; j < 8; j++) lane[j] = lane[j + 8] > lane[j] ? lane[j + 8] : lane[j];
    SIMD for (size_t j = 0; j < 4; j++) lane[j] = lane[j + 4] > lane[j] ? lane[j + 4] : lane[j];
    lane[0] = lane[2] > lane[0] ? lane[2] : lane[0];
    lane[1] = lane[3] > lane[1] ? lane[3] : lane[1];
    return lane[1] > lane[0] ? lane[1] : lane[0];
}

/* Largest of n >= 1 numbers, NaN passed over. In lanes by hand: a maximum that minds NaN is no reduction to compilers.
 */
INLINE real row_maximum(const real *x, size_t n)
{
    real lane[LANES];
    size_t whole = n / LANES * LANES;
    for (size_t j = 0; j < LANES; j++)
        lane[j] = -INFINITY;
    for (size_t i = 0; i < whole; i += LANES) {
        SIMD for (size_t j = 0; j < LANES; j++) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
    }
    for (size_t i = whole; i < n; i++)
        lane[i - whole] = x[i] > lane[i - whole] ? x[i] : lane[i - whole];
    return lanes_maximum(lane);
}

/* Entries of a row of scores with those that fill it up to whole lanes, which get the value `fill`. */
INLINE size_t row_fill(real *row, size_t n, real fill)
{
    size_t whole = (n + LANES - 1) / LANES * LANES;
    real *last = row + whole - LANES;
    int32_t left = (int32_t)(n + LANES - whole);
    SIMD for (int32_t j = 0; j < LANES; j++) last[j] = j < left ? last[j] : fill;
    return whole;
}

INLINE void row_clear(real *row, size_t from, size_t width)
{
    for (size_t i = from; i < width; i++)
        row[i] = 0;
}

INLINE void soon_fetch(const struct soon *soon, size_t r)
{
    for (size_t i = 0; i < soon->count; i++)
        for (size_t c = 0; c < soon->width; c += 64 / sizeof(real))
            __builtin_prefetch(soon->of[i].rows + r * soon->of[i].ld + c, 0, 2);
}

static void softmax_causal(real *scores, size_t ld, real *most, real *scale, size_t R, size_t first, size_t width,
                           const struct soon *soon)
{
    for (size_t r = 0; r < R; r++) {
        real *row = scores + r * ld, sum = 0;
        soon_fetch(soon, r);
        size_t whole = row_fill(row, first + r, -INFINITY); /* whose exponential is 0 */
        real shift = row_maximum(row, whole);
#pragma omp simd reduction(+ : sum)
        for (size_t i = 0; i < whole; i++) {
            row[i] = exponential(row[i] - shift);
            sum += row[i];
        }
        real factor = 1 / sum;
        SIMD for (size_t i = 0; i < whole; i++) row[i] *= factor;
        row_clear(row, whole, width);
        most[r] = shift;
        scale[r] = factor;
    }
}

static void softmax_again(real *scores, size_t ld, const real *most, const real *scale, size_t R, size_t first,
                          size_t width, const struct soon *soon)
{
    for (size_t r = 0; r < R; r++) {
        real *row = scores + r * ld, shift = most[r], factor = scale[r];
        soon_fetch(soon, r);
        size_t whole = row_fill(row, first + r, -INFINITY);
        SIMD for (size_t i = 0; i < whole; i++) row[i] = exponential(row[i] - shift) * factor;
        row_clear(row, whole, width);
    }
}

static void softmax_backward(real *dp, const real *p, size_t ld, real scale, size_t R, size_t first, size_t width)
{
    for (size_t r = 0; r < R; r++) {
        real *d = dp + r * ld, centre = 0;
        const real *q = p + r * ld;
        size_t whole = row_fill(d, first + r, 0);
#pragma omp simd reduction(+ : centre)
        for (size_t i = 0; i < whole; i++)
            centre += q[i] * d[i];
        SIMD for (size_t i = 0; i < whole; i++) d[i] = q[i] * (d[i] - centre) * scale;
        row_clear(d, whole, width);
    }
}

static double cross_entropy(real *logits, size_t ld, const int32_t *targets, bool gradient, real scale, size_t N,
                            size_t V)
{
    double nats = 0;
    for (size_t n = 0; n < N; n++) {
        real *row = logits + n * ld;
        if (targets[n] < 0) {
            for (size_t v = 0; gradient && v < V; v++)
                row[v] = 0;
            continue;
        }
        real most = row_maximum(row, V), chosen = row[targets[n]], sum = 0;
        if (gradient) {
#pragma omp simd reduction(+ : sum)
            for (size_t v = 0; v < V; v++) {
                row[v] = exponential(row[v] - most);
                sum += row[v];
            }
            real factor = scale / sum;
            SIMD for (size_t v = 0; v < V; v++) row[v] *= factor;
            row[targets[n]] -= scale;
        } else {
#pragma omp simd reduction(+ : sum)
            for (size_t v = 0; v < V; v++)
                sum += exponential(row[v] - most);
        }
        nats += log((double)sum) + (double)most - (double)chosen;
    }
    return nats;
}

/* ---- rotation ---- */

static void rotate(real *x, size_t ld, const real *cosines, const real *sines, real sign, bool split, size_t N,
                   size_t first, size_t T, size_t heads, size_t D)
{
    size_t half = D / 2;
    for (size_t n = 0; n < N; n++) {
        size_t position = first + n % T;
        const real *cosine = cosines + position * half, *sine = sines + position * half;
        for (size_t h = 0; h < heads; h++) {
            real *head = x + n * ld + h * D;
            if (split) {
                SIMD for (size_t i = 0; i < half; i++)
                {
                    real a = head[i], b = head[i + half], s = sign * sine[i];
                    head[i] = a * cosine[i] - b * s;
                    head[i + half] = a * s + b * cosine[i];
                }
            } else {
                SIMD for (size_t i = 0; i < half; i++)
                {
                    real a = head[2 * i], b = head[2 * i + 1], s = sign * sine[i];
                    head[2 * i] = a * cosine[i] - b * s;
                    head[2 * i + 1] = a * s + b * cosine[i];
                }
            }
        }
    }
}

/* ---- dropout ---- */

enum { DROPOUT_GROUPS = 16 }; /* Philox blocks made side by side */

/* words[4 * g + w] = word w of the block at index + g; the rounds of random.c over DROPOUT_GROUPS counters at once. */
INLINE void philox_side_by_side(uint32_t *words, const struct random_stream *stream, uint64_t index)
{
    uint32_t c0[DROPOUT_GROUPS], c1[DROPOUT_GROUPS], c2[DROPOUT_GROUPS], c3[DROPOUT_GROUPS];
    uint32_t k0 = stream->key[0], k1 = stream->key[1];
    for (int g = 0; g < DROPOUT_GROUPS; g++) {
        c0[g] = (uint32_t)(index + (uint64_t)g);
        c1[g] = (uint32_t)((index + (uint64_t)g) >> 32);
        c2[g] = stream->name[0];
        c3[g] = stream->name[1];
    }
    for (int round = 0; round < 10; round++) {
        SIMD for (int g = 0; g < DROPOUT_GROUPS; g++)
        {
            uint64_t p0 = (uint64_t)c0[g] * 0xD2511F53u, p1 = (uint64_t)c2[g] * 0xCD9E8D57u;
            c0[g] = (uint32_t)(p1 >> 32) ^ c1[g] ^ k0;
            c1[g] = (uint32_t)p1;
            c2[g] = (uint32_t)(p0 >> 32) ^ c3[g] ^ k1;
            c3[g] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int g = 0; g < DROPOUT_GROUPS; g++) {
        words[4 * g] = c0[g];
        words[4 * g + 1] = c1[g];
        words[4 * g + 2] = c2[g];
        words[4 * g + 3] = c3[g];
    }
}

static void dropout(real *x, size_t ld, const struct random_stream *stream, uint64_t step, uint64_t first_row,
                    double rate, size_t N, size_t columns, size_t width)
{
    uint32_t words[4 * DROPOUT_GROUPS];
    uint32_t threshold = (uint32_t)(rate * 4294967296.0);
    real scale = (real)(1 / (1 - rate));
    uint64_t groups = (columns + 3) / 4;
    for (size_t n = 0; n < N; n++) {
        uint64_t index = (step << 34) + (first_row + n) * groups;
        for (size_t from = 0; from < width; from += 4 * DROPOUT_GROUPS, index += DROPOUT_GROUPS) {
            philox_side_by_side(words, stream, index);
            real *row = x + n * ld + from;
            size_t count = width - from < 4 * DROPOUT_GROUPS ? width - from : 4 * DROPOUT_GROUPS;
            SIMD for (size_t i = 0; i < count; i++) row[i] = words[i] < threshold ? 0 : row[i] * scale;
        }
    }
}

/* ---- bf16: the upper half of a float ---- */

union bf16_bits {
    float value;
    uint32_t word;
};

INLINE uint32_t bf16_of(float x)
{
    union bf16_bits bits = {.value = x};
    uint32_t nearest = (bits.word + 0x7fffu + ((bits.word >> 16) & 1)) & 0xffff0000u;
    uint32_t quiet = (bits.word & 0xffff0000u) | 0x00400000u;
    return (bits.word & 0x7fffffffu) > 0x7f800000u ? quiet : nearest;
}

INLINE float bf16_value(uint32_t word)
{
    return (union bf16_bits){.word = word}.value;
}

INLINE uint32_t bf16_rest(real x, uint32_t high)
{
    uint32_t rest = bf16_of((float)(x - (real)bf16_value(high)));
    return (high & 0x7f800000u) == 0x7f800000u ? 0 : rest;
}

static void bf16_split(real *high, real *low, const real *x, size_t n)
{
    if (!low) {
        SIMD for (size_t i = 0; i < n; i++) high[i] = (real)bf16_value(bf16_of((float)x[i]));
        return;
    }
    SIMD for (size_t i = 0; i < n; i++)
    {
        uint32_t word = bf16_of((float)x[i]);
        high[i] = (real)bf16_value(word);
        low[i] = (real)bf16_value(bf16_rest(x[i], word));
    }
}

static void bf16_split_words(uint16_t *high, uint16_t *low, const real *x, size_t n)
{
    if (!low) {
        SIMD for (size_t i = 0; i < n; i++) high[i] = (uint16_t)(bf16_of((float)x[i]) >> 16);
        return;
    }
    SIMD for (size_t i = 0; i < n; i++)
    {
        uint32_t word = bf16_of((float)x[i]);
        high[i] = (uint16_t)(word >> 16);
        low[i] = (uint16_t)(bf16_rest(x[i], word) >> 16);
    }
}

/* ---- optimiser ---- */

static void adamw(const struct adamw *adamw, real *parameter, real *first, real *second, const real *gradient, size_t n)
{
    const struct adamw a = *adamw;
    SIMD for (size_t i = 0; i < n; i++)
    {
        real g = gradient[i] * a.gradient_scale;
        real m = a.beta1 * first[i] + a.one_minus_beta1 * g;
        real v = a.beta2 * second[i] + a.one_minus_beta2 * g * g;
        first[i] = m;
        second[i] = v;
        real scale = root(v) * a.second_correction + a.epsilon;
        parameter[i] = parameter[i] * a.keep - a.step_size * m / scale;
    }
}

#ifdef __AVX2__
extern void PASTE(tiles_, KERNEL_LEVEL)(const struct product *product);
#define PRODUCT PASTE(tiles_, KERNEL_LEVEL)
#else
#define PRODUCT NULL
#endif

extern const struct kernels PASTE(kernels_, KERNEL_LEVEL);
const struct kernels PASTE(kernels_, KERNEL_LEVEL) = {
    .level = TEXT(KERNEL_LEVEL),
    .product = PRODUCT,
    /* clang-format off */
    .norm = {
#define NORM(NAME, name, ...) {name##_forward, name##_backward},
#include "core/parts.def"
    },
    .activation = {
#define ACTIVATION(NAME, name, ...) name,
#include "core/parts.def"
    },
    /* clang-format on */
    .slopes_multiply = slopes_multiply,
    .add = add,
    .bias_gradient = bias_gradient,
    .softmax_causal = softmax_causal,
    .softmax_again = softmax_again,
    .softmax_backward = softmax_backward,
    .cross_entropy = cross_entropy,
    .rotate = rotate,
    .dropout = dropout,
    .bf16_split = bf16_split,
    .bf16_split_words = bf16_split_words,
    .sum_of_squares = sum_of_squares,
    .adamw = adamw,
    .exponential = exponential_all,
};
