/* Writes and reads tokenizer.json. */
#include "runner/hf_tokenizer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/bpe.h"
#include "core/memory.h"
#include "runner/file.h"
#include "runner/text_stream.h"

enum { FILE_LIMIT = 256 << 20, SPECIALS = BPE_FIRST_MERGE - BPE_BYTES, SHOWN = 60 };

/* The library finds these names in any text and makes special tokens of them, unless told not to
 * (split_special_tokens): so they are such that no text has them by chance. */
static const char *const specials[SPECIALS] = {"<|runner:pad|>", "<|runner:bos|>", "<|runner:eos|>"};

/* ---- bytes as characters that show ---- */

/* Bytes that do not show (0 to ' ', 0x7F to 0xA0, 0xAD) are numbered from 256 on. */
static int32_t character_of(unsigned char byte)
{
    enum { LOW = ' ' + 1, MIDDLE = 0xA1 - 0x7F };
    if (byte < LOW)
        return BPE_BYTES + byte;
    if (byte >= 0x7F && byte < 0x7F + MIDDLE)
        return BPE_BYTES + LOW + (byte - 0x7F);
    return byte == 0xAD ? BPE_BYTES + LOW + MIDDLE : byte;
}

/* Owner: caller, memory_free(). */
static char *token_text(struct text token)
{
    char *text = memory_alloc(2 * token.size + 1, 1), *at = text;
    for (size_t i = 0; i < token.size; i++)
        at += unicode_encode(character_of((unsigned char)token.bytes[i]), at);
    return text;
}

/* ---- the parts that are always the same ---- */

/* "ABCabc" as "A-Ca-c": all characters of a class, for between brackets. '_' is the only ASCII one that is neither
 * letter nor digit nor space, so nothing needs escaping. */
static char *class_text(enum unicode_class class)
{
    struct text_stream stream;
    text_stream_open(&stream);
    for (int32_t c = 0, first = -1; c <= UNICODE_MAXIMUM + 1; c++) {
        bool in = c <= UNICODE_MAXIMUM && (c < 0xD800 || c > 0xDFFF) && unicode_class_of(c) == class;
        if (in && first < 0)
            first = c;
        if (in || first < 0)
            continue;
        char bytes[4] = "";
        fwrite(bytes, 1, unicode_encode(first, bytes), stream.out);
        if (c - first > 2)
            fputc('-', stream.out);
        if (c - first > 1)
            fwrite(bytes, 1, unicode_encode(c - 1, bytes), stream.out);
        first = -1;
    }
    return text_stream_take(&stream);
}

/* Runs of each class, and of what is in none. Owner: caller, memory_free(). */
static char *runs_pattern(void)
{
    static const enum unicode_class classes[] = {UNICODE_LETTER, UNICODE_NUMBER, UNICODE_SPACE};
    struct text_stream stream, rest;
    text_stream_open(&stream);
    text_stream_open(&rest);
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        char *text = class_text(classes[i]);
        fprintf(stream.out, "[%s]+|", text);
        fputs(text, rest.out);
        memory_free(text);
    }
    char *text = text_stream_take(&rest);
    fprintf(stream.out, "[^%s]+", text);
    memory_free(text);
    return text_stream_take(&stream);
}

static json_t *typed(const char *type)
{
    json_t *object = json_object();
    json_put(object, "type", json_from_text(type));
    return object;
}

static json_t *byte_level(bool add_prefix_space, bool use_regex)
{
    json_t *object = typed("ByteLevel");
    json_put(object, "add_prefix_space", json_boolean(add_prefix_space));
    json_put(object, "trim_offsets", json_true());
    json_put(object, "use_regex", json_boolean(use_regex));
    return object;
}

static json_t *pre_tokenizer(void)
{
    json_t *sequence = typed("Sequence"), *parts = json_array(), *split = typed("Split"), *pattern = json_object();
    char *runs = runs_pattern();
    json_put(pattern, "Regex", json_from_text(runs));
    memory_free(runs);
    json_put(split, "pattern", pattern);
    json_put(split, "behavior", json_from_text("Isolated"));
    json_put(split, "invert", json_false());
    json_push(parts, split);
    json_push(parts, byte_level(false, false));
    json_put(sequence, "pretokenizers", parts);
    return sequence;
}

static json_t *added_tokens(void)
{
    static const char *const no[] = {"single_word", "lstrip", "rstrip", "normalized"};
    json_t *tokens = json_array();
    for (int i = 0; i < SPECIALS; i++) {
        json_t *token = json_object();
        json_put(token, "id", json_integer(BPE_BYTES + i));
        json_put(token, "content", json_from_text(specials[i]));
        for (size_t k = 0; k < sizeof no / sizeof *no; k++)
            json_put(token, no[k], json_false());
        json_put(token, "special", json_true());
        json_push(tokens, token);
    }
    return tokens;
}

