/* The comparison table, from databases with known numbers. */
#include "runner/loss_table.h"

#include "runner/untrained.h"
#include "tests/database_case.h"

static int text_width = 100;

static const char *table_of(struct fixture *f, const char *experiment, const char *metric, const char *split,
                            enum table_format format)
{
    static char text[8192];
    struct error err;
    char *chosen_metric, *chosen_split;
    sqlite3 *db = database_handle(f->db);
    int64_t id = database_find_experiment(db, experiment, &err);
    cr_assert(id, "%s", err.text);
    cr_assert(loss_table_choose(db, id, metric, split, &chosen_metric, &chosen_split, &err), "%s", err.text);
    struct loss_table *table = loss_table_read(db, id, chosen_metric, chosen_split, &err);
    cr_assert(table, "%s", err.text);
    FILE *out = fmemopen(text, sizeof text, "w");
    loss_table_write(table, format, text_width, out);
    fclose(out);
    loss_table_free(table);
    memory_free(chosen_metric);
    memory_free(chosen_split);
    return text;
}

static void shows(const char *text, const char *want)
{
    cr_assert(strcmp(text, want) == 0, "got\n%s\nexpected\n%s", text, want);
}

/* baseline 2.10 2.14 2.12; rmsnorm 2.00 2.02 and a third that diverged: two pairs, -0.10 and -0.12: delta -0.11, sd
 * 0.0141, t(0.975, 1) = 12.706, half width 0.1271; p = 1 - 2/pi atan(11) = 0.0577; swiglu never began. */
static struct sweep *sweep_half(struct fixture *f)
{
    static const char *const labels[] = {"baseline", "rmsnorm", "swiglu"};
    struct sweep *sweep = sweep_make("quick", labels, 3, three_seeds, 3, "a");
    fixture_open(f);
    freeze(f->db, sweep);
    const double bits[] = {2.10, 2.14, 2.12, 2.00, 2.02, 0};
    for (size_t r = 0; r < 6; r++)
        run_through(f->db, sweep->runs[r].key, bits[r], r == 5 ? RUN_DIVERGED : RUN_FINISHED);
    return sweep;
}

