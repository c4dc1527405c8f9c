/* Matrix products by tiles of C that stay in registers, compiled for each level that has vectors wide enough (the
 * others leave products to BLAS).
 *
 *          b, in panels of COLUMNS columns, copied so that a tile reads it in one go
 *          +--------+--------+---
 *          |        |        |            A tile of ROWS x COLUMNS sums is made by one pass along K: a number of `a`
 *          +--------+--------+---         times a row of a panel, added to the row's sums. Either the rows of a
 *   a      |  tile  |        |            tile or the panel stay in the first cache, all panels in the second
 *          +--------+--------+---         (after Goto and van de Geijn, "Anatomy of high-performance matrix
 *                                         multiplication", 2008).
 *
 * The order in which an element is summed depends on K, the form and whether N is small, not on M or where operands
 * lie. */
#include <string.h>

#include "core/kernels.h"

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
/* The sums of a tile, with where a row of them lies in a matrix like c. */
#define EACH_SUM(at) UNROLL for (int i = 0; i < rows; i++, at += ldc) UNROLL for (int j = 0; j < vectors; j++)

#ifdef CORE_DOUBLE
#define REAL_BYTES 8
#else
#define REAL_BYTES 4
#endif

/* What suits a level. STRIP: rows that meet a panel before the next one is read; a tile's own, which stay in the first
 * cache while panels come from the second, or, where narrow vectors would double that traffic, all of a block, and the
 * panel stays. BLOCK_OF_COPIES: rows of `a` copied at a time, COPIED of K together. Sums do not depend on them. */
#ifdef __AVX512F__
#define VECTOR_BYTES 64
#define ROWS 12
#define STRIP ROWS
#define COPY 16
#define BLOCK_OF_COPIES 384
#define COPIED 1
#define EACH_ROWS(X, v)                                                                                                \
    X(1, v) X(2, v) X(3, v) X(4, v) X(5, v) X(6, v) X(7, v) X(8, v) X(9, v) X(10, v) X(11, v) X(12, v)
#else
#define VECTOR_BYTES 32
#define ROWS 6
#define STRIP BLOCK_OF_COPIES
#define COPY 8
#define BLOCK_OF_COPIES 192
#define COPIED 4
#define EACH_ROWS(X, v) X(1, v) X(2, v) X(3, v) X(4, v) X(5, v) X(6, v)
#endif

enum {
    VECTORS = 2,
    LANES = VECTOR_BYTES / sizeof(real),
    COLUMNS = VECTORS * LANES,
    LINE = 64 / sizeof(real),
    VECTORS_OF_LINE = 64 / VECTOR_BYTES,
    SHORT = 512,            /* parts of rows too short for the processor to fetch them ahead by itself */
    BLOCK = 96,             /* rows that are done at a time, a multiple of ROWS; BLOCK_OF_COPIES where `a` is copied */
    DEPTH = 1024,           /* largest part of K that is summed in registers: panels stay in the second cache */
    DEPTH_OF_COPIES = 128,  /* and where `a` is copied: copies stay there too */
    RUN_DOWN = STRIP > ROWS /* tiles follow down a panel, not across the panels */
};

typedef real vector __attribute__((vector_size(VECTOR_BYTES)));
typedef real vector_anywhere __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real))));
typedef real quad __attribute__((vector_size(4 * sizeof(real)), aligned(sizeof(real))));

static real panels[PRODUCT_PANELS] __attribute__((aligned(64)));
static real copies[PRODUCT_COPIES] __attribute__((aligned(64)));
_Static_assert(BLOCK_OF_COPIES / ROWS * COPY * (DEPTH_OF_COPIES + 1) <= PRODUCT_COPIES, "copies of a block of rows");

/* ---- tiles ---- */

/* Tiles that are made one after the other: little stands between their sums, so that the processor begins those of the
 * next before it has stored these. */
struct run {
    int64_t count, K, K_next; /* ..._next: what a tile has more than the one before it */
    const real *a;            /* row i, column k of the first tile's part: a[i * step + k], or in tiles down columns */
    int64_t step, a_next;     /* a[i + k * step] */
    const real *panel;
    int64_t panel_next;
    real alpha, beta;
    const real *bias;   /* of the panel, NULL: none */
    const real *addend; /* lies as c does, NULL: none */
    real *c;            /* [ROWS, COLUMNS] or less */
    int64_t ldc, c_next;
};

/* c [rows, vectors * LANES] of each tile, fetched before its sums, whole lines where rows of c begin with one; with
 * `ahead` the rows of `a` that come after a tile's are fetched too. */
