/* Tokens as people read them: whatever their bytes, what comes out is safe to print and unambiguous. */
#ifndef RUNNER_TOKEN_TEXT_H
#define RUNNER_TOKEN_TEXT_H

#include "core/tokenizer.h"

/* For between double quotes: \n \r \t \" \\ ; bytes that are no UTF-8 and ASCII controls as \xNN; characters that do
 * not show as themselves as \u{HEX}. Owner: caller, memory_free(). */
char *token_escape(struct text token);

/* Two lower-case digits a byte. Owner: caller, memory_free(). */
char *token_hex(struct text token);

/* "pad", "bos", "eos", "unk"; NULL for tokens that stand for text. */
const char *token_special_name(const struct tokenizer *tokenizer, int32_t id);

#endif
