/* Reads a reference case and checks that its parts fit each other. */
#include "runner/case.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/file.h"
#include "runner/yaml.h"

/* The size of the vocabulary is no knob (a tokenizer decides it in a run) but it is typed like one. */
static const struct knob vocabulary = {
    .name = "model.vocab_size",
    .group = "model",
    .field = "vocab_size",
    .kind = KNOB_INTEGER,
    .minimum = 1,
    .maximum = 1000000,
};

static const char *const groups[] = {"model", "training"};
enum { GROUP_COUNT = sizeof groups / sizeof groups[0], NAME_LIMIT = 64 };

const char *case_path(const struct reference_case *reference, const char *file, char buf[CASE_PATH_SIZE])
{
    snprintf(buf, CASE_PATH_SIZE, "%s/%s", reference->folder, file);
    return buf;
}

static void report_file(const struct reference_case *reference, const char *file, const char *text,
                        struct problems *problems)
{
    char path[CASE_PATH_SIZE];
    struct place place = {.file = case_path(reference, file, path)};
    problem_add(problems, place, "%s", text);
}

/* ---- case.yaml ---- */

static const struct knob *find_setting(const char *group, const char *field)
{
    char name[128];
    snprintf(name, sizeof name, "%s.%s", group, field);
    return strcmp(name, vocabulary.name) == 0 ? &vocabulary : knob_find(name);
}

static void report_unknown(const char *group, const char *field, struct place place, struct problems *problems)
{
    const char *names[NAME_LIMIT];
    size_t count = 0;
    for (size_t i = 0; i < knob_count && count < NAME_LIMIT - 1; i++)
        if (strcmp(knobs[i].group, group) == 0)
            names[count++] = knobs[i].field;
    if (strcmp(group, vocabulary.group) == 0)
        names[count++] = vocabulary.field;
    const char *nearest = suggest_nearest(field, names, count);
    problem_add(problems, place, "unknown key '%.100s' in %s%s%s%s", field, group, nearest ? ": did you mean '" : "",
                nearest ? nearest : "", nearest ? "'?" : "");
}

static void read_setting(struct reference_case *reference, const struct knob *knob, const struct yaml *node,
                         struct problems *problems)
{
    union knob_value value;
    struct error err;
    if (yaml_is_null(node))
        return;
    if (node->kind != YAML_SCALAR) {
        char accepted[256];
        problem_add(problems, node->place, "%s: expected %s, not a list or mapping", knob->name,
                    knob_describe(knob, accepted, sizeof accepted));
    } else if (!knob_parse(knob, node->text, node->quoted, &value, &err))
        problem_add(problems, node->place, "%s", err.text);
    else if (knob == &vocabulary)
        reference->vocab_size = value.integer;
    else
        knob_set(knob, &reference->config, value);
}

static void read_group(struct reference_case *reference, const char *group, const struct yaml *mapping,
                       struct problems *problems)
{
    if (yaml_is_null(mapping))
        return;
    if (mapping->kind != YAML_MAPPING) {
        problem_add(problems, mapping->place, "%s: expected a mapping of settings", group);
        return;
    }
    for (size_t i = 0; i < mapping->count; i++) {
        const struct knob *knob = find_setting(group, mapping->keys[i]);
        if (knob)
            read_setting(reference, knob, mapping->items[i], problems);
        else
            report_unknown(group, mapping->keys[i], mapping->key_places[i], problems);
    }
}

struct check_context {
    const struct yaml *tree;
    struct problems *problems;
};

static struct place place_of(const struct yaml *tree, const struct knob *knob)
{
    const struct yaml *group = yaml_get(tree, knob->group);
    const struct yaml *node = group && group->kind == YAML_MAPPING ? yaml_get(group, knob->field) : NULL;
    return node ? node->place : group ? group->place : tree->place;
}

static void report_combination(void *context, const struct knob *knob, const char *text)
{
    const struct check_context *check = context;
    problem_add(check->problems, place_of(check->tree, knob), "%s", text);
}

static void check_settings(const struct reference_case *reference, const struct yaml *tree, struct problems *problems)
{
    struct check_context context = {tree, problems};
    config_check(&reference->config, report_combination, &context);
    if (reference->vocab_size == 0)
        problem_add(problems, place_of(tree, &vocabulary), "model.vocab_size is missing: expected a whole number");
    if (reference->config.model.dropout > 0)
        problem_add(problems, place_of(tree, knob_find("model.dropout")),
                    "model.dropout is %g: expected 0, for nobody else draws our random numbers",
                    reference->config.model.dropout);
}

