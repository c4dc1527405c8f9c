/* Reads config.json: walks the tables of hf_keys.c over it and checks what comes out. */
#include "runner/hf_config.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/file.h"
#include "runner/hf_keys.h"
#include "runner/hf_reading.h"
#include "runner/json.h"

enum { FILE_LIMIT = 1 << 20, UNKNOWN_SHOWN = 8, VOCABULARY_LIMIT = 1000000, DIGITS = 9 };

/* ---- messages ---- */

const char *hf_value_text(const json_t *value, char buf[HF_VALUE_SIZE])
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(DIGITS));
    snprintf(buf, HF_VALUE_SIZE, "%s", text ? text : "?");
    if (text && strlen(text) >= HF_VALUE_SIZE)
        memcpy(buf + HF_VALUE_SIZE - 4, "...", 4);
    free(text);
    return buf;
}

void hf_refuse(const struct hf_reading *reading, const char *key, const json_t *value, const char *format, ...)
{
    char expected[512], text[HF_VALUE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(expected, sizeof expected, format, args);
    va_end(args);
    struct place place = {.file = reading->file};
    if (value)
        problem_add(reading->problems, place, "%s is %s: expected %s", key, hf_value_text(value, text), expected);
    else
        problem_add(reading->problems, place, "%s is missing: expected %s", key, expected);
}

/* ---- one key ---- */

static bool knob_from_json(const struct knob *knob, const json_t *value, union knob_value *out)
{
    char text[JSON_NUMBER_SIZE];
    if (knob->kind == KNOB_BOOLEAN) {
        out->boolean = json_is_true(value);
        return json_is_boolean(value);
    }
    if (knob->kind == KNOB_INTEGER && json_is_integer(value))
        snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (knob->kind == KNOB_NUMBER && json_is_number(value))
        json_number_format(json_number_value(value), text);
    else
        return false;
    bool zero = !(json_number_value(value) > 0) && !(json_number_value(value) < 0);
    return !zero && knob_parse(knob, text, false, out, NULL);
}

bool hf_set_knob(const struct hf_reading *reading, const char *key, const json_t *value, const char *name)
{
    const struct knob *knob = knob_find(name);
    union knob_value out;
    char accepted[256];
    if (value && knob_from_json(knob, value, &out)) {
        knob_set(knob, &reading->config->config, out);
        return true;
    }
    bool zero_is_ours = knob->kind != KNOB_BOOLEAN && knob_parse(knob, "0", false, &out, NULL);
    hf_refuse(reading, key, value, "%s%s", knob_describe(knob, accepted, sizeof accepted),
              zero_is_ours ? ", and above 0" : "");
    return false;
}

static void read_vocabulary(const struct hf_reading *reading, const char *key, const json_t *value)
{
    json_int_t size = json_integer_value(value);
    if (!json_is_integer(value) || size < 1 || size > VOCABULARY_LIMIT)
        hf_refuse(reading, key, value, "a whole number from 1 to %d", VOCABULARY_LIMIT);
    else
        reading->config->vocab_size = size;
}

static void read_activation(const struct hf_reading *reading, const char *key, const json_t *value)
{
    const struct hf_activation *known = hf_activations_of(reading->config->architecture), *row = known;
    const char *name = json_string_value(value);
    char accepted[128] = "";
    for (; row->name; row++) {
        size_t used = strlen(accepted);
        if (name && strcmp(row->name, name) == 0) {
            reading->config->config.model.feed_forward = row->feed_forward;
            return;
        }
        snprintf(accepted + used, sizeof accepted - used, "%s%s",
                 row == known  ? ""
                 : row[1].name ? ", "
                               : " or ",
                 row->name);
    }
    hf_refuse(reading, key, value, "%s", accepted);
}

static void read_bias(const struct hf_reading *reading, const struct hf_key *key, const json_t *value)
{
    struct hf_config *config = reading->config;
    if (!json_is_boolean(value))
        hf_refuse(reading, key->name, value, "true or false");
    else if (key->part == HF_ATTENTION_BIAS)
        config->attention_bias = json_is_true(value);
    else
        config->feed_forward_bias = json_is_true(value);
}

static void read_only(const struct hf_reading *reading, const struct hf_key *key, const json_t *value)
{
    char text[HF_VALUE_SIZE], accepted[128] = "";
    hf_value_text(value, text);
    for (const char *at = key->accepted; at;) {
        size_t length = strcspn(at, "|"), used = strlen(accepted);
        if (strlen(text) == length && memcmp(text, at, length) == 0)
            return;
        snprintf(accepted + used, sizeof accepted - used, "%s%.*s", used ? " or " : "", (int)length, at);
        at = at[length] ? at + length + 1 : NULL;
    }
    hf_refuse(reading, key->name, value, "%s", accepted);
}

static void read_layer_types(const struct hf_reading *reading, const char *key, const json_t *value)
{
    size_t i;
    json_t *item;
    int64_t layers = reading->config->config.model.n_layers;
    if (!json_is_array(value) || json_array_size(value) != (size_t)layers) {
        hf_refuse(reading, key, value, "null or a list of %" PRId64 " kinds, one a layer", layers);
        return;
    }
    json_array_foreach(value, i, item)
    {
        const char *kind = json_string_value(item);
        char name[64];
        snprintf(name, sizeof name, "%s[%zu]", key, i);
        if (!kind || strcmp(kind, "full_attention") != 0) {
            hf_refuse(reading, name, item, "\"full_attention\"");
            return;
        }
    }
}

static void read_key(const struct hf_reading *reading, const struct hf_key *key)
{
    const json_t *value = json_object_get(reading->root, key->name);
    bool none = !value || (key->presence == HF_NULLABLE && json_is_null(value));
    if (none && key->presence != HF_REQUIRED)
        return;
    switch (key->role) {
    case HF_KNOB: hf_set_knob(reading, key->name, value, key->knob); break;
    case HF_ONLY: read_only(reading, key, value); break;
    case HF_VOCABULARY: read_vocabulary(reading, key->name, value); break;
    case HF_ACTIVATION: read_activation(reading, key->name, value); break;
    case HF_BIAS: read_bias(reading, key, value); break;
    case HF_LAYER_TYPES: read_layer_types(reading, key->name, value); break;
    case HF_FREE:
    case HF_ROPE:
    case HF_ARCHITECTURE: break;
    }
}

/* ---- the whole ---- */

/* What the family is, whatever its sizes. */
static void settings_begin(struct hf_config *config)
{
    struct model_config *model = &config->config.model;
    bool gpt2 = config->architecture == &hf_gpt2;
    model->norm = gpt2 ? NORM_LAYERNORM : NORM_RMSNORM;
    model->feed_forward = gpt2 ? FEED_FORWARD_GELU_TANH : FEED_FORWARD_SWIGLU;
    model->position = gpt2 ? POSITION_LEARNED : POSITION_ROPE;
    model->rope_layout = gpt2 ? ROPE_ADJACENT : ROPE_SPLIT;
    model->tied_embeddings = gpt2;
    model->qk_norm = config->architecture == &hf_qwen3;
    config->attention_bias = config->feed_forward_bias = gpt2;
}

static bool read_architecture(const struct hf_reading *reading)
{
    const json_t *list = json_object_get(reading->root, "architectures"),
                 *type = json_object_get(reading->root, "model_type");
    const char *name = json_string_value(json_array_get(list, 0));
    char accepted[128] = "";
    for (size_t i = 0; hf_architectures[i]; i++) {
        size_t used = strlen(accepted);
        snprintf(accepted + used, sizeof accepted - used, "%s[\"%s\"]",
                 i == 0                    ? ""
                 : hf_architectures[i + 1] ? ", "
                                           : " or ",
                 hf_architectures[i]->name);
    }
    const struct hf_architecture *architecture = name && json_array_size(list) == 1 ? hf_architecture_find(name) : NULL;
    if (!architecture) {
        hf_refuse(reading, "architectures", list, "%s", accepted);
        return false;
    }
    if (type && (!json_is_string(type) || strcmp(json_string_value(type), architecture->model_type) != 0))
        hf_refuse(reading, "model_type", type, "\"%s\", as in %s", architecture->model_type, architecture->name);
    reading->config->architecture = architecture;
    return true;
}

static void report_unknown(const struct hf_reading *reading)
{
    const char *name;
    json_t *value;
    char names[512] = "";
    size_t count = 0;
    json_object_foreach(reading->root, name, value)
    {
        const struct hf_key *key = hf_key_find(reading->config->architecture, name);
        size_t used = strlen(names);
        if (!key && count++ < UNKNOWN_SHOWN)
            snprintf(names + used, sizeof names - used, "%s'%.40s'", used ? ", " : "", name);
    }
    if (count > UNKNOWN_SHOWN)
        problem_note(reading->problems, (struct place){.file = reading->file},
                     "keys not known here, and not used: %s and %zu more", names, count - UNKNOWN_SHOWN);
    else if (count)
        problem_note(reading->problems, (struct place){.file = reading->file}, "keys not known here, and not used: %s",
                     names);
}

static void report_combination(void *context, const struct knob *knob, const char *text)
{
    const struct hf_reading *reading = context;
    const struct hf_key *key = hf_keys_of(reading->config->architecture);
    while (key->name && (!key->knob || strcmp(key->knob, knob->name) != 0))
        key++;
    problem_add(reading->problems, (struct place){.file = reading->file}, "%s: %s", key->name ? key->name : knob->name,
                text);
}

/* Keys of the architecture, then those that all have; each once. */
static void read_keys(const struct hf_reading *reading)
{
    const struct hf_key *rows = hf_keys_of(reading->config->architecture);
    const char *name;
    json_t *value;
    for (const struct hf_key *key = rows; key->name; key++)
        read_key(reading, key);
    json_object_foreach(reading->root, name, value)
    {
        const struct hf_key *key = hf_key_find(reading->config->architecture, name);
        bool common = key != NULL;
        for (const struct hf_key *row = rows; row->name; row++)
            common = common && row != key;
        if (common)
            read_key(reading, key);
    }
}

static void read_root(const struct hf_reading *reading)
{
    struct hf_config *config = reading->config;
    size_t before = reading->problems->errors;
    if (!read_architecture(reading))
        return;
    settings_begin(config);
    read_keys(reading);
    report_unknown(reading);
    config->config.model.linear_bias = config->attention_bias || config->feed_forward_bias;
    if (config->config.model.position == POSITION_ROPE && reading->problems->errors == before)
        hf_read_rope(reading);
    if (reading->problems->errors == before)
        config_check(&config->config, report_combination, (void *)reading);
}

bool hf_config_parse(const char *name, const char *text, size_t size, struct hf_config *config,
                     struct problems *problems)
{
    size_t before = problems->errors;
    json_error_t error;
    *config = (struct hf_config){.vocab_size = 0};
    config_init(&config->config);
    struct hf_reading reading = {name, problems, NULL, config};
    reading.root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!reading.root)
        problem_add(problems, (struct place){.file = name, .line = error.line, .column = error.column},
                    "not correct JSON: %s", error.text);
    else if (!json_is_object(reading.root))
        problem_add(problems, (struct place){.file = name}, "expected an object with \"architectures\"");
    else
        read_root(&reading);
    json_decref(reading.root);
    return problems->errors == before;
}

bool hf_config_read(const char *path, struct hf_config *config, struct problems *problems)
{
    char *text;
    size_t size;
    struct error err;
    *config = (struct hf_config){.vocab_size = 0};
    if (!file_read(path, FILE_LIMIT, &text, &size, &err)) {
        problem_add(problems, (struct place){.file = NULL}, "%s", err.text);
        return false;
    }
    bool good = hf_config_parse(path, text, size, config, problems);
    memory_free(text);
    return good;
}

void hf_config_release(struct hf_config *config)
{
    memory_free(config->frequencies);
    config->frequencies = NULL;
}
