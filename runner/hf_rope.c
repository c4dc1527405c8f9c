/* Rotation as config.json writes it, in both layouts: top-level rope_theta with rope_scaling, or rope_parameters. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/hf_reading.h"

enum rope_type { ROPE_DEFAULT, ROPE_LINEAR, ROPE_LLAMA3, ROPE_TYPES };
static const char *const type_names[ROPE_TYPES] = {"default", "linear", "llama3"};

/* The keys of the object and the first type that has them; later types have what earlier ones have. */
static const struct {
    const char *name;
    enum rope_type from;
} rope_keys[] = {
    {"type", ROPE_DEFAULT},
    {"rope_type", ROPE_DEFAULT},
    {"rope_theta", ROPE_DEFAULT},
    {"partial_rotary_factor", ROPE_DEFAULT},
    {"factor", ROPE_LINEAR},
    {"low_freq_factor", ROPE_LLAMA3},
    {"high_freq_factor", ROPE_LLAMA3},
    {"original_max_position_embeddings", ROPE_LLAMA3},
};
enum { ROPE_KEYS = sizeof rope_keys / sizeof rope_keys[0], PATH_SIZE = 96 };

/* The object that says how to rotate, and its key. */
struct rope {
    const struct hf_reading *reading;
    const char *key;
    const json_t *object;
};

static const char *path_of(const struct rope *rope, const char *key, char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "%s.%.48s", rope->key, key);
    return path;
}

/* NULL when neither is there or both are null. */
static const json_t *find_object(struct rope *rope)
{
    static const char *const names[] = {"rope_parameters", "rope_scaling"};
    const json_t *found = NULL;
    for (size_t i = 0; i < 2; i++) {
        json_t *value = json_object_get(rope->reading->root, names[i]);
        if (!value || json_is_null(value))
            continue;
        if (!json_is_object(value))
            hf_refuse(rope->reading, names[i], value, "null or an object with rope_type");
        else if (!found) {
            found = value;
            rope->key = names[i];
        } else if (!json_equal(found, value))
            hf_refuse(rope->reading, names[i], value, "the same as in rope_parameters, or only one of them");
    }
    return found;
}

static bool read_type(const struct rope *rope, enum rope_type *type)
{
    const json_t *old = json_object_get(rope->object, "type"), *new = json_object_get(rope->object, "rope_type");
    const json_t *value = new ? new : old;
    char path[PATH_SIZE];
    if (old && new && !json_equal(old, new)) {
        hf_refuse(rope->reading, path_of(rope, "type", path), old, "the same as rope_type");
        return false;
    }
    if (!value && !json_object_get(rope->object, "factor")) /* a theta alone */
        return true;
    for (int i = 0; i < ROPE_TYPES; i++)
        if (json_is_string(value) && strcmp(json_string_value(value), type_names[i]) == 0) {
            *type = (enum rope_type)i;
            return true;
        }
    hf_refuse(rope->reading, path_of(rope, new || !old ? "rope_type" : "type", path), value,
              "\"default\", \"linear\" or \"llama3\"");
    return false;
}

/* Each key is one that the type has. */
static bool check_keys(const struct rope *rope, enum rope_type type)
{
    const char *name;
    json_t *value;
    char path[PATH_SIZE];
    bool good = true;
    json_object_foreach((json_t *)rope->object, name, value)
    {
        size_t i = 0;
        while (i < ROPE_KEYS && strcmp(rope_keys[i].name, name) != 0)
            i++;
        if (i < ROPE_KEYS && rope_keys[i].from <= type)
            continue;
        hf_refuse(rope->reading, path_of(rope, name, path), value, "no such key with rope_type \"%s\"",
                  type_names[type]);
        good = false;
    }
    const json_t *part = json_object_get(rope->object, "partial_rotary_factor");
    double factor = json_number_value(part);
    if (part && (!json_is_number(part) || factor < 1 || factor > 1)) {
        hf_refuse(rope->reading, path_of(rope, "partial_rotary_factor", path), part, "1.0");
        good = false;
    }
    return good;
}

