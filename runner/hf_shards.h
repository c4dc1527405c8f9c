/* The safetensors files of a Hugging Face folder as one set of tensors: model.safetensors, or the shards that
 * model.safetensors.index.json lists. */
#ifndef RUNNER_HF_SHARDS_H
#define RUNNER_HF_SHARDS_H

#include <jansson.h>

#include "runner/problem.h"
#include "runner/safetensors.h"

struct hf_shards {
    struct hf_shard {
        char *name, *path;
        struct safetensors *file;
        bool *used; /* by number of the entry */
    } * shards;
    size_t count;
};

/* An entry and the shard it is in. */
struct hf_place {
    struct hf_shard *shard;
    const struct safetensors_entry *entry; /* NULL: nowhere */
};

/* False with problems, also when the index and the shards do not agree. Owner: caller, hf_shards_close(), also after
 * false. */
bool hf_shards_open(const char *folder, struct hf_shards *shards, struct problems *problems);
void hf_shards_close(struct hf_shards *shards);

struct hf_place hf_shards_find(const struct hf_shards *shards, const char *name);
void hf_place_use(struct hf_place place);

/* The weight_map of an index: tensor to file name, checked; NULL with problems. name is for messages. Owner: caller,
 * json_decref() of *root, which the map is part of. */
json_t *hf_index_parse(const char *name, const char *text, size_t size, json_t **root, struct problems *problems);

#endif
