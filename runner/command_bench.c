/* runner bench: the speed of a whole training step, as a share of what the machine's sgemm reaches on its shapes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/cpu.h"
#include "runner/bench_profile.h"
#include "runner/bench_share.h"
#include "runner/command.h"

enum { ROUNDS_LIMIT = 1000 };

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

static int bench_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    cpu_flush_denormals(); /* as every worker does */
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
            "Example:\n  runner bench --case day2",
    .options = bench_options,
    .json = true,
    .run = bench_run,
};
