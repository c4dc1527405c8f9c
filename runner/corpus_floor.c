/* How low the loss on a text of independent letters can get: a model below that has seen what it was to predict. */
#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "runner/corpus.h"

enum { LAGS = 8, BYTES = 256, PAIRS = BYTES * BYTES, FEWEST = 8 /* pairs for each that could occur */ };

/* White space is left out: lines of one length make it predictable. */
static bool counts(char c)
{
    return (unsigned char)c > ' ';
}

/* pairs[a * 256 + b]: how often b stands `lag` bytes after a. */
static void pairs_count(const struct corpus_split *split, size_t lag, uint64_t *pairs)
{
    memset(pairs, 0, PAIRS * sizeof *pairs);
    for (size_t i = 0; i < split->train_count; i++) {
        struct text text = split->train[i].text;
        unsigned char last[LAGS];
        size_t seen = 0;
        for (size_t k = 0; k < text.size; k++) {
            if (!counts(text.bytes[k]))
                continue;
            unsigned char *slot = &last[seen % LAGS], byte = (unsigned char)text.bytes[k];
            if (seen >= lag)
                pairs[last[(seen - lag) % LAGS] * BYTES + byte]++;
            *slot = byte;
            seen++;
        }
    }
}

/* The G test: twice the mutual information of N pairs is chi-square of (k - 1)^2 degrees when there is none; refused
 * four deviations above its mean, and with too few pairs to tell. */
static bool pairs_independent(const uint64_t *pairs)
{
    double first[BYTES] = {0}, second[BYTES] = {0}, total = 0, g = 0, kinds = 0;
    for (size_t p = 0; p < PAIRS; p++) {
        first[p / BYTES] += (double)pairs[p];
        second[p % BYTES] += (double)pairs[p];
        total += (double)pairs[p];
    }
    for (size_t b = 0; b < BYTES; b++)
        kinds += first[b] > 0;
    for (size_t p = 0; p < PAIRS; p++)
        if (pairs[p])
            g += 2 * (double)pairs[p] * log((double)pairs[p] * total / (first[p / BYTES] * second[p % BYTES]));
    double degrees = (kinds - 1) * (kinds - 1);
    return total >= FEWEST * kinds * kinds && g <= degrees + 4 * sqrt(2 * degrees);
}

/* Bits for each byte of the validation text, by the frequencies of its own letters: no fixed ones do better. */
static double letters_entropy(const struct corpus_split *split)
{
    double count[BYTES] = {0}, letters = 0, bytes = 0, bits = 0;
    for (size_t i = 0; i < split->validation_count; i++) {
        struct text text = split->validation[i].text;
        for (size_t k = 0; k < text.size; k++)
            count[(unsigned char)text.bytes[k]] += counts(text.bytes[k]);
        bytes += (double)text.size;
    }
    for (size_t b = 0; b < BYTES; b++)
        letters += count[b];
    for (size_t b = 0; b < BYTES; b++)
        if (count[b] > 0)
            bits -= count[b] * log2(count[b] / letters);
    return bytes > 0 ? bits / bytes : 0;
}

double corpus_split_floor(const struct corpus_split *split)
{
    uint64_t *pairs = memory_alloc(PAIRS, sizeof *pairs);
    bool independent = true;
    for (size_t lag = 1; independent && lag <= LAGS; lag++) {
        pairs_count(split, lag, pairs);
        independent = pairs_independent(pairs);
    }
    memory_free(pairs);
    return independent ? letters_entropy(split) : 0;
}
