/* results.db through its interface, on sweeps made by hand. */
#include "runner/schema.h"
#include "tests/database_case.h"

/* ---- the file ---- */

Test(database, is_in_wal_while_open_and_one_plain_file_at_rest)
{
    struct fixture f;
    fixture_open(&f);
    ROWS(database_handle(f.db), "pragma journal_mode", "wal\n");
    ROWS(database_handle(f.db), "pragma foreign_keys", "1\n");
    ROWS(database_handle(f.db), "pragma application_id", "1920298610\n");
    cr_assert(exists(&f, "results.db.lock"));
    fixture_close(&f);
    cr_assert(exists(&f, "results.db"));
    cr_assert_not(exists(&f, "results.db-wal") || exists(&f, "results.db-shm") || exists(&f, "results.db.lock"));
    struct error err;
    sqlite3 *reader = database_open_reader(f.path, &err);
    cr_assert(reader, "%s", err.text);
    ROWS(reader, "pragma journal_mode", "delete\n");
    sqlite3_close(reader);
    fixture_remove(&f);
}

Test(database, every_table_is_strict)
{
    struct fixture f;
    fixture_open(&f);
    ROWS(database_handle(f.db), "select name from sqlite_schema where type = 'table' and sql not like '%strict%'", "");
    fixture_remove(&f);
}

/* The contract: these columns in this order; an extra last one where a kind must be told. */
Test(database, views_are_those_of_the_contract_and_documented)
{
    static const struct {
        const char *view, *columns;
    } wanted[] = {
        {"runs", "run_key experiment variant seed state reason step steps tokens parameters flops_per_token train_loss "
                 "train_seconds started_at ended_at host cpu blas precision git_commit version config"},
        {"curves", "experiment variant seed step tokens train_seconds split metric value kind"},
        {"losses", "experiment variant split metric n n_planned n_diverged mean sd spread min max"},
        {"comparisons", "experiment variant baseline split metric n delta ci_low ci_high p p_holm mde verdict"},
        {"experiments", "experiment description question metric split margin alpha frozen_at"},
        {"variants", "experiment variant position baseline"},
        {"knobs", "name kind choices default doc"},
    };
    struct fixture f;
    fixture_open(&f);
    char sql[256];
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        snprintf(sql, sizeof sql, "select group_concat(name, ' ') from pragma_table_info('%s')", wanted[i].view);
        char want[512];
        snprintf(want, sizeof want, "%s\n", wanted[i].columns);
        ROWS(database_handle(f.db), sql, want);
    }
    const struct schema_view *view;
    size_t count = 0;
    for (; (view = schema_view(count)); count++) {
        snprintf(sql, sizeof sql, "select name from pragma_table_info('%s')", view->name);
        struct error err;
        sqlite3_stmt *s = sql_prepare(database_handle(f.db), sql, NULL, &err);
        bool row;
        for (size_t c = 0; c < view->column_count; c++) {
            cr_assert(sql_step(s, &row, &err) && row, "%s has no %s", view->name, view->columns[c].name);
            cr_assert_str_eq(sql_text(s, 0), view->columns[c].name);
            cr_assert(strlen(view->columns[c].doc) > 5, "%s.%s has no documentation", view->name,
                      view->columns[c].name);
        }
        cr_assert(sql_step(s, &row, &err) && !row, "%s has a column that is not documented", view->name);
        sqlite3_finalize(s);
        snprintf(sql, sizeof sql, "select count(*) >= 0 from %s", view->name);
        ROWS(database_handle(f.db), sql, "1\n");
    }
    snprintf(sql, sizeof sql, "%zu\n", count);
    ROWS(database_handle(f.db), "select count(*) from sqlite_schema where type = 'view'", sql);
    fixture_remove(&f);
}

Test(database, knobs_are_listed_with_their_ranges)
{
    struct fixture f;
    fixture_open(&f);
    ROWS(database_handle(f.db), "select kind, choices, \"default\" from knobs where name = 'model.residual'",
         "choice|pre|post|pre\n");
    ROWS(database_handle(f.db), "select kind, choices, \"default\" from knobs where name = 'model.dropout'",
         "number|a number of at least 0 and below 1|0\n");
    char want[32];
    snprintf(want, sizeof want, "%zu\n", knob_count);
    ROWS(database_handle(f.db), "select count(*) from knobs", want);
    fixture_remove(&f);
}

