/* What one knob does over a grid, from a database with known numbers. */
#include "runner/effect.h"

#include "tests/database_case.h"

static const char *const grid_labels[] = {"baseline", "rmsnorm", "post", "post, rmsnorm"};

/* norm x residual, three seeds. The norm's differences are
 *            seed 1  seed 2  seed 3   delta  sd
 *   pre      -0.10   -0.12   -0.11    -0.11  0.01
 *   post      0.02   -0.02    0.03     0.01  0.0265
 *   mean     -0.04   -0.07   -0.04    -0.05  0.0173
 *   post-pre  0.12    0.10    0.14     0.12  0.02     t = 0.12 / (0.02 / sqrt(3)) = 10.392, p = 1 - t / sqrt(2 + t^2)
 * = 0.00913; mean: half 4.3027 * 0.01 = 0.0430, t = 5, p = 1 - 5 / sqrt(27) = 0.0377. */
static struct sweep *grid_open(struct fixture *f, enum run_state last)
{
    static const char *const norms[] = {"layernorm", "rmsnorm", "layernorm", "rmsnorm"};
    static const char *const residuals[] = {"pre", "pre", "post", "post"};
    static const double pre[] = {2.10, 2.14, 2.12}, post[] = {3.0, 3.2, 3.1};
    static const double differences[][3] = {{0, 0, 0}, {-0.10, -0.12, -0.11}, {0, 0, 0}, {0.02, -0.02, 0.03}};
    struct sweep *sweep = sweep_make("grid", grid_labels, 4, three_seeds, 3, "g");
    for (size_t r = 0; r < 12; r++) {
        char json[128];
        snprintf(json, sizeof json, "{\"model.residual\":\"%s\",\"model.norm\":\"%s\",\"model.dropout\":0}",
                 residuals[r / 3], norms[r / 3]);
        memory_free(sweep->runs[r].config_json);
        sweep->runs[r].config_json = memory_copy_text(json);
    }
    fixture_open(f);
    freeze(f->db, sweep);
    for (size_t r = 0; r < 12; r++)
        run_through(f->db, sweep->runs[r].key, (r < 6 ? pre : post)[r % 3] + differences[r / 3][r % 3],
                    r == 11 ? last : RUN_FINISHED);
    return sweep;
}

static struct effects *effects_of(struct fixture *f, const char *knob, struct error *err)
{
    struct moment moment = {MOMENT_LAST, 0};
    sqlite3 *db = database_handle(f->db);
    return effects_read(db, database_find_experiment(db, "grid", err), knob, "bits_per_byte", "validation", &moment,
                        err);
}

static const char *text_of(const struct effects *effects, enum table_format format)
{
    static char text[8192];
    FILE *out = fmemopen(text, sizeof text, "w");
    effects_write(effects, format, 110, out);
    fclose(out);
    return text;
}

Test(effect, of_a_knob_is_the_mean_over_the_other_settings)
{
    struct fixture f;
    struct error err;
    struct sweep *sweep = grid_open(&f, RUN_FINISHED);
    struct effects *effects = effects_of(&f, "norm", &err);
    cr_assert(effects, "%s", err.text);
    const char *text = text_of(effects, TABLE_TEXT);
    const char *want =
        "grid: effect of norm on bits_per_byte of validation at last step, against norm=layernorm; below "
        "0 is better\n"
        "Mean over the other settings, paired by seed; margin 0.01, alpha 0.05\n"
        "level         settings    delta       95 % interval  p_holm     mde  seeds   verdict\n"
        "------------------------------------------------------------------------------------\n"
        "norm=rmsnorm         2  -0.0500  [-0.0930, -0.0070]  0.0377  0.0536  3 of 3  better\n"
        "\n"
        "The effect at each of the other settings\n"
        "level         at                         delta       95 % interval  p_holm     mde  seeds   "
        "verdict\n"
        "--------------------------------------------------------------------------------------------"
        "------------------\n"
        "norm=rmsnorm  the baseline's settings  -0.1100  [-0.1348, -0.0852]  0.0055  0.0310  3 of 3  "
        "better\n";
    cr_assert(strncmp(text, want, strlen(want)) == 0, "got\n%s\nexpected\n%s", text, want);
    want = "\nInteractions: that effect minus the effect at the baseline's settings\n"
           "level         at               delta     95 % interval  p_holm     mde  seeds   verdict\n"
           "---------------------------------------------------------------------------------------\n"
           "norm=rmsnorm  residual=post  +0.1200  [0.0703, 0.1697]  0.0091  0.0619  3 of 3  differs\n";
    cr_assert(strstr(text, want), "got\n%s\nexpected\n%s", text, want);
    effects_free(effects);
    sweep_release(sweep);
    fixture_remove(&f);
}

