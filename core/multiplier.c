/* Products at a precision: operands are made ready in a workspace, then multiplied. */
#include "core/multiplier.h"

#include <string.h>

#include "core/bf16.h"
#include "core/kernels.h"
#include "core/knob.h"
#include "core/memory.h"
#include "core/onednn.h"

/* Products of fewer rows (text one token at a time, each longer by one) are no work for hardware that is set up for
 * each shape: software rounds the same. */
enum { HARDWARE_ROWS = 16 };

/* Room for an operand made ready. */
struct room {
    void *base;
    size_t size;
};

struct multiplier {
    int precision;
    struct onednn_products *hardware; /* NULL: in software */
    struct room a, b;
};

/* Parts of an operand, side by side along K. */
enum part { HIGH, LOW, BOTH };

struct layout {
    int parts;
    enum part a[3], b[3];
};

static const struct layout one_part = {1, {HIGH}, {HIGH}};
static const struct layout words_of_two = {3, {HIGH, HIGH, LOW}, {HIGH, LOW, HIGH}};
static const struct layout reals_of_two = {2, {HIGH, LOW}, {BOTH, HIGH}};

static const struct layout *layout_of(int precision, bool hardware)
{
    if (precision == PRECISION_BF16)
        return &one_part;
    return hardware ? &words_of_two : &reals_of_two;
}

static size_t operand_size(int precision, bool hardware, int64_t elements)
{
    size_t element = hardware ? sizeof(uint16_t) : sizeof(real);
    return (size_t)elements * (size_t)layout_of(precision, hardware)->parts * element;
}

static void room_reserve(struct room *room, size_t size)
{
    if (size <= room->size)
        return;
    memory_free(room->base);
    room->base = memory_alloc(size, 1);
    room->size = size;
}

struct multiplier *multiplier_create(int precision, int64_t largest)
{
    struct multiplier *multiplier = memory_alloc(1, sizeof *multiplier);
    multiplier->precision = precision;
    if (precision == PRECISION_FP32)
        return multiplier;
    if (bf16_in_hardware())
        multiplier->hardware = onednn_products_create();
    size_t size = operand_size(precision, multiplier->hardware != NULL, largest);
    room_reserve(&multiplier->a, size);
    room_reserve(&multiplier->b, size);
    return multiplier;
}

void multiplier_free(struct multiplier *multiplier)
{
    if (!multiplier)
        return;
    onednn_products_free(multiplier->hardware);
    memory_free(multiplier->a.base);
    memory_free(multiplier->b.base);
    memory_free(multiplier);
}

size_t multiplier_memory(int precision, int64_t largest)
{
    return precision == PRECISION_FP32 ? 0 : 2 * operand_size(precision, bf16_in_hardware(), largest);
}

/* ---- operands ---- */

/* An operand as stored, and how it is made ready. K runs along its columns, or down its rows. */
struct operand {
    const real *x;
    int64_t rows, columns, ld;
    bool k_in_columns;
    const enum part *parts;
    int count;
};

/* Where row `row` of part number `index` goes, in elements. */
static int64_t part_offset(const struct operand *o, int index, int64_t row)
{
    if (o->k_in_columns)
        return (row * o->count + index) * o->columns;
    return (index * o->rows + row) * o->columns;
}

static void words_make(uint16_t *out, const struct operand *o)
{
    size_t n = (size_t)o->columns;
    int high = 0, low = o->count == 1 ? -1 : o->parts[1] == LOW ? 1 : 2, copy = 3 - low;
    for (int64_t row = 0; row < o->rows; row++) {
        uint16_t *first = out + part_offset(o, high, row);
        kernels()->bf16_split_words(first, low < 0 ? NULL : out + part_offset(o, low, row), o->x + row * o->ld, n);
        if (low > 0)
            memcpy(out + part_offset(o, copy, row), first, n * sizeof *out);
    }
}

