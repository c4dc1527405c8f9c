/* The safetensors reader against files that lie, its conversions on all 65,536 patterns, and writing read back. */
#include "runner/safetensors.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"

/* A file in a block of exactly its size, so that the address sanitizer sees one byte too far. */
struct image {
    unsigned char *bytes;
    size_t size;
};

static struct image image_make(uint64_t length, const char *header, size_t header_size, size_t data_size)
{
    struct image image = {.size = 8 + header_size + data_size};
    image.bytes = malloc(image.size);
    for (int i = 0; i < 8; i++)
        image.bytes[i] = (unsigned char)(length >> 8 * i & 255);
    memcpy(image.bytes + 8, header, header_size);
    for (size_t i = 0; i < data_size; i++)
        image.bytes[8 + header_size + i] = (unsigned char)i;
    return image;
}

/* Parses and closes; the error's text, or "" when the file was taken. */
static const char *parse_error(struct image image)
{
    static struct error err;
    err.text[0] = 0;
    struct safetensors *file = safetensors_parse("x", image.bytes, image.size, &err);
    cr_assert((file == NULL) == (err.text[0] != 0));
    safetensors_close(file);
    free(image.bytes);
    return err.text;
}

static const char *header_error(const char *header, size_t data_size)
{
    return parse_error(image_make(strlen(header), header, strlen(header), data_size));
}

static void assert_refused(const char *header, size_t data_size, const char *part)
{
    const char *text = header_error(header, data_size);
    cr_assert(strstr(text, part), "for %s: '%s' should hold '%s'", header, text, part);
    cr_assert(!strchr(text, '\n'));
}

#define TENSOR(name, dtype, shape, begin, end)                                                                         \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

Test(safetensors, a_correct_file_is_read)
{
    const char *header = "{\"__metadata__\":{\"format\":\"pt\"}," TENSOR("b", "F32", "[2,1]", 2, 10) "," TENSOR(
        "a", "BF16", "[]", 0, 2) "," TENSOR("none", "I64", "[0,3]", 10, 10) "}   ";
    struct image image = image_make(strlen(header), header, strlen(header), 10);
    struct error err;
    struct safetensors *file = safetensors_parse("x", image.bytes, image.size, &err);
    cr_assert_not_null(file, "%s", err.text);
    cr_assert_eq(safetensors_count(file), 3);
    cr_assert_str_eq(safetensors_at(file, 0)->name, "a");
    cr_assert_str_eq(safetensors_metadata(file, "format"), "pt");
    cr_assert_null(safetensors_metadata(file, "missing"));
    const struct safetensors_entry *entry = safetensors_find(file, "b");
    cr_assert_not_null(entry);
    cr_assert_eq(entry->dims, 2);
    cr_assert_eq(entry->shape[0], 2);
    cr_assert_eq(entry->count, 2);
    cr_assert_eq(entry->bytes, 8);
    cr_assert(entry->data == image.bytes + 8 + strlen(header) + 2);
    cr_assert_eq(safetensors_find(file, "a")->count, 1, "an empty shape is one number");
    cr_assert_eq(safetensors_find(file, "none")->count, 0);
    cr_assert_null(safetensors_find(file, "c"));
    cr_assert_null(safetensors_find(file, "__metadata__"));
    safetensors_close(file);
    free(image.bytes);
}

Test(safetensors, a_hostile_length_is_refused)
{
    cr_assert(strstr(parse_error(image_make(UINT64_MAX, "{}", 2, 0)), "18446744073709551615"));
    cr_assert(strstr(parse_error(image_make(8ull << 30, "{}", 2, 0)), "8589934592 is above the limit of 100000000"));
    cr_assert(strstr(parse_error(image_make(3, "{}", 2, 0)), "3 is more than the 2 bytes that follow"));
    cr_assert(strstr(parse_error(image_make(0, "{}", 2, 0)), "does not start with '{'"));
    cr_assert(strstr(parse_error(image_make(0, "", 0, 0)), "does not start with '{'"));
    cr_assert_str_eq(parse_error(image_make(2, "{}", 2, 0)), "");
}

