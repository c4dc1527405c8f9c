/* Prose of the built-in text: stories, reports, letters, instructions and plays, one document a call. */
#ifndef RUNNER_BUILTIN_PROSE_H
#define RUNNER_BUILTIN_PROSE_H

#include "runner/builtin_words.h"

void prose_write(struct writer *writer, const struct lexicon *lexicon);

#endif
