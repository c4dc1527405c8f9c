/* Collects activations and writes them as F32 tensors, in the order they were computed. */
#include "runner/activations.h"

#include <string.h>

#include "core/memory.h"

void activations_add(struct activations *activations, const char *name, const real *data, int dims,
                     const int64_t *shape)
{
    struct safetensors_entry entry = {
        .name = memory_copy_text(name), .dtype = SAFETENSORS_F32, .dims = dims, .count = 1};
    for (int i = 0; i < dims; i++) {
        entry.shape[i] = shape[i];
        entry.count *= (size_t)shape[i];
    }
    entry.data = memory_copy_bytes(data, entry.count * sizeof *data);
    activations->entries =
        memory_grow(activations->entries, activations->count * sizeof entry, activations->count + 1, sizeof entry);
    activations->entries[activations->count++] = entry;
}

bool activations_write(const struct activations *activations, const char *path, struct error *err)
{
    return safetensors_write(path, activations->entries, activations->count,
                             (const char *const[]){"format", "pt", NULL}, err);
}

void activations_release(struct activations *activations)
{
    for (size_t i = 0; i < activations->count; i++) {
        memory_free((void *)activations->entries[i].name);
        memory_free((void *)activations->entries[i].data);
    }
    memory_free(activations->entries);
    *activations = (struct activations){.count = 0};
}
