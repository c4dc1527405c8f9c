/* Byte-pair encoding learned: exactly what recounting all pairs before each merge would give, at the cost of only the
 * places that a merge touches. */
#include <string.h>

#include "core/bpe.h"
#include "core/memory.h"
#include "core/words.h"

/* All distinct words stand in one row of symbols, SEPARATOR before, between and behind. The first and the last byte of
 * a token hold its number, so both neighbours are found without links:
 *
 *     index     0   1   2   3   4   5   6   7
 *     symbols  -1   t   h   e  -1   t   h  -1     the word "the", then "th"
 *     merge th -1  259 259  e  -1  259 259 -1
 *
 * A pair's places are a doubly linked list through the indices of its left tokens, in ascending order; 0, a separator,
 * ends it. Pairs below min_frequency are not kept: a pair is complete when the newer of its tokens is made, and only
 * loses places from then on. */
enum { SEPARATOR = -1 };

struct link {
    uint32_t previous, next;
};

/* A list of places while it is collected. */
struct chain {
    uint64_t count; /* weighted by how often each word occurs */
    uint32_t first, last;
};

struct pair {
    uint64_t key;   /* left << 32 | right: order of ties */
    uint64_t count; /* 0: empty slot */
    uint32_t first;
};

struct candidate {
    uint64_t count, key; /* count as it was; the pair may have lost places since */
};

struct trainer {
    uint64_t min_frequency;
    int32_t *symbols;
    struct link *links;
    size_t word_count;
    uint32_t *word_starts;
    uint64_t *word_weights;
    uint32_t *token_sizes;

    struct pair *pairs; /* open addressing */
    size_t pair_count, pair_mask;
    struct candidate *heap; /* highest count, then smallest key, first */
    size_t heap_count, heap_capacity;

    /* Pairs of the newest token: chains[2 * other] has (other, newest), chains[2 * other + 1] has (newest, other). */
    struct chain *chains;
    uint32_t *touched;
    size_t touched_count;
};

static uint64_t pair_key(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

static size_t pair_home(const struct trainer *t, uint64_t key)
{
    return (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & t->pair_mask;
}

/* The pair's slot, or the empty one it would take. */
static struct pair *pair_find(const struct trainer *t, uint64_t key)
{
    size_t slot = pair_home(t, key);
    while (t->pairs[slot].count && t->pairs[slot].key != key)
        slot = (slot + 1) & t->pair_mask;
    return &t->pairs[slot];
}

static void pairs_double(struct trainer *t)
{
    struct pair *old = t->pairs;
    size_t old_size = t->pair_mask + 1;
    t->pairs = memory_alloc(2 * old_size, sizeof *t->pairs);
    t->pair_mask = 2 * old_size - 1;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].count)
            *pair_find(t, old[i].key) = old[i];
    memory_free(old);
}

static void pair_insert(struct trainer *t, struct pair pair)
{
    if (t->pair_count >= (t->pair_mask + 1) / 3 * 2)
        pairs_double(t);
    *pair_find(t, pair.key) = pair;
    t->pair_count++;
}

/* Empties the slot and moves up what had been pushed behind it. */
static void pair_remove(struct trainer *t, struct pair *pair)
{
    size_t hole = (size_t)(pair - t->pairs);
    for (size_t slot = (hole + 1) & t->pair_mask; t->pairs[slot].count; slot = (slot + 1) & t->pair_mask) {
        size_t distance = (slot - pair_home(t, t->pairs[slot].key)) & t->pair_mask;
        if (distance >= ((slot - hole) & t->pair_mask)) {
            t->pairs[hole] = t->pairs[slot];
            hole = slot;
        }
    }
    t->pairs[hole].count = 0;
    t->pair_count--;
}

static bool candidate_before(struct candidate a, struct candidate b)
{
    return a.count != b.count ? a.count > b.count : a.key < b.key;
}

static void heap_sift_down(struct trainer *t, size_t at)
{
    struct candidate moved = t->heap[at];
    for (size_t child; (child = 2 * at + 1) < t->heap_count; at = child) {
        if (child + 1 < t->heap_count && candidate_before(t->heap[child + 1], t->heap[child]))
            child++;
        if (!candidate_before(t->heap[child], moved))
            break;
        t->heap[at] = t->heap[child];
    }
    t->heap[at] = moved;
}

/* Pairs that are gone keep their candidates; when those are the most part, the heap is made anew from the pairs. */
static void heap_rebuild(struct trainer *t)
{
    t->heap_count = 0;
    for (size_t i = 0; i <= t->pair_mask; i++)
        if (t->pairs[i].count)
            t->heap[t->heap_count++] = (struct candidate){t->pairs[i].count, t->pairs[i].key};
    for (size_t i = t->heap_count / 2; i-- > 0;)
        heap_sift_down(t, i);
}