static void read_settings(struct reference_case *reference, struct problems *problems)
{
    char path[CASE_PATH_SIZE];
    struct yaml *tree = yaml_read(case_path(reference, "case.yaml", path), problems);
    if (!tree)
        return;
    size_t before = problems->errors;
    if (tree->kind != YAML_MAPPING)
        problem_add(problems, tree->place, "expected a mapping with 'model' and 'training'");
    for (size_t i = 0; tree->kind == YAML_MAPPING && i < tree->count; i++) {
        size_t group = 0;
        while (group < GROUP_COUNT && strcmp(groups[group], tree->keys[i]) != 0)
            group++;
        if (group < GROUP_COUNT)
            read_group(reference, groups[group], tree->items[i], problems);
        else
            problem_add(problems, tree->key_places[i], "unknown key '%.100s': expected 'model' or 'training'",
                        tree->keys[i]);
    }
    if (problems->errors == before)
        check_settings(reference, tree, problems);
    yaml_tree_free(tree);
}

/* ---- inputs.safetensors ---- */

/* Token numbers from lowest to V - 1. */
static bool check_tokens(const struct reference_case *reference, const char *name, const int32_t *tokens,
                         int32_t lowest, struct error *err)
{
    int64_t count = reference->steps * reference->batch_size * reference->length;
    for (int64_t i = 0; i < count; i++)
        if (tokens[i] < lowest || tokens[i] >= reference->vocab_size)
            return error_set(err, "'%s' holds %" PRId32 " at position %" PRId64 ": expected %" PRId32 " to %" PRId64,
                             name, tokens[i], i, lowest, reference->vocab_size - 1);
    return true;
}

static bool read_inputs(struct reference_case *reference, const struct safetensors *file, struct error *err)
{
    const struct safetensors_entry *inputs = safetensors_find(file, "inputs");
    const struct safetensors_entry *targets = safetensors_find(file, "targets");
    char text[SAFETENSORS_SHAPE_TEXT];
    for (size_t i = 0; i < safetensors_count(file); i++)
        if (safetensors_at(file, i) != inputs && safetensors_at(file, i) != targets)
            return error_set(err, "tensor '%.100s' has no use: expected 'inputs' and 'targets'",
                             safetensors_at(file, i)->name);
    if (!inputs)
        return error_set(err, "tensor 'inputs' is missing");
    bool hf = reference->model_folder != NULL; /* one batch */
    if (inputs->dims != (hf ? 2 : 3) || inputs->count == 0)
        return error_set(err, "'inputs' has shape %s: expected %s",
                         safetensors_shape_text(inputs->dims, inputs->shape, text),
                         hf ? "[batch, length]" : "[steps, batch, length]");
    if (targets && (targets->dims != inputs->dims ||
                    memcmp(targets->shape, inputs->shape, (size_t)inputs->dims * sizeof inputs->shape[0]) != 0))
        return error_set(err, "'targets' has shape %s: expected that of 'inputs'",
                         safetensors_shape_text(targets->dims, targets->shape, text));
    reference->steps = hf ? 1 : inputs->shape[0];
    reference->batch_size = inputs->shape[inputs->dims - 2];
    reference->length = inputs->shape[inputs->dims - 1];
    if (reference->length > reference->config.model.context_length)
        return error_set(err, "'inputs' has sequences of %" PRId64 " tokens, and context_length is %" PRId64,
                         reference->length, reference->config.model.context_length);
    reference->inputs = memory_alloc(inputs->count, sizeof *reference->inputs);
    reference->targets = targets ? memory_alloc(targets->count, sizeof *reference->targets) : NULL;
    return safetensors_read_int32(inputs, reference->inputs, inputs->count, err) &&
           check_tokens(reference, "inputs", reference->inputs, 0, err) &&
           (!targets || (safetensors_read_int32(targets, reference->targets, targets->count, err) &&
                         check_tokens(reference, "targets", reference->targets, -1, err)));
}

