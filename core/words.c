/* A hash table of distinct runs that points into the text instead of copying it. */
#include "core/words.h"

#include <string.h>

#include "core/memory.h"

static uint64_t hash_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

uint64_t word_hash(const char *bytes, size_t size)
{
    uint64_t hash = size, value;
    for (; size >= sizeof value; bytes += sizeof value, size -= sizeof value) {
        memcpy(&value, bytes, sizeof value);
        hash = hash_mix(hash, value);
    }
    value = 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | (unsigned char)bytes[i];
    hash = hash_mix(hash, value);
    return hash ^ hash >> 32;
}

static void table_double(struct words *words)
{
    size_t size = words->table_size ? 2 * words->table_size : 1024;
    uint32_t *table = memory_alloc(size, sizeof *table);
    for (size_t i = 0; i < words->count; i++) {
        size_t slot = word_hash(words->items[i].bytes, words->items[i].size) & (size - 1);
        while (table[slot])
            slot = (slot + 1) & (size - 1);
        table[slot] = (uint32_t)(i + 1);
    }
    memory_free(words->table);
    words->table = table;
    words->table_size = size;
}

static void word_append(struct words *words, const char *bytes, size_t size)
{
    if (words->count == words->capacity) {
        size_t capacity = words->capacity ? words->capacity + words->capacity / 2 : 512;
        words->items = memory_grow(words->items, words->count * sizeof *words->items, capacity, sizeof *words->items);
        words->capacity = capacity;
    }
    words->items[words->count++] = (struct word){bytes, size, 1};
    words->bytes += size;
}

static void word_add(struct words *words, const char *bytes, size_t size)
{
    if (words->count >= words->table_size / 2)
        table_double(words);
    size_t mask = words->table_size - 1;
    size_t slot = word_hash(bytes, size) & mask;
    for (; words->table[slot]; slot = (slot + 1) & mask) {
        struct word *word = &words->items[words->table[slot] - 1];
        if (word->size == size && memcmp(word->bytes, bytes, size) == 0) {
            word->occurrences++;
            return;
        }
    }
    word_append(words, bytes, size);
    words->table[slot] = (uint32_t)words->count;
}

void words_add_text(struct words *words, struct text text)
{
    for (size_t at = 0, length; at < text.size; at += length) {
        length = unicode_run(text.bytes + at, text.size - at);
        if (length > 1)
            word_add(words, text.bytes + at, length);
    }
}

void words_release(struct words *words)
{
    memory_free(words->items);
    memory_free(words->table);
    *words = (struct words){0};
}
