/* The three tokenizers behind one noun, and their byte image. */
#include "core/tokenizer.h"

#include <string.h>

#include "core/bpe.h"
#include "core/memory.h"

enum { SPECIAL_PAD, SPECIAL_BOS, SPECIAL_EOS, SPECIAL_UNK };

/* Characters are numbered by code point; a byte that is no UTF-8 is a character of its own behind them. */
enum { CHARACTER_INVALID = UNICODE_MAXIMUM + 1, CHARACTER_LIMIT = CHARACTER_INVALID + 256 };

struct tokenizer {
    int kind;
    int32_t first_special;
    size_t vocab_size;
    struct bpe *bpe;     /* bpe and byte, which is bpe without merges */
    int32_t *characters; /* char: ascending; the index is the token */
    int32_t ascii[128];  /* char: token of an ASCII character, or unk */
    char *bytes;         /* of all tokens, one after the other */
    uint32_t *starts;    /* vocab_size + 1 offsets in bytes */
};

static void bpe_bytes_fill(struct tokenizer *t)
{
    t->starts = memory_alloc(t->vocab_size + 1, sizeof *t->starts);
    for (size_t id = 0; id < t->vocab_size; id++)
        t->starts[id + 1] = t->starts[id] + (uint32_t)bpe_token_size(t->bpe, (int32_t)id);
    t->bytes = memory_alloc(t->starts[t->vocab_size], 1);
    for (size_t byte = 0; byte < BPE_BYTES; byte++)
        t->bytes[byte] = (char)byte;
    for (size_t i = 0; i < bpe_merge_count(t->bpe); i++) {
        struct bpe_merge merge = bpe_merge(t->bpe, i);
        struct text left = tokenizer_token(t, merge.left), right = tokenizer_token(t, merge.right);
        char *at = t->bytes + t->starts[BPE_FIRST_MERGE + i];
        memcpy(at, left.bytes, left.size);
        memcpy(at + left.size, right.bytes, right.size);
    }
}

static struct tokenizer *bpe_tokenizer_create(int kind, const struct bpe_merge *merges, size_t count, struct error *err)
{
    struct bpe *bpe = bpe_create(merges, count, err);
    if (!bpe)
        return NULL;
    struct tokenizer *t = memory_alloc(1, sizeof *t);
    t->kind = kind;
    t->bpe = bpe;
    t->first_special = BPE_BYTES;
    t->vocab_size = bpe_vocab_size(bpe);
    bpe_bytes_fill(t);
    return t;
}

struct tokenizer *tokenizer_from_merges(const struct bpe_merge *merges, size_t count, struct error *err)
{
    return bpe_tokenizer_create(TOKENIZER_BPE, merges, count, err);
}

static struct tokenizer *bpe_tokenizer_train(const struct tokenizer_config *config, const struct text *documents,
                                             size_t count, struct error *err)
{
    size_t merge_count;
    struct bpe_merge *merges =
        bpe_train(documents, count, config->vocab_size, config->min_frequency, &merge_count, err);
    if (!merges)
        return NULL;
    struct tokenizer *t = bpe_tokenizer_create(TOKENIZER_BPE, merges, merge_count, err);
    memory_free(merges);
    return t;
}

/* The character at the start of size >= 1 bytes. */
static size_t character_read(const char *bytes, size_t size, int32_t *character)
{
    size_t length = unicode_decode(bytes, size, character);
    if (*character == UNICODE_INVALID)
        *character = CHARACTER_INVALID + (unsigned char)bytes[0];
    return length;
}

static size_t character_write(int32_t character, char bytes[4])
{
    if (character < CHARACTER_INVALID)
        return unicode_encode(character, bytes);
    bytes[0] = (char)(character - CHARACTER_INVALID);
    return 1;
}

/* Takes characters over: count of them, ascending and valid. */
static struct tokenizer *char_tokenizer_create(int32_t *characters, size_t count)
{
    struct tokenizer *t = memory_alloc(1, sizeof *t);
    t->kind = TOKENIZER_CHAR;
    t->characters = characters;
    t->first_special = (int32_t)count;
    t->vocab_size = count + SPECIAL_UNK + 1;
    t->starts = memory_alloc(t->vocab_size + 1, sizeof *t->starts);
    t->bytes = memory_alloc(count, 4);
    for (int32_t c = 0; c < 128; c++)
        t->ascii[c] = tokenizer_unk(t);
    uint32_t used = 0;
    for (size_t id = 0; id < count; id++) {
        used += (uint32_t)character_write(characters[id], t->bytes + used);
        t->starts[id + 1] = used;
        if (characters[id] < 128)
            t->ascii[characters[id]] = (int32_t)id;
    }
    for (size_t id = count; id < t->vocab_size; id++)
        t->starts[id + 1] = used;
    return t;
}

