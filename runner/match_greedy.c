/* The continuation of a prompt at temperature 0, through the cache of keys and values. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/decoder.h"
#include "core/memory.h"
#include "runner/match.h"

struct greedy {
    struct model *model;
    struct decoder *decoder;
    real *logits;
    bool late; /* MISTAKE_SHIFT: reads each next token at the place before the last */
};

/* Reads a tensor [1, N] of token numbers, N >= 1. Owner: caller, memory_free(), also of what a failure leaves. */
static bool read_tokens(const struct reference_case *reference, const char *name, int32_t **tokens, int64_t *count,
                        struct error *err)
{
    const struct safetensors_entry *entry = safetensors_find(reference->expected, name);
    char text[SAFETENSORS_SHAPE_TEXT];
    if (!entry)
        return error_set(err, "tensor '%s' is missing", name);
    if (entry->dims != 2 || entry->shape[0] != 1 || entry->count == 0)
        return error_set(err, "tensor '%s' has shape %s: expected [1, tokens]", name,
                         safetensors_shape_text(entry->dims, entry->shape, text));
    *count = (int64_t)entry->count;
    *tokens = memory_alloc(entry->count, sizeof **tokens);
    if (!safetensors_read_int32(entry, *tokens, entry->count, err))
        return false;
    for (int64_t i = 0; i < *count; i++)
        if ((*tokens)[i] < 0 || (*tokens)[i] >= reference->vocab_size)
            return error_set(err, "tensor '%s' holds %" PRId32 " at position %" PRId64 ": expected 0 to %" PRId64, name,
                             (*tokens)[i], i, reference->vocab_size - 1);
    return true;
}

/* The likeliest token after n more; the lowest number of equals. */
static int32_t feed(struct greedy *greedy, const int32_t *tokens, int64_t n)
{
    int64_t V = model_shape(greedy->model).vocab_size, best = 0;
    decoder_feed(greedy->decoder, tokens, n, greedy->logits);
    for (int64_t i = 1; i < V; i++)
        if (greedy->logits[i] > greedy->logits[best])
            best = i;
    return (int32_t)best;
}

/* Continues the first `known` tokens up to count. */
static void continue_tokens(struct greedy *greedy, int32_t *tokens, int64_t known, int64_t count)
{
    int32_t before = tokens[0], next; /* before: what the place before the last says */
    if (known > 1)
        before = feed(greedy, tokens, known - 1);
    next = feed(greedy, &tokens[known - 1], 1);
    for (int64_t i = known; i < count; i++) {
        tokens[i] = greedy->late ? before : next;
        before = next;
        if (i + 1 < count)
            next = feed(greedy, &tokens[i], 1);
    }
}

static void fill_row(struct match_row *row, const int32_t *ours, const int32_t *expected, int64_t known, int64_t count)
{
    row->dims = 2;
    row->shape[0] = 1;
    row->shape[1] = count;
    row->compared = count - known;
    row->unequal_at = -1;
    double difference = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = fabs((double)ours[i] - (double)expected[i]);
        row->max_abs = fmax(row->max_abs, d);
        difference += d * d;
        size += (double)expected[i] * (double)expected[i];
        row->equal += i >= known && ours[i] == expected[i];
        if (ours[i] != expected[i] && row->unequal_at < 0)
            row->unequal_at = i;
    }
    row->rel_l2 = difference > 0 ? sqrt(difference / size) : 0;
    row->ok = row->equal == row->compared;
}

bool match_greedy(const struct reference_case *reference, struct model *model, struct match_row *row, struct error *err)
{
    int32_t *prompt = NULL, *expected = NULL, *ours = NULL;
    int64_t known, count;
    bool good = false;
    struct greedy greedy = {.model = model, .late = reference->mistake == MISTAKE_SHIFT};
    if (!read_tokens(reference, MATCH_PROMPT, &prompt, &known, err) ||
        !read_tokens(reference, MATCH_TOKENS, &expected, &count, err))
        goto done;
    if (count <= known || memcmp(prompt, expected, (size_t)known * sizeof *prompt) != 0) {
        error_set(err, "%s does not continue %s: expected its %" PRId64 " tokens, then more", MATCH_TOKENS,
                  MATCH_PROMPT, known);
        goto done;
    }
    greedy.decoder = decoder_create(model, count, err);
    if (!greedy.decoder)
        goto done;
    greedy.logits = memory_alloc((size_t)reference->vocab_size, sizeof *greedy.logits);
    ours = memory_alloc((size_t)count, sizeof *ours);
    memcpy(ours, prompt, (size_t)known * sizeof *ours);
    continue_tokens(&greedy, ours, known, count);
    fill_row(row, ours, expected, known, count);
    good = true;
done:
    decoder_free(greedy.decoder);
    memory_free(greedy.logits);
    memory_free(prompt);
    memory_free(expected);
    memory_free(ours);
    return good;
}
