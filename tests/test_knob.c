/* The table of knobs: consistent rows, values read and written, combinations refused, equal meanings made equal. */
#include "core/knob.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static union knob_value parsed(const char *name, const char *text)
{
    union knob_value value = {.integer = 0};
    struct error err = {{0}};
    cr_assert(knob_parse(knob_find(name), text, false, &value, &err), "%s", err.text);
    return value;
}

static void set(struct config *config, const char *name, const char *text)
{
    knob_set(knob_find(name), config, parsed(name, text));
}

static void expect_refused(const char *name, const char *text, bool quoted, const char *message)
{
    union knob_value value;
    struct error err = {{0}};
    cr_expect_not(knob_parse(knob_find(name), text, quoted, &value, &err), "%s = %s", name, text);
    cr_expect_str_eq(err.text, message);
}

/* ---- rows ---- */

Test(knob, every_row_has_a_name_a_doc_and_a_default_it_accepts)
{
    for (size_t i = 0; i < knob_count; i++) {
        const struct knob *knob = &knobs[i];
        char text[KNOB_TEXT_SIZE], name[128];
        union knob_value value;
        struct error err = {{0}};
        snprintf(name, sizeof name, "%s.%s", knob->group, knob->field);
        cr_expect_str_eq(knob->name, name);
        cr_expect_eq(knob_find(knob->name), knob, "%s is there once", knob->name);
        cr_expect_gt(strlen(knob->doc), 3, "%s", knob->name);
        cr_expect(knob_parse(knob, knob_format(knob, knob->standard, text), false, &value, &err), "%s", err.text);
        cr_expect(knob_equal(knob, value, knob->standard), "%s", knob->name);
    }
}

Test(knob, defaults_never_change)
{
    struct {
        const char *name, *text;
    } rows[] = {{"model.context_length", "128"},
                {"model.d_model", "128"},
                {"model.n_heads", "4"},
                {"model.n_layers", "2"},
                {"model.head_dim", "0"},
                {"model.kv_heads", "0"},
                {"model.ff_multiplier", "4"},
                {"model.ff_hidden", "0"},
                {"model.residual", "pre"},
                {"model.norm", "layernorm"},
                {"model.norm_epsilon", "0"},
                {"model.feed_forward", "gelu"},
                {"model.position", "learned"},
                {"model.rope_base", "10000"},
                {"model.rope_scale", "1"},
                {"model.rope_layout", "adjacent"},
                {"model.qk_norm", "false"},
                {"model.dropout", "0"},
                {"model.init_std", "0.02"},
                {"model.scaled_init", "false"},
                {"model.linear_bias", "false"},
                {"model.tied_embeddings", "true"},
                {"model.mtp_depth", "1"},
                {"training.steps", "200"},
                {"training.batch_size", "8"},
                {"training.learning_rate", "0.0003"},
                {"training.min_learning_rate", "3e-05"},
                {"training.warmup_steps", "20"},
                {"training.weight_decay", "0.1"},
                {"training.beta1", "0.9"},
                {"training.beta2", "0.95"},
                {"training.adam_epsilon", "1e-08"},
                {"training.grad_clip", "1"},
                {"evaluation.interval", "50"},
                {"evaluation.blocks", "64"},
                {"evaluation.final_blocks", "192"},
                {"data.validation_fraction", "0.1"},
                {"data.tokenizer.kind", "bpe"},
                {"data.tokenizer.vocab_size", "1024"},
                {"data.tokenizer.min_frequency", "2"}};
    struct config config;
    config_init(&config);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[KNOB_TEXT_SIZE];
        const struct knob *knob = knob_find(rows[i].name);
        cr_assert_not_null(knob, "%s", rows[i].name);
        cr_expect_str_eq(knob_format(knob, knob_get(knob, &config), text), rows[i].text, "%s", rows[i].name);
    }
    cr_expect_geq(knob_count, sizeof rows / sizeof rows[0]);
}

/* ---- values ---- */

Test(knob, a_bad_choice_says_what_is_allowed)
{
    expect_refused("model.residual", "pos", false, "model.residual is 'pos': expected pre or post");
    expect_refused("model.position", "", false, "model.position is '': expected learned, sinusoidal, rope or none");
    expect_refused("model.residual", "pre|post", false, "model.residual is 'pre|post': expected pre or post");
}

