/* What a worker's memory is made of. */
#include "runner/footprint.h"

#include "core/gemm.h"
#include "core/memory.h"
#include "core/tensor.h"
#include "core/trainer.h"

/* A worker that has only begun was measured at this: the program and its libraries with the pages that OpenBLAS and the
 * tokenizer write. */
enum { BASE_BYTES = 8 << 20 };

/* Training reads the numbers of tokens alone, evaluation their sizes too. */
static size_t corpus_bytes(const struct dataset *dataset)
{
    size_t bytes = dataset->tokenizer_image_size + dataset->train.count * sizeof(int32_t);
    for (size_t i = 0; i < dataset->split_count; i++)
        bytes += dataset->splits[i].stream.count * (sizeof(int32_t) + sizeof(uint32_t));
    return bytes;
}

void footprint_predict(const struct config *config, int64_t vocab_size, const struct dataset *dataset,
                       struct footprint *footprint)
{
    struct tensor_table *table = tensor_table_create(&config->model, vocab_size);
    size_t parameters = table->total * sizeof(real);
    tensor_table_free(table);
    *footprint = (struct footprint){
        .parameters = parameters,
        .gradients = parameters,
        .moments = 2 * parameters,
        .activations = trainer_memory(config, vocab_size) - 4 * parameters,
        .corpus = dataset ? corpus_bytes(dataset) : 0,
        .curve = (size_t)config->training.steps * sizeof(struct step_record),
        .base = BASE_BYTES + gemm_memory(),
    };
    footprint->total = footprint->parameters + footprint->gradients + footprint->moments + footprint->activations +
                       footprint->corpus + footprint->curve + footprint->base;
}

json_t *footprint_json(const struct footprint *footprint)
{
    const struct {
        const char *name;
        size_t bytes;
    } parts[] = {
        {"parameters", footprint->parameters},
        {"gradients", footprint->gradients},
        {"moments", footprint->moments},
        {"activations", footprint->activations},
        {"corpus", footprint->corpus},
        {"curve", footprint->curve},
        {"base", footprint->base},
        {"total", footprint->total},
    };
    json_t *root = json_object();
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        json_put(root, parts[i].name, json_integer((json_int_t)parts[i].bytes));
    return root;
}
