/* The table of knobs and what is done by walking it. */
#include "core/knob.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_model "model"
#define PATH_training "training"
#define PATH_evaluation "evaluation"
#define PATH_data "data"
#define PATH_tokenizer "data.tokenizer"

/* clang-format off */
/* "|layernorm|rmsnorm" */
static const char norm_choices[] =
#define NORM(NAME, name, ...) "|" #name
#include "core/parts.def"
    ;
static const char activation_choices[] =
#define ACTIVATION(NAME, name, ...) "|" #name
#include "core/parts.def"
    ;

static const struct {
    double epsilon;
    bool bias;
} norms[] = {
#define NORM(NAME, name, epsilon, bias) {epsilon, bias},
#include "core/parts.def"
};
static const int64_t activation_inputs[] = {
#define ACTIVATION(NAME, name, inputs) inputs,
#include "core/parts.def"
};

#define ROW(g, f, text) .name = PATH_##g "." #f, .group = PATH_##g, .field = #f, .doc = (text), .offset = offsetof(struct config, g.f)
#define GROUP(group)
#define END_GROUP
#define INTEGER(group, field, def, low, high, text) \
    {ROW(group, field, text), .kind = KNOB_INTEGER, .minimum = (low), .maximum = (high), .standard.integer = (def)},
#define NUMBER(group, field, def, interval, text) \
    {ROW(group, field, text), .kind = KNOB_NUMBER, .range = (interval), .standard.number = (def)},
#define BOOLEAN(group, field, def, text) {ROW(group, field, text), .kind = KNOB_BOOLEAN, .standard.boolean = (def)},
#define CHOICE(group, field, def, names, text) \
    {ROW(group, field, text), .kind = KNOB_CHOICE, .choices = (names), .standard.choice = (def)},
const struct knob knobs[] = {
#include "core/knobs.def"
};
/* clang-format on */
const size_t knob_count = sizeof knobs / sizeof knobs[0];

const struct knob *knob_find(const char *name)
{
    for (size_t i = 0; i < knob_count; i++)
        if (strcmp(knobs[i].name, name) == 0)
            return &knobs[i];
    return NULL;
}

/* ---- values ---- */

union knob_value knob_get(const struct knob *knob, const struct config *config)
{
    const char *field = (const char *)config + knob->offset;
    union knob_value value = {.integer = 0};
    switch (knob->kind) {
    case KNOB_INTEGER: memcpy(&value.integer, field, sizeof value.integer); break;
    case KNOB_NUMBER: memcpy(&value.number, field, sizeof value.number); break;
    case KNOB_BOOLEAN: memcpy(&value.boolean, field, sizeof value.boolean); break;
    case KNOB_CHOICE: memcpy(&value.choice, field, sizeof value.choice); break;
    }
    return value;
}

void knob_set(const struct knob *knob, struct config *config, union knob_value value)
{
    char *field = (char *)config + knob->offset;
    switch (knob->kind) {
    case KNOB_INTEGER: memcpy(field, &value.integer, sizeof value.integer); break;
    case KNOB_NUMBER: memcpy(field, &value.number, sizeof value.number); break;
    case KNOB_BOOLEAN: memcpy(field, &value.boolean, sizeof value.boolean); break;
    case KNOB_CHOICE: memcpy(field, &value.choice, sizeof value.choice); break;
    }
}

static bool number_equal(double a, double b)
{
    return !(a < b) && !(a > b);
}

bool knob_equal(const struct knob *knob, union knob_value a, union knob_value b)
{
    switch (knob->kind) {
    case KNOB_INTEGER: return a.integer == b.integer;
    case KNOB_NUMBER: return number_equal(a.number, b.number);
    case KNOB_BOOLEAN: return a.boolean == b.boolean;
    case KNOB_CHOICE: return a.choice == b.choice;
    }
    return false;
}

void config_init(struct config *config)
{
    memset(config, 0, sizeof *config);
    for (size_t i = 0; i < knob_count; i++)
        knob_set(&knobs[i], config, knobs[i].standard);
}

/* ---- text ---- */

/* The choice of index in "a|b|c": its start, and its length in *length. NULL past the end. */
static const char *choice_at(const char *choices, int index, size_t *length)
{
    for (;; index--) {
        *length = strcspn(choices, "|");
        if (index == 0)
            return choices;
        if (!choices[*length])
            return NULL;
        choices += *length + 1;
    }
}

