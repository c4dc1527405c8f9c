/* Texts that outgrow the model: what is seen, and that the cache leads to the same tokens as no cache. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "runner/generation.h"
#include "runner/sampler.h"
#include "tests/core_case.h"

enum { V = 31, T = 12, LONGEST = 60 };
static const char base[] = "model.context_length=12 model.d_model=16 model.n_heads=2 model.n_layers=2 "
                           "model.init_std=0.3";

static struct model *model_of(const char *settings, int64_t context_length, int64_t rows)
{
    struct config config = config_of(base, settings);
    struct error err;
    if (context_length)
        config.model.context_length = context_length;
    struct model *model = model_create(&config.model, V, rows, &err);
    cr_assert_not_null(model, "%s", err.text);
    model_init(model, 5);
    return model;
}

static struct generation *generation_of(struct model *model)
{
    struct error err;
    struct generation *generation = generation_create(model, LONGEST, &err);
    cr_assert_not_null(generation, "%s", err.text);
    return generation;
}

/* Logits of what follows, by a pass over everything that is seen. */
static void full_logits(struct model *full, bool learned, const int32_t *tokens, int64_t length, real *logits)
{
    static real all[LONGEST * V];
    int64_t start = learned ? generation_window(length, T) : 0;
    model_logits(full, tokens + start, 1, length - start, all);
    memcpy(logits, all + (length - start - 1) * V, V * sizeof *logits);
}

/* Greedy tokens through the cache against argmax over full recomputation, far past the context. */
static void greedy_equals_argmax(const char *settings, bool learned)
{
    struct model *model = model_of(settings, 0, T), *full = model_of(settings, learned ? 0 : LONGEST, LONGEST);
    struct generation *generation = generation_of(model);
    struct sampler sampler;
    int32_t tokens[LONGEST];
    real cached[V], wanted[V];
    int64_t size = 5, fed = 0;
    sampler_init(&sampler, &(struct sampling){0}, V);
    fill_tokens("prompt", tokens, (size_t)size, V);
    while (size < LONGEST) {
        generation_feed(generation, tokens + fed, size - fed, cached);
        fed = size;
        full_logits(full, learned, tokens, size, wanted);
        tokens[size] = sampler_next(&sampler, cached, size);
        cr_assert_eq(tokens[size], sampler_next(&sampler, wanted, size), "'%s': token %d", settings, (int)size);
        size++;
    }
    bool windowed;
    cr_assert(generation_is_past(generation, &windowed));
    cr_assert_eq(windowed, learned);
    sampler_release(&sampler);
    generation_free(generation);
    model_free(model);
    model_free(full);
}

Test(generation, greedy_tokens_equal_argmax_over_full_recomputation)
{
    greedy_equals_argmax("", true);
    greedy_equals_argmax("model.residual=post model.linear_bias=true", true);
    greedy_equals_argmax("model.position=rope model.kv_heads=1", false);
    greedy_equals_argmax("model.position=rope model.rope_layout=split model.qk_norm=true", false);
    greedy_equals_argmax("model.position=sinusoidal model.residual=post", false);
    greedy_equals_argmax("model.position=none", false);
}

Test(generation, the_window_keeps_half_of_the_context_and_moves_only_when_it_is_full)
{
    for (int64_t context = 1; context < 10; context++) {
        int64_t start = 0, half = context > 1 ? context / 2 : 1;
        for (int64_t length = 1; length < 60; length++) {
            if (length - start > context)
                start = length - half;
            cr_assert_eq(generation_window(length, context), start, "context %d, length %d", (int)context, (int)length);
        }
    }
}

/* float32 sums in another order, on logits of size 1 to 10: measured at 2e-6. */
static const double tolerance = 1e-4;

static void portions_check(const char *settings)
{
    struct model *one = model_of(settings, 0, LONGEST), *two = model_of(settings, 0, T);
    struct generation *whole = generation_of(one), *parts = generation_of(two);
    int32_t tokens[LONGEST];
    real a[V], b[V];
    fill_tokens("text", tokens, LONGEST, V);
    generation_feed(whole, tokens, 31, a);
    for (int64_t i = 0; i < 31; i++)
        generation_feed(parts, tokens + i, 1, b);
    cr_assert_eq(generation_length(whole), generation_length(parts));
    for (int i = 0; i < V; i++)
        cr_assert_float_eq(a[i], b[i], tolerance, "'%s': logit %d", settings, i);
    generation_free(whole);
    generation_free(parts);
    model_free(one);
    model_free(two);
}

Test(generation, a_prompt_past_the_context_is_seen_as_if_it_had_come_token_by_token)
{
    portions_check("");
    portions_check("model.position=rope");
}

Test(generation, a_text_within_the_context_is_not_past_it)
{
    struct model *model = model_of("", 0, T);
    struct generation *generation = generation_of(model);
    int32_t tokens[T + 1] = {0};
    real logits[V];
    bool windowed;
    generation_feed(generation, tokens, T, logits);
    cr_assert_not(generation_is_past(generation, &windowed));
    generation_feed(generation, tokens + T, 1, logits);
    cr_assert(generation_is_past(generation, &windowed));
    generation_free(generation);
    model_free(model);
}

Test(generation, a_cache_past_all_memory_is_refused_before_it_is_made)
{
    struct model *model = model_of("model.position=rope", 0, 1);
    struct error err = {""};
    cr_assert_null(generation_create(model, INT64_MAX / 2, &err));
    cr_assert_not_null(strstr(err.text, "need a cache of"), "%s", err.text);
    model_free(model);
}
