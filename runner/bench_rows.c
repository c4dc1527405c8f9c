/* Every target of speed, a row each. */
#include "runner/bench_rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/bench_peak.h"
#include "runner/command.h"
#include "runner/file.h"

/* At T = 2048 attention is a third of the operations, and its products are small (128 rows, head_dim columns): at half
 * the rate of the others a token costs 1.36 times what operations alone say. */
#define LENGTH_LIMIT 1.5

const struct bench_row bench_rows[] = {
    {"sgemm on Day 2 shapes, of the core's FMA peak", "%", BENCH_SHOWN, 0, "%.1f", true, bench_measure_peak,
     BENCH_DAY2},
    {"Day 1 step, of sgemm", "%", BENCH_AT_LEAST, 60, "%.1f", true, bench_measure_share, BENCH_DAY1},
    {"Day 2 step, of sgemm", "%", BENCH_AT_LEAST, 80, "%.1f", true, bench_measure_share, BENCH_DAY2},
    {"Day 2 modern step, of sgemm", "%", BENCH_AT_LEAST, 75, "%.1f", true, bench_measure_share, BENCH_DAY2_MODERN},
    {"Day 1 step, of OpenBLAS's sgemm", "x", BENCH_SHOWN, 0, "%.2f", false, bench_measure_openblas, BENCH_DAY1},
    {"Day 2 step, of OpenBLAS's sgemm", "x", BENCH_SHOWN, 0, "%.2f", false, bench_measure_openblas, BENCH_DAY2},
    {"Day 2 modern step, of OpenBLAS's sgemm", "x", BENCH_SHOWN, 0, "%.2f", false, bench_measure_openblas,
     BENCH_DAY2_MODERN},
    {"token at T = 256, off the line of attention", "%", BENCH_AT_MOST, 15, "%.1f", false, bench_measure_line, 256},
    {"token at T = 512, off the line of attention", "%", BENCH_AT_MOST, 15, "%.1f", false, bench_measure_line, 512},
    {"token at T = 1024, off the line of attention", "%", BENCH_AT_MOST, 15, "%.1f", false, bench_measure_line, 1024},
    {"token at T = 2048, of what FLOPs say", "x", BENCH_AT_MOST, LENGTH_LIMIT, "%.2f", false, bench_measure_length,
     2048},
    {"bf16 step, of fp32", "x", BENCH_AT_LEAST, 4, "%.2f", false, bench_measure_precision, PRECISION_BF16},
    {"bf16x3 step, of fp32", "x", BENCH_AT_LEAST, 1.6, "%.2f", false, bench_measure_precision, PRECISION_BF16X3},
    {"two workers on two cores, of one", "x", BENCH_AT_LEAST, 1.9, "%.2f", false, bench_measure_workers, 0},
    {"supervising, logging, progress", "%", BENCH_AT_MOST, 1, "%.2f", false, bench_measure_supervision, 0},
    {"worker, start to first step", "s", BENCH_AT_MOST, 0.3, "%.3f", false, bench_measure_start, 0},
    {"Day 1 memory, off the prediction", "%", BENCH_AT_MOST, 10, "%.1f", false, bench_measure_memory, BENCH_DAY1},
    {"Day 2 memory, off the prediction", "%", BENCH_AT_MOST, 10, "%.1f", false, bench_measure_memory, BENCH_DAY2},
    {"Day 5 memory, off the prediction", "%", BENCH_AT_MOST, 10, "%.1f", false, bench_measure_memory, BENCH_DAY5},
    {"Day 5 memory", "GB", BENCH_AT_MOST, 3, "%.2f", false, bench_measure_peak_memory, BENCH_DAY5},
    {"BPE, 100 MB to 8,192", "s", BENCH_AT_MOST, 120, "%.1f", false, bench_measure_bpe_training, 0},
    {"BPE, memory over the text", "x", BENCH_AT_MOST, 4, "%.2f", false, bench_measure_bpe_memory, 0},
    {"BPE, encoding", "MB/s", BENCH_AT_LEAST, 20, "%.1f", false, bench_measure_bpe_encoding, 0},
    {"grid of Day 2 parts, of training FLOPs at 75 %", "x", BENCH_AT_MOST, 1, "%.2f", false, bench_measure_grid, 32},
    {"grid of Day 2 parts, evaluation FLOPs too", "x", BENCH_AT_MOST, 1, "%.2f", false, bench_measure_grid_all, 32},
    {"Day 2 step, of the best PyTorch a core", "x", BENCH_AT_LEAST, 1.4, "%.2f", false, bench_measure_peers,
     PRECISION_FP32},
    {"Day 2 bf16 step, of the best PyTorch bf16 a core", "x", BENCH_AT_LEAST, 2, "%.2f", false, bench_measure_peers,
     PRECISION_BF16},
};
const size_t bench_row_count = sizeof bench_rows / sizeof bench_rows[0];