static struct tokenizer *char_tokenizer_train(const struct text *documents, size_t count)
{
    bool *seen = memory_alloc(CHARACTER_LIMIT, sizeof *seen);
    size_t character_count = 0;
    for (size_t i = 0; i < count; i++) {
        int32_t character;
        for (size_t at = 0; at < documents[i].size;) {
            at += character_read(documents[i].bytes + at, documents[i].size - at, &character);
            character_count += !seen[character];
            seen[character] = true;
        }
    }
    int32_t *characters = memory_alloc(character_count, sizeof *characters);
    for (int32_t character = 0, next = 0; character < CHARACTER_LIMIT; character++)
        if (seen[character])
            characters[next++] = character;
    memory_free(seen);
    return char_tokenizer_create(characters, character_count);
}

struct tokenizer *tokenizer_train(const struct tokenizer_config *config, const struct text *documents, size_t count,
                                  struct error *err)
{
    switch (config->kind) {
    case TOKENIZER_CHAR: return char_tokenizer_train(documents, count);
    case TOKENIZER_BYTE: return bpe_tokenizer_create(TOKENIZER_BYTE, NULL, 0, err);
    default: return bpe_tokenizer_train(config, documents, count, err);
    }
}

static int32_t character_token(const struct tokenizer *t, int32_t character)
{
    if (character < 128)
        return t->ascii[character];
    size_t low = 0, high = (size_t)t->first_special;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->characters[middle] == character)
            return (int32_t)middle;
        if (t->characters[middle] < character)
            low = middle + 1;
        else
            high = middle;
    }
    return tokenizer_unk(t);
}

static size_t char_encode(const struct tokenizer *t, const char *text, size_t size, int32_t *ids)
{
    size_t count = 0;
    for (size_t at = 0; at < size; count++) {
        int32_t character;
        at += character_read(text + at, size - at, &character);
        ids[count] = character_token(t, character);
    }
    return count;
}

size_t tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t size, int32_t *ids)
{
    if (tokenizer->kind == TOKENIZER_CHAR)
        return char_encode(tokenizer, text, size, ids);
    if (tokenizer->kind == TOKENIZER_BPE)
        return bpe_encode(tokenizer->bpe, text, size, ids);
    for (size_t i = 0; i < size; i++)
        ids[i] = (unsigned char)text[i];
    return size;
}

int64_t tokenizer_vocab_size(const struct tokenizer *tokenizer)
{
    return (int64_t)tokenizer->vocab_size;
}

int tokenizer_kind(const struct tokenizer *tokenizer)
{
    return tokenizer->kind;
}

int32_t tokenizer_pad(const struct tokenizer *tokenizer)
{
    return tokenizer->first_special + SPECIAL_PAD;
}

int32_t tokenizer_bos(const struct tokenizer *tokenizer)
{
    return tokenizer->first_special + SPECIAL_BOS;
}

int32_t tokenizer_eos(const struct tokenizer *tokenizer)
{
    return tokenizer->first_special + SPECIAL_EOS;
}

int32_t tokenizer_unk(const struct tokenizer *tokenizer)
{
    return tokenizer->kind == TOKENIZER_CHAR ? tokenizer->first_special + SPECIAL_UNK : -1;
}

struct text tokenizer_token(const struct tokenizer *tokenizer, int32_t id)
{
    uint32_t start = tokenizer->starts[id];
    return (struct text){tokenizer->bytes + start, tokenizer->starts[id + 1] - start};
}

size_t tokenizer_merge_count(const struct tokenizer *tokenizer)
{
    return tokenizer->bpe ? bpe_merge_count(tokenizer->bpe) : 0;
}

void tokenizer_merge(const struct tokenizer *tokenizer, size_t index, int32_t *left, int32_t *right)
{
    struct bpe_merge merge = bpe_merge(tokenizer->bpe, index);
    *left = merge.left;
    *right = merge.right;
}

void tokenizer_free(struct tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    bpe_free(tokenizer->bpe);
    memory_free(tokenizer->characters);
    memory_free(tokenizer->bytes);
    memory_free(tokenizer->starts);
    memory_free(tokenizer);
}

/* The image, all numbers little endian:
 *
 *     8 bytes  "RUNNERTK"
 *     u32      version, 1
 *     u32      kind: 0 bpe, 1 char, 2 byte
 *     u32      count
 *     count *  bpe: u32 left, u32 right of each merge
 *              char: u32 of each character, ascending: its code point, or 0x110000 + a byte that is no UTF-8
 *              byte: count is 0 */
enum { IMAGE_VERSION = 1, IMAGE_HEADER = 20 };
static const char image_magic[8] = {'R', 'U', 'N', 'N', 'E', 'R', 'T', 'K'};
_Static_assert(TOKENIZER_BPE == 0 && TOKENIZER_CHAR == 1 && TOKENIZER_BYTE == 2, "images hold these numbers");

