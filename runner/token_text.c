/* Tokens as people read them. */
#include "runner/token_text.h"

#include <stdio.h>
#include <string.h>

#include "core/memory.h"

enum { ESCAPE_MOST = 10 }; /* \u{10ffff} and its final 0 are 11, for a character of 4 bytes */

static size_t character_escape(const char *bytes, size_t length, int32_t code_point, char *out)
{
    static const char named[] = "\nn\rr\tt\"\"\\\\";
    const char *name = code_point > 0 && code_point < 128 ? strchr(named, code_point) : NULL;
    if (name && (name - named) % 2 == 0)
        return (size_t)snprintf(out, ESCAPE_MOST + 1, "\\%c", name[1]);
    if (unicode_is_printable(code_point)) {
        memcpy(out, bytes, length);
        return length;
    }
    if (code_point < 128)
        return (size_t)snprintf(out, ESCAPE_MOST + 1, "\\x%02x", (unsigned char)bytes[0]);
    return (size_t)snprintf(out, ESCAPE_MOST + 1, "\\u{%x}", (unsigned)code_point);
}

char *token_escape(struct text token)
{
    char *text = memory_alloc(token.size + 3, 4); /* a byte becomes 4 at most, 2 bytes 6, 3 or 4 bytes 10 */
    size_t used = 0;
    for (size_t at = 0, length; at < token.size; at += length) {
        int32_t code_point;
        length = unicode_decode(token.bytes + at, token.size - at, &code_point);
        used += character_escape(token.bytes + at, length, code_point, text + used);
    }
    text[used] = 0;
    return text;
}

char *token_hex(struct text token)
{
    static const char digits[] = "0123456789abcdef";
    char *hex = memory_alloc(2 * token.size + 1, 1);
    for (size_t i = 0; i < token.size; i++) {
        hex[2 * i] = digits[(unsigned char)token.bytes[i] >> 4];
        hex[2 * i + 1] = digits[(unsigned char)token.bytes[i] & 15];
    }
    return hex;
}

const char *token_special_name(const struct tokenizer *tokenizer, int32_t id)
{
    if (id == tokenizer_pad(tokenizer))
        return "pad";
    if (id == tokenizer_bos(tokenizer))
        return "bos";
    if (id == tokenizer_eos(tokenizer))
        return "eos";
    return id == tokenizer_unk(tokenizer) ? "unk" : NULL;
}
