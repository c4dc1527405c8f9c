/* Building and writing JSON output over jansson's tree. */
#include "runner/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/unicode.h"
#include "runner/text_stream.h"

const char *json_number_format(double value, char buf[JSON_NUMBER_SIZE])
{
    char text[JSON_NUMBER_SIZE]; /* gcc takes buf for NULL under its sanitizers */
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    /* A real stays a real for whoever reads it back. */
    if (!strpbrk(text, ".e"))
        memcpy(text + strlen(text), ".0", 3);
    return memcpy(buf, text, sizeof text);
}

static json_t *value_check(json_t *value)
{
    if (!value)
        abort();
    return value;
}

json_t *json_from_double(double value)
{
    return value_check(isfinite(value) ? json_real(value) : json_null());
}

json_t *json_from_text(const char *text)
{
    static const char replacement[] = "\xef\xbf\xbd";
    if (!text)
        return json_null();
    json_t *plain = json_string(text);
    if (plain)
        return plain;
    size_t size = strlen(text), used = 0;
    char *clean = memory_alloc(size * (sizeof replacement - 1) + 1, 1);
    for (size_t i = 0; i < size;) {
        int32_t code_point;
        size_t length = unicode_decode(text + i, size - i, &code_point);
        bool valid = code_point != UNICODE_INVALID;
        size_t copied = valid ? length : sizeof replacement - 1;
        memcpy(clean + used, valid ? text + i : replacement, copied);
        used += copied;
        i += length;
    }
    json_t *value = value_check(json_string(clean));
    memory_free(clean);
    return value;
}

void json_put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value_check(value)))
        abort();
}

void json_push(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value_check(value)))
        abort();
}

struct writer {
    FILE *out;
    enum json_layout layout;
    bool sorted;
};

static void value_write(const struct writer *writer, const json_t *value, int depth);

static void newline_write(const struct writer *writer, int depth)
{
    if (writer->layout == JSON_PRETTY)
        fprintf(writer->out, "\n%*s", 2 * depth, "");
}

static void text_write(const struct writer *writer, const json_t *string)
{
    char *text = json_dumps(string, JSON_ENCODE_ANY);
    if (!text)
        abort();
    fputs(text, writer->out);
    free(text);
}

static int key_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void object_write(const struct writer *writer, const json_t *object, int depth)
{
    size_t count = 0;
    const char **keys = memory_alloc(json_object_size(object) + 1, sizeof *keys);
    /* jansson's iterator takes a pointer that is not const but does not write through it. */
    for (void *at = json_object_iter((json_t *)object); at; at = json_object_iter_next((json_t *)object, at))
        keys[count++] = json_object_iter_key(at);
    if (writer->sorted)
        qsort(keys, count, sizeof *keys, key_compare);
    fputc('{', writer->out);
    for (size_t i = 0; i < count; i++) {
        if (i)
            fputc(',', writer->out);
        newline_write(writer, depth + 1);
        json_t *key = json_from_text(keys[i]);
        text_write(writer, key);
        json_decref(key);
        fputs(writer->layout == JSON_PRETTY ? ": " : ":", writer->out);
        value_write(writer, json_object_get(object, keys[i]), depth + 1);
    }
    if (count)
        newline_write(writer, depth);
    fputc('}', writer->out);
    memory_free(keys);
}

static void array_write(const struct writer *writer, const json_t *array, int depth)
{
    size_t count = json_array_size(array);
    bool nested = count && (json_is_object(json_array_get(array, 0)) || json_is_array(json_array_get(array, 0)));
    fputc('[', writer->out);
    for (size_t i = 0; i < count; i++) {
        if (i)
            fputs(nested || writer->layout == JSON_LINE ? "," : ", ", writer->out);
        if (nested)
            newline_write(writer, depth + 1);
        value_write(writer, json_array_get(array, i), depth + 1);
    }
    if (nested)
        newline_write(writer, depth);
    fputc(']', writer->out);
}

static void value_write(const struct writer *writer, const json_t *value, int depth)
{
    char number[JSON_NUMBER_SIZE];
    switch (json_typeof(value)) {
    case JSON_OBJECT: object_write(writer, value, depth); break;
    case JSON_ARRAY: array_write(writer, value, depth); break;
    case JSON_STRING: text_write(writer, value); break;
    case JSON_INTEGER: fprintf(writer->out, "%lld", (long long)json_integer_value(value)); break;
    case JSON_REAL: fputs(json_number_format(json_real_value(value), number), writer->out); break;
    case JSON_TRUE: fputs("true", writer->out); break;
    case JSON_FALSE: fputs("false", writer->out); break;
    case JSON_NULL: fputs("null", writer->out); break;
    }
}

char *json_format(const json_t *root, enum json_layout layout, bool sorted)
{
    struct text_stream text;
    text_stream_open(&text);
    struct writer writer = {text.out, layout, sorted};
    value_write(&writer, root, 0);
    return text_stream_take(&text);
}

void json_print(const json_t *root, FILE *out)
{
    struct writer writer = {out, JSON_PRETTY, false};
    value_write(&writer, root, 0);
    fputc('\n', out);
}
