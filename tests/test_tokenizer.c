/* Tokenizers as one noun: numbering of characters and bytes, and images, also those that lie. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/memory.h"
#include "core/tokenizer.h"

static struct tokenizer *train_one(int kind, int64_t vocab_size, const char *bytes)
{
    struct tokenizer_config config = {.kind = kind, .vocab_size = vocab_size, .min_frequency = 2};
    struct text document = {bytes, strlen(bytes)};
    struct error err = {""};
    struct tokenizer *t = tokenizer_train(&config, &document, 1, &err);
    cr_assert_not_null(t, "%s", err.text);
    return t;
}

Test(tokenizer, characters_are_numbered_by_code_point)
{
    struct tokenizer *t = train_one(TOKENIZER_CHAR, 1,
                                    "ba\xE6\x97\xA5\xFF\xC3\xA9\x80"
                                    "a");
    static const char *const tokens[] = {"a", "b", "\xC3\xA9", "\xE6\x97\xA5", "\x80", "\xFF", "", "", "", ""};
    cr_assert_eq(tokenizer_vocab_size(t), 10);
    for (int32_t id = 0; id < 10; id++) {
        struct text token = tokenizer_token(t, id);
        cr_expect(token.size == strlen(tokens[id]) && memcmp(token.bytes, tokens[id], token.size) == 0, "id %d", id);
    }
    cr_expect(tokenizer_pad(t) == 6 && tokenizer_bos(t) == 7 && tokenizer_eos(t) == 8 && tokenizer_unk(t) == 9);
    int32_t ids[16];
    static const int32_t expected[] = {0, 3, 9, 9, 5, 9, 2};
    cr_assert_eq(tokenizer_encode(t,
                                  "a\xE6\x97\xA5"
                                  "c\xE6\x9C\xAC\xFF\xFE\xC3\xA9",
                                  12, ids),
                 7);
    for (size_t i = 0; i < 7; i++)
        cr_expect_eq(ids[i], expected[i], "id %zu", i);
    tokenizer_free(t);
}

Test(tokenizer, bytes_are_their_own_numbers)
{
    struct tokenizer *t = train_one(TOKENIZER_BYTE, 1024, "abab");
    int32_t ids[3];
    cr_expect_eq(tokenizer_vocab_size(t), 259);
    cr_expect_eq(tokenizer_merge_count(t), 0);
    cr_assert_eq(tokenizer_encode(t, "a\xFF", 3, ids), 3);
    cr_expect(ids[0] == 'a' && ids[1] == 255 && ids[2] == 0);
    tokenizer_free(t);
}

static const char image_text[] = "the cat and the hat, \xC3\xA9t\xC3\xA9 \xFF\xFF; 12 12";

Test(tokenizer, an_image_loads_back_to_the_same_tokenizer)
{
    for (int kind = TOKENIZER_BPE; kind <= TOKENIZER_BYTE; kind++) {
        struct tokenizer *t = train_one(kind, 280, image_text), *back;
        struct error err = {""};
        size_t size, again;
        void *image = tokenizer_save(t, &size);
        cr_assert_not_null(back = tokenizer_load(image, size, &err), "%s", err.text);
        void *second = tokenizer_save(back, &again);
        cr_expect(size == again && memcmp(image, second, size) == 0);
        cr_expect_eq(tokenizer_kind(back), kind);
        cr_assert_eq(tokenizer_vocab_size(back), tokenizer_vocab_size(t));
        int32_t ids[64], back_ids[64];
        size_t count = tokenizer_encode(t, image_text, sizeof image_text - 1, ids);
        cr_assert_eq(tokenizer_encode(back, image_text, sizeof image_text - 1, back_ids), count);
        cr_expect_arr_eq(ids, back_ids, count * sizeof *ids);
        memory_free(image);
        memory_free(second);
        tokenizer_free(t);
        tokenizer_free(back);
    }
}

static unsigned char *image_of(int kind, const char *text, size_t *size)
{
    struct tokenizer *t = train_one(kind, 300, text);
    unsigned char *image = tokenizer_save(t, size);
    tokenizer_free(t);
    return image;
}

static void expect_refused(const void *image, size_t size, const char *why)
{
    struct error err = {""};
    struct tokenizer *t = tokenizer_load(image, size, &err);
    cr_expect_null(t, "%s", why);
    cr_expect_not_null(strstr(err.text, why), "\"%s\" does not say \"%s\"", err.text, why);
    tokenizer_free(t);
}

Test(tokenizer, an_image_of_the_wrong_size_version_or_kind_is_refused)
{
    size_t size;
    unsigned char *image = image_of(TOKENIZER_BPE, image_text, &size);
    for (size_t cut = 0; cut < size; cut++) {
        unsigned char *copy = (unsigned char *)memory_copy_bytes(image, cut);
        expect_refused(copy, cut, cut < 20 ? "not a tokenizer" : "bytes;");
        memory_free(copy);
    }
    unsigned char *longer = (unsigned char *)memory_copy_bytes(image, size);
    expect_refused(longer, size + 1, "bytes;");
    memory_free(longer);
    image[8] = 2;
    expect_refused(image, size, "tokenizer image: version 2; this program reads version 1");
    image[8] = 1;
    image[12] = 3;
    expect_refused(image, size, "kind 3; 0 (bpe), 1 (char) or 2 (byte) are known");
    image[12] = 2;
    expect_refused(image, size, "a byte tokenizer with");
    image[12] = 0;
    memset(image + 16, 0xFF, 4);
    expect_refused(image, size, "4294967295 entries of 8 make 34359738380");
    image[0] = 'r';
    expect_refused(image, size, "not a tokenizer");
    memory_free(image);
}

Test(tokenizer, merges_of_later_special_or_repeated_tokens_are_refused)
{
    size_t size;
    unsigned char *image = image_of(TOKENIZER_BPE, "abab cdcd", &size);
    cr_assert_eq(size, 20 + 2 * 8);
    static const struct {
        unsigned char left[4];
        const char *why;
    } cases[] = {{{0, 1, 0, 0}, "merge 1 is of 256 and 100"},
                 {{2, 1, 0, 0}, "merge 1 is of 258 and 100"},
                 {{4, 1, 0, 0}, "merge 1 is of 260 and 100; both must be bytes (0 to 255) or merges before it"},
                 {{0xFF, 0xFF, 0xFF, 0xFF}, "merge 1 is of -1 and 100"},
                 {{0, 0, 0, 0x80}, "merge 1 is of -2147483648 and 100"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(image + 28, cases[i].left, 4);
        expect_refused(image, size, cases[i].why);
    }
    memcpy(image + 28, image + 20, 8);
    expect_refused(image, size, "merge 1, of 97 and 98, is there twice; first as merge 0");
    memory_free(image);
}

Test(tokenizer, characters_out_of_order_or_range_are_refused)
{
    size_t size;
    unsigned char *image = image_of(TOKENIZER_CHAR, "abc", &size);
    cr_assert_eq(size, 20 + 3 * 4);
    static const unsigned char bad[][4] = {
        {'a', 0, 0, 0}, {0, 0xD8, 0, 0}, {0x41, 0, 0x11, 0}, {0, 1, 0x11, 0}, {0xFF, 0xFF, 0xFF, 0xFF}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        memcpy(image + 24, bad[i], 4);
        expect_refused(image, size, "character 1 is 0x");
    }
    memory_free(image);
}

Test(tokenizer, images_with_flipped_bytes_load_or_are_refused_but_never_misread)
{
    for (int kind = TOKENIZER_BPE; kind <= TOKENIZER_BYTE; kind++) {
        size_t size;
        unsigned char *image = image_of(kind, image_text, &size);
        for (size_t at = 0; at < size; at++) {
            for (unsigned flip = 1; flip < 256; flip = 2 * flip + 1) {
                image[at] ^= (unsigned char)flip;
                struct error err = {""};
                struct tokenizer *t = tokenizer_load(image, size, &err);
                int32_t ids[64];
                if (t)
                    cr_expect_leq(tokenizer_encode(t, image_text, sizeof image_text - 1, ids), sizeof image_text - 1);
                else
                    cr_expect_neq(err.text[0], 0);
                tokenizer_free(t);
                image[at] ^= (unsigned char)flip;
            }
        }
        memory_free(image);
    }
}
