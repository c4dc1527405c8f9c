/* Reader of named tensors: maps the file, checks every claim of its header, then hands out views. */
#include "runner/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/file.h"

enum { PREFIX_BYTES = 8, HEADER_LIMIT = 100 * 1000 * 1000, NAME_SHOWN = 100 };

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    [SAFETENSORS_BOOL] = {"BOOL", 1},       [SAFETENSORS_U8] = {"U8", 1},           [SAFETENSORS_I8] = {"I8", 1},
    [SAFETENSORS_F8_E4M3] = {"F8_E4M3", 1}, [SAFETENSORS_F8_E5M2] = {"F8_E5M2", 1}, [SAFETENSORS_I16] = {"I16", 2},
    [SAFETENSORS_U16] = {"U16", 2},         [SAFETENSORS_F16] = {"F16", 2},         [SAFETENSORS_BF16] = {"BF16", 2},
    [SAFETENSORS_I32] = {"I32", 4},         [SAFETENSORS_U32] = {"U32", 4},         [SAFETENSORS_F32] = {"F32", 4},
    [SAFETENSORS_I64] = {"I64", 8},         [SAFETENSORS_U64] = {"U64", 8},         [SAFETENSORS_F64] = {"F64", 8},
};
enum { DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0] };

struct safetensors {
    void *map; /* NULL when the bytes are a caller's */
    size_t map_size;
    json_t *header;            /* owns the names */
    const unsigned char *data; /* after the header */
    size_t data_size;
    struct safetensors_entry *entries; /* in the order of their data */
    const struct safetensors_entry **by_name;
    size_t count;
};

const char *safetensors_dtype_name(enum safetensors_dtype dtype)
{
    return dtypes[dtype].name;
}

size_t safetensors_dtype_bytes(enum safetensors_dtype dtype)
{
    return dtypes[dtype].bytes;
}

const char *safetensors_shape_text(int dims, const int64_t *shape, char buf[SAFETENSORS_SHAPE_TEXT])
{
    size_t used = 1;
    buf[0] = '[';
    for (int i = 0; i < dims; i++)
        used += (size_t)snprintf(buf + used, SAFETENSORS_SHAPE_TEXT - used, "%s%" PRId64, i ? ", " : "", shape[i]);
    snprintf(buf + used, SAFETENSORS_SHAPE_TEXT - used, "]");
    return buf;
}

/* ---- the header ---- */

/* A text of the file, fit for one line of a message. */
struct shown {
    char text[NAME_SHOWN + 1];
};

static struct shown shown_text(const char *text)
{
    struct shown shown;
    size_t i = 0;
    for (; i < NAME_SHOWN && text[i]; i++)
        shown.text[i] = (unsigned char)text[i] < 32 || text[i] == 127 ? '?' : text[i];
    shown.text[i] = 0;
    return shown;
}

static bool dtype_find(const char *name, enum safetensors_dtype *dtype)
{
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (strcmp(dtypes[i].name, name) == 0) {
            *dtype = (enum safetensors_dtype)i;
            return true;
        }
    return false;
}

static bool parse_dtype(struct safetensors_entry *entry, const json_t *value, struct error *err)
{
    const char *text = json_string_value(value);
    if (!text)
        return error_set(err, "dtype is missing or not a text");
    if (!dtype_find(text, &entry->dtype))
        return error_set(err,
                         "dtype is '%s': expected BOOL, U8, I8, F8_E4M3, F8_E5M2, I16, U16, F16, BF16, I32, U32, F32, "
                         "I64, U64 or F64",
                         shown_text(text).text);
    return true;
}

/* Fills shape, count and bytes. */
static bool parse_shape(struct safetensors_entry *entry, const json_t *value, struct error *err)
{
    if (!json_is_array(value))
        return error_set(err, "shape is missing or not a list");
    size_t dims = json_array_size(value);
    if (dims > SAFETENSORS_DIMS)
        return error_set(err, "shape has %zu dimensions: expected at most %d", dims, SAFETENSORS_DIMS);
    entry->dims = (int)dims;
    entry->count = 1;
    bool fits = true;
    for (size_t i = 0; i < dims; i++) {
        const json_t *item = json_array_get(value, i);
        if (!json_is_integer(item) || json_integer_value(item) < 0)
            return error_set(err, "dimension %zu of its shape is not a whole number of at least 0", i);
        entry->shape[i] = json_integer_value(item);
        fits = fits && !__builtin_mul_overflow(entry->count, (size_t)entry->shape[i], &entry->count);
    }
    fits = fits && !__builtin_mul_overflow(entry->count, dtypes[entry->dtype].bytes, &entry->bytes);
    char text[SAFETENSORS_SHAPE_TEXT];
    return fits || error_set(err, "shape %s has more bytes than a file can hold",
                             safetensors_shape_text(entry->dims, entry->shape, text));
}

