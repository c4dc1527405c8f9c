/* Feeds a decoder, moving its window where positions run out. */
#include "runner/generation.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "core/decoder.h"
#include "core/memory.h"

/* Bytes of a cache that is surely a mistake: no machine that trains such a model holds it. */
#define CACHE_LIMIT (INT64_C(1) << 42)

struct generation {
    struct decoder *decoder;
    int32_t *tokens; /* [longest] */
    int64_t length, longest;
    int64_t start; /* first token in the cache */
    int64_t context_length;
    bool learned;
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t generation_window(int64_t length, int64_t T)
{
    if (length <= T)
        return 0;
    int64_t half = T > 1 ? T / 2 : 1, period = T - half + 1; /* tokens from one start to the next */
    int64_t moves = (length - T - 1) / period;
    return T + 1 + moves * period - half;
}

int64_t generation_rows(const struct model_config *config, int64_t prompt_size)
{
    return config->position == POSITION_LEARNED ? config->context_length : prompt_size;
}

struct generation *generation_create(struct model *model, int64_t longest, struct error *err)
{
    struct model_shape shape = model_shape(model);
    int64_t capacity = shape.learned_positions ? smaller(longest, shape.context_length) : longest;
    int64_t row = 2 * shape.n_layers * shape.kv_heads * shape.head_dim * (int64_t)sizeof(real);
    if (capacity > CACHE_LIMIT / row) {
        error_set(err, "%" PRId64 " tokens need a cache of %.0f GB: at most %" PRId64 " tokens of this model fit",
                  longest, (double)capacity * (double)row / 1e9, CACHE_LIMIT / row);
        return NULL;
    }
    struct decoder *decoder = decoder_create(model, capacity, err);
    if (!decoder)
        return NULL;
    struct generation *generation = memory_alloc(1, sizeof *generation);
    *generation = (struct generation){.decoder = decoder,
                                      .tokens = memory_alloc((size_t)longest, sizeof(int32_t)),
                                      .longest = longest,
                                      .context_length = shape.context_length,
                                      .learned = shape.learned_positions};
    return generation;
}

void generation_free(struct generation *generation)
{
    if (!generation)
        return;
    decoder_free(generation->decoder);
    memory_free(generation->tokens);
    memory_free(generation);
}

void generation_feed(struct generation *generation, const int32_t *tokens, int64_t n, real *logits)
{
    assert(n >= 1 && n <= generation->longest - generation->length);
    memcpy(generation->tokens + generation->length, tokens, (size_t)n * sizeof *tokens);
    generation->length += n;
    int64_t start = generation->learned ? generation_window(generation->length, generation->context_length) : 0;
    if (start != generation->start) {
        decoder_truncate(generation->decoder, 0);
        generation->start = start;
    }
    int64_t cached = decoder_length(generation->decoder);
    decoder_feed(generation->decoder, generation->tokens + start + cached, generation->length - start - cached, logits);
}

int64_t generation_length(const struct generation *generation)
{
    return generation->length;
}

bool generation_is_past(const struct generation *generation, bool *windowed)
{
    *windowed = generation->learned;
    return generation->length > generation->context_length;
}
