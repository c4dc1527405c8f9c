/* Text to token numbers and back: byte-level BPE, characters, or bytes.
 *
 *   struct tokenizer *t = tokenizer_train(&config.tokenizer, documents, count, &err);
 *   size_t n = tokenizer_encode(t, text, size, ids);       // ids holds size entries or more
 *   tokenizer_free(t);
 *
 * Numbering: bpe and byte: 0..255 the bytes, 256 pad, 257 bos, 258 eos, then merges in the order learned.
 * char: the characters of the training text in code point order, then its bytes that are no UTF-8 (each a character of
 * one byte), then pad, bos, eos, unk.
 * Text never turns into special tokens. */
#ifndef CORE_TOKENIZER_H
#define CORE_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/knob.h"
#include "core/unicode.h"

struct tokenizer; /* immutable once made; safe to share between threads */

/* Learns from the documents (each on its own: nothing merges across two). BPE: merges never cross the boundary between
 * runs of letters (general categories L and M, and '_'), numbers (N), white space (Unicode White_Space) and the rest,
 * in which invalid UTF-8 bytes count one by one; highest count first (every adjacent pair counted, so "aaa" has two),
 * ties to the smallest (left, right) pair; stops at vocab_size or below min_frequency. NULL and err when vocab_size is
 * below 259, or when the text is beyond what is held (4 GiB of different runs; tokens of 256 MiB together).
 * Owner: caller, tokenizer_free(). */
struct tokenizer *tokenizer_train(const struct tokenizer_config *config, const struct text *documents, size_t count,
                                  struct error *err);

/* A bpe tokenizer of merges learned elsewhere, in their order; refused by what bpe_create() checks. */
struct bpe_merge;
struct tokenizer *tokenizer_from_merges(const struct bpe_merge *merges, size_t count, struct error *err);

/* Writes at most size ids (no bos or eos) and returns how many. Bytes or characters never seen: BPE and byte have none;
 * char gives unk. */
size_t tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t size, int32_t *ids);

int64_t tokenizer_vocab_size(const struct tokenizer *tokenizer); /* what was reached, not what was asked */
int tokenizer_kind(const struct tokenizer *tokenizer);           /* TOKENIZER_* */
int32_t tokenizer_pad(const struct tokenizer *tokenizer);
int32_t tokenizer_bos(const struct tokenizer *tokenizer);
int32_t tokenizer_eos(const struct tokenizer *tokenizer);
int32_t tokenizer_unk(const struct tokenizer *tokenizer); /* -1: has none */

/* Bytes of one token; specials have 0 bytes (a char tokenizer's unk counts as one byte long in size only through
 * the text it stood for, see data preparation). Owner: the tokenizer. */
struct text tokenizer_token(const struct tokenizer *tokenizer, int32_t id);

/* Learned merges in order, merges[i] makes id 259 + i. */
size_t tokenizer_merge_count(const struct tokenizer *tokenizer);
void tokenizer_merge(const struct tokenizer *tokenizer, size_t index, int32_t *left, int32_t *right);

/* A self-contained byte image, equal for equal tokenizers (its SHA-256 is the tokenizer hash). Owner: caller,
 * memory_free(). */
void *tokenizer_save(const struct tokenizer *tokenizer, size_t *size);

/* Trusts nothing: every length, id and order is checked before use. NULL and err on a bad image. */
struct tokenizer *tokenizer_load(const void *image, size_t size, struct error *err);

void tokenizer_free(struct tokenizer *tokenizer); /* takes NULL */

#endif
