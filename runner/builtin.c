/* The built-in text: documents of both kinds in turn, each from a stream of chance of its own. */
#include "runner/builtin.h"

#include "core/memory.h"
#include "runner/builtin_code.h"
#include "runner/builtin_prose.h"

static const size_t bytes_per_kind = 2600000;

static const struct {
    const char *kind;
    void (*write)(struct writer *writer, const struct lexicon *lexicon);
} kinds[] = {{"code", code_write}, {"prose", prose_write}};

void builtin_documents(struct corpus *corpus)
{
    struct lexicon lexicon;
    size_t written[2] = {0};
    *corpus = (struct corpus){0};
    lexicon_init(&lexicon);
    for (size_t number = 0; written[0] < bytes_per_kind || written[1] < bytes_per_kind; number++) {
        size_t kind = written[1] < written[0]; /* they keep pace */
        struct writer writer;
        writer_start(&writer, kinds[kind].kind, number);
        kinds[kind].write(&writer, &lexicon);
        written[kind] += writer.size;
        corpus_add(corpus, writer.bytes, writer.size, kinds[kind].kind, NULL);
    }
    lexicon_release(&lexicon);
}
