/* Philox4x32-10 and what is drawn from it. */
#include "core/random.h"

#include <math.h>

__extension__ typedef unsigned __int128 uint128;

struct random_stream random_stream_make(int64_t seed, const char *name)
{
    uint64_t hash = 14695981039346656037ull;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211ull;
    struct random_stream stream = {
        .key = {(uint32_t)(uint64_t)seed, (uint32_t)((uint64_t)seed >> 32)},
        .name = {(uint32_t)hash, (uint32_t)(hash >> 32)},
    };
    return stream;
}

void random_words(const struct random_stream *stream, uint64_t index, uint32_t words[4])
{
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32), c2 = stream->name[0], c3 = stream->name[1];
    uint32_t k0 = stream->key[0], k1 = stream->key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
}

uint64_t random_below(const struct random_stream *stream, uint64_t index, uint64_t bound)
{
    uint32_t words[4];
    random_words(stream, index, words);
    uint64_t bits = (uint64_t)words[1] << 32 | words[0];
    return (uint64_t)((uint128)bits * bound >> 64);
}

double random_uniform(const struct random_stream *stream, uint64_t index)
{
    uint32_t words[4];
    random_words(stream, index, words);
    uint64_t bits = (uint64_t)words[1] << 32 | words[0];
    return (double)(bits >> 11) * 0x1p-53;
}

void random_normal_fill(const struct random_stream *stream, double std, real *out, size_t count)
{
    for (size_t i = 0; i < count; i += 2) {
        uint32_t words[4];
        random_words(stream, i / 2, words);
        double u = ((double)(((uint64_t)words[1] << 32 | words[0]) >> 11) + 1) * 0x1p-53; /* (0, 1] */
        double angle = (double)(((uint64_t)words[3] << 32 | words[2]) >> 11) * 0x1p-53 * 6.283185307179586;
        double radius = std * sqrt(-2 * log(u));
        out[i] = (real)(radius * cos(angle));
        if (i + 1 < count)
            out[i + 1] = (real)(radius * sin(angle));
    }
}