static bool parse_offsets(const struct safetensors *file, struct safetensors_entry *entry, const json_t *value,
                          struct error *err)
{
    const json_t *first = json_array_get(value, 0), *second = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(first) || !json_is_integer(second) ||
        json_integer_value(first) < 0 || json_integer_value(second) < 0)
        return error_set(err, "data_offsets are not two whole numbers of at least 0");
    size_t begin = (size_t)json_integer_value(first), end = (size_t)json_integer_value(second);
    if (begin > end)
        return error_set(err, "data_offsets [%zu, %zu] are reversed", begin, end);
    if (end > file->data_size)
        return error_set(err, "data_offsets [%zu, %zu] go past the end of the data, which has %zu bytes", begin, end,
                         file->data_size);
    char text[SAFETENSORS_SHAPE_TEXT];
    if (end - begin != entry->bytes)
        return error_set(err, "data_offsets [%zu, %zu] hold %zu bytes, and %s of shape %s needs %zu", begin, end,
                         end - begin, dtypes[entry->dtype].name,
                         safetensors_shape_text(entry->dims, entry->shape, text), entry->bytes);
    entry->data = file->data + begin;
    return true;
}

static bool parse_entry(const struct safetensors *file, struct safetensors_entry *entry, json_t *value,
                        struct error *err)
{
    const char *key;
    json_t *part;
    if (!json_is_object(value))
        return error_set(err, "expected an object with dtype, shape and data_offsets");
    json_object_foreach(value, key, part)
    {
        if (strcmp(key, "dtype") != 0 && strcmp(key, "shape") != 0 && strcmp(key, "data_offsets") != 0)
            return error_set(err, "unknown key '%s': expected dtype, shape or data_offsets", shown_text(key).text);
    }
    return parse_dtype(entry, json_object_get(value, "dtype"), err) &&
           parse_shape(entry, json_object_get(value, "shape"), err) &&
           parse_offsets(file, entry, json_object_get(value, "data_offsets"), err);
}

static bool check_metadata(json_t *value, struct error *err)
{
    const char *key;
    json_t *text;
    if (!json_is_object(value))
        return error_set(err, "__metadata__ is not an object of texts");
    json_object_foreach(value, key, text)
    {
        if (!json_is_string(text))
            return error_set(err, "'%s' of __metadata__ is not a text", shown_text(key).text);
    }
    return true;
}

