/* Byte-pair encoding: the golden case, and a plain reference that recounts everything. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bpe.h"
#include "core/memory.h"
#include "core/tokenizer.h"
#include "core/unicode.h"

static struct text text_of(const char *bytes)
{
    return (struct text){bytes, strlen(bytes)};
}

static struct tokenizer *train(int64_t vocab_size, int64_t min_frequency, const struct text *documents, size_t count)
{
    struct tokenizer_config config = {.kind = TOKENIZER_BPE, .vocab_size = vocab_size, .min_frequency = min_frequency};
    struct error err = {""};
    struct tokenizer *t = tokenizer_train(&config, documents, count, &err);
    cr_assert_not_null(t, "%s", err.text);
    return t;
}

static struct tokenizer *train_one(int64_t vocab_size, const char *bytes)
{
    struct text document = text_of(bytes);
    return train(vocab_size, 2, &document, 1);
}

/* The plain reference: tokens of all runs in a row, -1 between them, every pair counted anew for each merge. */

struct row {
    int32_t *tokens;
    size_t count;
};

static struct row row_of(const struct text *documents, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += documents[i].size;
    struct row row = {memory_alloc(2 * bytes + count, sizeof(int32_t)), 0};
    for (size_t i = 0; i < count; i++) {
        for (size_t at = 0, length; at < documents[i].size; at += length) {
            length = unicode_run(documents[i].bytes + at, documents[i].size - at);
            for (size_t k = 0; k < length; k++)
                row.tokens[row.count++] = (unsigned char)documents[i].bytes[at + k];
            row.tokens[row.count++] = -1;
        }
    }
    return row;
}

static void row_apply(struct row *row, int32_t left, int32_t right, int32_t made)
{
    size_t kept = 0;
    for (size_t i = 0; i < row->count; i++) {
        bool whole = i + 1 < row->count && row->tokens[i] == left && row->tokens[i + 1] == right;
        row->tokens[kept++] = whole ? made : row->tokens[i];
        i += whole;
    }
    row->count = kept;
}

static int key_order(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static bool row_best(const struct row *row, uint64_t *keys, size_t min_frequency, int32_t *left, int32_t *right)
{
    size_t pairs = 0, best = 0;
    for (size_t i = 0; i + 1 < row->count; i++)
        if (row->tokens[i] >= 0 && row->tokens[i + 1] >= 0)
            keys[pairs++] = (uint64_t)row->tokens[i] << 32 | (uint32_t)row->tokens[i + 1];
    qsort(keys, pairs, sizeof *keys, key_order);
    for (size_t i = 0, same; i < pairs; i += same) {
        same = 1;
        while (i + same < pairs && keys[i + same] == keys[i])
            same++;
        if (same > best) {
            best = same;
            *left = (int32_t)(keys[i] >> 32);
            *right = (int32_t)(keys[i] & UINT32_MAX);
        }
    }
    return best > 0 && best >= min_frequency;
}

/* Training and encoding must both agree with the reference. */
static void compare_with_reference(const struct text *documents, size_t count, int64_t vocab_size,
                                   int64_t min_frequency, const char *name)
{
    struct tokenizer *t = train(vocab_size, min_frequency, documents, count);
    struct row row = row_of(documents, count);
    uint64_t *keys = memory_alloc(row.count, sizeof *keys);
    size_t made = 0;
    int32_t left = -1, right = -1, ours_left, ours_right;
    while (BPE_FIRST_MERGE + (int64_t)made < vocab_size && row_best(&row, keys, (size_t)min_frequency, &left, &right)) {
        cr_assert_lt(made, tokenizer_merge_count(t), "%s: stopped after %zu merges", name, made);
        tokenizer_merge(t, made, &ours_left, &ours_right);
        cr_assert(ours_left == left && ours_right == right, "%s: merge %zu is (%d, %d), must be (%d, %d)", name, made,
                  ours_left, ours_right, left, right);
        row_apply(&row, left, right, (int32_t)(BPE_FIRST_MERGE + made++));
    }
    cr_assert_eq(tokenizer_merge_count(t), made, "%s", name);

    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        int32_t *ids = memory_alloc(documents[i].size, sizeof *ids);
        size_t tokens = tokenizer_encode(t, documents[i].bytes, documents[i].size, ids);
        for (size_t k = 0; k < tokens; at++)
            if (row.tokens[at] >= 0)
                cr_assert_eq(ids[k++], row.tokens[at], "%s: document %zu, token %zu", name, i, k);
        memory_free(ids);
    }
    while (at < row.count)
        cr_assert_eq(row.tokens[at++], -1, "%s: tokens are missing", name);
    memory_free(keys);
    memory_free(row.tokens);
    tokenizer_free(t);
}

