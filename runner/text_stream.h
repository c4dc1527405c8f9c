/* Text put together with fprintf() and handed over as one block of memory.h. */
#ifndef RUNNER_TEXT_STREAM_H
#define RUNNER_TEXT_STREAM_H

#include <stddef.h>
#include <stdio.h>

struct text_stream {
    FILE *out;
    char *text; /* private */
    size_t size;
};

void text_stream_open(struct text_stream *stream);

/* Closes it. Owner: caller, memory_free(). */
char *text_stream_take(struct text_stream *stream);

#endif
