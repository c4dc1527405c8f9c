/* Files of named tensors, as the world exchanges them: 8 bytes of header length, a JSON header, then the data.
 *
 *   struct safetensors *file = safetensors_open("weights.safetensors", &err);
 *   const struct safetensors_entry *entry = safetensors_find(file, "final_norm.weight");
 *   if (!entry || !safetensors_read_real(entry, out, count, &err)) ...
 *   safetensors_close(file);
 *
 * The reader maps the file and trusts nothing in it: lengths, kinds, products, offsets and names are all checked before
 * the first entry can be seen. */
#ifndef RUNNER_SAFETENSORS_H
#define RUNNER_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/real.h"
#include "core/tensor.h"

enum safetensors_dtype {
    SAFETENSORS_BOOL,
    SAFETENSORS_U8,
    SAFETENSORS_I8,
    SAFETENSORS_F8_E4M3,
    SAFETENSORS_F8_E5M2,
    SAFETENSORS_I16,
    SAFETENSORS_U16,
    SAFETENSORS_F16,
    SAFETENSORS_BF16,
    SAFETENSORS_I32,
    SAFETENSORS_U32,
    SAFETENSORS_F32,
    SAFETENSORS_I64,
    SAFETENSORS_U64,
    SAFETENSORS_F64
};

enum { SAFETENSORS_DIMS = 8 };

struct safetensors_entry {
    const char *name;
    enum safetensors_dtype dtype;
    int dims; /* 0 = one number */
    int64_t shape[SAFETENSORS_DIMS];
    size_t count;     /* numbers */
    size_t bytes;     /* of the data: count times the size of one number */
    const void *data; /* little endian; of a file that was read: any alignment */
};

struct safetensors;

/* NULL and err when the file cannot be read or is not a correct one. Owner: caller, safetensors_close(). */
struct safetensors *safetensors_open(const char *path, struct error *err);
/* The same for bytes in memory, which must outlive it; name is for messages. */
struct safetensors *safetensors_parse(const char *name, const void *bytes, size_t size, struct error *err);
void safetensors_close(struct safetensors *file); /* takes NULL */

size_t safetensors_count(const struct safetensors *file);
/* In the order of their data. Entries and their names and data belong to the file. */
const struct safetensors_entry *safetensors_at(const struct safetensors *file, size_t index);
/* NULL when there is none of that name. */
const struct safetensors_entry *safetensors_find(const struct safetensors *file, const char *name);
/* A text of the file's __metadata__; NULL when there is none. */
const char *safetensors_metadata(const struct safetensors *file, const char *key);

/* All numbers of an entry of F32, F16 or BF16, each converted exactly. count must be the entry's. */
bool safetensors_read_real(const struct safetensors_entry *entry, real *out, size_t count, struct error *err);
/* False and err for an entry that safetensors_read_real() would refuse by its dtype. */
bool safetensors_is_real(const struct safetensors_entry *entry, struct error *err);

/* Whether entry (NULL: missing) has the shape of a model's tensor, in numbers that safetensors_read_real() reads. */
bool safetensors_fits(const struct safetensors_entry *entry, const struct tensor *tensor, struct error *err);
/* All numbers of an I32 entry, or of an I64 entry whose numbers fit. */
bool safetensors_read_int32(const struct safetensors_entry *entry, int32_t *out, size_t count, struct error *err);

/* Gives back the memory that reading the entry took, where the file is mapped; it may be read again. */
void safetensors_release(const struct safetensors *file, const struct safetensors_entry *entry);

/* What a 16-bit pattern stands for. Exact; NaN keeps its sign and payload bits. */
float safetensors_from_f16(uint16_t bits);
float safetensors_from_bf16(uint16_t bits);

const char *safetensors_dtype_name(enum safetensors_dtype dtype); /* "F32" */
size_t safetensors_dtype_bytes(enum safetensors_dtype dtype);     /* of one number */
/* "[2, 16, 32]". Returns buf. */
enum { SAFETENSORS_SHAPE_TEXT = 24 * SAFETENSORS_DIMS };
const char *safetensors_shape_text(int dims, const int64_t *shape, char buf[SAFETENSORS_SHAPE_TEXT]);

/* Writes the entries in the order given, data aligned to 8 bytes. An entry's bytes and count are computed from dtype
 * and shape; names must differ. metadata: key, value, key, value, ..., NULL; or NULL for none. The file appears whole
 * and durable or not at all. */
bool safetensors_write(const char *path, const struct safetensors_entry *entries, size_t count,
                       const char *const *metadata, struct error *err);

#endif
