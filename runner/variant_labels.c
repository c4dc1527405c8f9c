/* Every variant gets a label of its own. */
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/hash.h"
#include "runner/text_stream.h"
#include "runner/variant_maker.h"

enum { LABEL_LIMIT = 200 };

/* Too long, or with control bytes from a path: the start, then a hash that keeps it apart. */
static char *label_tame(char *label)
{
    bool tame = strlen(label) <= LABEL_LIMIT;
    for (const char *p = label; *p; p++)
        tame &= (unsigned char)*p >= 0x20 && *p != 0x7f;
    if (tame)
        return label;
    char hash[HASH_TEXT_SIZE], *shorter = memory_alloc(LABEL_LIMIT + 1, 1);
    hash_bytes(label, strlen(label), hash);
    size_t keep = strlen(label) < LABEL_LIMIT - 20 ? strlen(label) : LABEL_LIMIT - 20;
    while (keep && ((unsigned char)label[keep] & 0xc0) == 0x80)
        keep--;
    snprintf(shorter, LABEL_LIMIT + 1, "%.*s... #%.8s", (int)keep, label, hash);
    for (size_t i = 0; i < keep; i++)
        if ((unsigned char)shorter[i] < 0x20 || shorter[i] == 0x7f)
            shorter[i] = '?';
    memory_free(label);
    return shorter;
}

static void label_take(struct maker *maker, struct text_index *taken, size_t index, char *label)
{
    maker->draft->experiment->variants[index].label = label;
    text_index_add(taken, label, index);
}

static void named_label(struct maker *maker, struct text_index *taken, size_t index)
{
    struct maker_variant *extra = &maker->extras[index];
    size_t other = text_index_find(taken, extra->short_label);
    if (other != SIZE_MAX)
        problem_add(maker->draft->problems, extra->place, "label '%s' names two different variants: also at line %d",
                    extra->short_label, maker->extras[other].place.line);
    else
        label_take(maker, taken, index, memory_copy_text(extra->short_label));
}

static char *label_number(const char *label, int number)
{
    struct text_stream text;
    text_stream_open(&text);
    fprintf(text.out, "%.*s #%d", LABEL_LIMIT - 20, label, number);
    return text_stream_take(&text);
}

static void made_label(struct maker *maker, struct text_index *taken, size_t index)
{
    struct maker_variant *extra = &maker->extras[index];
    char *label = label_tame(memory_copy_text(extra->short_label));
    for (int attempt = 0; text_index_find(taken, label) != SIZE_MAX; attempt++) {
        memory_free(label);
        if (attempt == 0)
            label = label_tame(memory_copy_text(extra->full_label));
        else
            label = label_number(extra->short_label, attempt + 1);
    }
    label_take(maker, taken, index, label);
}

void labels_make(struct maker *maker)
{
    struct text_index taken = {0};
    size_t count = maker->draft->experiment->variant_count;
    for (size_t i = 0; i < count; i++)
        if (maker->extras[i].named)
            named_label(maker, &taken, i);
    for (size_t i = 0; i < count; i++)
        if (!maker->extras[i].named)
            made_label(maker, &taken, i);
    text_index_release(&taken);
}
