/* Heap memory of the whole program. Running out of it ends the program in one place; sizes are
 * checked for overflow. */
#ifndef CORE_MEMORY_H
#define CORE_MEMORY_H

#include <stddef.h>

/* count * size bytes, zeroed, aligned to 64. Never NULL, also for zero bytes. Pages
 * of a large block take memory only once they are written. Owner: caller, memory_free(). */
void *memory_alloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));

/* Like realloc for blocks of memory_alloc; new bytes are not zeroed. old_size in bytes. */
void *memory_grow(void *block, size_t old_size, size_t count, size_t size) __attribute__((returns_nonnull));

char *memory_copy_text(const char *text) __attribute__((malloc, returns_nonnull));
char *memory_copy_bytes(const void *bytes, size_t size) __attribute__((malloc, returns_nonnull)); /* adds a final 0 */

/* Takes NULL. */
void memory_free(void *block);

/* Called with the size asked for when memory is out, then abort(). Default: only abort(). */
void memory_on_failure(void (*report)(size_t size));

/* Number of calls of memory_alloc and memory_grow so far: a training step must not change it. */
size_t memory_call_count(void);

#endif
