/* Byte-pair encoding of bytes: learning merges, and applying them.
 *
 * Tokens 0..255 are the bytes, 256..258 are left to special tokens, merges[i] makes token 259 + i out of two earlier
 * ones. Merges stay within the runs of unicode_run(). */
#ifndef CORE_BPE_H
#define CORE_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/unicode.h"

enum { BPE_BYTES = 256, BPE_FIRST_MERGE = 259, BPE_MAXIMUM_VOCAB = 1000000 };

/* The bytes of all tokens together, so that neither a text of one letter nor a hostile list of doubling merges can ask
 * for memory without end. */
enum { BPE_MAXIMUM_TOKEN_BYTES = 256 << 20 };

struct bpe_merge {
    int32_t left, right;
};

/* Again and again the most frequent pair of neighbours (all of them counted, so "aaa" has two), of equals the smallest
 * (left, right), until the vocabulary has vocab_size tokens or no pair occurs min_frequency times. NULL and err when
 * the settings or the text cannot be served. Owner of the merges: caller, memory_free(). */
struct bpe_merge *bpe_train(const struct text *documents, size_t count, int64_t vocab_size, int64_t min_frequency,
                            size_t *merge_count, struct error *err);

struct bpe; /* merges made ready to be applied; immutable */

/* Checks and copies the merges: each of two earlier tokens, none twice. Owner: caller, bpe_free(). */
struct bpe *bpe_create(const struct bpe_merge *merges, size_t count, struct error *err);
void bpe_free(struct bpe *bpe); /* takes NULL */

size_t bpe_vocab_size(const struct bpe *bpe);
size_t bpe_merge_count(const struct bpe *bpe);
struct bpe_merge bpe_merge(const struct bpe *bpe, size_t index);
size_t bpe_token_size(const struct bpe *bpe, int32_t id); /* bytes; 0 for 256..258 */

/* Merges in the order learned, each from left to right. ids holds size entries or more; returns how many were written.
 * Time n log n in the longest run. */
size_t bpe_encode(const struct bpe *bpe, const char *text, size_t size, int32_t *ids);

#endif
