/* A growing sequence over a cache of keys and values. */
#include "core/decoder.h"

#include <assert.h>
#include <inttypes.h>

#include "core/memory.h"
#include "core/network.h"

struct decoder {
    struct model *model;
    struct cache cache;
    int64_t length;
};

struct decoder *decoder_create(struct model *model, int64_t capacity, struct error *err)
{
    const struct model_shape *s = &model->shape;
    if (!model_extend_positions(model, capacity)) {
        error_set(err, "a sequence of %" PRId64 " tokens is longer than the model's learned positions (%" PRId64 ")",
                  capacity, s->context_length);
        return NULL;
    }
    struct decoder *decoder = memory_alloc(1, sizeof *decoder);
    decoder->model = model;
    decoder->cache.capacity = capacity;
    decoder->cache.rows = memory_alloc((size_t)(s->n_layers * capacity * 2 * shape_kv(s)), sizeof(real));
    decoder->cache.scores = memory_alloc((size_t)(ATTENTION_ROWS * scores_ld(capacity)), sizeof(real));
    return decoder;
}

void decoder_free(struct decoder *decoder)
{
    if (!decoder)
        return;
    memory_free(decoder->cache.rows);
    memory_free(decoder->cache.scores);
    memory_free(decoder);
}

void decoder_feed(struct decoder *decoder, const int32_t *tokens, int64_t n, real *logits)
{
    struct model *model = decoder->model;
    assert(n >= 1 && decoder->length + n <= decoder->cache.capacity);
    struct pass pass = {.model = model, .B = 1, .cache = &decoder->cache};
    for (int64_t done = 0; done < n; done += pass.N) {
        pass.N = pass.T = n - done < model->max_tokens ? n - done : model->max_tokens;
        pass.first_position = decoder->length;
        pass_forward(&pass, tokens + done);
        decoder->length += pass.N;
    }
    head_last_logits(&pass, logits);
}

int64_t decoder_length(const struct decoder *decoder)
{
    return decoder->length;
}

void decoder_truncate(struct decoder *decoder, int64_t length)
{
    assert(length >= 0 && length <= decoder->length);
    decoder->length = length;
}

int64_t decoder_cache_bytes(const struct model_config *config, int64_t positions)
{
    struct model_shape s = model_shape_of(config, 1);
    return 2 * s.n_layers * shape_kv(&s) * positions * 4;
}
