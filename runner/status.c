/* What runs now and how far it is. */
#include "runner/status.h"

#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "runner/json.h"
#include "runner/progress.h"
#include "runner/query.h"
#include "runner/sql.h"
#include "runner/table.h"

/* ---- reading ---- */

static bool counts_read(sqlite3 *db, struct status *status, struct error *err)
{
    sqlite3_stmt *s = sql_prepare(db, query_text(QUERY_STATUS_COUNTS), NULL, err);
    bool row, ok = s != NULL;
    while (ok && (ok = sql_step(s, &row, err)) && row) {
        int64_t id = sqlite3_column_int64(s, 0);
        size_t n = status->experiment_count;
        if (n == 0 || status->experiments[n - 1].id != id) {
            status->experiments =
                memory_grow(status->experiments, n * sizeof *status->experiments, n + 1, sizeof *status->experiments);
            status->experiments[n] = (struct status_experiment){
                .id = id, .name = memory_copy_text(sql_text(s, 1)), .seconds_left = (double)NAN};
            status->experiment_count++;
        }
        enum run_state state = run_state_find(sql_text(s, 2));
        if (state == RUN_RUNNING && !*status->holder && !status->elsewhere)
            state = RUN_INTERRUPTED;
        status->experiments[status->experiment_count - 1].counts[state] += sqlite3_column_int64(s, 3);
    }
    sqlite3_finalize(s);
    return ok;
}

static void run_add(struct status *status, const char *experiment, sqlite3_stmt *s, double rate)
{
    status->runs = memory_grow(status->runs, status->run_count * sizeof *status->runs, status->run_count + 1,
                               sizeof *status->runs);
    struct status_run *run = &status->runs[status->run_count++];
    *run = (struct status_run){
        .experiment = memory_copy_text(experiment),
        .variant = memory_copy_text(sql_text(s, 1)),
        .seed = sqlite3_column_int64(s, 2),
        .steps = sqlite3_column_int64(s, 5),
        .step = sqlite3_column_int64(s, 9),
        .loss = sqlite3_column_int(s, 11) == 0 ? sql_number(s, 10) : (double)NAN,
        .steps_per_second = rate,
    };
    snprintf(run->key, sizeof run->key, "%s", sql_text(s, 3));
    run->seconds_left = (double)(run->steps - run->step) / rate;
}

/* Steps a second of the run's present worker; before its first step, of those before it; NaN when there are none. */
static double rate_of(sqlite3_stmt *s)
{
    double step = sqlite3_column_double(s, 9), since = step - sqlite3_column_double(s, 6), elapsed = sql_number(s, 8);
    if (since > 0 && elapsed > 0)
        return since / elapsed;
    double seconds = sql_number(s, 12);
    return step > 0 && seconds > 0 ? step / seconds : (double)NAN;
}

/* Work is counted in floating point operations, so that variants of different size add up. */
static bool runs_read(sqlite3 *db, struct status *status, struct status_experiment *experiment, struct error *err)
{
    double work = 0, speed = 0, running = 0, known = 0;
    sqlite3_stmt *s = sql_prepare(db, query_text(QUERY_STATUS_RUNS), "i", err, experiment->id);
    bool row, ok = s != NULL;
    while (ok && (ok = sql_step(s, &row, err)) && row) {
        double cost = sqlite3_column_double(s, 7);
        work += cost * (double)(sqlite3_column_int64(s, 5) - sqlite3_column_int64(s, 9));
        if (run_state_find(sql_text(s, 4)) != RUN_RUNNING)
            continue;
        double rate = rate_of(s);
        run_add(status, experiment->name, s, rate);
        running++;
        known += isfinite(rate) ? 1 : 0;
        speed += isfinite(rate) ? rate * cost : 0;
    }
    sqlite3_finalize(s);
    if (speed > 0)
        experiment->seconds_left = work / (speed * running / known);
    return ok;
}

struct status *status_read_elsewhere(sqlite3 *db, const char *path, bool elsewhere, struct error *err)
{
    struct status *status = memory_alloc(1, sizeof *status);
    status->elsewhere = elsewhere;
    database_lock_holder(path, status->holder, sizeof status->holder);
    bool ok = counts_read(db, status, err);
    for (size_t i = 0; ok && (*status->holder || elsewhere) && i < status->experiment_count; i++)
        if (status->experiments[i].counts[RUN_RUNNING])
            ok = runs_read(db, status, &status->experiments[i], err);
    if (!ok) {
        status_free(status);
        return NULL;
    }
    return status;
}

struct status *status_read(sqlite3 *db, const char *path, struct error *err)
{
    return status_read_elsewhere(db, path, false, err);
}

void status_free(struct status *status)
{
    if (!status)
        return;
    for (size_t i = 0; i < status->experiment_count; i++)
        memory_free(status->experiments[i].name);
    for (size_t i = 0; i < status->run_count; i++) {
        memory_free(status->runs[i].experiment);
        memory_free(status->runs[i].variant);
    }
    memory_free(status->experiments);
    memory_free(status->runs);
    memory_free(status);
}

/* ---- printing ---- */

/* The order of a run's life. */
static const enum run_state shown_states[] = {RUN_QUEUED,   RUN_RUNNING, RUN_FINISHED,
                                              RUN_DIVERGED, RUN_FAILED,  RUN_INTERRUPTED};
enum { SHOWN_STATES = sizeof shown_states / sizeof shown_states[0] };

