/* One block of memory for all activations of a model, laid out once: the layout function runs a first time to count,
 * then to hand out.
 *
 *   base                                                                    size
 *   | embedded | block 0: attention .. act | block 1 | ... | final | scratch |
 *
 * Every piece starts on a cache line. */
#ifndef CORE_WORKSPACE_H
#define CORE_WORKSPACE_H

#include <stddef.h>
#include <stdint.h>

struct workspace {
    char *base; /* NULL while counting */
    size_t used;
};

/* count * size bytes; NULL while counting. */
void *workspace_take(struct workspace *workspace, int64_t count, size_t size);

#endif
