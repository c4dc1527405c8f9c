/* Text one token at a time: a sequence that grows, with keys and values of what came before kept in a cache.
 *
 *   struct decoder *d = decoder_create(model, capacity, &err);
 *   decoder_feed(d, prompt, n, logits);          // the whole prompt in one pass; logits of its last token
 *   decoder_feed(d, &next, 1, logits);           // and so on, up to capacity tokens
 *   decoder_free(d); */
#ifndef CORE_DECODER_H
#define CORE_DECODER_H

#include "core/model.h"

struct decoder;

/* capacity: longest sequence. NULL and err when the model has learned positions for fewer. The model must outlive it
 * and is used by it alone meanwhile. Owner: caller, decoder_free(). */
struct decoder *decoder_create(struct model *model, int64_t capacity, struct error *err);
void decoder_free(struct decoder *decoder); /* takes NULL */

/* Appends n >= 1 tokens; length + n must not pass the capacity. logits [V] of the last one. */
void decoder_feed(struct decoder *decoder, const int32_t *tokens, int64_t n, real *logits);

int64_t decoder_length(const struct decoder *decoder);
/* Keeps the first `length` tokens. */
void decoder_truncate(struct decoder *decoder, int64_t length);

/* Bytes of the cache for one sequence of `positions` in 4-byte numbers: 2 * n_layers * kv_heads * head_dim * positions
 * * 4. */
int64_t decoder_cache_bytes(const struct model_config *config, int64_t positions);

#endif
