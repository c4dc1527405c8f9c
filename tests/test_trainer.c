/* Runs: what one seed fixes, what settings change, and that stopping and going on leaves no trace. */
#include "core/trainer.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/bf16.h"
#include "core/memory.h"
#include "core/optimizer.h"
#include "tests/core_case.h"

static const char base[] =
    "model.context_length=7 model.d_model=12 model.n_heads=2 model.n_layers=2 model.ff_hidden=17 "
    "training.steps=20 training.batch_size=4 training.warmup_steps=0 training.learning_rate=1e-2";
enum { V = 37, TOKENS = 3001, STEPS = 20 };

static int32_t tokens[TOKENS];
static uint32_t bytes[TOKENS];

/* Every third token stands for no byte, the others for one or two. */
static struct token_stream stream_make(size_t count)
{
    fill_tokens("text", tokens, TOKENS, V);
    for (size_t i = 0; i < TOKENS; i++)
        bytes[i] = (uint32_t)(i % 3);
    return (struct token_stream){tokens, bytes, count};
}

static struct trainer *trainer_of(const char *settings, int64_t seed)
{
    struct config config = config_of(base, settings);
    struct token_stream stream = stream_make(TOKENS);
    struct error err;
    struct trainer *trainer = trainer_create(&config, seed, V, &stream, &err);
    cr_assert_not_null(trainer, "'%s': %s", settings, err.text);
    return trainer;
}

static struct step_record step_once(struct trainer *trainer)
{
    struct step_record record;
    cr_assert(trainer_step(trainer, &record));
    return record;
}

static double evaluate(struct trainer *trainer)
{
    struct token_stream stream = stream_make(TOKENS);
    struct evaluation_record record;
    trainer_evaluate(trainer, &stream, 20, &record);
    return record.loss;
}

static bool same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool same_state(struct trainer *a, struct trainer *b)
{
    struct trainer_state x = trainer_state(a), y = trainer_state(b);
    size_t size = x.count * sizeof(real);
    return x.count == y.count && memcmp(x.parameters, y.parameters, size) == 0 &&
           memcmp(x.first_moment, y.first_moment, size) == 0 && memcmp(x.second_moment, y.second_moment, size) == 0;
}

/* ---- what one seed fixes ---- */

/* The first batches of a variant whose batches have the usual form. */
static void assert_batches_of_baseline(const char *settings)
{
    if (strstr(settings, "context_length") || strstr(settings, "batch_size"))
        return;
    struct trainer *plain = trainer_of("", 5), *variant = trainer_of(settings, 5);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(step_once(plain).batch_checksum, step_once(variant).batch_checksum, "'%s', step %d", settings, i);
    trainer_free(plain);
    trainer_free(variant);
}

Test(trainer, every_variant_of_one_seed_sees_the_same_batches)
{
    each_variant("model", assert_batches_of_baseline);
    each_variant("training", assert_batches_of_baseline);
}

static void assert_start_of_baseline(const char *settings)
{
    if (strstr(settings, "init")) /* asks for other values */
        return;
    struct trainer *plain = trainer_of("", 5), *variant = trainer_of(settings, 5);
    const struct tensor_table *table = model_tensors(trainer_model(plain));
    for (size_t i = 0; i < table->count; i++) {
        const struct tensor *a = &table->tensors[i];
        const struct tensor *b = tensor_find(model_tensors(trainer_model(variant)), a->name);
        if (b && a->shape[0] == b->shape[0] && a->shape[1] == b->shape[1])
            cr_expect_arr_eq(model_parameters(trainer_model(plain)) + a->offset,
                             model_parameters(trainer_model(variant)) + b->offset, a->count * sizeof(real),
                             "'%s': %s starts otherwise", settings, a->name);
    }
    trainer_free(plain);
    trainer_free(variant);
}

Test(trainer, tensors_of_one_name_and_shape_start_equal_in_every_variant)
{
    each_variant("model", assert_start_of_baseline);
    each_variant("training", assert_start_of_baseline);
}

