/* Merging databases made by hand: what wins, what is refused, and older files. */
#include <sys/stat.h>

#include "runner/loss_table.h"
#include "runner/merge.h"
#include "runner/schema.h"
#include "runner/shard.h"
#include "tests/database_case.h"

/* Merges other.db of the fixture's folder into its database. */
static bool merged(struct fixture *f, enum merge_kind kind, struct error *err)
{
    char path[128];
    snprintf(path, sizeof path, "%s/other.db", f->folder);
    sqlite3 *source = database_open_source(path, false, err), *db = database_handle(f->db);
    struct merge *merge = merge_begin(db, f->path, kind);
    bool ok = source && sql_begin(db, 1, err) &&
              sql_end(db, merge_add(merge, path, source, err) && merge_finish(merge, err), NULL, err);
    merge_free(merge);
    sqlite3_close(source);
    return ok;
}

static struct database *other_open(const struct fixture *f)
{
    char path[128];
    struct error err;
    snprintf(path, sizeof path, "%s/other.db", f->folder);
    struct database *other = database_open(path, &(struct database_options){.no_wal = true}, &err);
    cr_assert(other, "%s", err.text);
    return other;
}

static void other_close(struct database *other)
{
    struct error err;
    cr_assert(database_close(other, &err), "%s", err.text);
}

