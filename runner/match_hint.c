/* Guesses from the numbers of the first departing tensor what kind of mistake made the difference.
 *
 * To add a kind: a function that returns false or fills the text, and its row in `kinds`, the surest first. */
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/match.h"

/* A pattern explains a difference when what it leaves is below this part of it. */
#define EXPLAINED 0.05
/* Heads whose error is below the first part of the largest agree; above the second, they differ. */
#define HEAD_AGREES 0.01
#define HEAD_DIFFERS 0.1
/* A larger relative difference than an epsilon, or 16-bit numbers, make. */
#define SMALL 0.02
enum { FEWEST = 4, SOLVED_HEADS = 1024 };

/* Ours and theirs as rows of columns, without the bias of a norm. */
struct view {
    const struct reference_case *reference;
    struct model *model;
    const struct match_difference *difference;
    struct model_shape shape;
    double *ours, *expected; /* [rows, columns] */
    int64_t rows, columns;
    int64_t positions; /* T */
    double distance;   /* of ours - expected */
};

static bool is_heads(const struct view *view)
{
    return view->difference->dims == 4; /* [B, heads, T, D] */
}

static bool name_ends(const struct view *view, const char *end)
{
    size_t length = strlen(view->difference->name), tail = strlen(end);
    return length >= tail && strcmp(view->difference->name + length - tail, end) == 0;
}

/* "blocks.3" and no more. */
static bool is_block(const struct view *view)
{
    return strncmp(view->difference->name, "blocks.", 7) == 0 && !strchr(view->difference->name + 7, '.');
}

static bool is_norm_output(const struct view *view)
{
    bool post = view->reference->config.model.residual == RESIDUAL_POST;
    return name_ends(view, "_norm") || (post && is_block(view));
}

static const real *find_parameter(const struct view *view, const char *name, const char *part)
{
    char full[96];
    snprintf(full, sizeof full, "%s%s", name, part);
    const struct tensor *tensor = tensor_find(model_tensors(view->model), full);
    return tensor ? model_parameters(view->model) + tensor->offset : NULL;
}

static const real *bias_of(const struct view *view)
{
    const char *part = is_block(view) && is_norm_output(view) ? ".feed_forward_norm.bias" : ".bias";
    return is_norm_output(view) ? find_parameter(view, view->difference->name, part) : NULL;
}

static void view_open(struct view *view)
{
    const struct match_difference *d = view->difference;
    const real *bias = bias_of(view);
    view->rows = 1;
    for (int i = 0; i + 1 < d->dims; i++)
        view->rows *= d->shape[i];
    view->columns = d->shape[d->dims - 1];
    view->positions = d->shape[d->dims - 2];
    size_t count = (size_t)(view->rows * view->columns);
    view->ours = memory_alloc(count, sizeof *view->ours);
    view->expected = memory_alloc(count, sizeof *view->expected);
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        double shift = bias ? (double)bias[i % (size_t)view->columns] : 0;
        view->ours[i] = (double)d->ours[i] - shift;
        view->expected[i] = (double)d->expected[i] - shift;
        sum += (view->ours[i] - view->expected[i]) * (view->ours[i] - view->expected[i]);
    }
    view->distance = sqrt(sum);
}

/* The factor f that brings f * expected nearest to ours over count numbers, stride apart; *left gets the square of what
 * remains added. */
static double fit_factor(const double *ours, const double *expected, int64_t count, int64_t stride, double *left)
{
    double both = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        both += ours[i * stride] * expected[i * stride];
        size += expected[i * stride] * expected[i * stride];
    }
    double factor = size > 0 ? both / size : 1;
    for (int64_t i = 0; i < count; i++) {
        double rest = ours[i * stride] - factor * expected[i * stride];
        *left += rest * rest;
    }
    return factor;
}

static bool explains(const struct view *view, double left)
{
    return sqrt(left) <= EXPLAINED * view->distance;
}

/* ---- kinds ---- */

