/* Inside of reading a config.json: where its parts report what they refuse. */
#ifndef RUNNER_HF_READING_H
#define RUNNER_HF_READING_H

#include <jansson.h>

#include "runner/hf_config.h"

struct hf_reading {
    const char *file; /* for messages */
    struct problems *problems;
    json_t *root;
    struct hf_config *config;
};

/* A JSON value as a message shows it: on one line, cut when long. Returns buf. */
enum { HF_VALUE_SIZE = 80 };
const char *hf_value_text(const json_t *value, char buf[HF_VALUE_SIZE]);

/* Reports "key is VALUE: expected ..."; "key is missing: ..." when value is NULL. */
void hf_refuse(const struct hf_reading *reading, const char *key, const json_t *value, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Sets a knob from a value of JSON; false and a report when its kind or range is wrong. Zero, which our knobs take for
 * "derived from others", is no value. */
bool hf_set_knob(const struct hf_reading *reading, const char *key, const json_t *value, const char *knob);

/* rope_theta, rope_scaling, rope_parameters -> the knobs of rotation. After the other keys. */
void hf_read_rope(const struct hf_reading *reading);

#endif