Test(trainer, another_seed_brings_other_batches_and_another_start)
{
    struct trainer *one = trainer_of("", 1), *two = trainer_of("", 2);
    cr_assert_not(same_state(one, two));
    struct step_record a = step_once(one), b = step_once(two);
    cr_assert_neq(a.batch_checksum, b.batch_checksum);
    cr_assert_not(same(a.loss, b.loss));
    cr_assert_neq(a.batch_checksum, step_once(one).batch_checksum, "and so does another step");
    trainer_free(one);
    trainer_free(two);
}

Test(trainer, a_run_made_twice_is_the_same_bit_for_bit)
{
    struct trainer *one = trainer_of("model.dropout=0.5", 9), *two = trainer_of("model.dropout=0.5", 9);
    for (int i = 0; i < STEPS; i++)
        cr_assert(same(step_once(one).loss, step_once(two).loss));
    cr_assert(same_state(one, two));
    trainer_free(one);
    trainer_free(two);
}

Test(trainer, batches_are_whole_blocks_of_the_stream)
{
    struct config config = config_of(base, "training.batch_size=1");
    struct token_stream stream = stream_make(3 * 8 + 7); /* three blocks of T + 1, and a rest that is never read */
    struct error err;
    struct trainer *trainer = trainer_create(&config, 1, V, &stream, &err);
    uint64_t seen[3], checksums = 0;
    for (int i = 0; i < STEPS; i++) {
        uint64_t checksum = step_once(trainer).batch_checksum;
        bool known = false;
        for (uint64_t k = 0; k < checksums; k++)
            known = known || seen[k] == checksum;
        cr_assert(known || checksums < 3, "more than three different batches");
        if (!known)
            seen[checksums++] = checksum;
    }
    cr_assert_eq(checksums, 3, "all blocks are drawn");
    trainer_free(trainer);
}

Test(trainer, a_text_shorter_than_one_block_is_refused_with_the_numbers)
{
    struct config config = config_of(base, "");
    struct error err;
    const size_t sizes[] = {0, 1, 7};
    for (int i = 0; i < 3; i++) {
        struct token_stream stream = stream_make(sizes[i]);
        cr_assert_null(trainer_create(&config, 1, V, &stream, &err));
        cr_assert_not_null(strstr(err.text, "context_length 7 needs at least 8"), "%s", err.text);
    }
    struct token_stream stream = stream_make(8);
    cr_assert_eq(token_stream_blocks(&stream, 7), 1);
    struct trainer *trainer = trainer_create(&config, 1, V, &stream, &err);
    cr_assert_not_null(trainer);
    step_once(trainer);
    trainer_free(trainer);
}

/* ---- every knob ---- */

/* Settings that cannot change the two losses below, with the reason. */
static const struct {
    const char *prefix, *reason;
} neutral[] = {
    {"evaluation.", "decides what is measured, and measuring changes nothing (tested below)"},
    {"data.", "decides the tokens, which are given here; tested with the data"},
};

struct outcome {
    size_t parameters;
    double losses[3]; /* before, after one, after two updates */
};

static struct outcome outcome_of(const char *settings)
{
    struct trainer *trainer = trainer_of(settings, 3);
    struct outcome outcome = {.parameters = trainer_state(trainer).count};
    for (int i = 0; i < 2; i++)
        outcome.losses[i] = step_once(trainer).loss;
    outcome.losses[2] = evaluate(trainer);
    trainer_free(trainer);
    return outcome;
}

static bool is_neutral(const struct knob *knob)
{
    for (size_t i = 0; i < sizeof neutral / sizeof neutral[0]; i++)
        if (strncmp(knob->name, neutral[i].prefix, strlen(neutral[i].prefix)) == 0)
            return true;
    return false;
}

