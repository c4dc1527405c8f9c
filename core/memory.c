/* The one place that allocates, and the one place that gives up. */
#include "core/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

static void (*failure_report)(size_t size);
static size_t call_count;

void memory_on_failure(void (*report)(size_t size))
{
    failure_report = report;
}

size_t memory_call_count(void)
{
    return call_count;
}

static void memory_fail(size_t size)
{
    if (failure_report)
        failure_report(size);
    abort();
}

/* Asks for huge pages inside of a large block: a step goes through all of it, and each page is looked up. What the
 * system has none of, or knows nothing about, stays as it is. */
static void huge_pages_ask(char *block, size_t bytes)
{
#ifdef __linux__
    size_t skip = (HUGE_PAGE - (uintptr_t)block % HUGE_PAGE) % HUGE_PAGE;
    if (bytes >= 2 * (size_t)HUGE_PAGE)
        (void)madvise(block + skip, (bytes - skip) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#else
    (void)block, (void)bytes;
#endif
}

/* A block of calloc, whose untouched pages cost nothing, moved up to a multiple of 64; what calloc gave lies just
 * before it. */
static void *block_alloc(size_t count, size_t size)
{
    size_t bytes;
    call_count++;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - 2 * ALIGNMENT)
        memory_fail(SIZE_MAX);
    char *raw = calloc(1, bytes + 2 * ALIGNMENT);
    if (!raw)
        memory_fail(bytes);
    char *block = raw + ALIGNMENT + (ALIGNMENT - (uintptr_t)raw % ALIGNMENT) % ALIGNMENT;
    memcpy(block - sizeof raw, &raw, sizeof raw);
    huge_pages_ask(block, bytes);
    return block;
}

void *memory_alloc(size_t count, size_t size)
{
    return block_alloc(count, size);
}

void *memory_grow(void *block, size_t old_size, size_t count, size_t size)
{
    void *larger = block_alloc(count, size);
    size_t new_size = count * size;
    if (block)
        memcpy(larger, block, old_size < new_size ? old_size : new_size);
    memory_free(block);
    return larger;
}

char *memory_copy_bytes(const void *bytes, size_t size)
{
    if (size == SIZE_MAX)
        memory_fail(size);
    char *copy = block_alloc(size + 1, 1);
    if (size)
        memcpy(copy, bytes, size);
    copy[size] = 0;
    return copy;
}

char *memory_copy_text(const char *text)
{
    return memory_copy_bytes(text, strlen(text));
}

void memory_free(void *block)
{
    if (!block)
        return;
    char *raw;
    memcpy(&raw, (char *)block - sizeof raw, sizeof raw);
    free(raw);
}
