/* A reference case: a folder with a model's settings and weights, batches, and what someone else computed from them.
 *
 *   struct reference_case c;
 *   if (!case_open("tests/golden/rope", NULL, &c, &problems)) ...
 *   case_close(&c);
 *
 * case.yaml holds `model:` and `training:` knobs and the vocabulary's size (model.vocab_size); weights.safetensors,
 * inputs.safetensors and expected.safetensors hold tensors. Settings and weights may come from a Hugging Face folder
 * instead. */
#ifndef RUNNER_CASE_H
#define RUNNER_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/knob.h"
#include "core/model.h"
#include "runner/hf_weights.h"
#include "runner/mistake.h"
#include "runner/problem.h"
#include "runner/safetensors.h"

struct reference_case {
    char *folder, *model_folder; /* the second of Hugging Face, or NULL */
    struct config config;
    struct model_config model; /* what is run: config.model, or with the mistake in it */
    enum mistake mistake;
    int64_t vocab_size;
    int64_t steps, batch_size, length; /* N, B, T */
    int32_t *inputs;                   /* [N, B, T] */
    int32_t *targets;                  /* the same; NULL when the case has none */
    struct safetensors *weights, *expected;
    struct hf_config hf; /* with a model_folder, in place of case.yaml and weights.safetensors */
    struct hf_weights *hf_weights;
};

/* model_folder: of Hugging Face, or NULL. False with problems that name all that is wrong with the folders. Owner:
 * caller, case_close(), also after false. */
bool case_open(const char *folder, const char *model_folder, struct reference_case *reference,
               struct problems *problems);
void case_close(struct reference_case *reference);

/* Whether an expected tensor's name begins so: "grad.", "train". */
bool case_expects(const struct reference_case *reference, const char *prefix);

/* A file of the folder, for messages. Returns buf. */
enum { CASE_PATH_SIZE = 4352 };
const char *case_path(const struct reference_case *reference, const char *file, char buf[CASE_PATH_SIZE]);

/* Each parameter of the model must be in the weights once, in its shape, and nothing else. Before the model is made, so
 * that nothing is allocated for sizes that only case.yaml claims. */
bool case_check_weights(struct reference_case *reference, struct problems *problems);
/* Copies them into the parameters of a model of the case, and sets the speeds of its rotation. */
void case_load_weights(const struct reference_case *reference, struct model *model);

#endif
