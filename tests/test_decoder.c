/* The KV cache computes what a pass over the whole sequence does, for every setting of a model. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/decoder.h"
#include "core/memory.h"
#include "tests/core_case.h"

/* float32 sums in another order: measured at 3e-7 to 9e-7; a wrong position or mask is at 1e-2 and more. */
static const double tolerance = 1e-5;

enum { V = 29, T = 24 };
static const char base[] = "model.context_length=24 model.d_model=24 model.n_heads=4 model.n_layers=2";

/* Every parameter away from its start, so that biases and gains count. */
static struct model *model_make(const struct config *config, int64_t max_tokens)
{
    struct error err;
    struct model *model = model_create(&config->model, V, max_tokens, &err);
    cr_assert_not_null(model, "%s", err.text);
    model_init(model, 7);
    size_t count = model_tensors(model)->total;
    real *noise = memory_alloc(count, sizeof *noise), *parameters = model_parameters(model);
    struct random_stream stream = random_stream_make(7, "test");
    random_normal_fill(&stream, 0.15, noise, count);
    for (size_t i = 0; i < count; i++)
        parameters[i] += noise[i];
    memory_free(noise);
    return model;
}

static struct decoder *decoder_make(struct model *model, int64_t capacity)
{
    struct error err;
    struct decoder *decoder = decoder_create(model, capacity, &err);
    cr_assert_not_null(decoder, "%s", err.text);
    return decoder;
}

static double distance(const real *a, const real *b)
{
    double difference = 0, size = 0;
    for (int i = 0; i < V; i++) {
        difference += pow((double)a[i] - (double)b[i], 2);
        size += pow((double)b[i], 2);
    }
    return sqrt(difference / size);
}

/* Logits after each token from `prompt` on, from the cache, against a pass over all of them. */
static void cache_check(const struct config *config, struct model *full, int64_t length, int64_t prompt,
                        const char *settings)
{
    struct model *model = model_make(config, length);
    struct decoder *decoder = decoder_make(model, length);
    int32_t *tokens = memory_alloc((size_t)length, sizeof *tokens);
    real *want = memory_alloc((size_t)(length * V), sizeof *want), got[V];
    fill_tokens("decoder", tokens, (size_t)length, V);
    model_logits(full, tokens, 1, length, want);
    for (int64_t fed = 0; fed < length;) {
        int64_t n = fed ? 1 : prompt;
        decoder_feed(decoder, tokens + fed, n, got);
        fed += n;
        cr_assert_eq(decoder_length(decoder), fed);
        double apart = distance(got, want + (fed - 1) * V);
        cr_assert(apart <= tolerance, "'%s': %g apart after %d tokens", settings, apart, (int)fed);
    }
    memory_free(tokens);
    memory_free(want);
    decoder_free(decoder);
    model_free(model);
}

static void cache_equals_full(const char *settings)
{
    struct config config = config_of(base, settings);
    int64_t length = config.model.context_length;
    struct model *full = model_make(&config, length);
    cache_check(&config, full, length, 7, settings);
    cache_check(&config, full, length, 1, settings);
    model_free(full);
}

Test(decoder, logits_through_the_cache_equal_those_of_a_whole_pass_for_every_setting, .timeout = 120)
{
    each_variant("model", cache_equals_full);
}

Test(decoder, long_prompts_cross_blocks_of_rows)
{
    struct config config = config_of(base, "model.context_length=150 model.position=rope model.kv_heads=2");
    struct model *full = model_make(&config, 150);
    cache_check(&config, full, 150, 131, "131 of 150");
    cache_check(&config, full, 150, 64, "64 of 150");
    model_free(full);
}

/* Without learned positions a longer context has the same parameters. */
static void past_the_context(const char *settings)
{
    struct config config = config_of(base, settings), longer = config;
    longer.model.context_length = 3 * T;
    struct model *full = model_make(&longer, 3 * T);
    cache_check(&config, full, 3 * T, 5, settings);
    model_free(full);
}

Test(decoder, other_positions_than_learned_go_on_past_the_context)
{
    past_the_context("model.position=rope");
    past_the_context("model.position=rope model.rope_scale=2.5 model.rope_layout=split");
    past_the_context("model.position=sinusoidal");
    past_the_context("model.position=none model.kv_heads=1");
}

Test(decoder, learned_positions_refuse_more_than_they_have)
{
    struct config config = config_of(base, "");
    struct model *model = model_make(&config, 8);
    struct error err = {""};
    cr_assert_null(decoder_create(model, T + 1, &err));
    cr_assert_str_eq(err.text, "a sequence of 25 tokens is longer than the model's learned positions (24)");
    model_free(model);
}

Test(decoder, a_prompt_in_small_passes_gives_the_same)
{
    struct config config = config_of(base, "model.qk_norm=true model.kv_heads=2");
    struct model *large = model_make(&config, T), *small = model_make(&config, 3);
    struct decoder *whole = decoder_make(large, T), *parts = decoder_make(small, T);
    int32_t tokens[T];
    real want[V], got[V];
    fill_tokens("decoder", tokens, T, V);
    decoder_feed(whole, tokens, 20, want);
    decoder_feed(parts, tokens, 20, got);
    cr_assert_leq(distance(got, want), tolerance);
    decoder_feed(whole, tokens + 20, 4, want);
    decoder_feed(parts, tokens + 20, 4, got);
    cr_assert_leq(distance(got, want), tolerance);
    decoder_free(whole);
    decoder_free(parts);
    model_free(large);
    model_free(small);
}

Test(decoder, a_truncated_sequence_goes_on_as_if_what_was_cut_had_never_been)
{
    struct config config = config_of(base, "model.position=rope");
    struct model *model = model_make(&config, T), *other = model_make(&config, T);
    struct decoder *cut = decoder_make(model, T), *fresh = decoder_make(other, T);
    int32_t tokens[T], wrong[T];
    real want[V], got[V];
    fill_tokens("decoder", tokens, T, V);
    fill_tokens("wrong", wrong, T, V);
    decoder_feed(cut, tokens, 6, got);
    decoder_feed(cut, wrong, 9, got);
    decoder_truncate(cut, 6);
    cr_assert_eq(decoder_length(cut), 6);
    decoder_feed(cut, tokens + 6, 8, got);
    decoder_feed(fresh, tokens, 14, want);
    cr_assert_leq(distance(got, want), tolerance);
    decoder_truncate(cut, 0);
    decoder_feed(cut, tokens, 14, got);
    cr_assert_arr_eq(got, want, sizeof want);
    decoder_free(cut);
    decoder_free(fresh);
    model_free(model);
    model_free(other);
}

Test(decoder, the_size_of_the_cache_is_told_before_it_is_made)
{
    struct config config = config_of(base, "model.kv_heads=2 model.head_dim=10");
    cr_assert_eq(decoder_cache_bytes(&config.model, 100), 2 * 2 * 2 * 10 * 100 * 4);
}
