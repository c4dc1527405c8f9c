/* tokenizer.json: what is written means the same when it is read, and nothing else is believed. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/file.h"
#include "runner/hf_tokenizer.h"

static const char golden[] = "tests/golden/bpe/";

static char *golden_read(const char *name, size_t *size)
{
    struct error err;
    char *path = path_join(golden, name), *bytes;
    cr_assert(file_read(path, 1 << 22, &bytes, size, &err), "%s", err.text);
    memory_free(path);
    return bytes;
}

static struct tokenizer *trained(int64_t vocab_size)
{
    size_t size;
    char *text = golden_read("text.txt", &size);
    struct config config;
    struct error err;
    config_init(&config);
    config.tokenizer.vocab_size = vocab_size;
    struct text document = {text, size};
    struct tokenizer *tokenizer = tokenizer_train(&config.tokenizer, &document, 1, &err);
    cr_assert_not_null(tokenizer, "%s", err.text);
    memory_free(text);
    return tokenizer;
}

static json_t *json_of(int64_t vocab_size)
{
    struct tokenizer *tokenizer = trained(vocab_size);
    json_t *root = hf_tokenizer_json(tokenizer);
    tokenizer_free(tokenizer);
    return root;
}

static struct tokenizer *parsed(const json_t *root, struct error *err)
{
    char *text = json_format(root, JSON_PRETTY, false);
    struct tokenizer *tokenizer = hf_tokenizer_parse("t.json", text, strlen(text), err);
    memory_free(text);
    return tokenizer;
}

static void golden_ids_check(const struct tokenizer *tokenizer)
{
    size_t size, expected_size;
    char *text = golden_read("text.txt", &size), *expected = golden_read("expected.json", &expected_size);
    json_t *root = json_loadb(expected, expected_size, 0, NULL), *ids = json_object_get(root, "ids");
    int32_t *got = memory_alloc(size, sizeof *got);
    size_t count = tokenizer_encode(tokenizer, text, size, got);
    cr_assert_eq(count, json_array_size(ids));
    cr_assert_gt(count, 1000);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(got[i], json_integer_value(json_array_get(ids, i)), "token %zu", i);
    memory_free(got);
    json_decref(root);
    memory_free(text);
    memory_free(expected);
}

Test(hf_tokenizer, what_is_read_back_encodes_the_golden_text_to_the_same_ids)
{
    struct error err = {""};
    json_t *root = json_of(600);
    struct tokenizer *tokenizer = parsed(root, &err);
    cr_assert_not_null(tokenizer, "%s", err.text);
    golden_ids_check(tokenizer);
    cr_assert_eq(tokenizer_vocab_size(tokenizer), 600);
    tokenizer_free(tokenizer);
    json_decref(root);
}

Test(hf_tokenizer, merges_written_as_texts_are_read_too)
{
    struct error err = {""};
    json_t *root = json_of(600), *model = json_object_get(root, "model"), *merges = json_object_get(model, "merges");
    json_t *texts = json_array();
    for (size_t i = 0; i < json_array_size(merges); i++) {
        json_t *pair = json_array_get(merges, i);
        json_push(texts, json_sprintf("%s %s", json_string_value(json_array_get(pair, 0)),
                                      json_string_value(json_array_get(pair, 1))));
    }
    json_put(model, "merges", texts);
    struct tokenizer *tokenizer = parsed(root, &err);
    cr_assert_not_null(tokenizer, "%s", err.text);
    golden_ids_check(tokenizer);
    tokenizer_free(tokenizer);
    json_decref(root);
}

Test(hf_tokenizer, bytes_are_written_in_the_alphabet_of_gpt2)
{
    static const struct {
        const char *text;
        int id;
    } known[] = {{"!", '!'},
                 {"~", '~'},
                 {"\xC4\xA0", ' '},
                 {"\xC4\x8A", '\n'},
                 {"\xC4\x80", 0},
                 {"\xC4\xA1", 0x7F},
                 {"\xC5\x82", 0xA0},
                 {"\xC2\xA1", 0xA1},
                 {"\xC5\x83", 0xAD},
                 {"\xC2\xAE", 0xAE},
                 {"\xC3\xBF", 0xFF},
                 {"<|runner:pad|>", 256},
                 {"<|runner:bos|>", 257},
                 {"<|runner:eos|>", 258}};
    json_t *root = json_of(259), *vocab = json_object_get(json_object_get(root, "model"), "vocab");
    cr_assert_eq(json_object_size(vocab), 259);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const json_t *id = json_object_get(vocab, known[i].text);
        cr_expect_not_null(id, "'%s'", known[i].text);
        cr_expect_eq(json_integer_value(id), known[i].id, "'%s'", known[i].text);
    }
    json_decref(root);
}

/* The class written between brackets at *at: whether each code point is in it. Moves *at behind the "]+". */
static bool *class_read(const char **at)
{
    bool *in = memory_alloc(UNICODE_MAXIMUM + 1, sizeof *in);
    int32_t last = -1;
    bool range = false;
    while (**at != ']') {
        int32_t c;
        *at += unicode_decode(*at, strlen(*at) < 4 ? strlen(*at) : 4, &c);
        cr_assert_geq(c, 0);
        if (c == '-') {
            range = true;
            continue;
        }
        for (int32_t i = range ? last : c; i <= c; i++)
            in[i] = true;
        range = false;
        last = c;
    }
    *at += 2;
    return in;
}