static void time_cell(struct table *table, double seconds)
{
    char text[PROGRESS_TIME_SIZE];
    if (isfinite(seconds))
        table_shown(table, seconds, progress_time(seconds, text));
    else
        table_absent(table, "-");
}

static struct table *experiments_table(const struct status *status)
{
    struct table *table = table_create();
    table_column(table, "experiment", TABLE_LEFT);
    for (size_t i = 0; i < SHOWN_STATES; i++)
        table_column(table, run_state_name(shown_states[i]), TABLE_RIGHT);
    table_column(table, "seconds_left", TABLE_RIGHT);
    for (size_t e = 0; e < status->experiment_count; e++) {
        const struct status_experiment *x = &status->experiments[e];
        table_text(table, x->name);
        for (size_t i = 0; i < SHOWN_STATES; i++)
            table_integer(table, x->counts[shown_states[i]]);
        table_number(table, x->seconds_left, "%.1f");
    }
    return table;
}

static struct table *runs_table(const struct status *status)
{
    static const char *const names[] = {"experiment", "variant",          "seed", "run_key",     "step",
                                        "steps",      "steps_per_second", "loss", "seconds_left"};
    struct table *table = table_create();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        table_column(table, names[i], TABLE_LEFT);
    for (size_t r = 0; r < status->run_count; r++) {
        const struct status_run *x = &status->runs[r];
        table_text(table, x->experiment);
        table_text(table, x->variant);
        table_integer(table, x->seed);
        table_text(table, x->key);
        table_integer(table, x->step);
        table_integer(table, x->steps);
        table_number(table, x->steps_per_second, "%.2f");
        table_number(table, x->loss, "%.4f");
        table_number(table, x->seconds_left, "%.1f");
    }
    return table;
}

static struct table *tasks_table(const struct status *status)
{
    static const char *const names[] = {"experiment", "state", "reason", "tasks"};
    struct table *table = table_create();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        table_column(table, names[i], i == 3 ? TABLE_RIGHT : TABLE_LEFT);
    for (size_t t = 0; t < status->task_count; t++) {
        const struct status_tasks *x = &status->tasks[t];
        table_text(table, x->experiment);
        table_text(table, x->state);
        table_text(table, *x->reason ? x->reason : NULL);
        table_integer(table, x->count);
    }
    return table;
}

void status_print_json(const struct status *status, FILE *out)
{
    struct table *experiments = experiments_table(status), *runs = runs_table(status), *tasks = tasks_table(status);
    json_t *root = json_object();
    json_put(root, "holder", json_from_text(*status->holder ? status->holder : NULL));
    json_put(root, "experiments", table_json(experiments));
    json_put(root, "running", table_json(runs));
    json_put(root, "cluster", table_json(tasks));
    json_print(root, out);
    json_decref(root);
    table_free(experiments);
    table_free(runs);
    table_free(tasks);
}

static void print_experiments(const struct status *status, int width, FILE *out)
{
    struct table *table = table_create();
    table_caption(table, "%s%s",
                  *status->holder     ? "Open for writing by "
                  : status->elsewhere ? "On a cluster; nobody follows now."
                                      : "Nothing is being trained now.",
                  status->holder);
    table_column(table, "experiment", TABLE_LEFT);
    for (size_t i = 0; i < SHOWN_STATES; i++)
        table_column(table, run_state_name(shown_states[i]), TABLE_RIGHT);
    table_column(table, "time left", TABLE_RIGHT);
    for (size_t e = 0; e < status->experiment_count; e++) {
        const struct status_experiment *x = &status->experiments[e];
        table_text(table, x->name);
        for (size_t i = 0; i < SHOWN_STATES; i++)
            if (x->counts[shown_states[i]])
                table_integer(table, x->counts[shown_states[i]]);
            else
                table_absent(table, "-");
        time_cell(table, x->seconds_left);
    }
    table_write(table, TABLE_TEXT, width, out);
    table_free(table);
}

static void print_runs(const struct status *status, int width, FILE *out)
{
    struct table *table = table_create();
    static const char *const headings[] = {"running", "seed", "step", "steps/s", "loss", "time left"};
    for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++)
        table_column(table, headings[i], i ? TABLE_RIGHT : TABLE_LEFT);
    for (size_t r = 0; r < status->run_count; r++) {
        const struct status_run *x = &status->runs[r];
        char step[32], steps[32];
        table_textf(table, "%s/%s", x->experiment, x->variant);
        table_textf(table, "%lld", (long long)x->seed);
        table_textf(table, "%s/%s", format_count(x->step, step), format_count(x->steps, steps));
        table_number(table, x->steps_per_second, "%.2f");
        table_number(table, x->loss, "%.4f");
        time_cell(table, x->seconds_left);
    }
    table_write(table, TABLE_TEXT, width, out);
    table_free(table);
}

void status_print(const struct status *status, int width, FILE *out)
{
    if (status->experiment_count == 0) {
        fprintf(out, "The database has no experiment yet: `runner run FILE` adds one.\n");
        return;
    }
    print_experiments(status, width, out);
    if (status->run_count) {
        fputc('\n', out);
        print_runs(status, width, out);
    }
    if (status->task_count) {
        struct table *table = tasks_table(status);
        table_caption(table, "Tasks on the cluster of runs that have not ended:");
        fputc('\n', out);
        table_write(table, TABLE_TEXT, width, out);
        table_free(table);
    }
}
