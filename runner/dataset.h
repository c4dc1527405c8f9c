/* Text made ready for training: read, split, tokenised once, kept in a cache file that every worker maps.
 *
 * Split before anything else: of each kind of text, in the order read, the last validation_fraction of the bytes (cut
 * at a character) is validation; the tokenizer learns from the training part alone. The cache file's name comes from
 * the hash of the text and of the tokenizer's settings, so one changed byte makes a new one. */
#ifndef RUNNER_DATASET_H
#define RUNNER_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/tokenizer.h"
#include "core/trainer.h"
#include "runner/experiment.h"

enum { DATASET_SPLITS = 18 };

struct dataset_split {
    char name[64]; /* "validation", then each kind in alphabetical order */
    struct token_stream stream;
};

struct dataset {
    char path[4096]; /* of the cache file */
    char corpus_hash[65], tokenizer_hash[65];
    struct tokenizer *tokenizer;
    void *tokenizer_image; /* as tokenizer_save() made it */
    size_t tokenizer_image_size;
    struct token_stream train;
    uint64_t train_bytes, validation_bytes;
    double floor; /* bits per byte of letters without order, on validation: corpus_split_floor() */
    struct dataset_split splits[DATASET_SPLITS];
    size_t split_count;
    bool cache_failed; /* dataset_prepare() found the text good and the disk not */
    ino_t made;        /* private: of the cache file when it is new, else 0 */
    void *map;         /* private */
    size_t map_size;
};

/* Reads, or finds in cache_folder, and maps. Messages (asked 5000, got N; a text that repeats itself; unknown
 * characters) go through note. False and err with the numbers when the text is too short, a path is a FIFO, has no
 * permission, ...; *dataset then says in cache_failed whether writing the cache was what failed. Owner: caller,
 * dataset_close(). */
bool dataset_prepare(const struct data_spec *spec, const struct config *config, const char *cache_folder,
                     void (*note)(void *context, const char *text), void *context, struct dataset *dataset,
                     struct error *err);

/* Removes the cache file when dataset_prepare() made it and nobody put another in its place. */
void dataset_unmake(const struct dataset *dataset);

/* Maps a cache file a parent has prepared, in milliseconds: its header is checked against its checksum and the file's
 * size, the streams were checked by dataset_prepare(). Kinds whose validation text has no whole block of
 * context_length + 1 tokens are left out of splits, as dataset_prepare() noted. */
bool dataset_open(const char *path, int64_t context_length, struct dataset *dataset, struct error *err);
/* Takes a zeroed one too. */
void dataset_close(struct dataset *dataset);

#endif