Test(hf_tokenizer, the_pattern_has_every_character_in_its_class_and_in_no_other)
{
    json_t *root = json_of(259), *parts = json_object_get(json_object_get(root, "pre_tokenizer"), "pretokenizers");
    json_t *pattern = json_object_get(json_object_get(json_array_get(parts, 0), "pattern"), "Regex");
    const char *at = json_string_value(pattern);
    static const char *const openings[] = {"[", "|[", "|[", "|[^"};
    static const enum unicode_class classes[] = {UNICODE_LETTER, UNICODE_NUMBER, UNICODE_SPACE};
    for (size_t k = 0; k < 4; k++) {
        cr_assert_eq(strncmp(at, openings[k], strlen(openings[k])), 0, "class %zu", k);
        at += strlen(openings[k]);
        bool *in = class_read(&at);
        for (int32_t c = 0; c <= UNICODE_MAXIMUM; c++) {
            if (c >= 0xD800 && c <= 0xDFFF)
                continue;
            bool want = k < 3 ? unicode_class_of(c) == classes[k] : unicode_class_of(c) != UNICODE_OTHER;
            cr_assert_eq(in[c], want, "U+%04X in class %zu", (unsigned)c, k);
        }
        memory_free(in);
    }
    cr_assert_str_empty(at);
    json_decref(root);
}

/* ---- damage ---- */

static json_t *model_of(json_t *root)
{
    return json_object_get(root, "model");
}

static void normalizer_add(json_t *root)
{
    json_put(root, "normalizer", json_pack("{s:s}", "type", "NFC"));
}

static void pattern_change(json_t *root)
{
    json_t *parts = json_object_get(json_object_get(root, "pre_tokenizer"), "pretokenizers");
    json_put(json_object_get(json_array_get(parts, 0), "pattern"), "Regex", json_string("\\p{L}+"));
}

static void special_rename(json_t *root)
{
    json_put(json_array_get(json_object_get(root, "added_tokens"), 1), "content", json_string("<s>"));
}

static void type_change(json_t *root)
{
    json_put(model_of(root), "type", json_string("WordPiece"));
}

static void merges_ignore(json_t *root)
{
    json_put(model_of(root), "ignore_merges", json_true());
}

static void key_add(json_t *root)
{
    json_put(model_of(root), "surprise", json_integer(1));
}

static void ids_swap(json_t *root)
{
    json_t *vocab = json_object_get(model_of(root), "vocab");
    json_put(vocab, "a", json_integer('b'));
    json_put(vocab, "b", json_integer('a'));
}

static void id_negative(json_t *root)
{
    json_put(json_object_get(model_of(root), "vocab"), "a", json_integer(-1));
}

static void id_huge(json_t *root)
{
    json_put(json_object_get(model_of(root), "vocab"), "a", json_integer(INT64_MAX));
}

static void merge_drop(json_t *root)
{
    json_array_remove(json_object_get(model_of(root), "merges"), 3);
}

static void merge_unknown(json_t *root)
{
    json_array_set_new(json_object_get(model_of(root), "merges"), 2, json_pack("[s,s]", "zzzz", "q"));
}

