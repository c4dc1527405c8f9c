/* A variant taken apart before it is trained: shapes, parameters, costs, and whether it starts where it should.
 *
 *   struct inspection inspection;
 *   if (!inspect_run(&variant->config, vocab_size, seed, &inspection, &err)) ...
 *   inspection_release(&inspection); */
#ifndef RUNNER_INSPECT_H
#define RUNNER_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/knob.h"
#include "core/tensor.h"

/* A model whose first loss is further from ln V (a uniform guess) starts wrong. */
#define INSPECT_START_MARGIN 0.3

struct inspected_shape {
    char name[80];
    int dims;
    int64_t shape[4];
};

struct inspection {
    struct config config;
    int64_t vocab_size;
    struct tensor_table *table;
    double flops_per_token, flops_per_step;
    size_t memory;                  /* bytes of training, at its precision */
    bool walked;                    /* false: too large to try here; what follows is then empty */
    struct inspected_shape *shapes; /* after each operation of one sequence, in forward order */
    size_t shape_count;
    double start_loss; /* nats on random tokens before training; NaN when not walked */
};

/* False and err when the model cannot be made. Owner: caller, inspection_release(), also after false. */
bool inspect_run(const struct config *config, int64_t vocab_size, int64_t seed, struct inspection *inspection,
                 struct error *err);
void inspection_release(struct inspection *inspection);

/* Bytes of keys and values of one sequence of `positions`, fp32. */
double inspect_cache_bytes(const struct inspection *inspection, int64_t positions);

/* A loss before any step is further from ln V than it should be; that of the inspection, when there is one. */
bool inspect_loss_is_off(double loss, int64_t vocab_size);
/* What is then said of it; `what` as in "the loss at the start". */
void inspect_loss_describe(const char *what, double loss, int64_t vocab_size, char *text, size_t size);
bool inspect_start_is_off(const struct inspection *inspection);

#endif
