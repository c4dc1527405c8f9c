/* From text to token streams: lengths, kinds, bytes a token stands for, leaks, notes, and a cache that is not believed
 * when it is damaged. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/dataset.h"
#include "runner/file.h"
#include "tests/folder_case.h"

static char cache[80], notes[4096];
static struct config config;

static void dataset_begin(void)
{
    folder_open();
    snprintf(cache, sizeof cache, "%s/cache/tokens", folder);
    notes[0] = 0;
    config_init(&config);
    config.tokenizer.kind = TOKENIZER_BYTE;
    config.model.context_length = 8;
}

TestSuite(dataset, .init = dataset_begin, .fini = folder_close);

static void note_keep(void *context, const char *text)
{
    (void)context;
    size_t used = strlen(notes);
    snprintf(notes + used, sizeof notes - used, "%s\n", text);
}

/* corpus and, unless NULL, validation: names in the folder. */
static bool prepare(const char *corpus, const char *validation, struct dataset *dataset, struct error *err)
{
    char *paths[2] = {memory_copy_text(corpus), memory_copy_text(validation ? validation : "")};
    struct data_spec spec = {
        .corpus = {.given = true, .paths = &paths[0], .path_count = 1, .folder = folder},
        .validation = {.given = validation != NULL, .paths = &paths[1], .path_count = 1, .folder = folder},
    };
    notes[0] = 0;
    bool good = dataset_prepare(&spec, &config, cache, note_keep, NULL, dataset, err);
    memory_free(paths[0]);
    memory_free(paths[1]);
    return good;
}

static void expect_refused(const char *corpus, const char *validation, const char *wanted)
{
    struct dataset dataset;
    struct error err = {""};
    cr_assert_not(prepare(corpus, validation, &dataset, &err), "it was accepted");
    cr_expect_not_null(strstr(err.text, wanted), "says '%s', not '%s'", err.text, wanted);
}

static void prepare_good(const char *corpus, const char *validation, struct dataset *dataset)
{
    struct error err = {""};
    cr_assert(prepare(corpus, validation, dataset, &err), "%s", err.text);
}

/* Letters that do not repeat themselves. */
static void letters_fill(char *text, size_t size)
{
    uint32_t state = 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 1664525 + 1013904223;
        text[i] = (char)('a' + (state >> 16) % 20);
    }
}

static bool stream_equal(const struct token_stream *a, const struct token_stream *b)
{
    return a->count == b->count && memcmp(a->tokens, b->tokens, a->count * sizeof *a->tokens) == 0 &&
           memcmp(a->bytes, b->bytes, a->count * sizeof *a->bytes) == 0;
}

Test(dataset, a_document_is_bos_tokens_eos_and_specials_stand_for_no_bytes)
{
    bytes_put("v.txt", "validation", 10);
    bytes_put("d.jsonl", "{\"text\": \"abcdef\"}\n{\"text\": \"gh\"}\n", 34);
    static const int32_t tokens[] = {257, 'a', 'b', 'c', 'd', 'e', 'f', 258, 257, 'g', 'h', 258};
    static const uint32_t bytes[] = {0, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0};
    struct dataset dataset;
    prepare_good("d.jsonl", "v.txt", &dataset);
    cr_assert_eq(dataset.train.count, 12);
    cr_expect_arr_eq(dataset.train.tokens, tokens, sizeof tokens);
    cr_expect_arr_eq(dataset.train.bytes, bytes, sizeof bytes);
    cr_expect(dataset.train_bytes == 8 && dataset.validation_bytes == 10);
    cr_expect_eq(dataset.split_count, 1);
    cr_expect_str_eq(dataset.splits[0].name, "validation");
    cr_expect_eq(dataset.splits[0].stream.count, 12);
    dataset_close(&dataset);
}

Test(dataset, the_first_nine_tenths_are_trained_on)
{
    char text[1001];
    for (int i = 0; i < 1001; i++)
        text[i] = (char)('a' + i * i % 26);
    bytes_put("t.txt", text, sizeof text);
    struct dataset dataset;
    prepare_good("t.txt", NULL, &dataset);
    cr_expect_eq(dataset.train_bytes, 900); /* floor(1001 * 0.9) */
    cr_expect_eq(dataset.validation_bytes, 101);
    dataset_close(&dataset);
}