static uint64_t random_state;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)((random_state >> 33) % limit);
}

static char *file_text(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    char *bytes = memory_alloc(1 << 20, 1);
    *size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

Test(bpe, the_golden_text_gives_the_golden_merges_and_ids)
{
    json_error_t json_err;
    json_t *expected = json_load_file("tests/golden/bpe/expected.json", 0, &json_err);
    cr_assert_not_null(expected, "%s", json_err.text);
    json_t *merges = json_object_get(expected, "merges"), *golden = json_object_get(expected, "ids");
    struct text text;
    char *bytes = file_text("tests/golden/bpe/text.txt", &text.size);
    text.bytes = bytes;
    struct tokenizer *t = train(json_integer_value(json_object_get(expected, "vocab_size")), 2, &text, 1);

    cr_assert_eq(tokenizer_vocab_size(t), 600);
    cr_assert_eq(tokenizer_merge_count(t), json_array_size(merges));
    for (size_t i = 0; i < json_array_size(merges); i++) {
        int32_t left, right;
        tokenizer_merge(t, i, &left, &right);
        json_t *merge = json_array_get(merges, i);
        cr_assert_eq(left, json_integer_value(json_array_get(merge, 0)), "merge %zu", i);
        cr_assert_eq(right, json_integer_value(json_array_get(merge, 1)), "merge %zu", i);
    }
    int32_t *ids = memory_alloc(text.size, sizeof *ids);
    size_t count = tokenizer_encode(t, text.bytes, text.size, ids);
    cr_assert_eq(count, json_array_size(golden));
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(ids[i], json_integer_value(json_array_get(golden, i)), "id %zu", i);
    memory_free(ids);
    memory_free(bytes);
    tokenizer_free(t);
    json_decref(expected);
}

Test(bpe, ties_overlaps_and_repeats_follow_the_reference)
{
    static const char *const texts[] = {
        "abab cdcd efef",
        "aaaaa",
        "aaaaaa aaaaaaa aa",
        "a",
        "",
        "zzzzzzzzzzzzzzzzz",
        "ababababab babababa aba",
        "abcabcabc cabcab bcabca",
        "aabaabaab aab baa aabb",
        "the then them there these, theirs; a_b a_b 12 1212 121",
        "\xFF\xFF\xFE\xFF\xFF\xFE \xC3\xA9\xC3\xA9\xC3\xA9 \xE6\x97\xA5\xE6\x9C\xAC\xE6\x97\xA5\xE6\x9C\xAC"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct text document = text_of(texts[i]);
        for (int64_t min_frequency = 1; min_frequency <= 4; min_frequency++)
            for (int64_t vocab_size = 259; vocab_size < 300; vocab_size += 5)
                compare_with_reference(&document, 1, vocab_size, min_frequency, texts[i]);
    }
}

Test(bpe, the_smallest_pair_wins_a_tie)
{
    struct tokenizer *t = train_one(300, "efef abab cdcd");
    static const int32_t expected[][2] = {{'a', 'b'}, {'c', 'd'}, {'e', 'f'}};
    cr_assert_eq(tokenizer_merge_count(t), 3);
    for (size_t i = 0; i < 3; i++) {
        int32_t left, right;
        tokenizer_merge(t, i, &left, &right);
        cr_expect(left == expected[i][0] && right == expected[i][1], "merge %zu is (%d, %d)", i, left, right);
    }
    tokenizer_free(t);
}

Test(bpe, five_equal_letters_merge_from_the_left)
{
    struct tokenizer *t = train_one(260, "aaaaa");
    int32_t ids[5];
    cr_assert_eq(tokenizer_encode(t, "aaaaa", 5, ids), 3);
    cr_expect(ids[0] == 259 && ids[1] == 259 && ids[2] == 'a');
    tokenizer_free(t);
}

Test(bpe, random_texts_follow_the_reference)
{
    static const char *const alphabets[] = {
        "ab", "abc ", "aab1 ", "abcdefgh  ", "a_1,; \n", "\xC3\xA9\xFFxb ", "\xE2\x80\x82x."};
    random_state = 1;
    for (int round = 0; round < 700; round++) {
        const char *alphabet = alphabets[round % 7];
        uint32_t letters = (uint32_t)strlen(alphabet), count = 1 + random_below(5);
        char bytes[5][200];
        struct text documents[5];
        for (uint32_t i = 0; i < count; i++) {
            documents[i] = (struct text){bytes[i], random_below(200)};
            for (size_t k = 0; k < documents[i].size; k++)
                bytes[i][k] = alphabet[random_below(letters)];
        }
        char name[64];
        snprintf(name, sizeof name, "round %d", round);
        compare_with_reference(documents, count, 259 + random_below(80), 1 + random_below(4), name);
    }
}

Test(bpe, a_long_run_of_random_letters_follows_the_reference)
{
    enum { SIZE = 20000 };
    char *bytes = memory_alloc(SIZE, 1);
    random_state = 2;
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)('a' + random_below(26));
    struct text document = {bytes, SIZE};
    compare_with_reference(&document, 1, 400, 2, "random letters");
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(random_below(12) ? bytes[i] % 3 + 'a' : ' ');
    compare_with_reference(&document, 1, 500, 2, "random words");
    memory_free(bytes);
}