Test(trainer, every_knob_changes_something)
{
    char settings[256], without[256];
    for (size_t i = 0; i < knob_count; i++)
        for (int number = 0; !is_neutral(&knobs[i]) && knob_other_setting(&knobs[i], number, settings, 256); number++) {
            /* The same with the knob itself left out: what it needs stays. */
            snprintf(without, sizeof without, "%.*s", (int)(strstr(settings, knobs[i].name) - settings), settings);
            struct outcome a = outcome_of(without), b = outcome_of(settings);
            bool changed = a.parameters != b.parameters;
            for (int k = 0; k < 3; k++)
                changed = changed || !same(a.losses[k], b.losses[k]);
            cr_expect(changed, "'%s' changes nothing", settings);
        }
}

/* ---- letters that say nothing about each other ---- */

enum { LETTERS = 26, LETTER_COUNT = 6000 };
static int32_t letters[2 * LETTER_COUNT]; /* to train on, to validate on */
static uint32_t letter_bytes[LETTER_COUNT];

/* A model that sees none of what it predicts has an expected loss of ln 26 + d for some d >= 0, with a deviation of
 * about sqrt(2 d / n) over n tokens: four of them reach furthest below ln 26 at d = 8 / n, by 8 / n. */
static void assert_above_entropy(const char *settings)
{
    struct config config = config_of(base, settings);
    struct token_stream train = {letters, letter_bytes, LETTER_COUNT};
    struct token_stream validation = {letters + LETTER_COUNT, letter_bytes, LETTER_COUNT};
    struct evaluation_record record;
    struct error err;
    config.training.steps = 150;
    struct trainer *trainer = trainer_create(&config, 3, LETTERS, &train, &err);
    cr_assert_not_null(trainer, "'%s': %s", settings, err.text);
    while (trainer_steps_done(trainer) < config.training.steps)
        step_once(trainer);
    trainer_evaluate(trainer, &validation, 0, &record);
    cr_expect(record.loss >= log(LETTERS) - 8.0 / (double)record.tokens, "'%s': %.4f", settings, record.loss);
    cr_expect(record.loss < log(LETTERS) + 0.5, "'%s' did not learn how frequent letters are: %.4f", settings,
              record.loss);
    trainer_free(trainer);
}

Test(trainer, no_variant_gets_below_the_entropy_of_random_letters)
{
    fill_tokens("letters", letters, 2 * LETTER_COUNT, LETTERS);
    for (size_t i = 0; i < LETTER_COUNT; i++)
        letter_bytes[i] = 1;
    each_variant("model", assert_above_entropy);
}

/* ---- evaluation ---- */

Test(trainer, evaluation_knows_no_dropout)
{
    static const char *const rates[] = {"model.dropout=0", "model.dropout=0.5", "model.dropout=0.9"};
    struct trainer *trained = trainer_of("model.dropout=0.5", 4);
    for (int i = 0; i < 5; i++)
        step_once(trained);
    double expected = evaluate(trained);
    for (int i = 0; i < 3; i++) {
        struct trainer *other = trainer_of(rates[i], 8);
        memcpy(trainer_state(other).parameters, trainer_state(trained).parameters,
               trainer_state(trained).count * sizeof(real));
        cr_expect(same(evaluate(other), expected), "%s", rates[i]);
        cr_expect(same(evaluate(other), expected), "%s, again", rates[i]);
        trainer_free(other);
    }
    trainer_free(trained);
}

Test(trainer, evaluating_more_often_changes_no_training_loss)
{
    struct trainer *often = trainer_of("model.dropout=0.25", 6), *never = trainer_of("model.dropout=0.25", 6);
    for (int i = 0; i < STEPS; i++) {
        evaluate(often);
        cr_assert(same(step_once(often).loss, step_once(never).loss), "step %d", i);
    }
    cr_assert(same_state(often, never));
    trainer_free(often);
    trainer_free(never);
}

/* Mean nats of one block by hand. */
static double block_loss(struct trainer *trainer, int64_t block)
{
    int64_t counted;
    double nats = model_loss(trainer_model(trainer), tokens + block * 8, tokens + block * 8 + 1, 1, 7, &counted);
    return nats / 7;
}