static bool not_finite(const struct view *view, char *text)
{
    if (isfinite(view->distance))
        return false;
    for (int64_t r = 0; r < view->rows; r++)
        for (int64_t c = 0; c < view->columns; c++)
            if (!isfinite(view->ours[r * view->columns + c])) {
                snprintf(text, MATCH_HINT_SIZE, "ours is not finite, first at position %" PRId64, r % view->positions);
                return true;
            }
    snprintf(text, MATCH_HINT_SIZE, "what is expected is not finite");
    return true;
}

static bool one_factor(const struct view *view, char *text)
{
    double left = 0, factor = fit_factor(view->ours, view->expected, view->rows * view->columns, 1, &left);
    double root = sqrt((double)view->shape.head_dim), times = factor > 1 ? factor : 1 / factor;
    if (!explains(view, left))
        return false;
    if (fabs(times / root - 1) < 1e-2)
        snprintf(text, MATCH_HINT_SIZE,
                 "every number is %.4g times the expected one, sqrt(head_dim) being %.4g: attention scale 1 / "
                 "sqrt(head_dim) left out, or applied twice",
                 factor, root);
    else if (is_norm_output(view))
        snprintf(text, MATCH_HINT_SIZE, "every number is %.6g times the expected one: the norm's epsilon or gain",
                 factor);
    else
        snprintf(text, MATCH_HINT_SIZE,
                 "every number is %.6g times the expected one: a scale, or the epsilon or gain of the norm before",
                 factor);
    return true;
}

static bool factor_by_row(const struct view *view, char *text)
{
    double left = 0, lowest = INFINITY, highest = -INFINITY;
    if (view->columns < FEWEST)
        return false;
    for (int64_t r = 0; r < view->rows; r++) {
        double factor =
            fit_factor(view->ours + r * view->columns, view->expected + r * view->columns, view->columns, 1, &left);
        lowest = fmin(lowest, factor);
        highest = fmax(highest, factor);
    }
    if (!explains(view, left))
        return false;
    snprintf(text, MATCH_HINT_SIZE, "each position is the expected one times a factor of its own, %.6g to %.6g: %s",
             lowest, highest, is_norm_output(view) ? "the norm's epsilon" : "the epsilon of the norm before");
    return true;
}

static bool factor_by_column(const struct view *view, char *text)
{
    double left = 0, lowest = INFINITY, highest = -INFINITY;
    if (view->rows < FEWEST || !is_norm_output(view))
        return false;
    for (int64_t c = 0; c < view->columns; c++) {
        double factor = fit_factor(view->ours + c, view->expected + c, view->rows, view->columns, &left);
        lowest = fmin(lowest, factor);
        highest = fmax(highest, factor);
    }
    if (!explains(view, left))
        return false;
    snprintf(text, MATCH_HINT_SIZE,
             "each column is the expected one times a factor of its own, %.6g to %.6g: the norm's gain", lowest,
             highest);
    return true;
}

/* errors [T]: relative, over everything at a position. */
static void errors_by_position(const struct view *view, double *errors)
{
    for (int64_t t = 0; t < view->positions; t++) {
        double difference = 0, size = 0;
        for (int64_t r = t; r < view->rows; r += view->positions)
            for (int64_t c = 0; c < view->columns; c++) {
                double e = view->expected[r * view->columns + c], d = view->ours[r * view->columns + c] - e;
                difference += d * d;
                size += e * e;
            }
        errors[t] = difference > 0 ? sqrt(difference / size) : 0;
    }
}

static double mean_of(const double *values, int64_t from, int64_t to)
{
    double sum = 0;
    for (int64_t i = from; i < to; i++)
        sum += values[i];
    return sum / (double)(to - from);
}

/* Each third of the sequence is clearly further off than the one before. */
static bool errors_grow(const double *errors, int64_t T)
{
    double first = mean_of(errors, 0, T / 3), second = mean_of(errors, T / 3, 2 * T / 3),
           third = mean_of(errors, 2 * T / 3, T);
    return second > 1.2 * first && third > 1.2 * second;
}