static int compare_data(const void *a, const void *b)
{
    const struct safetensors_entry *x = a, *y = b;
    const unsigned char *p = x->data, *q = y->data;
    if (p != q)
        return p < q ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int compare_names(const void *a, const void *b)
{
    const struct safetensors_entry *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Sorted by place, each entry begins where the one before ends, and the last ends with the file. */
static bool check_cover(const struct safetensors *file, struct error *err)
{
    const unsigned char *end = file->data;
    for (size_t i = 0; i < file->count; i++) {
        const struct safetensors_entry *entry = &file->entries[i];
        const unsigned char *begin = entry->data;
        if (begin < end)
            return error_set(err, "data of '%s' overlaps that of '%s'", shown_text(entry->name).text,
                             shown_text(file->entries[i - 1].name).text);
        if (begin > end)
            return error_set(err, "%zu bytes before the data of '%s' belong to no tensor", (size_t)(begin - end),
                             shown_text(entry->name).text);
        end = begin + entry->bytes;
    }
    size_t rest = file->data_size - (size_t)(end - file->data);
    return rest == 0 || error_set(err, "the last %zu bytes belong to no tensor", rest);
}

static bool parse_entries(struct safetensors *file, struct error *err)
{
    const char *name;
    json_t *value;
    file->entries = memory_alloc(json_object_size(file->header), sizeof *file->entries);
    file->by_name = memory_alloc(json_object_size(file->header), sizeof *file->by_name);
    json_object_foreach(file->header, name, value)
    {
        if (strcmp(name, "__metadata__") == 0) {
            if (!check_metadata(value, err))
                return false;
            continue;
        }
        struct safetensors_entry *entry = &file->entries[file->count++];
        entry->name = name;
        if (!parse_entry(file, entry, value, err))
            return error_wrap(err, "tensor '%s'", shown_text(name).text);
    }
    qsort(file->entries, file->count, sizeof *file->entries, compare_data);
    for (size_t i = 0; i < file->count; i++)
        file->by_name[i] = &file->entries[i];
    qsort(file->by_name, file->count, sizeof *file->by_name, compare_names);
    return check_cover(file, err);
}

static bool parse_file(struct safetensors *file, const unsigned char *bytes, size_t size, struct error *err)
{
    if (size < PREFIX_BYTES)
        return error_set(err, "%zu bytes are too few for a safetensors file", size);
    uint64_t length = 0;
    for (int i = PREFIX_BYTES - 1; i >= 0; i--)
        length = length << 8 | bytes[i];
    if (length > HEADER_LIMIT)
        return error_set(err, "header length %" PRIu64 " is above the limit of %d bytes", length, HEADER_LIMIT);
    if (length > size - PREFIX_BYTES)
        return error_set(err, "header length %" PRIu64 " is more than the %zu bytes that follow it", length,
                         size - PREFIX_BYTES);
    const char *text = (const char *)bytes + PREFIX_BYTES;
    if (length == 0 || text[0] != '{')
        return error_set(err, "the header does not start with '{'");
    json_error_t problem;
    file->header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &problem);
    if (!file->header)
        return error_set(err, "header is not correct JSON: %s (byte %d)", shown_text(problem.text).text,
                         problem.position);
    file->data = bytes + PREFIX_BYTES + length;
    file->data_size = size - PREFIX_BYTES - (size_t)length;
    return parse_entries(file, err);
}

/* ---- opening and closing ---- */

struct safetensors *safetensors_parse(const char *name, const void *bytes, size_t size, struct error *err)
{
    struct safetensors *file = memory_alloc(1, sizeof *file);
    if (parse_file(file, bytes, size, err))
        return file;
    error_wrap(err, "%s", name);
    safetensors_close(file);
    return NULL;
}

/* The file's bytes, or NULL. */
static void *map_file(const char *path, size_t *size, struct error *err)
{
    void *map = NULL;
    struct stat status;
    int fd = file_open_regular(path, &status, err);
    if (fd < 0)
        return NULL;
    *size = (size_t)status.st_size;
    if (*size < PREFIX_BYTES)
        error_set(err, "%s: %zu bytes are too few for a safetensors file", path, *size);
    else {
        map = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED) {
            error_set(err, "%s: cannot map: %s", path, strerror(errno));
            map = NULL;
        }
    }
    close(fd);
    return map;
}

struct safetensors *safetensors_open(const char *path, struct error *err)
{
    size_t size;
    void *map = map_file(path, &size, err);
    if (!map)
        return NULL;
    struct safetensors *file = safetensors_parse(path, map, size, err);
    if (!file) {
        munmap(map, size);
        return NULL;
    }
    file->map = map;
    file->map_size = size;
    return file;
}

void safetensors_close(struct safetensors *file)
{
    if (!file)
        return;
    if (file->map)
        munmap(file->map, file->map_size);
    json_decref(file->header);
    memory_free(file->entries);
    memory_free(file->by_name);
    memory_free(file);
}

/* ---- reading ---- */

size_t safetensors_count(const struct safetensors *file)
{
    return file->count;
}

const struct safetensors_entry *safetensors_at(const struct safetensors *file, size_t index)
{
    return &file->entries[index];
}

const struct safetensors_entry *safetensors_find(const struct safetensors *file, const char *name)
{
    const struct safetensors_entry wanted = {.name = name}, *key = &wanted;
    const struct safetensors_entry *const *found =
        bsearch(&key, file->by_name, file->count, sizeof *file->by_name, compare_names);
    return found ? *found : NULL;
}

