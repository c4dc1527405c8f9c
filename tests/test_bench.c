/* What bench says of figures, and the prediction of memory. */
#include <criterion/criterion.h>
#include <malloc.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/trainer.h"
#include "runner/bench_figure.h"
#include "runner/bench_model.h"
#include "runner/bench_peak.h"
#include "runner/bench_profile.h"
#include "runner/bench_rows.h"
#include "runner/footprint.h"
#include "tests/folder_case.h"

static const struct bench_row rows[] = {
    {"step, of sgemm", "%", BENCH_AT_LEAST, 80, "%.1f", true, NULL, 0},
    {"start", "s", BENCH_AT_MOST, 0.3, "%.3f", false, NULL, 0},
    {"two workers", "x", BENCH_AT_LEAST, 1.9, "%.2f", false, NULL, 0},
    {"sgemm, of the peak", "%", BENCH_SHOWN, 0, "%.1f", true, NULL, 0},
    {"bf16 step, of fp32", "x", BENCH_AT_LEAST, 4, "%.2f", false, NULL, 0},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static enum bench_verdict verdict_at(size_t row, double value)
{
    struct bench_figure figure = {.value = value};
    return bench_verdict(&rows[row], &figure);
}

Test(bench, a_target_is_met_on_its_own_side_and_exactly)
{
    cr_expect_eq(verdict_at(0, 80), BENCH_OK);
    cr_expect_eq(verdict_at(0, 79.9), BENCH_SHORT);
    cr_expect_eq(verdict_at(1, 0.3), BENCH_OK);
    cr_expect_eq(verdict_at(1, 0.31), BENCH_SHORT);
    cr_expect_eq(verdict_at(3, 50), BENCH_NO_TARGET);
    cr_expect_eq(verdict_at(0, NAN), BENCH_NOT_APPLICABLE);
}

Test(bench, above_a_measured_ceiling_is_refused_and_not_shown)
{
    cr_expect_eq(verdict_at(0, 100), BENCH_OK);
    cr_expect_eq(verdict_at(0, 100.1), BENCH_REFUSED);
    cr_expect_eq(verdict_at(3, 100.1), BENCH_REFUSED);
    cr_expect_eq(verdict_at(2, 101), BENCH_OK); /* no share of anything */
}

Test(bench, what_another_machine_is_for_has_a_value_and_no_verdict)
{
    struct bench_figure figure = {.value = 9, .elsewhere = true};
    cr_expect_eq(bench_verdict(&rows[4], &figure), BENCH_NOT_APPLICABLE);
    figure.elsewhere = false;
    cr_expect_eq(bench_verdict(&rows[4], &figure), BENCH_OK);
}

/* Owner: caller, free(). */
static char *rendered(const struct bench_figure *figures)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct table *table = bench_figures_table(rows, figures, ROWS);
    table_write(table, TABLE_CSV, 0, out);
    table_free(table);
    fclose(out);
    return text;
}

static void figures_fill(struct bench_figure *figures)
{
    bench_value(&figures[0], 104.2, "104.2 ms a step");
    bench_value(&figures[1], 0.25, "of %d workers", 5);
    bench_value(&figures[2], 1.85, "two rounds");
    bench_absent(&figures[3], "one core only");
    bench_value(&figures[4], 1.25, "no AMX here");
    figures[4].elsewhere = true;
}

Test(bench, one_table_has_target_value_verdict_and_reason)
{
    struct bench_figure figures[ROWS];
    figures_fill(figures);
    char *text = rendered(figures);
    cr_expect_str_eq(text,
                     "what,target,measured,verdict,note\n"
                     "\"step, of sgemm\",>= 80.0 %,-,refused,above 100 % of its measured ceiling: something "
                     "disturbed the measurement; run it again\n"
                     "start,<= 0.300 s,0.250 s,ok,of 5 workers\n"
                     "two workers,>= 1.90x,1.85x,short,two rounds\n"
                     "\"sgemm, of the peak\",,-,n/a,one core only\n"
                     "\"bf16 step, of fp32\",>= 4.00x,1.25x,n/a,no AMX here\n",
                     "%s", text);
    free(text);
}