Test(loss_table, text_says_what_is_known_and_what_is_not)
{
    struct fixture f;
    struct sweep *sweep = sweep_half(&f);
    shows(table_of(&f, "quick", NULL, NULL, TABLE_TEXT),
          "quick: bits_per_byte on validation at last step; lower is better\n"
          "variant          parameters  tokens    mean      sd  spread  seeds\n"
          "-------------------------------------------------------------------------------\n"
          "baseline              1,000   4,096  2.1200  0.0200  0.0400  3 of 3\n"
          "rmsnorm   900 (-10.0 %) [1]   4,096  2.0100  0.0141  0.0200  2 of 3, 1 diverged\n"
          "swiglu    900 (-10.0 %) [1]       -     n/a     n/a     n/a  0 of 3, 3 queued\n"
          "\n"
          "Against the baseline, paired by seed; margin 0.01, alpha 0.05\n"
          "variant    delta      95 % interval  p_holm     mde  verdict\n"
          "----------------------------------------------------------------------------------\n"
          "rmsnorm  -0.1100  [-0.2371, 0.0171]  0.0577  0.1408  not separated (3 seeds would)\n"
          "swiglu       n/a                n/a     n/a     n/a  n/a\n"
          "\n"
          "variant   changed settings\n"
          "--------------------------\n"
          "baseline  none\n"
          "rmsnorm   norm=rmsnorm\n"
          "swiglu    norm=swiglu\n"
          "[1] parameters are more than 2 % away from the baseline's: size alone may make the difference\n"
          "rmsnorm, seed 3: diverged: loss is nan at step 3\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(loss_table, what_failed_is_told_with_the_end_of_its_log)
{
    struct fixture f;
    struct error err;
    struct sweep *sweep = sweep_half(&f);
    const char *key = sweep->runs[6].key;
    cr_assert(database_run_start(f.db, key, 0, &environment, NULL, 0, NULL, 0, &err));
    cr_assert(database_run_end(f.db, key, RUN_FAILED, "killed by signal 6 (Aborted)", "step 1\nno room\n", &err));
    cr_assert(database_flush(f.db, 1, &err), "%s", err.text);
    const char *text = table_of(&f, "quick", NULL, NULL, TABLE_TEXT);
    cr_assert(strstr(text, "\nswiglu, seed 1: failed: killed by signal 6 (Aborted): no room\n"), "%s", text);
    sweep_release(sweep);
    fixture_remove(&f);
}

/* Differences to the baseline, three seeds; t(0.975, 2) = 4.3027, t(0.8, 2) = 1.0607; for two degrees of freedom
 * p = 1 - |t| / sqrt(2 + t^2):
 *            differences          delta  sd      se       t        half    p         mde
 *   better   -0.10 -0.12 -0.11    -0.11  0.01    0.00577  -19.053  0.0248  0.002743  0.0310
 *   same      0.001 -0.001 0       0     0.001   0.00058    0      0.0025  1         0.0031
 *   worse     0.20 0.22 0.24       0.22  0.02    0.01155   19.053  0.0497  0.002743  0.0619
 *   unclear   0.03 -0.02 0.05      0.02  0.03606 0.02082    0.961  0.0896  0.438048  0.1116
 * Holm over the four: 4 * 0.002743 = 0.0110 twice (the second's 3 * p is below the first's), 2 * 0.438048 = 0.8761, 1.
 * unclear is decided by 34 seeds: (t(0.9875, n-1) + t(0.8, n-1)) * 0.03606 / sqrt(n) is 0.0201 at 33, 0.0198 at 34. */
static struct sweep *sweep_known(struct fixture *f)
{
    static const char *const labels[] = {"baseline", "better", "same", "worse", "unclear"};
    static const double baseline[] = {2.10, 2.14, 2.12};
    static const double differences[][3] = {
        {0, 0, 0}, {-0.10, -0.12, -0.11}, {0.001, -0.001, 0}, {0.20, 0.22, 0.24}, {0.03, -0.02, 0.05}};
    struct sweep *sweep = sweep_make("known", labels, 5, three_seeds, 3, "k");
    fixture_open(f);
    freeze(f->db, sweep);
    for (size_t r = 0; r < 15; r++)
        run_through(f->db, sweep->runs[r].key, baseline[r % 3] + differences[r / 3][r % 3], RUN_FINISHED);
    return sweep;
}

Test(loss_table, known_numbers_give_the_table_done_by_hand)
{
    struct fixture f;
    struct sweep *sweep = sweep_known(&f);
    shows(table_of(&f, "known", NULL, NULL, TABLE_TEXT),
          "known: bits_per_byte on validation at last step; lower is better\n"
          "variant          parameters  tokens    mean      sd  spread  seeds\n"
          "-------------------------------------------------------------------\n"
          "baseline              1,000   4,096  2.1200  0.0200  0.0400  3 of 3\n"
          "better    900 (-10.0 %) [1]   4,096  2.0100  0.0100  0.0200  3 of 3\n"
          "same      900 (-10.0 %) [1]   4,096  2.1200  0.0190  0.0380  3 of 3\n"
          "worse     900 (-10.0 %) [1]   4,096  2.3400  0.0346  0.0600  3 of 3\n"
          "unclear   900 (-10.0 %) [1]   4,096  2.1400  0.0265  0.0500  3 of 3\n"
          "\n"
          "Against the baseline, paired by seed; margin 0.01, alpha 0.05\n"
          "variant    delta       95 % interval  p_holm     mde  verdict\n"
          "------------------------------------------------------------------------------------\n"
          "better   -0.1100  [-0.1348, -0.0852]  0.0110  0.0310  better\n"
          "same     +0.0000   [-0.0025, 0.0025]  1.0000  0.0031  same\n"
          "worse    +0.2200    [0.1703, 0.2697]  0.0110  0.0619  worse\n"
          "unclear  +0.0200   [-0.0696, 0.1096]  0.8761  0.1116  not separated (34 seeds would)\n"
          "\n"
          "variant   changed settings\n"
          "--------------------------\n"
          "baseline  none\n"
          "better    norm=better\n"
          "same      norm=same\n"
          "worse     norm=worse\n"
          "unclear   norm=unclear\n"
          "[1] parameters are more than 2 % away from the baseline's: size alone may make the difference\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

static struct loss_table *table_at(struct fixture *f, const char *experiment, const char *split, const char *at,
                                   enum loss_table_result want, struct error *err)
{
    struct moment moment;
    sqlite3 *db = database_handle(f->db);
    int64_t id = database_find_experiment(db, experiment, err);
    cr_assert(moment_parse(at, &moment, err), "%s", err->text);
    struct loss_table *table =
        loss_table_read(db, id, strcmp(split, "train") == 0 ? "loss" : "bits_per_byte", split, err);
    cr_assert(table, "%s", err->text);
    cr_assert_eq(loss_table_move(table, db, id, &moment, err), want, "%s: %s", at, err->text);
    return table;
}

static void mean_at(struct fixture *f, const char *split, const char *at, int64_t n, double mean)
{
    struct error err;
    struct loss_table *table = table_at(f, "quick", split, at, LOSS_TABLE_MOVED, &err);
    const struct loss_row *row = &table->rows[1];
    cr_assert_eq(row->n, n, "%s: n is %" PRId64, at, row->n);
    cr_assert(fabs(row->mean - mean) < 1e-12, "%s: mean is %g", at, row->mean);
    cr_assert_eq(row->n_diverged, 1);
    loss_table_free(table);
}

/* rmsnorm: 8 bits before the first step, then 2.00 and 2.02 after the fourth; the third seed diverges in its fourth.
 * Training losses fall by one a step: 7.00, 6.00, 5.00, 4.00 for the first seed, and 5 for the third up to 3.00. */
Test(loss_table, other_moments_than_the_last_are_taken_from_the_curves)
{
    struct fixture f;
    struct error err;
    char text[4096];
    struct sweep *sweep = sweep_half(&f);
    mean_at(&f, "validation", "best", 2, 2.01);
    mean_at(&f, "validation", "step:0", 3, 8);
    mean_at(&f, "validation", "step:3", 2, 8);
    mean_at(&f, "validation", "step:4", 2, 2.01);
    mean_at(&f, "validation", "tokens:4096", 2, 2.01);
    mean_at(&f, "validation", "seconds:1.9", 2, 8);
    mean_at(&f, "train", "step:2", 3, (4 + 2.00 + 4 + 2.02 + 4 + 0) / 3);
    mean_at(&f, "train", "best", 2, (2 + 2.00 + 2 + 2.02) / 2);
    loss_table_free(table_at(&f, "quick", "validation", "step:5", LOSS_TABLE_NOT_THERE, &err));
    cr_assert_str_eq(err.text, "no run of 'quick' logged bits_per_byte on validation as late as that (at step 5): the "
                               "furthest is at 4");
    struct loss_table *table = table_at(&f, "quick", "validation", "best", LOSS_TABLE_MOVED, &err);
    FILE *out = fmemopen(text, sizeof text, "w");
    loss_table_write(table, TABLE_TEXT, 100, out);
    fclose(out);
    cr_assert(strstr(text, "bits_per_byte on validation at each run's best; lower is better\n"), "%s", text);
    cr_assert(strstr(text, "  mean at best  "), "%s", text);
    cr_assert(strstr(text, "2 of 3, 1 diverged"), "%s", text);
    loss_table_free(table);
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(loss_table, a_moment_that_is_none_is_refused)
{
    static const char *const texts[] = {"",        "first",  "step",        "step:",      "step:x", "step:1.5",
                                        "step:-1", "last:3", "seconds:nan", "tokens:1e3", "best:"};
    struct moment moment;
    struct error err;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        cr_assert_not(moment_parse(texts[i], &moment, &err), "%s", texts[i]);
    cr_assert_str_eq(err.text, "--at is 'best:', expected last, best, step:N, tokens:N or seconds:N");
    cr_assert(moment_parse("seconds:1.5e1", &moment, &err));
    cr_assert(moment.kind == MOMENT_SECONDS && fabs(moment.amount - 15) < 1e-12);
}

/* Bits per byte as a deep decoder gave them: pre-norm goes on learning, post-norm stops at the frequencies of the
 * bytes; the fifth ends above where it began. Where no variant learns much, one that has hardly fallen is near the best
 * all the same. */
Test(loss_table, runs_that_did_not_train_are_found)
{
    struct progress_points runs[] = {{0, 1, 8.03, 4.43, 3.87, false}, {0, 1, 8.00, 4.95, 4.09, false},
                                     {1, 1, 8.03, 5.03, 5.02, false}, {1, 1, 8.00, 5.00, 5.06, false},
                                     {2, 1, 40.0, 12.0, 9.00, false}, {3, 1, 8.00, 4.30, 4.05, false},
                                     {4, 2, 6.50, NAN, 6.40, false}};
    static const bool want[] = {false, false, true, true, true, false, false};
    enum { COUNT = sizeof runs / sizeof runs[0] };
    untrained_find(runs, COUNT, 5);
    for (size_t i = 0; i < COUNT; i++)
        cr_assert_eq(runs[i].untrained, want[i], "run %zu", i);
    struct progress_points near[] = {{0, 1, 5.00, 3.55, 3.39, false}, {1, 1, 5.00, 3.59, 3.56, false}};
    untrained_find(near, 2, 2);
    cr_assert(!near[0].untrained && !near[1].untrained);
}

/* Of 4,096 bytes a thirty-second of the floor is what chance may give: 4.7 * (1 - 1 / 32) = 4.553. */
Test(loss_table, a_run_below_what_its_text_permits_is_marked)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    static const char *const labels[] = {"baseline", "rmsnorm", "swiglu"};
    struct sweep *sweep = sweep_make("quick", labels, 3, three_seeds, 2, "a");
    sweep->datasets->floor = 4.7;
    freeze(f.db, sweep);
    const double bits[] = {4.71, 4.70, 4.56, 4.70, 4.70, 4.54};
    for (size_t r = 0; r < 6; r++)
        run_through(f.db, sweep->runs[r].key, bits[r], RUN_FINISHED);
    const char *text = table_of(&f, "quick", NULL, NULL, TABLE_TEXT);
    cr_assert(strstr(text, "swiglu [2]") && strstr(text, "[2] a run of it is below what letters that say"), "%s", text);
    cr_assert(strstr(text, "\nbaseline  ") && !strstr(text, "rmsnorm [2]"), "%s", text);
    cr_assert(sql_script(database_handle(f.db), "update run set floor = 0", &err));
    text = table_of(&f, "quick", NULL, NULL, TABLE_TEXT);
    cr_assert_not(strstr(text, "below what"), "%s", text);
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(loss_table, json_is_that_of_the_contract)
{
    struct fixture f;
    struct sweep *sweep = sweep_half(&f);
    json_error_t error;
    json_t *root = json_loads(table_of(&f, "quick", NULL, NULL, TABLE_JSON), 0, &error);
    cr_assert(root, "%s", error.text);
    cr_assert_eq(json_object_size(root), 4);
    cr_assert_str_eq(json_string_value(json_object_get(root, "split")), "validation");
    json_t *rows = json_object_get(root, "rows"), *row = json_array_get(rows, 1);
    static const char *const keys[] = {"variant", "parameters", "n",      "n_planned", "n_diverged",
                                       "mean",    "sd",         "spread", "delta",     "ci_low",
                                       "ci_high", "p",          "p_holm", "mde",       "verdict"};
    cr_assert_eq(json_array_size(rows), 3);
    cr_assert_eq(json_object_size(row), sizeof keys / sizeof keys[0]);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        cr_assert(json_object_get(row, keys[i]), "no %s", keys[i]);
    cr_assert_eq(json_integer_value(json_object_get(row, "n_diverged")), 1);
    cr_assert(fabs(json_real_value(json_object_get(row, "mean")) - 2.01) < 1e-12);
    cr_assert(json_is_null(json_object_get(json_array_get(rows, 0), "delta")));
    cr_assert(json_is_null(json_object_get(json_array_get(rows, 2), "mean")));
    json_decref(root);
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(loss_table, csv_and_markdown_have_a_row_for_each_variant)
{
    struct fixture f;
    struct sweep *sweep = sweep_half(&f);
    const char *csv = table_of(&f, "quick", "loss", "train", TABLE_CSV);
    cr_assert(strstr(csv, "variant,parameters,n,n_planned,n_diverged,mean,sd,spread,delta,ci_low,ci_high,p,p_holm,mde,"
                          "verdict,tokens,changes,marks\n") == csv,
              "%s", csv);
    cr_assert(strstr(csv, "\nswiglu,900,0,3,0,,,,,,,,,,n/a,,norm=swiglu,parameters\n"), "%s", csv);
    const char *md = table_of(&f, "quick", NULL, NULL, TABLE_MD);
    cr_assert(strstr(md, "| rmsnorm | norm=rmsnorm | 900 (-10.0 %) \\[1\\] | 4,096 | 2.0100 |"), "%s", md);
    cr_assert(strstr(table_of(&f, "quick", NULL, NULL, TABLE_LATEX), "rmsnorm & norm=rmsnorm & 900 ($-$10.0 \\%)"));
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(loss_table, one_seed_is_not_applicable)
{
    struct fixture f;
    fixture_open(&f);
    struct sweep *sweep = sweep_make("quick", two_labels, 2, three_seeds, 1, "a");
    freeze(f.db, sweep);
    run_through(f.db, sweep->runs[0].key, 2.0, RUN_FINISHED);
    run_through(f.db, sweep->runs[1].key, 2.5, RUN_FINISHED);
    const char *text = table_of(&f, "quick", NULL, NULL, TABLE_TEXT);
    cr_assert(strstr(text, "4,096  2.5000  n/a     n/a  1 of 1\n"), "%s", text);
    cr_assert(strstr(text, "rmsnorm  +0.5000            n/a     n/a  n/a  n/a\n"), "%s", text);
    sweep_release(sweep);
    fixture_remove(&f);
}

static void choice_refused(struct fixture *f, const char *metric, const char *split, const char *part)
{
    struct error err;
    char *chosen_metric, *chosen_split;
    int64_t id = database_find_experiment(database_handle(f->db), "quick", &err);
    cr_assert_not(loss_table_choose(database_handle(f->db), id, metric, split, &chosen_metric, &chosen_split, &err));
    cr_assert(strstr(err.text, part), "%s", err.text);
    memory_free(chosen_metric);
    memory_free(chosen_split);
}

Test(loss_table, what_is_not_there_is_refused_with_what_is)
{
    struct fixture f;
    struct sweep *sweep = sweep_half(&f);
    struct error err;
    choice_refused(&f, "bits_per_bite", NULL, "did you mean 'bits_per_byte'");
    choice_refused(&f, NULL, "validaton", "did you mean 'validation'");
    static const char *const parts[] = {"there is no metric 'zeal' here: this experiment has ",
                                        "bits_per_byte (validation), ", "loss (validation), ",
                                        "perplexity (validation), ", ", loss (train)"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        choice_refused(&f, "zeal", NULL, parts[i]);
    choice_refused(&f, "bits_per_byte", "train", "there is no metric 'bits_per_byte' in split 'train'");
    cr_assert_eq(database_find_experiment(database_handle(f.db), "quik", &err), 0);
    cr_assert_str_eq(err.text, "there is no experiment 'quik' in the database: did you mean 'quick'?");
    cr_assert(strstr(table_of(&f, "quick", NULL, "train", TABLE_TEXT), "quick: loss on train at last step"));
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(loss_table, a_sweep_that_has_not_begun_is_a_table_of_plans)
{
    struct fixture f;
    fixture_open(&f);
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    const char *text = table_of(&f, "quick", NULL, NULL, TABLE_TEXT);
    cr_assert(strstr(text, "0 of 3, 3 queued"), "%s", text);
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(loss_table, long_labels_are_cut_and_kept_apart)
{
    struct fixture f;
    fixture_open(&f);
    static const char *const labels[] = {
        "baseline", "learning rate 0.0010001 and everything else the same as it was",
        "learning rate 0.0010001 and everything else the same as it is \xc3\xa9\xc3\xa9\xc3\xa9"};
    struct sweep *sweep = sweep_make("quick", labels, 3, three_seeds, 1, "a");
    freeze(f.db, sweep);
    const char *text = table_of(&f, "quick", NULL, NULL, TABLE_TEXT);
    cr_assert(strstr(text, "learning rate 0.0010001 ... #2"), "%s", text);
    cr_assert(strstr(text, "learning rate 0.0010001 ... #3"), "%s", text);
    cr_assert(strstr(text, "as it was\n"), "%s", text);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        cr_assert(strchr(line, '\n') - line <= 110, "%.200s", line); /* 100 columns, some characters of two bytes */
    sweep_release(sweep);
    fixture_remove(&f);
}

/* At 64 columns: tokens, equal for all, go into the caption, the interval becomes its half width, no word is broken. */
Test(loss_table, a_narrow_terminal_gets_a_narrow_table)
{
    struct fixture f;
    struct sweep *sweep = sweep_half(&f);
    text_width = 64;
    const char *text = table_of(&f, "quick", NULL, NULL, TABLE_TEXT);
    cr_assert(strstr(text, "\nEach run was trained on 4,096 tokens\n"), "%s", text);
    cr_assert(strstr(text, "delta  +- (95 %)"), "%s", text);
    cr_assert(strstr(text, "-0.1100     0.1271"), "%s", text);
    cr_assert(strstr(text, " diverged\n"), "%s", text);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        cr_assert(strchr(line, '\n') - line <= 64, "%.200s", line);
    sweep_release(sweep);
    fixture_remove(&f);
}

/* Hosts and tokens of the same seed differ: said, since the pairs then differ in more than the variant. */
Test(loss_table, runs_that_do_not_compare_as_they_stand_are_marked)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_make("quick", two_labels, 2, three_seeds, 2, "a");
    freeze(f.db, sweep);
    for (size_t r = 0; r < 4; r++)
        run_through(f.db, sweep->runs[r].key, 2.0 + (double)r, RUN_FINISHED);
    cr_assert(sql_script(database_handle(f.db),
                         "update run set host = 'other', kernels = 'v4' where id = 4;"
                         "update step set tokens = 99 where run = 3 and step = 3",
                         &err));
    const char *text = table_of(&f, "quick", NULL, NULL, TABLE_TEXT);
    cr_assert(strstr(text, "rmsnorm [1] [2]"), "%s", text);
    cr_assert(strstr(text, "[1] a run and the baseline's run of the same seed were trained on different machines"),
              "%s", text);
    cr_assert(strstr(text, "[2] a run and the baseline's run of the same seed were trained with different processors"),
              "%s", text);
    cr_assert(strstr(text, "[3] parameters are more than 2 % away"), "%s", text);
    cr_assert(strstr(text, "[4] trained on another number of tokens"), "%s", text);
    sweep_release(sweep);
    fixture_remove(&f);
}
