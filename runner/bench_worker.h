/* Real worker processes under the eyes of bench: when one begins, what memory it takes, how fast two are together. */
#ifndef RUNNER_BENCH_WORKER_H
#define RUNNER_BENCH_WORKER_H

#include "core/knob.h"
#include "runner/bench_lab.h"
#include "runner/dataset.h"

struct bench_worker {
    double start;        /* seconds from its start to that of its first step */
    int64_t peak_memory; /* bytes */
    bool shared;         /* it maps the token file, and shares the pages */
};

/* Trains config on the dataset to its end. False and err when the worker does not finish. */
bool bench_worker_run(const struct bench_lab *lab, const struct dataset *dataset, const struct config *config,
                      struct bench_worker *worker, struct error *err);

/* Two workers that train config side by side: each is held in turn while the other goes on alone, so that both are
 * measured in the same seconds. alone [turns + 1], both [turns]: steps a second, of one and of the two together;
 * both[i] lies between alone[i] and alone[i + 1]. config->training.steps is more than that takes. */
bool bench_workers_pace(const struct bench_lab *lab, const struct dataset *dataset, const struct config *config,
                        size_t turns, double *alone, double *both, struct error *err);

#endif
