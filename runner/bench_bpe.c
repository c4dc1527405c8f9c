/* Byte-pair encoding of a large text: made up, learned from by a child, encoded here. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/bpe.h"
#include "core/memory.h"
#include "runner/bench_rows.h"
#include "runner/builtin_writer.h"
#include "runner/clock.h"
#include "runner/file.h"

enum { TEXT_BYTES = 100000000, LEARNED_BYTES = 8000000, ENCODED_BYTES = 20000000, VOCABULARY = 8192 };
enum { WORDS = 60000, WORD_SIZE = 24, SENTENCE = 14 };

/* One word of syllables, the same for the same number. */
static void word_make(struct writer *chance, char word[WORD_SIZE])
{
    static const char *const starts[] = {"b", "br", "c", "d", "f", "g", "gr", "l", "m", "n", "p", "s", "st", "t", "v"};
    static const char *const middles[] = {"a", "e", "i", "o", "u", "ea", "io", "ou"};
    static const char *const ends[] = {"", "n", "r", "s", "l", "nd", "th", "ck", "ll"};
    enum { STARTS = sizeof starts / sizeof *starts, MIDDLES = sizeof middles / sizeof *middles };
    enum { ENDS = sizeof ends / sizeof *ends };
    size_t used = 0;
    uint32_t syllables = writer_between(chance, 1, 3);
    for (uint32_t i = 0; i < syllables; i++)
        used += (size_t)snprintf(word + used, WORD_SIZE - used, "%s%s%s", starts[writer_below(chance, STARTS)],
                                 middles[writer_below(chance, MIDDLES)], ends[writer_below(chance, ENDS)]);
}

/* Sentences of words that come as often as their rank says, and now and then a number. Owner: caller. */
static char *text_make(void)
{
    struct writer writer;
    struct zipf zipf;
    char(*words)[WORD_SIZE] = memory_alloc(WORDS, sizeof *words);
    writer_start(&writer, "bench/bpe", 0);
    zipf_init(&zipf, WORDS);
    for (size_t i = 0; i < WORDS; i++)
        word_make(&writer, words[i]);
    while (writer.size < TEXT_BYTES) {
        uint32_t length = writer_between(&writer, 3, SENTENCE);
        for (uint32_t i = 0; i < length; i++) {
            if (writer_chance(&writer, 2))
                writer_format(&writer, "%" PRIu32, writer_below(&writer, 10000));
            else
                writer_text(&writer, words[zipf_draw(&zipf, &writer)]);
            writer_text(&writer, i + 1 < length ? " " : writer_chance(&writer, 20) ? ".\n" : ". ");
        }
    }
    zipf_release(&zipf);
    memory_free(words);
    return writer.bytes;
}

static bool encoding_time(struct bench *bench, const char *text, struct error *err)
{
    enum { TRIES = 3 };
    struct text learned = {text, LEARNED_BYTES};
    size_t count;
    struct bpe_merge *merges = bpe_train(&learned, 1, VOCABULARY, 2, &count, err);
    struct bpe *bpe = merges ? bpe_create(merges, count, err) : NULL;
    memory_free(merges);
    if (!bpe)
        return false;
    int32_t *ids = memory_alloc(ENCODED_BYTES, sizeof *ids);
    double best = INFINITY;
    for (int i = 0; i < TRIES; i++) {
        double start = seconds_now(), seconds;
        bpe_encode(bpe, text, ENCODED_BYTES, ids);
        seconds = seconds_now() - start;
        best = seconds < best ? seconds : best;
    }
    bench->bpe_encode_rate = ENCODED_BYTES / best;
    memory_free(ids);
    bpe_free(bpe);
    return true;
}

static bool training_time(struct bench *bench, const char *text, struct error *err)
{
    char vocabulary[16], *path = bench_lab_path(&bench->lab, "large.txt");
    struct bench_usage usage;
    snprintf(vocabulary, sizeof vocabulary, "%d", VOCABULARY);
    bool good = file_write(path, text, TEXT_BYTES, err) &&
                bench_lab_run(
                    &bench->lab,
                    (const char *const[]){"tokenizer", "large.txt", "--kind", "bpe", "--vocab-size", vocabulary, NULL},
                    &usage, err);
    memory_free(path);
    bench_lab_remove(&bench->lab, "large.txt");
    if (!good)
        return false;
    bench->bpe_train_seconds = usage.wall;
    bench->bpe_memory = (double)usage.peak_memory / TEXT_BYTES;
    return true;
}

static bool bpe_measure(struct bench *bench, struct bench_figure *figure)
{
    struct error err;
    if (bench->bpe_done)
        return true;
    if (!bench_lab_ready(bench, figure))
        return false;
    char *text = text_make();
    bench->bpe_done = encoding_time(bench, text, &err) && training_time(bench, text, &err);
    memory_free(text);
    if (!bench->bpe_done)
        bench_absent(figure, "%s", err.text);
    return bench->bpe_done;
}

void bench_measure_bpe_training(struct bench *bench, int64_t unused, struct bench_figure *figure)
{
    (void)unused;
    if (bpe_measure(bench, figure))
        bench_value(figure, bench->bpe_train_seconds,
                    "`runner tokenizer` on %d MB of made-up sentences, one core, reading included",
                    TEXT_BYTES / 1000000);
}

void bench_measure_bpe_memory(struct bench *bench, int64_t unused, struct bench_figure *figure)
{
    (void)unused;
    if (bpe_measure(bench, figure))
        bench_value(figure, bench->bpe_memory, "peak of the same process, the text itself included");
}

void bench_measure_bpe_encoding(struct bench *bench, int64_t unused, struct bench_figure *figure)
{
    (void)unused;
    if (bpe_measure(bench, figure))
        bench_value(figure, bench->bpe_encode_rate * 1e-6, "%d MB of it with %d tokens, one core, best of three",
                    ENCODED_BYTES / 1000000, VOCABULARY);
}
