/* The resident memory of a worker, predicted before it runs and part by part.
 *
 *   | parameters | gradients | moments | activations, batch | corpus | curve | program and libraries | */
#ifndef RUNNER_FOOTPRINT_H
#define RUNNER_FOOTPRINT_H

#include <stddef.h>

#include "core/knob.h"
#include "runner/dataset.h"
#include "runner/json.h"

struct footprint {
    size_t parameters, gradients, moments;
    size_t activations; /* the arena, position tables, one batch */
    size_t corpus;      /* pages of the mapped token file that a run reads, shared by all workers; 0: not known */
    size_t curve;       /* records of the steps, kept for checkpoints */
    size_t base;        /* program, libraries, the work space of the matrix products */
    size_t total;
};

/* dataset NULL: the text is not known, and left out. */
void footprint_predict(const struct config *config, int64_t vocab_size, const struct dataset *dataset,
                       struct footprint *footprint);
json_t *footprint_json(const struct footprint *footprint);

#endif
