/* Logits to tokens: what temperature, top-k and seed do. */
#include <criterion/criterion.h>
#include <math.h>

#include "runner/sampler.h"

enum { V = 6, DRAWS = 20000 };
static const real logits[V] = {(real)0.5, 2, -1, 2, 1, -3}; /* 1 and 3 are equal */

static struct sampler sampler_of(double temperature, int64_t top_k, int64_t seed)
{
    struct sampler sampler;
    sampler_init(&sampler, &(struct sampling){temperature, top_k, seed}, V);
    return sampler;
}

Test(sampler, temperature_zero_takes_the_first_of_the_likeliest)
{
    struct sampler sampler = sampler_of(0, 0, 1);
    for (int64_t position = 0; position < 100; position++)
        cr_assert_eq(sampler_next(&sampler, logits, position), 1);
    sampler_release(&sampler);
}

Test(sampler, top_k_of_one_is_the_same_at_any_temperature)
{
    struct sampler sampler = sampler_of(50, 1, 1);
    for (int64_t position = 0; position < 100; position++)
        cr_assert_eq(sampler_next(&sampler, logits, position), 1);
    sampler_release(&sampler);
}

static void counts_of(double temperature, int64_t top_k, int counts[V])
{
    struct sampler sampler = sampler_of(temperature, top_k, 3);
    for (int i = 0; i < V; i++)
        counts[i] = 0;
    for (int64_t position = 0; position < DRAWS; position++)
        counts[sampler_next(&sampler, logits, position)]++;
    sampler_release(&sampler);
}

/* Shares within five standard deviations of a share (0.5 / sqrt(20000) = 0.0035 at most). */
static void shares_check(double temperature, int64_t top_k, const bool *kept)
{
    int counts[V];
    double sum = 0;
    counts_of(temperature, top_k, counts);
    for (int i = 0; i < V; i++)
        sum += kept[i] ? exp((double)logits[i] / temperature) : 0;
    for (int i = 0; i < V; i++) {
        double share = kept[i] ? exp((double)logits[i] / temperature) / sum : 0;
        cr_expect_float_eq(counts[i] / (double)DRAWS, share, 0.0177, "token %d at %g", i, temperature);
        cr_expect(kept[i] || counts[i] == 0, "token %d is not among the %d likeliest", i, (int)top_k);
    }
}

Test(sampler, shares_follow_the_softmax_at_the_temperature)
{
    static const bool all[V] = {true, true, true, true, true, true};
    shares_check(1, 0, all);
    shares_check(0.5, 0, all);
    shares_check(4, 6, all);
}

Test(sampler, top_k_keeps_the_likeliest_and_of_equals_the_smallest_ids)
{
    static const bool three[V] = {false, true, false, true, true, false};
    shares_check(1, 3, three);
    struct sampler sampler = sampler_of(2, 2, 5);
    static const real equal[V] = {1, 1, 1, 1, 1, 1};
    for (int64_t position = 0; position < 200; position++)
        cr_assert_lt(sampler_next(&sampler, equal, position), 2);
    sampler_release(&sampler);
}

Test(sampler, a_temperature_near_zero_is_greedy_and_not_a_division_by_zero)
{
    static const real apart[V] = {0, 1, 2, 3, 4, 5};
    struct sampler sampler = sampler_of(1e-300, 0, 1);
    for (int64_t position = 0; position < 100; position++)
        cr_assert_eq(sampler_next(&sampler, apart, position), 5);
    sampler_release(&sampler);
}

Test(sampler, the_same_seed_and_position_draw_the_same_token)
{
    struct sampler one = sampler_of(1, 0, 1), again = sampler_of(1, 0, 1), other = sampler_of(1, 0, 2);
    int differ = 0;
    for (int64_t position = 199; position >= 0; position--) { /* in any order */
        int32_t token = sampler_next(&again, logits, position);
        cr_assert_eq(token, sampler_next(&one, logits, position));
        differ += token != sampler_next(&other, logits, position);
    }
    cr_assert_gt(differ, 50, "another seed draws others, %d of 200", differ);
    sampler_release(&one);
    sampler_release(&again);
    sampler_release(&other);
}

Test(sampler, logits_that_are_not_finite_give_no_token)
{
    real bad[V] = {0, 1, NAN, 3, 4, 5};
    struct sampler sampler = sampler_of(1, 0, 1);
    cr_assert_eq(sampler_next(&sampler, bad, 0), -1);
    bad[2] = INFINITY;
    cr_assert_eq(sampler_next(&sampler, bad, 0), -1);
    bad[2] = 2;
    cr_assert_geq(sampler_next(&sampler, bad, 0), 0);
    sampler_release(&sampler);
}
