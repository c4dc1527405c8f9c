/* Open addressing, FNV-1a, doubled at half full. */
#include "runner/text_index.h"

#include <string.h>

#include "core/memory.h"

void text_index_release(struct text_index *index)
{
    for (size_t i = 0; i < index->room; i++)
        memory_free(index->entries[i].text);
    memory_free(index->entries);
    *index = (struct text_index){0};
}

static struct text_entry *entry_find(const struct text_index *index, const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *p = text; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 0x100000001b3u;
    for (size_t i = (size_t)hash & (index->room - 1);; i = (i + 1) & (index->room - 1))
        if (!index->entries[i].text || strcmp(index->entries[i].text, text) == 0)
            return &index->entries[i];
}

size_t text_index_find(const struct text_index *index, const char *text)
{
    const struct text_entry *entry = index->room ? entry_find(index, text) : NULL;
    return entry && entry->text ? entry->number : SIZE_MAX;
}

static void index_double(struct text_index *index)
{
    struct text_index larger = {.room = index->room ? 2 * index->room : 16, .count = index->count};
    larger.entries = memory_alloc(larger.room, sizeof *larger.entries);
    for (size_t i = 0; i < index->room; i++)
        if (index->entries[i].text)
            *entry_find(&larger, index->entries[i].text) = index->entries[i];
    memory_free(index->entries);
    *index = larger;
}

void text_index_add(struct text_index *index, const char *text, size_t number)
{
    if (2 * (index->count + 1) > index->room)
        index_double(index);
    *entry_find(index, text) = (struct text_entry){memory_copy_text(text), number};
    index->count++;
}