Test(bench, json_leaves_out_what_is_refused_or_not_measured)
{
    struct bench_figure figures[ROWS];
    figures_fill(figures);
    json_t *list = bench_figures_json(rows, figures, ROWS), *first = json_array_get(list, 0);
    cr_assert_eq(json_array_size(list), ROWS);
    cr_expect(json_is_null(json_object_get(first, "measured")));
    cr_expect_str_eq(json_string_value(json_object_get(first, "verdict")), "refused");
    cr_expect_eq(json_number_value(json_object_get(first, "target")), 80);
    cr_expect_eq(json_number_value(json_object_get(json_array_get(list, 1), "measured")), 0.25);
    cr_expect_str_eq(json_string_value(json_object_get(json_array_get(list, 1), "sense")), "at most");
    cr_expect(json_is_null(json_object_get(json_array_get(list, 3), "measured")));
    cr_expect(json_is_null(json_object_get(json_array_get(list, 3), "target")));
    cr_expect_eq(json_number_value(json_object_get(json_array_get(list, 4), "measured")), 1.25);
    json_decref(list);
}

Test(bench, every_row_can_be_measured_and_has_a_name_of_its_own)
{
    for (size_t i = 0; i < bench_row_count; i++) {
        cr_expect_not_null(bench_rows[i].measure, "%s", bench_rows[i].name);
        cr_expect(bench_rows[i].sense == BENCH_SHOWN || bench_rows[i].target > 0, "%s", bench_rows[i].name);
        for (size_t j = 0; j < i; j++)
            cr_expect_str_neq(bench_rows[i].name, bench_rows[j].name);
    }
}

Test(bench, rows_that_were_not_asked_for_are_not_measured)
{
    struct bench bench = {.corpus = "builtin", .rounds = 1};
    struct bench_figure *figures = calloc(bench_row_count, sizeof *figures);
    bool *chosen = calloc(bench_row_count, sizeof *chosen);
    const char *words[] = {"best PyTorch"};
    size_t count = 0;
    bench_rows_measure(&bench, words, 1, chosen, figures);
    for (size_t i = 0; i < bench_row_count; i++) {
        cr_expect(isnan(figures[i].value), "%s", bench_rows[i].name); /* PyTorch: no program was named */
        count += chosen[i];
        cr_expect_eq(chosen[i], strstr(bench_rows[i].name, words[0]) != NULL);
    }
    cr_assert_geq(count, 1);
    free(figures);
    free(chosen);
}

Test(bench, multiply_adds_in_registers_are_counted)
{
    /* Slower than any core that runs this, sanitizers included: a tenth of an operation a nanosecond. */
    cr_assert_gt(bench_peak_rate(), 1e8);
}

Test(bench, a_profile_is_shown_by_operation_and_adds_up)
{
    struct bench_profile profile = {.seconds_per_step = 0.01, .plain_seconds = 0.01, .steps = 2};
    profile.times.times[PROFILE_QKV][PROFILE_FORWARD] = (struct profile_time){0.004, 8e6, 2};
    profile.times.times[PROFILE_QKV][PROFILE_BACKWARD] = (struct profile_time){0.012, 24e6, 2};
    profile.times.times[PROFILE_ADAMW][PROFILE_FORWARD] = (struct profile_time){0.004, 0, 2};
    json_t *root = bench_profile_json(&profile), *list = json_object_get(root, "operations");
    cr_assert_eq(json_array_size(list), 2, "operations that took place");
    json_t *product = json_array_get(list, 0), *update = json_array_get(list, 1);
    cr_expect_float_eq(json_number_value(json_object_get(root, "ms")), 10, 1e-12);
    cr_expect_float_eq(json_number_value(json_object_get(product, "forward_ms")), 2, 1e-12);
    cr_expect_float_eq(json_number_value(json_object_get(product, "backward_ms")), 6, 1e-12);
    cr_expect_float_eq(json_number_value(json_object_get(product, "gflops")), 2, 1e-12);
    cr_expect(json_is_null(json_object_get(update, "gflops")));
    json_decref(root);
    struct table *table = bench_profile_table(&profile, "day2");
    cr_expect_eq(table_row_count(table), 2);
    table_free(table);
}