Test(dataset, too_short_texts_are_refused_with_the_numbers_and_leave_nothing)
{
    bytes_put("long.txt", "0123456789", 10);
    bytes_put("empty.txt", "", 0);
    bytes_put("five.txt", "01234", 5);
    bytes_put("six.txt", "012345", 6);
    bytes_put("seven.txt", "0123456", 7);
    expect_refused("empty.txt", "long.txt", "data.corpus: no text in 'empty.txt' (1 empty, 0 binary, 0 hidden)");
    expect_refused("long.txt", "empty.txt", "data.validation: no text in 'empty.txt'");
    expect_refused("six.txt", "long.txt", "training text has 8 tokens; context_length 8 needs at least 9");
    expect_refused("long.txt", "five.txt", "validation text has 7 tokens; context_length 8 needs at least 9");
    expect_refused("six.txt", NULL, "training text has 7 tokens; context_length 8 needs at least 9");
    cr_expect_eq(access(cache, F_OK), -1, "the cache folder was made");
    struct dataset dataset;
    prepare_good("seven.txt", "seven.txt", &dataset); /* T + 1 tokens: one block */
    cr_expect_eq(token_stream_blocks(&dataset.train, 8), 1);
    cr_expect_eq(token_stream_blocks(&dataset.splits[0].stream, 8), 1);
    dataset_close(&dataset);
}

Test(dataset, only_a_cache_file_that_it_made_is_unmade)
{
    struct dataset made, found;
    char other[128];
    bytes_put("t.txt", "0123456789 and so on until it is long enough", 44);
    prepare_good("t.txt", "t.txt", &made);
    prepare_good("t.txt", "t.txt", &found);
    dataset_unmake(&found);
    cr_expect_eq(access(made.path, F_OK), 0, "it was there before");
    snprintf(other, sizeof other, "%s/other", cache);
    cr_assert_eq(link(made.path, other), 0);
    cr_assert_eq(unlink(made.path), 0);
    FILE *out = fopen(made.path, "w");
    cr_assert(out && fclose(out) == 0);
    dataset_unmake(&made);
    cr_expect_eq(access(made.path, F_OK), 0, "another stands in its place");
    cr_assert_eq(rename(other, made.path), 0);
    dataset_unmake(&made);
    cr_expect_eq(access(made.path, F_OK), -1);
    dataset_close(&made);
    dataset_close(&found);
}

Test(dataset, a_part_without_a_byte_is_refused_with_the_numbers)
{
    bytes_put("one.txt", "x", 1);
    expect_refused("one.txt", NULL, "training text has 0 tokens; context_length 8 needs at least 9");
}

Test(dataset, a_cached_text_can_be_too_short_for_another_context)
{
    bytes_put("t.txt", "0123456789", 10);
    struct dataset dataset;
    prepare_good("t.txt", "t.txt", &dataset);
    dataset_close(&dataset);
    config.model.context_length = 12;
    expect_refused("t.txt", "t.txt", "training text has 12 tokens; context_length 12 needs at least 13");
}

Test(dataset, a_fifo_and_what_is_missing_are_refused)
{
    char path[128];
    snprintf(path, sizeof path, "%s/fifo", folder);
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect_refused("fifo", NULL, "it is a FIFO, not a file");
    expect_refused("missing", NULL, "/missing': No such file or directory");
}

static void put_kinds(void)
{
    static const char lines[] = "{\"kind\": \"prose\", \"text\": \"once upon a time there was a word\"}\n"
                                "{\"kind\": \"code\", \"text\": \"int main(void) { return 0; } // ok\"}\n"
                                "{\"text\": \"neither of them, it is only a text\"}\n"
                                "{\"kind\": \"art\", \"text\": \"__/^^^--\"}\n";
    bytes_put("kinds.jsonl", lines, strlen(lines));
}