const struct bench_share *bench_share_of(struct bench *bench, int64_t index)
{
    if (!bench->shares[index].measured)
        bench_share_measure(&bench_cases[index], bench->rounds, &bench->shares[index]);
    return &bench->shares[index];
}

void bench_measure_share(struct bench *bench, int64_t index, struct bench_figure *figure)
{
    const struct bench_share *share = bench_share_of(bench, index);
    bench_value(figure, 100 * share->ratio, "fp32, one thread: %.1f ms a step, sgemm %.1f GFLOP/s",
                share->step_seconds * 1e3, share->sgemm_rate * 1e-9);
}

/* No ceiling: the core's own products may be faster. */
void bench_measure_openblas(struct bench *bench, int64_t index, struct bench_figure *figure)
{
    const struct bench_share *share = bench_share_of(bench, index);
    bench_value(figure, share->openblas_ratio, "the same steps; sgemm of OpenBLAS alone %.1f GFLOP/s",
                share->openblas_rate * 1e-9);
}

void bench_measure_peak(struct bench *bench, int64_t index, struct bench_figure *figure)
{
    const struct bench_case *row = &bench_cases[index];
    struct config config = bench_case_config(row);
    double *peaks = memory_alloc(bench->rounds, sizeof *peaks), *rates = memory_alloc(bench->rounds, sizeof *rates);
    struct bench_model model;
    bench_model_init(&model, &config, row->vocab_size);
    bench_model_sgemm(&model);
    for (size_t i = 0; i < bench->rounds; i++) {
        peaks[i] = bench_peak_rate();
        rates[i] = bench_model_sgemm(&model);
    }
    bench_model_release(&model);
    double peak = bench_median(peaks, bench->rounds), rate = bench_median(rates, bench->rounds);
    bench_value(figure, 100 * rate / peak, "%.1f of %.1f GFLOP/s", rate * 1e-9, peak * 1e-9);
    memory_free(peaks);
    memory_free(rates);
}

/* ---- the lab ---- */

bool bench_lab_ready(struct bench *bench, struct bench_figure *figure)
{
    struct error err;
    if (bench->lab.folder || bench_lab_open(&bench->lab, &err))
        return true;
    bench_absent(figure, "%s", err.text);
    return false;
}

bool bench_dataset(struct bench *bench, const struct config *config, struct dataset *dataset,
                   struct bench_figure *figure)
{
    char *paths[] = {memory_copy_text(bench->corpus)};
    bool builtin = strcmp(bench->corpus, "builtin") == 0;
    struct data_spec spec = {
        .corpus = {.builtin = builtin, .given = true, .paths = paths, .path_count = builtin ? 0 : 1}};
    spec.corpus.folder = memory_copy_text("");
    struct error err;
    bool good = bench_lab_ready(bench, figure);
    char *cache = good ? bench_lab_path(&bench->lab, "cache") : NULL;
    if (good && !dataset_prepare(&spec, config, cache, message_note, NULL, dataset, &err)) {
        bench_absent(figure, "%s", err.text);
        good = false;
    }
    memory_free(cache);
    memory_free(spec.corpus.folder);
    memory_free(paths[0]);
    return good;
}

static bool row_wanted(const struct bench_row *row, const char *const *words, size_t word_count)
{
    bool wanted = word_count == 0;
    for (size_t i = 0; i < word_count; i++)
        wanted = wanted || strstr(row->name, words[i]) != NULL;
    return wanted;
}

bool bench_rows_have(const char *word)
{
    for (size_t i = 0; i < bench_row_count; i++)
        if (strstr(bench_rows[i].name, word))
            return true;
    return false;
}

void bench_rows_measure(struct bench *bench, const char *const *words, size_t word_count, bool *chosen,
                        struct bench_figure *figures)
{
    for (size_t i = 0; i < bench_row_count; i++) {
        const struct bench_row *row = &bench_rows[i];
        chosen[i] = row_wanted(row, words, word_count);
        bench_absent(&figures[i], "not asked for");
        if (!chosen[i])
            continue;
        message("measuring %s", row->name);
        row->measure(bench, row->argument, &figures[i]);
    }
    bench_lab_close(&bench->lab);
}
