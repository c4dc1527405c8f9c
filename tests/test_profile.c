/* The stopwatch of a step: its parts are the whole, and it changes nothing. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/profile.h"
#include "core/trainer.h"
#include "runner/bench_model.h"

static double ticks;

/* Every look at this clock takes a second. */
static double ticking(void)
{
    return ++ticks;
}

Test(profile, what_passes_between_two_operations_belongs_to_the_first)
{
    struct profile profile;
    profile_start(&profile, ticking);
    profile_at(&profile, PROFILE_SCORES, PROFILE_FORWARD, 10);
    profile_at(&profile, PROFILE_SOFTMAX, PROFILE_FORWARD, 0);
    profile_at(&profile, PROFILE_SCORES, PROFILE_BACKWARD, 20);
    profile_stop(&profile);
    ticking(); /* while it is stopped nothing is counted */
    profile_resume(&profile);
    profile_at(&profile, PROFILE_SCORES, PROFILE_BACKWARD, 20);
    profile_stop(&profile);
    cr_assert_eq(profile.times[PROFILE_OTHER][PROFILE_FORWARD].seconds, 2);
    cr_assert_eq(profile.times[PROFILE_SCORES][PROFILE_FORWARD].seconds, 1);
    cr_assert_eq(profile.times[PROFILE_SOFTMAX][PROFILE_FORWARD].seconds, 1);
    cr_assert_eq(profile.times[PROFILE_SCORES][PROFILE_BACKWARD].seconds, 2);
    cr_assert_eq(profile.times[PROFILE_SCORES][PROFILE_BACKWARD].flops, 40);
    cr_assert_eq(profile.times[PROFILE_SCORES][PROFILE_BACKWARD].calls, 2);
    cr_assert_eq(profile_seconds(&profile), 6);
}

Test(profile, none_is_nothing)
{
    profile_at(NULL, PROFILE_SCORES, PROFILE_FORWARD, 10);
    cr_assert_str_eq(profile_name(PROFILE_ADAMW), "clip and AdamW");
}

static struct bench_model small(bool modern)
{
    static const struct bench_case row = {"small", 24, 32, 4, 2, 300, 3, false};
    struct bench_case shape = row;
    struct bench_model model;
    shape.modern = modern;
    struct config config = bench_case_config(&shape);
    config.model.mtp_depth = modern ? 2 : 1;
    config.model.dropout = modern ? 0 : 0.1;
    bench_model_init(&model, &config, 300);
    return model;
}

/* The products of the weights are those that the yardstick counts; what attention multiplies comes on top. */
static void expect_flops(bool modern)
{
    static const enum profile_operation weights[] = {PROFILE_QKV, PROFILE_OUTPUT, PROFILE_UP, PROFILE_DOWN,
                                                     PROFILE_HEAD};
    struct bench_model model = small(modern);
    struct profile profile;
    struct step_record record;
    double flops = 0, start = ticks;
    profile_start(&profile, ticking);
    trainer_profile(model.trainer, &profile);
    cr_assert(trainer_step(model.trainer, &record));
    profile_stop(&profile);
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++)
        for (size_t j = 0; j < PROFILE_DIRECTIONS; j++)
            flops += profile.times[weights[i]][j].flops;
    cr_expect_eq(flops, products_flops(model.products), "%.17g is not %.17g", flops, products_flops(model.products));
    /* From the first look to the last. */
    cr_expect_eq(profile_seconds(&profile), ticks - start - 1);
    for (size_t i = 0; i < PROFILE_OPERATIONS; i++) {
        const struct profile_time *times = profile.times[i];
        /* Without dropout before it the residual is part of a product. */
        bool expected = !modern || (i != PROFILE_DROPOUT && i != PROFILE_RESIDUAL);
        cr_expect_eq(times[PROFILE_FORWARD].calls + times[PROFILE_BACKWARD].calls > 0, expected, "%s",
                     profile_name((enum profile_operation)i));
    }
    bench_model_release(&model);
}

Test(profile, every_operation_of_a_step_is_seen_and_its_products_are_those_of_the_model)
{
    expect_flops(false);
    expect_flops(true);
}

Test(profile, a_step_has_the_same_bits_with_it)
{
    struct bench_model plain = small(false), counted = small(false);
    struct profile profile;
    struct step_record a, b;
    profile_start(&profile, ticking);
    trainer_profile(counted.trainer, &profile);
    for (int i = 0; i < 3; i++) {
        cr_assert(trainer_step(plain.trainer, &a));
        cr_assert(trainer_step(counted.trainer, &b));
        cr_expect_eq(a.loss, b.loss);
    }
    struct trainer_state one = trainer_state(plain.trainer), other = trainer_state(counted.trainer);
    cr_expect_eq(memcmp(one.parameters, other.parameters, one.count * sizeof *one.parameters), 0);
    bench_model_release(&plain);
    bench_model_release(&counted);
}