Test(bpe, nothing_merges_across_two_documents)
{
    struct text apart[] = {text_of("a"), text_of("b"), text_of("a"), text_of("b")}, whole = text_of("abab");
    struct tokenizer *t = train(300, 1, apart, 4);
    cr_expect_eq(tokenizer_merge_count(t), 0);
    tokenizer_free(t);
    t = train(300, 2, &whole, 1);
    cr_expect_eq(tokenizer_merge_count(t), 1);
    tokenizer_free(t);
}

Test(bpe, min_frequency_is_the_last_count_that_merges)
{
    struct text text = text_of("xyz xyz xyz");
    static const size_t merges[] = {2, 2, 2, 0};
    for (int64_t min_frequency = 1; min_frequency <= 4; min_frequency++) {
        struct tokenizer *t = train(1000, min_frequency, &text, 1);
        cr_expect_eq(tokenizer_merge_count(t), merges[min_frequency - 1], "min_frequency %d", (int)min_frequency);
        tokenizer_free(t);
    }
}

Test(bpe, forty_bytes_reach_what_they_reach_of_5000)
{
    struct tokenizer *t = train_one(5000, "the cat and the hat and the bat in a vat");
    cr_expect_eq(tokenizer_vocab_size(t), (int64_t)(259 + tokenizer_merge_count(t)));
    cr_expect_gt(tokenizer_merge_count(t), 2);
    cr_expect_lt(tokenizer_merge_count(t), 40);
    tokenizer_free(t);
}

