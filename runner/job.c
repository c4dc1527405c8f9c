/* A job as JSON: what a supervisor writes to its worker's standard input. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/experiment.h"
#include "runner/json.h"
#include "runner/worker.h"

/* Paths are bytes, JSON is Unicode: byte N travels as code point N. */
static json_t *json_from_path(const char *path)
{
    size_t used = 0;
    char *text = memory_alloc(2 * strlen(path) + 1, 1);
    for (const unsigned char *byte = (const void *)path; *byte; byte++) {
        if (*byte >= 0x80)
            text[used++] = (char)(0xc0 | *byte >> 6);
        text[used++] = (char)(*byte >= 0x80 ? 0x80 | (*byte & 0x3f) : *byte);
    }
    json_t *value = json_string(text);
    memory_free(text);
    return value;
}

static bool path_from_json(const json_t *value, char *path, size_t size)
{
    const unsigned char *text = (const void *)json_string_value(value);
    size_t used = 0;
    for (; text && *text && used + 1 < size; text++) {
        if (*text > 0xc3)
            return false;
        unsigned char high = *text;
        path[used++] = (char)(high < 0x80 ? high : (unsigned)(high & 0x03) << 6 | (*++text & 0x3f));
    }
    path[used] = 0;
    return text && !*text;
}

char *job_json(const struct job *job)
{
    json_t *root = json_object();
    char *config = config_json(&job->config, true);
    json_put(root, "key", json_string(job->key));
    json_put(root, "seed", json_integer(job->seed));
    json_put(root, "config", json_loads(config, 0, NULL));
    json_put(root, "dataset", json_from_path(job->dataset_path));
    json_put(root, "checkpoints", json_from_path(job->checkpoint_folder));
    json_put(root, "checkpoint_every", json_integer(job->checkpoint_every));
    char *text = json_format(root, JSON_LINE, false);
    json_decref(root);
    memory_free(config);
    return text;
}

static bool job_path(const json_t *root, const char *name, char *out, size_t size, struct error *err)
{
    if (path_from_json(json_object_get(root, name), out, size))
        return true;
    return error_set(err, "job: '%s' is missing or not a path of at most %zu bytes", name, size - 1);
}

static bool job_integer(const json_t *root, const char *name, int64_t *out, struct error *err)
{
    const json_t *value = json_object_get(root, name);
    if (!json_is_integer(value))
        return error_set(err, "job: '%s' is missing or not a whole number", name);
    *out = json_integer_value(value);
    return true;
}

static bool job_config(const json_t *root, struct config *config, struct error *err)
{
    char *text = json_dumps(json_object_get(root, "config"), JSON_COMPACT);
    if (!text)
        return error_set(err, "job: 'config' is missing");
    bool ok = config_from_json(text, config, err) || error_wrap(err, "job: config");
    free(text);
    return ok;
}

bool job_from_json(const char *json, struct job *job, struct error *err)
{
    json_error_t problem;
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &problem);
    memset(job, 0, sizeof *job);
    if (!root)
        return error_set(err, "job: not JSON: %s", problem.text);
    bool ok = job_path(root, "key", job->key, sizeof job->key, err) && job_integer(root, "seed", &job->seed, err) &&
              job_config(root, &job->config, err) &&
              job_path(root, "dataset", job->dataset_path, sizeof job->dataset_path, err) &&
              job_path(root, "checkpoints", job->checkpoint_folder, sizeof job->checkpoint_folder, err) &&
              job_integer(root, "checkpoint_every", &job->checkpoint_every, err);
    if (ok && strspn(job->key, "0123456789abcdef") != 64)
        ok = error_set(err, "job: 'key' is '%s', expected 64 hexadecimal digits", job->key);
    json_decref(root);
    return ok;
}
