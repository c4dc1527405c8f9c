/* runner inspect: what a variant is made of, what it costs and where it starts. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/bpe.h"
#include "core/cpu.h"
#include "core/memory.h"
#include "core/tokenizer.h"
#include "runner/command.h"
#include "runner/dataset.h"
#include "runner/experiment.h"
#include "runner/file.h"
#include "runner/footprint.h"
#include "runner/inspect.h"
#include "runner/json.h"
#include "runner/precision.h"
#include "runner/residual.h"
#include "runner/safetensors.h"
#include "runner/shadow.h"
#include "runner/table.h"
#include "runner/trained_run.h"

enum { CACHE_SHORT = 1024, CACHE_LONG = 4096 };

/* The residual stream's variance without and with scaled_init, and of a trained run when one was named. */
struct residuals {
    struct residual_profile plain, scaled, trained;
};

static void residuals_release(struct residuals *residuals)
{
    residual_release(&residuals->plain);
    residual_release(&residuals->scaled);
    residual_release(&residuals->trained);
}

/* The run was made of the variant's model: else its depth would be set beside another's. */
static bool run_matches(const struct trained_run *run, const struct config *config, const char *name, struct error *err)
{
    for (size_t i = 0; i < knob_count; i++) {
        char ours[KNOB_TEXT_SIZE], theirs[KNOB_TEXT_SIZE];
        const struct knob *knob = &knobs[i];
        union knob_value a = knob_get(knob, config), b = knob_get(knob, &run->config);
        if (strcmp(knob->group, "model") == 0 && !knob_equal(knob, a, b))
            return error_set(err, "run '%.200s' has %s=%s, the variant has %s: name a run of the same variant", name,
                             knob->name, knob_format(knob, b, theirs), knob_format(knob, a, ours));
    }
    return true;
}

static enum exit_code trained_measure(const char *database, const char *name, const struct config *config, int64_t seed,
                                      struct residual_profile *profile, struct error *err)
{
    struct trained_run run = {0};
    enum exit_code code = trained_run_open(database, name, &run, err);
    if (code == EXIT_DONE && !run_matches(&run, config, name, err))
        code = EXIT_USAGE;
    if (code == EXIT_DONE) {
        int64_t V = tokenizer_vocab_size(run.tokenizer);
        struct model *model = model_create(&run.config.model, V, run.config.model.context_length, err);
        if (model) {
            model_set_precision(model, run.config.training.precision);
            trained_run_read(&run, model_parameters(model));
            residual_measure(model, &run.config.model, V, seed, profile);
        } else {
            code = EXIT_ENVIRONMENT;
        }
        model_free(model);
    }
    trained_run_close(&run);
    return code;
}

static enum exit_code residuals_measure(struct residuals *residuals, const struct arguments *arguments,
                                        const struct config *config, int64_t vocab_size, int64_t seed,
                                        struct error *err)
{
    const char *run = option_text(arguments, "run", NULL);
    if (!residual_measure_start(&config->model, false, vocab_size, seed, &residuals->plain, err) ||
        !residual_measure_start(&config->model, true, vocab_size, seed, &residuals->scaled, err))
        return EXIT_USAGE;
    if (!run)
        return EXIT_DONE;
    return trained_measure(option_text(arguments, "db", "results/results.db"), run, config, seed, &residuals->trained,
                           err);
}

/* ---- which variant, which vocabulary ---- */

