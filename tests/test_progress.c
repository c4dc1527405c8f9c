/* Progress: time left, plain lines, a bar that fits its terminal. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/progress.h"

enum { BLOCKS = 100 };
static const int64_t split_blocks[] = {BLOCKS, BLOCKS / 2};

static struct config config_make(int64_t steps)
{
    struct config config;
    config_init(&config);
    config.training.steps = steps;
    config.evaluation.interval = 50;
    config.evaluation.blocks = 20;
    config.evaluation.final_blocks = 0;
    return config;
}

static struct progress_run run_make(const struct config *config, const char *label, int64_t seed)
{
    return (struct progress_run){label, seed, config, 1e6, split_blocks, 2};
}

/* A machine that does a step in a tenth of a second and a forward pass in a third of its share of that. */
struct machine {
    struct progress *progress;
    double now;
    double said[4096], at[4096]; /* progress_left() and when */
    size_t count;
};

static void ask(struct machine *machine)
{
    double left = progress_left(machine->progress, machine->now);
    if (isnan(left) || machine->count == 4096)
        return;
    machine->said[machine->count] = left;
    machine->at[machine->count++] = machine->now;
}

static void evaluate(struct machine *machine, size_t run, const struct config *config, int64_t step)
{
    int64_t limit;
    if (!trainer_evaluation_due(config, step, &limit))
        return;
    for (int split = 0; split < 2; split++) {
        struct evaluation_row row = {.step = step};
        snprintf(row.split, sizeof row.split, "%s", split ? "code" : "validation");
        row.record.blocks = limit && limit < split_blocks[split] ? limit : split_blocks[split];
        row.record.loss = 2;
        row.record.bits_per_byte = 1.5;
        machine->now += 0.1 * (double)row.record.blocks / (3.0 * (double)config->training.batch_size);
        progress_evaluation(machine->progress, run, &row, machine->now);
        ask(machine);
    }
}

static void train(struct machine *machine, size_t run, const struct config *config, int64_t from, bool evaluated)
{
    progress_run_start(machine->progress, run, from, evaluated ? 2 : 0, machine->now);
    for (int64_t step = from;; step++) {
        if (step != from || !evaluated)
            evaluate(machine, run, config, step);
        if (step == config->training.steps)
            break;
        struct step_record record = {.step = step, .loss = 2};
        machine->now += 0.1;
        progress_step(machine->progress, run, &record, machine->now);
        ask(machine);
    }
    progress_run_end(machine->progress, run, RUN_FINISHED, NULL, machine->now);
}

static void expect_right(const struct machine *machine)
{
    cr_assert_gt(machine->count, 100);
    for (size_t i = 0; i < machine->count; i++) {
        double left = machine->now - machine->at[i];
        /* The field's yardstick is a factor of two; the last moments are rounding. */
        cr_assert(left < 1 || (machine->said[i] < 2 * left && machine->said[i] > left / 2),
                  "%g s left at %g s, said %g", left, machine->at[i], machine->said[i]);
    }
}

Test(progress, time_left_is_right_after_a_resume_and_finished_runs_do_not_count)
{
    struct config config = config_make(200);
    struct progress_run runs[] = {run_make(&config, "a", 1), run_make(&config, "b", 1)};
    FILE *out = fopen("/dev/null", "w");
    static struct machine machine;
    machine.now = 1e6;
    machine.progress = progress_create(runs, 2, 40, 1, PROGRESS_PLAIN, out, machine.now);
    cr_assert(isnan(progress_left(machine.progress, machine.now)), "nothing is known yet");
    train(&machine, 0, &config, 150, true);
    train(&machine, 1, &config, 0, false);
    expect_right(&machine);
    progress_free(machine.progress);
    fclose(out);
}

Test(progress, time_left_is_right_for_a_lone_run_resumed_at_three_quarters)
{
    struct config config = config_make(800);
    struct progress_run run = run_make(&config, "a", 1);
    FILE *out = fopen("/dev/null", "w");
    static struct machine machine;
    machine.progress = progress_create(&run, 1, 1, 1, PROGRESS_PLAIN, out, machine.now);
    train(&machine, 0, &config, 600, true);
    expect_right(&machine);
    progress_free(machine.progress);
    fclose(out);
}

