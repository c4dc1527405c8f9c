/* Code of the built-in text: modules of a small typed language in two spellings, one document a call. */
#ifndef RUNNER_BUILTIN_CODE_H
#define RUNNER_BUILTIN_CODE_H

#include "runner/builtin_words.h"

void code_write(struct writer *writer, const struct lexicon *lexicon);

#endif
