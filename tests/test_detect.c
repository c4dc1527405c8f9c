/* Seeds that would find a difference, from databases with known spreads. */
#include "runner/detect.h"

#include "tests/database_case.h"

/* sd 0.01, difference 0.02: (t(0.975, n-1) + t(0.8, n-1)) / sqrt(n) must be at most 2. n = 4: (3.182 + 0.978) / 2 =
 * 2.08; n = 5: (2.776 + 0.941) / 2.236 = 1.66. */
Test(detect, seeds_are_the_fewest_whose_minimum_detectable_effect_is_small_enough)
{
    cr_assert_eq(seeds_to_detect(0.01, 0.02, 0.05), 5);
    cr_assert_eq(seeds_to_detect(0, 0.02, 0.05), 2);
    cr_assert_eq(seeds_to_detect(1, 0.001, 0.05), 0);
}

/* Differences -0.10 -0.12 -0.11: sd 0.01; 0.20 0.22 0.24: sd 0.02; pooled sqrt((0.01^2 + 0.02^2) / 2) = 0.01581. */
static struct sweep *sweep_run(struct fixture *f)
{
    static const char *const labels[] = {"baseline", "rmsnorm", "post"};
    static const double baseline[] = {2.10, 2.14, 2.12};
    static const double differences[][3] = {{0, 0, 0}, {-0.10, -0.12, -0.11}, {0.20, 0.22, 0.24}};
    struct sweep *sweep = sweep_make("known", labels, 3, three_seeds, 3, "d");
    fixture_open(f);
    freeze(f->db, sweep);
    for (size_t r = 0; r < 9; r++)
        run_through(f->db, sweep->runs[r].key, baseline[r % 3] + differences[r / 3][r % 3], RUN_FINISHED);
    return sweep;
}

static void near(double got, double want)
{
    cr_assert(fabs(got - want) < 1e-9, "got %.9f, expected %.9f", got, want);
}

Test(detect, the_spread_is_that_of_the_paired_differences)
{
    struct fixture f;
    struct error err;
    struct detection d;
    struct sweep *sweep = sweep_run(&f);
    cr_assert(detection_read(&d, database_handle(f.db), sweep->experiment, 0.02, &err), "%s", err.text);
    cr_assert_eq(d.row_count, 3);
    cr_assert_eq(d.comparisons, 2);
    cr_assert_not(d.elsewhere);
    near(d.rows[0].sd, 0.01);
    near(d.rows[1].sd, 0.02);
    near(d.rows[2].sd, sqrt((0.01 * 0.01 + 0.02 * 0.02) / 2));
    cr_assert_eq(d.rows[0].seeds, seeds_to_detect(0.01, 0.02, 0.025)); /* alpha shared by two comparisons */
    json_t *json = detection_json(&d);
    cr_assert_eq(json_array_size(json_object_get(json, "rows")), 3);
    json_decref(json);
    detection_release(&d);
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(detect, another_experiment_lends_its_spread_and_nothing_known_is_said)
{
    struct fixture f;
    struct error err;
    struct detection d;
    char text[512] = "";
    struct sweep *sweep = sweep_run(&f), *other = sweep_small("new", "x");
    cr_assert(detection_read(&d, database_handle(f.db), other->experiment, 0.02, &err), "%s", err.text);
    cr_assert(d.elsewhere);
    cr_assert_str_eq(d.rows[0].variant, "known/rmsnorm");
    detection_release(&d);
    cr_assert(detection_read(&d, NULL, other->experiment, 0.02, &err));
    FILE *out = fmemopen(text, sizeof text, "w");
    detection_write(&d, out);
    fclose(out);
    cr_assert(strstr(text, "unknown, no two pairs of seeds have finished yet"), "%s", text);
    detection_release(&d);
    sweep_release(other);
    sweep_release(sweep);
    fixture_remove(&f);
}
