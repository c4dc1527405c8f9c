/* The cache file of a dataset: tokenizer and token streams, written whole, mapped by every worker.
 *
 *   struct token_file_header | tokenizer image | for each stream: int32 tokens, uint32 bytes | end
 *
 * Each part starts at a multiple of 64. The header has its own checksum and one of all that follows; numbers are in
 * the machine's byte order, which byte_order proves. */
#ifndef RUNNER_TOKEN_FILE_H
#define RUNNER_TOKEN_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/trainer.h"
#include "runner/dataset.h"
#include "runner/hash.h"

/* Raise it when the layout, the split or a tokenizer's rules change: older files are then not found any more. */
enum { TOKEN_FILE_VERSION = 3, TOKEN_FILE_STREAMS = DATASET_SPLITS + 1 };

struct token_file_header {
    char magic[8];
    uint32_t version, byte_order;
    uint64_t file_size, image_offset, image_size;
    uint64_t train_bytes, validation_bytes;
    uint64_t body_sum; /* of all after the header */
    uint64_t unknown;  /* characters the tokenizer had no token for */
    double overlap;    /* corpus_split_overlap() */
    double floor;      /* corpus_split_floor(); 0 with unknown characters, which cost less than their bytes */
    uint64_t stream_count;
    struct token_file_stream {
        char name[64]; /* "train", "validation", then kinds in alphabetical order */
        uint64_t count, tokens_offset, bytes_offset;
    } streams[TOKEN_FILE_STREAMS];
    char corpus_hash[HASH_TEXT_SIZE], tokenizer_hash[HASH_TEXT_SIZE];
    char header_hash[HASH_TEXT_SIZE]; /* of all before it */
};

/* Fills in magic, sizes, offsets and checksums; names, counts and the rest are the caller's. */
bool token_file_write(const char *path, struct token_file_header *header, const void *image,
                      const struct token_stream *streams, struct error *err);

/* Maps read-only and checks the header; whole: also the checksum of the rest. *map: the caller's, munmap(). NULL and
 * err when the file is not one of ours as it was written. */
const struct token_file_header *token_file_map(const char *path, bool whole, void **map, size_t *size,
                                               struct error *err);

#endif
