/* A step of each distinct shape is timed on the run's own data; the rest is arithmetic. */
#include "runner/estimate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/cpu.h"
#include "core/memory.h"
#include "core/trainer.h"
#include "runner/clock.h"
#include "runner/worker.h"

enum {
    STEPS_TIMED = 2,
    CURVE_BYTES = 160,        /* a step's row in the database, with its index */
    DATABASE_BYTES = 1000000, /* schema, tokenizer and what is not yet written back */
    GENERATIONS = 3           /* of checkpoints: two and one being written */
};
/* A step longer than this is timed once. */
#define LONG_STEP 0.5

static const struct config *run_config(const struct sweep *sweep, size_t index)
{
    return &sweep->experiment->variants[sweep->runs[index].variant].config;
}

/* The same work a step: model, batch, precision and text. */
static bool shape_equal(const struct sweep *sweep, size_t a, size_t b)
{
    const struct config *first = run_config(sweep, a), *second = run_config(sweep, b);
    for (size_t i = 0; i < knob_count; i++)
        if (strcmp(knobs[i].group, "model") == 0 &&
            !knob_equal(&knobs[i], knob_get(&knobs[i], first), knob_get(&knobs[i], second)))
            return false;
    return first->training.batch_size == second->training.batch_size &&
           first->training.precision == second->training.precision && sweep->runs[a].dataset == sweep->runs[b].dataset;
}

static double steps_time(const struct config *config, const struct run *run, const struct dataset *dataset,
                         struct error *err)
{
    struct trainer *trainer =
        trainer_create(config, run->seed, tokenizer_vocab_size(dataset->tokenizer), &dataset->train, err);
    if (!trainer)
        return NAN;
    struct step_record record;
    double best = INFINITY, spent = 0;
    trainer_step(trainer, &record);
    for (int i = 0; i < STEPS_TIMED && spent < LONG_STEP; i++) {
        double start = seconds_now(), seconds;
        trainer_step(trainer, &record);
        seconds = seconds_now() - start;
        spent += seconds;
        best = seconds < best ? seconds : best;
    }
    trainer_free(trainer);
    return best;
}

static double shape_measure(const struct sweep *sweep, size_t index, void (*note)(const char *text))
{
    const struct config *config = run_config(sweep, index);
    const struct run *run = &sweep->runs[index];
    const struct dataset *dataset = &sweep->datasets[run->dataset];
    const char *label = sweep->experiment->variants[run->variant].label;
    size_t memory = trainer_memory(config, tokenizer_vocab_size(dataset->tokenizer));
    double half = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 2;
    struct error err = {{0}};
    char text[1200];
    if ((double)memory > half) {
        snprintf(text, sizeof text, "'%s' is not measured: it needs %.1f GB of memory", label, (double)memory / 1e9);
        note(text);
        return NAN;
    }
    double seconds = steps_time(config, run, dataset, &err);
    if (isnan(seconds)) {
        snprintf(text, sizeof text, "'%s' is not measured: %s", label, err.text);
        note(text);
    }
    return seconds;
}

double estimate_evaluation_tokens(const struct config *config, const struct dataset *dataset, int64_t steps_done)
{
    int64_t steps = config->training.steps, interval = config->evaluation.interval;
    int64_t done = steps_done ? 1 + (steps_done - 1) / interval : 0; /* the one before the first step too */
    int64_t between = 1 + (steps - 1) / interval - done;
    double tokens = 0;
    for (size_t i = 0; i < dataset->split_count; i++) {
        int64_t all = token_stream_blocks(&dataset->splits[i].stream, config->model.context_length);
        int64_t blocks = config->evaluation.blocks, last = config->evaluation.final_blocks;
        blocks = blocks && blocks < all ? blocks : all;
        last = last && last < all ? last : all;
        tokens += (double)blocks * (double)between + (double)last;
    }
    return tokens * (double)config->model.context_length;
}

/* When the last worker is done, if each takes the next run as it becomes free. */
static double makespan(const struct estimate *estimate, size_t run_count, size_t workers)
{
    double *free_at = memory_alloc(workers, sizeof *free_at), end = 0;
    for (size_t i = 0; i < run_count; i++) {
        size_t first = 0;
        for (size_t w = 1; w < workers; w++)
            first = free_at[w] < free_at[first] ? w : first;
        free_at[first] += estimate->runs[i].seconds;
        end = free_at[first] > end || isnan(free_at[first]) ? free_at[first] : end;
        if (isnan(end))
            break;
    }
    memory_free(free_at);
    return end;
}

