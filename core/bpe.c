/* Byte-pair encoding applied: a run of text to the tokens it merges into. */
#include "core/bpe.h"

#include <string.h>

#include "core/memory.h"
#include "core/words.h"

struct rank_slot {
    struct bpe_merge pair;
    int32_t id; /* 0: empty */
};

struct bpe {
    struct bpe_merge *merges;
    size_t merge_count;
    uint32_t *sizes;         /* bytes of each token */
    struct rank_slot *ranks; /* open addressing: pair to the token it makes */
    size_t rank_mask;
};

static size_t pair_slot(const struct bpe *bpe, int32_t left, int32_t right)
{
    uint64_t hash = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * UINT64_C(0x9E3779B97F4A7C15);
    size_t slot = (size_t)(hash >> 32) & bpe->rank_mask;
    while (bpe->ranks[slot].id && (bpe->ranks[slot].pair.left != left || bpe->ranks[slot].pair.right != right))
        slot = (slot + 1) & bpe->rank_mask;
    return slot;
}

/* The token that the pair makes, 0 when it makes none. */
static int32_t pair_token(const struct bpe *bpe, int32_t left, int32_t right)
{
    return bpe->ranks[pair_slot(bpe, left, right)].id;
}

static bool is_earlier_token(int32_t id, size_t made)
{
    return id >= 0 && (size_t)id < made && (id < BPE_BYTES || id >= BPE_FIRST_MERGE);
}

static bool merge_add(struct bpe *bpe, size_t index, uint64_t *total, struct error *err)
{
    struct bpe_merge merge = bpe->merges[index];
    size_t made = BPE_FIRST_MERGE + index;
    if (!is_earlier_token(merge.left, made) || !is_earlier_token(merge.right, made))
        return error_set(err, "merge %zu is of %d and %d; both must be bytes (0 to 255) or merges before it", index,
                         merge.left, merge.right);
    size_t slot = pair_slot(bpe, merge.left, merge.right);
    if (bpe->ranks[slot].id)
        return error_set(err, "merge %zu, of %d and %d, is there twice; first as merge %d", index, merge.left,
                         merge.right, bpe->ranks[slot].id - BPE_FIRST_MERGE);
    bpe->ranks[slot] = (struct rank_slot){merge, (int32_t)made};
    uint64_t size = (uint64_t)bpe->sizes[merge.left] + bpe->sizes[merge.right];
    *total += size;
    if (*total > BPE_MAXIMUM_TOKEN_BYTES)
        return error_set(err, "the first %zu merges make tokens of %llu bytes together; at most %d are held", index + 1,
                         (unsigned long long)*total, BPE_MAXIMUM_TOKEN_BYTES);
    bpe->sizes[made] = (uint32_t)size;
    return true;
}

struct bpe *bpe_create(const struct bpe_merge *merges, size_t count, struct error *err)
{
    if (count > BPE_MAXIMUM_VOCAB - BPE_FIRST_MERGE) {
        error_set(err, "%zu merges; at most %d are possible", count, BPE_MAXIMUM_VOCAB - BPE_FIRST_MERGE);
        return NULL;
    }
    size_t slots = 16;
    while (slots < 2 * count)
        slots *= 2;
    struct bpe *bpe = memory_alloc(1, sizeof *bpe);
    bpe->merges = memory_alloc(count, sizeof *merges);
    bpe->merge_count = count;
    bpe->sizes = memory_alloc(BPE_FIRST_MERGE + count, sizeof *bpe->sizes);
    bpe->ranks = memory_alloc(slots, sizeof *bpe->ranks);
    bpe->rank_mask = slots - 1;
    if (count)
        memcpy(bpe->merges, merges, count * sizeof *merges);
    for (size_t i = 0; i < BPE_BYTES; i++)
        bpe->sizes[i] = 1;
    uint64_t total = BPE_BYTES;
    for (size_t i = 0; i < count; i++) {
        if (!merge_add(bpe, i, &total, err)) {
            bpe_free(bpe);
            return NULL;
        }
    }
    return bpe;
}

void bpe_free(struct bpe *bpe)
{
    if (!bpe)
        return;
    memory_free(bpe->merges);
    memory_free(bpe->sizes);
    memory_free(bpe->ranks);
    memory_free(bpe);
}

size_t bpe_vocab_size(const struct bpe *bpe)
{
    return BPE_FIRST_MERGE + bpe->merge_count;
}

size_t bpe_merge_count(const struct bpe *bpe)
{
    return bpe->merge_count;
}

struct bpe_merge bpe_merge(const struct bpe *bpe, size_t index)
{
    return bpe->merges[index];
}

size_t bpe_token_size(const struct bpe *bpe, int32_t id)
{
    return bpe->sizes[id];
}

/* What one call of bpe_encode() works with. */
struct encoder {
    const struct bpe *bpe;
    struct cached {
        const char *bytes; /* a run seen before */
        size_t size;       /* 0: none yet */
        size_t at, count;  /* its tokens, in the ids of this call */
    } * cache;
    size_t cache_mask;
    uint64_t *heap; /* pairs that merge, lowest token first, then leftmost: token << 44 | position */
    size_t heap_count, heap_capacity;
};

