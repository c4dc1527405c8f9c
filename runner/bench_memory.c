/* Real workers: how soon they train, and what memory they take against the prediction. */
#include <math.h>
#include <unistd.h>

#include "runner/bench_rows.h"
#include "runner/bench_worker.h"
#include "runner/footprint.h"

/* A shape of bench on real text, a few steps long: evaluated on one block before and, where there is time for it, on
 * many after. */
static struct config short_run(const struct bench_case *row, int64_t steps)
{
    struct config config = bench_case_config(row);
    config.tokenizer.vocab_size = row->vocab_size;
    config.training.steps = steps;
    config.training.warmup_steps = 0;
    config.evaluation.interval = steps;
    config.evaluation.blocks = 1;
    config.evaluation.final_blocks = row->d_model < 512 ? 64 : 4;
    return config;
}

void bench_measure_start(struct bench *bench, int64_t unused, struct bench_figure *figure)
{
    (void)unused;
    enum { TRIES = 5 };
    struct config config = short_run(&bench_cases[BENCH_DAY2], 1);
    struct dataset dataset;
    struct error err;
    double seconds[TRIES];
    bool shared = true, good = bench_dataset(bench, &config, &dataset, figure);
    if (!good)
        return;
    for (size_t i = 0; good && i < TRIES; i++) {
        struct bench_worker worker;
        good = bench_worker_run(&bench->lab, &dataset, &config, &worker, &err);
        seconds[i] = worker.start;
        shared = shared && worker.shared;
    }
    dataset_close(&dataset);
    if (!good)
        bench_absent(figure, "%s", err.text);
    else
        bench_value(figure, bench_median(seconds, TRIES),
                    "median of %d workers at the Day 2 shape, the first evaluation of one block included; the token "
                    "file is %s",
                    TRIES, shared ? "mapped and shared" : "NOT shared");
}

/* Steps enough that all of the text has been read, or as many as there is time for. */
static int64_t steps_of(int64_t index)
{
    static const int64_t steps[BENCH_SHAPES] = {
        [BENCH_DAY1] = 40, [BENCH_DAY2] = 8, [BENCH_DAY2_MODERN] = 8, [BENCH_DAY5] = 1};
    return steps[index];
}

/* Measured once and kept, as two rows show it: how far from the prediction, and how much. */
static bool memory_measure(struct bench *bench, int64_t index, double *measured, double *predicted,
                           struct bench_figure *figure)
{
    struct bench_memory *kept = &bench->memory[index];
    const struct bench_case *row = &bench_cases[index];
    struct config config = short_run(row, steps_of(index));
    struct dataset dataset;
    struct footprint footprint;
    struct bench_worker worker;
    struct error err;
    if (kept->measured == 0) {
        if (!bench_dataset(bench, &config, &dataset, figure))
            return false;
        footprint_predict(&config, tokenizer_vocab_size(dataset.tokenizer), &dataset, &footprint);
        double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
        bool fits = (double)footprint.total < machine / 2;
        bool good = fits && bench_worker_run(&bench->lab, &dataset, &config, &worker, &err);
        dataset_close(&dataset);
        if (!good) {
            bench_absent(figure, "%s", fits ? err.text : "more than half of this machine's memory");
            return false;
        }
        kept->measured = (double)worker.peak_memory;
        kept->predicted = (double)footprint.total;
    }
    *measured = kept->measured;
    *predicted = kept->predicted;
    return true;
}

void bench_measure_memory(struct bench *bench, int64_t index, struct bench_figure *figure)
{
    double measured, predicted;
    if (memory_measure(bench, index, &measured, &predicted, figure))
        bench_value(figure, 100 * fabs(measured / predicted - 1), "peak of a worker %.1f MB, predicted %.1f MB",
                    measured * 1e-6, predicted * 1e-6);
}

void bench_measure_peak_memory(struct bench *bench, int64_t index, struct bench_figure *figure)
{
    double measured, predicted;
    if (memory_measure(bench, index, &measured, &predicted, figure))
        bench_value(figure, measured * 1e-9, "%s, batch %d, %d step of a worker, evaluation included",
                    bench_cases[index].name, (int)bench_cases[index].batch_size, (int)steps_of(index));
}