Test(merge, what_finished_beats_what_did_not_both_ways)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    struct database *other = other_open(&f);
    freeze(f.db, sweep);
    freeze(other, sweep);
    run_through(f.db, sweep->runs[0].key, 2, RUN_FINISHED);
    run_through(f.db, sweep->runs[1].key, 2, RUN_FAILED);
    run_through(other, sweep->runs[0].key, 2, RUN_INTERRUPTED);
    run_through(other, sweep->runs[1].key, 2, RUN_FINISHED);
    run_through(other, sweep->runs[2].key, 2, RUN_DIVERGED);
    other_close(other);
    database_flush(f.db, 1, &err);
    cr_assert(merged(&f, MERGE_DATABASES, &err), "%s", err.text);
    ROWS(database_handle(f.db), "select variant, seed, state, step from runs order by 1, 2",
         "baseline|1|finished|4\nbaseline|2|finished|4\nbaseline|3|diverged|3\nrmsnorm|1|queued|0\nrmsnorm|2|queued|0\n"
         "rmsnorm|3|queued|0\n");
    ROWS(database_handle(f.db),
         "select n, n_planned, n_diverged from losses where variant = 'baseline' and split = 'train'", "2|3|1\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(merge, two_curves_of_one_run_are_refused_and_nothing_changes)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    struct database *other = other_open(&f);
    freeze(f.db, sweep);
    freeze(other, sweep);
    run_through(f.db, sweep->runs[0].key, 2, RUN_FINISHED);
    run_through(other, sweep->runs[0].key, nextafter(2, 3), RUN_FINISHED);
    run_through(other, sweep->runs[1].key, 2, RUN_FINISHED);
    other_close(other);
    database_flush(f.db, 1, &err);
    cr_assert_not(merged(&f, MERGE_DATABASES, &err));
    cr_assert(strstr(err.text, "two different curves"), "%s", err.text);
    cr_assert(strstr(err.text, "results.db'") && strstr(err.text, "other.db'"), "%s", err.text);
    ROWS(database_handle(f.db), "select count(*) from runs where state = 'finished'", "1\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(merge, an_older_read_only_database_is_migrated_in_a_copy)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    char path[128];
    struct sweep *sweep = sweep_small("quick", "a");
    struct database *other = other_open(&f);
    freeze(other, sweep);
    run_through(other, sweep->runs[0].key, 2, RUN_FINISHED);
    cr_assert(database_flush(other, 1, &err));
    /* What the first version did not have. */
    cr_assert(sql_script(database_handle(other),
                         "drop view runs; alter table run drop column floor; alter table run drop column earlier_cpus; "
                         "alter table experiment drop column choices; pragma user_version = 1",
                         &err),
              "%s", err.text);
    other_close(other);
    snprintf(path, sizeof path, "%s/other.db", f.folder);
    cr_assert_eq(chmod(path, 0444), 0);
    struct stat before, after;
    stat(path, &before);
    cr_assert(merged(&f, MERGE_DATABASES, &err), "%s", err.text);
    stat(path, &after);
    cr_assert_eq(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    ROWS(database_handle(f.db), "select count(*), sum(state = 'finished') from runs", "6|1\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

/* As when one of the two was frozen by a version that did not look for the floor of a text. */
static void assert_floor_of_all(double in_target, double in_source)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    struct database *other = other_open(&f);
    sweep->datasets->floor = in_target;
    freeze(f.db, sweep);
    sweep->datasets->floor = in_source;
    freeze(other, sweep);
    run_through(f.db, sweep->runs[0].key, 2, RUN_FINISHED);
    run_through(other, sweep->runs[1].key, 2, RUN_FINISHED);
    run_through(f.db, sweep->runs[2].key, 2, RUN_FINISHED);
    run_through(other, sweep->runs[2].key, 2, RUN_FINISHED);
    other_close(other);
    database_flush(f.db, 1, &err);
    cr_assert(merged(&f, MERGE_DATABASES, &err), "%s", err.text);
    ROWS(database_handle(f.db), "select floor, count(*), sum(state = 'finished') from run group by floor",
         "4.7000|6|3\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(merge, the_floor_of_a_text_is_kept_whoever_knows_it_and_whichever_run_stays)
{
    assert_floor_of_all(0, 4.7);
    assert_floor_of_all(4.7, 0);
}

Test(merge, a_column_that_a_later_version_adds_comes_along)
{
    static const char *const adds =
        "alter table run add column colour text; alter table experiment add column colour text";
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    struct database *other = other_open(&f);
    freeze(f.db, sweep);
    freeze(other, sweep);
    run_through(other, sweep->runs[0].key, 2, RUN_FINISHED);
    database_flush(other, 1, &err);
    cr_assert(sql_script(database_handle(f.db), adds, &err) && sql_script(database_handle(other), adds, &err));
    cr_assert(sql_script(database_handle(other),
                         "update run set colour = key where state = 'finished'; "
                         "update experiment set colour = 'red', frozen_at = '9' || frozen_at",
                         &err));
    other_close(other);
    cr_assert(merged(&f, MERGE_DATABASES, &err), "%s", err.text);
    ROWS(database_handle(f.db), "select count(*) from run where colour = key and state = 'finished'", "1\n");
    ROWS(database_handle(f.db), "select experiment.colour, tokenizer from experiment, run where state = 'finished'",
         "red|1\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(merge, a_run_that_was_being_trained_counts_as_interrupted)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    struct database *other = other_open(&f);
    freeze(other, sweep);
    cr_assert(database_run_start(other, sweep->runs[0].key, 0, &environment, NULL, 0, NULL, 0, &err));
    other_close(other);
    cr_assert(merged(&f, MERGE_DATABASES, &err), "%s", err.text);
    ROWS(database_handle(f.db), "select state, reason from runs where variant = 'baseline' and seed = 1",
         "interrupted|it was being trained when it was merged\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(merge, a_task_that_goes_on_adds_its_new_steps)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    const char *key = sweep->runs[0].key;
    struct database *other = other_open(&f);
    freeze(f.db, sweep);
    freeze(other, sweep);
    cr_assert(database_run_start(other, key, 0, &environment, NULL, 0, NULL, 0, &err));
    for (int64_t s = 0; s < 4; s++) {
        struct step_record record = step_of(s, 5 - (double)s);
        cr_assert(database_step(other, key, &record, &err) && database_flush(other, 1, &err), "%s", err.text);
        cr_assert(merged(&f, MERGE_TASKS, &err), "%s", err.text);
        char want[32];
        snprintf(want, sizeof want, "running|%d\n", (int)s + 1);
        ROWS(database_handle(f.db), "select state, step from runs where variant = 'baseline' and seed = 1", want);
    }
    cr_assert(database_run_end(other, key, RUN_FINISHED, NULL, NULL, &err));
    other_close(other);
    cr_assert(merged(&f, MERGE_TASKS, &err), "%s", err.text);
    ROWS(database_handle(f.db), "select state, step, train_loss from runs where variant = 'baseline' and seed = 1",
         "finished|4|2.0000\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(merge, seeds_and_variants_of_one_experiment_add_up)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    static const int64_t low[] = {1}, high[] = {2, 3};
    static const char *const both[] = {"baseline", "rmsnorm"}, *const one[] = {"baseline"};
    struct sweep *first = sweep_make("quick", both, 2, low, 1, "a"),
                 *second = sweep_make("quick", one, 1, high, 2, "a");
    first->choice = memory_copy_text("[\"--seeds\",\"1\"]");
    second->choice = memory_copy_text("[\"--only\",\"baseline\"]");
    struct database *other = other_open(&f);
    freeze(f.db, first);
    freeze(other, second);
    other_close(other);
    cr_assert(merged(&f, MERGE_DATABASES, &err), "%s", err.text);
    ROWS(database_handle(f.db), "select variant, count(*), min(seed), max(seed) from runs group by 1",
         "baseline|3|1|3\nrmsnorm|1|1|1\n");
    ROWS(database_handle(f.db), "select variant, baseline from variants order by 1", "baseline|1\nrmsnorm|0\n");
    /* And so do the commands that made them. */
    ROWS(database_handle(f.db), "select replace(choices, char(10), ';') from experiment",
         "[\"--only\",\"baseline\"];[\"--seeds\",\"1\"];\n");
    cr_assert(merged(&f, MERGE_DATABASES, &err), "%s", err.text);
    ROWS(database_handle(f.db), "select replace(choices, char(10), ';') from experiment",
         "[\"--only\",\"baseline\"];[\"--seeds\",\"1\"];\n");
    /* What has none, from before they were kept, is the file as it is. */
    cr_assert(sql_script(database_handle(f.db), "update experiment set choices = ''", &err), "%s", err.text);
    cr_assert(merged(&f, MERGE_DATABASES, &err), "%s", err.text);
    ROWS(database_handle(f.db), "select replace(choices, char(10), ';') from experiment",
         "[\"--only\",\"baseline\"];[];\n");
    sweep_release(first);
    sweep_release(second);
    fixture_remove(&f);
}

/* The set of "a" in one database; in the other it, and the set of "b" that came after. */
static void changed_since(struct fixture *f, bool target_changed)
{
    struct error err;
    struct sweep *before = sweep_small("quick", "a"), *after = sweep_small("quick", "b");
    struct database *other = other_open(f), *changed = target_changed ? f->db : other;
    freeze(f->db, before);
    freeze(other, before);
    run_through(f->db, before->runs[0].key, 2, RUN_FINISHED);
    run_through(other, before->runs[0].key, 2, RUN_FINISHED);
    freeze(changed, after);
    run_through(changed, after->runs[0].key, 1, RUN_FINISHED);
    other_close(other);
    database_flush(f->db, 1, &err);
    sweep_release(before);
    sweep_release(after);
}

static void assert_both_sets(struct fixture *f)
{
    struct error err;
    cr_assert(merged(f, MERGE_DATABASES, &err), "%s", err.text);
    ROWS(database_handle(f->db),
         "select experiment, variant, seed, state from runs where state <> 'queued' order by experiment",
         "quick|baseline|1|finished\nquick@1|baseline|1|finished\n");
    ROWS(database_handle(f->db),
         "select experiment, mean from losses where split = 'validation' and metric = 'bits_per_byte' and n = 1 "
         "order by experiment",
         "quick|1.0000\nquick@1|2.0000\n");
}

Test(merge, a_set_that_is_kept_as_an_earlier_one_is_merged_both_ways_and_again)
{
    for (int way = 0; way < 2; way++) {
        struct fixture f;
        fixture_open(&f);
        changed_since(&f, way == 0);
        assert_both_sets(&f);
        assert_both_sets(&f);
        fixture_remove(&f);
    }
}

Test(merge, a_set_that_no_database_keeps_as_an_earlier_one_is_refused)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    changed_since(&f, true);
    /* One run more than was there when the earlier set was kept. */
    struct sweep *before = sweep_small("quick", "a");
    struct database *other = other_open(&f);
    run_through(other, before->runs[1].key, 2, RUN_FINISHED);
    other_close(other);
    cr_assert_not(merged(&f, MERGE_DATABASES, &err));
    cr_assert(strstr(err.text, "experiment 'quick' means different runs by variant 'baseline', seed 1"), "%s",
              err.text);
    ROWS(database_handle(f.db), "select count(*) from runs where state <> 'queued'", "2\n");
    sweep_release(before);
    fixture_remove(&f);
}

Test(merge, a_command_without_its_end_is_left_out)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    struct database *other = other_open(&f);
    freeze(other, sweep);
    cr_assert(sql_script(database_handle(other), "update experiment set choices = choices || '[\"--se'", &err));
    other_close(other);
    cr_assert(merged(&f, MERGE_DATABASES, &err), "%s", err.text);
    ROWS(database_handle(f.db), "select choices from experiment", "[]\n\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(merge, a_change_of_processor_within_a_run_is_recorded)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    const char *key = sweep->runs[0].key;
    struct step_record step = step_of(0, 5);
    struct run_environment later = environment;
    snprintf(later.cpu, sizeof later.cpu, "Zen 4");
    freeze(f.db, sweep);
    cr_assert(database_run_start(f.db, key, 0, &environment, NULL, 0, NULL, 0, &err));
    cr_assert(database_run_start(f.db, key, 1, &environment, &step, 1, NULL, 0, &err));
    ROWS(database_handle(f.db), "select cpu from runs where step = 1", "Zen 3 (v3)\n");
    cr_assert(database_run_start(f.db, key, 1, &later, &step, 1, NULL, 0, &err));
    ROWS(database_handle(f.db), "select cpu from runs where step = 1",
         "Zen 4 (v3); before step 1: Zen 3, v3, Haswell\n");
    /* From the start again, all of it on one processor. */
    cr_assert(database_run_start(f.db, key, 0, &environment, NULL, 0, NULL, 0, &err));
    ROWS(database_handle(f.db), "select cpu from runs where started_at is not null", "Zen 3 (v3)\n");
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(merge, a_task_that_changed_its_processor_is_marked_in_the_table)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    static char text[8192];
    struct sweep *sweep = sweep_small("quick", "a");
    const char *key = sweep->runs[3].key;
    struct run_environment later = environment;
    struct step_record steps[2] = {step_of(0, 5), step_of(1, 4)};
    struct database *other = other_open(&f);
    freeze(f.db, sweep);
    freeze(other, sweep);
    run_through(f.db, sweep->runs[0].key, 2, RUN_FINISHED);
    run_through(other, key, 2, RUN_FINISHED);
    other_close(other);
    cr_assert(merged(&f, MERGE_TASKS, &err), "%s", err.text);
    /* The same task on another node, from its second step on, comes in after the first. */
    other = other_open(&f);
    snprintf(later.kernels, sizeof later.kernels, "v4");
    cr_assert(database_run_start(other, key, 2, &later, steps, 2, NULL, 0, &err), "%s", err.text);
    for (int64_t s = 2; s < 4; s++) {
        struct step_record record = step_of(s, 2);
        cr_assert(database_step(other, key, &record, &err), "%s", err.text);
    }
    cr_assert(database_run_end(other, key, RUN_FINISHED, NULL, NULL, &err), "%s", err.text);
    other_close(other);
    cr_assert(sql_run(database_handle(f.db), "update run set state = 'running' where key = ?", "t", &err, key));
    cr_assert(merged(&f, MERGE_TASKS, &err), "%s", err.text);
    ROWS(database_handle(f.db), "select variant, state, cpu from runs where step = 4 order by variant",
         "baseline|finished|Zen 3 (v3)\nrmsnorm|finished|Zen 3 (v4); before step 2: Zen 3, v3, Haswell\n");
    struct loss_table *table = loss_table_read(
        database_handle(f.db), database_find_experiment(database_handle(f.db), "quick", &err), "loss", "train", &err);
    cr_assert(table, "%s", err.text);
    cr_assert(table->rows[1].marks & 1u << MARK_CPU_CHANGED);
    cr_assert_not(table->rows[0].marks & 1u << MARK_CPU_CHANGED);
    FILE *out = fmemopen(text, sizeof text, "w");
    loss_table_write(table, TABLE_TEXT, 100, out);
    fclose(out);
    cr_assert(strstr(text, "a run of it changed its processor or kernels on the way"), "%s", text);
    loss_table_free(table);
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(shard, parts_are_disjoint_and_whole)
{
    struct error err;
    for (uint64_t count = 1; count < 5; count++)
        for (int k = 0; k < 50; k++) {
            char key[65], text[16];
            snprintf(text, sizeof text, "%d", k);
            hash_bytes(text, strlen(text), key);
            size_t parts = 0;
            for (uint64_t i = 0; i < count; i++)
                parts += shard_has((struct shard){i, count}, key);
            cr_assert_eq(parts, 1);
        }
    struct shard shard;
    cr_assert(shard_parse("2/3", &shard, &err) && shard.index == 2 && shard.count == 3);
    cr_assert(shard_has((struct shard){15, 16}, "00000000000000ff000000000000000000"));
}