Test(trainer, evaluation_reads_the_blocks_it_promises)
{
    struct trainer *trainer = trainer_of("", 2);
    struct token_stream stream = stream_make(10 * 8 + 5); /* M = 10 blocks */
    struct evaluation_record record;
    trainer_evaluate(trainer, &stream, 4, &record);
    double sum = 0;
    int64_t size = 0;
    const int64_t expected[4] = {0, 2, 5, 7}; /* floor(i * 10 / 4) */
    for (int i = 0; i < 4; i++) {
        sum += block_loss(trainer, expected[i]);
        for (int t = 1; t <= 7; t++)
            size += bytes[expected[i] * 8 + t];
    }
    cr_assert_eq(record.blocks, 4);
    cr_assert_eq(record.tokens, 4 * 7);
    cr_assert_eq(record.bytes, size);
    cr_assert_float_eq(record.loss, sum / 4, 1e-6); /* float logits, added up in another order */
    cr_assert_float_eq(record.bits_per_byte, record.loss * 28 / (log(2) * (double)size), 1e-12);
    cr_assert_float_eq(record.perplexity, exp(record.loss), 1e-9);
    trainer_evaluate(trainer, &stream, 0, &record);
    cr_assert_eq(record.blocks, 10, "0 means all");
    trainer_evaluate(trainer, &stream, 11, &record);
    cr_assert_eq(record.blocks, 10, "more than there are means all");
    trainer_free(trainer);
}

Test(trainer, text_without_bytes_has_no_bits_per_byte)
{
    struct trainer *trainer = trainer_of("", 2);
    struct token_stream stream = stream_make(16);
    memset(bytes, 0, sizeof bytes);
    struct evaluation_record record;
    trainer_evaluate(trainer, &stream, 0, &record);
    cr_assert(isnan(record.bits_per_byte));
    cr_assert(isfinite(record.loss));
    trainer_free(trainer);
}

Test(trainer, evaluations_are_due_at_the_start_every_interval_and_the_end)
{
    struct config config = config_of(base, "training.steps=25 evaluation.interval=10 evaluation.blocks=3 "
                                           "evaluation.final_blocks=9");
    int64_t limit, due[8], count = 0;
    for (int64_t step = 0; step <= 25; step++)
        if (trainer_evaluation_due(&config, step, &limit)) {
            due[count++] = step;
            cr_assert_eq(limit, step == 25 ? 9 : 3);
        }
    const int64_t expected[] = {0, 10, 20, 25};
    cr_assert_eq(count, 4);
    cr_assert_arr_eq(due, expected, sizeof expected);
}

/* ---- stop and go ---- */

static void assert_resumed_equals_uninterrupted(const char *settings)
{
    struct trainer *whole = trainer_of(settings, 11), *first = trainer_of(settings, 11),
                   *second = trainer_of(settings, 11);
    double losses[STEPS];
    for (int i = 0; i < STEPS; i++)
        losses[i] = step_once(whole).loss;
    for (int i = 0; i < 7; i++)
        step_once(first);
    step_once(second); /* what a process did before it put a checkpoint back leaves no trace */
    struct trainer_state from = trainer_state(first), to = trainer_state(second);
    memcpy(to.parameters, from.parameters, from.count * sizeof(real));
    memcpy(to.first_moment, from.first_moment, from.count * sizeof(real));
    memcpy(to.second_moment, from.second_moment, from.count * sizeof(real));
    trainer_resume(second, 7);
    cr_assert_eq(trainer_steps_done(second), 7);
    for (int i = 7; i < STEPS; i++) {
        struct step_record record = step_once(second);
        cr_assert_eq(record.step, i);
        cr_assert(same(record.loss, losses[i]), "'%s', step %d", settings, i);
    }
    cr_assert(same_state(whole, second), "'%s'", settings);
    trainer_free(whole);
    trainer_free(first);
    trainer_free(second);
}

