/* The random streams: the generator's published vectors, and what is drawn from it. */
#include "core/random.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"

/* philox4x32-10 of the kat_vectors file of Random123 1.14 (Salmon et al.). */
static const struct vector {
    uint32_t counter[4], key[2], words[4];
} vectors[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

Test(random, the_generator_gives_the_published_words)
{
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const struct vector *v = &vectors[i];
        struct random_stream stream = {{v->key[0], v->key[1]}, {v->counter[2], v->counter[3]}};
        uint32_t words[4];
        random_words(&stream, (uint64_t)v->counter[1] << 32 | v->counter[0], words);
        cr_assert_arr_eq(words, v->words, sizeof words, "vector %zu", i);
    }
}

Test(random, streams_differ_by_seed_and_by_name_and_repeat)
{
    const struct random_stream streams[] = {random_stream_make(1, "data"), random_stream_make(2, "data"),
                                            random_stream_make(1, "dropout/embed"), random_stream_make(-1, "data"),
                                            random_stream_make(1, "")};
    enum { COUNT = sizeof streams / sizeof streams[0] };
    uint32_t words[COUNT][4], again[4];
    for (size_t i = 0; i < COUNT; i++) {
        random_words(&streams[i], 5, words[i]);
        for (size_t k = 0; k < i; k++)
            cr_assert_neq(memcmp(words[i], words[k], sizeof words[i]), 0, "streams %zu and %zu are equal", i, k);
    }
    struct random_stream stream = random_stream_make(1, "data");
    random_words(&stream, 5, again);
    cr_assert_arr_eq(again, words[0], sizeof again);
}

Test(random, whole_numbers_are_uniform)
{
    enum { BOUND = 10, COUNT = 100000 };
    struct random_stream stream = random_stream_make(1337, "data");
    int64_t seen[BOUND] = {0};
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t value = random_below(&stream, i, BOUND);
        cr_assert_lt(value, BOUND);
        seen[value]++;
    }
    double chi_square = 0, expected = (double)COUNT / BOUND;
    for (int i = 0; i < BOUND; i++)
        chi_square += ((double)seen[i] - expected) * ((double)seen[i] - expected) / expected;
    /* 9 degrees of freedom: a fair generator is above 27.9 in one seed of a thousand. */
    cr_assert_lt(chi_square, 27.9);
}

Test(random, whole_numbers_stay_below_any_bound)
{
    struct random_stream stream = random_stream_make(0, "data");
    const uint64_t bounds[] = {1, 2, 3, 1u << 31, (1ull << 40) + 1, UINT64_MAX};
    for (size_t b = 0; b < sizeof bounds / sizeof bounds[0]; b++)
        for (uint64_t i = 0; i < 1000; i++)
            cr_assert_lt(random_below(&stream, i, bounds[b]), bounds[b]);
}

Test(random, uniform_numbers_lie_in_the_unit_interval_and_average_a_half)
{
    enum { COUNT = 100000 };
    struct random_stream stream = random_stream_make(3, "dropout/embed");
    double sum = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        double value = random_uniform(&stream, i);
        cr_assert(value >= 0 && value < 1);
        sum += value;
    }
    /* Standard deviation of the mean: sqrt(1/12) / sqrt(COUNT) = 0.0009; five of them. */
    cr_assert_float_eq(sum / COUNT, 0.5, 0.0046);
}

Test(random, normal_numbers_have_the_moments_of_a_normal_distribution)
{
    enum { COUNT = 100000 };
    real *values = memory_alloc(COUNT, sizeof *values);
    struct random_stream stream = random_stream_make(1337, "init/token_embedding.weight");
    random_normal_fill(&stream, 0.02, values, COUNT);
    double moments[5] = {0}, neighbours = 0;
    for (size_t i = 0; i < COUNT; i++) {
        double z = (double)values[i] / 0.02;
        for (int k = 1; k <= 4; k++)
            moments[k] += pow(z, k) / COUNT;
        neighbours += i ? z * (double)values[i - 1] / 0.02 / COUNT : 0;
    }
    memory_free(values);
    /* Five standard deviations of each estimate over n = 100,000: sqrt(1, 2, 15, 96 over n), and 1/n of a product. */
    cr_assert_float_eq(moments[1], 0, 0.0159);
    cr_assert_float_eq(moments[2], 1, 0.0224);
    cr_assert_float_eq(moments[3], 0, 0.0613);
    cr_assert_float_eq(moments[4], 3, 0.155);
    cr_assert_float_eq(neighbours, 0, 0.0159);
}

Test(random, a_shorter_fill_is_the_start_of_a_longer_one)
{
    real longer[9], shorter[6] = {0};
    struct random_stream stream = random_stream_make(4, "init/x");
    random_normal_fill(&stream, 1, longer, 9);
    random_normal_fill(&stream, 1, shorter, 5);
    cr_assert_arr_eq(shorter, longer, 5 * sizeof longer[0]);
    cr_assert_eq(memcmp(&shorter[5], &(real){0}, sizeof(real)), 0, "nothing is written past the count");
}
