/* Options over an experiment file: --set, --seeds, --only, and how many runs are too many without --yes. */
#include "tests/experiment_case.h"

#include <criterion/parameterized.h>

/* ---- how many ---- */

/* `count` of the axes, 32 values each but for the two betas' 8. */
static char *axes_text(size_t count)
{
    static const char *const names[] = {"model.context_length", "model.d_model",         "model.n_heads",
                                        "model.n_layers",       "model.ff_multiplier",   "training.steps",
                                        "training.batch_size",  "training.weight_decay", "training.grad_clip",
                                        "evaluation.interval",  "evaluation.blocks",     "evaluation.final_blocks",
                                        "training.beta1",       "training.beta2"};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fputs("sweep:\n  parameters:\n", out);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "    %s: [", names[i]);
        for (int value = 1; value <= (i < 12 ? 32 : 8); value++)
            fprintf(out, "%s%s%d", value == 1 ? "" : ", ", i < 12 ? "" : "0.", value);
        fputs("]\n", out);
    }
    fclose(out);
    return text;
}

Test(experiment, too_many_runs_are_counted_and_nothing_is_allocated, .init = folder_open, .fini = folder_close)
{
    char *said, *text = axes_text(7); /* 32^7 = 2^35 */
    size_t calls = memory_call_count();
    cr_expect_null(load_with(text, NULL, &said));
    cr_expect_not_null(strstr(said, "f.yaml:1:1: this sweep has 34,359,738,368 runs: expected at most 100,000"), "%s",
                       said);
    cr_expect_lt(memory_call_count() - calls, 10000);
    free(said);
    free(text);
    text = axes_text(14); /* 2^(12*5 + 2*3) = 2^66 */
    cr_expect_null(load_with(text, NULL, &said));
    cr_expect_not_null(strstr(said, "this sweep has more than 2^64 runs"), "%s", said);
    free(said);
    free(text);
    cr_expect_null(load_with("seeds: {count: 9000000000000000000, start: 0}\nsweep: {parameters: {model.dropout: [0, "
                             "0.1, 0.2]}}",
                             NULL, &said));
    cr_expect_not_null(strstr(said, "more than 2^64"), "%s", said);
    free(said);
}

Test(experiment, over_a_thousand_runs_need_yes, .init = folder_open, .fini = folder_close)
{
    struct experiment_options yes = {.yes = true};
    char *said;
    const char *text = "seeds: {count: 1001}";
    cr_expect_null(load_with(text, NULL, &said));
    cr_expect_not_null(strstr(said, "this sweep has 1,001 runs: over 1,000 need --yes"), "%s", said);
    free(said);
    struct experiment *experiment = load_with(text, &yes, &said);
    cr_assert_not_null(experiment);
    cr_expect_eq(experiment->seed_count, 1001);
    experiment_free(experiment);
    free(said);
    experiment = load_with("seeds: {count: 600}\nsweep: {parameters: {model.norm: [layernorm, rmsnorm]}, exclude: "
                           "[{model.norm: rmsnorm}]}",
                           NULL, &said);
    cr_expect_not_null(experiment, "excluded points do not count: %s", said);
    experiment_free(experiment);
    free(said);
}

/* ---- options ---- */

struct set_row {
    const char *sets[2], *message;
};

static const struct set_row set_rows[] = {
    {{"training.learning_rate=1e-3,3e-4", NULL},
     "--set training.learning_rate=1e-3,3e-4: training.learning_rate is '1e-3,3e-4': expected one value"},
    {{"training.learning_rate=[1e-3]", NULL}, "is '[1e-3]': expected one value"},
    {{"training.learning_rate=", NULL}, "--set training.learning_rate=: training.learning_rate has no value"},
    {{"training.learning_rate=null", NULL}, "training.learning_rate has nothing: expected one value"},
    {{"training.learning_rate", NULL}, "--set training.learning_rate: 'training.learning_rate' has no '='"},
    {{"=3", NULL}, "'=3' has no key"},
    {{"training.learning_rate=fast", NULL}, "training.learning_rate is 'fast': expected a finite number of at least 0"},
    {{"training.warmpu=3", NULL},
     "--set training.warmpu=3: unknown key 'training.warmpu': did you mean training.warmup_steps?"},
    {{"norm=rmsnorm", NULL}, "unknown key 'norm': did you mean model.norm?"},
    {{"seeds=3", NULL}, "'seeds' is not set this way: expected --seeds N or --seeds A-B"},
    {{"sweep.method=grid", NULL}, "unknown key 'sweep.method'"},
    {{"training.steps=30", "training.steps=40"}, "training.steps is set twice"},
    {{"model.norm=rmsnorm", NULL}, "model.norm is varied by the sweep (f.yaml:1)"},
    {{"name=a b", NULL}, "--set name=a b: name is 'a b'"},
};
enum { SET_ROWS = sizeof set_rows / sizeof set_rows[0] };

