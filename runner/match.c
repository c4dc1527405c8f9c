/* Runs a reference case and compares every expected tensor. */
#include "runner/match.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/optimizer.h"
#include "core/trainer.h"
#include "runner/rope_rows.h"

struct matcher {
    struct reference_case *reference;
    struct model *model;
    struct match *match;
    struct activations *seen;
    struct problems *problems;
    double tolerance;
    void *ours; /* of the first departure, kept for its hint */
    real *expected;
};

static void report(const struct matcher *matcher, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void report(const struct matcher *matcher, const char *format, ...)
{
    char path[CASE_PATH_SIZE];
    struct error err;
    va_list args;
    va_start(args, format);
    vsnprintf(err.text, sizeof err.text, format, args);
    va_end(args);
    problem_add(matcher->problems, (struct place){.file = case_path(matcher->reference, "expected.safetensors", path)},
                "%s", err.text);
}

/* ---- one tensor ---- */

static struct match_row *find_row(const struct match *match, const char *name)
{
    for (size_t i = 0; i < match->count; i++)
        if (strcmp(match->rows[i].name, name) == 0)
            return &match->rows[i];
    return NULL;
}

static void measure(struct match_row *row, const real *ours, const real *expected, size_t count)
{
    double difference = 0, size = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        double d = (double)ours[i] - (double)expected[i];
        difference += d * d;
        size += (double)expected[i] * (double)expected[i];
        largest = fabs(d) > largest || isnan(d) ? fabs(d) : largest;
    }
    row->max_abs = largest;
    row->rel_l2 = difference > 0 ? sqrt(difference / size) : difference; /* equal zeros are no distance; NaN stays */
    row->ok = row->rel_l2 <= row->tolerance;
}

/* Adds a row when the case expects a tensor of that name. */
static void compare(struct matcher *matcher, const char *name, enum match_pass pass, double tolerance, const real *ours,
                    int dims, const int64_t *shape)
{
    struct match *match = matcher->match;
    const struct safetensors_entry *entry = safetensors_find(matcher->reference->expected, name);
    char theirs_text[SAFETENSORS_SHAPE_TEXT], ours_text[SAFETENSORS_SHAPE_TEXT];
    struct error err;
    if (!entry || find_row(match, name))
        return;
    struct match_row *row = &match->rows[match->count++];
    *row = (struct match_row){.name = entry->name, .pass = pass, .dims = dims, .tolerance = tolerance};
    memcpy(row->shape, shape, (size_t)dims * sizeof *shape);
    if (entry->dims != dims || memcmp(entry->shape, shape, (size_t)dims * sizeof *shape) != 0) {
        report(matcher, "tensor '%s' has shape %s: this model computes %s", name,
               safetensors_shape_text(entry->dims, entry->shape, theirs_text),
               safetensors_shape_text(dims, shape, ours_text));
        return;
    }
    real *expected = memory_alloc(entry->count, sizeof *expected);
    if (safetensors_read_real(entry, expected, entry->count, &err))
        measure(row, ours, expected, entry->count);
    else
        report(matcher, "%s", err.text);
    if (!row->ok && !match->first) {
        match->first = row;
        matcher->ours = memory_copy_bytes(ours, entry->count * sizeof *ours);
        matcher->expected = expected;
        return;
    }
    memory_free(expected);
}

/* The first departure of the forward pass, looked at more closely once the pass is over. */
static void find_hint(struct matcher *matcher)
{
    const struct match_row *row = matcher->match->first;
    if (row)
        match_hint(matcher->reference, matcher->model,
                   &(struct match_difference){row->name, matcher->ours, matcher->expected, row->dims, row->shape,
                                              row->tolerance},
                   matcher->match->hint);
}

/* ---- the passes ---- */

/* Queries and keys [B, heads, T, head_dim] in the order that the files of the model have them; NULL: they are. Owner:
 * caller, memory_free(). */
static real *turn(const struct reference_case *reference, const char *name, const real *data, const int64_t *shape)
{
    const struct model_config *theirs = &reference->hf.config.model;
    if (!reference->hf_weights || theirs->position != POSITION_ROPE || theirs->rope_layout != ROPE_ADJACENT ||
        !rope_rows_has(name))
        return NULL;
    int64_t count = shape[0] * shape[1] * shape[2] * shape[3];
    real *turned = memory_alloc((size_t)count, sizeof *turned);
    rope_rows_to_split(turned, data, count, 1, shape[3]);
    return turned;
}