Test(safetensors, hostile_shapes_are_refused)
{
    assert_refused("{" TENSOR("a", "F32", "[4611686018427387904,4]", 0, 4) "}", 4, "[4611686018427387904, 4] has more");
    assert_refused("{" TENSOR("a", "F64", "[4611686018427387904]", 0, 8) "}", 8, "more bytes than a file can hold");
    assert_refused("{" TENSOR("a", "F32", "[4611686018427387904,4,0]", 0, 0) "}", 0, "more bytes than");
    assert_refused("{" TENSOR("a", "F32", "[-1]", 0, 4) "}", 4, "dimension 0 of its shape is not a whole number");
    assert_refused("{" TENSOR("a", "F32", "[1.0]", 0, 4) "}", 4, "dimension 0 of its shape is not a whole number");
    assert_refused("{" TENSOR("a", "F32", "[99999999999999999999]", 0, 4) "}", 4, "not correct JSON");
    assert_refused("{" TENSOR("a", "F32", "[1,1,1,1,1,1,1,1,1]", 0, 4) "}", 4, "9 dimensions: expected at most 8");
    assert_refused("{" TENSOR("a", "F32", "1", 0, 4) "}", 4, "shape is missing or not a list");
    assert_refused("{" TENSOR("a", "F32", "[3]", 0, 8) "}", 8, "hold 8 bytes, and F32 of shape [3] needs 12");
}

Test(safetensors, hostile_offsets_are_refused)
{
    assert_refused("{" TENSOR("a", "F32", "[1]", 4, 0) "}", 4, "[4, 0] are reversed");
    assert_refused("{" TENSOR("a", "F32", "[2]", 0, 8) "}", 4, "[0, 8] go past the end of the data, which has 4");
    assert_refused("{" TENSOR("a", "F32", "[1]", -4, 0) "}", 4, "not two whole numbers");
    assert_refused("{" TENSOR("a", "F32", "[1]", 0, 4.0) "}", 4, "not two whole numbers");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "not two whole numbers");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "not two whole numbers");
    assert_refused("{" TENSOR("a", "F32", "[2]", 0, 8) "," TENSOR("b", "F32", "[2]", 4, 12) "}", 12,
                   "data of 'b' overlaps that of 'a'");
    assert_refused("{" TENSOR("a", "F32", "[1]", 0, 4) "," TENSOR("b", "F32", "[1]", 0, 4) "}", 4, "overlaps");
    assert_refused("{" TENSOR("a", "F32", "[1]", 0, 4) "," TENSOR("b", "F32", "[1]", 8, 12) "}", 12,
                   "4 bytes before the data of 'b' belong to no tensor");
    assert_refused("{" TENSOR("a", "F32", "[1]", 0, 4) "}", 5, "the last 1 bytes belong to no tensor");
    assert_refused("{" TENSOR("a", "U8", "[9223372036854775807]", 0, 9223372036854775807) "}", 1, "past the end");
}

Test(safetensors, hostile_names_and_kinds_are_refused)
{
    assert_refused("{" TENSOR("a", "F32", "[1]", 0, 4) "," TENSOR("a", "F32", "[1]", 4, 8) "}", 8, "duplicate");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
                   "duplicate");
    assert_refused("{" TENSOR("a", "F99", "[1]", 0, 4) "}", 4, "tensor 'a': dtype is 'F99': expected BOOL");
    assert_refused("{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype is missing or not a text");
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":1}}", 4,
                   "unknown key 'more'");
    assert_refused("{\"a\":7}", 0, "expected an object");
    assert_refused("{\"__metadata__\":{\"a\":1}}", 0, "'a' of __metadata__ is not a text");
    assert_refused("{\"__metadata__\":[]}", 0, "__metadata__ is not an object");
    assert_refused("{" TENSOR("a\\nb\\u001b[2J", "F99", "[1]", 0, 4) "}", 4, "tensor 'a?b?[2J'");
    assert_refused("{\"a\\u0000b\":7}", 0, "not correct JSON");
    assert_refused("{\"\xff\":7}", 0, "not correct JSON");
}

Test(safetensors, a_header_that_is_no_object_is_refused)
{
    enum { DEPTH = 100000 };
    char *nested = malloc(DEPTH + 1);
    memset(nested, '[', DEPTH);
    nested[DEPTH] = 0;
    assert_refused(nested, 0, "does not start with '{'");
    memcpy(nested, "{\"a\":", 5);
    assert_refused(nested, 0, "not correct JSON: maximum parsing depth");
    free(nested);
    assert_refused("[]", 0, "does not start with '{'");
    assert_refused(" {}", 0, "does not start with '{'");
    assert_refused("{}x", 0, "not correct JSON");
    assert_refused("{", 0, "not correct JSON");
}

Test(safetensors, a_file_cut_anywhere_is_refused)
{
    const char *header = "{" TENSOR("a", "F32", "[3]", 0, 12) "}";
    size_t whole = 8 + strlen(header) + 12;
    for (size_t size = 0; size < whole; size++) {
        struct image image = image_make(strlen(header), header, strlen(header), 12), cut = {malloc(size + !size), size};
        memcpy(cut.bytes, image.bytes, size);
        free(image.bytes);
        cr_assert_neq(parse_error(cut)[0], 0, "%zu of %zu bytes were taken", size, whole);
    }
    cr_assert_str_eq(header_error(header, 12), "");
}

