/* The number type of the training core and the alphabet of its shape comments.
 *
 *   B batch (sequences)   T context length (positions)   C d_model        H n_heads
 *   K kv_heads            D head_dim                     F ff_hidden      V vocabulary
 *   L n_layers            N = B*T rows
 *
 * Shapes are written in brackets, slowest index first, rows contiguous: [N, C]. */
#ifndef CORE_REAL_H
#define CORE_REAL_H

/* float in the product; double only in the build that checks gradients. */
#ifdef CORE_DOUBLE
typedef double real;
#else
typedef float real;
#endif

#endif
