/* What the built-in text is written with: chance that is the same everywhere, and a buffer that knows where sentences
 * start. Whole numbers only: no libm, no locale. */
#ifndef RUNNER_BUILTIN_WRITER_H
#define RUNNER_BUILTIN_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/random.h"

struct writer {
    char *bytes; /* of memory_alloc */
    size_t size, capacity;
    bool capital; /* the next letter is a capital */
    struct random_stream stream;
    uint64_t drawn;
};

/* Empty, with a stream of chance of its own. The bytes are taken over by whoever reads them. */
void writer_start(struct writer *writer, const char *name, size_t number);

uint32_t writer_below(struct writer *writer, uint32_t bound);                /* 0 .. bound - 1 */
uint32_t writer_between(struct writer *writer, uint32_t low, uint32_t high); /* both included */
bool writer_chance(struct writer *writer, uint32_t percent);

void writer_byte(struct writer *writer, char byte);
void writer_text(struct writer *writer, const char *text);
void writer_format(struct writer *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void writer_indent(struct writer *writer, int depth); /* four spaces each */

/* Rank r of `count` comes with weight 1 / (r + 12): a few are common, most are rare. */
struct zipf {
    uint64_t *sums;
    size_t count;
};
void zipf_init(struct zipf *zipf, size_t count);
size_t zipf_draw(const struct zipf *zipf, struct writer *writer);
void zipf_release(struct zipf *zipf);

#endif
