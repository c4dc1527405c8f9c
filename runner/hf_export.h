/* A trained model as a Hugging Face folder: config.json, model.safetensors, generation_config.json, tokenizer.json,
 * tokenizer_config.json.
 *
 *   const struct hf_architecture *architecture = hf_export_architecture(&config, &problems);
 *   if (architecture) hf_export_write("folder", architecture, &model, &err);
 *
 * Rotated rows are written in the split order that the world has. A run of rope_layout adjacent says so in config.json
 * ("runner_rope_layout", which other readers pass over), so that ours turns them back and computes the same bits. */
#ifndef RUNNER_HF_EXPORT_H
#define RUNNER_HF_EXPORT_H

#include "core/knob.h"
#include "core/real.h"
#include "core/tensor.h"
#include "core/tokenizer.h"
#include "runner/hf_architecture.h"
#include "runner/json.h"
#include "runner/problem.h"

/* The name our settings have there; NULL with a problem for each knob that stands against each architecture. */
const struct hf_architecture *hf_export_architecture(const struct config *config, struct problems *problems);

struct hf_export {
    const struct config *config;
    const struct tokenizer *tokenizer;
    const struct tensor_table *table;
    const real *parameters; /* [table->total] */
};

/* config.json and generation_config.json. config.json is in the layout that versions 4 and 5 of the reference library
 * both read. Owner: caller, json_decref(). */
json_t *hf_export_config_json(const struct hf_architecture *architecture, const struct hf_export *model);
json_t *hf_export_generation_json(const struct hf_export *model);

/* model.safetensors in an existing folder. */
bool hf_export_weights(const char *folder, const struct hf_architecture *architecture, const struct hf_export *model,
                       struct error *err);

/* False and err unless there is nothing at the path, or an empty folder. */
bool hf_export_place(const char *folder, struct error *err);

/* The whole folder, in such a place. It appears whole or not at all. */
bool hf_export_write(const char *folder, const struct hf_architecture *architecture, const struct hf_export *model,
                     struct error *err);

/* Names of its files; ends with NULL. */
extern const char *const hf_export_files[];

#endif
