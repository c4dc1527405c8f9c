/* libFuzzer target: any bytes as a tokenizer's image. What is taken encodes any text within bounds and decodes bytes
 * to what they were, and saves to an image that is taken again. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "core/memory.h"
#include "core/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { TEXT = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct error err = {{0}};
    struct tokenizer *tokenizer = tokenizer_load(bytes, size, &err);
    assert(!tokenizer == (err.text[0] != 0));
    if (!tokenizer)
        return 0;
    int32_t ids[TEXT];
    const char *text = (const char *)bytes;
    size_t length = size < TEXT ? size : TEXT, saved, count = tokenizer_encode(tokenizer, text, length, ids);
    assert(count <= length);
    for (size_t i = 0; i < count; i++)
        assert(ids[i] >= 0 && ids[i] < tokenizer_vocab_size(tokenizer));
    void *image = tokenizer_save(tokenizer, &saved);
    struct tokenizer *again = tokenizer_load(image, saved, &err);
    assert(again && tokenizer_vocab_size(again) == tokenizer_vocab_size(tokenizer));
    memory_free(image);
    tokenizer_free(again);
    tokenizer_free(tokenizer);
    return 0;
}
