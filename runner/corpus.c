/* Documents from files and .jsonl lines. */
#include "runner/corpus.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/builtin.h"
#include "runner/file.h"
#include "runner/file_list.h"

enum { BINARY_LOOK = 8192 };
static const size_t size_limit = (size_t)2 << 30;

struct reader {
    struct corpus *corpus;
    corpus_note *note;
    void *context;
    size_t bytes, binary, empty;
};

static void reader_note(const struct reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void reader_note(const struct reader *reader, const char *format, ...)
{
    struct error text;
    va_list args;
    va_start(args, format);
    vsnprintf(text.text, sizeof text.text, format, args);
    va_end(args);
    if (reader->note)
        reader->note(reader->context, text.text);
}

static bool kind_check(const char *kind, struct error *err)
{
    if (kind[0] == 0)
        return error_set(err, "kind is empty; leave it out for a text without one");
    if (strlen(kind) >= CORPUS_KIND_SIZE)
        return error_set(err, "kind '%.40s...' is longer than %d bytes", kind, CORPUS_KIND_SIZE - 1);
    for (const char *c = kind; *c; c++)
        if ((unsigned char)*c < 32 || *c == 127)
            return error_set(err, "kind has the control character \\x%02x", (unsigned)(unsigned char)*c);
    if (strcmp(kind, "train") == 0 || strcmp(kind, "validation") == 0)
        return error_set(err, "kind '%s' is the name of a split; another is needed", kind);
    return true;
}

/* The corpus' own copy of a kind; NULL and err when it cannot be one. */
static const char *kind_intern(struct corpus *corpus, const char *kind, struct error *err)
{
    for (size_t i = 0; i < corpus->kind_count; i++)
        if (strcmp(corpus->kinds[i], kind) == 0)
            return corpus->kinds[i];
    if (!kind_check(kind, err))
        return NULL;
    if (corpus->kind_count == CORPUS_KINDS) {
        error_set(err, "kind '%s' is one too many; at most %d fit", kind, CORPUS_KINDS);
        return NULL;
    }
    return corpus->kinds[corpus->kind_count++] = memory_copy_text(kind);
}

bool corpus_add(struct corpus *corpus, char *bytes, size_t size, const char *kind, struct error *err)
{
    const char *interned = kind ? kind_intern(corpus, kind, err) : NULL;
    if (kind && !interned) {
        memory_free(bytes);
        return false;
    }
    if (corpus->count == corpus->capacity) {
        size_t old = corpus->capacity * sizeof *corpus->documents;
        corpus->capacity = corpus->capacity ? 2 * corpus->capacity : 64;
        corpus->documents = memory_grow(corpus->documents, old, corpus->capacity, sizeof *corpus->documents);
    }
    corpus->documents[corpus->count++] = (struct document){{bytes, size}, interned};
    return true;
}

void corpus_release(struct corpus *corpus)
{
    for (size_t i = 0; i < corpus->count; i++)
        memory_free((void *)(uintptr_t)corpus->documents[i].text.bytes);
    for (size_t i = 0; i < corpus->kind_count; i++)
        memory_free(corpus->kinds[i]);
    memory_free(corpus->documents);
    memset(corpus, 0, sizeof *corpus);
}

static bool line_is_blank(const char *line, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            return false;
    return true;
}

/* {"text": string, "kind": string or null, anything else} */
static bool line_document(struct reader *reader, const json_t *object, struct error *err)
{
    if (!json_is_object(object))
        return error_set(err, "not a JSON object; each line is {\"text\": \"..\", \"kind\": \"..\"}");
    const json_t *text = json_object_get(object, "text"), *kind = json_object_get(object, "kind");
    if (!json_is_string(text))
        return error_set(err, "\"text\" %s; each line is {\"text\": \"..\", \"kind\": \"..\"}",
                         text ? "is not a string" : "is missing");
    if (kind && !json_is_string(kind) && !json_is_null(kind))
        return error_set(err, "\"kind\" is not a string");
    if (json_is_string(kind) && strlen(json_string_value(kind)) != json_string_length(kind))
        return error_set(err, "kind has the control character \\x00");
    size_t size = json_string_length(text);
    reader->empty += size == 0;
    return size == 0 || corpus_add(reader->corpus, memory_copy_bytes(json_string_value(text), size), size,
                                   json_is_string(kind) ? json_string_value(kind) : NULL, err);
}

static bool lines_read(struct reader *reader, const char *path, const char *bytes, size_t size, struct error *err)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    size_t position = size >= 3 && memcmp(bytes, byte_order_mark, 3) == 0 ? 3 : 0;
    for (size_t number = 1; position < size; number++) {
        const char *line = bytes + position, *end = memchr(line, '\n', size - position);
        size_t length = end ? (size_t)(end - line) : size - position;
        position += length + 1;
        if (line_is_blank(line, length))
            continue;
        json_error_t reason;
        json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &reason);
        bool good = object ? line_document(reader, object, err) : error_set(err, "%s", reason.text);
        json_decref(object);
        if (!good)
            return error_wrap(err, "%s:%zu", path, number);
    }
    return true;
}

