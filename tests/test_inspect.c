/* What inspect says of a variant. */
#include "runner/inspect.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/core_case.h"

static void inspect(const char *settings, int64_t vocab_size, struct inspection *inspection)
{
    struct config config = config_of("", settings);
    struct error err;
    cr_assert(inspect_run(&config, vocab_size, 1337, inspection, &err), "%s", err.text);
}

static const struct inspected_shape *shape_find(const struct inspection *inspection, const char *name)
{
    for (size_t i = 0; i < inspection->shape_count; i++)
        if (strcmp(inspection->shapes[i].name, name) == 0)
            return &inspection->shapes[i];
    cr_assert_fail("no operation is called '%s'", name);
    return NULL;
}

static void assert_shape(const struct inspection *inspection, const char *name, int dims, int64_t a, int64_t b,
                         int64_t c, int64_t d)
{
    const struct inspected_shape *seen = shape_find(inspection, name);
    const int64_t expected[4] = {a, b, c, d};
    cr_expect_eq(seen->dims, dims, "%s", name);
    cr_expect_arr_eq(seen->shape, expected, sizeof expected, "%s", name);
}

Test(inspect, walks_the_operations_of_one_sequence)
{
    struct inspection inspection;
    inspect("model.kv_heads=2 model.position=rope model.feed_forward=swiglu model.mtp_depth=2", 259, &inspection);
    cr_assert(inspection.walked);
    cr_assert_str_eq(inspection.shapes[0].name, "embed");
    assert_shape(&inspection, "embed", 3, 1, 128, 128, 0);
    assert_shape(&inspection, "blocks.1.attention.query", 4, 1, 4, 128, 32);
    assert_shape(&inspection, "blocks.1.attention.key", 4, 1, 2, 128, 32);
    assert_shape(&inspection, "blocks.1.feed_forward.activation", 3, 1, 128, 344, 0); /* 2/3 of 512, to 8 */
    assert_shape(&inspection, "final_norm", 3, 1, 128, 128, 0);
    assert_shape(&inspection, "logits", 3, 1, 128, 259, 0);
    assert_shape(&inspection, "logits.depth2", 3, 1, 128, 259, 0);
    inspection_release(&inspection);
}

Test(inspect, counts_bytes_of_the_cache_and_flops)
{
    struct inspection inspection;
    inspect("model.kv_heads=2 training.batch_size=4", 1024, &inspection);
    cr_assert_float_eq(inspect_cache_bytes(&inspection, 1024), 2.0 * 2 * 2 * 32 * 4 * 1024, 0); /* 2 L K D 4 T */
    cr_assert_float_eq(inspect_cache_bytes(&inspection, 4096), 4 * inspect_cache_bytes(&inspection, 1024), 0);
    cr_assert_float_eq(inspection.flops_per_step, inspection.flops_per_token * 4 * 128, 0);
    cr_assert_gt(inspection.memory, inspection.table->total * 4 * sizeof(float), "weights, gradients, two moments");
    inspection_release(&inspection);
}

Test(inspect, counts_a_day_2_step_as_its_source_does)
{
    struct inspection inspection;
    inspect("model.d_model=256 model.n_heads=8 model.n_layers=4 model.context_length=256", 2048, &inspection);
    cr_assert_eq(inspection.table->total, 3740160);
    cr_assert_float_eq(inspection.flops_per_step, 48.3e9, 0.05e9); /* 48.3 GFLOP for 8 x 256 tokens */
    inspection_release(&inspection);
}

Test(inspect, compares_the_start_with_a_uniform_guess)
{
    struct inspection inspection;
    inspect("", 1024, &inspection);
    cr_assert_float_eq(inspection.start_loss, log(1024), 0.3);
    cr_assert_not(inspect_start_is_off(&inspection));
    inspection_release(&inspection);
    inspect("model.init_std=1", 1024, &inspection);
    cr_assert(inspect_start_is_off(&inspection));
    inspection_release(&inspection);
}

Test(inspect, tells_the_size_of_what_is_too_large_to_try)
{
    struct inspection inspection;
    inspect("model.d_model=1024 model.n_layers=28 model.n_heads=16 model.kv_heads=8 model.head_dim=128 "
            "model.ff_hidden=3072 "
            "model.position=rope model.norm=rmsnorm model.feed_forward=swiglu model.qk_norm=true",
            151936, &inspection);
    cr_assert_eq(inspection.table->total, 596049920);
    cr_assert_not(inspection.walked);
    cr_assert(isnan(inspection.start_loss));
    cr_assert_not(inspect_start_is_off(&inspection), "nothing is claimed about it");
    inspection_release(&inspection);
}