/* All but the model. */
static json_t *frame(void)
{
    json_t *root = json_object();
    json_put(root, "version", json_from_text("1.0"));
    json_put(root, "truncation", json_null());
    json_put(root, "padding", json_null());
    json_put(root, "added_tokens", added_tokens());
    json_put(root, "normalizer", json_null());
    json_put(root, "pre_tokenizer", pre_tokenizer());
    json_put(root, "post_processor", json_null());
    json_put(root, "decoder", byte_level(true, true));
    return root;
}

/* The model but its vocabulary and merges. */
static json_t *model_frame(void)
{
    static const char *const absent[] = {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"};
    static const char *const off[] = {"fuse_unk", "byte_fallback", "ignore_merges"};
    json_t *model = typed("BPE");
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        json_put(model, absent[i], json_null());
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        json_put(model, off[i], json_false());
    return model;
}

/* ---- writing ---- */

static json_t *vocabulary(const struct tokenizer *tokenizer)
{
    json_t *object = json_object();
    for (int32_t id = 0; id < tokenizer_vocab_size(tokenizer); id++) {
        bool special = id >= BPE_BYTES && id < BPE_FIRST_MERGE;
        char *text = special ? memory_copy_text(specials[id - BPE_BYTES]) : token_text(tokenizer_token(tokenizer, id));
        json_put(object, text, json_integer(id));
        memory_free(text);
    }
    return object;
}

static json_t *merges(const struct tokenizer *tokenizer)
{
    json_t *array = json_array();
    for (size_t i = 0; i < tokenizer_merge_count(tokenizer); i++) {
        int32_t pair[2];
        tokenizer_merge(tokenizer, i, &pair[0], &pair[1]);
        json_t *merge = json_array();
        for (int k = 0; k < 2; k++) {
            char *text = token_text(tokenizer_token(tokenizer, pair[k]));
            json_push(merge, json_from_text(text));
            memory_free(text);
        }
        json_push(array, merge);
    }
    return array;
}

json_t *hf_tokenizer_json(const struct tokenizer *tokenizer)
{
    json_t *root = frame(), *model = model_frame();
    json_put(model, "vocab", vocabulary(tokenizer));
    json_put(model, "merges", merges(tokenizer));
    json_put(root, "model", model);
    return root;
}

json_t *hf_tokenizer_config_json(int64_t context_length)
{
    static const char *const names[SPECIALS] = {"pad_token", "bos_token", "eos_token"};
    json_t *root = json_object();
    json_put(root, "tokenizer_class", json_from_text("PreTrainedTokenizerFast"));
    for (int i = 0; i < SPECIALS; i++)
        json_put(root, names[i], json_from_text(specials[i]));
    json_put(root, "model_max_length", json_integer(context_length));
    json_put(root, "clean_up_tokenization_spaces", json_false());
    json_put(root, "split_special_tokens", json_true()); /* text never turns into special tokens */
    return root;
}

/* ---- reading ---- */

/* A part must be what we write for it; absent counts as null. */
static bool part_check(const json_t *object, const char *where, const char *key, const json_t *ours, struct error *err)
{
    const json_t *theirs = json_object_get(object, key);
    bool same = theirs ? json_equal(theirs, ours) : json_is_null(ours);
    if (same || (json_is_null(ours) && json_is_string(theirs) && !*json_string_value(theirs)))
        return true;
    char *got = theirs ? json_format(theirs, JSON_LINE, false) : memory_copy_text("nothing");
    char *want = json_format(ours, JSON_LINE, false);
    bool too_long = strlen(want) > SHOWN;
    error_set(err, "%s%s is %.*s%s: expected %s", where, key, SHOWN, got, strlen(got) > SHOWN ? ".." : "",
              too_long ? "what this program writes there" : want);
    memory_free(got);
    memory_free(want);
    return false;
}

/* Every key of ours is there with our value, and no key that is not known. */
static bool parts_check(const json_t *object, const char *where, const json_t *ours, const char *const *others,
                        struct error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)ours, key, value)
    {
        if (!part_check(object, where, key, value, err))
            return false;
    }
    json_object_foreach((json_t *)object, key, value)
    {
        bool known = json_object_get(ours, key);
        for (size_t i = 0; others[i]; i++)
            known = known || strcmp(key, others[i]) == 0;
        if (!known)
            return error_set(err, "unknown key '%s%.*s'", where, SHOWN, key);
    }
    return true;
}

/* Number of a token, -1 when there is none. */
static int32_t token_id(const json_t *vocab, const char *text)
{
    const json_t *id = json_object_get(vocab, text);
    json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
    return value >= 0 && value < BPE_MAXIMUM_VOCAB ? (int32_t)value : -1;
}

static bool entry_check(const json_t *vocab, const char *text, int32_t want, struct error *err)
{
    int32_t id = token_id(vocab, text);
    return id == want || error_set(err, "model.vocab: '%.*s' is %" PRId32 ": expected %" PRId32, SHOWN, text, id, want);
}