static bool by_position(const struct view *view, char *text)
{
    int64_t T = view->positions;
    bool rotates = view->reference->config.model.position == POSITION_ROPE, found = false;
    if (view->difference->dims < 3 || T < FEWEST)
        return false;
    double *errors = memory_alloc((size_t)T, sizeof *errors), tolerance = view->difference->tolerance;
    errors_by_position(view, errors);
    double rest = mean_of(errors, 1, T);
    bool first_right = errors[0] <= tolerance && rest > tolerance, grows = errors_grow(errors, T);
    if (rotates && (is_heads(view) ? first_right || grows : first_right && grows)) {
        snprintf(text, MATCH_HINT_SIZE,
                 "the error %s (%.1e at position 0, %.1e at %" PRId64 ", %.1e at %" PRId64
                 "): rotary pairing or base%s",
                 grows ? "grows with the position" : "is nowhere at position 0, and large after it", errors[0],
                 errors[T / 2], T / 2, errors[T - 1], T - 1, is_heads(view) ? "" : ", or the mask");
        found = true;
    } else if (first_right) {
        snprintf(text, MATCH_HINT_SIZE,
                 "the first token is right and later ones are not (%.1e at position 0, %.1e after "
                 "it): %s",
                 errors[0], rest,
                 view->reference->config.model.qk_norm ? "rotation or mask, or the norm of queries and keys"
                 : rotates                             ? "rotation or mask"
                                                       : "mask");
        found = true;
    } else if (errors[T - 1] <= tolerance && mean_of(errors, 0, T - 1) > tolerance) {
        snprintf(text, MATCH_HINT_SIZE, "the last token is right and earlier ones are not: the causal mask");
        found = true;
    }
    memory_free(errors);
    return found;
}

/* ---- heads ---- */

/* What the heads' values differ by, from what the output matrix W [C, H * D] made of it: the least-squares solution of
 * W x = ours - expected for every row. False when there is none, or only by chance. */
static bool heads_behind(const struct view *view, const real *W, double *errors)
{
    int64_t H = view->shape.n_heads, D = view->shape.head_dim, Q = H * D, C = view->columns;
    if (!W || Q > C || C > SOLVED_HEADS)
        return false;
    bool good = true;
    gsl_matrix *qr = gsl_matrix_alloc((size_t)C, (size_t)Q);
    gsl_vector *tau = gsl_vector_alloc((size_t)Q), *x = gsl_vector_alloc((size_t)Q),
               *rest = gsl_vector_alloc((size_t)C), *b = gsl_vector_alloc((size_t)C);
    for (int64_t i = 0; i < C * Q; i++)
        qr->data[i] = (double)W[i];
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    good = gsl_linalg_QR_decomp(qr, tau) == GSL_SUCCESS;
    for (int64_t r = 0; good && r < view->rows; r++) {
        for (int64_t c = 0; c < C; c++)
            gsl_vector_set(b, (size_t)c, view->ours[r * C + c] - view->expected[r * C + c]);
        good = gsl_linalg_QR_lssolve(qr, tau, b, x, rest) == GSL_SUCCESS;
        for (int64_t i = 0; i < Q; i++)
            errors[i / D] += gsl_vector_get(x, (size_t)i) * gsl_vector_get(x, (size_t)i);
    }
    gsl_set_error_handler(handler);
    gsl_matrix_free(qr);
    gsl_vector_free(tau);
    gsl_vector_free(x);
    gsl_vector_free(rest);
    gsl_vector_free(b);
    return good;
}

static void errors_by_head(const struct view *view, double *errors)
{
    int64_t heads = view->difference->shape[1];
    for (int64_t r = 0; r < view->rows; r++)
        for (int64_t c = 0; c < view->columns; c++) {
            double d = view->ours[r * view->columns + c] - view->expected[r * view->columns + c];
            errors[r / view->positions % heads] += d * d;
        }
}

