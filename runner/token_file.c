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
        offset = aligned(offset + stream->count * sizeof(uint16_t));
    }
    header->file_size = offset;
}

static void header_hash(const struct token_file_header *header, char hex[HASH_TEXT_SIZE])
{
    hash_bytes(header, offsetof(struct token_file_header, header_hash), hex);
}

/* Where the parts go one after the other: into the hash of the body, or into the file. */
struct sink {
    struct hash *hash;
    struct file_writer *writer;
    uint64_t offset;
};

static bool sink_add(struct sink *sink, const void *bytes, size_t size, struct error *err)
{
    static const char zeros[ALIGNMENT];
    size_t padding = (size_t)(aligned(sink->offset + size) - sink->offset - size);
    sink->offset += size + padding;
    if (!sink->writer) {
        hash_add(sink->hash, bytes, size);
        hash_add(sink->hash, zeros, padding);
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
               sink_add(sink, streams[i].bytes, streams[i].count * sizeof(uint16_t), err);
    return good;
}

bool token_file_write(const char *path, struct token_file_header *header, const void *image,
                      const struct token_stream *streams, struct error *err)
{
    struct hash hash;
    struct file_writer writer;
    header_lay_out(header);
    hash_init(&hash);
    body_add(&(struct sink){.hash = &hash}, header, image, streams, err);
    hash_end(&hash, header->body_hash);
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
            !part_fits(header, stream->bytes_offset, stream->count, sizeof(uint16_t)) ||
            !text_ends(stream->name, sizeof stream->name))
            return "its header makes no sense";
    }
    return NULL;
}

static bool body_intact(const struct token_file_header *header, size_t size)
{
    char hex[HASH_TEXT_SIZE];
    uint64_t start = aligned(sizeof *header);
    hash_bytes((const char *)header + start, size - start, hex);
    return memcmp(hex, header->body_hash, sizeof hex) == 0;
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