Test(knob, a_bad_number_says_what_is_allowed)
{
    expect_refused("model.dropout", "1.0", false,
                   "model.dropout is '1.0': expected a number of at least 0 and below 1");
    expect_refused("model.init_std", "0", false, "model.init_std is '0': expected a finite number above 0");
    expect_refused("model.norm_epsilon", "1.5", false,
                   "model.norm_epsilon is '1.5': expected a number of at least 0 and at most 1");
    expect_refused("training.steps", "1e3", false,
                   "training.steps is '1e3': expected a whole number from 1 to 1000000000");
    expect_refused("training.steps", "40", true,
                   "training.steps is '\"40\"': expected a whole number from 1 to 1000000000 without quotes");
    expect_refused("model.qk_norm", "yes", false, "model.qk_norm is 'yes': expected true or false");
}

Test(knob, an_epsilon_that_fp32_makes_zero_is_refused)
{
    expect_refused("training.adam_epsilon", "1e-40", false,
                   "training.adam_epsilon is '1e-40': expected a finite number of at least 1.17549435e-38");
    expect_refused("training.adam_epsilon", "0", false,
                   "training.adam_epsilon is '0': expected a finite number of at least 1.17549435e-38");
    cr_expect_geq((float)parsed("training.adam_epsilon", "1.17549435e-38").number, FLT_MIN);
}

Test(knob, only_spellings_of_yaml_core_are_numbers)
{
    static const char *const good[] = {"1e-3", "1.0e-3", ".001", "1E-3", "+0.001", "001e-3", "0.001"};
    static const char *const bad[] = {"1e-3x", "1e",    "e3",  ".",     "nan",  ".nan",   "inf",
                                      ".inf",  "0x1p0", "1_0", "1,5",   "- 1",  "",       " 1",
                                      "1 ",    "1e999", "--1", "1e1e1", "1..2", "1e-999", "0.0001e-400"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        cr_expect_eq(parsed("training.learning_rate", good[i]).number, 0.001, "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        union knob_value value;
        cr_expect_not(knob_parse(knob_find("training.learning_rate"), bad[i], false, &value, NULL), "'%s'", bad[i]);
    }
    cr_expect_eq(parsed("training.weight_decay", "0e-999").number, 0, "a zero may be written at length");
    cr_expect_not(signbit(parsed("training.weight_decay", "-0.0").number), "minus zero is zero");
}

Test(knob, whole_numbers_are_decimal_and_in_range)
{
    static const char *const bad[] = {
        "0x10", "0o7", "1.0",  "1e2", "", "-", "+", "9223372036854775808", "99999999999999999999",
        "-1",   "0",   "4097", "1 2"};
    cr_expect_eq(parsed("model.n_heads", "010").integer, 10);
    cr_expect_eq(parsed("model.n_heads", "+4").integer, 4);
    cr_expect_eq(parsed("model.n_heads", "4096").integer, 4096);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        union knob_value value;
        cr_expect_not(knob_parse(knob_find("model.n_heads"), bad[i], false, &value, NULL), "'%s'", bad[i]);
    }
}