static void number_write(unsigned char *at, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(number >> 8 * i);
}

static uint32_t number_read(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static size_t entry_size(int kind)
{
    return kind == TOKENIZER_BPE ? 8 : 4;
}

void *tokenizer_save(const struct tokenizer *tokenizer, size_t *size)
{
    bool is_char = tokenizer->kind == TOKENIZER_CHAR;
    size_t count = is_char ? (size_t)tokenizer->first_special : tokenizer_merge_count(tokenizer);
    *size = IMAGE_HEADER + count * entry_size(tokenizer->kind);
    unsigned char *image = memory_alloc(*size, 1), *entry = image + IMAGE_HEADER;
    memcpy(image, image_magic, sizeof image_magic);
    number_write(image + 8, IMAGE_VERSION);
    number_write(image + 12, (uint32_t)tokenizer->kind);
    number_write(image + 16, (uint32_t)count);
    for (size_t i = 0; i < count; i++, entry += entry_size(tokenizer->kind)) {
        if (is_char) {
            number_write(entry, (uint32_t)tokenizer->characters[i]);
        } else {
            struct bpe_merge merge = bpe_merge(tokenizer->bpe, i);
            number_write(entry, (uint32_t)merge.left);
            number_write(entry + 4, (uint32_t)merge.right);
        }
    }
    return image;
}

static struct tokenizer *bpe_load(const unsigned char *entries, size_t count, struct error *err)
{
    struct bpe_merge *merges = memory_alloc(count, sizeof *merges);
    for (size_t i = 0; i < count; i++) {
        merges[i].left = (int32_t)number_read(entries + 8 * i);
        merges[i].right = (int32_t)number_read(entries + 8 * i + 4);
    }
    struct tokenizer *t = bpe_tokenizer_create(TOKENIZER_BPE, merges, count, err);
    memory_free(merges);
    return t;
}

static bool is_character(uint32_t number)
{
    if (number < CHARACTER_INVALID)
        return number < 0xD800 || number > 0xDFFF;
    return number >= CHARACTER_INVALID + 128 && number < CHARACTER_LIMIT;
}

static struct tokenizer *char_load(const unsigned char *entries, size_t count, struct error *err)
{
    int32_t *characters = memory_alloc(count, sizeof *characters);
    for (size_t i = 0; i < count; i++) {
        uint32_t number = number_read(entries + 4 * i);
        if (!is_character(number) || (i && number <= (uint32_t)characters[i - 1])) {
            error_set(err,
                      "character %zu is 0x%X; it must be a code point, or 0x110000 + a byte from 0x80, and above the "
                      "one before",
                      i, number);
            memory_free(characters);
            return NULL;
        }
        characters[i] = (int32_t)number;
    }
    return char_tokenizer_create(characters, count);
}

static bool header_check(const unsigned char *image, size_t size, struct error *err)
{
    if (size < IMAGE_HEADER || memcmp(image, image_magic, sizeof image_magic) != 0)
        return error_set(err, "not a tokenizer: %zu bytes that do not start with a \"RUNNERTK\" header of %d bytes",
                         size, IMAGE_HEADER);
    uint32_t version = number_read(image + 8), kind = number_read(image + 12), count = number_read(image + 16);
    if (version != IMAGE_VERSION)
        return error_set(err, "version %u; this program reads version %d", version, IMAGE_VERSION);
    if (kind > TOKENIZER_BYTE)
        return error_set(err, "kind %u; 0 (bpe), 1 (char) or 2 (byte) are known", kind);
    if (kind == TOKENIZER_BYTE && count)
        return error_set(err, "a byte tokenizer with %u entries; it has none", count);
    uint64_t wanted = IMAGE_HEADER + (uint64_t)count * entry_size((int)kind);
    if (size != wanted)
        return error_set(err, "%zu bytes; %u entries of %zu make %llu", size, count, entry_size((int)kind),
                         (unsigned long long)wanted);
    return true;
}

struct tokenizer *tokenizer_load(const void *image, size_t size, struct error *err)
{
    struct tokenizer *tokenizer = NULL;
    const unsigned char *bytes = image;
    if (header_check(bytes, size, err)) {
        size_t count = number_read(bytes + 16);
        switch (number_read(bytes + 12)) {
        case TOKENIZER_BPE: tokenizer = bpe_load(bytes + IMAGE_HEADER, count, err); break;
        case TOKENIZER_CHAR: tokenizer = char_load(bytes + IMAGE_HEADER, count, err); break;
        default: tokenizer = bpe_tokenizer_create(TOKENIZER_BYTE, NULL, 0, err); break;
        }
    }
    if (!tokenizer)
        error_wrap(err, "tokenizer image");
    return tokenizer;
}
