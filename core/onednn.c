/* oneDNN behind dlopen(): fp32 products, and bf16 products as a cache of compiled primitives. */
#include "core/onednn.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"

#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <oneapi/dnnl/dnnl.h>
#endif

/* Of version 2: 3 has other descriptors. */
#if defined(DNNL_VERSION_MAJOR) && DNNL_VERSION_MAJOR == 2

#include <dlfcn.h>
#include <signal.h>

#define LIBRARY "libdnnl.so.2"

#define FUNCTIONS(X)                                                                                                   \
    X(dnnl_version)                                                                                                    \
    X(dnnl_get_effective_cpu_isa)                                                                                      \
    X(dnnl_sgemm)                                                                                                      \
    X(dnnl_engine_create)                                                                                              \
    X(dnnl_engine_destroy)                                                                                             \
    X(dnnl_stream_create)                                                                                              \
    X(dnnl_stream_destroy)                                                                                             \
    X(dnnl_memory_create)                                                                                              \
    X(dnnl_memory_destroy)                                                                                             \
    X(dnnl_memory_set_data_handle)                                                                                     \
    X(dnnl_memory_desc_init_by_strides)                                                                                \
    X(dnnl_memory_desc_get_size)                                                                                       \
    X(dnnl_matmul_desc_init)                                                                                           \
    X(dnnl_post_ops_create)                                                                                            \
    X(dnnl_post_ops_destroy)                                                                                           \
    X(dnnl_post_ops_append_sum)                                                                                        \
    X(dnnl_primitive_attr_create)                                                                                      \
    X(dnnl_primitive_attr_destroy)                                                                                     \
    X(dnnl_primitive_attr_set_scratchpad_mode)                                                                         \
    X(dnnl_primitive_attr_set_post_ops)                                                                                \
    X(dnnl_primitive_attr_set_output_scales)                                                                           \
    X(dnnl_primitive_desc_create)                                                                                      \
    X(dnnl_primitive_desc_destroy)                                                                                     \
    X(dnnl_primitive_desc_query_md)                                                                                    \
    X(dnnl_primitive_create)                                                                                           \
    X(dnnl_primitive_destroy)                                                                                          \
    X(dnnl_primitive_execute)

static struct functions {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} dnnl;

static enum { UNKNOWN, ABSENT, PRESENT } state;
static struct error absence;

static bool function_find(void *library, const char *name, void *function, size_t size)
{
    void *address = dlsym(library, name);
    memcpy(function, &address, size);
    return address || error_set(&absence, "%s has no function '%s'", LIBRARY, name);
}

/* A thread pool of OpenMP is told; one of another kind could not be. */
static bool threads_set_one(void *library)
{
    unsigned runtime = dnnl.dnnl_version()->cpu_runtime;
    void (*set)(int) = NULL;
    if (runtime == DNNL_RUNTIME_SEQ)
        return true;
    if (runtime != DNNL_RUNTIME_OMP)
        return error_set(&absence, "%s cannot be held to one thread: its runtime is %#x, neither sequential nor OpenMP",
                         LIBRARY, runtime);
    if (!function_find(library, "omp_set_num_threads", &set, sizeof set))
        return false;
    set(1);
    return true;
}

