/* runner bench: the speed of a whole training step, as a share of what the machine's sgemm reaches on its shapes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "core/memory.h"
#include "core/onednn.h"
#include "runner/bench_profile.h"
#include "runner/bench_rows.h"
#include "runner/bench_share.h"
#include "runner/command.h"
#include "runner/signals.h"

enum { ROUNDS_LIMIT = 1000, TABLE_WIDTH = 170 };

static bool wanted(const struct arguments *arguments, size_t index)
{
    const char *only = option_text(arguments, "case", NULL);
    return !only || !strcmp(only, bench_cases[index].name);
}

/* What every answer in JSON begins with. The figure for the machine is that of the Day 2 shapes; each case also has
 * that of its own. */
static json_t *machine_json(const struct bench_share *shares)
{
    json_t *root = json_object();
    double rate = shares[BENCH_DAY2].measured ? shares[BENCH_DAY2].sgemm_rate * 1e-9 : NAN;
    json_put(root, "sgemm_gflops", json_from_double(rate));
    json_put(root, "cpu", json_from_text(cpu_model_name()));
    json_put(root, "kernels", json_from_text(cpu_level()));
    json_put(root, "blas", json_from_text(blas_core_name()));
    json_put(root, "onednn", json_from_text(onednn_load(NULL) ? onednn_version() : NULL));
    json_put(root, "cases", bench_shares_json(shares));
    return root;
}

static int shares_run(const struct arguments *arguments)
{
    struct bench_share shares[BENCH_CASES] = {{.measured = false}};
    int code = EXIT_DONE;
    for (size_t i = 0; i < BENCH_CASES; i++) {
        if (!wanted(arguments, i))
            continue;
        message("measuring %s", bench_cases[i].name);
        bench_share_measure(&bench_cases[i], (size_t)option_integer(arguments, "rounds", 9), &shares[i]);
        if (isnan(shares[i].share)) {
            message("runner: bench: %s came out above 100 %% of sgemm, so something disturbed the measurement; its "
                    "figures are left out, run it again on a quiet machine",
                    bench_cases[i].name);
            code = EXIT_ENVIRONMENT;
        }
    }
    if (arguments->json) {
        json_t *root = machine_json(shares);
        json_print(root, stdout);
        json_decref(root);
    } else {
        bench_shares_print(shares, stdout);
    }
    return code;
}

static int profiles_run(const struct arguments *arguments)
{
    json_t *root = json_object(), *list = json_array();
    for (size_t i = 0; i < BENCH_CASES; i++) {
        if (!wanted(arguments, i))
            continue;
        struct bench_model model;
        struct bench_profile profile;
        struct config config = bench_case_config(&bench_cases[i]);
        message("measuring %s", bench_cases[i].name);
        bench_model_init(&model, &config, bench_cases[i].vocab_size);
        bench_profile_measure(&model, (size_t)option_integer(arguments, "rounds", 9), &profile);
        bench_model_release(&model);
        if (arguments->json) {
            json_t *row = bench_profile_json(&profile);
            json_put(row, "name", json_from_text(bench_cases[i].name));
            json_push(list, row);
            continue;
        }
        struct table *table = bench_profile_table(&profile, bench_cases[i].name);
        if (i > 0 && wanted(arguments, i - 1))
            fputc('\n', stdout);
        table_write(table, TABLE_TEXT, 0, stdout);
        table_free(table);
    }
    json_put(root, "profiles", list);
    if (arguments->json)
        json_print(root, stdout);
    json_decref(root);
    return EXIT_DONE;
}

/* A path for children that run in another folder. Owner: caller, free(). */
static char *absolute(const struct arguments *arguments, const char *option)
{
    const char *given = option_text(arguments, option, NULL);
    char *path = given ? realpath(given, NULL) : NULL;
    if (given && !path)
        die(EXIT_USAGE, "bench: --%s is '%s', which is not there", option, given);
    return path;
}

static void figures_print(const struct bench_row *rows, const struct bench_figure *figures, size_t count)
{
    struct table *table = bench_figures_table(rows, figures, count);
    bench_machine_print(stdout);
    fputs("\n\n", stdout);
    table_write(table, TABLE_TEXT, TABLE_WIDTH, stdout);
    table_free(table);
}

