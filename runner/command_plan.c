/* runner plan: what `run` would do with each run of a file, and what it would cost. Changes nothing. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/memory.h"
#include "runner/command.h"
#include "runner/detect.h"
#include "runner/estimate.h"
#include "runner/footprint.h"
#include "runner/json.h"
#include "runner/session.h"
#include "runner/shadow.h"
#include "runner/supervisor.h"
#include "runner/table.h"

static void measure_note(const char *text)
{
    message("note: %s", text);
}

/* Why a run would, or would not, train. Returns buf. */
static const char *why(const struct planned_run *planned, char *buf, size_t size)
{
    switch (planned->action) {
    case ACTION_NEW:
        snprintf(buf, size, "%s",
                 planned->state == RUN_NONE     ? "not in the database"
                 : planned->state == RUN_QUEUED ? "queued, never started"
                                                : "stopped before its first checkpoint");
        break;
    case ACTION_RESUME: snprintf(buf, size, "checkpoint at step %" PRId64, planned->step); break;
    case ACTION_RETRY:
        snprintf(buf, size, "%s: %.200s", planned->state == RUN_DIVERGED ? "diverged" : "failed", planned->reason);
        break;
    case ACTION_FINISHED: snprintf(buf, size, "in the database"); break;
    case ACTION_DIVERGED: snprintf(buf, size, "%.200s; --retry diverged trains it again", planned->reason); break;
    case ACTION_FAILED: snprintf(buf, size, "%.200s; --retry failed trains it again", planned->reason); break;
    case ACTION_DUPLICATE: snprintf(buf, size, "the same run as one above"); break;
    case ACTION_ELSEWHERE: snprintf(buf, size, "of another part of the sweep"); break;
    case ACTION_COUNT: buf[0] = 0; break;
    }
    return buf;
}

/* 5.4e14 as "540 TFLOP", 0.3e9 as "0.3 GFLOP". */
static const char *flops_format(double flops, char buf[32])
{
    static const char units[] = "kMGTPE";
    size_t unit = 0;
    for (flops /= 1e3; flops >= 1000 && units[unit + 1]; unit++)
        flops /= 1e3;
    snprintf(buf, 32, "%.3g %cFLOP", flops, units[unit]);
    return buf;
}

static const char *seconds_format(double seconds, char buf[32])
{
    if (isnan(seconds))
        snprintf(buf, 32, "-");
    else if (seconds < 1)
        snprintf(buf, 32, "< 1 s");
    else if (seconds < 99.5)
        snprintf(buf, 32, "%.0f s", seconds);
    else if (seconds < 99.5 * 60)
        snprintf(buf, 32, "%.0f min", seconds / 60);
    else
        snprintf(buf, 32, "%.1f h", seconds / 3600);
    return buf;
}

/* "1 run", "2 runs". */
static void counted(const char *before, size_t count, const char *noun)
{
    printf("%s%zu %s%s", before, count, noun, count == 1 ? "" : "s");
}

static double memory_of(const struct sweep *sweep, size_t index)
{
    const struct run *run = &sweep->runs[index];
    const struct dataset *dataset = &sweep->datasets[run->dataset];
    struct footprint footprint;
    footprint_predict(&sweep->experiment->variants[run->variant].config, tokenizer_vocab_size(dataset->tokenizer),
                      dataset, &footprint);
    return (double)footprint.total;
}

/* Of a run that will train. */
static double memory_largest(const struct sweep *sweep, const struct schedule *schedule)
{
    double largest = 0;
    for (size_t i = 0; i < sweep->run_count; i++)
        if (run_action_trains(schedule->runs[i].action))
            largest = fmax(largest, memory_of(sweep, i));
    return largest;
}

static void plan_print(const struct session *session, const struct schedule *schedule, const struct estimate *estimate,
                       size_t workers)
{
    const struct sweep *sweep = session->sweep;
    char buf[512], time[32], flops[32];
    struct table *table = table_create();
    table_column(table, "variant", TABLE_LEFT);
    table_column(table, "seed", TABLE_RIGHT);
    table_column(table, "parameters", TABLE_RIGHT);
    table_column(table, "per token", TABLE_RIGHT);
    table_column(table, "in all", TABLE_RIGHT);
    table_column(table, "steps/s", TABLE_RIGHT);
    table_column(table, "time", TABLE_RIGHT);
    table_column(table, "action", TABLE_LEFT);
    table_column(table, "why", TABLE_LEFT);
    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct run *run = &sweep->runs[i];
        const struct run_estimate *cost = &estimate->runs[i];
        bool trains = run_action_trains(schedule->runs[i].action);
        table_text(table, sweep->experiment->variants[run->variant].label);
        table_textf(table, "%" PRId64, run->seed);
        table_text(table, format_count(run->parameters, time));
        table_text(table, flops_format(run->flops_per_token, flops));
        table_text(table, flops_format(cost->flops, flops));
        if (trains && !isnan(cost->steps_per_second))
            table_number(table, cost->steps_per_second, cost->steps_per_second < 100 ? "%.3g" : "%.0f");
        else
            table_absent(table, "-");
        table_text(table, trains ? seconds_format(cost->seconds, time) : "-");
        table_text(table, run_action_name(schedule->runs[i].action));
        table_text(table, why(&schedule->runs[i], buf, sizeof buf));
    }
    table_write(table, TABLE_TEXT, 0, stdout);
    table_free(table);
    counted("\n", schedule->total, "run");
    counted(" (", sweep->experiment->variant_count, "variant");
    counted(", ", sweep->experiment->seed_count, "seed");
    printf("): ");
    if (!schedule->to_train) {
        printf("nothing to do\n");
        return;
    }
    printf("%zu", schedule->to_train);
    printf(" to train; %s; ", flops_format(estimate->flops, flops));
    if (!isnan(estimate->seconds))
        printf("about %s", seconds_format(estimate->seconds, time));
    else
        printf("time unknown");
    counted(" with ", workers, "worker");
    printf("; about %.0f MB of disk, %.0f MB of memory a worker\n", ceil((double)estimate->disk_bytes / 1e6),
           ceil(memory_largest(sweep, schedule) / 1e6));
}