INLINE void run_make(bool ahead, int rows, int vectors, bool along_rows, const struct run *run)
{
    const real *first = run->a, *panels_first = run->panel, *bias = run->bias, *addend = run->addend;
    real *c = run->c;
    int64_t K = run->K, ldc = run->ldc, down = along_rows ? run->step : 1, along = along_rows ? 1 : run->step;
    for (int64_t tile = 0; tile < run->count; tile++) {
        vector sums[ROWS][VECTORS], add[VECTORS];
        const real *a = first, *panel = panels_first;
        real *soon = c;
        UNROLL for (int i = 0; i < rows; i++, soon += ldc) UNROLL for (int j = 0; j < vectors; j += VECTORS_OF_LINE)
        {
            __builtin_prefetch(soon + j * LANES, 1);
        }
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sums[i][j] = (vector){0};
        _Pragma("GCC unroll 4") for (int64_t k = 0; k < K; k++)
        {
            vector row[VECTORS];
            if (ahead && k % LINE == 0)
                UNROLL for (int i = 0; i < rows; i++) __builtin_prefetch(a + (i + rows) * down, 0, 2);
            UNROLL for (int j = 0; j < vectors; j++) row[j] = *(const vector *)(panel + j * LANES);
            UNROLL for (int i = 0; i < rows; i++)
            {
                /* Three rows to an address, or addresses take more registers than there are. Less 0: a vector of it. */
                const real *third = a + i / 3 * 3 * down;
                vector factor = third[i % 3 * down] - (vector){0};
                UNROLL for (int j = 0; j < vectors; j++) sums[i][j] += factor * row[j];
            }
            a += along;
            panel += COLUMNS;
        }
        /* Addresses in c are worked out where they are used, not kept through the loop in registers that sums need. */
        __asm__("" : "+r"(c), "+r"(ldc));
        UNROLL for (int j = 0; j < vectors; j++) add[j] =
            bias ? *(const vector_anywhere *)(bias + j * LANES) : (vector){0};
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
        {
            sums[i][j] = sums[i][j] * run->alpha + add[j];
        }
        if (run->beta != 0) {
            const real *before = c;
            EACH_SUM(before)
            {
                sums[i][j] += run->beta * *(const vector_anywhere *)(before + j * LANES);
            }
            __asm__("" : "+r"(c), "+r"(ldc));
        }
        if (addend) {
            const real *more = addend;
            EACH_SUM(more)
            {
                sums[i][j] += *(const vector_anywhere *)(more + j * LANES);
            }
            addend += run->c_next;
            __asm__("" : "+r"(c), "+r"(ldc));
        }
        real *out = c;
        EACH_SUM(out)
        {
            *(vector_anywhere *)(out + j * LANES) = sums[i][j];
        }
        c += run->c_next;
        K += run->K_next;
        first += run->a_next;
        panels_first += run->panel_next;
        bias = bias && !RUN_DOWN ? bias + COLUMNS : bias;
    }
}

typedef void tiles(const struct run *run);

#define TILES(rows, vectors)                                                                                           \
    static void along_##rows##_##vectors(const struct run *run)                                                        \
    {                                                                                                                  \
        run_make(false, rows, vectors, true, run);                                                                     \
    }                                                                                                                  \
    static void down_##rows##_##vectors(const struct run *run)                                                         \
    {                                                                                                                  \
        run_make(false, rows, vectors, false, run);                                                                    \
    }
EACH_ROWS(TILES, 1)
EACH_ROWS(TILES, 2)

static void along_ahead(const struct run *run)
{
    run_make(true, ROWS, VECTORS, true, run);
}

#define ALONG(rows, vectors) along_##rows##_##vectors,
#define DOWN(rows, vectors) down_##rows##_##vectors,
static tiles *const tiles_along[VECTORS][ROWS] = {{EACH_ROWS(ALONG, 1)}, {EACH_ROWS(ALONG, 2)}};
static tiles *const tiles_down[VECTORS][ROWS] = {{EACH_ROWS(DOWN, 1)}, {EACH_ROWS(DOWN, 2)}};

