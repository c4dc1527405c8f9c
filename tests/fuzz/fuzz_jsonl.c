/* libFuzzer target: any bytes as a corpus of .jsonl lines, read and split. No byte of a text is lost or doubled. */
#include <string.h>

#include "core/memory.h"
#include "runner/corpus.h"
#include "tests/fuzz/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static size_t bytes_of(const struct document *documents, size_t count)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += documents[i].text.size;
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *path = memory_copy_text(fuzz_file("", "fuzz.jsonl", bytes, size)), folder[] = "/";
    char hex[HASH_TEXT_SIZE];
    struct data_source source = {.folder = folder, .paths = &path, .path_count = 1};
    struct corpus corpus;
    struct corpus_split split;
    struct error err = {{0}};
    bool good = corpus_read(&source, &corpus, NULL, NULL, &err);
    assert(good == (err.text[0] == 0));
    if (good) {
        corpus_split_fraction(&corpus, 0.25, &split);
        assert(bytes_of(split.train, split.train_count) + bytes_of(split.validation, split.validation_count) ==
               bytes_of(corpus.documents, corpus.count));
        corpus_split_hash(&split, hex);
        double overlap = corpus_split_overlap(&split);
        assert(overlap >= 0 && overlap <= 1);
        corpus_split_release(&split);
    }
    corpus_release(&corpus);
    memory_free(path);
    return 0;
}
