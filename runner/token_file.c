/* Writing and mapping the cache file of a dataset. */
#include "runner/token_file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/file.h"

enum { ALIGNMENT = 64, BYTE_ORDER_MARK = 0x01020304 };
static const char magic[8] = "runtoken";

static uint64_t aligned(uint64_t offset)
{
    return (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void header_lay_out(struct token_file_header *header)
{
    uint64_t offset = aligned(sizeof *header);
    memcpy(header->magic, magic, sizeof magic);
    header->version = TOKEN_FILE_VERSION;
    header->byte_order = BYTE_ORDER_MARK;
    header->image_offset = offset;
    offset = aligned(offset + header->image_size);
    for (size_t i = 0; i < header->stream_count; i++) {
        struct token_file_stream *stream = &header->streams[i];
        stream->tokens_offset = offset;
        offset = aligned(offset + stream->count * sizeof(int32_t));
        stream->bytes_offset = offset;
        offset = aligned(offset + stream->count * sizeof(uint32_t));
    }
    header->file_size = offset;
}

static void header_hash(const struct token_file_header *header, char hex[HASH_TEXT_SIZE])
{
    hash_bytes(header, offsetof(struct token_file_header, header_hash), hex);
}

/* A fast sum of 64-bit words against damage, not against malice: each step is a bijection of the sum, so one changed
 * word always changes the end. The last word is filled up with zeros. */
static uint64_t words_sum(uint64_t sum, const void *bytes, size_t size)
{
    const char *at = bytes;
    for (uint64_t word; size; at += sizeof word) {
        size_t part = size < sizeof word ? size : sizeof word;
        word = 0;
        memcpy(&word, at, part);
        sum = (sum ^ word) * 0x9E3779B97F4A7C15ull;
        sum ^= sum >> 29;
        size -= part;
    }
    return sum;
}

/* Where the parts go one after the other: into the sum of the body, or into the file. */
struct sink {
    struct file_writer *writer; /* NULL: only the sum */
    uint64_t offset, sum;
};

static bool sink_add(struct sink *sink, const void *bytes, size_t size, struct error *err)
{
    static const char zeros[ALIGNMENT];
    uint64_t end = aligned(sink->offset + size);
    size_t padding = (size_t)(end - sink->offset - size), words = (size + 7) / 8 * 8;
    sink->offset = end;
    if (!sink->writer) {
        sink->sum = words_sum(sink->sum, bytes, size);
        sink->sum = words_sum(sink->sum, zeros, size + padding - words);
        return true;
    }
    return file_writer_add(sink->writer, bytes, size, err) && file_writer_add(sink->writer, zeros, padding, err);
}

static bool body_add(struct sink *sink, const struct token_file_header *header, const void *image,
                     const struct token_stream *streams, struct error *err)
{
    bool good = sink_add(sink, image, header->image_size, err);
    for (size_t i = 0; good && i < header->stream_count; i++)
        good = sink_add(sink, streams[i].tokens, streams[i].count * sizeof(int32_t), err) &&
               sink_add(sink, streams[i].bytes, streams[i].count * sizeof(uint32_t), err);
    return good;
}

bool token_file_write(const char *path, struct token_file_header *header, const void *image,
                      const struct token_stream *streams, struct error *err)
{
    struct sink sum = {0};
    struct file_writer writer;
    header_lay_out(header);
    body_add(&sum, header, image, streams, err);
    header->body_sum = sum.sum;
    header_hash(header, header->header_hash);
    if (!file_writer_open(&writer, path, err))
        return false;
    struct sink sink = {.writer = &writer};
    if (!sink_add(&sink, header, sizeof *header, err) || !body_add(&sink, header, image, streams, err)) {
        file_writer_abandon(&writer);
        return false;
    }
    return file_writer_commit(&writer, err);
}

static bool part_fits(const struct token_file_header *header, uint64_t offset, uint64_t count, uint64_t element)
{
    uint64_t size;
    return !__builtin_mul_overflow(count, element, &size) && offset % ALIGNMENT == 0 && offset >= sizeof *header &&
           offset <= header->file_size && size <= header->file_size - offset;
}

static bool text_ends(const char *text, size_t size)
{
    return memchr(text, 0, size) != NULL;
}

/* What is wrong with the header of a mapped file, or NULL. */
static const char *header_problem(const struct token_file_header *header, size_t size)
{
    char hex[HASH_TEXT_SIZE];
    if (size < sizeof *header || memcmp(header->magic, magic, sizeof magic) != 0)
        return "it is no token cache";
    if (header->version != TOKEN_FILE_VERSION || header->byte_order != BYTE_ORDER_MARK)
        return "it is of another version or machine";
    header_hash(header, hex);
    if (memcmp(hex, header->header_hash, sizeof hex) != 0)
        return "its header does not match its checksum";
    if (header->file_size != size)
        return "its size is not the one it had";
    if (header->stream_count < 2 || header->stream_count > TOKEN_FILE_STREAMS ||
        !part_fits(header, header->image_offset, header->image_size, 1) ||
        !text_ends(header->corpus_hash, HASH_TEXT_SIZE) || !text_ends(header->tokenizer_hash, HASH_TEXT_SIZE))
        return "its header makes no sense";
    for (size_t i = 0; i < header->stream_count; i++) {
        const struct token_file_stream *stream = &header->streams[i];
        if (!part_fits(header, stream->tokens_offset, stream->count, sizeof(int32_t)) ||
            !part_fits(header, stream->bytes_offset, stream->count, sizeof(uint32_t)) ||
            !text_ends(stream->name, sizeof stream->name))
            return "its header makes no sense";
    }
    return NULL;
}

static bool body_intact(const struct token_file_header *header, size_t size)
{
    uint64_t start = aligned(sizeof *header);
    return words_sum(0, (const char *)header + start, size - start) == header->body_sum;
}

const struct token_file_header *token_file_map(const char *path, bool whole, void **map, size_t *size,
                                               struct error *err)
{
    struct stat status;
    int fd = file_open_regular(path, &status, err);
    if (fd < 0)
        return NULL;
    *size = (size_t)status.st_size;
    *map = *size ? mmap(NULL, *size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    int reason = errno;
    close(fd);
    if (*map == MAP_FAILED) {
        *map = NULL;
        error_set(err, "cannot map '%s': %s", path, *size ? strerror(reason) : "it is empty");
        return NULL;
    }
    const char *problem = header_problem(*map, *size);
    if (!problem && whole && !body_intact(*map, *size))
        problem = "its contents do not match their checksum";
    if (!problem)
        return *map;
    error_set(err, "'%s' is damaged: %s", path, problem);
    munmap(*map, *size);
    *map = NULL;
    return NULL;
}