ParameterizedTestParameters(experiment, overrides_have_one_grammar)
{
    static size_t indices[SET_ROWS];
    index_array(indices, SET_ROWS);
    return cr_make_param_array(size_t, indices, SET_ROWS);
}

ParameterizedTest(size_t *index, experiment, overrides_have_one_grammar, .init = folder_open, .fini = folder_close)
{
    const struct set_row *row = &set_rows[*index];
    struct experiment_options options = {.sets = row->sets, .set_count = row->sets[1] ? 2 : 1};
    char *said;
    cr_expect_null(load_with("sweep: {parameters: {model.norm: [layernorm, rmsnorm]}}", &options, &said));
    cr_expect_not_null(strstr(said, row->message), "said: %swant: %s", said, row->message);
    free(said);
}

Test(experiment, an_override_changes_the_base_and_not_what_a_variant_says, .init = folder_open, .fini = folder_close)
{
    static const char *const sets[] = {"model.norm=rmsnorm", "training.steps=50", "data.corpus=a.txt", "name=other"};
    struct experiment_options options = {.sets = sets, .set_count = 4};
    char *said;
    struct experiment *experiment = load_with(
        "training: {steps: 70}\nsweep: {method: list, variants: {a: {}, b: {model.norm: layernorm}}}", &options, &said);
    cr_assert_not_null(experiment, "%s", said);
    cr_expect_str_eq(experiment->name, "other");
    cr_expect_eq(experiment->variants[0].config.model.norm, NORM_RMSNORM);
    cr_expect_eq(experiment->variants[0].config.training.steps, 50);
    cr_expect_eq(experiment->variants[1].config.model.norm, NORM_LAYERNORM);
    cr_expect_str_eq(experiment->variants[0].data.corpus.paths[0], "a.txt");
    cr_expect_str_eq(experiment->variants[0].data.corpus.folder, ".", "relative to where the command is given");
    experiment_free(experiment);
    free(said);
}

Test(experiment, the_seeds_option_replaces_the_seeds_of_the_file, .init = folder_open, .fini = folder_close)
{
    struct {
        const char *option;
        size_t count;
        int64_t first;
    } rows[] = {{"7", 1, 7},   {"3-5", 3, 3}, {"0-0", 1, 0}, {"9223372036854775807", 1, INT64_MAX},
                {"5-3", 0, 0}, {"", 0, 0},    {"-1", 0, 0},  {"1-", 0, 0},
                {"1,2", 0, 0}, {"a-b", 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct experiment_options options = {.seeds = rows[i].option};
        char *said;
        struct experiment *experiment = load_with("seeds: [1, 2]", &options, &said);
        if (rows[i].count) {
            cr_assert_not_null(experiment, "%s: %s", rows[i].option, said);
            cr_expect_eq(experiment->seed_count, rows[i].count);
            cr_expect_eq(experiment->seeds[0], rows[i].first);
        } else
            cr_expect_not_null(strstr(said, "--seeds: '"), "%s: %s", rows[i].option, said);
        experiment_free(experiment);
        free(said);
    }
}

Test(experiment, only_keeps_the_variants_it_names, .init = folder_open, .fini = folder_close)
{
    static const char *const good[] = {"rmsnorm"}, *const bad[] = {"rmsnrom"};
    struct experiment_options options = {.only = good, .only_count = 1};
    const char *text = "sweep: {parameters: {model.norm: [layernorm, rmsnorm]}}";
    char *said;
    struct experiment *experiment = load_with(text, &options, &said);
    cr_assert_not_null(experiment, "%s", said);
    cr_assert_eq(experiment->variant_count, 1);
    cr_expect_str_eq(experiment->variants[0].label, "rmsnorm");
    experiment_free(experiment);
    free(said);
    options.only = bad;
    cr_expect_null(load_with(text, &options, &said));
    cr_expect_str_eq(said, "--only: no variant is called 'rmsnrom': did you mean 'rmsnorm'?\n");
    free(said);
}
