/* Opens the files of a folder's weights. What the index says of them is checked, never believed. */
#include "runner/hf_shards.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/file.h"

static const char single_name[] = "model.safetensors", index_name[] = "model.safetensors.index.json",
                  extension[] = ".safetensors";
enum { INDEX_LIMIT = 16 << 20, SHARD_LIMIT = 1000, NAME_LIMIT = 255, EXTENSION = sizeof extension - 1 };

/* ---- the index ---- */

/* A file beside the index, and no path out of its folder. */
static bool name_is_safe(const char *name)
{
    size_t length = strlen(name);
    return length > EXTENSION && length <= NAME_LIMIT && name[0] != '.' && !strchr(name, '/') &&
           strcmp(name + length - EXTENSION, extension) == 0;
}

json_t *hf_index_parse(const char *name, const char *text, size_t size, json_t **root, struct problems *problems)
{
    struct place place = {.file = name};
    size_t before = problems->errors;
    json_error_t error;
    const char *key;
    json_t *value;
    *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!*root) {
        place.line = error.line;
        place.column = error.column;
        problem_add(problems, place, "not correct JSON: %s", error.text);
        return NULL;
    }
    json_t *map = json_object_get(*root, "weight_map");
    if (!json_is_object(map) || json_object_size(map) == 0) {
        problem_add(problems, place, "weight_map is missing or empty: expected an object, tensor to file name");
        return NULL;
    }
    json_object_foreach(*root, key, value)
    {
        if (strcmp(key, "weight_map") != 0 && strcmp(key, "metadata") != 0)
            problem_add(problems, place, "unknown key '%.100s': expected metadata and weight_map", key);
    }
    json_object_foreach(map, key, value)
    {
        if (!json_is_string(value) || !name_is_safe(json_string_value(value)))
            problem_add(problems, place,
                        "weight_map has '%.100s' for tensor '%.100s': expected a file name ending in %s",
                        json_is_string(value) ? json_string_value(value) : "no text", key, extension);
    }
    return problems->errors == before ? map : NULL;
}

/* ---- opening ---- */

static struct hf_shard *find_shard(const struct hf_shards *shards, const char *name)
{
    for (size_t i = 0; i < shards->count; i++)
        if (strcmp(shards->shards[i].name, name) == 0)
            return &shards->shards[i];
    return NULL;
}

static void open_shard(struct hf_shards *shards, const char *folder, const char *name, struct problems *problems)
{
    struct error err;
    shards->shards =
        memory_grow(shards->shards, shards->count * sizeof *shards->shards, shards->count + 1, sizeof *shards->shards);
    struct hf_shard *shard = &shards->shards[shards->count++];
    *shard = (struct hf_shard){.name = memory_copy_text(name), .path = path_join(folder, name)};
    shard->file = safetensors_open(shard->path, &err);
    if (shard->file)
        shard->used = memory_alloc(safetensors_count(shard->file), sizeof *shard->used);
    else
        problem_add(problems, (struct place){.file = NULL}, "%s", err.text);
}

/* Each tensor is where the map has it, and nowhere else. */
static void check_map(const struct hf_shards *shards, const json_t *map, const char *index, struct problems *problems)
{
    const char *tensor;
    json_t *value;
    json_object_foreach((json_t *)map, tensor, value)
    {
        const struct hf_shard *shard = find_shard(shards, json_string_value(value));
        if (!safetensors_find(shard->file, tensor))
            problem_add(problems, (struct place){.file = index},
                        "tensor '%.100s' is not in '%s', where weight_map has it", tensor, shard->name);
    }
    for (size_t i = 0; i < shards->count; i++)
        for (size_t k = 0; k < safetensors_count(shards->shards[i].file); k++) {
            tensor = safetensors_at(shards->shards[i].file, k)->name;
            const char *file = json_string_value(json_object_get(map, tensor));
            if (!file || strcmp(file, shards->shards[i].name) != 0)
                problem_add(problems, (struct place){.file = shards->shards[i].path},
                            "tensor '%.100s' is here, and weight_map has it %s%s", tensor, file ? "in " : "nowhere",
                            file ? file : "");
        }
}

static void open_listed(struct hf_shards *shards, const char *folder, const char *path, const json_t *map,
                        struct problems *problems)
{
    size_t before = problems->errors;
    const char *tensor;
    json_t *value;
    json_object_foreach((json_t *)map, tensor, value)
    {
        if (shards->count >= SHARD_LIMIT) {
            problem_add(problems, (struct place){.file = path}, "more than %d files: expected fewer", SHARD_LIMIT);
            return;
        }
        if (!find_shard(shards, json_string_value(value)))
            open_shard(shards, folder, json_string_value(value), problems);
    }
    if (problems->errors == before)
        check_map(shards, map, path, problems);
}

static void open_index(struct hf_shards *shards, const char *folder, const char *path, struct problems *problems)
{
    struct error err;
    char *text;
    size_t size;
    json_t *root = NULL;
    if (!file_read(path, INDEX_LIMIT, &text, &size, &err)) {
        problem_add(problems, (struct place){.file = NULL}, "%s", err.text);
        return;
    }
    json_t *map = hf_index_parse(path, text, size, &root, problems);
    memory_free(text);
    if (map)
        open_listed(shards, folder, path, map, problems);
    json_decref(root);
}

bool hf_shards_open(const char *folder, struct hf_shards *shards, struct problems *problems)
{
    size_t before = problems->errors;
    char *single = path_join(folder, single_name), *index = path_join(folder, index_name);
    bool has_single = access(single, F_OK) == 0, has_index = access(index, F_OK) == 0;
    *shards = (struct hf_shards){.count = 0};
    if (has_single && has_index)
        problem_add(problems, (struct place){.file = folder}, "has both %s and %s: expected one of them", single_name,
                    index_name);
    else if (has_single)
        open_shard(shards, folder, single_name, problems);
    else if (has_index)
        open_index(shards, folder, index, problems);
    else
        problem_add(problems, (struct place){.file = folder}, "has no %s and no %s", single_name, index_name);
    memory_free(single);
    memory_free(index);
    return problems->errors == before;
}

void hf_shards_close(struct hf_shards *shards)
{
    for (size_t i = 0; i < shards->count; i++) {
        safetensors_close(shards->shards[i].file);
        memory_free(shards->shards[i].name);
        memory_free(shards->shards[i].path);
        memory_free(shards->shards[i].used);
    }
    memory_free(shards->shards);
    *shards = (struct hf_shards){.count = 0};
}

/* ---- tensors ---- */

struct hf_place hf_shards_find(const struct hf_shards *shards, const char *name)
{
    for (size_t i = 0; i < shards->count; i++) {
        const struct safetensors_entry *entry = safetensors_find(shards->shards[i].file, name);
        if (entry)
            return (struct hf_place){&shards->shards[i], entry};
    }
    return (struct hf_place){NULL, NULL};
}

void hf_place_use(struct hf_place place)
{
    place.shard->used[place.entry - safetensors_at(place.shard->file, 0)] = true;
}