static void heap_push(struct trainer *t, struct candidate candidate)
{
    if (t->heap_count == t->heap_capacity && t->heap_count / 2 > t->pair_count)
        heap_rebuild(t);
    if (t->heap_count == t->heap_capacity) {
        size_t capacity = t->heap_capacity ? 2 * t->heap_capacity : 1024;
        t->heap = memory_grow(t->heap, t->heap_count * sizeof *t->heap, capacity, sizeof *t->heap);
        t->heap_capacity = capacity;
    }
    size_t at = t->heap_count++;
    for (; at && candidate_before(candidate, t->heap[(at - 1) / 2]); at = (at - 1) / 2)
        t->heap[at] = t->heap[(at - 1) / 2];
    t->heap[at] = candidate;
}

/* The pair to merge next, NULL when none is left. */
static struct pair *pair_best(struct trainer *t)
{
    while (t->heap_count) {
        struct candidate *top = &t->heap[0];
        struct pair *pair = pair_find(t, top->key);
        if (pair->count && pair->count == top->count)
            return pair;
        if (pair->count)
            top->count = pair->count;
        else
            *top = t->heap[--t->heap_count];
        if (t->heap_count)
            heap_sift_down(t, 0);
    }
    return NULL;
}

static uint64_t weight_at(const struct trainer *t, uint32_t place)
{
    size_t low = 0, high = t->word_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (t->word_starts[middle] <= place)
            low = middle;
        else
            high = middle;
    }
    return t->word_weights[low];
}

/* Places come in ascending order. */
static void chain_append(struct trainer *t, struct chain *chain, uint32_t place, uint64_t weight)
{
    t->links[place] = (struct link){.previous = chain->last};
    if (chain->last)
        t->links[chain->last].next = place;
    else
        chain->first = place;
    chain->last = place;
    chain->count += weight;
}

/* The chain becomes a pair, if it is frequent enough, and is empty again. */
static void chain_finish(struct trainer *t, struct chain *chain, int32_t left, int32_t right)
{
    if (chain->count >= t->min_frequency) {
        struct pair pair = {pair_key(left, right), chain->count, chain->first};
        pair_insert(t, pair);
        heap_push(t, (struct candidate){pair.count, pair.key});
    }
    *chain = (struct chain){0};
}

/* A pair of neighbours at `place` is no more. */
static void pair_lose(struct trainer *t, int32_t left, int32_t right, uint32_t place, uint64_t weight)
{
    struct pair *pair = pair_find(t, pair_key(left, right));
    if (!pair->count)
        return; /* not kept */
    struct link link = t->links[place];
    if (link.previous)
        t->links[link.previous].next = link.next;
    else
        pair->first = link.next;
    if (link.next)
        t->links[link.next].previous = link.previous;
    pair->count -= weight;
    if (pair->count < t->min_frequency)
        pair_remove(t, pair);
}

/* Replaces the pair at its places from left to right. Returns the first of those where it was still whole ("aaa" has
 * two places and one merge); links[].next leads to the others. */
static uint32_t places_merge(struct trainer *t, uint32_t place, int32_t left, int32_t right, int32_t made)
{
    int32_t *symbols = t->symbols;
    uint32_t first = 0, last = 0;
    for (uint32_t next; place; place = next) {
        next = t->links[place].next;
        if (symbols[place] != left)
            continue;
        uint32_t middle = place + t->token_sizes[left], end = place + t->token_sizes[made];
        uint64_t weight = weight_at(t, place);
        int32_t before = symbols[place - 1], after = symbols[end];
        if (before != SEPARATOR && before != made)
            pair_lose(t, before, left, place - t->token_sizes[before], weight);
        if (after != SEPARATOR)
            pair_lose(t, right, after, middle, weight);
        symbols[place] = symbols[middle] = symbols[end - 1] = made;
        if (last)
            t->links[last].next = place;
        else
            first = place;
        last = place;
    }
    if (last)
        t->links[last].next = 0;
    return first;
}

static void chain_touch(struct trainer *t, size_t index, uint32_t place, uint64_t weight)
{
    if (!t->chains[index].first)
        t->touched[t->touched_count++] = (uint32_t)index;
    chain_append(t, &t->chains[index], place, weight);
}

/* Counts the pairs that the new token is part of. */
static void neighbours_collect(struct trainer *t, uint32_t place, int32_t made)
{
    for (uint32_t next; place; place = next) {
        next = t->links[place].next;
        uint64_t weight = weight_at(t, place);
        int32_t before = t->symbols[place - 1], after = t->symbols[place + t->token_sizes[made]];
        if (before != SEPARATOR && before != made)
            chain_touch(t, 2 * (size_t)before, place - t->token_sizes[before], weight);
        if (after != SEPARATOR)
            chain_touch(t, 2 * (size_t)after + 1, place, weight);
    }
    for (size_t i = 0; i < t->touched_count; i++) {
        int32_t other = (int32_t)(t->touched[i] / 2);
        bool other_first = t->touched[i] % 2 == 0;
        chain_finish(t, &t->chains[t->touched[i]], other_first ? other : made, other_first ? made : other);
    }
    t->touched_count = 0;
}

