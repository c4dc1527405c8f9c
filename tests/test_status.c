/* What runs now and how long it will take, from a second connection. */
#include "runner/status.h"

#include "runner/json.h"
#include "tests/database_case.h"

static struct status *status_of(struct fixture *f)
{
    struct error err;
    sqlite3 *reader = database_open_reader(f->path, &err);
    cr_assert(reader, "%s", err.text);
    struct status *status = status_read(reader, f->path, &err);
    cr_assert(status, "%s", err.text);
    sqlite3_close(reader);
    return status;
}

/* One run is finished; one was resumed at step 2 of 4 and has made one step in the 10 s since; four are queued. Speed:
 * 0.1 steps a second. Left: 1 step of this run and 4 of each queued one, all of one cost: 17 steps, 170 s. The finished
 * run, and that the first two steps took a second, do not count. Clock and commit: within a second of 10 s. */
Test(status, time_left_counts_only_what_this_worker_did)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    run_through(f.db, sweep->runs[0].key, 2.0, RUN_FINISHED);
    struct step_record kept[] = {step_of(0, 9), step_of(1, 8)}, next = step_of(2, 7);
    cr_assert(database_run_start(f.db, sweep->runs[1].key, 2, &environment, kept, 2, NULL, 0, &err));
    cr_assert(database_step(f.db, sweep->runs[1].key, &next, &err) && database_flush(f.db, 1, &err));
    cr_assert(sql_script(database_handle(f.db), "update run set process_started = process_started - 10", &err));
    struct status *status = status_of(&f);
    cr_assert_eq(status->experiment_count, 1);
    const struct status_experiment *e = &status->experiments[0];
    cr_assert(e->counts[RUN_FINISHED] == 1 && e->counts[RUN_RUNNING] == 1 && e->counts[RUN_QUEUED] == 4);
    cr_assert_eq(status->run_count, 1);
    const struct status_run *run = &status->runs[0];
    cr_assert_str_eq(run->variant, "baseline");
    cr_assert(run->seed == 2 && run->step == 3 && run->steps == 4);
    cr_assert(run->steps_per_second > 0.09 && run->steps_per_second <= 0.1, "%g", run->steps_per_second);
    cr_assert(run->seconds_left >= 10 && run->seconds_left < 11.2, "%g", run->seconds_left);
    cr_assert(e->seconds_left >= 170 && e->seconds_left < 187, "%g", e->seconds_left);
    cr_assert(strstr(status->holder, "pid "), "%s", status->holder);
    status_free(status);
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(status, runs_of_a_process_that_is_gone_do_not_run)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    cr_assert(database_run_start(f.db, sweep->runs[0].key, 0, &environment, NULL, 0, NULL, 0, &err));
    fixture_close(&f);
    struct status *status = status_of(&f);
    cr_assert_str_eq(status->holder, "");
    cr_assert_eq(status->experiments[0].counts[RUN_INTERRUPTED], 1);
    cr_assert_eq(status->experiments[0].counts[RUN_RUNNING], 0);
    cr_assert_eq(status->run_count, 0);
    status_free(status);
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(status, text_and_json_agree)
{
    struct fixture f;
    fixture_open(&f);
    struct error err;
    static char text[4096], json[4096];
    struct sweep *sweep = sweep_small("quick", "a");
    freeze(f.db, sweep);
    cr_assert(database_run_start(f.db, sweep->runs[0].key, 0, &environment, NULL, 0, NULL, 0, &err));
    struct status *status = status_of(&f);
    snprintf(status->holder, sizeof status->holder, "pid 1 on box: runner run x");
    FILE *out = fmemopen(text, sizeof text, "w");
    status_print(status, 100, out);
    fclose(out);
    const char *want = "Open for writing by pid 1 on box: runner run x\n"
                       "experiment  queued  running  finished  diverged  failed  interrupted  time left\n"
                       "-------------------------------------------------------------------------------\n"
                       "quick            5        1         -         -       -            -          -\n"
                       "\n"
                       "running         seed  step  steps/s  loss  time left\n"
                       "----------------------------------------------------\n"
                       "quick/baseline     1   0/4      n/a   n/a          -\n";
    cr_assert(strcmp(text, want) == 0, "%s", text);
    out = fmemopen(json, sizeof json, "w");
    status_print_json(status, out);
    fclose(out);
    json_t *root = json_loads(json, 0, NULL);
    cr_assert(root, "%s", json);
    json_t *run = json_array_get(json_object_get(root, "running"), 0);
    cr_assert_eq(json_integer_value(json_object_get(run, "steps")), 4);
    cr_assert(json_is_null(json_object_get(run, "loss")));
    cr_assert_eq(json_integer_value(json_object_get(json_array_get(json_object_get(root, "experiments"), 0), "queued")),
                 5);
    json_decref(root);
    status_free(status);
    sweep_release(sweep);
    fixture_remove(&f);
}
