/* Tokens shown to people: nothing that drives a terminal comes through. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/memory.h"
#include "runner/token_text.h"

Test(token_text, what_does_not_show_as_itself_is_escaped)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *shown;
    } cases[] = {{"the", 3, "the"},
                 {" \n\r\t\"\\n", 7, " \\n\\r\\t\\\"\\\\n"},
                 {"\0\x1B[2J\x7F", 6, "\\x00\\x1b[2J\\x7f"},
                 {"\xC3\xA9\xC3", 3, "\xC3\xA9\\xc3"},
                 {"\xC2\x9B", 2, "\\u{9b}"},
                 {"\xE2\x80\xAE", 3, "\\u{202e}"},
                 {"\xF4\x8F\xBF\xBF\xF4\x8F\xBF\xBF", 8, "\\u{10ffff}\\u{10ffff}"},
                 {"\xE6\x97\xA5", 3, "\xE6\x97\xA5"},
                 {"\xE6\x97\xA5", 2, "\\xe6\\x97"},
                 {"", 0, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *shown = token_escape((struct text){cases[i].bytes, cases[i].size});
        cr_expect_str_eq(shown, cases[i].shown, "case %zu: %s", i, shown);
        memory_free(shown);
    }
}

Test(token_text, hexadecimal_keeps_every_byte)
{
    char *hex = token_hex((struct text){"\0a\xFF", 3});
    cr_expect_str_eq(hex, "0061ff");
    memory_free(hex);
}

Test(token_text, special_tokens_have_names)
{
    struct tokenizer_config config = {.kind = TOKENIZER_CHAR};
    struct text document = {"ab", 2};
    struct tokenizer *t = tokenizer_train(&config, &document, 1, NULL);
    static const char *const names[] = {NULL, NULL, "pad", "bos", "eos", "unk"};
    cr_assert_eq(tokenizer_vocab_size(t), 6);
    for (int32_t id = 0; id < 6; id++) {
        const char *name = token_special_name(t, id);
        cr_expect(names[id] ? name && strcmp(name, names[id]) == 0 : !name, "id %d", id);
    }
    tokenizer_free(t);
}