static void observe(void *context, const char *name, const real *data, int dims, const int64_t *shape)
{
    struct matcher *matcher = context;
    enum mistake mistake = matcher->reference->mistake;
    real *restored = mistake ? mistake_restore(mistake, matcher->model, name, data, shape) : NULL;
    real *turned = turn(matcher->reference, name, restored ? restored : data, shape);
    if (turned) {
        memory_free(restored);
        restored = turned;
    }
    compare(matcher, name, MATCH_FORWARD, matcher->tolerance, restored ? restored : data, dims, shape);
    if (matcher->seen)
        activations_add(matcher->seen, name, restored ? restored : data, dims, shape);
    memory_free(restored);
}

static void compare_forward(struct matcher *matcher)
{
    const struct reference_case *c = matcher->reference;
    size_t rows = (size_t)(c->batch_size * c->length);
    real *logits = memory_alloc(rows * (size_t)c->vocab_size, sizeof *logits);
    model_observe(matcher->model, observe, matcher);
    model_logits(matcher->model, c->inputs, c->batch_size, c->length, logits);
    model_observe(matcher->model, NULL, NULL);
    memory_free(logits);
    find_hint(matcher);
}

static void compare_greedy(struct matcher *matcher)
{
    struct match *match = matcher->match;
    struct error err;
    struct match_row *row = &match->rows[match->count++];
    *row = (struct match_row){.name = safetensors_find(matcher->reference->expected, MATCH_TOKENS)->name,
                              .pass = MATCH_GREEDY};
    if (!match_greedy(matcher->reference, matcher->model, row, &err))
        report(matcher, "%s", err.text);
    else if (!row->ok && !match->first)
        match->first = row;
}

/* Each "<prefix><tensor>" against the flat buffer, in the order of the parameters. */
static void compare_parameters(struct matcher *matcher, const char *prefix, enum match_pass pass, double tolerance,
                               const real *flat)
{
    const struct tensor_table *table = model_tensors(matcher->model);
    for (size_t i = 0; i < table->count; i++) {
        const struct tensor *tensor = &table->tensors[i];
        char name[sizeof tensor->name + 16];
        snprintf(name, sizeof name, "%s%s", prefix, tensor->name);
        compare(matcher, name, pass, tolerance, flat + tensor->offset, tensor->dims, tensor->shape);
    }
}

static void compare_gradients(struct matcher *matcher)
{
    const struct reference_case *c = matcher->reference;
    model_loss_gradient(matcher->model, c->inputs, c->targets, c->batch_size, c->length, 0);
    compare_parameters(matcher, "grad.", MATCH_GRADIENT, matcher->tolerance, model_gradients(matcher->model));
}

/* N updates, one batch each. */
static void compare_training(struct matcher *matcher)
{
    const struct reference_case *c = matcher->reference;
    const struct training_config *training = &c->config.training;
    real *parameters = model_parameters(matcher->model), *gradients = model_gradients(matcher->model);
    size_t total = model_tensors(matcher->model)->total, batch = (size_t)(c->batch_size * c->length);
    struct optimizer *optimizer = optimizer_create(model_tensors(matcher->model), training);
    real *losses = memory_alloc((size_t)c->steps, sizeof *losses);
    real *norms = memory_alloc((size_t)c->steps, sizeof *norms);
    for (int64_t step = 0; step < c->steps; step++) {
        const int32_t *inputs = c->inputs + (size_t)step * batch, *targets = c->targets + (size_t)step * batch;
        losses[step] = (real)model_loss_gradient(matcher->model, inputs, targets, c->batch_size, c->length, step);
        double norm = optimizer_grad_norm(gradients, total);
        norms[step] = (real)norm;
        optimizer_step(optimizer, parameters, gradients, norm, learning_rate_at(training, step), step);
    }
    compare(matcher, "train.loss", MATCH_TRAINING, matcher->tolerance, losses, 1, &c->steps);
    compare(matcher, "train.grad_norm", MATCH_TRAINING, matcher->tolerance, norms, 1, &c->steps);
    compare_parameters(matcher, "trained.", MATCH_TRAINING, MATCH_TRAINED_FACTOR * matcher->tolerance, parameters);
    memory_free(losses);
    memory_free(norms);
    optimizer_free(optimizer);
}

