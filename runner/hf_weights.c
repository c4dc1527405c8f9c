/* Finds, checks and converts the tensors of a Hugging Face folder. */
#include "runner/hf_weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/hf_shards.h"
#include "runner/rope_rows.h"

struct hf_weights {
    const struct hf_config *config;
    struct hf_shards shards;
    bool bare; /* names lack the architecture's prefix: saved from the model without its head */
};

/* ---- which tensor ---- */

/* Whether the row's tensor is in the files of a model with these settings. */
static bool row_is_there(const struct hf_config *config, const struct hf_tensor *row)
{
    return row->needs == HF_ALWAYS || (row->needs == HF_ATTENTION_BIAS && config->attention_bias) ||
           (row->needs == HF_FEED_FORWARD_BIAS && config->feed_forward_bias);
}

/* The row of our tensor and its name there, or NULL when the files have none for it. */
static const struct hf_tensor *row_of(const struct hf_weights *weights, const struct tensor *tensor,
                                      char name[HF_NAME_SIZE])
{
    const struct hf_architecture *architecture = weights->config->architecture;
    int64_t block;
    const struct hf_tensor *row = hf_tensor_find(architecture, tensor->name, &block);
    if (!row || !row_is_there(weights->config, row))
        return NULL;
    hf_tensor_name(architecture, row, block, weights->bare, name);
    return row;
}

/* ---- checking ---- */

static bool check_tensor(const struct hf_tensor *row, const struct tensor *tensor, struct hf_place place,
                         const char *name, struct error *err)
{
    char ours[SAFETENSORS_SHAPE_TEXT], theirs[SAFETENSORS_SHAPE_TEXT];
    int64_t outputs = tensor->shape[0] * (row->parts ? row->parts : 1), shape[2] = {outputs, tensor->shape[1]};
    if (row->transposed) {
        shape[0] = tensor->shape[1];
        shape[1] = outputs;
    }
    if (!place.entry)
        return error_set(err, "tensor '%s' is missing", name);
    if (place.entry->dims != tensor->dims ||
        memcmp(place.entry->shape, shape, (size_t)tensor->dims * sizeof *shape) != 0)
        return error_set(err, "tensor '%s' has shape %s: expected %s by config.json", name,
                         safetensors_shape_text(place.entry->dims, place.entry->shape, theirs),
                         safetensors_shape_text(tensor->dims, shape, ours));
    return safetensors_is_real(place.entry, err);
}

static void check_tensors(struct hf_weights *weights, const char *folder, struct problems *problems)
{
    const struct hf_config *config = weights->config;
    struct tensor_table *table = tensor_table_create(&config->config.model, config->vocab_size);
    struct error err;
    char name[HF_NAME_SIZE];
    for (size_t i = 0; i < table->count; i++) {
        const struct hf_tensor *row = row_of(weights, &table->tensors[i], name);
        if (!row)
            continue;
        struct hf_place place = hf_shards_find(&weights->shards, name);
        if (!check_tensor(row, &table->tensors[i], place, name, &err))
            problem_add(problems, (struct place){.file = place.entry ? place.shard->path : folder}, "%s", err.text);
        if (place.entry)
            hf_place_use(place);
    }
    tensor_table_free(table);
}

/* A head saved besides the embedding that it is tied to must be the same numbers. */
static bool is_tied_head(const struct hf_weights *weights, const struct hf_shard *shard,
                         const struct safetensors_entry *entry)
{
    char name[HF_NAME_SIZE];
    const struct hf_config *config = weights->config;
    int64_t block;
    if (!config->config.model.tied_embeddings || strcmp(entry->name, "lm_head.weight") != 0)
        return false;
    hf_tensor_name(config->architecture, hf_tensor_find(config->architecture, "token_embedding.weight", &block), -1,
                   weights->bare, name);
    struct hf_place embedding = hf_shards_find(&weights->shards, name);
    if (!embedding.entry || embedding.entry->dtype != entry->dtype || embedding.entry->bytes != entry->bytes)
        return false;
    bool same = memcmp(embedding.entry->data, entry->data, entry->bytes) == 0;
    safetensors_release(embedding.shard->file, embedding.entry);
    safetensors_release(shard->file, entry);
    return same;
}

/* The number of the pattern that makes it a buffer of the architecture; -1: it is none. */
static int buffer_of(const struct hf_weights *weights, const char *name)
{
    const struct hf_architecture *architecture = weights->config->architecture;
    size_t prefix = weights->bare ? 0 : strlen(architecture->prefix);
    int64_t block;
    if (strncmp(name, architecture->prefix, prefix) != 0)
        return -1;
    for (int i = 0; architecture->buffers[i]; i++)
        if (hf_name_matches(architecture->buffers[i], name + prefix, &block) &&
            block < weights->config->config.model.n_layers)
            return i;
    return -1;
}

enum { BUFFER_PATTERNS = 4 };