/* The fewest digits that read back the same; without an exponent where whole digits do: 500000, not 5e+05. */
static void number_format(double number, char buf[KNOB_TEXT_SIZE])
{
    char text[KNOB_TEXT_SIZE]; /* gcc takes buf for NULL under its sanitizers */
    int digits = 0;
    do {
        snprintf(text, sizeof text, "%.*e", digits, number);
        double back = strtod(text, NULL);
        if (!(back < number) && !(back > number))
            break;
    } while (++digits < 17);
    int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    bool whole = exponent > digits && exponent < 15;
    snprintf(text, sizeof text, "%.*g", (whole ? exponent : digits) + 1, number);
    memcpy(buf, text, sizeof text);
}

const char *knob_format(const struct knob *knob, union knob_value value, char buf[KNOB_TEXT_SIZE])
{
    switch (knob->kind) {
    case KNOB_INTEGER: snprintf(buf, KNOB_TEXT_SIZE, "%" PRId64, value.integer); break;
    case KNOB_NUMBER: number_format(value.number, buf); break;
    case KNOB_BOOLEAN: snprintf(buf, KNOB_TEXT_SIZE, "%s", value.boolean ? "true" : "false"); break;
    case KNOB_CHOICE: {
        size_t length;
        const char *name = choice_at(knob->choices, value.choice, &length);
        snprintf(buf, KNOB_TEXT_SIZE, "%.*s", (int)length, name ? name : "");
        break;
    }
    }
    return buf;
}

const char *knob_kind_name(enum knob_kind kind)
{
    static const char *const names[] = {
        [KNOB_INTEGER] = "integer", [KNOB_NUMBER] = "number", [KNOB_BOOLEAN] = "boolean", [KNOB_CHOICE] = "choice"};
    return names[kind];
}

struct range {
    double low, high;
    bool low_open, high_open;
};

static struct range range_of(const struct knob *knob)
{
    char *end;
    struct range range = {.low_open = knob->range[0] == '('};
    range.low = strtod(knob->range + 1, &end);
    range.high = strtod(end + 1, &end);
    range.high_open = *end == ')';
    return range;
}

static void describe_choices(const struct knob *knob, char *buf, size_t size)
{
    size_t used = 0, length;
    const char *name, *next;
    for (int i = 0; used < size && (name = choice_at(knob->choices, i, &length)); i++) {
        size_t next_length;
        next = choice_at(knob->choices, i + 1, &next_length);
        bool before_last = next && !next[next_length];
        used += (size_t)snprintf(buf + used, size - used, "%.*s%s", (int)length, name,
                                 !next         ? ""
                                 : before_last ? " or "
                                               : ", ");
    }
}

const char *knob_describe(const struct knob *knob, char *buf, size_t size)
{
    switch (knob->kind) {
    case KNOB_INTEGER:
        snprintf(buf, size, "a whole number from %" PRId64 " to %" PRId64, knob->minimum, knob->maximum);
        break;
    case KNOB_NUMBER: {
        struct range range = range_of(knob);
        char low[KNOB_TEXT_SIZE], high[KNOB_TEXT_SIZE];
        number_format(range.low, low);
        number_format(isinf(range.high) ? 0 : range.high, high);
        if (isinf(range.high))
            snprintf(buf, size, "a finite number %s %s", range.low_open ? "above" : "of at least", low);
        else
            snprintf(buf, size, "a number %s %s and %s %s", range.low_open ? "above" : "of at least", low,
                     range.high_open ? "below" : "at most", high);
        break;
    }
    case KNOB_BOOLEAN: snprintf(buf, size, "true or false"); break;
    case KNOB_CHOICE: describe_choices(knob, buf, size); break;
    }
    return buf;
}

static bool knob_refuse(const struct knob *knob, const char *text, bool quoted, struct error *err)
{
    char accepted[256];
    const char *quote = quoted ? "\"" : "";
    return error_set(err, "%s is '%s%.100s%s': expected %s%s", knob->name, quote, text, quote,
                     knob_describe(knob, accepted, sizeof accepted),
                     quoted && knob->kind != KNOB_CHOICE ? " without quotes" : "");
}

/* Sign and decimal digits only. */
static bool text_is_integer(const char *text)
{
    text += *text == '-' || *text == '+';
    return *text && text[strspn(text, "0123456789")] == 0;
}