static bool library_open(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return error_set(&absence, "oneDNN cannot be loaded (%s): its Debian package is libdnnl2", dlerror());
#define FIND(name)                                                                                                     \
    if (!function_find(library, #name, &dnnl.name, sizeof dnnl.name))                                                  \
        return false;
    FUNCTIONS(FIND)
#undef FIND
    return threads_set_one(library);
}

bool onednn_load(struct error *err)
{
    if (state == UNKNOWN)
        state = library_open() ? PRESENT : ABSENT;
    if (state == ABSENT && err)
        *err = absence;
    return state == PRESENT;
}

const char *onednn_version(void)
{
    static char text[32];
    if (state != PRESENT || text[0])
        return state == PRESENT ? text : NULL;
    const dnnl_version_t *version = dnnl.dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", version->major, version->minor, version->patch);
    return text;
}

static bool has(dnnl_cpu_isa_t wanted)
{
    return state == PRESENT && ((unsigned)dnnl.dnnl_get_effective_cpu_isa() & (unsigned)wanted) == (unsigned)wanted;
}

bool onednn_has_bf16(void)
{
    return has(dnnl_cpu_isa_avx512_core_bf16);
}

bool onednn_has_amx(void)
{
    return has(dnnl_cpu_isa_avx512_core_amx);
}

/* Some of its compiled products use the stack pointer as a register that points into the heap (oneDNN's issue 4845).
 * The frame of a signal handled amid one would be written there, over whatever lies there: none is handled meanwhile.
 */
static void signals_hold(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

static void signals_release(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

void onednn_sgemm(enum gemm_form form, int64_t M, int64_t N, int64_t K, float alpha, const float *a, int64_t lda,
                  const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    sigset_t before;
    signals_hold(&before);
    dnnl_status_t status = dnnl.dnnl_sgemm(form == GEMM_TN ? 'T' : 'N', form == GEMM_NT ? 'T' : 'N', M, N, K, alpha, a,
                                           lda, b, ldb, beta, c, ldc);
    signals_release(&before);
    assert(status == dnnl_success);
    (void)status;
}

/* ---- bf16 products ---- */

struct shape {
    int64_t form, M, N, K, ldc;
    float alpha, beta;
};

enum { A, B, C, SCRATCH, ARGUMENTS };
static const int argument_numbers[ARGUMENTS] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};

struct compiled {
    struct shape shape;
    dnnl_primitive_t primitive; /* NULL: the place is free, or there is nothing for the shape */
    dnnl_memory_t memory[ARGUMENTS];
    size_t scratch_size;
    bool known;
};

enum { PLACES = 512, PROBES = 8 }; /* a shape is in one of so many places from that of its hash on */

struct onednn_products {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    char *scratch;
    size_t scratch_size;
    struct compiled places[PLACES];
};

struct onednn_products *onednn_products_create(void)
{
    if (!onednn_load(NULL))
        return NULL;
    struct onednn_products *products = memory_alloc(1, sizeof *products);
    if (dnnl.dnnl_engine_create(&products->engine, dnnl_cpu, 0) == dnnl_success &&
        dnnl.dnnl_stream_create(&products->stream, products->engine, dnnl_stream_default_flags) == dnnl_success)
        return products;
    onednn_products_free(products);
    return NULL;
}

static void product_release(struct compiled *product)
{
    for (size_t i = 0; i < ARGUMENTS; i++)
        if (product->memory[i])
            dnnl.dnnl_memory_destroy(product->memory[i]);
    if (product->primitive)
        dnnl.dnnl_primitive_destroy(product->primitive);
    memset(product, 0, sizeof *product);
}

void onednn_products_free(struct onednn_products *products)
{
    if (!products)
        return;
    for (size_t i = 0; i < PLACES; i++)
        product_release(&products->places[i]);
    if (products->stream)
        dnnl.dnnl_stream_destroy(products->stream);
    if (products->engine)
        dnnl.dnnl_engine_destroy(products->engine);
    memory_free(products->scratch);
    memory_free(products);
}

static bool matrix_describe(dnnl_memory_desc_t *matrix, dnnl_data_type_t type, int64_t rows, int64_t columns,
                            int64_t row_stride, int64_t column_stride)
{
    return dnnl.dnnl_memory_desc_init_by_strides(matrix, 2, (dnnl_dims_t){rows, columns}, type,
                                                 (dnnl_dims_t){row_stride, column_stride}) == dnnl_success;
}

static bool matrices_describe(dnnl_memory_desc_t matrices[], const struct shape *s)
{
    bool a_transposed = s->form == GEMM_TN, b_transposed = s->form == GEMM_NT;
    return matrix_describe(&matrices[A], dnnl_bf16, s->M, s->K, a_transposed ? 1 : s->K, a_transposed ? s->M : 1) &&
           matrix_describe(&matrices[B], dnnl_bf16, s->K, s->N, b_transposed ? 1 : s->N, b_transposed ? s->K : 1) &&
           matrix_describe(&matrices[C], dnnl_f32, s->M, s->N, s->ldc, 1);
}

/* Scratch memory is ours; alpha scales the product; beta adds what is there. */
static bool attributes_set(dnnl_primitive_attr_t attributes, dnnl_post_ops_t after, const struct shape *s)
{
    bool adds = s->beta < 0 || s->beta > 0, scales = s->alpha < 1 || s->alpha > 1;
    return dnnl.dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user) == dnnl_success &&
           (!adds || dnnl.dnnl_post_ops_append_sum(after, s->beta) == dnnl_success) &&
           dnnl.dnnl_primitive_attr_set_post_ops(attributes, after) == dnnl_success &&
           (!scales || dnnl.dnnl_primitive_attr_set_output_scales(attributes, 1, 0, &s->alpha) == dnnl_success);
}

static dnnl_primitive_desc_t primitive_describe(const struct onednn_products *products,
                                                const dnnl_memory_desc_t matrices[], const struct shape *s)
{
    dnnl_matmul_desc_t matmul;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_post_ops_t after = NULL;
    dnnl_primitive_desc_t description = NULL;
    if (dnnl.dnnl_primitive_attr_create(&attributes) == dnnl_success &&
        dnnl.dnnl_post_ops_create(&after) == dnnl_success && attributes_set(attributes, after, s) &&
        dnnl.dnnl_matmul_desc_init(&matmul, &matrices[A], &matrices[B], NULL, &matrices[C]) == dnnl_success)
        dnnl.dnnl_primitive_desc_create(&description, &matmul, attributes, products->engine, NULL);
    if (after)
        dnnl.dnnl_post_ops_destroy(after);
    if (attributes)
        dnnl.dnnl_primitive_attr_destroy(attributes);
    return description;
}

/* Nothing is left in it when it cannot be made. */
static void product_make(const struct onednn_products *products, struct compiled *product, const struct shape *s)
{
    dnnl_memory_desc_t matrices[ARGUMENTS];
    bool ok = matrices_describe(matrices, s);
    dnnl_primitive_desc_t description = ok ? primitive_describe(products, matrices, s) : NULL;
    ok = description && dnnl.dnnl_primitive_create(&product->primitive, description) == dnnl_success;
    if (description) {
        matrices[SCRATCH] = *dnnl.dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
        product->scratch_size = dnnl.dnnl_memory_desc_get_size(&matrices[SCRATCH]);
        dnnl.dnnl_primitive_desc_destroy(description);
    }
    for (size_t i = 0; i < ARGUMENTS && ok; i++)
        ok = dnnl.dnnl_memory_create(&product->memory[i], &matrices[i], products->engine, DNNL_MEMORY_NONE) ==
             dnnl_success;
    if (!ok)
        product_release(product);
    product->shape = *s;
    product->known = true;
}

static size_t shape_hash(const struct shape *s)
{
    const int64_t words[] = {s->form, s->M, s->N, s->K, s->ldc};
    uint64_t hash = 14695981039346656037ull;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = (hash ^ (uint64_t)words[i]) * 1099511628211ull;
    return (size_t)((hash ^ hash >> 29) % PLACES);
}

static bool shape_equal(const struct shape *a, const struct shape *b)
{
    return a->form == b->form && a->M == b->M && a->N == b->N && a->K == b->K && a->ldc == b->ldc &&
           a->alpha == b->alpha && a->beta == b->beta;
}

/* Where the shape is, or will be: a free place, or the first in place of another shape. */
static struct compiled *product_at(struct onednn_products *products, const struct shape *s)
{
    size_t home = shape_hash(s);
    for (size_t i = 0; i < PROBES; i++) {
        struct compiled *product = &products->places[(home + i) % PLACES];
        if (!product->known || shape_equal(&product->shape, s))
            return product;
    }
    product_release(&products->places[home]);
    return &products->places[home];
}

static void scratch_reserve(struct onednn_products *products, size_t size)
{
    if (size <= products->scratch_size)
        return;
    memory_free(products->scratch);
    products->scratch = memory_alloc(size, 1);
    products->scratch_size = size;
}

bool onednn_multiply(struct onednn_products *products, enum gemm_form form, int64_t M, int64_t N, int64_t K,
                     float alpha, const uint16_t *a, const uint16_t *b, float beta, float *c, int64_t ldc)
{
    struct shape shape = {(int64_t)form, M, N, K, ldc, alpha, beta};
    struct compiled *product = product_at(products, &shape);
    if (!product->known)
        product_make(products, product, &shape);
    if (!product->primitive)
        return false;
    scratch_reserve(products, product->scratch_size);
    void *data[ARGUMENTS];
    memcpy(&data[A], &a, sizeof a); /* operands are only read: the type of an argument does not say so */
    memcpy(&data[B], &b, sizeof b);
    data[C] = c;
    data[SCRATCH] = products->scratch;
    dnnl_exec_arg_t arguments[ARGUMENTS];
    for (int i = 0; i < ARGUMENTS; i++) {
        dnnl.dnnl_memory_set_data_handle(product->memory[i], data[i]);
        arguments[i] = (dnnl_exec_arg_t){argument_numbers[i], product->memory[i]};
    }
    sigset_t before;
    signals_hold(&before);
    dnnl_status_t status = dnnl.dnnl_primitive_execute(product->primitive, products->stream, ARGUMENTS, arguments);
    signals_release(&before);
    return status == dnnl_success;
}

#else

bool onednn_load(struct error *err)
{
    return error_set(err, "built without oneDNN: at build time there were no headers of its version 2");
}

const char *onednn_version(void)
{
    return NULL;
}

bool onednn_has_bf16(void)
{
    return false;
}

bool onednn_has_amx(void)
{
    return false;
}

void onednn_sgemm(enum gemm_form form, int64_t M, int64_t N, int64_t K, float alpha, const float *a, int64_t lda,
                  const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    (void)form, (void)M, (void)N, (void)K, (void)alpha, (void)a, (void)lda, (void)b, (void)ldb, (void)beta, (void)c,
        (void)ldc;
    assert(!"only once it is loaded");
}

struct onednn_products *onednn_products_create(void)
{
    return NULL;
}

void onednn_products_free(struct onednn_products *products)
{
    (void)products;
}

bool onednn_multiply(struct onednn_products *products, enum gemm_form form, int64_t M, int64_t N, int64_t K,
                     float alpha, const uint16_t *a, const uint16_t *b, float beta, float *c, int64_t ldc)
{
    (void)products, (void)form, (void)M, (void)N, (void)K, (void)alpha, (void)a, (void)b, (void)beta, (void)c,
        (void)ldc;
    return false;
}

#endif