Test(bpe, a_vocabulary_below_bytes_and_specials_is_refused)
{
    struct tokenizer_config config = {.kind = TOKENIZER_BPE, .vocab_size = 258, .min_frequency = 2};
    struct text text = text_of("abab");
    struct error err = {""};
    cr_assert_null(tokenizer_train(&config, &text, 1, &err));
    cr_expect_str_eq(err.text,
                     "vocab_size 258 of a bpe tokenizer; from 259 (256 bytes, pad, bos, eos) to 1000000 are possible");
    config.vocab_size = 259;
    config.min_frequency = 0;
    cr_assert_null(tokenizer_train(&config, &text, 1, &err));
    cr_expect_str_eq(err.text, "min_frequency 0 of a bpe tokenizer; it must be 1 or more");
}

Test(bpe, twenty_trainings_give_one_image)
{
    size_t size, first_size;
    struct text text;
    char *bytes = file_text("tests/golden/bpe/text.txt", &text.size);
    text.bytes = bytes;
    struct tokenizer *t = train(500, 2, &text, 1);
    void *first = tokenizer_save(t, &first_size);
    tokenizer_free(t);
    for (int i = 0; i < 20; i++) {
        t = train(500, 2, &text, 1);
        void *image = tokenizer_save(t, &size);
        cr_assert(size == first_size && memcmp(image, first, size) == 0);
        memory_free(image);
        tokenizer_free(t);
    }
    memory_free(first);
    memory_free(bytes);
}

/* A quadratic step would take hours here: 2 MB in one run. */
Test(bpe, runs_of_megabytes_are_no_slower_than_words, .timeout = 120)
{
    enum { SIZE = 2000000 };
    char *bytes = memory_alloc(SIZE, 1);
    int32_t *ids = memory_alloc(SIZE, sizeof *ids);
    random_state = 3;
    for (uint32_t letters = 1; letters <= 26; letters += 25) {
        for (size_t i = 0; i < SIZE; i++)
            bytes[i] = (char)('a' + random_below(letters));
        struct text document = {bytes, SIZE};
        struct tokenizer *t = train(letters == 1 ? 1000 : 300, 2, &document, 1);
        size_t count = tokenizer_encode(t, bytes, SIZE, ids), decoded = 0;
        for (size_t i = 0; i < count; i++) {
            struct text token = tokenizer_token(t, ids[i]);
            cr_assert(decoded + token.size <= SIZE && memcmp(bytes + decoded, token.bytes, token.size) == 0);
            decoded += token.size;
        }
        cr_expect_eq(decoded, SIZE);
        cr_expect_eq(tokenizer_vocab_size(t), letters == 1 ? 279 : 300);
        tokenizer_free(t);
    }
    memory_free(ids);
    memory_free(bytes);
}

Test(bpe, text_never_turns_into_special_tokens)
{
    struct tokenizer *t = train_one(400, "<|bos|> <|bos|> <|bos|> <pad> <pad>");
    int32_t ids[64];
    size_t count = tokenizer_encode(t, "<|bos|><pad><|eos|>", 19, ids);
    for (size_t i = 0; i < count; i++)
        cr_expect(ids[i] < 256 || ids[i] > 258, "token %zu is %d", i, ids[i]);
    cr_expect(tokenizer_pad(t) == 256 && tokenizer_bos(t) == 257 && tokenizer_eos(t) == 258 && tokenizer_unk(t) == -1);
    cr_expect_eq(tokenizer_token(t, 257).size, 0);
    tokenizer_free(t);
}

Test(bpe, doubling_merges_cannot_ask_for_memory_without_end)
{
    enum { MERGES = 60 };
    struct bpe_merge merges[MERGES] = {{'a', 'a'}};
    for (int32_t i = 1; i < MERGES; i++)
        merges[i] = (struct bpe_merge){BPE_FIRST_MERGE + i - 1, BPE_FIRST_MERGE + i - 1};
    struct error err = {""};
    cr_assert_null(bpe_create(merges, MERGES, &err));
    cr_expect_str_eq(err.text,
                     "the first 27 merges make tokens of 268435710 bytes together; at most 268435456 are held");
}
