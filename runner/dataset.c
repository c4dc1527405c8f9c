/* Text to token streams, through the cache file. */
#include "runner/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/unicode.h"
#include "runner/corpus.h"
#include "runner/file.h"
#include "runner/token_file.h"

enum { STALE_SECONDS = 3600 };

/* A stream that grows. */
struct builder {
    int32_t *tokens;
    uint32_t *bytes;
    size_t count, capacity;
};

struct preparation {
    const struct config *config;
    corpus_note *note;
    void *context;
    bool *cache_failed; /* set when the cache file or its folder could not be written */
    struct corpus corpus, validation;
    struct corpus_split split;
    char corpus_hash[HASH_TEXT_SIZE];
};

static void prepare_note(const struct preparation *preparation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void prepare_note(const struct preparation *preparation, const char *format, ...)
{
    struct error text;
    va_list args;
    va_start(args, format);
    vsnprintf(text.text, sizeof text.text, format, args);
    va_end(args);
    if (preparation->note)
        preparation->note(preparation->context, text.text);
}

static void builder_add(struct builder *builder, int32_t token, uint32_t bytes)
{
    if (builder->count == builder->capacity) {
        size_t old = builder->capacity, capacity = old ? 2 * old : 4096;
        builder->tokens = memory_grow(builder->tokens, old * sizeof(int32_t), capacity, sizeof(int32_t));
        builder->bytes = memory_grow(builder->bytes, old * sizeof(uint32_t), capacity, sizeof(uint32_t));
        builder->capacity = capacity;
    }
    builder->tokens[builder->count] = token;
    builder->bytes[builder->count++] = bytes;
}

/* bytes[i] = bytes of text that ids[i] stands for. An unknown character is as long as the text it replaced. */
static bool token_sizes(const struct tokenizer *tokenizer, struct text text, const int32_t *ids, size_t count,
                        uint32_t *bytes, uint64_t *unknown, struct error *err)
{
    size_t at = 0;
    int32_t unk = tokenizer_unk(tokenizer);
    for (size_t i = 0; i < count; i++) {
        int32_t code_point;
        bool is_unknown = ids[i] == unk && unk >= 0 && at < text.size;
        size_t size = is_unknown ? unicode_decode(text.bytes + at, text.size - at, &code_point)
                                 : tokenizer_token(tokenizer, ids[i]).size;
        bytes[i] = (uint32_t)size;
        at += size;
        *unknown += is_unknown;
    }
    if (at != text.size)
        return error_set(err, "the tokens of a text of %zu bytes stand for %zu bytes", text.size, at);
    return true;
}

/* bos + tokens + eos, to one stream or, with also, to two. */
static bool document_encode(const struct tokenizer *tokenizer, const struct document *piece, struct builder *builder,
                            struct builder *also, uint64_t *unknown, struct error *err)
{
    struct text text = piece->text;
    int32_t *ids = memory_alloc(text.size, sizeof *ids);
    uint32_t *bytes = memory_alloc(text.size, sizeof *bytes);
    size_t count = tokenizer_encode(tokenizer, text.bytes, text.size, ids);
    bool good = token_sizes(tokenizer, text, ids, count, bytes, unknown, err);
    for (struct builder *to = builder; good && to; to = to == builder ? also : NULL) {
        builder_add(to, tokenizer_bos(tokenizer), 0);
        for (size_t i = 0; i < count; i++)
            builder_add(to, ids[i], bytes[i]);
        builder_add(to, tokenizer_eos(tokenizer), 0);
    }
    memory_free(ids);
    memory_free(bytes);
    return good;
}

static int stream_compare(const void *a, const void *b)
{
    return strcmp(((const struct token_file_stream *)a)->name, ((const struct token_file_stream *)b)->name);
}

/* train, validation, and the kinds that the validation part has. */
static void streams_name(const struct corpus_split *split, struct token_file_header *header)
{
    snprintf(header->streams[0].name, sizeof header->streams[0].name, "train");
    snprintf(header->streams[1].name, sizeof header->streams[1].name, "validation");
    header->stream_count = 2;
    const char *last = NULL;
    for (size_t i = 0; i < split->validation_count; i++) {
        const char *kind = split->validation[i].kind;
        bool known = !kind || kind == last;
        for (size_t j = 2; !known && j < header->stream_count; j++)
            known = strcmp(header->streams[j].name, kind) == 0;
        last = kind;
        if (!known)
            snprintf(header->streams[header->stream_count++].name, CORPUS_KIND_SIZE, "%s", kind);
    }
    qsort(header->streams + 2, header->stream_count - 2, sizeof header->streams[0], stream_compare);
}

static struct builder *kind_builder(struct builder *builders, const struct token_file_header *header, const char *kind)
{
    for (size_t i = 2; kind && i < header->stream_count; i++)
        if (strcmp(header->streams[i].name, kind) == 0)
            return &builders[i];
    return NULL;
}

static bool streams_encode(const struct preparation *preparation, const struct tokenizer *tokenizer,
                           struct token_file_header *header, struct builder *builders, struct error *err)
{
    const struct corpus_split *split = &preparation->split;
    bool good = true;
    for (size_t i = 0; good && i < split->train_count; i++) {
        header->train_bytes += split->train[i].text.size;
        good = document_encode(tokenizer, &split->train[i], &builders[0], NULL, &header->unknown, err);
    }
    for (size_t i = 0; good && i < split->validation_count; i++) {
        struct builder *kind = kind_builder(builders, header, split->validation[i].kind);
        header->validation_bytes += split->validation[i].text.size;
        good = document_encode(tokenizer, &split->validation[i], &builders[1], kind, &header->unknown, err);
    }
    for (size_t i = 0; i < header->stream_count; i++)
        header->streams[i].count = builders[i].count;
    return good;
}

static bool length_check(const char *what, uint64_t tokens, int64_t context_length, struct error *err)
{
    if (tokens > (uint64_t)context_length)
        return true;
    return error_set(err, "%s text has %" PRIu64 " tokens; context_length %" PRId64 " needs at least %" PRId64, what,
                     tokens, context_length, context_length + 1);
}

static bool lengths_check(const struct token_file_header *header, int64_t context_length, struct error *err)
{
    return length_check("training", header->streams[0].count, context_length, err) &&
           length_check("validation", header->streams[1].count, context_length, err);
}

static bool streams_write(const struct preparation *preparation, const char *path, struct tokenizer *tokenizer,
                          struct token_file_header *header, const struct builder *builders, struct error *err)
{
    size_t image_size;
    void *image = tokenizer_save(tokenizer, &image_size);
    struct token_stream streams[TOKEN_FILE_STREAMS];
    for (size_t i = 0; i < header->stream_count; i++)
        streams[i] = (struct token_stream){builders[i].tokens, builders[i].bytes, builders[i].count};
    header->image_size = image_size;
    header->overlap = corpus_split_overlap(&preparation->split);
    header->floor = header->unknown ? 0 : corpus_split_floor(&preparation->split);
    memcpy(header->corpus_hash, preparation->corpus_hash, sizeof header->corpus_hash);
    hash_bytes(image, image_size, header->tokenizer_hash);
    char *folder = path_folder(path);
    bool good = folder_make(folder, err) && token_file_write(path, header, image, streams, err);
    *preparation->cache_failed = !good;
    memory_free(folder);
    memory_free(image);
    return good;
}

static bool cache_build(const struct preparation *preparation, const char *path, struct error *err)
{
    const struct corpus_split *split = &preparation->split;
    int64_t context_length = preparation->config->model.context_length;
    if (split->train_count == 0 || split->validation_count == 0)
        return length_check(split->train_count ? "validation" : "training", 0, context_length, err);
    struct text *texts = memory_alloc(split->train_count, sizeof *texts);
    for (size_t i = 0; i < split->train_count; i++)
        texts[i] = split->train[i].text;
    struct tokenizer *tokenizer = tokenizer_train(&preparation->config->tokenizer, texts, split->train_count, err);
    memory_free(texts);
    if (!tokenizer)
        return false;
    struct token_file_header *header = memory_alloc(1, sizeof *header);
    struct builder builders[TOKEN_FILE_STREAMS] = {0};
    streams_name(split, header);
    bool good = streams_encode(preparation, tokenizer, header, builders, err) &&
                lengths_check(header, context_length, err) &&
                streams_write(preparation, path, tokenizer, header, builders, err);
    for (size_t i = 0; i < TOKEN_FILE_STREAMS; i++) {
        memory_free(builders[i].tokens);
        memory_free(builders[i].bytes);
    }
    memory_free(header);
    tokenizer_free(tokenizer);
    return good;
}

static bool dataset_fill(const struct token_file_header *header, int64_t context_length, struct dataset *dataset,
                         struct error *err)
{
    char hex[HASH_TEXT_SIZE];
    const char *base = (const char *)header;
    const void *image = base + header->image_offset;
    hash_bytes(image, header->image_size, hex);
    if (strcmp(hex, header->tokenizer_hash) != 0)
        return error_set(err, "'%s' is damaged: its tokenizer does not match its checksum", dataset->path);
    dataset->tokenizer = tokenizer_load(image, header->image_size, err);
    if (!dataset->tokenizer)
        return error_wrap(err, "'%s' is damaged", dataset->path);
    memcpy(dataset->corpus_hash, header->corpus_hash, sizeof dataset->corpus_hash);
    memcpy(dataset->tokenizer_hash, header->tokenizer_hash, sizeof dataset->tokenizer_hash);
    dataset->tokenizer_image = memory_copy_bytes(image, header->image_size);
    dataset->tokenizer_image_size = header->image_size;
    dataset->train_bytes = header->train_bytes;
    dataset->validation_bytes = header->validation_bytes;
    dataset->floor = header->floor;
    for (size_t i = 0; i < header->stream_count; i++) {
        const struct token_file_stream *stream = &header->streams[i];
        struct token_stream tokens = {(const int32_t *)(const void *)(base + stream->tokens_offset),
                                      (const uint32_t *)(const void *)(base + stream->bytes_offset), stream->count};
        struct dataset_split *split = &dataset->splits[dataset->split_count];
        if (i == 0)
            dataset->train = tokens;
        else if (i == 1 || stream->count > (uint64_t)context_length) {
            memcpy(split->name, stream->name, sizeof split->name);
            split->stream = tokens;
            dataset->split_count++;
        }
    }
    return true;
}

/* whole: every byte is checked, not only the header. */
static bool dataset_map(const char *path, bool whole, int64_t context_length, struct dataset *dataset,
                        struct error *err)
{
    memset(dataset, 0, sizeof *dataset);
    if (strlen(path) >= sizeof dataset->path)
        return error_set(err, "path '%.100s...' is longer than %zu bytes", path, sizeof dataset->path - 1);
    snprintf(dataset->path, sizeof dataset->path, "%s", path);
    const struct token_file_header *header = token_file_map(path, whole, &dataset->map, &dataset->map_size, err);
    if (header && dataset_fill(header, context_length, dataset, err))
        return true;
    dataset_close(dataset);
    return false;
}

bool dataset_open(const char *path, int64_t context_length, struct dataset *dataset, struct error *err)
{
    return dataset_map(path, false, context_length, dataset, err);
}

void dataset_close(struct dataset *dataset)
{
    tokenizer_free(dataset->tokenizer);
    memory_free(dataset->tokenizer_image);
    if (dataset->map)
        munmap(dataset->map, dataset->map_size);
    memset(dataset, 0, sizeof *dataset);
}

static void dataset_notes(const struct preparation *preparation, const struct dataset *dataset)
{
    const struct token_file_header *header = dataset->map;
    int64_t context_length = preparation->config->model.context_length;
    const struct tokenizer_config *wanted = &preparation->config->tokenizer;
    int64_t reached = tokenizer_vocab_size(dataset->tokenizer);
    if (wanted->kind == TOKENIZER_BPE && reached < wanted->vocab_size)
        prepare_note(preparation,
                     "data.tokenizer.vocab_size: asked %" PRId64 ", got %" PRId64 ": no other pair occurs %" PRId64
                     " times in the training text",
                     wanted->vocab_size, reached, wanted->min_frequency);
    if (header->unknown)
        prepare_note(preparation,
                     "%" PRIu64 " characters of the validation text do not occur in the training text and count as "
                     "unknown",
                     header->unknown);
    if (header->overlap > 0.5)
        prepare_note(preparation,
                     "%.0f %% of the validation text occurs in the training text too (stretches of 64 bytes or "
                     "more): its loss says little about unseen text",
                     floor(header->overlap * 100));
    if (header->floor > 0)
        prepare_note(
            preparation,
            "letters of this text that stand near each other say nothing of one another: unless it repeats itself "
            "further apart, no model gets below %.3f bits per byte, and `runner table` marks one that does",
            header->floor);
    for (size_t i = 2; i < header->stream_count; i++)
        if (header->streams[i].count <= (uint64_t)context_length)
            prepare_note(preparation,
                         "kind '%s' is not evaluated by itself: its validation text has %" PRIu64
                         " tokens; context_length %" PRId64 " needs at least %" PRId64,
                         header->streams[i].name, header->streams[i].count, context_length, context_length + 1);
}

/* The name of a cache file says everything its contents depend on. */
static char *cache_path(const struct preparation *preparation, const char *folder)
{
    const struct tokenizer_config *tokenizer = &preparation->config->tokenizer;
    bool bpe = tokenizer->kind == TOKENIZER_BPE;
    char text[256], hex[HASH_TEXT_SIZE], name[HASH_TEXT_SIZE + 8];
    int size = snprintf(text, sizeof text, "tokens %d %s %d %" PRId64 " %" PRId64, TOKEN_FILE_VERSION,
                        preparation->corpus_hash, tokenizer->kind, bpe ? tokenizer->vocab_size : 0,
                        bpe ? tokenizer->min_frequency : 0);
    hash_bytes(text, (size_t)size, hex);
    snprintf(name, sizeof name, "%s.tokens", hex);
    return path_join(folder, name);
}

/* From the cache, or built and then from the cache. */
static bool dataset_make(const struct preparation *preparation, const char *path, struct dataset *dataset,
                         struct error *err)
{
    int64_t context_length = preparation->config->model.context_length;
    struct error damage;
    if (access(path, F_OK) == 0) {
        if (dataset_map(path, true, context_length, dataset, &damage))
            return true;
        prepare_note(preparation, "%s; it is made anew", damage.text);
    }
    struct stat status;
    if (!cache_build(preparation, path, err))
        return false;
    ino_t made = stat(path, &status) == 0 ? status.st_ino : 0;
    bool good = dataset_map(path, false, context_length, dataset, err);
    dataset->made = made;
    return good;
}

void dataset_unmake(const struct dataset *dataset)
{
    struct stat status;
    if (dataset->made && stat(dataset->path, &status) == 0 && status.st_ino == dataset->made)
        unlink(dataset->path);
}

static bool text_read(const struct data_spec *spec, struct preparation *preparation, struct error *err)
{
    if (!corpus_read(&spec->corpus, &preparation->corpus, preparation->note, preparation->context, err))
        return error_wrap(err, "data.corpus");
    if (!spec->validation.given)
        corpus_split_fraction(&preparation->corpus, preparation->config->data.validation_fraction, &preparation->split);
    else if (corpus_read(&spec->validation, &preparation->validation, preparation->note, preparation->context, err))
        corpus_split_given(&preparation->corpus, &preparation->validation, &preparation->split);
    else
        return error_wrap(err, "data.validation");
    corpus_split_hash(&preparation->split, preparation->corpus_hash);
    return true;
}

bool dataset_prepare(const struct data_spec *spec, const struct config *config, const char *cache_folder,
                     corpus_note *note, void *context, struct dataset *dataset, struct error *err)
{
    struct preparation preparation = {
        .config = config, .note = note, .context = context, .cache_failed = &dataset->cache_failed};
    char *path = NULL;
    memset(dataset, 0, sizeof *dataset);
    bool good = text_read(spec, &preparation, err);
    if (good) {
        folder_remove_stale(cache_folder, STALE_SECONDS);
        path = cache_path(&preparation, cache_folder);
        good = dataset_make(&preparation, path, dataset, err);
    }
    if (good && !lengths_check(dataset->map, config->model.context_length, err)) {
        dataset_close(dataset);
        good = false;
    }
    if (good)
        dataset_notes(&preparation, dataset);
    memory_free(path);
    corpus_split_release(&preparation.split);
    corpus_release(&preparation.corpus);
    corpus_release(&preparation.validation);
    return good;
}