Test(knob, numbers_are_written_as_the_shortest_text_that_reads_back)
{
    struct {
        double number;
        const char *text;
    } rows[] = {{0.1, "0.1"},
                {6e-4, "0.0006"},
                {1e-5, "1e-05"},
                {500000, "500000"},
                {10000, "10000"},
                {1e15, "1e+15"},
                {123456.5, "123456.5"},
                {1.5e300, "1.5e+300"},
                {0, "0"},
                {0.1 + 0.2, "0.30000000000000004"},
                {0.0010001, "0.0010001"},
                {0.0010002, "0.0010002"},
                {1, "1"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[KNOB_TEXT_SIZE];
        union knob_value value = {.number = rows[i].number};
        cr_expect_str_eq(knob_format(knob_find("training.learning_rate"), value, text), rows[i].text);
        cr_expect_eq(parsed("training.learning_rate", text).number, rows[i].number, "%s", text);
    }
}

/* ---- combinations ---- */

static char told[1024];

static void tell(void *context, const struct knob *knob, const char *text)
{
    (void)context;
    size_t used = strlen(told);
    snprintf(told + used, sizeof told - used, "%s: %s\n", knob->name, text);
}

static size_t check(const struct config *config)
{
    told[0] = 0;
    return config_check(config, tell, NULL);
}

Test(knob, combinations_that_cannot_be_trained_are_named)
{
    struct {
        const char *sets[3][2];
        const char *says;
    } rows[] = {
        {{{"model.d_model", "36"}, {"model.n_heads", "8"}}, "model.n_heads: d_model 36 does not divide into n_heads 8"},
        {{{"model.d_model", "12"}, {"model.position", "rope"}},
         "position rope needs an even head_dim, and head_dim is 3"},
        {{{"model.head_dim", "7"}, {"model.position", "rope"}}, "model.head_dim: position rope needs an even head_dim"},
        {{{"model.kv_heads", "3"}}, "model.kv_heads: kv_heads 3 is not a divisor of n_heads 4"},
        {{{"model.kv_heads", "8"}}, "model.kv_heads: kv_heads 8 is not a divisor of n_heads 4"},
        {{{"training.warmup_steps", "201"}}, "training.warmup_steps: warmup_steps 201 is more than steps 200"},
        {{{"training.learning_rate", "1e-5"}}, "min_learning_rate 3e-05 is above learning_rate 1e-05"},
        {{{"model.context_length", "2"}, {"model.mtp_depth", "3"}},
         "model.mtp_depth: mtp_depth 3 is more than context_length 2"},
        {{{"model.position", "rope"}, {"model.rope_base", "1e-308"}, {"model.rope_scale", "1e-12"}},
         "model.rope_base: rope_base 1e-308 with rope_scale 1e-12 makes rotation speeds that no number holds"},
        {{{"model.position", "rope"}, {"model.rope_scale", "1e-308"}},
         "model.rope_scale: rope_scale 1e-308 makes rotation speeds that no number holds"},
        {{{"model.dropout", "0.1"}, {"model.context_length", "65536"}},
         "model.dropout: dropout needs batch_size * n_heads * context_length^2 / 4 of at most 2^34, and 8 * 4 * "
         "65536^2 / 4 is 3.436e+10"},
        {{{"model.dropout", "0.1"}, {"training.batch_size", "1048576"}, {"model.d_model", "4096"}},
         "model.dropout: dropout needs batch_size * context_length * d_model / 4 of at most 2^34, and 1048576 * 128 * "
         "4096 / 4 is 1.374e+11"},
        {{{"data.tokenizer.vocab_size", "258"}}, "data.tokenizer.vocab_size: vocab_size 258 is below 259"},
    };
    struct config config;
    config_init(&config);
    cr_expect_eq(check(&config), 0, "%s", told);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        config_init(&config);
        for (size_t k = 0; k < 3 && rows[i].sets[k][0]; k++)
            set(&config, rows[i].sets[k][0], rows[i].sets[k][1]);
        cr_expect_eq(check(&config), 1, "%s", told);
        cr_expect_not_null(strstr(told, rows[i].says), "said: %swant: %s", told, rows[i].says);
    }
    config_init(&config);
    set(&config, "data.tokenizer.kind", "char");
    set(&config, "data.tokenizer.vocab_size", "10");
    cr_expect_eq(check(&config), 0, "a size that char ignores is no problem: %s", told);
    config_init(&config);
    set(&config, "training.warmup_steps", "200");
    cr_expect_eq(check(&config), 0, "warmup may last to the end: %s", told);
    config_init(&config);
    set(&config, "model.rope_scale", "1e-308");
    cr_expect_eq(check(&config), 0, "a scale that learned positions ignore is no problem: %s", told);
    set(&config, "model.position", "rope");
    set(&config, "model.rope_scale", "1e-290");
    cr_expect_eq(check(&config), 0, "senseless, but finite: %s", told);
}

Test(knob, draws_of_dropout_may_fill_a_step_to_the_last)
{
    struct config config;
    config_init(&config);
    set(&config, "model.context_length", "65536");
    cr_expect_eq(check(&config), 0, "nothing is drawn: %s", told);
    set(&config, "model.dropout", "0.1");
    set(&config, "training.batch_size", "4");
    cr_expect_eq(check(&config), 0, "4 * 4 * 65536^2 / 4 is 2^34: %s", told);
    set(&config, "model.context_length", "65533");
    cr_expect_eq(check(&config), 0, "%s", told);
    set(&config, "model.n_heads", "1");
    set(&config, "training.batch_size", "5");
    set(&config, "model.context_length", "117233");
    cr_expect_eq(check(&config), 1, "rows begin at whole groups: %s", told);
    set(&config, "model.context_length", "1048576");
    set(&config, "training.batch_size", "1048576");
    set(&config, "model.n_heads", "4096");
    set(&config, "model.d_model", "4096");
    cr_expect_eq(check(&config), 1, "past 2^63 too: %s", told);
}

Test(knob, a_combination_with_an_unknown_knob_is_left_out)
{
    bool unknown[128] = {false};
    struct config config;
    config_init(&config);
    set(&config, "model.d_model", "36");
    set(&config, "model.n_heads", "8");
    set(&config, "training.warmup_steps", "500");
    told[0] = 0;
    cr_expect_eq(config_check_known(&config, unknown, tell, NULL), 2, "%s", told);
    unknown[knob_find("model.head_dim") - knobs] = true;
    told[0] = 0;
    cr_expect_eq(config_check_known(&config, unknown, tell, NULL), 1, "%s", told);
    cr_expect_not_null(strstr(told, "warmup_steps 500"), "%s", told);
    unknown[knob_find("training.steps") - knobs] = true;
    cr_expect_eq(config_check_known(&config, unknown, tell, NULL), 0);
}