static void report_unused(const struct hf_weights *weights, const struct hf_shard *shard,
                          const struct safetensors_entry *entry, size_t buffers[BUFFER_PATTERNS],
                          struct problems *problems)
{
    struct place place = {.file = shard->path};
    int buffer = buffer_of(weights, entry->name);
    if (buffer >= 0)
        buffers[buffer]++;
    else if (is_tied_head(weights, shard, entry))
        problem_note(problems, place,
                     "tensor 'lm_head.weight' is not used: it equals the embedding that it is tied to");
    else if (weights->config->config.model.tied_embeddings && strcmp(entry->name, "lm_head.weight") == 0)
        problem_add(
            problems, place,
            "tensor 'lm_head.weight' is not used: tie_word_embeddings is true, and it differs from the embedding");
    else
        problem_add(problems, place, "tensor '%.100s' is not used: it has no place in a %s of this config.json",
                    entry->name, weights->config->architecture->name);
}

static void check_unused(const struct hf_weights *weights, const char *folder, struct problems *problems)
{
    const struct hf_architecture *architecture = weights->config->architecture;
    size_t buffers[BUFFER_PATTERNS] = {0};
    for (size_t i = 0; i < weights->shards.count; i++) {
        const struct hf_shard *shard = &weights->shards.shards[i];
        for (size_t k = 0; k < safetensors_count(shard->file); k++)
            if (!shard->used[k])
                report_unused(weights, shard, safetensors_at(shard->file, k), buffers, problems);
    }
    for (int i = 0; architecture->buffers[i]; i++)
        if (buffers[i])
            problem_note(problems, (struct place){.file = folder},
                         "%zu tensor%s '%s%s' %s not used: computed anew, not learned", buffers[i],
                         buffers[i] == 1 ? "" : "s", weights->bare ? "" : architecture->prefix,
                         architecture->buffers[i], buffers[i] == 1 ? "is" : "are");
}

struct hf_weights *hf_weights_open(const char *folder, const struct hf_config *config, struct problems *problems)
{
    struct hf_weights *weights = memory_alloc(1, sizeof *weights);
    size_t before = problems->errors;
    int64_t block;
    char name[HF_NAME_SIZE];
    weights->config = config;
    if (hf_shards_open(folder, &weights->shards, problems)) {
        const struct hf_tensor *embedding = hf_tensor_find(config->architecture, "token_embedding.weight", &block);
        hf_tensor_name(config->architecture, embedding, -1, true, name);
        weights->bare = hf_shards_find(&weights->shards, name).entry != NULL;
        check_tensors(weights, folder, problems);
        check_unused(weights, folder, problems);
    }
    if (problems->errors == before)
        return weights;
    hf_weights_close(weights);
    return NULL;
}

void hf_weights_close(struct hf_weights *weights)
{
    if (!weights)
        return;
    hf_shards_close(&weights->shards);
    memory_free(weights);
}

/* ---- converting ---- */

/* out [rows, columns] = the part of theirs: rows part * rows and on, or columns where theirs is transposed. */
static void take_part(const struct hf_tensor *row, const struct tensor *tensor, const real *theirs, real *out)
{
    int64_t rows = tensor->shape[0], columns = tensor->shape[1], first = row->part * rows;
    int64_t all = rows * (row->parts ? row->parts : 1);
    if (!row->transposed) {
        memcpy(out, theirs + first * columns, tensor->count * sizeof *out);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            out[r * columns + c] = theirs[c * all + first + r];
}

/* Rows of a model that rotates neighbours, from the order of the files to its own. */
static void turn_rows(const struct hf_weights *weights, const struct tensor *tensor, real *out)
{
    const struct model_config *model = &weights->config->config.model;
    if (model->position != POSITION_ROPE || model->rope_layout != ROPE_ADJACENT || !rope_rows_has(tensor->name))
        return;
    real *split = memory_alloc(tensor->count, sizeof *split);
    memcpy(split, out, tensor->count * sizeof *split);
    rope_rows_to_adjacent(out, split, tensor->shape[0], tensor->shape[1], model_shape_of(model, 1).head_dim);
    memory_free(split);
}

static void load_tensor(const struct hf_weights *weights, const struct tensor *tensor, real *out)
{
    char name[HF_NAME_SIZE];
    const struct hf_tensor *row = row_of(weights, tensor, name);
    if (!row) {
        memset(out, 0, tensor->count * sizeof *out);
        return;
    }
    struct hf_place place = hf_shards_find(&weights->shards, name);
    if (!row->transposed && !row->parts)
        safetensors_read_real(place.entry, out, tensor->count, NULL);
    else {
        real *theirs = memory_alloc(place.entry->count, sizeof *theirs);
        safetensors_read_real(place.entry, theirs, place.entry->count, NULL);
        take_part(row, tensor, theirs, out);
        memory_free(theirs);
    }
    safetensors_release(place.shard->file, place.entry);
    turn_rows(weights, tensor, out);
}

void hf_weights_load(const struct hf_weights *weights, struct model *model)
{
    const struct tensor_table *table = model_tensors(model);
    for (size_t i = 0; i < table->count; i++)
        load_tensor(weights, &table->tensors[i], model_parameters(model) + table->tensors[i].offset);
}