/* Seed 3 lacks one cell: the mean over the settings leaves it out, the setting that has it keeps it. */
Test(effect, a_seed_that_lacks_a_setting_is_in_no_mean)
{
    struct fixture f;
    struct error err;
    struct sweep *sweep = grid_open(&f, RUN_DIVERGED);
    struct effects *effects = effects_of(&f, "model.norm", &err);
    cr_assert(effects, "%s", err.text);
    cr_assert_eq(effects->overall[0].compared.paired.n, 2);
    cr_assert_eq(effects->overall[0].planned, 3);
    cr_assert(fabs(effects->overall[0].compared.paired.delta + 0.055) < 1e-12); /* of -0.04 and -0.07 */
    cr_assert_eq(effects->at_settings[0].compared.paired.n, 3);
    cr_assert_eq(effects->at_settings[1].compared.paired.n, 2);
    json_t *root = json_loads(text_of(effects, TABLE_JSON), 0, NULL);
    cr_assert_str_eq(json_string_value(json_object_get(root, "by")), "model.norm");
    cr_assert_eq(json_array_size(json_object_get(root, "rows")), 4);
    json_decref(root);
    effects_free(effects);
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(effect, a_knob_that_does_not_vary_is_refused_with_those_that_do)
{
    struct fixture f;
    struct error err;
    struct sweep *sweep = grid_open(&f, RUN_FINISHED);
    cr_assert_null(effects_of(&f, "model.nrom", &err));
    cr_assert_str_eq(err.text, "--by 'model.nrom': there is no such knob, did you mean 'model.norm'?; 'grid' varies "
                               "model.residual, model.norm");
    cr_assert_null(effects_of(&f, "dropout", &err));
    cr_assert_str_eq(err.text, "--by 'dropout': every run has the same; 'grid' varies model.residual, model.norm");
    sweep_release(sweep);
    fixture_remove(&f);
}

/* A point that differs from every other in two knobs has no setting at which its level meets the reference. */
Test(effect, a_level_without_a_setting_beside_the_reference_has_no_difference)
{
    struct fixture f;
    struct error err;
    static const char *const names[] = {"baseline", "both"};
    static const char *const jsons[] = {"{\"model.norm\":\"layernorm\",\"model.residual\":\"pre\"}",
                                        "{\"model.norm\":\"rmsnorm\",\"model.residual\":\"post\"}"};
    struct sweep *sweep = sweep_make("grid", names, 2, three_seeds, 3, "u");
    for (size_t r = 0; r < 6; r++) {
        memory_free(sweep->runs[r].config_json);
        sweep->runs[r].config_json = memory_copy_text(jsons[r / 3]);
    }
    fixture_open(&f);
    freeze(f.db, sweep);
    for (size_t r = 0; r < 6; r++)
        run_through(f.db, sweep->runs[r].key, 2, RUN_FINISHED);
    struct effects *effects = effects_of(&f, "norm", &err);
    cr_assert(effects, "%s", err.text);
    cr_assert_eq(effects->overall_count, 1);
    cr_expect_eq(effects->overall[0].settings, 0);
    cr_expect_eq(effects->overall[0].compared.paired.n, 0);
    cr_expect(isnan(effects->overall[0].compared.paired.delta));
    const char *text = text_of(effects, TABLE_CSV);
    cr_expect_null(strstr(text, "same"), "%s", text);
    effects_free(effects);
    sweep_release(sweep);
    fixture_remove(&f);
}