/* ---- copies of operands ---- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* LANES / 4 quads, `step` apart, side by side; and shuffles of two vectors, the same in each quad. */
#define QUAD(x) (*(const quad *)(x))
#define PAIR(x, step) __builtin_shufflevector(QUAD(x), QUAD((x) + (step)), 0, 1, 2, 3, 4, 5, 6, 7)
#define FOUR(g, a, b, c, d) 4 * (g) + (a), 4 * (g) + (b), 4 * (g) + (c), 4 * (g) + (d)
#define EIGHT(g, ...) FOUR(g, __VA_ARGS__), FOUR(g + 1, __VA_ARGS__)
#if VECTOR_BYTES / REAL_BYTES == 16
#define QUADS(x, step)                                                                                                 \
    __builtin_shufflevector(PAIR(x, step), PAIR((x) + 2 * (step), step), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, \
                            14, 15)
#define SHUFFLE(x, y, ...) __builtin_shufflevector(x, y, EIGHT(0, __VA_ARGS__), EIGHT(2, __VA_ARGS__))
#elif VECTOR_BYTES / REAL_BYTES == 8
#define QUADS PAIR
#define SHUFFLE(x, y, ...) __builtin_shufflevector(x, y, EIGHT(0, __VA_ARGS__))
#else
#define QUADS(x, step) QUAD(x)
#define SHUFFLE(x, y, ...) __builtin_shufflevector(x, y, FOUR(0, __VA_ARGS__))
#endif

/* Columns [k, k + 4) of LANES rows: four vectors, a lane of each row. */
INLINE void rows_transpose(real *out, const real *in, int64_t ld)
{
    vector rows[4];
    UNROLL for (int i = 0; i < 4; i++) rows[i] = QUADS(in + i * ld, 4 * ld);
    vector low01 = SHUFFLE(rows[0], rows[1], 0, LANES, 1, LANES + 1);
    vector low23 = SHUFFLE(rows[2], rows[3], 0, LANES, 1, LANES + 1);
    vector high01 = SHUFFLE(rows[0], rows[1], 2, LANES + 2, 3, LANES + 3);
    vector high23 = SHUFFLE(rows[2], rows[3], 2, LANES + 2, 3, LANES + 3);
    *(vector *)out = SHUFFLE(low01, low23, 0, 1, LANES, LANES + 1);
    *(vector *)(out + COLUMNS) = SHUFFLE(low01, low23, 2, 3, LANES + 2, LANES + 3);
    *(vector *)(out + 2 * COLUMNS) = SHUFFLE(high01, high23, 0, 1, LANES, LANES + 1);
    *(vector *)(out + 3 * COLUMNS) = SHUFFLE(high01, high23, 2, 3, LANES + 2, LANES + 3);
}

/* out[k * COLUMNS + j] = in[j * ld + k] for `columns` rows j of `in`. */
static void panel_transpose(real *out, const real *in, int64_t ld, int64_t columns, int64_t K)
{
    int64_t j = 0;
    for (; j + LANES <= columns; j += LANES) {
        int64_t k = 0;
        for (; k + 4 <= K; k += 4)
            rows_transpose(out + k * COLUMNS + j, in + j * ld + k, ld);
        for (; k < K; k++)
            for (int64_t i = j; i < j + LANES; i++)
                out[k * COLUMNS + i] = in[i * ld + k];
    }
    for (; j < columns; j++)
        for (int64_t k = 0; k < K; k++)
            out[k * COLUMNS + j] = in[j * ld + k];
}

/* Columns [first, first + width) and rows [k, k + K) of b, as panels. */
static void panels_fill(const struct product *p, int64_t first, int64_t width, int64_t k, int64_t K)
{
    int64_t whole = width / COLUMNS * COLUMNS, rest = width - whole;
    if (rest)
        memset(panels + whole * K, 0, (size_t)(K * COLUMNS) * sizeof(real));
    if (p->form == GEMM_NT) {
        for (int64_t j = 0; j < width; j += COLUMNS)
            panel_transpose(panels + j * K, p->b + (first + j) * p->ldb + k, p->ldb, smaller(width - j, COLUMNS), K);
        return;
    }
    for (int64_t i = 0; i < K; i++) {
        const real *row = p->b + (k + i) * p->ldb + first;
        for (int64_t j = 0; j < whole; j += COLUMNS)
            memcpy(panels + j * K + i * COLUMNS, row + j, COLUMNS * sizeof(real));
        memcpy(panels + whole * K + i * COLUMNS, row + whole, (size_t)rest * sizeof(real));
    }
}

/* Rows [first, first + rows) of A^T, ROWS of them side by side: tiles read them in one go, where they lie far apart in
 * `a`. Each group is COPY long, whole vectors: twice as fast to write; one more lies between those of the next
 * rows, so that they do not meet in the same sets of the cache. */
