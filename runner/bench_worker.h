/* One real worker process under the eyes of bench: when it begins, what memory it takes. */
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

#endif