/* ---- others' training ---- */

/* Steps of a model that is next to nothing, against a program that does this for `--way 1` and for `--way 2`. */
static struct bench_figure peers_figure(const char *first, const char *second)
{
    struct config config;
    struct bench_model model;
    struct bench_figure figure;
    char text[1024], path[128];
    config_init(&config);
    config.model.d_model = config.model.context_length = 8;
    config.model.n_heads = config.model.n_layers = config.training.batch_size = 1;
    folder_open();
    snprintf(text, sizeof text,
             "#!/bin/sh\nsteps() { while read -r line; do echo \"$1\"; done; }\n"
             "[ \"$*\" != '--turns --short --precision fp32 --way 1' ] || { %s; exit; }\n"
             "[ \"$*\" = '--turns --short --precision fp32 --way 2' ] || exit 9\n%s\n",
             first, second);
    bytes_put("peers", text, strlen(text));
    snprintf(path, sizeof path, "%s/peers", folder);
    cr_assert_eq(chmod(path, 0700), 0);
    bench_model_init(&model, &config, 300);
    bench_peers_best(path, "fp32", folder, &model, "", &figure);
    bench_model_release(&model);
    folder_close();
    return figure;
}

#define WAY(name, threads, seconds)                                                                                    \
    "echo 'a warning'; echo '{\"version\": \"Other 1.0\", \"ways\": 2, \"name\": \"" name "\", \"threads\": " threads  \
    "}'; steps " seconds
#define NOT_TIMED "echo '{\"ways\": 2, \"reason\": \"not the same model\"}'"

static void expect_absent(const char *first, const char *second, const char *note)
{
    struct bench_figure figure = peers_figure(first, second);
    cr_expect(isnan(figure.value), "%g", figure.value);
    cr_expect_not_null(strstr(figure.note, note), "'%s' and not '%s'", figure.note, note);
}

Test(bench, the_best_of_others_is_that_of_least_time_for_each_core)
{
    struct bench_figure figure = peers_figure(WAY("eager", "1", "1000"), WAY("compiled", "2", "600"));
    cr_expect_gt(figure.value, 1000, "1,000 s are more than 1,000 steps of ours: %g", figure.value);
    cr_expect_not_null(strstr(figure.note, "theirs 1000000 ms for each core"), "%s", figure.note);
    cr_expect_not_null(strstr(figure.note, "Other 1.0, eager, 1 thread"), "%s", figure.note);
    figure = peers_figure(WAY("eager", "1", "100000"), WAY("compiled", "2", "300"));
    cr_expect_not_null(strstr(figure.note, "theirs 600000 ms for each core"), "%s", figure.note);
    cr_expect_not_null(strstr(figure.note, "Other 1.0, compiled, 2 threads"), "%s", figure.note);
}

Test(bench, others_of_which_a_way_was_not_timed_have_no_figure)
{
    expect_absent(WAY("eager", "1", "1000"), NOT_TIMED, "not the same model");
    expect_absent(NOT_TIMED, "exit 9", "not the same model");
}

Test(bench, others_that_fail_or_say_nothing_have_no_figure_but_their_last_words)
{
    expect_absent("echo one >&2; echo no module named torch >&2; exit 1", "exit 9", "no module named torch");
    expect_absent("exit 0", "exit 9", "it said nothing");
    expect_absent("echo first >&2; " WAY("eager", "1", "1000"), "exit 0", "it said nothing");
    expect_absent(WAY("eager", "1", "nan"), WAY("compiled", "2", "1"), "it said nothing");
    expect_absent("echo '{\"ways\": 2, \"threads\": 1}'; read -r line; echo 1; echo gone >&2", "exit 9", "gone");
}

/* ---- memory ---- */

static struct footprint footprint_of(const struct bench_case *row, const struct dataset *dataset)
{
    struct config config = bench_case_config(row);
    struct footprint footprint;
    config.training.steps = 100;
    footprint_predict(&config, row->vocab_size, dataset, &footprint);
    return footprint;
}

