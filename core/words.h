/* The distinct runs of a text and how often each occurs: what byte-pair encoding learns from.
 *
 *   struct words words = {0};
 *   words_add_text(&words, document);
 *   for (size_t i = 0; i < words.count; i++) ... words.items[i] ...
 *   words_release(&words); */
#ifndef CORE_WORDS_H
#define CORE_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "core/unicode.h"

struct word {
    const char *bytes; /* in the text it first occurred in */
    size_t size;
    uint64_t occurrences;
};

struct words {
    struct word *items; /* in the order first seen */
    size_t count, capacity;
    size_t bytes;    /* sum of the sizes */
    uint32_t *table; /* private: open addressing, index of the word + 1 */
    size_t table_size;
};

/* Adds every run of two bytes or more; the text must outlive the words. At most UINT32_MAX - 1 distinct words. */
void words_add_text(struct words *words, struct text text);
void words_release(struct words *words);

/* A hash for tables in memory; differs between machines. */
uint64_t word_hash(const char *bytes, size_t size);

#endif