/* ---- equal meanings ---- */

Test(knob, settings_that_mean_the_same_become_equal)
{
    static const char *const rows[][4] = {
        {"model.kv_heads", "4"},        {"model.head_dim", "32"},      {"model.ff_hidden", "512"},
        {"model.norm_epsilon", "1e-5"}, {"model.rope_base", "500000"}, {"model.rope_scale", "2"},
        {"model.rope_layout", "split"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct config config, standard;
        config_init(&config);
        config_init(&standard);
        set(&config, rows[i][0], rows[i][1]);
        config_canonicalize(&config, NULL);
        for (size_t k = 0; k < knob_count; k++)
            cr_expect(knob_equal(&knobs[k], knob_get(&knobs[k], &config), knob_get(&knobs[k], &standard)), "%s",
                      rows[i][0]);
    }
}

Test(knob, canonical_settings_keep_what_matters)
{
    static const char *const rows[][4] = {
        {"model.kv_heads", "2", NULL, NULL},
        {"model.head_dim", "64", NULL, NULL},
        {"model.ff_multiplier", "2", NULL, NULL},
        {"model.ff_hidden", "256", NULL, NULL},
        {"model.norm_epsilon", "1e-6", NULL, NULL},
        {"model.rope_base", "500000", "model.position", "rope"},
        {"model.rope_layout", "split", "model.position", "rope"},
        {"data.tokenizer.vocab_size", "300", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct config config, without;
        bool same = true;
        config_init(&without);
        if (rows[i][2])
            set(&without, rows[i][2], rows[i][3]);
        config = without;
        set(&config, rows[i][0], rows[i][1]);
        struct model_shape before = model_shape_of(&config.model, 1024);
        config_canonicalize(&config, NULL);
        config_canonicalize(&without, NULL);
        struct model_shape after = model_shape_of(&config.model, 1024);
        for (size_t k = 0; k < knob_count; k++)
            same &= knob_equal(&knobs[k], knob_get(&knobs[k], &config), knob_get(&knobs[k], &without));
        cr_expect_not(same, "%s=%s", rows[i][0], rows[i][1]);
        cr_expect_eq(before.ff_hidden, after.ff_hidden);
        cr_expect_eq(before.head_dim, after.head_dim);
        cr_expect_eq(before.kv_heads, after.kv_heads);
        cr_expect_eq(before.norm_epsilon, after.norm_epsilon);
    }
}

Test(knob, ignored_settings_are_named_and_only_those)
{
    struct config config;
    bool ignored[128];
    cr_assert_leq(knob_count, 128);
    config_init(&config);
    set(&config, "model.rope_base", "500000");
    set(&config, "model.kv_heads", "4");
    set(&config, "data.tokenizer.kind", "byte");
    set(&config, "data.tokenizer.vocab_size", "2048");
    config_canonicalize(&config, ignored);
    for (size_t i = 0; i < knob_count; i++)
        cr_expect_eq(ignored[i],
                     strcmp(knobs[i].name, "model.rope_base") == 0 ||
                         strcmp(knobs[i].name, "data.tokenizer.vocab_size") == 0,
                     "%s", knobs[i].name);
    config_canonicalize(&config, ignored);
    for (size_t i = 0; i < knob_count; i++)
        cr_expect_not(ignored[i], "a second time there is nothing left to ignore: %s", knobs[i].name);
}

Test(knob, zeros_stand_for_sizes_made_from_others)
{
    struct config config;
    config_init(&config);
    struct model_shape shape = model_shape_of(&config.model, 1024);
    cr_expect_eq(shape.head_dim, 32);
    cr_expect_eq(shape.kv_heads, 4);
    cr_expect_eq(shape.ff_hidden, 512);
    cr_expect_eq(shape.norm_epsilon, 1e-5);
    set(&config, "model.norm", "rmsnorm");
    set(&config, "model.feed_forward", "swiglu");
    shape = model_shape_of(&config.model, 1024);
    cr_expect_eq(shape.norm_epsilon, 1e-6);
    cr_expect_eq(shape.ff_hidden, 344, "2/3 of 512 is 341.3, the nearest multiple of 8 is 344");
    struct {
        const char *d_model;
        int64_t hidden;
    } widths[] = {{"256", 680}, {"512", 1368}, {"1", 8}, {"3", 8}, {"6", 16}};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        set(&config, "model.d_model", widths[i].d_model);
        cr_expect_eq(model_shape_of(&config.model, 1024).ff_hidden, widths[i].hidden, "d_model %s", widths[i].d_model);
    }
}
