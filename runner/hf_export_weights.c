/* model.safetensors of an export: our tensors under their names, transposed, joined and reordered as they have them. */
#include <inttypes.h>
#include <string.h>

#include "core/memory.h"
#include "runner/file.h"
#include "runner/hf_export.h"
#include "runner/rope_rows.h"
#include "runner/safetensors.h"

struct writing {
    const struct hf_architecture *architecture;
    const struct hf_export *model;
    int64_t head_dim;
    bool rows_move; /* rotated rows go from adjacent to split */
    struct safetensors_entry *entries;
    size_t count;
    char (*names)[HF_NAME_SIZE]; /* of the entries */
    real **buffers;              /* their data */
};

/* Our tensor of a row; NULL when the model has none. */
static const struct tensor *tensor_of(const struct writing *w, const char *pattern, const char *ending, int64_t block)
{
    char name[HF_NAME_SIZE];
    struct hf_tensor row = {.theirs = pattern};
    hf_tensor_name(w->architecture, &row, block, true, name);
    size_t length = strlen(name), cut = ending ? strlen(".bias") : 0;
    if (ending && length - cut + strlen(ending) < sizeof name)
        memcpy(name + length - cut, ending, strlen(ending) + 1);
    return tensor_find(w->model->table, name);
}

static bool row_is_bias(const struct hf_tensor *row)
{
    size_t length = strlen(row->ours);
    return length > 5 && strcmp(row->ours + length - 5, ".bias") == 0;
}

/* A bias that their architecture has and our model does without: zeros, one for each row of its weight. */
static const struct tensor *absent_bias(const struct writing *w, const struct hf_tensor *row, int64_t block,
                                        struct tensor *zeros)
{
    if (!row_is_bias(row) || row->needs != HF_ALWAYS)
        return NULL;
    const struct tensor *weight = tensor_of(w, row->ours, ".weight", block);
    if (!weight)
        return NULL;
    *zeros = (struct tensor){.dims = 1, .shape = {weight->shape[0], 1}, .count = (size_t)weight->shape[0]};
    return zeros;
}

/* The numbers of one of our tensors in their order; owner: caller, memory_free(). */
static real *tensor_take(const struct writing *w, const struct tensor *tensor)
{
    real *values = memory_alloc(tensor->count, sizeof *values);
    if (!tensor->name[0])
        return values;
    const real *ours = w->model->parameters + tensor->offset;
    if (w->rows_move && rope_rows_has(tensor->name))
        rope_rows_to_split(values, ours, tensor->shape[0], tensor->shape[1], w->head_dim);
    else
        memcpy(values, ours, tensor->count * sizeof *values);
    return values;
}

/* Puts a part [rows, columns] where it belongs: below the parts before it, or beside them when transposed. */
static void part_place(real *out, const struct hf_tensor *row, const struct tensor *tensor, const real *values)
{
    int64_t rows = tensor->shape[0], columns = tensor->shape[1], all = rows * (row->parts ? row->parts : 1);
    if (!row->transposed) {
        memcpy(out + row->part * rows * columns, values, tensor->count * sizeof *out);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            out[c * all + row->part * rows + r] = values[r * columns + c];
}

static struct safetensors_entry *entry_add(struct writing *w, const struct hf_tensor *row, const struct tensor *tensor,
                                           int64_t block)
{
    int64_t rows = tensor->shape[0] * (row->parts ? row->parts : 1), columns = tensor->shape[1];
    struct safetensors_entry *entry = &w->entries[w->count];
    *entry = (struct safetensors_entry){.dtype = SAFETENSORS_F32, .dims = tensor->dims, .shape = {rows, columns}};
    if (row->transposed) {
        entry->shape[0] = columns;
        entry->shape[1] = rows;
    }
    entry->name = hf_tensor_name(w->architecture, row, block, false, w->names[w->count]);
    entry->data = w->buffers[w->count] = memory_alloc((size_t)(rows * columns), sizeof(real));
    w->count++;
    return entry;
}

static void row_write(struct writing *w, const struct hf_tensor *row, int64_t block)
{
    struct tensor zeros;
    const struct tensor *tensor = tensor_of(w, row->ours, NULL, block);
    if (!tensor)
        tensor = absent_bias(w, row, block, &zeros);
    if (!tensor)
        return;
    if (row->part == 0)
        entry_add(w, row, tensor, block);
    real *values = tensor_take(w, tensor);
    part_place(w->buffers[w->count - 1], row, tensor, values); /* parts follow each other in the table */
    memory_free(values);
}

/* Rows that follow each other and are of a block are written block by block. */
static void rows_write(struct writing *w, int64_t blocks)
{
    const struct hf_tensor *rows = w->architecture->tensors;
    size_t count = w->architecture->tensor_count;
    for (size_t first = 0, end; first < count; first = end) {
        bool in_block = strchr(rows[first].ours, '*');
        for (end = first; end < count && in_block == (strchr(rows[end].ours, '*') != NULL); end++)
            continue;
        for (int64_t block = 0; block < (in_block ? blocks : 1); block++)
            for (size_t i = first; i < end; i++)
                row_write(w, &rows[i], block);
    }
}

bool hf_export_weights(const char *folder, const struct hf_architecture *architecture, const struct hf_export *model,
                       struct error *err)
{
    static const char *const metadata[] = {"format", "pt", NULL};
    const struct model_config *config = &model->config->model;
    struct model_shape shape = model_shape_of(config, tokenizer_vocab_size(model->tokenizer));
    size_t most = architecture->tensor_count * (size_t)(shape.n_layers + 1);
    struct writing w = {
        .architecture = architecture,
        .model = model,
        .head_dim = shape.head_dim,
        .rows_move = config->position == POSITION_ROPE && config->rope_layout == ROPE_ADJACENT,
        .entries = memory_alloc(most, sizeof *w.entries),
        .names = memory_alloc(most, sizeof *w.names),
        .buffers = memory_alloc(most, sizeof *w.buffers),
    };
    rows_write(&w, shape.n_layers);
    char *path = path_join(folder, "model.safetensors");
    bool good = safetensors_write(path, w.entries, w.count, metadata, err);
    memory_free(path);
    for (size_t i = 0; i < w.count; i++)
        memory_free(w.buffers[i]);
    memory_free(w.buffers);
    memory_free(w.names);
    memory_free(w.entries);
    return good;
}
