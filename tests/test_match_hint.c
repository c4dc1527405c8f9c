/* What the first departure looks like: each kind of difference gets its hint, and none where there is no pattern. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/match.h"
#include "runner/rewire.h"

/* ---- one tensor of a case, and what the other side may have in its place ---- */

struct sight {
    const char *name;
    real *data;
    int dims;
    int64_t shape[4];
    size_t count;
};

static void observe(void *context, const char *name, const real *data, int dims, const int64_t *shape)
{
    struct sight *sight = context;
    if (strcmp(name, sight->name) != 0)
        return;
    sight->dims = dims;
    sight->count = 1;
    for (int i = 0; i < dims; i++) {
        sight->shape[i] = shape[i];
        sight->count *= (size_t)shape[i];
    }
    memory_free(sight->data);
    sight->data = (real *)(void *)memory_copy_bytes(data, sight->count * sizeof *data);
}

static struct sight see(const struct reference_case *reference, struct model *model, const char *name)
{
    struct sight sight = {.name = name};
    size_t rows = (size_t)(reference->batch_size * reference->length);
    real *logits = memory_alloc(rows * (size_t)reference->vocab_size, sizeof *logits);
    model_observe(model, observe, &sight);
    model_logits(model, reference->inputs, reference->batch_size, reference->length, logits);
    model_observe(model, NULL, NULL);
    memory_free(logits);
    cr_assert_not_null(sight.data, "%s", name);
    return sight;
}

typedef void changer(real *expected, const struct sight *ours);
typedef void rewirer(struct model *model);

/* The hint when the other side's tensor is ours after `change`, or comes out of our model after `rewire`. */
static void assert_hint(const char *case_name, const char *tensor, changer *change, rewirer *rewire, const char *part)
{
    char folder[128], hint[MATCH_HINT_SIZE];
    struct reference_case reference;
    struct problems problems;
    struct error err;
    problems_init(&problems);
    snprintf(folder, sizeof folder, "tests/golden/%s", case_name);
    cr_assert(case_open(folder, NULL, &reference, &problems));
    struct model *model =
        model_create(&reference.model, reference.vocab_size, reference.batch_size * reference.length, &err);
    case_load_weights(&reference, model);
    struct sight ours = see(&reference, model, tensor), theirs;
    if (rewire) {
        rewire(model);
        theirs = see(&reference, model, tensor);
        case_load_weights(&reference, model);
    } else {
        theirs = see(&reference, model, tensor);
        change(theirs.data, &ours);
    }
    match_hint(&reference, model,
               &(struct match_difference){tensor, ours.data, theirs.data, ours.dims, ours.shape, MATCH_TOLERANCE},
               hint);
    if (part[0])
        cr_expect(strstr(hint, part), "%s of %s: '%s' should hold '%s'", tensor, case_name, hint, part);
    else
        cr_expect_str_empty(hint, "%s of %s: no hint, and not '%s'", tensor, case_name, hint);
    struct sight after = see(&reference, model, tensor);
    cr_expect_eq(memcmp(after.data, ours.data, ours.count * sizeof(real)), 0, "trials leave the model as it was");
    memory_free(after.data);
    memory_free(ours.data);
    memory_free(theirs.data);
    model_free(model);
    case_close(&reference);
    problems_release(&problems);
}

/* ---- changes ---- */

static int64_t columns_of(const struct sight *sight)
{
    return sight->shape[sight->dims - 1];
}

static int64_t position_of(const struct sight *sight, size_t i)
{
    return (int64_t)i / columns_of(sight) % sight->shape[sight->dims - 2];
}

/* Something without a pattern, as large as the numbers themselves. */
static real noise(size_t i)
{
    return (real)sin((double)i * (double)i);
}

static void larger(real *expected, const struct sight *ours)
{
    for (size_t i = 0; i < ours->count; i++)
        expected[i] *= 1.25f;
}

