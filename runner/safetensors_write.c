/* Writer of named tensors. */
#include "runner/safetensors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/file.h"

enum { ALIGNMENT = 8 };

/* The entry's size in bytes; false when its shape cannot be stored. */
static bool entry_bytes(const struct safetensors_entry *entry, size_t *bytes)
{
    *bytes = safetensors_dtype_bytes(entry->dtype);
    if (entry->dims < 0 || entry->dims > SAFETENSORS_DIMS)
        return false;
    for (int i = 0; i < entry->dims; i++)
        if (entry->shape[i] < 0 || __builtin_mul_overflow(*bytes, (size_t)entry->shape[i], bytes))
            return false;
    return true;
}

static json_t *describe_metadata(const char *const *metadata)
{
    json_t *object = json_object();
    for (; metadata[0]; metadata += 2)
        json_object_set_new(object, metadata[0], json_string(metadata[1]));
    return object;
}

static json_t *describe_entry(const struct safetensors_entry *entry, size_t begin, size_t end)
{
    json_t *shape = json_array();
    for (int i = 0; i < entry->dims; i++)
        json_array_append_new(shape, json_integer(entry->shape[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", safetensors_dtype_name(entry->dtype), "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)end);
}

/* The header's JSON, or NULL and err. */
static json_t *describe_file(const struct safetensors_entry *entries, size_t count, const char *const *metadata,
                             struct error *err)
{
    json_t *header = json_object();
    size_t begin = 0, bytes, end;
    if (metadata)
        json_object_set_new(header, "__metadata__", describe_metadata(metadata));
    for (size_t i = 0; i < count; i++) {
        const char *name = entries[i].name;
        if (strcmp(name, "__metadata__") == 0)
            error_set(err, "no tensor may be called '__metadata__'");
        else if (json_object_get(header, name))
            error_set(err, "two tensors are called '%.100s'", name);
        else if (!entry_bytes(&entries[i], &bytes) || __builtin_add_overflow(begin, bytes, &end) || end > INT64_MAX)
            error_set(err, "tensor '%.100s' has a shape that no file can hold", name);
        else if (json_object_set_new(header, name, describe_entry(&entries[i], begin, end)) != 0)
            error_set(err, "'%.100s' cannot name a tensor: expected UTF-8", name);
        else {
            begin = end;
            continue;
        }
        json_decref(header);
        return NULL;
    }
    return header;
}

/* Length and text of the header, padded with spaces so that the data is aligned. */
static bool add_header(struct file_writer *writer, const json_t *header, struct error *err)
{
    size_t length = json_dumpb(header, NULL, 0, JSON_COMPACT);
    size_t padded = (length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    unsigned char *text = memory_alloc(ALIGNMENT + padded, 1);
    for (int i = 0; i < ALIGNMENT; i++)
        text[i] = (unsigned char)((uint64_t)padded >> 8 * i & 255);
    memset(text + ALIGNMENT, ' ', padded);
    json_dumpb(header, (char *)text + ALIGNMENT, length, JSON_COMPACT);
    bool good = file_writer_add(writer, text, ALIGNMENT + padded, err);
    memory_free(text);
    return good;
}

bool safetensors_write(const char *path, const struct safetensors_entry *entries, size_t count,
                       const char *const *metadata, struct error *err)
{
    struct file_writer writer = {.stream = NULL};
    bool good = false;
    json_t *header = describe_file(entries, count, metadata, err);
    if (!header) {
        error_wrap(err, "cannot write '%s'", path);
        goto done;
    }
    if (!file_writer_open(&writer, path, err) || !add_header(&writer, header, err))
        goto done;
    for (size_t i = 0, bytes; i < count; i++)
        if (!entry_bytes(&entries[i], &bytes) || !file_writer_add(&writer, entries[i].data, bytes, err))
            goto done;
    good = file_writer_commit(&writer, err);
done:
    file_writer_abandon(&writer);
    json_decref(header);
    return good;
}