static void copies_fill(const struct product *p, int64_t first, int64_t rows, int64_t k, int64_t K)
{
    for (int64_t i = 0; i < K; i += COPIED) {
        const real *row = p->a + (k + i) * p->lda + first;
        real *out = copies + i * COPY;
        int64_t count = smaller(K - i, COPIED);
        for (int64_t j = 0; j < rows; j += ROWS, out += (K + 1) * COPY) {
            bool whole = count == COPIED && first + j + COPY <= p->M;
            if (whole)
                UNROLL for (int64_t n = 0; n < COPIED; n++)
                {
                    if (COPIED > 1) /* parts of rows too short to be foreseen */
                        __builtin_prefetch(row + j + (n + 2 * COPIED) * p->lda, 0, 2);
                    memcpy(out + n * COPY, row + j + n * p->lda, COPY * sizeof(real));
                }
            for (int64_t n = 0; !whole && n < count; n++)
                memcpy(out + n * COPY, row + j + n * p->lda, (size_t)smaller(rows - j, ROWS) * sizeof(real));
        }
    }
}

/* ---- products ---- */

/* A part of a product: some columns of C, summed over some of K. */
struct part {
    const struct product *p;
    int64_t column, columns, k, K;
    bool copied;
};

/* The part of [k, k + K) that rows [row, row + rows) need. */
static void rows_depth(const struct part *part, int64_t row, int64_t rows, int64_t *from, int64_t *to)
{
    const struct product *p = part->p;
    *from = 0, *to = part->K;
    if (!p->causal)
        return;
    if (p->form == GEMM_NN)
        *to = smaller(*to, p->first + row + rows - part->k);
    if (p->form == GEMM_TN && row - p->first > part->k)
        *from = smaller(row - p->first - part->k, part->K);
    *to = *to < *from ? *from : *to;
}

/* Columns of C that a tile makes: fewer than COLUMNS at the end, one vector where the rest lies behind the diagonal. */
static int64_t tile_columns(const struct part *part, int64_t row, int64_t rows, int64_t j)
{
    const struct product *p = part->p;
    int64_t columns = smaller(part->columns - j, COLUMNS), reach = p->first + row + rows - (part->column + j);
    return p->causal && p->form == GEMM_NT && columns == COLUMNS && reach <= LANES ? LANES : columns;
}

/* Lets the first tile of a run be followed by those that go on as the second does: across the panels, or down one as
 * far as row `end`. */
static void run_extend(struct run *run, const struct part *part, int64_t row, int64_t end, int64_t j)
{
    const struct product *p = part->p;
    if (!RUN_DOWN) {
        run->panel_next = part->K * COLUMNS;
        run->c_next = COLUMNS;
        while (tile_columns(part, row, ROWS, j + run->count * COLUMNS) == COLUMNS)
            run->count++;
        return;
    }
    int64_t most = (end - row) / ROWS, from, to, then_from, then_to;
    rows_depth(part, row, ROWS, &from, &to);
    rows_depth(part, row + ROWS, ROWS, &then_from, &then_to);
    int64_t later = then_from - from, longer = then_to - to;
    run->c_next = ROWS * run->ldc;
    run->a_next = part->copied ? COPY * (part->K + 1) : p->form == GEMM_TN ? ROWS : ROWS * run->step;
    run->a_next += later * (p->form == GEMM_TN ? run->step : 1);
    run->panel_next = later * COLUMNS;
    run->K_next = longer - later;
    if (!p->causal)
        run->count = most;
    for (; run->count < most; run->count++) {
        rows_depth(part, row + run->count * ROWS, ROWS, &then_from, &then_to);
        if (then_from != from + run->count * later || then_to != to + run->count * longer)
            break;
    }
}

/* What a run would have made of c, of the sums of its one tile. */
static void corner_add(const struct run *run, const real *corner, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++) {
            real *c = run->c + i * run->ldc + k, sum = corner[i * COLUMNS + k] + (run->bias ? run->bias[k] : 0);
            sum = run->beta == 0 ? sum : sum + run->beta * *c;
            *c = run->addend ? sum + run->addend[i * run->ldc + k] : sum;
        }
}

/* The tile at (row, j), and those that go on from it while rows are before `end`; how many they are. At the right end
 * of C, where the last vector has columns too many, by way of a corner. a: of its rows, `step` as in a run. */