/* [-+]? (digits [. digits*] | . digits) ([eE] [-+]? digits)?  : YAML 1.2 core, without .inf and .nan. */
static bool text_is_number(const char *text)
{
    text += *text == '-' || *text == '+';
    size_t whole = strspn(text, "0123456789"), part = 0;
    text += whole;
    if (*text == '.') {
        part = strspn(text + 1, "0123456789");
        text += 1 + part;
    }
    if (whole + part == 0)
        return false;
    if (*text == 'e' || *text == 'E') {
        text++;
        text += *text == '-' || *text == '+';
        size_t exponent = strspn(text, "0123456789");
        if (exponent == 0)
            return false;
        text += exponent;
    }
    return *text == 0;
}

static bool text_is_one_of(const char *text, const char *a, const char *b, const char *c)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0 || strcmp(text, c) == 0;
}

bool knob_parse(const struct knob *knob, const char *text, bool quoted, union knob_value *value, struct error *err)
{
    if (quoted && knob->kind != KNOB_CHOICE)
        return knob_refuse(knob, text, quoted, err);
    errno = 0;
    switch (knob->kind) {
    case KNOB_INTEGER:
        value->integer = strtoll(text, NULL, 10);
        if (text_is_integer(text) && errno == 0 && value->integer >= knob->minimum && value->integer <= knob->maximum)
            return true;
        break;
    case KNOB_NUMBER: {
        struct range range = range_of(knob);
        double number = value->number = strtod(text, NULL);
        bool above = range.low_open ? number > range.low : number >= range.low;
        bool below = range.high_open ? number < range.high : number <= range.high;
        bool vanished = errno == ERANGE && !(number > 0) && !(number < 0); /* 1e-999 is not the zero it would become */
        if (text_is_number(text) && isfinite(number) && !vanished && above && below) {
            value->number = number + 0.0; /* -0 is 0 */
            return true;
        }
        break;
    }
    case KNOB_BOOLEAN:
        value->boolean = text_is_one_of(text, "true", "True", "TRUE");
        if (value->boolean || text_is_one_of(text, "false", "False", "FALSE"))
            return true;
        break;
    case KNOB_CHOICE: {
        size_t length;
        const char *name;
        for (int i = 0; (name = choice_at(knob->choices, i, &length)); i++)
            if (strlen(text) == length && memcmp(text, name, length) == 0) {
                value->choice = i;
                return true;
            }
        break;
    }
    }
    return knob_refuse(knob, text, quoted, err);
}

/* ---- sizes ---- */

static int64_t ff_hidden_from(int64_t multiplier, const struct model_config *model)
{
    int64_t full = multiplier * model->d_model;
    if (activation_inputs[model->feed_forward] == 1)
        return full;
    int64_t rounded = (2 * full + 12) / 24 * 8; /* 2/3 to the nearest multiple of 8 */
    return rounded < 8 ? 8 : rounded;
}

static int64_t ff_hidden_of(const struct model_config *model)
{
    return model->ff_hidden ? model->ff_hidden : ff_hidden_from(model->ff_multiplier, model);
}

struct model_shape model_shape_of(const struct model_config *model, int64_t vocab_size)
{
    struct model_shape shape = {
        .context_length = model->context_length,
        .d_model = model->d_model,
        .n_heads = model->n_heads,
        .kv_heads = model->kv_heads ? model->kv_heads : model->n_heads,
        .head_dim = model->head_dim ? model->head_dim : model->d_model / model->n_heads,
        .ff_hidden = ff_hidden_of(model),
        .n_layers = model->n_layers,
        .vocab_size = vocab_size,
        .mtp_depth = model->mtp_depth,
        .norm_epsilon = model->norm_epsilon > 0 ? model->norm_epsilon : norms[model->norm].epsilon,
        .qk_norm_epsilon = model->norm_epsilon > 0 ? model->norm_epsilon : norms[NORM_RMSNORM].epsilon,
        .ff_inputs = activation_inputs[model->feed_forward],
        .norm_bias = norms[model->norm].bias,
        .learned_positions = model->position == POSITION_LEARNED,
        .qk_norm = model->qk_norm,
        .linear_bias = model->linear_bias,
        .tied_embeddings = model->tied_embeddings,
    };
    return shape;
}

double rotation_speed(const struct model_config *model, int64_t pair, int64_t D)
{
    return 1 / (model->rope_scale * pow(model->rope_base, (double)(2 * pair) / (double)D));
}

bool rotation_speed_fits(double speed)
{
    return isfinite(speed * INT32_MAX);
}