Test(dataset, each_kind_has_a_split_of_its_own_when_it_has_a_block)
{
    put_kinds();
    config.data.validation_fraction = 0.4;
    struct dataset dataset, opened;
    struct error err = {""};
    prepare_good("kinds.jsonl", NULL, &dataset);
    cr_assert_eq(dataset.split_count, 3);
    cr_expect_str_eq(dataset.splits[0].name, "validation");
    cr_expect_str_eq(dataset.splits[1].name, "code");
    cr_expect_str_eq(dataset.splits[2].name, "prose");
    cr_expect_not_null(strstr(notes, "kind 'art' is not evaluated by itself: its validation text has 6 tokens; "
                                     "context_length 8 needs at least 9"),
                       "%s", notes);
    cr_expect_eq(dataset.splits[1].stream.tokens[1], 'u', "validation of code starts at byte 19");
    cr_assert(dataset_open(dataset.path, 8, &opened, &err), "%s", err.text);
    cr_expect(opened.split_count == 3 && stream_equal(&opened.splits[2].stream, &dataset.splits[2].stream));
    dataset_close(&opened);
    cr_assert(dataset_open(dataset.path, 2, &opened, &err), "%s", err.text);
    cr_expect(opened.split_count == 4 && strcmp(opened.splits[1].name, "art") == 0);
    dataset_close(&opened);
    dataset_close(&dataset);
}

Test(dataset, a_word_only_in_the_last_tenth_is_in_no_merge_and_no_training_token)
{
    char text[4000];
    for (int i = 0; i < 3700; i++)
        text[i] = (char)(i % 6 == 5 ? ' ' : 'a' + i / 6 * 7 % 20 + i % 3);
    for (int i = 3700; i < 4000; i++)
        text[i] = "zyzzy "[i % 6];
    bytes_put("t.txt", text, sizeof text);
    config.tokenizer.kind = TOKENIZER_BPE;
    config.tokenizer.vocab_size = 400;
    struct dataset dataset;
    prepare_good("t.txt", NULL, &dataset);
    cr_expect_gt(tokenizer_merge_count(dataset.tokenizer), 10);
    for (int32_t id = 259; id < tokenizer_vocab_size(dataset.tokenizer); id++) {
        struct text token = tokenizer_token(dataset.tokenizer, id);
        cr_expect(!memchr(token.bytes, 'z', token.size), "token %d has a z", id);
    }
    size_t found = 0;
    for (size_t i = 0; i < dataset.train.count; i++)
        cr_assert_neq(dataset.train.tokens[i], 'z');
    for (size_t i = 0; i < dataset.splits[0].stream.count; i++)
        found += dataset.splits[0].stream.tokens[i] == 'z';
    cr_expect_gt(found, 100);
    dataset_close(&dataset);
}

Test(dataset, bytes_of_tokens_add_up_also_when_characters_are_unknown)
{
    static const char train[] = "abcabcabcabc", validation[] = "ab\xe6\x97\xa5\xff"
                                                               "cabcabc";
    bytes_put("t.txt", train, strlen(train));
    bytes_put("v.txt", validation, strlen(validation));
    static const int kinds[] = {TOKENIZER_BYTE, TOKENIZER_CHAR, TOKENIZER_BPE};
    for (size_t i = 0; i < 3; i++) {
        config.tokenizer.kind = kinds[i];
        config.tokenizer.vocab_size = 260;
        config.model.context_length = 4;
        struct dataset dataset;
        prepare_good("t.txt", "v.txt", &dataset);
        const struct token_stream *stream = &dataset.splits[0].stream;
        size_t sum = 0;
        for (size_t j = 0; j < stream->count; j++)
            sum += stream->bytes[j];
        cr_expect_eq(sum, strlen(validation), "tokenizer %d", kinds[i]);
        if (kinds[i] == TOKENIZER_CHAR) {
            cr_expect_eq(stream->bytes[3], 3, "an unknown character is as long as what it stands for");
            cr_expect_not_null(strstr(notes, "2 characters of the validation text do not occur in the training text"),
                               "%s", notes);
        }
        dataset_close(&dataset);
    }
}

Test(dataset, a_vocabulary_that_cannot_be_filled_is_told_each_time)
{
    bytes_put("t.txt", "abab cdcd abab cdcd abab cdcd abab cdcd", 39);
    config.tokenizer.kind = TOKENIZER_BPE;
    config.tokenizer.vocab_size = 5000;
    for (int i = 0; i < 2; i++) { /* built, then from the cache */
        struct dataset dataset;
        char wanted[64];
        prepare_good("t.txt", "t.txt", &dataset);
        snprintf(wanted, sizeof wanted, "asked 5000, got %d", (int)tokenizer_vocab_size(dataset.tokenizer));
        cr_expect_not_null(strstr(notes, wanted), "%s", notes);
        cr_expect_lt(tokenizer_vocab_size(dataset.tokenizer), 270);
        dataset_close(&dataset);
    }
    config.tokenizer.vocab_size = 258;
    expect_refused("t.txt", "t.txt", "259");
}