Test(trainer, a_resumed_run_ends_bit_identical)
{
    each_variant("model", assert_resumed_equals_uninterrupted);
    assert_resumed_equals_uninterrupted("model.dropout=0.5");
    each_variant("training", assert_resumed_equals_uninterrupted); /* precisions among them */
}

Test(trainer, a_resumed_run_ends_bit_identical_with_bf16_in_hardware)
{
    struct error err;
    if (!bf16_select(BF16_HARDWARE, &err)) {
        cr_skip_test("%s", err.text);
        return;
    }
    /* Rows enough for hardware. */
    assert_resumed_equals_uninterrupted("training.precision=bf16 training.batch_size=16");
    assert_resumed_equals_uninterrupted("training.precision=bf16x3 training.batch_size=16 model.mtp_depth=2");
}

/* ---- precision ---- */

static double loss_after(const char *settings)
{
    struct trainer *trainer = trainer_of(settings, 1);
    for (int i = 0; i < STEPS; i++)
        step_once(trainer);
    double loss = evaluate(trainer);
    trainer_free(trainer);
    return loss;
}

Test(trainer, each_precision_rounds_differently_and_ends_near_fp32)
{
    double fp32 = loss_after(""), same_again = loss_after("training.precision=fp32");
    double split = loss_after("training.precision=bf16x3"), bf16 = loss_after("training.precision=bf16");
    /* An operand of 8 bits is up to 2^-9 off, one of 16 bits 2^-17: twice that of the loss. */
    cr_assert_float_eq(bf16, fp32, ldexp(fp32, -8), "%g, %g", bf16, fp32);
    cr_assert_float_eq(split, fp32, ldexp(fp32, -16), "%g, %g", split, fp32);
    cr_assert(same(fp32, same_again));
    cr_assert_not(same(bf16, fp32) || same(split, fp32) || same(bf16, split));
}

Test(trainer, a_step_allocates_nothing)
{
    static const char *const precisions[] = {"fp32", "bf16x3", "bf16"};
    for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++) {
        char settings[128];
        snprintf(settings, sizeof settings,
                 "model.dropout=0.25 model.mtp_depth=2 model.qk_norm=true training.precision=%s", precisions[p]);
        struct trainer *trainer = trainer_of(settings, 1);
        struct token_stream stream = stream_make(TOKENS);
        struct evaluation_record record;
        size_t before = memory_call_count();
        for (int i = 0; i < 3; i++)
            step_once(trainer);
        trainer_evaluate(trainer, &stream, 0, &record);
        cr_assert_eq(memory_call_count(), before, "%s", precisions[p]);
        trainer_free(trainer);
    }
}

/* ---- divergence ---- */

Test(trainer, a_loss_that_is_no_number_stops_before_the_update)
{
    struct trainer *trainer = trainer_of("", 1), *copy = trainer_of("", 1);
    step_once(trainer);
    step_once(copy);
    trainer_state(trainer).parameters[5 * 12] = NAN; /* of one token */
    trainer_state(copy).parameters[5 * 12] = NAN;
    struct step_record record;
    cr_assert_not(trainer_step(trainer, &record));
    cr_assert(isnan(record.loss));
    cr_assert_eq(record.step, 1);
    cr_assert_eq(trainer_steps_done(trainer), 1);
    cr_assert(same_state(trainer, copy), "nothing was updated");
    trainer_free(trainer);
    trainer_free(copy);
}

Test(trainer, an_absurd_learning_rate_is_noticed)
{
    struct trainer *trainer = trainer_of("training.learning_rate=1e30 training.grad_clip=0", 1);
    struct step_record record = {.step = -1};
    int made = 0;
    while (made < STEPS && trainer_step(trainer, &record))
        made++;
    cr_assert_lt(made, STEPS);
    cr_assert(!isfinite(record.loss) || !isfinite(record.grad_norm));
    trainer_free(trainer);
}

/* ---- schedule and update ---- */

