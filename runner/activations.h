/* Copies of the activations that an observer saw, to be written as a file that others can compare with. */
#ifndef RUNNER_ACTIVATIONS_H
#define RUNNER_ACTIVATIONS_H

#include "runner/safetensors.h"

struct activations { /* zeroed: none */
    struct safetensors_entry *entries;
    size_t count;
};

void activations_add(struct activations *activations, const char *name, const real *data, int dims,
                     const int64_t *shape);
bool activations_write(const struct activations *activations, const char *path, struct error *err);
void activations_release(struct activations *activations);

#endif