static void open_inputs(struct reference_case *reference, struct problems *problems)
{
    char path[CASE_PATH_SIZE];
    struct error err;
    struct safetensors *file = safetensors_open(case_path(reference, "inputs.safetensors", path), &err);
    if (!file)
        problem_add(problems, (struct place){.file = NULL}, "%s", err.text);
    else if (!read_inputs(reference, file, &err))
        report_file(reference, "inputs.safetensors", err.text, problems);
    safetensors_close(file);
}

/* ---- the folder ---- */

static struct safetensors *open_tensors(const struct reference_case *reference, const char *name,
                                        struct problems *problems)
{
    char path[CASE_PATH_SIZE];
    struct error err;
    struct safetensors *file = safetensors_open(case_path(reference, name, path), &err);
    if (!file)
        problem_add(problems, (struct place){.file = NULL}, "%s", err.text);
    return file;
}

/* config.json in place of case.yaml. */
static void read_hf_settings(struct reference_case *reference, struct problems *problems)
{
    char *path = path_join(reference->model_folder, "config.json");
    if (hf_config_read(path, &reference->hf, problems)) {
        reference->config = reference->hf.config;
        reference->vocab_size = reference->hf.vocab_size;
    }
    memory_free(path);
}

bool case_open(const char *folder, const char *model_folder, struct reference_case *reference,
               struct problems *problems)
{
    size_t before = problems->errors;
    memset(reference, 0, sizeof *reference);
    reference->folder = memory_copy_text(folder);
    reference->model_folder = model_folder ? memory_copy_text(model_folder) : NULL;
    config_init(&reference->config);
    if (model_folder)
        read_hf_settings(reference, problems);
    else
        read_settings(reference, problems);
    reference->model = reference->config.model;
    if (problems->errors == before)
        open_inputs(reference, problems);
    if (!model_folder)
        reference->weights = open_tensors(reference, "weights.safetensors", problems);
    reference->expected = open_tensors(reference, "expected.safetensors", problems);
    return problems->errors == before;
}

void case_close(struct reference_case *reference)
{
    memory_free(reference->folder);
    memory_free(reference->model_folder);
    memory_free(reference->inputs);
    memory_free(reference->targets);
    safetensors_close(reference->weights);
    safetensors_close(reference->expected);
    hf_weights_close(reference->hf_weights);
    hf_config_release(&reference->hf);
    memset(reference, 0, sizeof *reference);
}

bool case_expects(const struct reference_case *reference, const char *prefix)
{
    for (size_t i = 0; i < safetensors_count(reference->expected); i++)
        if (strncmp(safetensors_at(reference->expected, i)->name, prefix, strlen(prefix)) == 0)
            return true;
    return false;
}

/* ---- weights.safetensors ---- */

static bool check_own_weights(const struct reference_case *reference, struct problems *problems)
{
    const char *file = "weights.safetensors";
    size_t before = problems->errors;
    struct error err;
    struct tensor_table *table = tensor_table_create(&reference->config.model, reference->vocab_size);
    for (size_t i = 0; i < table->count; i++) {
        const struct tensor *tensor = &table->tensors[i];
        if (!safetensors_fits(safetensors_find(reference->weights, tensor->name), tensor, &err))
            report_file(reference, file, err.text, problems);
    }
    for (size_t i = 0; i < safetensors_count(reference->weights); i++) {
        const char *name = safetensors_at(reference->weights, i)->name;
        if (!tensor_find(table, name)) {
            error_set(&err, "tensor '%.100s' has no use in this model", name);
            report_file(reference, file, err.text, problems);
        }
    }
    tensor_table_free(table);
    return problems->errors == before;
}

bool case_check_weights(struct reference_case *reference, struct problems *problems)
{
    if (!reference->model_folder)
        return check_own_weights(reference, problems);
    reference->hf_weights = hf_weights_open(reference->model_folder, &reference->hf, problems);
    return reference->hf_weights != NULL;
}

void case_load_weights(const struct reference_case *reference, struct model *model)
{
    const struct tensor_table *table = model_tensors(model);
    if (reference->hf_weights) {
        hf_weights_load(reference->hf_weights, model);
        if (reference->hf.frequencies)
            model_set_frequencies(model, reference->hf.frequencies);
        return;
    }
    for (size_t i = 0; i < table->count; i++) {
        const struct tensor *tensor = &table->tensors[i];
        safetensors_read_real(safetensors_find(reference->weights, tensor->name),
                              model_parameters(model) + tensor->offset, tensor->count, NULL);
    }
}