static int64_t part_run(const struct part *part, int64_t row, int64_t end, int64_t j, const real *a, int64_t step)
{
    const struct product *p = part->p;
    int64_t from, to, rows = smaller(end - row, ROWS), columns = tile_columns(part, row, rows, j);
    int64_t at = row * p->ldc + part->column + j;
    bool down = p->form == GEMM_TN, wide = columns > LANES;
    tiles *make = (down ? tiles_down : tiles_along)[wide][rows - 1];
    rows_depth(part, row, rows, &from, &to);
    struct run run = {.count = 1,
                      .K = to - from,
                      .a = a + from * (down ? step : 1),
                      .step = step,
                      .panel = panels + j * part->K + from * COLUMNS,
                      .alpha = p->alpha,
                      .beta = part->k == 0 ? p->beta : 1,
                      .bias = p->bias && part->k == 0 ? p->bias + part->column + j : NULL,
                      .addend = p->addend && part->k + part->K == p->K ? p->addend + at : NULL,
                      .c = p->c + at,
                      .ldc = p->ldc};
    if (columns == COLUMNS && rows == ROWS) {
        run_extend(&run, part, row, end, j);
        int64_t followed = RUN_DOWN ? smaller(run.count, (p->M - row) / ROWS - 1) : row + 2 * ROWS <= p->M;
        if (!down && !p->causal && j == 0 && run.K <= SHORT && followed > 0) {
            make = along_ahead;
            run.count = followed;
        }
    }
    if (columns == (wide ? COLUMNS : LANES)) {
        make(&run);
        return run.count;
    }
    real corner[ROWS * COLUMNS] = {0};
    struct run sums = run;
    sums.beta = 0, sums.bias = sums.addend = NULL;
    sums.c = corner, sums.ldc = COLUMNS;
    make(&sums);
    corner_add(&run, corner, rows, columns);
    return 1;
}

/* Rows [strip, end) of a block that begins with row `first`, one panel; how many panels were made. */
static int64_t part_strip(const struct part *part, int64_t first, int64_t strip, int64_t end, int64_t j)
{
    const struct product *p = part->p;
    int64_t made = 1, down = p->form == GEMM_TN ? 1 : p->lda, along = p->form == GEMM_TN ? p->lda : 1;
    for (int64_t i = strip; i < end; i += (RUN_DOWN ? made : 1) * ROWS) {
        int64_t row = first + i, last = smaller(row + ROWS, first + end) - 1;
        made = 1;
        if (p->causal && p->form == GEMM_NT && part->column + j > p->first + last)
            continue; /* behind the diagonal */
        if (part->copied)
            made = part_run(part, row, first + end, j, copies + i / ROWS * COPY * (part->K + 1), COPY);
        else
            made = part_run(part, row, first + end, j, p->a + part->k * along + row * down, p->lda);
    }
    return RUN_DOWN ? 1 : made;
}

static void part_block(const struct part *part, int64_t first, int64_t rows)
{
    const struct product *p = part->p;
    if (part->copied)
        copies_fill(p, first, rows, part->k, part->K);
    for (int64_t strip = 0; strip < rows; strip += STRIP)
        for (int64_t j = 0; j < part->columns;)
            j += COLUMNS * part_strip(part, first, strip, smaller(strip + STRIP, rows), j);
    if (p->rows_done && part->column + part->columns == p->N && part->k + part->K == p->K)
        p->rows_done(p->context, first, rows);
}

/* Parts of at most `most`, all about as long. */
static int64_t part_length(int64_t K, int64_t most)
{
    int64_t parts = (K + most - 1) / most;
    return smaller(most, (K + parts - 1) / parts + 7) / 8 * 8;
}

extern void PASTE(tiles_, KERNEL_LEVEL)(const struct product *p);
void PASTE(tiles_, KERNEL_LEVEL)(const struct product *p)
{
    bool copied = p->form == GEMM_TN && p->N > 2 * COLUMNS;
    int64_t most = copied ? DEPTH_OF_COPIES : DEPTH, depth = p->K <= most ? p->K : part_length(p->K, most);
    int64_t width = PRODUCT_PANELS / (depth ? depth : 1) / COLUMNS * COLUMNS;
    for (int64_t column = 0; column < p->N; column += width)
        for (int64_t k = 0; k == 0 || k < p->K; k += depth ? depth : 1) {
            struct part part = {p, column, smaller(width, p->N - column), k, smaller(depth, p->K - k), copied};
            panels_fill(p, column, part.columns, k, part.K);
            int64_t block = copied ? BLOCK_OF_COPIES : BLOCK;
            for (int64_t row = 0; row < p->M; row += block)
                part_block(&part, row, smaller(block, p->M - row));
        }
}