Test(dataset, a_token_may_stand_for_more_bytes_than_sixteen_bits_count)
{
    enum { LENGTH = 1 << 19 };
    char *text = memory_alloc(LENGTH, 1);
    memset(text, 'a', LENGTH);
    bytes_put("t.txt", text, LENGTH);
    memory_free(text);
    config.model.context_length = 2;
    config.tokenizer.kind = TOKENIZER_BPE;
    config.tokenizer.vocab_size = 300;
    struct dataset dataset;
    prepare_good("t.txt", NULL, &dataset);
    uint64_t sum = 0, most = 0;
    for (size_t i = 0; i < dataset.train.count; i++) {
        sum += dataset.train.bytes[i];
        most = dataset.train.bytes[i] > most ? dataset.train.bytes[i] : most;
    }
    cr_expect_eq(sum, dataset.train_bytes);
    cr_expect_gt(most, UINT16_MAX);
    dataset_close(&dataset);
}

Test(dataset, a_text_that_repeats_a_paragraph_gets_a_warning)
{
    static const char paragraph[] = "It was the best of times, it was the worst of times, it was the age of wisdom, "
                                    "it was the age of foolishness. ";
    char text[40 * sizeof paragraph];
    size_t used = 0;
    for (int i = 0; i < 40; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", paragraph);
    bytes_put("t.txt", text, used);
    struct dataset dataset;
    prepare_good("t.txt", NULL, &dataset);
    cr_expect_not_null(strstr(notes, "100 % of the validation text occurs in the training text too"), "%s", notes);
    dataset_close(&dataset);
}

/* Twenty letters at random have log2(20) = 4.322 bits each; with a line break after every 50th, which counts for
 * nothing, 50 / 51 of that a byte. 2,000 letters of the validation part lose up to (20 - 1) / (2 * 2000 ln 2) = 0.007
 * by chance, and about that again. */
Test(dataset, letters_that_say_nothing_about_each_other_have_a_floor_that_is_told)
{
    enum { SIZE = 20400 };
    static char text[SIZE];
    letters_fill(text, SIZE);
    for (size_t i = 50; i < SIZE; i += 51)
        text[i] = '\n';
    bytes_put("t.txt", text, SIZE);
    struct dataset dataset;
    prepare_good("t.txt", NULL, &dataset);
    cr_expect_float_eq(dataset.floor, 50.0 / 51 * log2(20), 0.014);
    cr_expect_not_null(strstr(notes, "no model gets below 4.2"), "%s", notes);
    dataset_close(&dataset);
    prepare_good("t.txt", NULL, &dataset); /* from the cache */
    cr_expect_float_eq(dataset.floor, 50.0 / 51 * log2(20), 0.014);
    dataset_close(&dataset);
    bytes_put("short.txt", text, 3000); /* 20 * 20 * 8 pairs are not there */
    prepare_good("short.txt", NULL, &dataset);
    cr_expect_eq(dataset.floor, 0);
    dataset_close(&dataset);
    for (size_t i = 7; i < SIZE; i++) /* every tenth letter is the one seven before it */
        text[i] = i % 10 ? text[i] : text[i - 7];
    bytes_put("t.txt", text, SIZE);
    prepare_good("t.txt", NULL, &dataset);
    cr_expect_eq(dataset.floor, 0);
    cr_expect_str_empty(notes, "%s", notes);
    dataset_close(&dataset);
}

/* Prepares t.txt with this change of its cache file made, and expects the same streams and a note. */
static void expect_rebuilt(const struct dataset *good, long at, const char *what)
{
    struct dataset dataset;
    struct stat status;
    char byte;
    FILE *file = fopen(good->path, "r+b");
    cr_assert_not_null(file);
    stat(good->path, &status);
    if (at >= 0) {
        fseek(file, at, SEEK_SET);
        cr_assert_eq(fread(&byte, 1, 1, file), 1);
        byte ^= 4;
        fseek(file, at, SEEK_SET);
        cr_assert_eq(fwrite(&byte, 1, 1, file), 1);
    } else
        cr_assert_eq(ftruncate(fileno(file), at == -1 ? 0 : status.st_size + at), 0);
    fclose(file);
    prepare_good("t.txt", NULL, &dataset);
    cr_expect_not_null(strstr(notes, "it is made anew"), "%s: %s", what, notes);
    cr_expect(stream_equal(&dataset.train, &good->train), "%s", what);
    dataset_close(&dataset);
    prepare_good("t.txt", NULL, &dataset);
    cr_expect_str_empty(notes, "%s: %s", what, notes);
    dataset_close(&dataset);
}

Test(dataset, a_damaged_cache_is_made_anew_and_never_believed)
{
    char text[2000];
    letters_fill(text, sizeof text);
    bytes_put("t.txt", text, sizeof text);
    struct dataset good, copy;
    prepare_good("t.txt", NULL, &good);
    /* Kept apart: the mapped file is changed below. */
    copy = good;
    copy.train.tokens = (const int32_t *)memory_copy_bytes(good.train.tokens, good.train.count * sizeof(int32_t));
    copy.train.bytes = (const uint32_t *)memory_copy_bytes(good.train.bytes, good.train.count * sizeof(uint32_t));
    long size = (long)good.map_size;
    for (long at = 0; at < size; at += at < 4000 ? 97 : 997)
        expect_rebuilt(&copy, at, "a changed byte");
    expect_rebuilt(&copy, size - 1, "the last byte");
    expect_rebuilt(&copy, -1, "nothing left");
    expect_rebuilt(&copy, -2, "two bytes short");
    expect_rebuilt(&copy, -size / 2, "half of it");
    memory_free((void *)(uintptr_t)copy.train.tokens);
    memory_free((void *)(uintptr_t)copy.train.bytes);
    dataset_close(&good);
}

Test(dataset, opening_what_is_no_cache_is_an_error_that_names_it)
{
    struct dataset dataset;
    struct error err = {""};
    char path[128];
    snprintf(path, sizeof path, "%s/x.tokens", folder);
    cr_expect_not(dataset_open(path, 8, &dataset, &err));
    cr_expect_not_null(strstr(err.text, "/x.tokens': No such file"), "%s", err.text);
    bytes_put("x.tokens", "hello", 5);
    cr_expect_not(dataset_open(path, 8, &dataset, &err));
    cr_expect_not_null(strstr(err.text, "/x.tokens' is damaged: it is no token cache"), "%s", err.text);
}

Test(dataset, settings_that_matter_make_another_file_and_others_do_not)
{
    bytes_put("t.txt", "abab cdcd abab cdcd abab cdcd abab cdcd", 39);
    char paths[4][sizeof((struct dataset *)0)->path];
    for (int i = 0; i < 4; i++) {
        struct dataset dataset;
        config.tokenizer.kind = i < 2 ? TOKENIZER_BYTE : TOKENIZER_BPE;
        config.tokenizer.vocab_size = 259 + i;
        config.model.context_length = 8 + i;
        prepare_good("t.txt", "t.txt", &dataset);
        snprintf(paths[i], sizeof paths[i], "%s", dataset.path);
        dataset_close(&dataset);
    }
    cr_expect_str_eq(paths[0], paths[1]);
    cr_expect_str_neq(paths[1], paths[2]);
    cr_expect_str_neq(paths[2], paths[3]);
}

Test(dataset, several_processes_may_prepare_the_same_at_once)
{
    enum { PROCESSES = 4 };
    char text[20000];
    letters_fill(text, sizeof text);
    bytes_put("t.txt", text, sizeof text);
    config.tokenizer.kind = TOKENIZER_BPE;
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        cr_assert_geq(children[i], 0);
        if (children[i] == 0) {
            struct dataset dataset;
            struct error err;
            _exit(prepare("t.txt", NULL, &dataset, &err) && !strstr(notes, "anew") ? 0 : 1);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        waitpid(children[i], &status, 0);
        cr_expect_eq(status, 0);
    }
    struct dataset dataset;
    prepare_good("t.txt", NULL, &dataset);
    cr_expect_null(strstr(notes, "anew"), "%s", notes);
    dataset_close(&dataset);
}
