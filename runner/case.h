/* A reference case: a folder with a model's settings and weights, batches, and what someone else computed from them.
 *
 *   struct reference_case c;
 *   if (!case_open("tests/golden/rope", &c, &problems)) ...
 *   case_close(&c);
 *
 * case.yaml holds `model:` and `training:` knobs and the vocabulary's size (model.vocab_size); weights.safetensors,
 * inputs.safetensors and expected.safetensors hold tensors. */
#ifndef RUNNER_CASE_H
#define RUNNER_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/knob.h"
#include "core/model.h"
#include "runner/problem.h"
#include "runner/safetensors.h"

struct reference_case {
    char *folder;
    struct config config;
    int64_t vocab_size;
    int64_t steps, batch_size, length; /* N, B, T */
    int32_t *inputs;                   /* [N, B, T] */
    int32_t *targets;                  /* the same; NULL when the case has none */
    struct safetensors *weights, *expected;
};

/* False with problems that name all that is wrong with the folder. Owner: caller, case_close(), also after false. */
bool case_open(const char *folder, struct reference_case *reference, struct problems *problems);
void case_close(struct reference_case *reference);

/* A file of the folder, for messages. Returns buf. */
enum { CASE_PATH_SIZE = 4352 };
const char *case_path(const struct reference_case *reference, const char *file, char buf[CASE_PATH_SIZE]);

/* Each parameter of the model must be in the weights once, in its shape, and nothing else. Before the model is made, so
 * that nothing is allocated for sizes that only case.yaml claims. */
bool case_check_weights(const struct reference_case *reference, struct problems *problems);
/* Copies them into the parameters of a model of the case. */
void case_load_weights(const struct reference_case *reference, struct model *model);

#endif
