/* Counter-based random streams: any value of any stream can be had without drawing those before it,
 * so what one variant draws never shifts what another one sees.
 *
 * Generator: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC11).
 * Key = seed; the upper half of the counter = a 64-bit hash of the stream's name (FNV-1a), the lower half = index.
 * Stream names of a run: "init/<tensor>", "data", "dropout/<site>", "sample"; what is tried out or made up elsewhere
 * (inspect, doctor, bench, the built-in text) has names of its own. */
#ifndef CORE_RANDOM_H
#define CORE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "core/real.h"

struct random_stream {
    uint32_t key[2];
    uint32_t name[2];
};

struct random_stream random_stream_make(int64_t seed, const char *name);

/* The four 32-bit words at index. */
void random_words(const struct random_stream *stream, uint64_t index, uint32_t words[4]);

/* A whole number in [0, bound), bound >= 1, from the 64 bits at index (multiply-high: bias below 2^-32 for any
 * bound a corpus has). */
uint64_t random_below(const struct random_stream *stream, uint64_t index, uint64_t bound);

/* Uniform in [0, 1), 53 bits. */
double random_uniform(const struct random_stream *stream, uint64_t index);

/* out[i] = mean 0, standard deviation std, by Box-Muller in double on the words at index i/2. */
void random_normal_fill(const struct random_stream *stream, double std, real *out, size_t count);

#endif
