/* Text read from files, folders, globs, lists, .jsonl or the built-in generator, in an order that depends on nothing
 * but names and bytes; and its split into a part to learn from and a part to validate on. */
#ifndef RUNNER_CORPUS_H
#define RUNNER_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/tokenizer.h"
#include "runner/experiment.h"
#include "runner/hash.h"

enum { CORPUS_KIND_SIZE = 64, CORPUS_KINDS = 16 };

struct document {
    struct text text;
    const char *kind; /* NULL: has none; equal kinds of one corpus are one pointer */
};

struct corpus {
    struct document *documents;
    size_t count;
    size_t capacity; /* private, as are the next two */
    char *kinds[CORPUS_KINDS];
    size_t kind_count;
};

/* Messages that are no reason to stop. */
typedef void corpus_note(void *context, const char *text);

/* A .jsonl file has one document a line, {"text": .., "kind": ..}; any other file is one document. Folders are walked;
 * their hidden and binary files are left out with a note. What cannot be read is refused with its path, and line in
 * a .jsonl. Empty documents are left out with a note. Owner: caller, corpus_release(). */
bool corpus_read(const struct data_source *source, struct corpus *corpus, corpus_note *note, void *context,
                 struct error *err);
void corpus_release(struct corpus *corpus); /* takes a zeroed one */

/* Adds a document; takes bytes (of memory_alloc) over, also on failure; kind is copied. False and err when the kind
 * cannot be one: empty, long, with control characters, the name of a split, one more than CORPUS_KINDS. */
bool corpus_add(struct corpus *corpus, char *bytes, size_t size, const char *kind, struct error *err);

/* Pieces of documents; their texts belong to the corpus. A document that the cut falls into gives a piece to each. */
struct corpus_split {
    struct document *train, *validation;
    size_t train_count, validation_count;
};

/* Of each kind (documents without one are a kind of their own), in the order read, the last `fraction` of the bytes is
 * validation: training gets floor(bytes * (1 - fraction)), less the bytes of a UTF-8 character the cut would break. */
void corpus_split_fraction(const struct corpus *corpus, double fraction, struct corpus_split *split);
/* Two corpora, one for each role. */
void corpus_split_given(const struct corpus *train, const struct corpus *validation, struct corpus_split *split);
void corpus_split_release(struct corpus_split *split); /* takes a zeroed one */

/* SHA-256 over role, kind, length and bytes of every piece: another byte or another split gives another hash, another
 * folder does not. */
void corpus_split_hash(const struct corpus_split *split, char hex[HASH_TEXT_SIZE]);

/* Share of the validation bytes that lie in stretches of 64 bytes or more which the training part has too. */
double corpus_split_overlap(const struct corpus_split *split);

/* Bits per byte that no model of the validation part can get below, where the text is of letters that say nothing about
 * each other (up to eight apart, white space aside), as random ones; 0 for any other text and for one too short to
 * tell. A lower loss means that a model sees what it is to predict. */
double corpus_split_floor(const struct corpus_split *split);

#endif