Test(safetensors, any_one_byte_changed_in_the_header_never_reads_outside)
{
    const char *header = "{" TENSOR("a", "F32", "[1,2]", 0, 8) "," TENSOR("b", "U8", "[3]", 8, 11) "}";
    size_t taken = 0;
    for (size_t i = 0; i < 8 + strlen(header); i++)
        for (int change = 1; change < 256; change++) {
            struct image image = image_make(strlen(header), header, strlen(header), 11);
            struct error err;
            image.bytes[i] ^= (unsigned char)change;
            struct safetensors *file = safetensors_parse("x", image.bytes, image.size, &err);
            for (size_t k = 0; file && k < safetensors_count(file); k++) {
                const struct safetensors_entry *entry = safetensors_at(file, k);
                const unsigned char *begin = entry->data;
                cr_assert(begin >= image.bytes + 8 && entry->bytes <= (size_t)(image.bytes + image.size - begin));
            }
            taken += file != NULL;
            safetensors_close(file);
            free(image.bytes);
        }
    cr_assert_gt(taken, 100, "renaming a tensor is harmless");
}

/* The value of an IEEE pattern from its definition, in double, where all of them are exact. */
static double value_of(uint32_t bits, int exponent_bits, int fraction_bits)
{
    uint32_t exponent = bits >> fraction_bits & ((1u << exponent_bits) - 1),
             fraction = bits & ((1u << fraction_bits) - 1);
    int bias = (1 << (exponent_bits - 1)) - 1;
    double sign = bits >> (exponent_bits + fraction_bits) ? -1 : 1;
    if (exponent == (1u << exponent_bits) - 1)
        return fraction ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp((1u << fraction_bits) + fraction, (int)exponent - bias - fraction_bits);
}

static void assert_same_value(float ours, double expected, uint32_t bits)
{
    if (isnan(expected))
        cr_assert(isnan(ours), "pattern %04" PRIx32, bits);
    else
        cr_assert((double)ours <= expected && (double)ours >= expected && !signbit(ours) == !signbit(expected),
                  "pattern %04" PRIx32 ": %a, not %a", bits, (double)ours, expected);
}

Test(safetensors, half_precision_is_exact_on_every_pattern)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        assert_same_value(safetensors_from_f16((uint16_t)bits), value_of(bits, 5, 10), bits);
        assert_same_value(safetensors_from_bf16((uint16_t)bits), value_of(bits, 8, 7), bits);
    }
}

