/* Pieces of one block of memory. */
#include "core/workspace.h"

enum { LINE = 64 };

void *workspace_take(struct workspace *workspace, int64_t count, size_t size)
{
    void *piece = workspace->base ? workspace->base + workspace->used : NULL;
    workspace->used += ((size_t)count * size + LINE - 1) / LINE * LINE;
    return piece;
}
