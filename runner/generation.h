/* A text's tokens fed through a KV cache, also past the length the model was trained on.
 *
 *   struct generation *g = generation_create(model, prompt_size + tokens, &err);
 *   generation_feed(g, prompt, prompt_size, logits);      // the prompt in one pass
 *   generation_feed(g, &next, 1, logits);                 // and so on
 *   generation_free(g);
 *
 * Learned positions end with the context: a sequence that grows past it goes on from the last half of it, at position
 * 0 again. Which tokens are seen depends on the length alone, not on the portions they came in. Other kinds of
 * positions have no end. */
#ifndef RUNNER_GENERATION_H
#define RUNNER_GENERATION_H

#include <stdbool.h>

#include "core/model.h"

struct generation;

/* longest: tokens that will be fed at most. model: made with max_tokens of generation_rows() or more to pass a prompt
 * at once; it must outlive the generation and is used by it alone meanwhile. NULL and err when the cache would be past
 * what can be held. Owner: caller, generation_free(). */
struct generation *generation_create(struct model *model, int64_t longest, struct error *err);
void generation_free(struct generation *generation); /* takes NULL */

/* Rows of the largest pass over a prompt of that size. */
int64_t generation_rows(const struct model_config *config, int64_t prompt_size);

/* Appends n >= 1 tokens; logits [V] of what follows the last. */
void generation_feed(struct generation *generation, const int32_t *tokens, int64_t n, real *logits);

int64_t generation_length(const struct generation *generation); /* tokens fed */

/* Past the context length the model was trained with; windowed: by starting anew from the last half of it. */
bool generation_is_past(const struct generation *generation, bool *windowed);

/* First token that a sequence of `length` still sees where the context ends at T. */
int64_t generation_window(int64_t length, int64_t T);

#endif