static char *folder_new(void)
{
    static char folder[32];
    snprintf(folder, sizeof folder, "/tmp/runner-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    return folder;
}

static struct safetensors_entry entry_make(const char *name, enum safetensors_dtype dtype, int64_t rows,
                                           int64_t columns, const void *data)
{
    return (struct safetensors_entry){.name = name, .dtype = dtype, .dims = 2, .shape = {rows, columns}, .data = data};
}

Test(safetensors, what_is_written_is_read_back)
{
    char path[64], *folder = folder_new();
    snprintf(path, sizeof path, "%s/a.safetensors", folder);
    const float numbers[6] = {1, -2.5f, 3e-40f, INFINITY, 0, -0.0f};
    const int32_t whole[2] = {-1, INT32_MAX};
    const struct safetensors_entry entries[] = {entry_make("odd", SAFETENSORS_U8, 1, 3, "abc"),
                                                entry_make("n\"\xc3\xa9", SAFETENSORS_F32, 2, 3, numbers),
                                                entry_make("w", SAFETENSORS_I32, 2, 1, whole)};
    const char *const metadata[] = {"format", "pt", "note", "line\nbreak", NULL};
    struct error err;
    cr_assert(safetensors_write(path, entries, 3, metadata, &err), "%s", err.text);

    struct safetensors *file = safetensors_open(path, &err);
    cr_assert_not_null(file, "%s", err.text);
    cr_assert_eq(safetensors_count(file), 3);
    cr_assert_str_eq(safetensors_metadata(file, "note"), "line\nbreak");
    cr_assert_eq((uintptr_t)safetensors_at(file, 0)->data % 8, 0, "data starts aligned");
    const struct safetensors_entry *entry = safetensors_find(file, "n\"\xc3\xa9");
    cr_assert_not_null(entry);
    real back[6];
    cr_assert(safetensors_read_real(entry, back, 6, &err));
    cr_assert_arr_eq(back, numbers, sizeof numbers);
    int32_t whole_back[2];
    cr_assert(safetensors_read_int32(safetensors_find(file, "w"), whole_back, 2, &err));
    cr_assert_arr_eq(whole_back, whole, sizeof whole);

    cr_assert(!safetensors_read_real(entry, back, 5, &err));
    cr_assert_not_null(strstr(err.text, "shape [2, 3], 6 numbers: expected 5"), "%s", err.text);
    cr_assert(!safetensors_read_real(safetensors_find(file, "w"), back, 2, &err));
    cr_assert_not_null(strstr(err.text, "dtype I32: expected F32, F16 or BF16"), "%s", err.text);
    cr_assert(!safetensors_read_int32(entry, whole_back, 6, &err));
    safetensors_close(file);
    unlink(path);
    rmdir(folder);
}

Test(safetensors, wide_whole_numbers_are_read_when_they_fit)
{
    char path[64], *folder = folder_new();
    snprintf(path, sizeof path, "%s/a.safetensors", folder);
    const int64_t fit[3] = {-1, INT32_MAX, INT32_MIN}, large[1] = {INT64_C(1) << 32};
    const struct safetensors_entry entries[] = {entry_make("fit", SAFETENSORS_I64, 1, 3, fit),
                                                entry_make("large", SAFETENSORS_I64, 1, 1, large)};
    struct error err;
    int32_t back[3];
    cr_assert(safetensors_write(path, entries, 2, NULL, &err), "%s", err.text);
    struct safetensors *file = safetensors_open(path, &err);
    cr_assert_not_null(file, "%s", err.text);
    for (int times = 0; times < 2; times++) { /* also after its memory was given back */
        cr_assert(safetensors_read_int32(safetensors_find(file, "fit"), back, 3, &err), "%s", err.text);
        for (int i = 0; i < 3; i++)
            cr_assert_eq(back[i], fit[i]);
        safetensors_release(file, safetensors_find(file, "fit"));
    }
    cr_assert(!safetensors_read_int32(safetensors_find(file, "large"), back, 1, &err));
    cr_assert_not_null(strstr(err.text, "'large' holds 4294967296 at position 0"), "%s", err.text);
    safetensors_close(file);
    unlink(path);
    rmdir(folder);
}

Test(safetensors, what_cannot_be_written_leaves_the_old_file)
{
    char path[64], *folder = folder_new();
    snprintf(path, sizeof path, "%s/a.safetensors", folder);
    struct safetensors_entry entries[2] = {entry_make("a", SAFETENSORS_U8, 1, 1, "x"),
                                           entry_make("a", SAFETENSORS_U8, 1, 1, "y")};
    struct error err;
    cr_assert(safetensors_write(path, entries, 1, NULL, &err), "%s", err.text);
    cr_assert(!safetensors_write(path, entries, 2, NULL, &err));
    cr_assert_not_null(strstr(err.text, "two tensors are called 'a'"), "%s", err.text);
    entries[1].name = "\xff";
    cr_assert(!safetensors_write(path, entries, 2, NULL, &err));
    cr_assert_not_null(strstr(err.text, "expected UTF-8"), "%s", err.text);
    entries[1].name = "__metadata__";
    cr_assert(!safetensors_write(path, entries, 2, NULL, &err));
    entries[1] = entry_make("b", SAFETENSORS_F32, INT64_MAX, 4, "y");
    cr_assert(!safetensors_write(path, entries, 2, NULL, &err));
    cr_assert_not_null(strstr(err.text, "no file can hold"), "%s", err.text);

    struct safetensors *file = safetensors_open(path, &err);
    cr_assert_not_null(file, "%s", err.text);
    cr_assert_eq(safetensors_count(file), 1);
    safetensors_close(file);
    unlink(path);
    cr_assert_eq(rmdir(folder), 0, "nothing else was left in the folder");
}

Test(safetensors, what_is_no_file_is_refused_without_waiting)
{
    char path[64], *folder = folder_new();
    struct error err;
    cr_assert_null(safetensors_open(folder, &err));
    cr_assert_not_null(strstr(err.text, "folder"), "%s", err.text);
    snprintf(path, sizeof path, "%s/pipe", folder);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_null(safetensors_open(path, &err));
    cr_assert_not_null(strstr(err.text, "FIFO"), "%s", err.text);
    unlink(path);
    cr_assert_null(safetensors_open(path, &err));
    cr_assert_not_null(strstr(err.text, path), "%s", err.text);
    FILE *empty = fopen(path, "w");
    fclose(empty);
    cr_assert_null(safetensors_open(path, &err));
    cr_assert_not_null(strstr(err.text, "0 bytes are too few"), "%s", err.text);
    unlink(path);
    rmdir(folder);
}
