/* The table of `runner bench --all`: every target of speed, each measured.
 *
 * To add a figure: a row in bench_rows.c, and its function (those here, or one more). */
#ifndef RUNNER_BENCH_ROWS_H
#define RUNNER_BENCH_ROWS_H

#include "runner/bench_figure.h"
#include "runner/bench_lab.h"
#include "runner/bench_share.h"
#include "runner/dataset.h"

enum { BENCH_LENGTHS = 5 };

/* Bytes of a worker; measured 0: not yet. */
struct bench_memory {
    double measured, predicted;
};

/* A sweep beside the operations of its runs; wall 0: not yet. */
struct bench_grid {
    size_t runs;
    double wall, rate; /* seconds; of sgemm on all cores, operations a second */
    double training_flops, evaluation_flops;
};

/* What measurements share: made once, when the first one asks for it. */
struct bench {
    const char *corpus; /* "builtin" or an absolute path */
    const char *peers;  /* program that times other people's training, or NULL */
    const char *grid;   /* experiment file of the grid, absolute, or NULL */
    size_t rounds;
    struct bench_lab lab;
    struct bench_share shares[BENCH_CASES];
    double token_seconds[BENCH_LENGTHS]; /* by bench_length(); 0: not yet */
    double token_flops[BENCH_LENGTHS];
    struct bench_memory memory[BENCH_SHAPES];
    struct bench_grid grid_time;
    double bpe_train_seconds, bpe_encode_rate, bpe_memory; /* memory: as a multiple of the text */
    bool bpe_done;
};

extern const struct bench_row bench_rows[];
extern const size_t bench_row_count;

/* Whether a row's name contains the word. */
bool bench_rows_have(const char *word);

/* Measures the rows whose name contains one of the words (none: all); the others' figures are absent and not chosen.
 * chosen, figures [bench_row_count]. */
void bench_rows_measure(struct bench *bench, const char *const *words, size_t word_count, bool *chosen,
                        struct bench_figure *figures);

/* The share of a case, measured when it has not been. */
const struct bench_share *bench_share_of(struct bench *bench, int64_t index);

/* As far as oneDNN, which multiplies there, sees it. */
bool bench_has_amx(void);

/* Experiments and data of the lab: a file NAME of a shape, a temporary folder whose text is tokenised. */
bool bench_lab_ready(struct bench *bench, struct bench_figure *figure);
bool bench_dataset(struct bench *bench, const struct config *config, struct dataset *dataset,
                   struct bench_figure *figure);

/* Functions of the rows; the argument is said where it is not a case. */
void bench_measure_peak(struct bench *bench, int64_t index, struct bench_figure *figure);
void bench_measure_openblas(struct bench *bench, int64_t index, struct bench_figure *figure);
void bench_measure_share(struct bench *bench, int64_t index, struct bench_figure *figure);
void bench_measure_length(struct bench *bench, int64_t length, struct bench_figure *figure);
void bench_measure_line(struct bench *bench, int64_t length, struct bench_figure *figure);
void bench_measure_precision(struct bench *bench, int64_t precision, struct bench_figure *figure);
void bench_measure_start(struct bench *bench, int64_t unused, struct bench_figure *figure);
void bench_measure_memory(struct bench *bench, int64_t index, struct bench_figure *figure);
void bench_measure_peak_memory(struct bench *bench, int64_t index, struct bench_figure *figure);
void bench_measure_workers(struct bench *bench, int64_t unused, struct bench_figure *figure);
void bench_measure_supervision(struct bench *bench, int64_t unused, struct bench_figure *figure);
void bench_measure_grid(struct bench *bench, int64_t steps, struct bench_figure *figure);
/* The same with evaluations among the operations that the limit counts. */
void bench_measure_grid_all(struct bench *bench, int64_t steps, struct bench_figure *figure);
void bench_measure_bpe_training(struct bench *bench, int64_t unused, struct bench_figure *figure);
void bench_measure_bpe_memory(struct bench *bench, int64_t unused, struct bench_figure *figure);
void bench_measure_bpe_encoding(struct bench *bench, int64_t unused, struct bench_figure *figure);
/* Against the best of theirs at that precision. */
void bench_measure_peers(struct bench *bench, int64_t precision, struct bench_figure *figure);
/* The same of any model: each way of the program's in turns with steps of ours, as a machine's pace changes within
 * seconds. folder: for its log. Absent when a way was not timed: the best of some of theirs is not their best. */
void bench_peers_best(const char *peers, const char *precision, const char *folder, struct bench_model *model,
                      const char *mark, struct bench_figure *figure);

#endif