static bool entry_read(struct reader *reader, const struct file_entry *entry, struct error *err)
{
    char *bytes;
    size_t size, length = strlen(entry->path);
    if (!file_read(entry->path, size_limit, &bytes, &size, err))
        return false;
    if (reader->bytes + size > size_limit) {
        memory_free(bytes);
        return error_set(err, "text up to '%s' is larger than %zu bytes", entry->path, size_limit);
    }
    reader->bytes += size;
    if (length >= 6 && strcmp(entry->path + length - 6, ".jsonl") == 0) {
        bool good = lines_read(reader, entry->path, bytes, size, err);
        memory_free(bytes);
        return good;
    }
    bool binary = entry->searched && memchr(bytes, 0, size < BINARY_LOOK ? size : BINARY_LOOK);
    reader->binary += binary;
    reader->empty += size == 0;
    if (!binary && size)
        return corpus_add(reader->corpus, bytes, size, NULL, err);
    memory_free(bytes);
    return true;
}

static int inode_compare(const void *a, const void *b)
{
    const struct file_entry *x = *(const struct file_entry *const *)a, *y = *(const struct file_entry *const *)b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->inode != y->inode)
        return x->inode < y->inode ? -1 : 1;
    return strcmp(x->path, y->path);
}

/* The same file twice, by two names or by links: text that repeats itself. */
static void note_doubles(const struct reader *reader, const struct file_list *list)
{
    if (list->count == 0)
        return;
    const struct file_entry **order = memory_alloc(list->count, sizeof *order);
    for (size_t i = 0; i < list->count; i++)
        order[i] = &list->entries[i];
    qsort(order, list->count, sizeof *order, inode_compare);
    size_t doubles = 0, first = 0;
    for (size_t i = 1; i < list->count; i++)
        if (order[i]->device == order[i - 1]->device && order[i]->inode == order[i - 1]->inode && doubles++ == 0)
            first = i;
    if (doubles)
        reader_note(reader, "'%s' is the same file as '%s': it is read twice%s", order[first]->path,
                    order[first - 1]->path, doubles > 1 ? ", and it is not the only one" : "");
    memory_free(order);
}

static void note_left_out(const struct reader *reader, const struct file_list *list)
{
    if (list->hidden)
        reader_note(reader, "%zu hidden file%s or folder%s (names starting with a dot) left out", list->hidden,
                    list->hidden == 1 ? "" : "s", list->hidden == 1 ? "" : "s");
    if (list->repeated)
        reader_note(reader, "%zu link%s to a folder already read left out", list->repeated,
                    list->repeated == 1 ? "" : "s");
    if (reader->binary)
        reader_note(reader, "%zu binary file%s (a zero byte in the first %d) left out", reader->binary,
                    reader->binary == 1 ? "" : "s", BINARY_LOOK);
    if (reader->empty)
        reader_note(reader, "%zu empty text%s left out", reader->empty, reader->empty == 1 ? "" : "s");
}

bool corpus_read(const struct data_source *source, struct corpus *corpus, corpus_note *note, void *context,
                 struct error *err)
{
    memset(corpus, 0, sizeof *corpus);
    if (source->builtin) {
        builtin_documents(corpus);
        return true;
    }
    struct reader reader = {.corpus = corpus, .note = note, .context = context};
    struct file_list list = {0};
    bool good = true;
    for (size_t i = 0; good && i < source->path_count; i++) {
        size_t before = list.count;
        good = file_list_add(&list, source->folder, source->paths[i], err);
        for (size_t j = before; good && j < list.count; j++)
            good = entry_read(&reader, &list.entries[j], err);
    }
    if (good && corpus->count == 0)
        good = error_set(err, "no text in '%s'%s (%zu empty, %zu binary, %zu hidden)",
                         source->path_count ? source->paths[0] : "", source->path_count > 1 ? " and the others" : "",
                         reader.empty, reader.binary, list.hidden);
    if (good) {
        note_doubles(&reader, &list);
        note_left_out(&reader, &list);
    } else
        corpus_release(corpus);
    file_list_release(&list);
    return good;
}