enum { POSITION_BITS = 44, CACHE_SLOTS = 1 << 15, HEAP_ARITY = 4 };

static void heap_sift_up(uint64_t *heap, size_t at, uint64_t entry)
{
    while (at && heap[(at - 1) / HEAP_ARITY] > entry) {
        heap[at] = heap[(at - 1) / HEAP_ARITY];
        at = (at - 1) / HEAP_ARITY;
    }
    heap[at] = entry;
}

static void heap_push(struct encoder *e, uint64_t entry)
{
    if (e->heap_count == e->heap_capacity) {
        size_t capacity = e->heap_capacity ? 2 * e->heap_capacity : 64;
        e->heap = memory_grow(e->heap, e->heap_count * sizeof *e->heap, capacity, sizeof *e->heap);
        e->heap_capacity = capacity;
    }
    heap_sift_up(e->heap, e->heap_count++, entry);
}

static uint64_t heap_pop(struct encoder *e)
{
    uint64_t top = e->heap[0], last = e->heap[--e->heap_count];
    size_t at = 0, count = e->heap_count;
    for (size_t child; (child = HEAP_ARITY * at + 1) < count;) {
        size_t least = child, end = child + HEAP_ARITY < count ? child + HEAP_ARITY : count;
        while (++child < end)
            if (e->heap[child] < e->heap[least])
                least = child;
        if (e->heap[least] >= last)
            break;
        e->heap[at] = e->heap[least];
        at = least;
    }
    e->heap[at] = last;
    return top;
}

static void candidate_push(struct encoder *e, const int32_t *ids, size_t left, size_t right)
{
    int32_t token = pair_token(e->bpe, ids[left], ids[right]);
    if (token)
        heap_push(e, (uint64_t)token << POSITION_BITS | left);
}

/* Tokens are kept in place while they merge. The first and the last byte of each hold its number, so both neighbours
 * are found without links: "a b" "c d e" "f" is 7 7 9 . 9 3. Later numbers are higher, so what a swallowed first byte
 * holds can never be taken for the token that once began there. */
static void run_merge(struct encoder *e, int32_t *ids, size_t size)
{
    const uint32_t *sizes = e->bpe->sizes;
    e->heap_count = 0;
    for (size_t i = 0; i + 1 < size; i++)
        candidate_push(e, ids, i, i + 1);
    while (e->heap_count) {
        uint64_t entry = heap_pop(e);
        int32_t token = (int32_t)(entry >> POSITION_BITS);
        size_t left = entry & ((UINT64_C(1) << POSITION_BITS) - 1);
        struct bpe_merge merge = e->bpe->merges[token - BPE_FIRST_MERGE];
        size_t right = left + sizes[merge.left];
        if (ids[left] != merge.left || right >= size || ids[right] != merge.right)
            continue; /* one of the two has merged with another since */
        size_t end = left + sizes[token];
        ids[left] = ids[right] = ids[end - 1] = token;
        if (left)
            candidate_push(e, ids, left - sizes[ids[left - 1]], left);
        if (end < size)
            candidate_push(e, ids, left, end);
    }
}

static size_t run_compact(const struct bpe *bpe, int32_t *ids, size_t size)
{
    size_t count = 0;
    for (size_t at = 0; at < size; at += bpe->sizes[ids[count - 1]])
        ids[count++] = ids[at];
    return count;
}

/* ids: the output so far and room for the run behind it. Returns the new count. */
static size_t run_encode(struct encoder *e, const char *bytes, size_t size, int32_t *ids, size_t count)
{
    if (size == 1) {
        ids[count] = (unsigned char)bytes[0];
        return count + 1;
    }
    struct cached *cached = &e->cache[word_hash(bytes, size) & e->cache_mask];
    if (cached->size == size && memcmp(cached->bytes, bytes, size) == 0) {
        for (size_t i = 0; i < cached->count; i++)
            ids[count + i] = ids[cached->at + i];
        return count + cached->count;
    }
    for (size_t i = 0; i < size; i++)
        ids[count + i] = (unsigned char)bytes[i];
    run_merge(e, ids + count, size);
    *cached = (struct cached){bytes, size, count, run_compact(e->bpe, ids + count, size)};
    return count + cached->count;
}

size_t bpe_encode(const struct bpe *bpe, const char *text, size_t size, int32_t *ids)
{
    size_t slots = 1, count = 0;
    while (slots < CACHE_SLOTS && slots < size / 8)
        slots *= 2;
    struct encoder e = {.bpe = bpe, .cache = memory_alloc(slots, sizeof *e.cache), .cache_mask = slots - 1};
    for (size_t at = 0, length; at < size; at += length) {
        length = unicode_run(text + at, size - at);
        count = run_encode(&e, text + at, length, ids, count);
    }
    memory_free(e.cache);
    memory_free(e.heap);
    return count;
}