static bool base_check(const json_t *vocab, struct error *err)
{
    for (int32_t id = 0; id < BPE_FIRST_MERGE; id++) {
        char byte = (char)id;
        char *text = id < BPE_BYTES ? token_text((struct text){&byte, 1}) : memory_copy_text(specials[id - BPE_BYTES]);
        bool good = entry_check(vocab, text, id, err);
        memory_free(text);
        if (!good)
            return false;
    }
    return true;
}

/* ["a", "b"], or "a b" as older versions write it; the texts are copied. */
static bool pair_read(const json_t *merge, char *texts[2])
{
    const char *left = json_string_value(json_array_get(merge, 0)),
               *right = json_string_value(json_array_get(merge, 1));
    const char *both = json_string_value(merge), *space = both ? strchr(both, ' ') : NULL;
    if (json_array_size(merge) == 2 && left && right) {
        texts[0] = memory_copy_text(left);
        texts[1] = memory_copy_text(right);
        return true;
    }
    if (!space || strchr(space + 1, ' '))
        return false;
    texts[0] = memory_copy_bytes(both, (size_t)(space - both));
    texts[1] = memory_copy_text(space + 1);
    return true;
}

/* Merge number `index` makes token BPE_FIRST_MERGE + index. */
static bool merge_read(const json_t *vocab, const json_t *list, size_t index, struct bpe_merge *merge,
                       struct error *err)
{
    char *texts[2];
    if (!pair_read(json_array_get(list, index), texts))
        return error_set(err, "model.merges: entry %zu is no pair of tokens", index);
    merge->left = token_id(vocab, texts[0]);
    merge->right = token_id(vocab, texts[1]);
    size_t left = strlen(texts[0]), size = left + strlen(texts[1]) + 1;
    char *joined = memory_alloc(size, 1);
    snprintf(joined, size, "%s%s", texts[0], texts[1]);
    bool good = true;
    if (merge->left < 0 || merge->right < 0)
        good = error_set(err, "model.merges: entry %zu is of '%.*s', which is not in model.vocab", index, SHOWN,
                         texts[merge->left < 0 ? 0 : 1]);
    else
        good = entry_check(vocab, joined, (int32_t)(BPE_FIRST_MERGE + index), err);
    memory_free(joined);
    memory_free(texts[0]);
    memory_free(texts[1]);
    return good;
}

static struct tokenizer *merges_read(const json_t *vocab, const json_t *list, struct error *err)
{
    size_t count = json_array_size(list);
    if (!json_is_object(vocab) || !json_is_array(list) || json_object_size(vocab) != BPE_FIRST_MERGE + count ||
        json_object_size(vocab) > BPE_MAXIMUM_VOCAB) {
        error_set(err,
                  "model.vocab has %zu tokens and model.merges %zu pairs: expected %d tokens more than pairs, and at "
                  "most %d",
                  json_object_size(vocab), count, BPE_FIRST_MERGE, BPE_MAXIMUM_VOCAB);
        return NULL;
    }
    struct bpe_merge *pairs = memory_alloc(count, sizeof *pairs);
    bool good = base_check(vocab, err);
    for (size_t i = 0; i < count && good; i++)
        good = merge_read(vocab, list, i, &pairs[i], err);
    struct tokenizer *tokenizer = good ? tokenizer_from_merges(pairs, count, err) : NULL;
    memory_free(pairs);
    return tokenizer;
}

static struct tokenizer *root_read(const json_t *root, struct error *err)
{
    static const char *const model_key[] = {"model", NULL}, *const lists[] = {"vocab", "merges", NULL};
    const json_t *model = json_object_get(root, "model");
    json_t *ours = frame(), *our_model = model_frame();
    struct tokenizer *tokenizer = NULL;
    if (!json_is_object(root) || !json_is_object(model))
        error_set(err, "expected an object with an object 'model'");
    else if (parts_check(root, "", ours, model_key, err) && parts_check(model, "model.", our_model, lists, err))
        tokenizer = merges_read(json_object_get(model, "vocab"), json_object_get(model, "merges"), err);
    json_decref(ours);
    json_decref(our_model);
    return tokenizer;
}

struct tokenizer *hf_tokenizer_parse(const char *name, const char *text, size_t size, struct error *err)
{
    json_error_t problem;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &problem);
    struct tokenizer *tokenizer = root ? root_read(root, err) : NULL;
    if (!root)
        error_set(err, "%s:%d:%d: %s", name, problem.line, problem.column, problem.text);
    else if (!tokenizer)
        error_wrap(err, "%s", name);
    json_decref(root);
    return tokenizer;
}

struct tokenizer *hf_tokenizer_read(const char *path, struct error *err)
{
    char *text;
    size_t size;
    if (!file_read(path, FILE_LIMIT, &text, &size, err))
        return NULL;
    struct tokenizer *tokenizer = hf_tokenizer_parse(path, text, size, err);
    memory_free(text);
    return tokenizer;
}
