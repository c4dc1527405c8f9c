/* The text that comes with the program: two kinds, "code" and "prose", made up by rules, the same bytes everywhere.
 *
 * It is there to tell parts of a decoder apart without a download, so it has what they differ on: structure close by
 * (agreement, spelling, syntax) and far away (a person's pronoun, a function's parameters, hundreds of tokens back).
 * Its bytes are part of the identity of every run on it: changing one makes all of them new. */
#ifndef RUNNER_BUILTIN_H
#define RUNNER_BUILTIN_H

#include "runner/corpus.h"

/* All documents, code and prose in turn. Owner: caller, corpus_release(). */
void builtin_documents(struct corpus *corpus);

#endif
