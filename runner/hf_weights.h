/* The weights of a Hugging Face folder as the parameters of a model of ours.
 *
 *   struct hf_weights *weights = hf_weights_open("model", &config, &problems);
 *   if (weights) hf_weights_load(weights, model);
 *   hf_weights_close(weights);
 *
 * Every parameter has exactly one tensor, and every tensor a parameter: names, shapes and kinds are checked before a
 * model is made, so that nothing is allocated for sizes that only config.json claims. */
#ifndef RUNNER_HF_WEIGHTS_H
#define RUNNER_HF_WEIGHTS_H

#include "core/model.h"
#include "runner/hf_config.h"
#include "runner/problem.h"

struct hf_weights;

/* NULL with problems. Tensors that are only there again (a tied head, buffers) are named in notes. config must outlive
 * it. Owner: caller, hf_weights_close(). */
struct hf_weights *hf_weights_open(const char *folder, const struct hf_config *config, struct problems *problems);
void hf_weights_close(struct hf_weights *weights); /* takes NULL */

/* Fills every tensor of the model; biases that the files lack become 0. Memory of the mapped files is given back tensor
 * by tensor. The model may lack tensors of the files' model (mistake.h). */
void hf_weights_load(const struct hf_weights *weights, struct model *model);

#endif
