/* libFuzzer target: any bytes as a safetensors file. What the reader lets through must hold what it claims. */
#include <assert.h>
#include <stdlib.h>

#include "core/memory.h"
#include "runner/safetensors.h"
#include "tests/fuzz/json_mutator.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed);

enum { PREFIX = 8 };
static const char *const keys[] = {"dtype", "shape", "data_offsets", "__metadata__", "a", "b", "c", NULL};
static const char *const words[] = {"0",
                                    "1",
                                    "-1",
                                    "2",
                                    "3",
                                    "4",
                                    "6",
                                    "8",
                                    "12",
                                    "24",
                                    "4611686018427387904",
                                    "9223372036854775807",
                                    "null",
                                    "1.5",
                                    "[]",
                                    "{}",
                                    "[0]",
                                    "[1]",
                                    "[2]",
                                    "[3]",
                                    "[2,3]",
                                    "[0,4]",
                                    "[0,2]",
                                    "[4,8]",
                                    "[0,24]",
                                    "[2,2,2]",
                                    "[4611686018427387904,4]",
                                    "[0,9223372036854775807]",
                                    "\"F32\"",
                                    "\"F16\"",
                                    "\"BF16\"",
                                    "\"I32\"",
                                    "\"I64\"",
                                    "\"U8\"",
                                    "\"BOOL\"",
                                    "\"F64\"",
                                    "\"F8_E4M3\"",
                                    "\"F99\"",
                                    "\"pt\"",
                                    "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}",
                                    "{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[4,8]}",
                                    "{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}",
                                    NULL};

static void read_entry(const struct safetensors *file, const struct safetensors_entry *entry, const uint8_t *bytes,
                       size_t size)
{
    const uint8_t *data = entry->data;
    struct error err;
    assert(data >= bytes && data <= bytes + size && entry->bytes <= (size_t)(bytes + size - data));
    assert(entry->bytes == entry->count * safetensors_dtype_bytes(entry->dtype));
    assert(safetensors_find(file, entry->name) == entry);
    real *numbers = memory_alloc(entry->count, sizeof *numbers);
    int32_t *tokens = memory_alloc(entry->count, sizeof *tokens);
    assert(safetensors_read_real(entry, numbers, entry->count, &err) == safetensors_is_real(entry, NULL));
    safetensors_read_int32(entry, tokens, entry->count, &err);
    safetensors_release(file, entry);
    memory_free(numbers);
    memory_free(tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct error err = {""};
    struct safetensors *file = safetensors_parse("fuzz", bytes, size, &err);
    assert((file == NULL) == (err.text[0] != 0));
    for (size_t i = 0; file && i < safetensors_count(file); i++)
        read_entry(file, safetensors_at(file, i), bytes, size);
    safetensors_close(file);
    return 0;
}

static size_t header_length(const uint8_t *bytes)
{
    size_t length = 0;
    for (int i = PREFIX - 1; i >= 0; i--)
        length = length << 8 | bytes[i];
    return length;
}

/* Changes the header, and its length with it; the data stays behind it. */
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed)
{
    if (seed % 4 == 0 || size < PREFIX || header_length(bytes) > size - PREFIX)
        return LLVMFuzzerMutate(bytes, size, most);
    size_t old = header_length(bytes), data = size - PREFIX - old;
    char *rest = memory_copy_bytes(bytes + PREFIX + old, data);
    size_t length = json_mutate((char *)bytes + PREFIX, old, most - PREFIX - data, keys, words, seed);
    if (length) {
        memcpy(bytes + PREFIX + length, rest, data);
        for (int i = 0; i < PREFIX; i++)
            bytes[i] = (uint8_t)(length >> 8 * i & 255);
    }
    memory_free(rest);
    return length ? PREFIX + length + data : LLVMFuzzerMutate(bytes, size, most);
}
