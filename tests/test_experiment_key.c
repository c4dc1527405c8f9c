/* What makes a run the same run: its configuration as JSON, and the key made from it. */
#include "tests/experiment_case.h"

/* ---- identity ---- */

Test(experiment, json_reads_back_for_every_knob_and_choice)
{
    for (size_t i = 0; i < knob_count; i++) {
        const char *texts[] = {"0", "1", "2", "0.25", "1e-7", "0.30000000000000004", "123", "true", "false"};
        char choices[8][32];
        size_t count = sizeof texts / sizeof texts[0], choice_count = 0;
        if (knobs[i].kind == KNOB_CHOICE)
            for (const char *p = knobs[i].choices; choice_count < 8 && *p; choice_count++) {
                snprintf(choices[choice_count], 32, "%.*s", (int)strcspn(p, "|"), p);
                p += strcspn(p, "|");
                p += *p == '|';
            }
        size_t tried = 0;
        for (size_t k = 0; k < count + choice_count; k++) {
            union knob_value value;
            struct config config, back;
            struct error err;
            if (!knob_parse(&knobs[i], k < count ? texts[k] : choices[k - count], false, &value, NULL))
                continue;
            config_init(&config);
            knob_set(&knobs[i], &config, value);
            for (int full = 0; full < 2; full++) {
                char *json = config_json(&config, full);
                cr_assert(config_from_json(json, &back, &err), "%s: %s", json, err.text);
                for (size_t j = 0; j < knob_count; j++)
                    cr_expect(knob_equal(&knobs[j], knob_get(&knobs[j], &config), knob_get(&knobs[j], &back)), "%s",
                              json);
                memory_free(json);
            }
            tried++;
        }
        cr_expect_geq(tried, 2, "%s", knobs[i].name);
    }
}

Test(experiment, json_that_is_no_configuration_is_refused)
{
    static const char *const bad[] = {"",
                                      "[]",
                                      "{\"model.nrom\":\"x\"}",
                                      "{\"model.norm\":3}",
                                      "{\"model.norm\":\"rms\"}",
                                      "{\"training.steps\":1.5}",
                                      "{\"training.steps\":0}",
                                      "{\"training.steps\":null}",
                                      "{\"model.scaled_init\":1}",
                                      "{\"training.steps\":5,\"training.steps\":6}",
                                      "{} x"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct config config;
        struct error err = {{0}};
        cr_expect_not(config_from_json(bad[i], &config, &err), "%s", bad[i]);
        cr_expect_gt(strlen(err.text), 10, "%s", bad[i]);
    }
}

/* The key of a run never changes: results of years ago must still be found. Computed once by
 * printf '{"config":{...},"corpus":"c","seed":1337,"tokenizer":"t"}' | sha256sum */
Test(experiment, keys_of_runs_are_what_they_always_were)
{
    struct config config;
    char key[65];
    config_init(&config);
    run_key_make(&config, 1337, "c", "t", key);
    cr_expect_str_eq(key, "b15a77aba60f470b7b91d6ef19e2b6a106f393ef484db849808b548f9ccf0c66");
    config.model.norm = NORM_RMSNORM;
    config.training.learning_rate = 6e-4;
    config.training.steps = 400;
    config.model.scaled_init = true;
    run_key_make(&config, 0, "c", "t", key);
    cr_expect_str_eq(key, "a35441d6a2622b989bccdf1234c907a6d5b0c365e842919ba57c2d3bad35196f");
}

Test(experiment, a_key_depends_on_what_changes_the_run_and_on_nothing_else)
{
    struct config config, other;
    char key[65], changed[65];
    config_init(&config);
    run_key_make(&config, 1, "c", "t", key);
    static const char *const equal[] = {
        "model.kv_heads=4",    "model.head_dim=32",           "model.norm_epsilon=1e-5",
        "model.rope_base=5e5", "data.tokenizer.vocab_size=5", "data.validation_fraction=0.2"};
    static const char *const different[] = {"model.kv_heads=2", "model.norm=rmsnorm", "training.steps=201",
                                            "evaluation.interval=51"};
    for (size_t i = 0; i < 10; i++) {
        const char *text = i < 6 ? equal[i] : different[i - 6];
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text);
        union knob_value value;
        struct error err;
        cr_assert(knob_parse(knob_find(name), strchr(text, '=') + 1, false, &value, &err), "%s", err.text);
        other = config;
        knob_set(knob_find(name), &other, value);
        run_key_make(&other, 1, "c", "t", changed);
        cr_expect_eq(strcmp(key, changed) == 0, i < 6, "%s", text);
    }
    run_key_make(&config, 2, "c", "t", changed);
    cr_expect_str_neq(key, changed);
    run_key_make(&config, 1, "d", "t", changed);
    cr_expect_str_neq(key, changed);
    run_key_make(&config, 1, "c", "u", changed);
    cr_expect_str_neq(key, changed);
}

/* Configurations and labels of a file's variants, sorted by nothing: as text, to compare two files. */
static char *variants_text(const char *text)
{
    char *said, *all = NULL;
    size_t size;
    struct experiment *experiment = load_with(text, NULL, &said);
    cr_assert_not_null(experiment, "%s", said);
    FILE *out = open_memstream(&all, &size);
    for (size_t i = 0; i < experiment->variant_count; i++) {
        char *json = config_json(&experiment->variants[i].config, false);
        fprintf(out, "%s\n", json);
        memory_free(json);
    }
    fclose(out);
    experiment_free(experiment);
    free(said);
    return all;
}

Test(experiment, adding_a_value_or_swapping_lines_changes_no_configuration, .init = folder_open, .fini = folder_close)
{
    char *two =
        variants_text("sweep:\n  parameters:\n    model.norm: [layernorm, rmsnorm]\n    model.dropout: [0, 0.1]\n");
    char *more = variants_text(
        "# c\nsweep:\n  parameters:\n    model.dropout: [0, 0.1, 0.2]\n    model.norm: [rmsnorm, layernorm]\nname: z");
    for (char *rest = two, *line; (line = strsep(&rest, "\n"));)
        cr_expect_not_null(strstr(more, line), "%s", line);
    free(two);
    free(more);
}