static void merge_of_three(json_t *root)
{
    json_array_set_new(json_object_get(model_of(root), "merges"), 2, json_string("a b c"));
}

static void merge_number(json_t *root)
{
    json_array_set_new(json_object_get(model_of(root), "merges"), 2, json_integer(5));
}

static void merges_reorder(json_t *root)
{
    json_t *merges = json_object_get(model_of(root), "merges"), *first = json_incref(json_array_get(merges, 0));
    json_array_remove(merges, 0);
    json_array_insert_new(merges, 1, first);
}

static void vocab_list(json_t *root)
{
    json_put(model_of(root), "vocab", json_array());
}

static void model_drop(json_t *root)
{
    json_object_del(root, "model");
}

static const struct {
    void (*damage)(json_t *root);
    const char *says;
} damages[] = {
    {normalizer_add, "t.json: normalizer is {\"type\":\"NFC\"}: expected null"},
    {pattern_change, "t.json: pre_tokenizer is"},
    {special_rename, "t.json: added_tokens is"},
    {type_change, "t.json: model.type is \"WordPiece\": expected \"BPE\""},
    {merges_ignore, "t.json: model.ignore_merges is true: expected false"},
    {key_add, "t.json: unknown key 'model.surprise'"},
    {ids_swap, "t.json: model.vocab: 'a' is 98: expected 97"},
    {id_negative, "t.json: model.vocab: 'a' is -1: expected 97"},
    {id_huge, "t.json: model.vocab: 'a' is -1: expected 97"},
    {merge_drop, "t.json: model.vocab has 280 tokens and model.merges 20 pairs"},
    {merge_unknown, "t.json: model.merges: entry 2 is of 'zzzz', which is not in model.vocab"},
    {merge_of_three, "t.json: model.merges: entry 2 is no pair of tokens"},
    {merge_number, "t.json: model.merges: entry 2 is no pair of tokens"},
    {merges_reorder, "t.json: model.vocab: "},
    {vocab_list, "t.json: model.vocab has 0 tokens and model.merges 21 pairs"},
    {model_drop, "t.json: expected an object with an object 'model'"},
};

Test(hf_tokenizer, each_damage_is_refused_by_what_it_is)
{
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        struct error err = {""};
        json_t *root = json_of(280);
        damages[i].damage(root);
        struct tokenizer *tokenizer = parsed(root, &err);
        cr_expect_null(tokenizer, "%s", damages[i].says);
        cr_expect_eq(strncmp(err.text, damages[i].says, strlen(damages[i].says)), 0, "'%s', expected '%s'", err.text,
                     damages[i].says);
        tokenizer_free(tokenizer);
        json_decref(root);
    }
}

static void text_refused(const char *text, size_t size)
{
    struct error err = {""};
    cr_expect_null(hf_tokenizer_parse("t.json", text, size, &err));
    cr_expect_eq(strncmp(err.text, "t.json", 6), 0, "%s", err.text);
}

Test(hf_tokenizer, what_is_no_json_is_refused)
{
    enum { DEEP = 100000 };
    char *deep = memory_alloc(DEEP, 1);
    memset(deep, '[', DEEP);
    text_refused(deep, DEEP);
    memory_free(deep);
    text_refused("", 0);
    text_refused("[]", 2);
    text_refused("{\"model\": {}, \"model\": {}}", 26);
    json_t *root = json_of(280);
    char *text = json_format(root, JSON_LINE, false);
    size_t size = strlen(text);
    for (size_t cut = 1; cut < size; cut += 97)
        text_refused(text, cut);
    memory_free(text);
    json_decref(root);
}

Test(hf_tokenizer, the_companion_names_the_same_special_tokens)
{
    json_t *root = hf_tokenizer_config_json(64);
    cr_assert_str_eq(json_string_value(json_object_get(root, "bos_token")), "<|runner:bos|>");
    cr_assert_str_eq(json_string_value(json_object_get(root, "eos_token")), "<|runner:eos|>");
    cr_assert_eq(json_integer_value(json_object_get(root, "model_max_length")), 64);
    cr_assert(json_is_true(json_object_get(root, "split_special_tokens")));
    json_decref(root);
}
