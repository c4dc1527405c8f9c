/* A step at a reduced precision beside the same in fp32. */
#include "core/bf16.h"
#include "core/onednn.h"
#include "runner/bench_rows.h"
#include "runner/precision.h"

void bench_measure_precision(struct bench *bench, int64_t precision, struct bench_figure *figure)
{
    (void)bench;
    enum { ROUNDS = 5 };
    double full[ROUNDS], reduced[ROUNDS];
    struct bench_model models[2];
    for (int i = 0; i < 2; i++) {
        struct config config = bench_case_config(&bench_cases[BENCH_DAY2]);
        config.training.precision = i ? (int)precision : PRECISION_FP32;
        bench_model_init(&models[i], &config, bench_cases[BENCH_DAY2].vocab_size);
        bench_model_step(&models[i]);
    }
    for (int i = 0; i < ROUNDS; i++) {
        full[i] = bench_model_step(&models[0]);
        reduced[i] = bench_model_step(&models[1]);
    }
    bench_model_release(&models[0]);
    bench_model_release(&models[1]);
    double plain = bench_median(full, ROUNDS), quick = bench_median(reduced, ROUNDS);
    bool amx = bench_has_amx();
    bench_value(figure, plain / quick, "%s%s in %s: %.0f ms a step, fp32 %.0f ms", amx ? "" : "no AMX here; ",
                precision_name((int)precision), bf16_in_hardware() ? "hardware" : "software", quick * 1e3, plain * 1e3);
    figure->elsewhere = !amx;
}

bool bench_has_amx(void)
{
    return onednn_load(NULL) && onednn_has_amx();
}