Test(progress, time_left_spreads_the_queue_over_the_workers)
{
    struct config config = config_make(100);
    struct progress_run runs[3];
    for (int i = 0; i < 3; i++)
        runs[i] = run_make(&config, "a", i);
    FILE *out = fopen("/dev/null", "w");
    struct progress *progress = progress_create(runs, 3, 3, 2, PROGRESS_PLAIN, out, 0);
    progress_run_start(progress, 0, 0, 0, 0);
    progress_run_start(progress, 1, 0, 0, 0);
    for (int64_t step = 0; step < 50; step++)
        for (size_t run = 0; run < 2; run++) {
            struct step_record record = {.step = step, .loss = 2};
            progress_step(progress, run, &record, (double)(step + 1));
        }
    double left = progress_left(progress, 50);
    /* 50 more steps, then a run of 100 on one of the two: 150 s, and the evaluations. */
    cr_assert(left > 150 && left < 190, "%g", left);
    progress_free(progress);
    fclose(out);
}

static char *plain_text(size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    struct config config = config_make(50);
    struct progress_run runs[] = {run_make(&config, "norm=rmsnorm", 1337), run_make(&config, "lr=1e6", 1337),
                                  run_make(&config, "post", 7)};
    struct machine machine = {.progress = progress_create(runs, 3, 4, 1, PROGRESS_PLAIN, out, 0)};
    train(&machine, 0, &config, 49, true);
    progress_run_start(machine.progress, 1, 0, 0, machine.now);
    progress_run_end(machine.progress, 1, RUN_DIVERGED, "loss is nan at step 3", machine.now);
    progress_run_start(machine.progress, 2, 0, 0, machine.now);
    progress_run_end(machine.progress, 2, RUN_INTERRUPTED, NULL, machine.now);
    progress_note(machine.progress, SIZE_MAX, "a note");
    progress_tick(machine.progress, 1e9);
    progress_free(machine.progress);
    fclose(out);
    return text;
}

Test(progress, plain_lines_tell_start_evaluation_and_end_of_each_run)
{
    size_t size;
    char *text = plain_text(&size);
    static const char *const lines[] = {
        "[2/4] norm=rmsnorm, seed 1337: resumed at step 49 of 50\n",
        "[2/4] norm=rmsnorm, seed 1337: step 50, validation loss 2.0000, 1.5000 bits/byte, ",
        "[2/4] norm=rmsnorm, seed 1337: finished in 0:01, validation loss 2.0000, 1.5000 bits/byte\n",
        "[3/4] lr=1e6, seed 1337: started, 50 steps\n",
        "[3/4] lr=1e6, seed 1337: diverged: loss is nan at step 3\n",
        "[4/4] post, seed 7: interrupted at step 0\n",
        "a note\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        cr_assert_not_null(strstr(text, lines[i]), "no \"%s\" in:\n%s", lines[i], text);
    cr_assert_null(strchr(text, '\r'), "no bar outside a terminal");
    cr_assert_null(strchr(text, '\033'), "no colours outside a terminal");
    free(text);
}

Test(progress, the_bar_fits_80_columns_and_is_drawn_at_most_10_times_a_second)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct config config = config_make(1000);
    struct progress_run runs[] = {
        run_make(&config, "a label with \xc3\xa4 and \xe4\xb8\xad\xe6\x96\x87 that goes on and on and on", 1337)};
    struct progress *progress = progress_create(runs, 1, 1, 1, PROGRESS_BAR, out, 0);
    progress_run_start(progress, 0, 0, 0, 0);
    for (int64_t step = 0; step < 1000; step++) {
        struct step_record record = {.step = step, .loss = 2};
        progress_step(progress, 0, &record, 0.001 * (double)(step + 1));
    }
    fflush(out);
    int drawn = 0;
    char *rest = text;
    for (char *line = strsep(&rest, "\r"); line; line = strsep(&rest, "\r")) {
        if (!*line)
            continue;
        char *end = strstr(line, "\033[K");
        cr_assert_not_null(end);
        int columns = 0;
        for (const char *c = line; c < end; c++)
            columns += (*c & 0xc0) != 0x80;
        cr_assert_lt(columns, 80);
        drawn++;
    }
    cr_assert(drawn >= 9 && drawn <= 10, "%d times", drawn);
    progress_free(progress);
    fclose(out);
    free(text);
}

Test(progress, times_are_written_as_people_write_them)
{
    char buf[PROGRESS_TIME_SIZE];
    cr_assert_str_eq(progress_time(7.4, buf), "0:07");
    cr_assert_str_eq(progress_time(59.6, buf), "1:00");
    cr_assert_str_eq(progress_time(3723, buf), "1:02:03");
    cr_assert_str_eq(progress_time(86400 + 7300, buf), "1 day 2 h");
    cr_assert_str_eq(progress_time(3 * 86400, buf), "3 days 0 h");
    cr_assert_str_eq(progress_time(NAN, buf), "?");
}