static void head_dim_larger(real *expected, const struct sight *ours)
{
    for (size_t i = 0; i < ours->count; i++)
        expected[i] *= (real)sqrt((double)columns_of(ours));
}

static void larger_by_row(real *expected, const struct sight *ours)
{
    for (size_t i = 0; i < ours->count; i++)
        expected[i] *= 1 + 0.001f * (real)(1 + (int64_t)i / columns_of(ours) % 5);
}

static void larger_by_column(real *expected, const struct sight *ours)
{
    for (size_t i = 0; i < ours->count; i++)
        expected[i] *= 1 + 0.1f * (real)((int64_t)i % columns_of(ours) % 5);
}

static void later_wrong(real *expected, const struct sight *ours)
{
    for (size_t i = 0; i < ours->count; i++)
        if (position_of(ours, i) > 0)
            expected[i] += noise(i);
}

static void later_worse(real *expected, const struct sight *ours)
{
    for (size_t i = 0; i < ours->count; i++)
        expected[i] += 0.02f * (real)position_of(ours, i) * noise(i);
}

static void earlier_wrong(real *expected, const struct sight *ours)
{
    for (size_t i = 0; i < ours->count; i++)
        if (position_of(ours, i) + 1 < ours->shape[ours->dims - 2])
            expected[i] += noise(i);
}

static void all_wrong(real *expected, const struct sight *ours)
{
    for (size_t i = 0; i < ours->count; i++)
        expected[i] += noise(i);
}

static void slightly_wrong(real *expected, const struct sight *ours)
{
    for (size_t i = 0; i < ours->count; i++)
        expected[i] += 1e-3f * noise(i);
}

static void one_head_wrong(real *expected, const struct sight *ours)
{
    for (size_t i = 0; i < ours->count; i++)
        if ((int64_t)i / (ours->shape[2] * ours->shape[3]) % ours->shape[1] == 1)
            expected[i] += noise(i);
}

static void not_a_number(real *expected, const struct sight *ours)
{
    expected[ours->count / 2] = NAN;
}

static void other_pairs_from_adjacent(struct model *model)
{
    rewire_rope_pairs(model, false);
}

static void other_pairs_from_split(struct model *model)
{
    rewire_rope_pairs(model, true);
}

static void tiled(struct model *model)
{
    rewire_kv_tile(model, false);
}

static void untiled(struct model *model)
{
    rewire_kv_tile(model, true);
}

static void unscaled(struct model *model)
{
    rewire_scale_scores(model, sqrt((double)model_shape(model).head_dim));
}

static void scaled_twice(struct model *model)
{
    rewire_scale_scores(model, 1 / sqrt((double)model_shape(model).head_dim));
}

/* Other values in the heads that read key/value head 1. */
static void one_value_head_wrong(struct model *model)
{
    struct model_shape s = model_shape(model);
    const struct tensor *value = tensor_find(model_tensors(model), "blocks.0.attention.value.weight");
    real *weights = model_parameters(model) + value->offset + s.head_dim * s.d_model;
    for (int64_t i = 0; i < s.head_dim * s.d_model; i++)
        weights[i] = noise((size_t)i);
}

/* ---- tests ---- */

Test(match_hint, a_factor_on_all_of_a_norm_is_its_epsilon_or_gain)
{
    assert_hint("rmsnorm", "final_norm", larger, NULL,
                "every number is 0.8 times the expected one: the norm's epsilon or");
    assert_hint("day1-baseline", "final_norm", larger_by_row, NULL, "a norm's epsilon");
    assert_hint("rmsnorm", "final_norm", larger_by_row, NULL,
                "factor of its own, 0.995025 to 0.999001: the norm's epsilon");
    assert_hint("rmsnorm", "blocks.1.attention.query", larger_by_row, NULL, "the epsilon of the norm before");
    assert_hint("rmsnorm", "final_norm", larger_by_column, NULL, "the norm's gain");
    assert_hint("post-norm", "blocks.0", larger_by_column, NULL, "");
}

