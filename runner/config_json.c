/* Configurations as JSON, and the key that names a run. Both are identity: what they write must never change. */
#include "runner/experiment.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/hash.h"
#include "runner/text_stream.h"

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const struct knob *const *)a)->name, (*(const struct knob *const *)b)->name);
}

/* Only knobs whose name does not begin with `without` (NULL: all). Names and choices need no escaping. */
static char *knobs_json(const struct config *config, bool full, const char *without)
{
    const struct knob **sorted = memory_alloc(knob_count, sizeof(const struct knob *));
    for (size_t i = 0; i < knob_count; i++)
        sorted[i] = &knobs[i];
    qsort(sorted, knob_count, sizeof(const struct knob *), compare_names);
    char text[KNOB_TEXT_SIZE];
    struct text_stream json;
    text_stream_open(&json);
    const char *separator = "";
    fputc('{', json.out);
    for (size_t i = 0; i < knob_count; i++) {
        const struct knob *knob = sorted[i];
        union knob_value value = knob_get(knob, config);
        if ((!full && knob_equal(knob, value, knob->standard)) ||
            (without && strncmp(knob->name, without, strlen(without)) == 0))
            continue;
        const char *quote = knob->kind == KNOB_CHOICE ? "\"" : "";
        fprintf(json.out, "%s\"%s\":%s%s%s", separator, knob->name, quote, knob_format(knob, value, text), quote);
        separator = ",";
    }
    fputc('}', json.out);
    memory_free(sorted);
    return text_stream_take(&json);
}

char *config_json(const struct config *config, bool full)
{
    return knobs_json(config, full, NULL);
}

static bool knob_from_json(const char *name, const json_t *json, struct config *config, struct error *err)
{
    const struct knob *knob = knob_find(name);
    if (!knob)
        return error_set(err, "configuration has the unknown setting '%.100s'", name);
    char text[64] = "";
    bool fits = false;
    if (knob->kind == KNOB_CHOICE && (fits = json_is_string(json)))
        snprintf(text, sizeof text, "%s", json_string_value(json));
    else if (knob->kind == KNOB_BOOLEAN && (fits = json_is_boolean(json)))
        snprintf(text, sizeof text, "%s", json_is_true(json) ? "true" : "false");
    else if (knob->kind != KNOB_CHOICE && knob->kind != KNOB_BOOLEAN && json_is_integer(json)) {
        fits = true;
        snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(json));
    } else if (knob->kind == KNOB_NUMBER && (fits = json_is_real(json)))
        snprintf(text, sizeof text, "%.17g", json_real_value(json));
    union knob_value value;
    char accepted[256];
    if (!fits)
        return error_set(err, "%s has the wrong type: expected %s", name,
                         knob_describe(knob, accepted, sizeof accepted));
    if (!knob_parse(knob, text, false, &value, err))
        return false;
    knob_set(knob, config, value);
    return true;
}

bool config_from_json(const char *json, struct config *config, struct error *err)
{
    json_error_t problem;
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &problem);
    bool ok = json_is_object(root);
    if (!ok)
        error_set(err, "configuration is not a JSON object: %s", root ? "another type" : problem.text);
    config_init(config);
    const char *name;
    json_t *value;
    if (ok)
        json_object_foreach(root, name, value)
        {
            if (!(ok = knob_from_json(name, value, config, err)))
                break;
        }
    json_decref(root);
    return ok;
}

void run_key_make(const struct config *config, int64_t seed, const char *corpus_hash, const char *tokenizer_hash,
                  char key[65])
{
    struct config canonical = *config;
    config_canonicalize(&canonical, NULL);
    char *knobs_text = knobs_json(&canonical, false, "data."), *json = NULL;
    int length = asprintf(&json, "{\"config\":%s,\"corpus\":\"%s\",\"seed\":%" PRId64 ",\"tokenizer\":\"%s\"}",
                          knobs_text, corpus_hash, seed, tokenizer_hash);
    if (length < 0)
        abort();
    hash_bytes(json, (size_t)length, key);
    free(json);
    memory_free(knobs_text);
}