/* ---- runs ---- */

Test(database, a_run_is_logged_from_start_to_end)
{
    struct fixture f;
    fixture_open(&f);
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    const char *key = sweep->runs[0].key;
    cr_assert_eq(database_run_state(database_handle(f.db), key, NULL, NULL, 0), RUN_QUEUED);
    run_through(f.db, key, 2.0, RUN_FINISHED);
    int64_t steps;
    cr_assert_eq(database_run_state(database_handle(f.db), key, &steps, NULL, 0), RUN_FINISHED);
    cr_assert_eq(steps, 4);
    ROWS(database_handle(f.db),
         "select variant, seed, state, reason, step, steps, tokens, parameters, train_loss, train_seconds, host, cpu, "
         "started_at glob '20[0-9]*-[0-9]*-[0-9]*T[0-9]*:[0-9]*:[0-9]*Z', ended_at >= started_at from runs where state "
         "= 'finished'",
         "baseline|1|finished|null|4|4|4096|1000|4.0000|2.0000|box|Zen 3 (v3)|1|1\n");
    ROWS(database_handle(f.db),
         "select step, value, kind from curves where experiment = 'quick' and variant = 'baseline' and seed = 1 and "
         "split = 'train' and metric = 'loss'",
         "0|7.0000|finite\n1|6.0000|finite\n2|5.0000|finite\n3|4.0000|finite\n");
    char all[32];
    snprintf(all, sizeof all, "train|3\nvalidation|%d\n", METRIC_COUNT);
    ROWS(database_handle(f.db), "select split, count(distinct metric) from curves group by 1 order by 1", all);
    ROWS(database_handle(f.db),
         "select split, metric, count(*) from curves where metric in ('grad_norm', 'learning_rate', 'loss', "
         "'bits_per_byte', 'perplexity') group by 1, 2 order by 1, 2",
         "train|grad_norm|4\ntrain|learning_rate|4\ntrain|loss|4\nvalidation|bits_per_byte|2\nvalidation|loss|2\n"
         "validation|perplexity|2\n");
    ROWS(database_handle(f.db), "select state, count(*) from runs group by state", "finished|1\nqueued|5\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(database, configuration_has_a_typed_column_for_each_knob)
{
    struct fixture f;
    fixture_open(&f);
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    ROWS(database_handle(f.db),
         "select distinct \"model.norm\", typeof(\"model.norm\"), \"model.dropout\", typeof(\"model.dropout\"), "
         "\"model.qk_norm\", \"model.n_layers\", typeof(\"model.n_layers\"), \"data.tokenizer.kind\", "
         "\"training.learning_rate\", "
         "typeof(\"training.learning_rate\"), \"training.steps\" from run_config",
         "rmsnorm|text|0.0000|real|1|2|integer|bpe|0.0010|real|4\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(database, numbers_that_are_not_finite_do_not_lie)
{
    struct fixture f;
    fixture_open(&f);
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    struct error err;
    const char *key = sweep->runs[0].key;
    const double losses[] = {3, NAN, INFINITY, -INFINITY};
    cr_assert(database_run_start(f.db, key, 0, &environment, NULL, 0, NULL, 0, &err));
    for (int64_t s = 0; s < 4; s++) {
        struct step_record record = step_of(s, losses[s]);
        cr_assert(database_step(f.db, key, &record, &err));
    }
    cr_assert(database_flush(f.db, 1, &err), "%s", err.text);
    ROWS(database_handle(f.db),
         "select step, typeof(value), value, kind from curves where split = 'train' and metric = 'loss' order by "
         "value, step",
         "0|real|3.0000|finite\n1|real|inf|nan\n2|real|inf|inf\n3|real|inf|-inf\n");
    ROWS(database_handle(f.db),
         "select count(*), count(value), min(value), avg(value) from curves where metric = 'loss'", "4|4|3.0000|inf\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(database, a_resumed_run_has_its_checkpoint_curve_and_no_row_twice)
{
    struct fixture f;
    fixture_open(&f);
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    struct error err;
    const char *key = sweep->runs[0].key;
    run_through(f.db, key, 2.0, RUN_INTERRUPTED);
    struct step_record kept[] = {step_of(0, 9), step_of(1, 8)}, again = step_of(2, 7);
    struct evaluation_row before = evaluation_of(0, "validation", 8);
    cr_assert(database_run_start(f.db, key, 2, &environment, kept, 2, &before, 1, &err), "%s", err.text);
    cr_assert(database_step(f.db, key, &again, &err) && database_step(f.db, key, &again, &err));
    cr_assert(database_flush(f.db, 1, &err), "%s", err.text);
    ROWS(database_handle(f.db), "select step, value from curves where metric = 'loss' and split = 'train'",
         "0|9.0000\n1|8.0000\n2|7.0000\n");
    ROWS(database_handle(f.db), "select count(*) from curves where split = 'validation' and metric = 'loss'", "1\n");
    ROWS(database_handle(f.db), "select state, step, ended_at from runs where seed = 1 and variant = 'baseline'",
         "running|3|null\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(database, a_run_that_was_not_frozen_is_an_error)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct step_record record = step_of(0, 1);
    cr_assert(database_step(f.db, "beef", &record, &err)); /* joins the queue */
    cr_assert_not(database_flush(f.db, 1, &err));
    cr_assert(strstr(err.text, "has no run beef") && strstr(err.text, f.path), "%s", err.text);
    cr_assert_not(database_close(f.db, &err));
    f.db = NULL;
    fixture_remove(&f);
}

/* ---- summaries ---- */

/* bits_per_byte: baseline 2.10 2.14 2.12, variant 2.00 2.02 2.04 by seed: differences -0.10 -0.12 -0.08, as worked out
 * in test_statistics.c: delta -0.10, interval -0.1497 .. -0.0503, p 0.0131, mde 0.0619. One variant: Holm changes
 * nothing. */
Test(database, losses_and_comparisons_are_those_done_by_hand)
{
    struct fixture f;
    fixture_open(&f);
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    ROWS(database_handle(f.db), "select variant, split, n, n_planned, mean from losses",
         "baseline|train|0|3|null\nrmsnorm|train|0|3|null\n");
    const double bits[] = {2.10, 2.14, 2.12, 2.00, 2.02, 2.04};
    for (size_t r = 0; r < 6; r++)
        run_through(f.db, sweep->runs[r].key, bits[r], RUN_FINISHED);
    ROWS(database_handle(f.db),
         "select variant, n, n_planned, n_diverged, mean, sd, spread, min, max from losses where metric = "
         "'bits_per_byte' order by variant",
         "baseline|3|3|0|2.1200|0.0200|0.0400|2.1000|2.1400\nrmsnorm|3|3|0|2.0200|0.0200|0.0400|2.0000|2.0400\n");
    ROWS(database_handle(f.db),
         "select variant, baseline, split, n, delta, ci_low, ci_high, p, p_holm, mde, verdict from comparisons where "
         "metric = 'bits_per_byte'",
         "rmsnorm|baseline|validation|3|-0.1000|-0.1497|-0.0503|0.0131|0.0131|0.0619|better\n");
    char all[32];
    snprintf(all, sizeof all, "train|1\nvalidation|%d\n", METRIC_COUNT);
    ROWS(database_handle(f.db), "select split, count(*) from losses where variant = 'baseline' group by 1 order by 1",
         all);
    ROWS(database_handle(f.db),
         "select split, metric from losses where variant = 'baseline' and metric in ('loss', 'bits_per_byte', "
         "'perplexity') order by 1, 2",
         "train|loss\nvalidation|bits_per_byte\nvalidation|loss\nvalidation|perplexity\n");
    ROWS(database_handle(f.db), "select mean from losses where split = 'train' and variant = 'baseline'", "4.1200\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

/* 2.00 2.02 diverged against 2.10 2.12 2.14: pairs -0.10 -0.10, so two of three, never "2.01, best" alone. */
Test(database, a_diverged_seed_is_counted_and_not_averaged)
{
    struct fixture f;
    fixture_open(&f);
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    const double bits[] = {2.10, 2.12, 2.14, 2.00, 2.02, 0};
    for (size_t r = 0; r < 6; r++)
        run_through(f.db, sweep->runs[r].key, bits[r], r == 5 ? RUN_DIVERGED : RUN_FINISHED);
    ROWS(database_handle(f.db),
         "select n, n_planned, n_diverged, mean from losses where metric = 'bits_per_byte' and variant = 'rmsnorm'",
         "2|3|1|2.0100\n");
    ROWS(database_handle(f.db), "select n, delta from comparisons where metric = 'bits_per_byte'", "2|-0.1000\n");
    ROWS(database_handle(f.db), "select state, reason, step, train_loss from runs where state = 'diverged'",
         "diverged|loss is nan at step 3|3|inf\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(database, the_last_line_of_a_log_follows_the_reason)
{
    static const char *const logs[][2] = {
        {"step 1\nterminate: no room\n", "killed by signal 6: terminate: no room"},
        {"no room", "killed by signal 6: no room"},
        {"no room\n\nno room \n\n", "killed by signal 6: no room"},
        {"", "killed by signal 6"},
        {"\n", "killed by signal 6"},
    };
    struct fixture f;
    struct error err;
    char want[128];
    fixture_open(&f);
    struct sweep *sweep = sweep_make("quick", two_labels, 2, three_seeds, 1, "a");
    freeze(f.db, sweep);
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        cr_assert(database_run_start(f.db, sweep->runs[0].key, 0, &environment, NULL, 0, NULL, 0, &err));
        cr_assert(database_run_end(f.db, sweep->runs[0].key, RUN_FAILED, "killed by signal 6", logs[i][0], &err));
        cr_assert(database_flush(f.db, 1, &err), "%s", err.text);
        snprintf(want, sizeof want, "%s\n", logs[i][1]);
        ROWS(database_handle(f.db), "select reason from runs where state = 'failed'", want);
    }
    ROWS(database_handle(f.db), "select reason from runs where state = 'queued'", "null\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(database, one_seed_has_no_spread_and_no_verdict)
{
    struct fixture f;
    fixture_open(&f);
    struct sweep *sweep = sweep_make("quick", two_labels, 2, three_seeds, 1, "a");
    freeze(f.db, sweep);
    run_through(f.db, sweep->runs[0].key, 2.0, RUN_FINISHED);
    run_through(f.db, sweep->runs[1].key, 2.5, RUN_FINISHED);
    ROWS(database_handle(f.db),
         "select n, mean, sd, spread from losses where metric = 'bits_per_byte' and variant = 'rmsnorm'",
         "1|2.5000|null|null\n");
    ROWS(database_handle(f.db),
         "select n, delta, ci_low, ci_high, p, p_holm, mde, verdict from comparisons where metric = 'bits_per_byte'",
         "1|0.5000|null|null|null|null|null|n/a\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(database, a_run_that_trains_again_leaves_the_summary_meanwhile)
{
    struct fixture f;
    fixture_open(&f);
    struct sweep *sweep = sweep_make("quick", two_labels, 2, three_seeds, 1, "a");
    freeze(f.db, sweep);
    struct error err;
    run_through(f.db, sweep->runs[0].key, 2.0, RUN_DIVERGED);
    ROWS(database_handle(f.db), "select n_diverged from losses where variant = 'baseline' and split = 'train'", "1\n");
    cr_assert(database_run_start(f.db, sweep->runs[0].key, 0, &environment, NULL, 0, NULL, 0, &err));
    ROWS(database_handle(f.db), "select n_diverged from losses where variant = 'baseline' and split = 'train'", "0\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

/* ---- freezing ---- */

Test(database, two_experiments_share_a_run_and_both_have_its_result)
{
    struct fixture f;
    fixture_open(&f);
    struct sweep *first = sweep_small("quick", "a"), *second = sweep_small("other", "a");
    freeze(f.db, first);
    run_through(f.db, first->runs[0].key, 2.0, RUN_FINISHED);
    freeze(f.db, second);
    ROWS(database_handle(f.db), "select count(*), count(distinct run_key) from runs", "12|6\n");
    ROWS(database_handle(f.db),
         "select experiment, mean from losses where metric = 'bits_per_byte' and n = 1 order by experiment",
         "other|2.0000\nquick|2.0000\n");
    run_through(f.db, first->runs[3].key, 3.0, RUN_FINISHED);
    ROWS(database_handle(f.db), "select experiment, delta from comparisons where metric = 'bits_per_byte' order by 1",
         "other|1.0000\nquick|1.0000\n");
    sweep_release(first);
    sweep_release(second);
    fixture_remove(&f);
}

Test(database, seeds_and_variants_add_up_and_plans_that_never_began_go)
{
    struct fixture f;
    fixture_open(&f);
    static const char *const labels[] = {"baseline", "rmsnorm", "swiglu"};
    struct sweep *small = sweep_make("quick", labels, 1, three_seeds, 1, "a");
    struct sweep *large = sweep_make("quick", labels, 3, three_seeds, 3, "a");
    struct sweep *part = sweep_make("quick", labels + 1, 1, three_seeds, 3, "a");
    freeze(f.db, small);
    run_through(f.db, small->runs[0].key, 2.0, RUN_FINISHED);
    cr_assert(database_is_frozen(database_handle(f.db), small));
    cr_assert_not(database_is_frozen(database_handle(f.db), large));
    freeze(f.db, large);
    freeze(f.db, part);
    ROWS(database_handle(f.db), "select variant, count(*), sum(state = 'finished') from runs group by 1",
         "baseline|3|1\nrmsnorm|3|0\nswiglu|3|0\n");
    ROWS(database_handle(f.db), "select label, baseline from variant order by position",
         "baseline|1\nrmsnorm|0\nswiglu|0\n");
    memory_free(small->experiment->text);
    small->experiment->text = memory_copy_text("the file without two variants");
    freeze(f.db, small);
    ROWS(database_handle(f.db), "select experiment, variant, count(*) from runs group by 1, 2", "quick|baseline|1\n");
    ROWS(database_handle(f.db), "pragma foreign_key_check", "");
    sweep_release(small);
    sweep_release(large);
    sweep_release(part);
    fixture_remove(&f);
}

Test(database, a_changed_experiment_keeps_its_earlier_runs_under_another_name)
{
    struct fixture f;
    fixture_open(&f);
    fixture_close(&f);
    struct error err;
    struct database_options options = {.note = keep_note};
    f.db = database_open(f.path, &options, &err);
    struct sweep *first = sweep_small("quick", "a"), *second = sweep_small("quick", "b");
    freeze(f.db, first);
    run_through(f.db, first->runs[0].key, 2.0, RUN_FINISHED);
    freeze(f.db, second);
    cr_assert_str_eq(noted, "quick was changed since it last ran: its earlier runs stay as quick@1");
    ROWS(database_handle(f.db), "select experiment, state, count(*) from runs group by 1, 2",
         "quick|queued|6\nquick@1|finished|1\n");
    ROWS(database_handle(f.db), "select experiment, mean from losses where metric = 'bits_per_byte'",
         "quick@1|2.0000\n");
    noted[0] = 0;
    run_through(f.db, second->runs[0].key, 3.0, RUN_FINISHED);
    freeze(f.db, first);  /* back to the first: the second is kept ... */
    freeze(f.db, second); /* ... and again: both are there already */
    freeze(f.db, first);
    ROWS(database_handle(f.db), "select experiment, mean from losses where metric = 'bits_per_byte' and n order by 1",
         "quick|2.0000\nquick@1|2.0000\nquick@2|3.0000\n");
    ROWS(database_handle(f.db), "pragma foreign_key_check", "");
    sweep_release(first);
    sweep_release(second);
    fixture_remove(&f);
}

Test(database, a_renamed_variant_takes_its_run_along)
{
    struct fixture f;
    fixture_open(&f);
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    run_through(f.db, sweep->runs[3].key, 2.0, RUN_FINISHED);
    memory_free(sweep->experiment->variants[1].label);
    sweep->experiment->variants[1].label = memory_copy_text("rms");
    freeze(f.db, sweep);
    ROWS(database_handle(f.db), "select variant, count(*), sum(state = 'finished') from runs group by 1",
         "baseline|3|0\nrms|3|1\n");
    sweep_release(sweep);
    fixture_remove(&f);
}
