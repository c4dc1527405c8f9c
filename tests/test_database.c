/* results.db through its interface, on sweeps made by hand. */
#include "runner/database.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/query.h"
#include "runner/schema.h"
#include "runner/sql.h"
#include "tests/database_case.h"

static bool exists(const struct fixture *f, const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    return access(path, F_OK) == 0;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void nap(double seconds)
{
    struct timespec pause = {(time_t)seconds, (long)(1e9 * (seconds - floor(seconds)))};
    nanosleep(&pause, NULL);
}

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
    ROWS(database_handle(f.db), "select kind, choices, \"default\" from knobs where name = 'model.norm'",
         "choice|layernorm|rmsnorm|layernorm\n");
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
    ROWS(database_handle(f.db), "select split, metric, count(*) from curves group by 1, 2 order by 1, 2",
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
    ROWS(database_handle(f.db), "select split, metric from losses where variant = 'baseline' order by 1, 2",
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

static char noted[512];

static void keep_note(void *context, const char *text)
{
    (void)context;
    snprintf(noted, sizeof noted, "%s", text);
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

/* ---- other processes ---- */

Test(database, a_second_writer_is_refused_by_the_name_of_the_first)
{
    struct fixture f;
    fixture_open(&f);
    fixture_close(&f);
    struct error err;
    struct database_options options = {.command = "runner run quick.yaml"};
    f.db = database_open(f.path, &options, &err);
    char mine[64], holder[256];
    snprintf(mine, sizeof mine, "pid %ld on ", (long)getpid());
    cr_assert_null(database_open(f.path, NULL, &err));
    cr_assert(strstr(err.text, mine) && strstr(err.text, "runner run quick.yaml"), "%s", err.text);
    cr_assert(database_lock_holder(f.path, holder, sizeof holder));
    cr_assert(strstr(holder, mine) == holder, "%s", holder);
    fixture_close(&f);
    cr_assert_not(database_lock_holder(f.path, holder, sizeof holder));
    fixture_remove(&f);
}

Test(database, a_stale_lock_file_is_no_lock)
{
    struct fixture f;
    fixture_open(&f);
    fixture_close(&f);
    char path[160], holder[64];
    snprintf(path, sizeof path, "%s.lock", f.path);
    FILE *stale = fopen(path, "w");
    fputs("pid 1 on nowhere: gone\n", stale);
    fclose(stale);
    struct error err;
    cr_assert_not(database_lock_holder(f.path, holder, sizeof holder));
    f.db = database_open(f.path, NULL, &err);
    cr_assert(f.db, "%s", err.text);
    fixture_remove(&f);
}

/* Four processes, each told to wait: all get it, one after the other, and each adds its own row. */
Test(database, four_processes_take_turns)
{
    struct fixture f;
    fixture_open(&f);
    fixture_close(&f);
    pid_t children[4];
    for (int i = 0; i < 4; i++)
        if ((children[i] = fork()) == 0) {
            struct error err;
            struct database_options options = {.wait_seconds = 30};
            struct database *db = database_open(f.path, &options, &err);
            char sql[128];
            snprintf(sql, sizeof sql, "insert into tokenizer (hash, image) values ('%d', x'00')", i);
            bool ok = db && sql_script(database_handle(db), sql, &err);
            nap(0.05);
            ok = database_close(db, &err) && ok;
            _exit(ok ? 0 : 1);
        }
    for (int i = 0; i < 4; i++) {
        int status;
        cr_assert_eq(waitpid(children[i], &status, 0), children[i]);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    struct error err;
    sqlite3 *reader = database_open_reader(f.path, &err);
    ROWS(reader, "select count(*) from tokenizer", "4\n");
    sqlite3_close(reader);
    fixture_remove(&f);
}

Test(database, of_four_that_do_not_wait_one_wins)
{
    struct fixture f;
    fixture_open(&f);
    fixture_close(&f);
    int gate[2], hold[2];
    cr_assert(pipe(gate) == 0 && pipe(hold) == 0);
    pid_t children[4];
    for (int i = 0; i < 4; i++)
        if ((children[i] = fork()) == 0) {
            char byte;
            struct error err = {""};
            close(gate[1]);
            close(hold[0]);
            ssize_t ended = read(gate[0], &byte, 1); /* all start when the parent closes its end */
            struct database *db = database_open(f.path, NULL, &err);
            if (!db)
                _exit(strstr(err.text, "is held by") ? 1 : 2);
            nap(0.5); /* longer than the others need to find out */
            _exit(database_close(db, &err) && ended == 0 ? 0 : 2);
        }
    close(gate[1]);
    int counts[3] = {0};
    for (int i = 0; i < 4; i++) {
        int status;
        waitpid(children[i], &status, 0);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) < 3);
        counts[WEXITSTATUS(status)]++;
    }
    cr_assert(counts[0] == 1 && counts[1] == 3, "%d won, %d were refused", counts[0], counts[1]);
    fixture_remove(&f);
}

/* A step may meet one attempt to commit: PENDING_PATIENCE is 40 ms; 0.3 s leaves room for a busy machine. */
static double slowest_step(struct database *db, const char *key, double seconds)
{
    struct error err;
    double slowest = 0, end = seconds_now() + seconds;
    for (int64_t s = 0; seconds_now() < end; s++) {
        struct step_record record = step_of(s, 2);
        double start = seconds_now();
        cr_assert(database_step(db, key, &record, &err), "%s", err.text);
        slowest = fmax(slowest, seconds_now() - start);
        nap(0.002);
    }
    return slowest;
}

Test(database, a_foreign_writer_neither_stops_training_nor_costs_a_row)
{
    struct fixture f;
    fixture_open(&f);
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    struct error err;
    const char *key = sweep->runs[0].key;
    cr_assert(database_run_start(f.db, key, 0, &environment, NULL, 0, NULL, 0, &err));
    sqlite3 *other;
    cr_assert_eq(sqlite3_open(f.path, &other), SQLITE_OK);
    cr_assert(sql_script(other, "begin immediate; insert into tokenizer (hash, image) values ('x', x'00')", &err));
    double slowest = slowest_step(f.db, key, 2.5);
    cr_assert(slowest < 0.3, "a step took %.3f s", slowest);
    double start = seconds_now();
    cr_assert(database_run_end(f.db, key, RUN_FINISHED, NULL, NULL, &err), "%s", err.text);
    cr_assert(seconds_now() - start < 0.3);
    cr_assert_not(database_flush(f.db, 0.1, &err));
    cr_assert(strstr(err.text, "rows are not stored") && strstr(err.text, f.path), "%s", err.text);
    ROWS(database_handle(f.db), "select count(*) from step", "0\n");
    cr_assert(sql_script(other, "commit", &err));
    sqlite3_close(other);
    cr_assert(database_flush(f.db, 10, &err), "%s", err.text);
    ROWS(database_handle(f.db), "select count(*) = max(step) + 1, count(*) > 100 from step", "1|1\n");
    ROWS(database_handle(f.db), "select count(*) from runs where state = 'finished'", "1\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

static void reader_in_the_way(bool no_wal)
{
    struct fixture f;
    fixture_open(&f);
    fixture_close(&f);
    struct error err;
    struct database_options options = {.no_wal = no_wal};
    f.db = database_open(f.path, &options, &err);
    cr_assert(f.db, "%s", err.text);
    ROWS(database_handle(f.db), "pragma journal_mode", no_wal ? "delete\n" : "wal\n");
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    const char *key = sweep->runs[0].key;
    cr_assert(database_run_start(f.db, key, 0, &environment, NULL, 0, NULL, 0, &err));
    sqlite3 *reader = database_open_reader(f.path, &err);
    cr_assert(reader && sql_script(reader, "begin; select count(*) from step", &err), "%s", err.text);
    ROWS(reader, "select state from runs where variant = 'baseline' and seed = 1", "running\n");
    double slowest = slowest_step(f.db, key, 1.5);
    cr_assert(slowest < 0.3, "a step took %.3f s", slowest);
    if (!no_wal)
        cr_assert(database_flush(f.db, 0.1, &err), "%s", err.text); /* WAL: readers are in nobody's way */
    ROWS(reader, "select count(*) from step", "0\n");               /* and keep their view */
    cr_assert(sql_script(reader, "commit", &err));
    cr_assert(database_flush(f.db, 10, &err), "%s", err.text);
    ROWS(reader, "select count(*) = max(step) + 1, count(*) > 50 from step", "1|1\n");
    sqlite3_close(reader);
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(database, a_long_reader_is_in_nobodys_way)
{
    reader_in_the_way(false);
}

Test(database, a_long_reader_of_a_rollback_journal_loses_no_row)
{
    reader_in_the_way(true);
}

Test(database, a_reader_that_stays_only_delays_the_tidying)
{
    struct fixture f;
    fixture_open(&f);
    fixture_close(&f);
    struct error err;
    struct database_options options = {.note = keep_note};
    f.db = database_open(f.path, &options, &err);
    sqlite3 *reader = database_open_reader(f.path, &err);
    ROWS(reader, "select count(*) from runs", "0\n");
    fixture_close(&f);
    cr_assert(strstr(noted, "another process is reading it"), "%s", noted);
    sqlite3_close(reader);
    f.db = database_open(f.path, &options, &err);
    fixture_close(&f);
    cr_assert_not(exists(&f, "results.db-wal"));
    fixture_remove(&f);
}

Test(database, a_killed_writer_loses_at_most_what_was_not_committed)
{
    struct fixture f;
    fixture_open(&f);
    fixture_close(&f);
    struct sweep *sweep = sweep_small("quick", "a");
    int ready[2];
    cr_assert_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct error err;
        struct database *db = database_open(f.path, NULL, &err);
        struct step_record record = step_of(0, 2);
        bool ok = db && database_freeze(db, sweep, &err) &&
                  database_run_start(db, sweep->runs[0].key, 0, &environment, NULL, 0, NULL, 0, &err) &&
                  database_step(db, sweep->runs[0].key, &record, &err) && database_flush(db, 5, &err);
        if (write(ready[1], ok ? "y" : "n", 1) == 1)
            pause();
        _exit(1);
    }
    char answer;
    cr_assert(read(ready[0], &answer, 1) == 1 && answer == 'y');
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    cr_assert(exists(&f, "results.db-wal"));
    struct error err;
    sqlite3 *reader = database_open_reader(f.path, &err);
    cr_assert(reader, "%s", err.text);
    ROWS(reader, "select state, step from runs where variant = 'baseline' and seed = 1", "running|1\n");
    sqlite3_close(reader);
    f.db = database_open(f.path, NULL, &err);
    cr_assert(f.db, "%s", err.text);
    cr_assert(database_recover(f.db, &err), "%s", err.text);
    ROWS(database_handle(f.db), "select state, reason from runs where step = 1", "interrupted|its process is gone\n");
    ROWS(database_handle(f.db), "pragma integrity_check", "ok\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

/* ---- what is refused ---- */

static void refused(const char *path, const char *part)
{
    struct error err = {""};
    cr_assert_null(database_open(path, NULL, &err));
    cr_assert(strstr(err.text, part) && strstr(err.text, path), "%s", err.text);
    err.text[0] = 0;
    cr_assert_null(database_open_reader(path, &err));
    cr_assert(strstr(err.text, path), "%s", err.text);
}

static void other_file(const struct fixture *f, char path[160], const char *text)
{
    snprintf(path, 160, "%s/other.db", f->folder);
    FILE *out = fopen(path, "w");
    fputs(text, out);
    fclose(out);
}

static void other_database(const struct fixture *f, char path[160], const char *script)
{
    sqlite3 *db;
    struct error err;
    snprintf(path, 160, "%s/other.db", f->folder);
    unlink(path);
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert(sql_script(db, script, &err), "%s", err.text);
    sqlite3_close(db);
}

Test(database, files_that_are_not_ours_are_refused_and_left_alone)
{
    struct fixture f;
    char path[160];
    fixture_open(&f);
    fixture_close(&f);
    other_file(&f, path, "This is a letter, not a database, and long enough to look like a header of one.\n");
    struct stat before, after;
    stat(path, &before);
    refused(path, "file is not a database");
    stat(path, &after);
    cr_assert_eq(before.st_size, after.st_size);
    other_database(&f, path, "create table t (x)");
    refused(path, "another program (application id 0)");
    other_database(&f, path, "pragma application_id = 42; create table t (x)");
    refused(path, "another program (application id 42)");
    other_database(&f, path, "pragma application_id = 1920298610; pragma user_version = 99; create table t (x)");
    refused(path, "schema version 99 and this runner knows versions 1 to ");
    refused(f.folder, "is a folder: expected a database file");
    snprintf(path, sizeof path, "%s/results.db/x.db", f.folder);
    refused(path, "");
    fixture_remove(&f);
}

Test(database, a_reader_says_how_a_missing_database_is_made)
{
    struct error err;
    cr_assert_null(database_open_reader("/tmp/runner-there-is-none/results.db", &err));
    cr_assert_str_eq(err.text,
                     "there is no database '/tmp/runner-there-is-none/results.db': `runner run FILE` makes one");
}

Test(database, names_that_sqlite_or_a_uri_would_read_are_plain_names)
{
    struct fixture f;
    struct error err;
    fixture_open(&f);
    fixture_close(&f);
    char path[160];
    snprintf(path, sizeof path, "%s/a?mode=memory#%%20 ' \".db", f.folder);
    struct database *db = database_open(path, NULL, &err);
    cr_assert(db, "%s", err.text);
    cr_assert(database_close(db, &err));
    sqlite3 *reader = database_open_reader(path, &err);
    cr_assert(reader, "%s", err.text);
    sqlite3_close(reader);
    cr_assert_eq(unlink(path), 0);
    fixture_remove(&f);
}

/* SQLite's own limit stands in for a full disk: the same code, SQLITE_FULL. */
Test(database, a_full_disk_is_told_and_nothing_is_lost_once_there_is_room)
{
    struct fixture f;
    fixture_open(&f);
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    struct error err = {""};
    const char *key = sweep->runs[0].key;
    cr_assert(database_run_start(f.db, key, 0, &environment, NULL, 0, NULL, 0, &err));
    char sql[64];
    int64_t pages;
    cr_assert(sql_integer(database_handle(f.db), &pages, 0, "pragma page_count", NULL, &err));
    snprintf(sql, sizeof sql, "pragma max_page_count = %" PRId64, pages);
    rows_of(database_handle(f.db), sql);
    for (int64_t s = 0; s < 5000; s++) {
        struct step_record record = step_of(s, 2);
        (void)database_step(f.db, key, &record, &err);
    }
    cr_assert_not(database_flush(f.db, 1, &err));
    cr_assert(strstr(err.text, "database or disk is full") && strstr(err.text, f.path), "%s", err.text);
    ROWS(database_handle(f.db), "select count(*) from step", "0\n");
    rows_of(database_handle(f.db), "pragma max_page_count = 1000000");
    cr_assert(database_flush(f.db, 1, &err), "%s", err.text);
    ROWS(database_handle(f.db), "select count(*) from step", "5000\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

/* ---- versions ---- */

enum { MIGRATIONS_MOST = 16 };

/* Those there are and one more. Returns their number. */
static size_t migrations_with(const char *next, const char *newer[MIGRATIONS_MOST])
{
    cr_assert_lt(schema_version, MIGRATIONS_MOST);
    memcpy(newer, schema_migrations, schema_version * sizeof *newer);
    newer[schema_version] = next;
    return schema_version + 1;
}

Test(database, an_older_database_is_migrated_and_gets_new_views)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    sqlite3 *db = database_handle(f.db);
    const char *newer[MIGRATIONS_MOST];
    char text[80];
    size_t next = migrations_with("alter table run add column colour text;", newer);
    cr_assert(sql_script(db, "drop view losses; create view runs_old as select 1", &err));
    cr_assert(sql_begin(db, 1, &err) && sql_end(db, schema_update(db, newer, next, &err), NULL, &err), "%s", err.text);
    snprintf(text, sizeof text, "%zu\n", next);
    ROWS(db, "pragma user_version", text);
    ROWS(db, "select count(*), count(colour) from run", "6|0\n");
    ROWS(db, "select group_concat(name, ' ') from (select name from sqlite_schema where type = 'view' order by 1)",
         "comparisons curves experiments knobs losses run_config runs variants\n");
    fixture_close(&f);
    snprintf(text, sizeof text, "schema version %zu and this runner knows versions 1 to %zu", next, schema_version);
    refused(f.path, text);
    sweep_release(sweep);
    fixture_remove(&f);
}

/* As the first version left it: read as if it were of today, and left as it is. */
Test(database, readers_read_an_older_database_and_leave_it_as_it_is)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    run_through(f.db, sweep->runs[0].key, 2.5, RUN_FINISHED);
    cr_assert(database_flush(f.db, 1, &err));
    cr_assert(sql_script(database_handle(f.db),
                         "drop view runs; alter table run drop column floor; alter table run drop column earlier_cpus; "
                         "pragma user_version = 1",
                         &err),
              "%s", err.text);
    fixture_close(&f);
    sqlite3 *reader = database_open_reader(f.path, &err), *plain;
    cr_assert(reader, "%s", err.text);
    ROWS(reader, "select count(*), sum(state = 'finished') from runs", "6|1\n");
    sqlite3_close(reader);
    cr_assert_eq(sqlite3_open_v2(f.path, &plain, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ROWS(plain, "pragma user_version", "1\n");
    sqlite3_close(plain);
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(database, a_migration_that_fails_changes_nothing)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    sqlite3 *db = database_handle(f.db);
    const char *newer[MIGRATIONS_MOST];
    char text[32];
    size_t next = migrations_with("create table extra (x); alter table none add column y;", newer);
    cr_assert(sql_begin(db, 1, &err));
    cr_assert_not(sql_end(db, schema_update(db, newer, next, &err), NULL, &err));
    snprintf(text, sizeof text, "schema version %zu", next);
    cr_assert(strstr(err.text, text), "%s", err.text);
    snprintf(text, sizeof text, "%zu\n", schema_version);
    ROWS(db, "pragma user_version", text);
    ROWS(db, "select count(*) from sqlite_schema where name = 'extra'", "0\n");
    fixture_remove(&f);
}

/* ---- plans ---- */

/* "SCAN s" over an alias counts as well: every row of the plan that scans names step or evaluation by alias s. */
Test(database, no_query_of_ours_scans_the_curves)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    static const char *const public_queries[] = {
        "select * from runs where experiment = 'x'",
        "select * from runs where run_key = 'x'",
        "select count(*) from runs",
        "select * from curves where experiment = 'x' and variant = 'y' and seed = 1 and split = 'train' and metric = "
        "'loss' order by step",
        "select step, avg(value) from curves where experiment = 'x' and split = 'validation' and metric = 'loss' group "
        "by step",
        "select * from losses where experiment = 'x'",
        "select * from comparisons where experiment = 'x'",
    };
    size_t total = QUERY_COUNT + sizeof public_queries / sizeof public_queries[0];
    for (size_t i = 0; i < total; i++) {
        char sql[4096];
        const char *query = i < QUERY_COUNT ? query_text((enum query)i) : public_queries[i - QUERY_COUNT];
        snprintf(sql, sizeof sql, "explain query plan %s", query);
        sqlite3_stmt *s = sql_prepare(database_handle(f.db), sql, NULL, &err);
        cr_assert(s, "%s: %s", query, err.text);
        bool row;
        size_t lines = 0;
        for (; sql_step(s, &row, &err) && row; lines++) {
            const char *detail = sql_text(s, 3);
            bool scan = strncmp(detail, "SCAN ", 5) == 0;
            cr_assert_not(scan && (strcmp(detail + 5, "s") == 0 || strncmp(detail + 5, "s ", 2) == 0 ||
                                   strncmp(detail + 5, "step", 4) == 0 || strncmp(detail + 5, "evaluation", 10) == 0),
                          "%s: %s", query, detail);
        }
        cr_assert(lines > 0);
        sqlite3_finalize(s);
    }
    fixture_remove(&f);
}

/* ---- finding ---- */

Test(database, runs_are_found_by_prefix_and_by_name)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    static const char *const labels[] = {"baseline", "a/b"};
    struct sweep *sweep = sweep_make("quick", labels, 2, three_seeds, 3, "a");
    freeze(f.db, sweep);
    sqlite3 *db = database_handle(f.db);
    char key[65], prefix[9];
    snprintf(prefix, sizeof prefix, "%.8s", sweep->runs[2].key);
    cr_assert(database_find_run(db, prefix, key, &err), "%s", err.text);
    cr_assert_str_eq(key, sweep->runs[2].key);
    cr_assert(database_find_run(db, sweep->runs[2].key, key, &err));
    cr_assert(database_find_run(db, "quick/a/b/2", key, &err), "%s", err.text);
    cr_assert_str_eq(key, sweep->runs[4].key);

    static const char *const wrong[][2] = {
        {"abc", "expected the first 4 to 64 hexadecimal digits"}, {"xyzw", "experiment/variant/seed"},
        {"ffffffffffffffff", "no run's key begins with"},         {"quik/baseline/1", "did you mean 'quick'"},
        {"quick/baselin/1", "did you mean 'baseline'"},           {"quick/baseline/9", "it has '1', '2', '3'"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_assert_not(database_find_run(db, wrong[i][0], key, &err));
        cr_assert(strstr(err.text, wrong[i][1]), "%s: %s", wrong[i][0], err.text);
    }
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(database, an_ambiguous_prefix_names_candidates)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    snprintf(sweep->runs[0].key, 65, "abcd1%059d", 0);
    snprintf(sweep->runs[1].key, 65, "abcd2%059d", 0);
    freeze(f.db, sweep);
    char key[65];
    cr_assert_not(database_find_run(database_handle(f.db), "abcd", key, &err));
    cr_assert(strstr(err.text, "more than one run's key: abcd10000000, abcd20000000; give more"), "%s", err.text);
    cr_assert(database_find_run(database_handle(f.db), "abcd2", key, &err));
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(database, the_tokenizer_and_configuration_of_a_run_come_back)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    size_t size;
    void *image = database_tokenizer(database_handle(f.db), sweep->runs[0].key, &size, &err);
    cr_assert(image && size == 11 && memcmp(image, "image\0bytes", 11) == 0);
    memory_free(image);
    char *config = database_run_config(database_handle(f.db), sweep->runs[0].key, &err);
    cr_assert_str_eq(config, sweep->runs[0].config_json);
    memory_free(config);
    cr_assert_null(database_tokenizer(database_handle(f.db), "beef", &size, &err));
    cr_assert(strstr(err.text, "no run beef"));
    ROWS(database_handle(f.db), "select count(*) from tokenizer", "1\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(database, hostile_names_are_only_names)
{
    struct fixture f;
    fixture_open(&f);
    static const char *const labels[] = {"baseline", "'); drop table run; --", "`touch x` $(x) %n \xff"};
    struct sweep *sweep = sweep_make("q'; delete from run; --", labels, 3, three_seeds, 1, "a");
    freeze(f.db, sweep);
    for (size_t r = 0; r < 3; r++)
        run_through(f.db, sweep->runs[r].key, 2.0, RUN_FINISHED);
    ROWS(database_handle(f.db), "select count(*) from runs where state = 'finished'", "3\n");
    sweep_release(sweep);
    fixture_remove(&f);
}