static void read_theta(const struct rope *rope)
{
    const json_t *top = json_object_get(rope->reading->root, "rope_theta"),
                 *inner = json_object_get(rope->object, "rope_theta");
    char path[PATH_SIZE];
    if (inner && hf_set_knob(rope->reading, path_of(rope, "rope_theta", path), inner, "model.rope_base") && top &&
        (json_number_value(top) < json_number_value(inner) || json_number_value(top) > json_number_value(inner)))
        hf_refuse(rope->reading, "rope_theta", top, "the same as %s", path);
    else if (top)
        hf_set_knob(rope->reading, "rope_theta", top, "model.rope_base");
}

static bool read_positive(const struct rope *rope, const char *key, double *out)
{
    const json_t *value = json_object_get(rope->object, key);
    char path[PATH_SIZE];
    *out = json_number_value(value);
    if (json_is_number(value) && *out > 0)
        return true;
    hf_refuse(rope->reading, path_of(rope, key, path), value, "number above 0");
    return false;
}

/* Long wavelengths are stretched by factor, short ones kept, those between blended ("Llama 3.1", 2024). */
static double *llama3_frequencies(int64_t D, double base, double factor, double low, double high, double original)
{
    double *frequencies = memory_alloc((size_t)(D / 2), sizeof *frequencies);
    for (int64_t i = 0; i < D / 2; i++) {
        double frequency = pow(base, -(double)(2 * i) / (double)D), turns = original * frequency / (2 * acos(-1));
        double keep = (turns - low) / (high - low);
        keep = keep < 0 ? 0 : keep > 1 ? 1 : keep;
        frequencies[i] = (1 - keep) * frequency / factor + keep * frequency;
    }
    return frequencies;
}

/* What the stretching alone makes too fast; the plain speeds are core's to judge (config_check). */
static bool stretched_fits(const struct model_config *model, const double *speeds, int64_t D)
{
    for (int64_t i = 0; i < D / 2; i++)
        if (!rotation_speed_fits(speeds[i]) && rotation_speed_fits(rotation_speed(model, i, D)))
            return false;
    return true;
}

static void read_llama3(const struct rope *rope)
{
    struct hf_config *config = rope->reading->config;
    double factor, low, high, original;
    char path[PATH_SIZE];
    bool good = read_positive(rope, "factor", &factor);
    good = read_positive(rope, "low_freq_factor", &low) && good;
    good = read_positive(rope, "high_freq_factor", &high) && good;
    good = read_positive(rope, "original_max_position_embeddings", &original) && good;
    if (good && high <= low) {
        hf_refuse(rope->reading, path_of(rope, "high_freq_factor", path),
                  json_object_get(rope->object, "high_freq_factor"), "more than low_freq_factor");
        return;
    }
    if (!good)
        return;
    const struct model_config *model = &config->config.model;
    int64_t D = model_shape_of(model, 1).head_dim;
    double base = model->rope_base, *speeds = llama3_frequencies(D, base, factor, low, high, original);
    if (stretched_fits(model, speeds, D)) {
        config->frequencies = speeds;
        return;
    }
    memory_free(speeds);
    hf_refuse(rope->reading, path_of(rope, "factor", path), json_object_get(rope->object, "factor"),
              "one that gives finite rotation speeds with rope_theta %g", base);
}

/* Rows are always in the order of split here; a model that was trained adjacent is turned back (hf_weights.c). */
static void read_layout(const struct hf_reading *reading)
{
    const json_t *value = json_object_get(reading->root, "runner_rope_layout");
    const char *name = json_string_value(value);
    if (name && strcmp(name, "adjacent") == 0)
        reading->config->config.model.rope_layout = ROPE_ADJACENT;
    else if (value && (!name || strcmp(name, "split") != 0))
        hf_refuse(reading, "runner_rope_layout", value, "\"adjacent\" or \"split\"");
}

void hf_read_rope(const struct hf_reading *reading)
{
    struct rope rope = {.reading = reading};
    enum rope_type type = ROPE_DEFAULT;
    size_t before = reading->problems->errors;
    char path[PATH_SIZE];
    rope.object = find_object(&rope);
    read_theta(&rope);
    read_layout(reading);
    if (!rope.object || reading->problems->errors > before || !read_type(&rope, &type) || !check_keys(&rope, type))
        return;
    if (type == ROPE_LINEAR)
        hf_set_knob(reading, path_of(&rope, "factor", path), json_object_get(rope.object, "factor"),
                    "model.rope_scale");
    else if (type == ROPE_LLAMA3)
        read_llama3(&rope);
}
