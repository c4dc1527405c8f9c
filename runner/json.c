/* Building and writing JSON output over jansson's tree. */
#include "runner/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

const char *json_number_format(double value, char buf[JSON_NUMBER_SIZE])
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buf, JSON_NUMBER_SIZE, "%.*g", digits, value);
        if (strtod(buf, NULL) == value)
            break;
    }
    /* A real stays a real for whoever reads it back. */
    if (!strpbrk(buf, ".e"))
        memcpy(buf + strlen(buf), ".0", 3);
    return buf;
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

/* Length of the well-formed UTF-8 sequence at text, 0 when there is none. */
static size_t sequence_length(const unsigned char *text)
{
    if (text[0] < 0x80)
        return 1;
    size_t length = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc2 || text[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool surrogate = text[0] == 0xed && text[1] > 0x9f;
    bool too_high = text[0] == 0xf4 && text[1] > 0x8f;
    return overlong || surrogate || too_high ? 0 : length;
}

json_t *json_from_text(const char *text)
{
    static const char replacement[] = "\xef\xbf\xbd";
    if (!text)
        return json_null();
    json_t *plain = json_string(text);
    if (plain)
        return plain;
    char *clean = memory_alloc(strlen(text) * (sizeof replacement - 1) + 1, 1);
    size_t used = 0;
    while (*text) {
        size_t length = sequence_length((const unsigned char *)text);
        const char *from = length ? text : replacement;
        size_t size = length ? length : sizeof replacement - 1;
        memcpy(clean + used, from, size);
        used += size;
        text += length ? length : 1;
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
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        abort();
    struct writer writer = {out, layout, sorted};
    value_write(&writer, root, 0);
    if (fclose(out))
        abort();
    char *copy = memory_copy_bytes(text, size);
    free(text);
    return copy;
}

void json_print(const json_t *root, FILE *out)
{
    struct writer writer = {out, JSON_PRETTY, false};
    value_write(&writer, root, 0);
    fputc('\n', out);
}