static void reals_make(real *out, const struct operand *o)
{
    size_t n = (size_t)o->columns;
    for (int64_t row = 0; row < o->rows; row++) {
        const real *x = o->x + row * o->ld;
        real *first = out + part_offset(o, 0, row);
        if (o->count == 1) {
            kernels()->bf16_split(first, NULL, x, n);
            continue;
        }
        real *second = out + part_offset(o, 1, row);
        if (o->parts[0] == HIGH) {
            kernels()->bf16_split(first, second, x, n);
        } else { /* both and high */
            kernels()->bf16_split(second, first, x, n);
            kernels()->add(first, first, second, n);
        }
    }
}

/* Both operands, with the parts of the layout. */
static void operands_of(struct operand operands[2], const struct layout *layout, const struct product *p)
{
    bool a_transposed = p->form == GEMM_TN, b_transposed = p->form == GEMM_NT;
    operands[0] = (struct operand){
        p->a, a_transposed ? p->K : p->M, a_transposed ? p->M : p->K, p->lda, !a_transposed, layout->a, layout->parts};
    operands[1] = (struct operand){
        p->b, b_transposed ? p->N : p->K, b_transposed ? p->K : p->N, p->ldb, b_transposed, layout->b, layout->parts};
}

/* The layout, and its operands with room for them. */
static const struct layout *operands_prepare(struct multiplier *multiplier, bool hardware, struct operand operands[2],
                                             const struct product *p)
{
    const struct layout *layout = layout_of(multiplier->precision, hardware);
    operands_of(operands, layout, p);
    room_reserve(&multiplier->a, operand_size(multiplier->precision, hardware, p->M * p->K));
    room_reserve(&multiplier->b, operand_size(multiplier->precision, hardware, p->N * p->K));
    return layout;
}

static bool hardware_multiply(struct multiplier *multiplier, const struct product *p)
{
    struct operand operands[2];
    const struct layout *layout = operands_prepare(multiplier, true, operands, p);
    words_make(multiplier->a.base, &operands[0]);
    words_make(multiplier->b.base, &operands[1]);
    bool made = onednn_multiply(multiplier->hardware, p->form, p->M, p->N, layout->parts * p->K, (float)p->alpha,
                                multiplier->a.base, multiplier->b.base, (float)p->beta, (float *)(void *)p->c, p->ldc);
    if (made)
        product_finish(p);
    return made;
}

static void software_multiply(struct multiplier *multiplier, const struct product *p)
{
    struct operand operands[2];
    const struct layout *layout = operands_prepare(multiplier, false, operands, p);
    reals_make(multiplier->a.base, &operands[0]);
    reals_make(multiplier->b.base, &operands[1]);
    struct product ready = *p;
    ready.K = layout->parts * p->K;
    ready.a = multiplier->a.base;
    ready.lda = p->form == GEMM_TN ? p->M : ready.K;
    ready.b = multiplier->b.base;
    ready.ldb = p->form == GEMM_NT ? ready.K : p->N;
    /* Parts of a triangle side by side are none, but zeros are there to multiply. */
    ready.causal = p->causal && (p->form == GEMM_NT || layout->parts == 1);
    gemm_product(&ready);
}

void multiply_product(struct multiplier *multiplier, const struct product *product)
{
    if (multiplier->precision == PRECISION_FP32)
        gemm_product(product);
    else if (!multiplier->hardware || product->M < HARDWARE_ROWS || !hardware_multiply(multiplier, product))
        software_multiply(multiplier, product);
}

void multiply(struct multiplier *multiplier, enum gemm_form form, int64_t M, int64_t N, int64_t K, real alpha,
              const real *a, int64_t lda, const real *b, int64_t ldb, real beta, real *c, int64_t ldc)
{
    struct product product = product_of(form, M, N, K, alpha, a, lda, b, ldb, beta, c, ldc);
    multiply_product(multiplier, &product);
}