/* ---- combinations ---- */

enum { BPE_SMALLEST = 256 + 3 };

/* Groups of four numbers that dropout draws at one site and step: kernels.h numbers them up to the next step's. */
#define DROPOUT_GROUPS 17179869184.0 /* 2^34 */

struct checker {
    const bool *unknown; /* by knob, or NULL */
    void (*report)(void *context, const struct knob *knob, const char *text);
    void *context;
    size_t count;
};

/* One of the knobs, named with blanks between them, has an unknown value. */
static bool check_is_open(const struct checker *checker, const char *names)
{
    for (size_t i = 0; checker->unknown && i < knob_count; i++) {
        size_t length = strlen(knobs[i].name);
        for (const char *p = names; checker->unknown[i] && (p = strstr(p, knobs[i].name)); p += length)
            if (p[length] == 0 || p[length] == ' ')
                return true;
    }
    return false;
}

static void check_fail(struct checker *checker, const char *name, const char *reads, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* reads: every knob that had a part in it. */
static void check_fail(struct checker *checker, const char *name, const char *reads, const char *format, ...)
{
    char text[512];
    va_list args;
    if (check_is_open(checker, reads))
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    checker->count++;
    checker->report(checker->context, knob_find(name), text);
}

#define HEAD_KNOBS "model.d_model model.n_heads model.head_dim"

/* The fastest pair is the first, and of a base below 1 the last. */
static void check_rotation(struct checker *checker, const struct model_config *m)
{
    static const char reads[] = HEAD_KNOBS " model.position model.rope_scale model.rope_base";
    int64_t D = model_shape_of(m, 1).head_dim;
    double first = rotation_speed(m, 0, D), last = rotation_speed(m, D / 2 - 1, D);
    char base[KNOB_TEXT_SIZE], scale[KNOB_TEXT_SIZE];
    number_format(m->rope_base, base);
    number_format(m->rope_scale, scale);
    if (!rotation_speed_fits(first))
        check_fail(checker, "model.rope_scale", reads,
                   "rope_scale %s makes rotation speeds that no number holds: expected a larger one", scale);
    else if (!rotation_speed_fits(last))
        check_fail(checker, "model.rope_base", reads,
                   "rope_base %s with rope_scale %s makes rotation speeds that no number holds: expected a larger one",
                   base, scale);
}

static void check_heads(struct checker *checker, const struct model_config *m)
{
    if (!m->head_dim && m->d_model % m->n_heads)
        check_fail(checker, "model.n_heads", HEAD_KNOBS,
                   "d_model %" PRId64 " does not divide into n_heads %" PRId64 " (remainder %" PRId64
                   "): choose a divisor of d_model or set head_dim",
                   m->d_model, m->n_heads, m->d_model % m->n_heads);
    else if (m->position == POSITION_ROPE && model_shape_of(m, 1).head_dim % 2)
        check_fail(checker, m->head_dim ? "model.head_dim" : "model.n_heads", HEAD_KNOBS " model.position",
                   "position rope needs an even head_dim, and head_dim is %" PRId64, model_shape_of(m, 1).head_dim);
    else if (m->position == POSITION_ROPE)
        check_rotation(checker, m);
    if (m->kv_heads && m->n_heads % m->kv_heads)
        check_fail(checker, "model.kv_heads", "model.kv_heads model.n_heads",
                   "kv_heads %" PRId64 " is not a divisor of n_heads %" PRId64 ": choose one of its divisors, or 0",
                   m->kv_heads, m->n_heads);
}

/* In double, for the products pass 2^63. Rows of the residual stream and of the probabilities. */
static void check_dropout(struct checker *checker, const struct model_config *m, int64_t batch_size)
{
    double B = (double)batch_size, T = (double)m->context_length, H = (double)m->n_heads;
    if (m->dropout > 0 && B * H * T * ceil(T / 4) > DROPOUT_GROUPS)
        check_fail(checker, "model.dropout", "model.dropout training.batch_size model.n_heads model.context_length",
                   "dropout needs batch_size * n_heads * context_length^2 / 4 of at most 2^34, and %" PRId64
                   " * %" PRId64 " * %" PRId64 "^2 / 4 is %.4g: expected smaller ones, or dropout 0",
                   batch_size, m->n_heads, m->context_length, B * H * T * ceil(T / 4));
    else if (m->dropout > 0 && B * T * ceil((double)m->d_model / 4) > DROPOUT_GROUPS)
        check_fail(checker, "model.dropout", "model.dropout training.batch_size model.d_model model.context_length",
                   "dropout needs batch_size * context_length * d_model / 4 of at most 2^34, and %" PRId64 " * %" PRId64
                   " * %" PRId64 " / 4 is %.4g: expected smaller ones, or dropout 0",
                   batch_size, m->context_length, m->d_model, B * T * ceil((double)m->d_model / 4));
}

size_t config_check_known(const struct config *config, const bool *unknown,
                          void (*report)(void *, const struct knob *, const char *), void *context)
{
    struct checker checker = {unknown, report, context, 0};
    const struct model_config *m = &config->model;
    const struct training_config *t = &config->training;
    check_heads(&checker, m);
    check_dropout(&checker, m, t->batch_size);
    if (m->mtp_depth > m->context_length)
        check_fail(&checker, "model.mtp_depth", "model.mtp_depth model.context_length",
                   "mtp_depth %" PRId64 " is more than context_length %" PRId64 ": the last depth would have no target",
                   m->mtp_depth, m->context_length);
    if (m->position == POSITION_SINUSOIDAL && m->d_model % 2)
        check_fail(&checker, "model.d_model", "model.d_model model.position",
                   "position sinusoidal needs an even d_model, and it is %" PRId64, m->d_model);
    if (t->warmup_steps > t->steps)
        check_fail(&checker, "training.warmup_steps", "training.warmup_steps training.steps",
                   "warmup_steps %" PRId64 " is more than steps %" PRId64 ": expected at most steps", t->warmup_steps,
                   t->steps);
    if (t->min_learning_rate > t->learning_rate)
        check_fail(&checker, "training.min_learning_rate", "training.min_learning_rate training.learning_rate",
                   "min_learning_rate %g is above learning_rate %g: expected at most learning_rate",
                   t->min_learning_rate, t->learning_rate);
    if (config->tokenizer.kind == TOKENIZER_BPE && config->tokenizer.vocab_size < BPE_SMALLEST)
        check_fail(&checker, "data.tokenizer.vocab_size", "data.tokenizer.vocab_size data.tokenizer.kind",
                   "vocab_size %" PRId64 " is below %d: expected room for 256 bytes and 3 special tokens",
                   config->tokenizer.vocab_size, BPE_SMALLEST);
    return checker.count;
}

size_t config_check(const struct config *config, void (*report)(void *, const struct knob *, const char *),
                    void *context)
{
    return config_check_known(config, NULL, report, context);
}

/* ---- equal meanings ---- */

static void knob_reset(const char *name, struct config *config, bool *ignored)
{
    const struct knob *knob = knob_find(name);
    if (!knob_equal(knob, knob_get(knob, config), knob->standard) && ignored)
        ignored[knob - knobs] = true;
    knob_set(knob, config, knob->standard);
}

void config_canonicalize(struct config *config, bool *ignored)
{
    struct model_config *m = &config->model;
    if (ignored)
        memset(ignored, 0, knob_count * sizeof *ignored);
    if (m->head_dim == m->d_model / m->n_heads && m->d_model % m->n_heads == 0)
        m->head_dim = 0;
    if (m->kv_heads == m->n_heads)
        m->kv_heads = 0;
    double standard = norms[m->norm].epsilon, of_qk_norm = m->qk_norm ? norms[NORM_RMSNORM].epsilon : standard;
    bool one_epsilon = number_equal(standard, of_qk_norm); /* else 0 means two different ones */
    if (one_epsilon && number_equal(m->norm_epsilon, standard))
        m->norm_epsilon = 0;

    int64_t hidden = ff_hidden_of(m);
    if (m->ff_hidden)
        knob_reset("model.ff_multiplier", config, ignored);
    m->ff_multiplier = knob_find("model.ff_multiplier")->standard.integer;
    m->ff_hidden = hidden == ff_hidden_from(m->ff_multiplier, m) ? 0 : hidden;

    if (m->position != POSITION_ROPE) {
        knob_reset("model.rope_base", config, ignored);
        knob_reset("model.rope_scale", config, ignored);
        knob_reset("model.rope_layout", config, ignored);
    }
    if (config->tokenizer.kind != TOKENIZER_BPE) {
        knob_reset("data.tokenizer.vocab_size", config, ignored);
        knob_reset("data.tokenizer.min_frequency", config, ignored);
    }
}