/* 4-byte weights once when finished. For a run in progress weights and both moments in each generation, of which one
 * that resumes has two already. runs: NULL = the most that can be; else a run that is over sooner has fewer, and one
 * worker writes at a time. */
static uint64_t disk_bytes(const struct sweep *sweep, const struct schedule *schedule, size_t workers,
                           const struct run_estimate *runs)
{
    uint64_t bytes = DATABASE_BYTES, largest = 0, written = 0;
    for (size_t i = 0; i < sweep->run_count; i++) {
        const struct planned_run *planned = &schedule->runs[i];
        if (!run_action_trains(planned->action))
            continue;
        uint64_t weights = 4 * (uint64_t)sweep->runs[i].parameters, generations = planned->step ? 1 : GENERATIONS;
        double trains = runs ? (double)runs[i].steps_left / runs[i].steps_per_second : NAN; /* none while evaluating */
        if (trains < CHECKPOINT_SECONDS * (double)generations)
            generations = (uint64_t)(trains / CHECKPOINT_SECONDS);
        if (runs && generations == GENERATIONS) {
            generations--;
            written = 3 * weights > written ? 3 * weights : written;
        }
        uint64_t open = 3 * weights * generations;
        bytes += weights + (uint64_t)(run_config(sweep, i)->training.steps - planned->step) * CURVE_BYTES;
        largest = open > largest ? open : largest;
    }
    return bytes + written + (workers < schedule->to_train ? workers : schedule->to_train) * largest;
}

uint64_t estimate_disk(const struct sweep *sweep, const struct schedule *schedule, size_t workers)
{
    return disk_bytes(sweep, schedule, workers, NULL);
}

void estimate_make(struct estimate *estimate, const struct sweep *sweep, const struct schedule *schedule,
                   size_t workers, bool measure, void (*note)(const char *text))
{
    size_t count = sweep->run_count;
    *estimate = (struct estimate){.runs = memory_alloc(count, sizeof *estimate->runs)};
    double *step_seconds = memory_alloc(count, sizeof *step_seconds);
    blas_use_one_thread();
    cpu_flush_denormals();
    for (size_t i = 0; i < count; i++) {
        const struct run *run = &sweep->runs[i];
        const struct config *config = run_config(sweep, i);
        const struct dataset *dataset = &sweep->datasets[run->dataset];
        struct run_estimate *out = &estimate->runs[i];
        double step_tokens = (double)(config->training.batch_size * config->model.context_length);
        *out = (struct run_estimate){.steps_per_second = NAN};
        step_seconds[i] = NAN;
        out->flops = run->flops_per_token * step_tokens * (double)config->training.steps;
        if (!run_action_trains(schedule->runs[i].action))
            continue;
        size_t like = 0;
        while (like < i && !(run_action_trains(schedule->runs[like].action) && shape_equal(sweep, like, i)))
            like++;
        step_seconds[i] = like < i ? step_seconds[like] : measure ? shape_measure(sweep, i, note) : NAN;
        out->steps_per_second = 1 / step_seconds[i];
        out->steps_left = config->training.steps - schedule->runs[i].step;
        /* A forward pass is a third of a training step. */
        double token_seconds = step_seconds[i] / step_tokens / 3;
        double evaluated = estimate_evaluation_tokens(config, dataset, schedule->runs[i].step);
        out->seconds = (double)out->steps_left * step_seconds[i] + evaluated * token_seconds;
        estimate->evaluation_flops += run->flops_per_token / 3 * evaluated;
        estimate->flops += run->flops_per_token * step_tokens * (double)out->steps_left;
    }
    size_t busy = workers < schedule->to_train ? workers : schedule->to_train;
    estimate->disk_bytes = disk_bytes(sweep, schedule, workers, estimate->runs);
    estimate->seconds = makespan(estimate, count, busy ? busy : 1);
    memory_free(step_seconds);
}

void estimate_release(struct estimate *estimate)
{
    memory_free(estimate->runs);
    *estimate = (struct estimate){0};
}