Test(trainer, the_learning_rate_warms_up_and_follows_a_cosine)
{
    struct config config = config_of("", "training.steps=120 training.warmup_steps=20 training.learning_rate=1e-3 "
                                         "training.min_learning_rate=1e-4");
    const struct training_config *t = &config.training;
    cr_assert_float_eq(learning_rate_at(t, 0), 5e-5, 1e-18);
    cr_assert_float_eq(learning_rate_at(t, 19), 1e-3, 1e-18);
    cr_assert_float_eq(learning_rate_at(t, 20), 1e-3, 1e-18);
    cr_assert_float_eq(learning_rate_at(t, 70), 5.5e-4, 1e-12, "half way");
    cr_assert_float_eq(learning_rate_at(t, 45), 1e-4 + 9e-4 * (1 + cos(acos(-1) / 4)) / 2, 1e-12);
    cr_assert_float_eq(learning_rate_at(t, 119), 1e-4 + 9e-4 * (1 + cos(acos(-1) * 0.99)) / 2, 1e-12);
    config.training.warmup_steps = 0;
    cr_assert_float_eq(learning_rate_at(t, 0), 1e-3, 1e-18);
    config.training.warmup_steps = 120;
    cr_assert_float_eq(learning_rate_at(t, 119), 1e-3, 1e-18);
}

/* AdamW as the contract words it, in double. */
struct reference_update {
    double p, m, v;
};

static void reference_step(struct reference_update *u, const struct training_config *t, double g, bool decays,
                           double rate, int step)
{
    if (decays)
        u->p *= 1 - rate * t->weight_decay;
    u->m = t->beta1 * u->m + (1 - t->beta1) * g;
    u->v = t->beta2 * u->v + (1 - t->beta2) * g * g;
    double m = u->m / (1 - pow(t->beta1, step + 1)), v = u->v / (1 - pow(t->beta2, step + 1));
    u->p -= rate * m / (sqrt(v) + t->adam_epsilon);
}

Test(trainer, updates_are_those_of_adamw_with_decay_of_matrices_alone)
{
    struct config config =
        config_of(base, "training.weight_decay=0.3 training.adam_epsilon=1e-3 training.grad_clip=0.5");
    struct tensor_table *table = tensor_table_create(&config.model, V);
    struct optimizer *optimizer = optimizer_create(table, &config.training);
    real *p = memory_alloc(table->total, sizeof *p), *g = memory_alloc(table->total, sizeof *g);
    struct reference_update *reference = memory_alloc(table->total, sizeof *reference);
    struct random_stream start = random_stream_make(1, "p"), slope = random_stream_make(1, "g");
    random_normal_fill(&start, 0.1, p, table->total);
    for (size_t i = 0; i < table->total; i++)
        reference[i].p = (double)p[i];
    for (int step = 0; step < 3; step++) {
        random_normal_fill(&slope, 0.02 * (step + 1), g, table->total);
        double norm = 0, rate = 1e-2 * (step + 1);
        for (size_t i = 0; i < table->total; i++)
            norm += (double)g[i] * (double)g[i];
        norm = sqrt(norm);
        cr_assert_float_eq(optimizer_grad_norm(g, table->total), norm, 1e-9 * norm);
        optimizer_step(optimizer, p, g, norm, rate, step);
        double clip = fmin(1, 0.5 / (norm + 1e-6));
        for (size_t k = 0; k < table->count; k++)
            for (size_t i = 0; i < table->tensors[k].count; i++) {
                size_t at = table->tensors[k].offset + i;
                reference_step(&reference[at], &config.training, (double)g[at] * clip, table->tensors[k].dims > 1, rate,
                               step);
            }
    }
    for (size_t i = 0; i < table->total; i++) /* parameters of 0.1 to 0.5 in float, three updates */
        cr_assert_float_eq((double)p[i], reference[i].p, 2e-7, "element %zu", i);
    optimizer_free(optimizer);
    tensor_table_free(table);
    memory_free(p);
    memory_free(g);
    memory_free(reference);
}