static double node_hours(const struct sweep *sweep, const struct estimate *estimate)
{
    double seconds = 0;
    for (size_t i = 0; i < sweep->run_count; i++)
        seconds += estimate->runs[i].seconds;
    return seconds / 3600;
}

/* On nodes as fast as this machine, with no waiting in the queue. */
static void cluster_print(const struct sweep *sweep, const struct schedule *schedule, const struct estimate *estimate,
                          size_t at_once)
{
    if (!schedule->to_train)
        return;
    counted("cluster: ", schedule->to_train, "task");
    printf(", %zu at once; ", at_once);
    if (isnan(estimate->seconds)) {
        printf("node hours and end time unknown without measured steps\n");
        return;
    }
    char text[32];
    time_t end = time(NULL) + (time_t)ceil(estimate->seconds);
    struct tm local;
    strftime(text, sizeof text, "%Y-%m-%d %H:%M", localtime_r(&end, &local));
    printf("%.3g node hours; started now, the last would end at %s\n", node_hours(sweep, estimate), text);
}

static void plan_print_json(const struct session *session, const struct schedule *schedule,
                            const struct estimate *estimate, size_t workers, const struct detection *detection)
{
    const struct sweep *sweep = session->sweep;
    json_t *root = json_object(), *runs = json_array(), *total = json_object();
    char buf[512];
    json_put(root, "experiment", json_from_text(sweep->experiment->name));
    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct run *run = &sweep->runs[i];
        bool trains = run_action_trains(schedule->runs[i].action);
        json_t *row = json_object();
        json_put(row, "key", json_from_text(run->key));
        json_put(row, "variant", json_from_text(sweep->experiment->variants[run->variant].label));
        json_put(row, "seed", json_integer(run->seed));
        json_put(row, "parameters", json_integer(run->parameters));
        json_put(row, "action", json_from_text(run_action_name(schedule->runs[i].action)));
        json_put(row, "reason", json_from_text(why(&schedule->runs[i], buf, sizeof buf)));
        json_put(row, "step", json_integer(schedule->runs[i].step));
        json_put(row, "steps", json_integer(sweep->experiment->variants[run->variant].config.training.steps));
        json_put(row, "flops_per_token", json_from_double(run->flops_per_token));
        json_put(row, "flops", json_from_double(estimate->runs[i].flops));
        json_put(row, "steps_per_second", json_from_double(estimate->runs[i].steps_per_second));
        json_put(row, "seconds", json_from_double(trains ? estimate->runs[i].seconds : 0));
        json_put(row, "memory_bytes", json_integer((json_int_t)memory_of(sweep, i)));
        json_push(runs, row);
    }
    json_put(root, "runs", runs);
    json_put(total, "runs", json_integer((json_int_t)schedule->total));
    json_put(total, "to_train", json_integer((json_int_t)schedule->to_train));
    json_put(total, "workers", json_integer((json_int_t)workers));
    json_put(total, "node_hours", json_from_double(node_hours(sweep, estimate)));
    json_put(total, "flops", json_from_double(estimate->flops));
    json_put(total, "evaluation_flops", json_from_double(estimate->evaluation_flops));
    json_put(total, "seconds", json_from_double(estimate->seconds));
    json_put(total, "worker_memory_bytes", json_integer((json_int_t)memory_largest(sweep, schedule)));
    json_put(total, "disk_bytes", json_integer((json_int_t)estimate->disk_bytes));
    json_put(root, "total", total);
    if (detection)
        json_put(root, "detect", detection_json(detection));
    json_print(root, stdout);
    json_decref(root);
}

