/* Chance and output for the built-in text. */
#include "runner/builtin_writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"

enum { BUILTIN_SEED = 20250101, START_CAPACITY = 1 << 15 };

void writer_start(struct writer *writer, const char *name, size_t number)
{
    char stream[64];
    snprintf(stream, sizeof stream, "builtin/%s/%zu", name, number);
    *writer = (struct writer){
        .bytes = memory_alloc(START_CAPACITY, 1),
        .capacity = START_CAPACITY,
        .stream = random_stream_make(BUILTIN_SEED, stream),
    };
}

uint32_t writer_below(struct writer *writer, uint32_t bound)
{
    return (uint32_t)random_below(&writer->stream, writer->drawn++, bound);
}

uint32_t writer_between(struct writer *writer, uint32_t low, uint32_t high)
{
    return low + writer_below(writer, high - low + 1);
}

bool writer_chance(struct writer *writer, uint32_t percent)
{
    return writer_below(writer, 100) < percent;
}

void writer_byte(struct writer *writer, char byte)
{
    if (writer->size == writer->capacity) {
        writer->bytes = memory_grow(writer->bytes, writer->size, 2 * writer->capacity, 1);
        writer->capacity *= 2;
    }
    if (byte == '\n' && writer->size && writer->bytes[writer->size - 1] == ' ')
        writer->size--; /* no line ends in a space */
    bool lower = byte >= 'a' && byte <= 'z';
    if (writer->capital && lower)
        byte = (char)(byte - 'a' + 'A');
    if (lower || (byte >= 'A' && byte <= 'Z'))
        writer->capital = false;
    writer->bytes[writer->size++] = byte;
}

void writer_text(struct writer *writer, const char *text)
{
    while (*text)
        writer_byte(writer, *text++);
}

void writer_format(struct writer *writer, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    writer_text(writer, text);
}

void writer_indent(struct writer *writer, int depth)
{
    for (int i = 0; i < depth; i++)
        writer_text(writer, "    ");
}

void zipf_init(struct zipf *zipf, size_t count)
{
    zipf->count = count;
    zipf->sums = memory_alloc(count, sizeof *zipf->sums);
    uint64_t sum = 0;
    for (size_t rank = 0; rank < count; rank++)
        zipf->sums[rank] = sum += ((uint64_t)1 << 32) / (rank + 12);
}

size_t zipf_draw(const struct zipf *zipf, struct writer *writer)
{
    uint64_t at = random_below(&writer->stream, writer->drawn++, zipf->sums[zipf->count - 1]);
    size_t low = 0, high = zipf->count - 1; /* the first rank whose sum is above `at` */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (zipf->sums[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void zipf_release(struct zipf *zipf)
{
    memory_free(zipf->sums);
    *zipf = (struct zipf){0};
}
