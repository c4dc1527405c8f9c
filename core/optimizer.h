/* AdamW over flat buffers: clip by global norm, decoupled decay, bias-corrected update (Loshchilov and Hutter,
 * "Decoupled weight decay regularization", 2019). */
#ifndef CORE_OPTIMIZER_H
#define CORE_OPTIMIZER_H

#include "core/knob.h"
#include "core/real.h"
#include "core/tensor.h"

struct optimizer;

/* The table must outlive the optimizer. Owner: caller, optimizer_free(). */
struct optimizer *optimizer_create(const struct tensor_table *table, const struct training_config *training);
void optimizer_free(struct optimizer *optimizer); /* takes NULL */

/* Euclidean norm of all gradients together. */
double optimizer_grad_norm(const real *gradients, size_t count);

/* Update number `step` (0-based): gradients are scaled by min(1, grad_clip / (grad_norm + 1e-6)), tensors of two or
 * more dimensions are multiplied by 1 - learning_rate * weight_decay, then moved. */
void optimizer_step(struct optimizer *optimizer, real *parameters, const real *gradients, double grad_norm,
                    double learning_rate, int64_t step);

/* Flat buffers as long as the parameters; belong to the optimizer. */
real *optimizer_first_moment(struct optimizer *optimizer);
real *optimizer_second_moment(struct optimizer *optimizer);

#endif