static void pair_merge(struct trainer *t, struct pair *pair, int32_t made)
{
    int32_t left = (int32_t)(pair->key >> 32), right = (int32_t)(pair->key & UINT32_MAX);
    uint32_t place = pair->first;
    t->token_sizes[made] = t->token_sizes[left] + t->token_sizes[right];
    pair_remove(t, pair);
    neighbours_collect(t, places_merge(t, place, left, right, made), made);
}

static void symbols_fill(struct trainer *t, const struct words *words)
{
    uint32_t at = 0;
    t->symbols[at++] = SEPARATOR;
    for (size_t i = 0; i < words->count; i++) {
        const struct word *word = &words->items[i];
        t->word_starts[i] = at;
        t->word_weights[i] = word->occurrences;
        for (size_t k = 0; k < word->size; k++)
            t->symbols[at++] = (unsigned char)word->bytes[k];
        t->symbols[at++] = SEPARATOR;
    }
}

static void byte_pairs_count(struct trainer *t, size_t symbol_count)
{
    struct chain *chains = memory_alloc((size_t)BPE_BYTES * BPE_BYTES, sizeof *chains);
    size_t word = 0;
    for (uint32_t at = 1; at + 1 < symbol_count; at++) {
        int32_t left = t->symbols[at], right = t->symbols[at + 1];
        if (left == SEPARATOR)
            word++;
        else if (right != SEPARATOR)
            chain_append(t, &chains[left * BPE_BYTES + right], at, t->word_weights[word]);
    }
    for (int32_t left = 0; left < BPE_BYTES; left++)
        for (int32_t right = 0; right < BPE_BYTES; right++)
            chain_finish(t, &chains[left * BPE_BYTES + right], left, right);
    memory_free(chains);
}

/* Takes what it needs of the words; they can go. */
static void trainer_fill(struct trainer *t, const struct words *words, uint64_t min_frequency, size_t most_tokens)
{
    size_t symbol_count = words->bytes + words->count + 1;
    *t = (struct trainer){.min_frequency = min_frequency, .word_count = words->count, .pair_mask = 1023};
    t->symbols = memory_alloc(symbol_count, sizeof *t->symbols);
    t->links = memory_alloc(symbol_count, sizeof *t->links);
    t->word_starts = memory_alloc(words->count, sizeof *t->word_starts);
    t->word_weights = memory_alloc(words->count, sizeof *t->word_weights);
    t->token_sizes = memory_alloc(most_tokens, sizeof *t->token_sizes);
    t->pairs = memory_alloc(t->pair_mask + 1, sizeof *t->pairs);
    t->chains = memory_alloc(2 * most_tokens, sizeof *t->chains);
    t->touched = memory_alloc(2 * most_tokens, sizeof *t->touched);
    for (size_t i = 0; i < BPE_BYTES; i++)
        t->token_sizes[i] = 1;
    symbols_fill(t, words);
    byte_pairs_count(t, symbol_count);
}

static void trainer_release(struct trainer *t)
{
    memory_free(t->symbols);
    memory_free(t->links);
    memory_free(t->word_starts);
    memory_free(t->word_weights);
    memory_free(t->token_sizes);
    memory_free(t->pairs);
    memory_free(t->heap);
    memory_free(t->chains);
    memory_free(t->touched);
}

struct bpe_merge *bpe_train(const struct text *documents, size_t count, int64_t vocab_size, int64_t min_frequency,
                            size_t *merge_count, struct error *err)
{
    if (vocab_size < BPE_FIRST_MERGE || vocab_size > BPE_MAXIMUM_VOCAB) {
        error_set(err, "vocab_size %lld of a bpe tokenizer; from %d (256 bytes, pad, bos, eos) to %d are possible",
                  (long long)vocab_size, BPE_FIRST_MERGE, BPE_MAXIMUM_VOCAB);
        return NULL;
    }
    if (min_frequency < 1) {
        error_set(err, "min_frequency %lld of a bpe tokenizer; it must be 1 or more", (long long)min_frequency);
        return NULL;
    }
    struct words words = {0};
    for (size_t i = 0; i < count; i++)
        words_add_text(&words, documents[i]);
    if (words.bytes + words.count >= UINT32_MAX) {
        error_set(err, "the text has %zu bytes in different words; a bpe tokenizer can learn from %u", words.bytes,
                  UINT32_MAX);
        words_release(&words);
        return NULL;
    }
    size_t most_merges = (size_t)vocab_size - BPE_FIRST_MERGE;
    if (most_merges > words.bytes) /* each merge makes a word shorter */
        most_merges = words.bytes;
    struct trainer t;
    trainer_fill(&t, &words, (uint64_t)min_frequency, BPE_FIRST_MERGE + most_merges);
    words_release(&words);

    struct bpe_merge *merges = memory_alloc(most_merges, sizeof *merges);
    struct pair *best;
    *merge_count = 0;
    while (*merge_count < most_merges && (best = pair_best(&t))) {
        merges[*merge_count] = (struct bpe_merge){(int32_t)(best->key >> 32), (int32_t)(best->key & UINT32_MAX)};
        pair_merge(&t, best, (int32_t)(BPE_FIRST_MERGE + (*merge_count)++));
    }
    trainer_release(&t);
    return merges;
}