/* detection: NULL when it was not asked for. */
static void plan_show(struct session *session, sqlite3 *reader, struct retry retry, const struct detection *detection)
{
    struct schedule schedule;
    struct estimate estimate;
    bool cluster = option_text(session->arguments, "launcher", NULL) != NULL;
    schedule_make(&schedule, reader, session->sweep, session->checkpoints, retry);
    /* A cluster takes all at once unless told otherwise. */
    size_t all = schedule.to_train ? schedule.to_train : 1;
    size_t workers =
        (size_t)option_integer(session->arguments, "workers", (int64_t)(cluster ? all : supervisor_cores()));
    workers = cluster && workers > all ? all : workers;
    estimate_make(&estimate, session->sweep, &schedule, workers, !option_flag(session->arguments, "no-measure"),
                  measure_note);
    if (session->arguments->json)
        plan_print_json(session, &schedule, &estimate, workers, detection);
    else
        plan_print(session, &schedule, &estimate, workers);
    if (cluster && !session->arguments->json)
        cluster_print(session->sweep, &schedule, &estimate, workers);
    if (detection && !session->arguments->json)
        detection_write(detection, stdout);
    estimate_release(&estimate);
    schedule_release(&schedule);
}

static int plan_run(const struct command *command, const struct arguments *arguments)
{
    struct session session;
    struct retry retry;
    struct error err;
    sqlite3 *reader = NULL;
    struct detection detection = {0};
    int code = EXIT_ENVIRONMENT, loaded;
    double detect = option_number(arguments, "detect", 1);
    if (!(detect > 0))
        die(EXIT_USAGE, "runner plan: --detect is %g, expected a difference above 0", detect);
    detect = option_number(arguments, "detect", 0);
    session_begin(&session, command, arguments);
    char *shadow = shadow_make(session.cache, &err);
    if (!retry_parse(option_text(arguments, "retry", NULL), &retry, &err)) {
        message("runner plan: %s", err.text);
        code = EXIT_USAGE;
    } else if (!shadow)
        message("runner: %s", err.text);
    else if ((loaded = session_load(&session, shadow)) != EXIT_DONE)
        code = loaded;
    else if (!session_reader(&session, &reader, &err))
        message("runner: %s", err.text);
    else if (detect > 0 && !detection_read(&detection, reader, session.sweep->experiment, detect, &err))
        message("runner: %s", err.text);
    else {
        plan_show(&session, reader, retry, detect > 0 ? &detection : NULL);
        code = EXIT_DONE;
    }
    detection_release(&detection);
    sqlite3_close(reader);
    session_end(&session);
    shadow_remove(shadow);
    return code;
}

static const struct option options[] = {
    {.name = "set", .kind = OPTION_LIST, .argument = "K=V", .doc = "Set a knob, data.corpus or data.validation."},
    {.name = "seeds", .kind = OPTION_TEXT, .argument = "A-B", .doc = "Seeds in place of the file's: N or A-B."},
    {.name = "only", .kind = OPTION_LIST, .argument = "VARIANT", .doc = "Only this variant; may be given again."},
    {.name = "retry",
     .kind = OPTION_TEXT,
     .argument = "STATES",
     .doc = "Plans runs anew as `run --retry` would: failed, diverged, or a cause."},
    {.name = "shard", .kind = OPTION_TEXT, .argument = "I/N", .doc = "Only part I of N, as `run` has it."},
    {.name = "db", .kind = OPTION_TEXT, .argument = "PATH", .doc = "Database. Default: results/results.db."},
    {.name = "launcher",
     .kind = OPTION_TEXT,
     .argument = "SYSTEM",
     .doc = "Also tasks, node hours and end time on a cluster, --workers at once.",
     .choices = "slurm"},
    {.name = "workers",
     .kind = OPTION_INTEGER,
     .argument = "N",
     .doc = "Runs at once, one a core by default.",
     .minimum = 1,
     .maximum = 4096},
    {.name = "detect",
     .kind = OPTION_NUMBER,
     .argument = "D",
     .doc = "How many seeds would find a difference of D, from the spread in the database."},
    {.name = "no-measure", .kind = OPTION_FLAG, .doc = "Do not time training steps: no estimate of time."},
    {.name = "yes", .kind = OPTION_FLAG, .doc = "More than 1,000 runs are meant."},
    {.name = NULL},
};

extern const struct command command_plan;
const struct command command_plan = {
    .name = "plan",
    .arguments = "FILE",
    .summary = "Show what run would train, why, and what it would cost.",
    .help = "Every run of the experiment file: variant, seed, parameters, operations a token and in all, and whether\n"
            "it is new, resumes from a checkpoint, is finished, or would be tried again. A few training steps of each\n"
            "shape are timed for the estimate. Nothing is written.\n"
            "\n"
            "Example:\n"
            "  runner plan experiments/quick.yaml --seeds 1-5\n"
            "  runner plan experiments/day2-parts.yaml --detect 0.01 --no-measure",
    .options = options,
    .json = true,
    .minimum_arguments = 1,
    .maximum_arguments = 1,
    .run = plan_run,
};
