/* The cut between what is learned from and what is validated on; the hash of both; how much they have in common. */
#include <string.h>

#include "core/memory.h"
#include "runner/corpus.h"

/* Where a cut at `at` may go without breaking a UTF-8 character: there, or at the start of the character. */
static size_t character_start(struct text text, size_t at)
{
    const unsigned char *bytes = (const unsigned char *)text.bytes;
    for (size_t back = 0; back <= 3 && back <= at; back++) {
        unsigned char byte = bytes[at - back];
        if ((byte & 0xC0) == 0x80)
            continue;
        size_t length = byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
        return length > back ? at - back : at;
    }
    return at;
}

/* cuts[i] = bytes of document i that are trained on, for the documents of one kind. */
static void kind_cut(const struct corpus *corpus, const char *kind, double fraction, size_t *cuts)
{
    size_t total = 0;
    for (size_t i = 0; i < corpus->count; i++)
        if (corpus->documents[i].kind == kind)
            total += corpus->documents[i].text.size;
    size_t left = (size_t)((double)total * (1 - fraction));
    for (size_t i = 0; i < corpus->count; i++) {
        struct text text = corpus->documents[i].text;
        if (corpus->documents[i].kind != kind)
            continue;
        cuts[i] = left >= text.size ? text.size : character_start(text, left);
        left = left >= text.size ? left - text.size : 0;
    }
}

void corpus_split_fraction(const struct corpus *corpus, double fraction, struct corpus_split *split)
{
    size_t *cuts = memory_alloc(corpus->count, sizeof *cuts);
    memset(split, 0, sizeof *split);
    split->train = memory_alloc(corpus->count, sizeof *split->train);
    split->validation = memory_alloc(corpus->count, sizeof *split->validation);
    kind_cut(corpus, NULL, fraction, cuts);
    for (size_t i = 0; i < corpus->kind_count; i++)
        kind_cut(corpus, corpus->kinds[i], fraction, cuts);
    for (size_t i = 0; i < corpus->count; i++) {
        struct document whole = corpus->documents[i];
        struct text text = whole.text;
        if (cuts[i])
            split->train[split->train_count++] = (struct document){{text.bytes, cuts[i]}, whole.kind};
        if (cuts[i] < text.size)
            split->validation[split->validation_count++] =
                (struct document){{text.bytes + cuts[i], text.size - cuts[i]}, whole.kind};
    }
    memory_free(cuts);
}

void corpus_split_given(const struct corpus *train, const struct corpus *validation, struct corpus_split *split)
{
    split->train_count = train->count;
    split->validation_count = validation->count;
    split->train = memory_alloc(train->count, sizeof *split->train);
    split->validation = memory_alloc(validation->count, sizeof *split->validation);
    if (train->count)
        memcpy(split->train, train->documents, train->count * sizeof *split->train);
    if (validation->count)
        memcpy(split->validation, validation->documents, validation->count * sizeof *split->validation);
}

void corpus_split_release(struct corpus_split *split)
{
    memory_free(split->train);
    memory_free(split->validation);
    memset(split, 0, sizeof *split);
}

static void hash_add_number(struct hash *hash, uint64_t number)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(number >> (8 * i));
    hash_add(hash, bytes, sizeof bytes);
}

static void hash_add_pieces(struct hash *hash, const struct document *pieces, size_t count)
{
    hash_add_number(hash, count);
    for (size_t i = 0; i < count; i++) {
        size_t length = pieces[i].kind ? strlen(pieces[i].kind) : 0; /* no kind is empty */
        hash_add_number(hash, length);
        hash_add(hash, pieces[i].kind, length);
        hash_add_number(hash, pieces[i].text.size);
        hash_add(hash, pieces[i].text.bytes, pieces[i].text.size);
    }
}

void corpus_split_hash(const struct corpus_split *split, char hex[HASH_TEXT_SIZE])
{
    struct hash hash;
    hash_init(&hash);
    hash_add_pieces(&hash, split->train, split->train_count);
    hash_add_pieces(&hash, split->validation, split->validation_count);
    hash_end(&hash, hex);
}

/* Overlap: a set of the hashes of the training part's 64-byte windows, side by side; a window of the same length rolls
 * over the validation part. Text that repeats itself has windows at every phase, so alignment does not matter. */
enum { WINDOW = 64 };
static const uint64_t roll_base = 0x9E3779B97F4A7C15ull;

struct window_set {
    uint64_t *slots; /* 0 = free */
    size_t mask;
};

static size_t window_slot(const struct window_set *set, uint64_t hash)
{
    size_t slot = (size_t)((hash * 0xD6E8FEB86659FD93ull) >> 20) & set->mask;
    while (set->slots[slot] && set->slots[slot] != hash)
        slot = (slot + 1) & set->mask;
    return slot;
}

static uint64_t window_hash(const char *bytes)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < WINDOW; i++)
        hash = hash * roll_base + (unsigned char)bytes[i] + 1;
    return hash;
}

static void window_set_fill(struct window_set *set, const struct corpus_split *split)
{
    size_t windows = 0, slots = 1024;
    for (size_t i = 0; i < split->train_count; i++)
        windows += split->train[i].text.size / WINDOW;
    while (slots < 2 * windows)
        slots *= 2;
    *set = (struct window_set){memory_alloc(slots, sizeof *set->slots), slots - 1};
    for (size_t i = 0; i < split->train_count; i++) {
        struct text text = split->train[i].text;
        for (size_t at = 0; at + WINDOW <= text.size; at += WINDOW) {
            uint64_t hash = window_hash(text.bytes + at);
            set->slots[window_slot(set, hash)] = hash;
        }
    }
}

/* Bytes of text that lie in a window of the set. */
static size_t text_overlap(const struct window_set *set, struct text text, uint64_t top)
{
    if (text.size < WINDOW)
        return 0;
    size_t shared = 0, covered = 0; /* bytes before `covered` are counted */
    uint64_t hash = window_hash(text.bytes);
    for (size_t at = 0;; at++) {
        if (hash && set->slots[window_slot(set, hash)] == hash) {
            size_t from = covered > at ? covered : at;
            shared += at + WINDOW - from;
            covered = at + WINDOW;
        }
        if (at + WINDOW == text.size)
            return shared;
        hash = hash * roll_base + (unsigned char)text.bytes[at + WINDOW] + 1 -
               top * ((uint64_t)(unsigned char)text.bytes[at] + 1);
    }
}

double corpus_split_overlap(const struct corpus_split *split)
{
    struct window_set set;
    uint64_t top = 1; /* roll_base ^ WINDOW */
    size_t shared = 0, total = 0;
    window_set_fill(&set, split);
    for (size_t i = 0; i < WINDOW; i++)
        top *= roll_base;
    for (size_t i = 0; i < split->validation_count; i++) {
        shared += text_overlap(&set, split->validation[i].text, top);
        total += split->validation[i].text.size;
    }
    memory_free(set.slots);
    return total ? (double)shared / (double)total : 0;
}