/* ---- the whole ---- */

/* What only matters to a case with gradients or training in it. */
static bool check_training(const struct matcher *matcher, bool trains)
{
    const struct reference_case *c = matcher->reference;
    size_t before = matcher->problems->errors;
    if (!c->targets)
        report(matcher, "has gradients or training, and inputs.safetensors has no 'targets'");
    if (trains && c->steps > c->config.training.steps)
        report(matcher, "training has %" PRId64 " batches, and training.steps is %" PRId64, c->steps,
               c->config.training.steps);
    if (trains && c->batch_size != c->config.training.batch_size)
        report(matcher, "training has batches of %" PRId64 ", and training.batch_size is %" PRId64, c->batch_size,
               c->config.training.batch_size);
    return matcher->problems->errors == before;
}

/* Expected, but nothing that we compute: wrong in the case, unless the mistake took it away. */
static void miss(struct matcher *matcher, const struct safetensors_entry *entry)
{
    struct match *match = matcher->match;
    if (!matcher->reference->mistake) {
        report(matcher, "tensor '%.100s' is none that this model computes", entry->name);
        return;
    }
    struct match_row *row = &match->rows[match->count++];
    *row = (struct match_row){.name = entry->name, .dims = entry->dims, .max_abs = NAN, .rel_l2 = NAN};
    row->pass = strncmp(entry->name, "grad.", 5) == 0 ? MATCH_GRADIENT : MATCH_TRAINING;
    memcpy(row->shape, entry->shape, sizeof row->shape);
}

static void compare_all(struct matcher *matcher, bool trains)
{
    const struct reference_case *c = matcher->reference;
    case_load_weights(c, matcher->model);
    mistake_move_weights(c->mistake, matcher->model);
    compare_forward(matcher);
    if (safetensors_find(c->expected, MATCH_TOKENS))
        compare_greedy(matcher);
    if (case_expects(c, "grad."))
        compare_gradients(matcher);
    if (trains)
        compare_training(matcher);
    bool continued = safetensors_find(c->expected, MATCH_TOKENS) != NULL;
    for (size_t i = 0; i < safetensors_count(c->expected); i++)
        if (!find_row(matcher->match, safetensors_at(c->expected, i)->name) &&
            !(continued && strcmp(safetensors_at(c->expected, i)->name, MATCH_PROMPT) == 0))
            miss(matcher, safetensors_at(c->expected, i));
}

bool match_run(struct reference_case *reference, double tolerance, struct activations *seen, struct match *match,
               struct problems *problems)
{
    struct error err;
    size_t before = problems->errors;
    struct matcher matcher = {
        .reference = reference, .match = match, .seen = seen, .problems = problems, .tolerance = tolerance};
    bool trains = case_expects(reference, "train.") || case_expects(reference, "trained.");
    memset(match, 0, sizeof *match);
    match->rows = memory_alloc(safetensors_count(reference->expected), sizeof *match->rows);
    if (safetensors_count(reference->expected) == 0)
        report(&matcher, "holds no tensor to compare");
    if ((trains || case_expects(reference, "grad.")) && !check_training(&matcher, trains))
        return false;
    if (!case_check_weights(reference, problems))
        return false;
    matcher.model =
        model_create(&reference->model, reference->vocab_size, reference->batch_size * reference->length, &err);
    if (matcher.model) {
        model_set_precision(matcher.model, reference->config.training.precision);
        compare_all(&matcher, trains);
    } else {
        problem_add(problems, (struct place){.file = reference->folder}, "%s", err.text);
    }
    model_free(matcher.model);
    memory_free(matcher.ours);
    memory_free(matcher.expected);
    match->ok = !match->first;
    return problems->errors == before;
}

void match_release(struct match *match)
{
    memory_free(match->rows);
    memset(match, 0, sizeof *match);
}