Test(footprint, its_parts_are_the_whole_and_the_parameters_are_the_models)
{
    struct footprint day5 = footprint_of(&bench_cases[BENCH_DAY5], NULL);
    cr_expect_eq(day5.parameters, 4u * 26255872u);
    cr_expect_eq(day5.gradients, day5.parameters);
    cr_expect_eq(day5.moments, 2 * day5.parameters);
    cr_expect_eq(day5.total, day5.parameters + day5.gradients + day5.moments + day5.activations + day5.corpus +
                                 day5.curve + day5.base);
    cr_expect_lt(day5.total, 3000000000u, "%zu", day5.total);
}

Test(footprint, a_text_that_is_known_counts)
{
    static struct dataset dataset;
    dataset.train.count = 1000;
    dataset.split_count = 1;
    dataset.splits[0].stream.count = 100;
    struct footprint with = footprint_of(&bench_cases[BENCH_DAY1], &dataset),
                     without = footprint_of(&bench_cases[BENCH_DAY1], NULL);
    cr_expect_eq(with.corpus, 4 * 1000 + 8 * 100);
    cr_expect_eq(with.total - without.total, with.corpus);
}

#if defined(__SANITIZE_ADDRESS__)
#define ALLOCATOR_COUNTS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ALLOCATOR_COUNTS 0
#endif
#endif
#ifndef ALLOCATOR_COUNTS
#define ALLOCATOR_COUNTS 1
#endif

Test(footprint, it_is_what_a_trainer_asks_for)
{
    const struct bench_case *row = &bench_cases[BENCH_DAY1];
    struct config config = bench_case_config(row);
    struct footprint footprint = footprint_of(row, NULL);
    size_t predicted = footprint.parameters + footprint.gradients + footprint.moments + footprint.activations;
    cr_assert_eq(predicted, trainer_memory(&config, row->vocab_size));
    if (ALLOCATOR_COUNTS) {
        int32_t *tokens = calloc(1000, sizeof *tokens);
        uint32_t *bytes = calloc(1000, sizeof *bytes);
        struct token_stream train = {tokens, bytes, 1000};
        struct error err;
        struct mallinfo2 before = mallinfo2();
        struct trainer *trainer = trainer_create(&config, 1, row->vocab_size, &train, &err);
        struct mallinfo2 after = mallinfo2();
        cr_assert_not_null(trainer);
        double asked = (double)(after.uordblks + after.hblkhd) - (double)(before.uordblks + before.hblkhd);
        /* Tables of names and the ends of pages come on top. */
        cr_expect_float_eq(asked / (double)predicted, 1, 0.02, "asked for %.0f, predicted %zu", asked, predicted);
        trainer_free(trainer);
        free(tokens);
        free(bytes);
    }
}

Test(bench, a_lab_is_gone_when_it_is_closed)
{
    struct bench_lab lab;
    struct error err = {0};
    cr_assert(bench_lab_open(&lab, &err), "%s", err.text);
    char *opened = memory_copy_text(lab.folder);
    cr_assert(bench_lab_folder(&lab, "a/b", &err) && bench_lab_file(&lab, "a/b/c", "text", &err), "%s", err.text);
    bench_lab_close(&lab);
    cr_assert_neq(access(opened, F_OK), 0);
    memory_free(opened);
    cr_assert_null(lab.folder);
    bench_lab_close(&lab);
}

/* The program that a lab runs is this one: a Criterion program knows --version, unless told that it is one test. */
Test(bench, a_child_whose_end_is_not_told_has_no_figures)
{
    struct bench_lab lab;
    struct bench_usage usage;
    struct error err = {0};
    unsetenv("BXFI_MAP");
    cr_assert(bench_lab_open(&lab, &err), "%s", err.text);
    const char *const words[] = {"--version", NULL};
    cr_assert(bench_lab_run(&lab, words, &usage, &err), "%s", err.text);
    cr_assert_geq(usage.cpu, 0);
    signal(SIGCHLD, SIG_IGN);
    cr_assert_not(bench_lab_run(&lab, words, &usage, &err));
    cr_assert(isnan(usage.cpu));
    cr_assert_not_null(strstr(err.text, "is SIGCHLD ignored?"), "%s", err.text);
    bench_lab_close(&lab);
}