/* "1, 2" of the heads that differ; false when all do, or it is not clear which. */
static bool list_heads(const double *errors, int64_t heads, char list[128])
{
    double largest = 0;
    int64_t differ = 0, agree = 0;
    for (int64_t h = 0; h < heads; h++)
        largest = fmax(largest, sqrt(errors[h]));
    list[0] = 0;
    for (int64_t h = 0; h < heads; h++) {
        size_t used = strlen(list);
        agree += sqrt(errors[h]) < HEAD_AGREES * largest;
        if (!(sqrt(errors[h]) > HEAD_DIFFERS * largest))
            continue;
        snprintf(list + used, 128 - used, "%s%" PRId64, used ? ", " : "", h);
        differ++;
    }
    return agree > 0 && differ > 0 && agree + differ == heads;
}

static bool some_heads(const struct view *view, char *text)
{
    bool attention = name_ends(view, ".attention");
    int64_t heads = is_heads(view) ? view->difference->shape[1] : view->shape.n_heads;
    char list[128];
    if (!is_heads(view) && !attention)
        return false;
    double *errors = memory_alloc((size_t)heads, sizeof *errors);
    bool known =
        !attention || heads_behind(view, find_parameter(view, view->difference->name, ".output.weight"), errors);
    if (!attention)
        errors_by_head(view, errors);
    bool some = known && list_heads(errors, heads, list);
    memory_free(errors);
    if (some)
        snprintf(text, MATCH_HINT_SIZE, "heads %s of %" PRId64 " (from 0) are wrong, the others right: %s", list, heads,
                 view->shape.kv_heads < view->shape.n_heads ? "the order in which key/value heads are repeated"
                                                            : "the weights or the order of these heads");
    return some;
}

/* ---- what the case does not show ---- */

static bool small_and_even(const struct view *view, char *text)
{
    int64_t T = view->positions;
    double least = INFINITY, most = 0, *errors = memory_alloc((size_t)T, sizeof *errors);
    errors_by_position(view, errors);
    for (int64_t t = 0; t < T; t++) {
        least = fmin(least, errors[t]);
        most = fmax(most, errors[t]);
    }
    memory_free(errors);
    if (view->difference->dims < 3 || most > SMALL || least < view->difference->tolerance / 10)
        return false;
    snprintf(
        text, MATCH_HINT_SIZE,
        "a small difference at every position (%.1e to %.1e): a norm's epsilon, or numbers of less precision on one "
        "side",
        least, most);
    return true;
}

/* A block with nothing compared inside it. */
static bool nothing_between(const struct view *view, char *text)
{
    char inside[96];
    snprintf(inside, sizeof inside, "%s.", view->difference->name);
    if (!is_block(view) || case_expects(view->reference, inside))
        return false;
    snprintf(text, MATCH_HINT_SIZE,
             "nothing inside %s is in expected.safetensors: with %sattention.query, .key, %sattention and "
             "%sfeed_forward from the other side the place is narrower",
             view->difference->name, inside, inside, inside);
    return true;
}

static bool by_trial(const struct view *view, char *text)
{
    return match_trial(view->reference, view->model, view->difference, text);
}

static bool (*const kinds[])(const struct view *view, char *text) = {
    not_finite,  one_factor, factor_by_row,  factor_by_column, by_trial,
    by_position, some_heads, small_and_even, nothing_between,
};

const char *match_hint(const struct reference_case *reference, struct model *model,
                       const struct match_difference *difference, char buf[MATCH_HINT_SIZE])
{
    struct view view = {.reference = reference, .model = model, .difference = difference, .shape = model_shape(model)};
    buf[0] = 0;
    if (difference->dims < 2)
        return buf;
    view_open(&view);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i](&view, buf))
            break;
    memory_free(view.ours);
    memory_free(view.expected);
    return buf;
}
