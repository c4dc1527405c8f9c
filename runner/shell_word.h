/* A text as one word of a command line that somebody may copy into a shell. */
#ifndef RUNNER_SHELL_WORD_H
#define RUNNER_SHELL_WORD_H

/* 'it'\''s'; as it is when nothing in it needs that. Owner: caller, memory_free(). */
char *shell_word(const char *text);

#endif
