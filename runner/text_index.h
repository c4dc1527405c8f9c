/* Finds texts that were seen before: a hash table from text to number. */
#ifndef RUNNER_TEXT_INDEX_H
#define RUNNER_TEXT_INDEX_H

#include <stddef.h>
#include <stdint.h>

struct text_index {
    struct text_entry {
        char *text; /* NULL: free */
        size_t number;
    } * entries;
    size_t room, count;
};

/* A zeroed index is empty. */
void text_index_release(struct text_index *index);

/* The number of the text, or SIZE_MAX. */
size_t text_index_find(const struct text_index *index, const char *text);

/* The text must not be there. It is copied. */
void text_index_add(struct text_index *index, const char *text, size_t number);

#endif
