/* A decoder: parameters, gradients, forward and backward.
 *
 *   struct model *m = model_create(&config.model, vocab_size, max_tokens, &err);
 *   model_init(m, seed);
 *   model_logits(m, inputs, B, T, logits);                // or
 *   loss = model_loss_gradient(m, inputs, targets, B, T, step);
 *
 * Parameters and gradients are one flat buffer each; the table of tensors (tensor.h) names their parts. */
#ifndef CORE_MODEL_H
#define CORE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/knob.h"
#include "core/metric.h"
#include "core/profile.h"
#include "core/real.h"
#include "core/tensor.h"

struct model;

enum { MODEL_DEPTHS = 64 }; /* most that mtp_depth may be (knobs.def) */

/* Sees each named activation right after it is computed, in forward order: the names of the reference cases
 * ("embed", "blocks.0.attention.query", ..., "logits"). data is contiguous and only valid during the call. */
typedef void model_observer(void *context, const char *name, const real *data, int dims, const int64_t *shape);

/* max_tokens: the largest B * T of a forward pass. Owner: caller, model_free(). Parameters are zero until
 * model_init() or until they are written through model_parameters(). */
struct model *model_create(const struct model_config *config, int64_t vocab_size, int64_t max_tokens,
                           struct error *err);
void model_free(struct model *model); /* takes NULL */

/* training.precision of the model's products; fp32 without a call. */
void model_set_precision(struct model *model, int precision);

/* Initial values from the streams "init/<tensor>" of the seed. Also sets the seed of dropout. */
void model_init(struct model *model, int64_t seed);

const struct tensor_table *model_tensors(const struct model *model);
real *model_parameters(struct model *model);
real *model_gradients(struct model *model);
struct model_shape model_shape(const struct model *model);

/* Position tables for more positions than context_length (rope, sinusoidal; without positions there is no limit). False
 * when there are learned ones and they run out. */
bool model_extend_positions(struct model *model, int64_t positions);

/* Other rotation speeds than rope_base and rope_scale give: [head_dim / 2], radians a position. position: rope only. */
void model_set_frequencies(struct model *model, const double *frequencies);

/* NULL removes it. */
void model_observe(struct model *model, model_observer *observer, void *context);

/* What model_loss() counts of its targets is added to *sums from now on; NULL ends it. */
void model_measure(struct model *model, struct metric_sums *sums);

/* Counts the time of operations from now on (profile.h); NULL ends it. */
void model_profile(struct model *model, struct profile *profile);

/* inputs, targets [B, T]; target -1 is ignored. Sets the gradients to those of the loss (mean over targets, mean over
 * depths) with dropout of update `step`, and returns the loss in nats. */
double model_loss_gradient(struct model *model, const int32_t *inputs, const int32_t *targets, int64_t B, int64_t T,
                           int64_t step);

/* Sum of nats of depth 1 over targets that are not -1, without dropout or gradients; *counted gets how many. */
double model_loss(struct model *model, const int32_t *inputs, const int32_t *targets, int64_t B, int64_t T,
                  int64_t *counted);

/* logits [B*T, V] of depth 1, without dropout. */
void model_logits(struct model *model, const int32_t *inputs, int64_t B, int64_t T, real *logits);

/* Floating-point operations a trained token costs: 6 * (parameters in matrix products) + attention over the causal
 * half. */
double model_flops_per_token(const struct model_config *config, int64_t vocab_size);

/* Bytes model_create() and model_set_precision() will ask for, parameters and gradients included. */
size_t model_memory(const struct model_config *config, int64_t vocab_size, int64_t max_tokens, int precision);

#endif
