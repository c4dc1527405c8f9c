/* The words of the built-in text: a few hundred English ones, the common ranks, and thousands made of those or of
 * syllables, the rare ones. A document has a topic: words it comes back to. */
#ifndef RUNNER_BUILTIN_WORDS_H
#define RUNNER_BUILTIN_WORDS_H

#include "runner/builtin_writer.h"

enum { WORD_SIZE = 24 };
enum word_class { WORD_NOUN, WORD_VERB /* transitive */, WORD_MOTION /* intransitive */, WORD_ADJECTIVE, WORD_CLASSES };

/* Forms: noun: singular, plural. Verb: base, with -s, past, past participle, with -ing. Adjective: itself, adverb. */
enum { FORM_BASE, FORM_S, FORM_PAST, FORM_DONE, FORM_ING, WORD_FORMS };
enum { FORM_PLURAL = FORM_S, FORM_ADVERB = FORM_S };

struct word {
    char forms[WORD_FORMS][WORD_SIZE];
};

struct word_list {
    struct word *words;
    struct zipf zipf;
};

struct lexicon {
    struct word_list lists[WORD_CLASSES];
    struct zipf topic; /* over TOPIC_WORDS */
};

void lexicon_init(struct lexicon *lexicon);
void lexicon_release(struct lexicon *lexicon);

enum { TOPIC_WORDS = 40 };
struct topic {
    const struct lexicon *lexicon;
    const struct word *words[WORD_CLASSES][TOPIC_WORDS];
};

void topic_init(struct topic *topic, const struct lexicon *lexicon, struct writer *writer);

/* Mostly of the topic, at times any. */
const struct word *topic_word(const struct topic *topic, struct writer *writer, enum word_class class);

/* Made up on the spot. */
void name_make(struct writer *writer, char name[WORD_SIZE], int syllables); /* "Brandow" */
const char *first_name(struct writer *writer, bool female);

/* "zero" to "nine hundred and ninety-nine"; "first" to "ninety-ninth". */
void number_write(struct writer *writer, unsigned number);
void ordinal_write(struct writer *writer, unsigned number);

#endif
