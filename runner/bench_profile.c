/* Where the time of a training step goes. */
#include "runner/bench_profile.h"

#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "runner/clock.h"

/* Steps with and without the profile take turns, so that both see the same machine. */
void bench_profile_measure(struct bench_model *model, size_t steps, struct bench_profile *profile)
{
    double *plain = memory_alloc(steps, sizeof *plain), *counted = memory_alloc(steps, sizeof *counted);
    memset(profile, 0, sizeof *profile);
    profile->steps = steps;
    bench_model_step(model);
    profile_start(&profile->times, seconds_now);
    for (size_t i = 0; i < steps; i++) {
        profile_stop(&profile->times);
        plain[i] = bench_model_step(model);
        trainer_profile(model->trainer, &profile->times);
        profile_resume(&profile->times);
        counted[i] = bench_model_step(model);
        profile_stop(&profile->times);
        trainer_profile(model->trainer, NULL);
        profile->seconds_per_step += counted[i] / (double)steps;
    }
    profile->plain_seconds = bench_median(plain, steps);
    memory_free(plain);
    memory_free(counted);
}

static double milliseconds(const struct bench_profile *profile, const struct profile_time *time)
{
    return time->seconds * 1e3 / (double)profile->steps;
}

static struct profile_time both(const struct profile_time *times)
{
    return (struct profile_time){.seconds = times[PROFILE_FORWARD].seconds + times[PROFILE_BACKWARD].seconds,
                                 .flops = times[PROFILE_FORWARD].flops + times[PROFILE_BACKWARD].flops,
                                 .calls = times[PROFILE_FORWARD].calls + times[PROFILE_BACKWARD].calls};
}

static void milliseconds_cell(struct table *table, double value, uint64_t calls)
{
    if (calls)
        table_number(table, value, "%.2f");
    else
        table_absent(table, "");
}

struct table *bench_profile_table(const struct bench_profile *profile, const char *name)
{
    static const char *const headings[] = {"forward ms", "backward ms", "ms", "%", "GFLOP/s"};
    double whole = profile_seconds(&profile->times);
    struct table *table = table_create();
    table_caption(table, "%s: a training step by operation, mean of %zu steps", name, profile->steps);
    table_column(table, "operation", TABLE_LEFT);
    for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++)
        table_column(table, headings[i], TABLE_RIGHT);
    for (size_t i = 0; i < PROFILE_OPERATIONS; i++) {
        const struct profile_time *times = profile->times.times[i];
        struct profile_time sum = both(times);
        if (!sum.calls)
            continue;
        table_text(table, profile_name((enum profile_operation)i));
        milliseconds_cell(table, milliseconds(profile, &times[PROFILE_FORWARD]), times[PROFILE_FORWARD].calls);
        milliseconds_cell(table, milliseconds(profile, &times[PROFILE_BACKWARD]), times[PROFILE_BACKWARD].calls);
        table_number(table, milliseconds(profile, &sum), "%.2f");
        table_number(table, 100 * sum.seconds / whole, "%.1f");
        if (sum.flops > 0)
            table_number(table, sum.flops / sum.seconds * 1e-9, "%.1f");
        else
            table_absent(table, "");
    }
    table_note(table,
               "The operations add up to %.2f ms; the clock around the step says %.2f, without the profile %.2f.",
               whole * 1e3 / (double)profile->steps, profile->seconds_per_step * 1e3, profile->plain_seconds * 1e3);
    return table;
}

json_t *bench_profile_json(const struct bench_profile *profile)
{
    json_t *root = json_object(), *list = json_array();
    for (size_t i = 0; i < PROFILE_OPERATIONS; i++) {
        const struct profile_time *times = profile->times.times[i];
        struct profile_time sum = both(times);
        if (!sum.calls)
            continue;
        json_t *row = json_object();
        json_put(row, "operation", json_from_text(profile_name((enum profile_operation)i)));
        json_put(row, "forward_ms", json_from_double(milliseconds(profile, &times[PROFILE_FORWARD])));
        json_put(row, "backward_ms", json_from_double(milliseconds(profile, &times[PROFILE_BACKWARD])));
        json_put(row, "gflops", json_from_double(sum.flops > 0 ? sum.flops / sum.seconds * 1e-9 : NAN));
        json_push(list, row);
    }
    json_put(root, "ms", json_from_double(profile_seconds(&profile->times) * 1e3 / (double)profile->steps));
    json_put(root, "step_ms", json_from_double(profile->seconds_per_step * 1e3));
    json_put(root, "plain_step_ms", json_from_double(profile->plain_seconds * 1e3));
    json_put(root, "operations", list);
    return root;
}
