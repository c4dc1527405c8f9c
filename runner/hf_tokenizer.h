/* tokenizer.json, as the `tokenizers` library reads it, of our byte-level BPE, and back.
 *
 * Tokens are written in the alphabet of GPT-2: each byte is a character that shows ('!' is '!', a space is U+0120).
 * Numbers are ours: 0..255 the bytes, 256..258 special tokens, then merges. Text is cut into runs of letters, numbers,
 * white space and the rest by a pattern that lists our classes character by character, so that no other version of
 * Unicode cuts it otherwise. */
#ifndef RUNNER_HF_TOKENIZER_H
#define RUNNER_HF_TOKENIZER_H

#include <stddef.h>

#include "core/tokenizer.h"
#include "runner/json.h"

/* The tokenizer must be bpe or byte. Owner: caller, json_decref(). */
json_t *hf_tokenizer_json(const struct tokenizer *tokenizer);
/* tokenizer_config.json beside it. */
json_t *hf_tokenizer_config_json(int64_t context_length);

/* Reads what hf_tokenizer_json() wrote, or the same with merges as texts; trusts nothing. NULL and err for a file that
 * is damaged, or a tokenizer that ours is not: another pattern, a normalizer, other special tokens. Owner: caller,
 * tokenizer_free(). */
struct tokenizer *hf_tokenizer_read(const char *path, struct error *err);
/* The same for text in memory; name is for messages. */
struct tokenizer *hf_tokenizer_parse(const char *name, const char *text, size_t size, struct error *err);

#endif