const char *safetensors_metadata(const struct safetensors *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float safetensors_from_f16(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent == 31) /* infinity, NaN */
        return float_of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent)
        return float_of_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
    float magnitude = (float)fraction * 0x1p-24f; /* below 2^-14, or zero */
    return sign ? -magnitude : magnitude;
}

float safetensors_from_bf16(uint16_t bits)
{
    return float_of_bits((uint32_t)bits << 16);
}

static uint32_t load_little(const unsigned char *bytes, size_t size)
{
    uint32_t value = 0;
    for (size_t i = size; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

static bool check_count(const struct safetensors_entry *entry, size_t count, struct error *err)
{
    char text[SAFETENSORS_SHAPE_TEXT];
    return entry->count == count ||
           error_set(err, "tensor '%s' has shape %s, %zu numbers: expected %zu", shown_text(entry->name).text,
                     safetensors_shape_text(entry->dims, entry->shape, text), entry->count, count);
}

bool safetensors_is_real(const struct safetensors_entry *entry, struct error *err)
{
    bool known = entry->dtype == SAFETENSORS_F32 || entry->dtype == SAFETENSORS_F16 || entry->dtype == SAFETENSORS_BF16;
    return known || error_set(err, "tensor '%s' is of dtype %s: expected F32, F16 or BF16",
                              shown_text(entry->name).text, dtypes[entry->dtype].name);
}

bool safetensors_fits(const struct safetensors_entry *entry, const struct tensor *tensor, struct error *err)
{
    char ours[SAFETENSORS_SHAPE_TEXT], theirs[SAFETENSORS_SHAPE_TEXT];
    if (!entry)
        return error_set(err, "tensor '%s' is missing", tensor->name);
    if (entry->dims != tensor->dims || memcmp(entry->shape, tensor->shape, (size_t)tensor->dims * sizeof(int64_t)) != 0)
        return error_set(err, "tensor '%s' has shape %s: the model needs %s", tensor->name,
                         safetensors_shape_text(entry->dims, entry->shape, theirs),
                         safetensors_shape_text(tensor->dims, tensor->shape, ours));
    return safetensors_is_real(entry, err);
}

bool safetensors_read_real(const struct safetensors_entry *entry, real *out, size_t count, struct error *err)
{
    const unsigned char *bytes = entry->data;
    if (!safetensors_is_real(entry, err) || !check_count(entry, count, err))
        return false;
    for (size_t i = 0; i < count; i++)
        if (entry->dtype == SAFETENSORS_F32)
            out[i] = (real)float_of_bits(load_little(bytes + 4 * i, 4));
        else if (entry->dtype == SAFETENSORS_F16)
            out[i] = (real)safetensors_from_f16((uint16_t)load_little(bytes + 2 * i, 2));
        else
            out[i] = (real)safetensors_from_bf16((uint16_t)load_little(bytes + 2 * i, 2));
    return true;
}

static int64_t load_int64(const unsigned char *bytes)
{
    return (int64_t)((uint64_t)load_little(bytes + 4, 4) << 32 | load_little(bytes, 4));
}

bool safetensors_read_int32(const struct safetensors_entry *entry, int32_t *out, size_t count, struct error *err)
{
    const unsigned char *bytes = entry->data;
    bool wide = entry->dtype == SAFETENSORS_I64;
    if (entry->dtype != SAFETENSORS_I32 && !wide)
        return error_set(err, "tensor '%s' is of dtype %s: expected I32 or I64", shown_text(entry->name).text,
                         dtypes[entry->dtype].name);
    if (!check_count(entry, count, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        int64_t value = wide ? load_int64(bytes + 8 * i) : (int32_t)load_little(bytes + 4 * i, 4);
        if (value < INT32_MIN || value > INT32_MAX)
            return error_set(err, "tensor '%s' holds %" PRId64 " at position %zu: expected a number of 32 bits",
                             shown_text(entry->name).text, value, i);
        out[i] = (int32_t)value;
    }
    return true;
}

void safetensors_release(const struct safetensors *file, const struct safetensors_entry *entry)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)entry->data, end = begin + entry->bytes;
    begin -= begin % page; /* whole pages: what neighbours share is read from the file again */
    if (file->map && end > begin)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}
