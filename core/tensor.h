/* The table of tensors: what parameters a model has, where they lie in the flat buffer, how they start, whether they
 * decay. */
#ifndef CORE_TENSOR_H
#define CORE_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/knob.h"

enum tensor_init { TENSOR_ZEROS, TENSOR_ONES, TENSOR_NORMAL };

struct tensor {
    char name[80];
    int dims;         /* 1 or 2 */
    int64_t shape[2]; /* rows = outputs, columns = inputs; a vector has shape[1] = 1 */
    size_t offset;    /* first element in the flat buffers */
    size_t count;
    enum tensor_init init;
    double init_std; /* for TENSOR_NORMAL */
    bool decays;     /* weight decay applies: two dimensions or more */
    bool multiplies; /* is the matrix of a product for every token: counts in FLOPs */
};

struct tensor_table {
    struct tensor *tensors;
    size_t count;
    size_t total; /* parameters */
};

/* Owner: caller, tensor_table_free(). The configuration must have passed config_check(). */
struct tensor_table *tensor_table_create(const struct model_config *config, int64_t vocab_size);
void tensor_table_free(struct tensor_table *table); /* takes NULL */

/* NULL when there is none of that name. */
const struct tensor *tensor_find(const struct tensor_table *table, const char *name);

#endif
