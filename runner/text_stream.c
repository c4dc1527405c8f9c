/* open_memstream() can only fail for want of memory, which ends the program as everywhere. */
#include "runner/text_stream.h"

#include <stdlib.h>

#include "core/memory.h"

void text_stream_open(struct text_stream *stream)
{
    stream->out = open_memstream(&stream->text, &stream->size);
    if (!stream->out)
        abort();
}

char *text_stream_take(struct text_stream *stream)
{
    if (fclose(stream->out) != 0)
        abort();
    char *text = memory_copy_bytes(stream->text, stream->size);
    free(stream->text);
    return text;
}