/* The variant of that label, the baseline when label is NULL; NULL with a message when there is none. */
static const struct variant *variant_find(const struct experiment *experiment, const char *label)
{
    const char *labels[1000];
    size_t count = 0;
    for (size_t i = 0; i < experiment->variant_count; i++) {
        const struct variant *variant = &experiment->variants[i];
        if (label ? strcmp(variant->label, label) == 0 : variant->baseline)
            return variant;
        if (count < sizeof labels / sizeof labels[0])
            labels[count++] = variant->label;
    }
    if (!label)
        return &experiment->variants[0];
    const char *nearest = suggest_nearest(label, labels, count);
    message("runner inspect: no variant is called '%s'%s%s%s ('runner plan' lists them)", label,
            nearest ? ": did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    return NULL;
}

static void tell(void *context, const char *text)
{
    (void)context;
    message("%s", text);
}

struct vocabulary {
    int64_t size;
    bool asked; /* the size the file asks for: there is no text to learn one from */
};

/* Tokens of bytes are known; others are learnt from the text, or found in the cache beside the database. False and err
 * when characters cannot be counted. */
static bool vocabulary_learn(const struct variant *variant, const char *database, struct vocabulary *vocabulary,
                             struct error *err)
{
    const struct tokenizer_config *wanted = &variant->config.tokenizer;
    struct dataset dataset = {.map = NULL};
    *vocabulary = (struct vocabulary){.size = BPE_FIRST_MERGE};
    if (wanted->kind == TOKENIZER_BYTE)
        return true;
    char *folder = path_folder(database), *kept = path_join(folder, "cache"), *cache = shadow_make(kept, err);
    memory_free(folder);
    memory_free(kept);
    if (!cache)
        return false;
    bool good = dataset_prepare(&variant->data, &variant->config, cache, tell, NULL, &dataset, err);
    if (good)
        vocabulary->size = tokenizer_vocab_size(dataset.tokenizer);
    dataset_close(&dataset);
    shadow_remove(cache);
    if (good || wanted->kind != TOKENIZER_BPE)
        return good;
    message("note: the vocabulary is the one asked for: %s", err->text);
    *vocabulary = (struct vocabulary){.size = wanted->vocab_size, .asked = true};
    return true;
}

/* ---- JSON ---- */

static json_t *shape_json(int dims, const int64_t *shape)
{
    json_t *list = json_array();
    for (int i = 0; i < dims; i++)
        json_push(list, json_integer(shape[i]));
    return list;
}

static json_t *parts_json(const struct tensor_table *table)
{
    json_t *parts = json_array();
    for (size_t i = 0; i < table->count; i++) {
        const struct tensor *tensor = &table->tensors[i];
        json_t *part = json_object();
        json_put(part, "name", json_from_text(tensor->name));
        json_put(part, "shape", shape_json(tensor->dims, tensor->shape));
        json_put(part, "parameters", json_integer((json_int_t)tensor->count));
        json_push(parts, part);
    }
    return parts;
}

static json_t *operations_json(const struct inspection *inspection)
{
    json_t *operations = json_array();
    for (size_t i = 0; i < inspection->shape_count; i++) {
        json_t *operation = json_object();
        json_put(operation, "name", json_from_text(inspection->shapes[i].name));
        json_put(operation, "shape", shape_json(inspection->shapes[i].dims, inspection->shapes[i].shape));
        json_push(operations, operation);
    }
    return operations;
}

static json_t *residuals_json(const struct residuals *residuals, const struct config *config)
{
    static const char *const names[] = {"depth",  "plain", "plain_predicted", "scaled_init", "scaled_init_predicted",
                                        "trained"};
    const struct residual_profile *plain = &residuals->plain, *scaled = &residuals->scaled;
    const struct residual_profile *trained = &residuals->trained;
    json_t *rows = json_array();
    for (int64_t depth = 0; depth <= plain->layers; depth++) {
        const double values[] = {(double)depth,
                                 plain->variance[depth],
                                 residual_predict(plain, &config->model, false, depth),
                                 scaled->variance[depth],
                                 residual_predict(plain, &config->model, true, depth),
                                 trained->variance ? trained->variance[depth] : (double)NAN};
        json_t *row = json_object();
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            json_put(row, names[i], i == 0 ? json_integer(depth) : json_from_double(values[i]));
        json_push(rows, row);
    }
    return rows;
}

static void print_json(const struct experiment *experiment, const struct variant *variant,
                       const struct inspection *inspection, const struct residuals *residuals)
{
    json_t *root = json_object(), *cache = json_object();
    struct footprint footprint;
    footprint_predict(&inspection->config, inspection->vocab_size, NULL, &footprint);
    json_put(root, "experiment", json_from_text(experiment->name));
    json_put(root, "variant", json_from_text(variant->label));
    json_put(root, "vocab_size", json_integer(inspection->vocab_size));
    json_put(root, "parameters", json_integer((json_int_t)inspection->table->total));
    json_put(root, "parts", parts_json(inspection->table));
    json_put(root, "operations", inspection->walked ? operations_json(inspection) : json_null());
    json_put(cache, "1024", json_integer((json_int_t)inspect_cache_bytes(inspection, CACHE_SHORT)));
    json_put(cache, "4096", json_integer((json_int_t)inspect_cache_bytes(inspection, CACHE_LONG)));
    json_put(root, "kv_cache_bytes", cache);
    json_put(root, "flops_per_token", json_from_double(inspection->flops_per_token));
    json_put(root, "flops_per_step", json_from_double(inspection->flops_per_step));
    json_put(root, "memory_bytes", json_integer((json_int_t)inspection->memory));
    json_put(root, "worker_memory", footprint_json(&footprint));
    json_put(root, "loss_at_start", json_from_double(inspection->start_loss));
    json_put(root, "ln_vocab_size", json_from_double(log((double)inspection->vocab_size)));
    json_put(root, "residual_variance",
             residuals->plain.variance ? residuals_json(residuals, &variant->config) : json_null());
    json_print(root, stdout);
    json_decref(root);
}

/* ---- text ---- */

static void print_operations(const struct inspection *inspection, int width)
{
    char shape[SAFETENSORS_SHAPE_TEXT];
    printf("\n%-*s  shape\n", width, "operation");
    for (size_t i = 0; i < inspection->shape_count; i++)
        printf("%-*s  %s\n", width, inspection->shapes[i].name,
               safetensors_shape_text(inspection->shapes[i].dims, inspection->shapes[i].shape, shape));
}

static void print_parts(const struct tensor_table *table, int width)
{
    char shape[SAFETENSORS_SHAPE_TEXT], number[32];
    printf("\n%-*s  %-14s  %13s  %6s\n", width, "tensor", "shape", "parameters", "%");
    for (size_t i = 0; i < table->count; i++) {
        const struct tensor *tensor = &table->tensors[i];
        printf("%-*s  %-14s  %13s  %6.2f\n", width, tensor->name,
               safetensors_shape_text(tensor->dims, tensor->shape, shape), format_count((int64_t)tensor->count, number),
               100 * (double)tensor->count / (double)table->total);
    }
    printf("%-*s  %-14s  %13s  %6.2f\n", width, "total", "", format_count((int64_t)table->total, number), 100.0);
}

/* What a worker takes: all but its text. */
static void worker_memory_print(const struct inspection *inspection)
{
    struct footprint parts;
    footprint_predict(&inspection->config, inspection->vocab_size, NULL, &parts);
    printf(
        "memory of a worker             %.1f MB and 4 bytes a token of text: parameters %.1f, gradients %.1f, moments "
        "%.1f, activations %.1f, program %.1f\n",
        (double)parts.total * 1e-6, (double)parts.parameters * 1e-6, (double)parts.gradients * 1e-6,
        (double)parts.moments * 1e-6, (double)parts.activations * 1e-6, (double)(parts.base + parts.curve) * 1e-6);
}

static void print_costs(const struct inspection *inspection)
{
    double mebi = 1024 * 1024;
    char training[32];
    snprintf(training, sizeof training, "memory of training, %s",
             precision_name(inspection->config.training.precision));
    printf("\nKV cache of a sequence, fp32   %.2f MiB at 1,024 positions, %.2f MiB at 4,096\n",
           inspect_cache_bytes(inspection, CACHE_SHORT) / mebi, inspect_cache_bytes(inspection, CACHE_LONG) / mebi);
    printf("FLOPs of training              %.4g a token, %.4g a step\n", inspection->flops_per_token,
           inspection->flops_per_step);
    printf("%-30s %.1f MiB\n", training, (double)inspection->memory / mebi);
    worker_memory_print(inspection);
    if (inspection->walked)
        printf("loss at the start              %.4f, and ln V is %.4f\n", inspection->start_loss,
               log((double)inspection->vocab_size));
}

static void print_text(const struct experiment *experiment, const struct variant *variant, bool asked,
                       const struct inspection *inspection)
{
    int width = (int)strlen("operation");
    char number[32];
    for (size_t i = 0; i < inspection->table->count; i++)
        width = (int)strlen(inspection->table->tensors[i].name) > width
                    ? (int)strlen(inspection->table->tensors[i].name)
                    : width;
    printf("%s, variant %s\n", experiment->name, variant->label);
    printf("vocabulary of %s%s\n", format_count(inspection->vocab_size, number),
           asked ? ", as asked: a run has as many as its text gives" : "");
    if (inspection->walked)
        print_operations(inspection, width);
    print_parts(inspection->table, width);
    print_costs(inspection);
}

static void variance_cell(struct table *table, double value)
{
    if (isfinite(value))
        table_number(table, value, "%.4g");
    else
        table_absent(table, "-");
}

static void print_residuals(const struct residuals *residuals, const struct config *config)
{
    const struct residual_profile *plain = &residuals->plain, *trained = &residuals->trained;
    struct table *table = table_create();
    table_caption(table, "Variance of the residual stream at the start, on random tokens, beside Var(x_0) + 2 L s^2");
    table_column(table, "after block", TABLE_LEFT);
    table_column(table, "plain", TABLE_RIGHT);
    table_column(table, "predicted", TABLE_RIGHT);
    table_column(table, "scaled_init", TABLE_RIGHT);
    table_column(table, "predicted", TABLE_RIGHT);
    if (trained->variance)
        table_column(table, "after training", TABLE_RIGHT);
    for (int64_t depth = 0; depth <= plain->layers; depth++) {
        if (depth)
            table_integer(table, depth);
        else
            table_text(table, "x_0");
        variance_cell(table, plain->variance[depth]);
        variance_cell(table, residual_predict(plain, &config->model, false, depth));
        variance_cell(table, residuals->scaled.variance[depth]);
        variance_cell(table, residual_predict(plain, &config->model, true, depth));
        if (trained->variance)
            variance_cell(table, trained->variance[depth]);
    }
    if (config->model.residual == RESIDUAL_POST)
        table_note(table, "Post-norm normalises after every addition: nothing adds up, nothing to predict.");
    else
        table_note(table, "s^2 = %.4g: mean variance of the two branch outputs of the first block.", plain->branch);
    fputc('\n', stdout);
    table_write(table, TABLE_TEXT, 100, stdout);
    table_free(table);
}

static void warn(const struct inspection *inspection)
{
    if (!inspection->walked)
        message("note: this model is too large to be tried out here: no shapes and no loss at the start");
    else if (inspect_start_is_off(inspection)) {
        char text[256];
        inspect_loss_describe("the loss at the start", inspection->start_loss, inspection->vocab_size, text,
                              sizeof text);
        message("%s", text);
    }
}

static int inspect_command(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    struct problems problems;
    struct experiment_options options = {.yes = true}; /* nothing is trained, however many there are */
    struct inspection inspection = {.table = NULL};
    struct residuals residuals = {.plain = {0}};
    struct error err;
    struct vocabulary vocabulary;
    const char *database = option_text(arguments, "db", "results/results.db");
    int code = EXIT_USAGE;
    blas_use_one_thread();
    problems_init(&problems);
    struct experiment *experiment = experiment_load(arguments->positional[0], &options, &problems);
    problems_print(&problems, stderr);
    const struct variant *variant =
        experiment ? variant_find(experiment, option_text(arguments, "variant", NULL)) : NULL;
    if (!variant)
        goto done;
    if (!vocabulary_learn(variant, database, &vocabulary, &err) ||
        !inspect_run(&variant->config, vocabulary.size, experiment->seeds[0], &inspection, &err)) {
        message("runner inspect: %s", err.text);
        goto done;
    }
    if (inspection.walked) {
        code = (int)residuals_measure(&residuals, arguments, &variant->config, vocabulary.size, experiment->seeds[0],
                                      &err);
        if (code != EXIT_DONE) {
            message("runner inspect: %s", err.text);
            goto done;
        }
    }
    if (arguments->json) {
        print_json(experiment, variant, &inspection, &residuals);
    } else {
        print_text(experiment, variant, vocabulary.asked, &inspection);
        if (inspection.walked)
            print_residuals(&residuals, &variant->config);
    }
    warn(&inspection);
    code = EXIT_DONE;
done:
    residuals_release(&residuals);
    inspection_release(&inspection);
    experiment_free(experiment);
    problems_release(&problems);
    return code;
}

static const struct option inspect_options[] = {
    {.name = "variant", .kind = OPTION_TEXT, .argument = "V", .doc = "label of the variant (default: the baseline)"},
    {.name = "run",
     .kind = OPTION_TEXT,
     .argument = "RUN",
     .doc = "a finished run of the variant (key prefix or experiment/variant/seed): its residual variance as well"},
    {.name = "db",
     .kind = OPTION_TEXT,
     .argument = "PATH",
     .doc = "where RUN is and text is cached; results/results.db when not given"},
    {.name = NULL},
};

extern const struct command command_inspect;
const struct command command_inspect = {
    .name = "inspect",
    .arguments = "FILE",
    .summary = "Take a variant apart: shapes, parameters, costs, loss at start.",
    .help = "Shows the shape after each operation, the parameters by tensor, the bytes of a\n"
            "KV cache, FLOPs, memory, and the loss before training beside ln V, which a sound\n"
            "start is within 0.3 of; and the variance of the residual stream by depth, with and\n"
            "without scaled_init, beside what adding up the branches predicts. Nothing is\n"
            "trained and nothing is written.\n"
            "\n"
            "Example:\n"
            "  runner inspect experiments/day2-norms.yaml --variant 'post, rmsnorm'",
    .options = inspect_options,
    .json = true,
    .minimum_arguments = 1,
    .maximum_arguments = 1,
    .run = inspect_command,
};