Test(match_hint, a_factor_of_the_root_of_head_dim_is_the_attention_scale)
{
    assert_hint("rope", "blocks.0.attention.query", head_dim_larger, NULL, "attention scale 1 / sqrt(head_dim)");
    assert_hint("rope", "blocks.0.attention.query", larger, NULL,
                "every number is 0.8 times the expected one: a scale");
    assert_hint("rope", "blocks.0.attention", NULL, unscaled,
                "attention scale: with scores sqrt(head_dim) times as large");
    assert_hint("qwen-like", "blocks.0.attention", NULL, unscaled,
                "attention scale: with scores sqrt(head_dim) times as");
    assert_hint("day1-baseline", "blocks.0", NULL, scaled_twice,
                "attention scale: with scores sqrt(head_dim) times sma");
}

Test(match_hint, an_error_that_grows_with_the_position_is_the_rotation)
{
    assert_hint("rope", "blocks.0.attention.query", later_worse, NULL, "grows with the position");
    assert_hint("rope", "blocks.0.attention.query", later_worse, NULL, "rotary pairing or base");
    assert_hint("qwen-like", "blocks.0.attention.query", NULL, other_pairs_from_split, "");
    assert_hint("rope", "blocks.0.attention", NULL, other_pairs_from_adjacent, "rotary pairing: with the other one");
    assert_hint("qwen-like", "blocks.0", NULL, other_pairs_from_split, "rotary pairing: with the other one");
}

Test(match_hint, a_first_token_right_and_later_ones_wrong_is_rotation_or_mask)
{
    assert_hint("rope", "blocks.0.attention", later_wrong, NULL, "the first token is right and later ones are not");
    assert_hint("rope", "blocks.0.attention", later_wrong, NULL, "rotation or mask");
    assert_hint("day1-baseline", "blocks.0.attention", later_wrong, NULL, "it): mask");
    assert_hint("day1-baseline", "blocks.0.attention", earlier_wrong, NULL, "the causal mask");
}

Test(match_hint, one_group_of_heads_wrong_is_the_order_of_key_value_heads)
{
    assert_hint("gqa-2", "blocks.0.attention", NULL, tiled, "key/value repeat order: with the other one");
    assert_hint("modern", "blocks.0", NULL, untiled, "key/value repeat order: with the other one");
    assert_hint(
        "gqa-2", "blocks.0.attention", NULL, one_value_head_wrong,
        "heads 2, 3 of 4 (from 0) are wrong, the others right: the order in which key/value heads are repeated");
    assert_hint("gqa-2", "blocks.0.attention.key", one_head_wrong, NULL, "heads 1 of 2 (from 0) are wrong");
    assert_hint("day1-baseline", "blocks.0.attention.query", one_head_wrong, NULL, "the weights or the order of these");
}

Test(match_hint, gate_and_up_are_told_apart)
{
    assert_hint("swiglu", "blocks.0.feed_forward", NULL, rewire_gate_up, "gate and up: with the two swapped");
    assert_hint("swiglu", "blocks.1", NULL, rewire_gate_up, "gate and up: with the two swapped");
}

Test(match_hint, small_differences_everywhere_are_an_epsilon_or_precision)
{
    assert_hint("rope", "blocks.0", slightly_wrong, NULL, "a small difference at every position");
}

Test(match_hint, what_is_not_a_number_is_said)
{
    assert_hint("rope", "blocks.0", not_a_number, NULL, "what is expected is not finite");
}

Test(match_hint, no_pattern_gives_no_hint)
{
    assert_hint("rope", "blocks.0", all_wrong, NULL, "");
    assert_hint("rope", "blocks.0.attention", all_wrong, NULL, "");
    assert_hint("rope", "logits", all_wrong, NULL, "");
}