static int figures_run(const struct arguments *arguments)
{
    char *corpus = absolute(arguments, "corpus"), *peers = absolute(arguments, "peers"),
         *grid = absolute(arguments, "grid");
    struct bench bench = {.corpus = corpus ? corpus : "builtin",
                          .peers = peers,
                          .grid = grid,
                          .rounds = (size_t)option_integer(arguments, "rounds", 9)};
    const char *const *words;
    size_t word_count = option_list(arguments, "row", &words), used = 0;
    struct bench_figure *figures = memory_alloc(bench_row_count, sizeof *figures);
    struct bench_row *rows = memory_alloc(bench_row_count, sizeof *rows);
    bool *chosen = memory_alloc(bench_row_count, sizeof *chosen);
    int code = EXIT_DONE;
    signals_leave("bench: stopped before all was measured: no figure is shown\n", 0);
    bench_rows_measure(&bench, words, word_count, chosen, figures);
    signals_leave(NULL, 0);
    for (size_t i = 0; i < bench_row_count; i++) {
        if (!chosen[i])
            continue;
        rows[used] = bench_rows[i];
        figures[used] = figures[i];
        if (bench_verdict(&rows[used], &figures[used]) == BENCH_REFUSED)
            code = EXIT_ENVIRONMENT;
        used++;
    }
    if (arguments->json) {
        json_t *root = machine_json(bench.shares);
        json_put(root, "figures", bench_figures_json(rows, figures, used));
        json_print(root, stdout);
        json_decref(root);
    } else {
        figures_print(rows, figures, used);
    }
    memory_free(rows);
    memory_free(figures);
    memory_free(chosen);
    free(corpus);
    free(peers);
    free(grid);
    return code;
}

/* Options of one kind of measurement are no silent part of another. */
static void options_check(const struct arguments *arguments, bool figures)
{
    static const char *const of_figures[] = {"corpus", "grid", "peers"};
    const char *const *words;
    size_t count = option_list(arguments, "row", &words);
    for (size_t i = 0; i < count; i++)
        if (!bench_rows_have(words[i]))
            die(EXIT_USAGE, "bench: --row is '%s': expected words of a row's name, as in 'memory' or 'two workers'",
                words[i]);
    for (size_t i = 0; !figures && i < sizeof of_figures / sizeof of_figures[0]; i++)
        if (option_text(arguments, of_figures[i], NULL))
            die(EXIT_USAGE, "bench: --%s goes with --all or --row", of_figures[i]);
    if (figures && (option_text(arguments, "case", NULL) || option_flag(arguments, "profile")))
        die(EXIT_USAGE, "bench: --case and --profile do not go with --all and --row");
}

static int bench_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    bool figures = option_flag(arguments, "all") || option_list(arguments, "row", &(const char *const *){NULL});
    options_check(arguments, figures);
    cpu_flush_denormals(); /* as every worker does */
    if (figures)
        return figures_run(arguments);
    return option_flag(arguments, "profile") ? profiles_run(arguments) : shares_run(arguments);
}

static const struct option bench_options[] = {
    {.name = "case",
     .kind = OPTION_TEXT,
     .argument = "NAME",
     .doc = "Only this one.",
     .choices = "day1|day2|day2-modern"},
    {.name = "rounds",
     .kind = OPTION_INTEGER,
     .argument = "N",
     .doc = "Medians over N rounds of two steps. Default 9.",
     .minimum = 1,
     .maximum = ROUNDS_LIMIT},
    {.name = "profile", .kind = OPTION_FLAG, .doc = "Where the time of a step goes, by operation."},
    {.name = "all",
     .kind = OPTION_FLAG,
     .doc = "Every target of speed beside what is measured: training, sweeps, memory, BPE. Minutes."},
    {.name = "row",
     .kind = OPTION_LIST,
     .argument = "WORDS",
     .doc = "Of --all only rows with these words in them; may be given again."},
    {.name = "corpus",
     .kind = OPTION_TEXT,
     .argument = "PATH",
     .doc = "With --all: text to train on. Default: the built-in one."},
    {.name = "grid",
     .kind = OPTION_TEXT,
     .argument = "FILE",
     .doc = "With --all: the experiment file whose sweep is timed, cut short."},
    {.name = "peers",
     .kind = OPTION_TEXT,
     .argument = "PROGRAM",
     .doc = "With --all: a program that times others, as tests/bench/peers."},
    {.name = NULL},
};

extern const struct command command_bench;
const struct command command_bench = {
    .name = "bench",
    .summary = "Measure training steps against what this machine's sgemm reaches.",
    .help = "A step is forward, backward, clip and AdamW on one thread. FLOPs are those of\n"
            "the model: 6 for each weight of a product and each token, and the causal half\n"
            "of attention. The limit is single-thread sgemm on the same shapes, measured in\n"
            "turns with the steps; a share above 100 % is a disturbed measurement and is\n"
            "not printed (exit code 3).\n\n"
            "--all measures everything that has a target and prints one table; what the\n"
            "machine cannot show (AMX, PyTorch) is n/a, with the reason.\n\n"
            "Example:\n  runner bench --case day2\n  runner bench --all --grid experiments/day2-parts.yaml",
    .options = bench_options,
    .json = true,
    .run = bench_run,
};
