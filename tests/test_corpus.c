/* Reading text: order, kinds, what is left out and what is refused; the split and its hash. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/corpus.h"
#include "runner/file.h"
#include "tests/folder_case.h"

static char notes[4096];

TestSuite(corpus, .init = folder_open, .fini = folder_close);

static void note_keep(void *context, const char *text)
{
    (void)context;
    size_t used = strlen(notes);
    snprintf(notes + used, sizeof notes - used, "%s\n", text);
}

static bool read_paths(const char *first, const char *second, struct corpus *corpus, struct error *err)
{
    char *paths[2] = {memory_copy_text(first), memory_copy_text(second ? second : "")};
    struct data_source source = {.given = true, .paths = paths, .path_count = second ? 2 : 1, .folder = folder};
    bool good = corpus_read(&source, corpus, note_keep, NULL, err);
    memory_free(paths[0]);
    memory_free(paths[1]);
    return good;
}

/* "text|text:kind|..." of what the path reads as. */
static void expect_read(const char *path, const char *wanted)
{
    struct corpus corpus;
    struct error err = {""};
    char got[1024] = "";
    size_t used = 0;
    cr_assert(read_paths(path, NULL, &corpus, &err), "%s", err.text);
    for (size_t i = 0; i < corpus.count && used < sizeof got; i++) {
        const struct document *document = &corpus.documents[i];
        used += (size_t)snprintf(got + used, sizeof got - used, "%s%.*s%s%s", i ? "|" : "", (int)document->text.size,
                                 document->text.bytes, document->kind ? ":" : "", document->kind ? document->kind : "");
    }
    cr_expect_str_eq(got, wanted, "'%s' reads as '%s', not '%s'", path, got, wanted);
    corpus_release(&corpus);
}

static void expect_refused(const char *path, const char *wanted)
{
    struct corpus corpus;
    struct error err = {""};
    cr_expect_not(read_paths(path, NULL, &corpus, &err), "'%s' was read", path);
    cr_expect_not_null(strstr(err.text, wanted), "'%s' says '%s', not '%s'", path, err.text, wanted);
}

Test(corpus, files_of_a_folder_come_in_the_order_of_their_paths)
{
    file_put("t/b.txt", "B");
    file_put("t/a/z.md", "AZ");
    file_put("t/a-b.c", "AB");
    file_put("t/a.txt", "A");
    expect_read("t", "AB|A|AZ|B");
    expect_read("t/*.txt", "A|B");
    expect_read("t/[ab]*", "AB|A|AZ|B");
    expect_read("t/b.txt", "B");
    cr_expect_str_empty(notes);
}

Test(corpus, a_list_keeps_its_order_and_a_file_read_twice_is_noted)
{
    struct corpus corpus;
    struct error err = {""};
    file_put("t/b", "B");
    file_put("t/a", "A");
    cr_assert(read_paths("t/b", "t", &corpus, &err), "%s", err.text);
    cr_assert_eq(corpus.count, 3);
    cr_expect(corpus.documents[0].text.bytes[0] == 'B' && corpus.documents[1].text.bytes[0] == 'A');
    cr_expect_not_null(strstr(notes, "it is read twice"), "%s", notes);
    corpus_release(&corpus);
}

Test(corpus, hidden_binary_and_empty_files_are_left_out_with_a_note)
{
    file_put("t/.git/x", "hidden");
    file_put("t/.y", "hidden");
    bytes_put("t/picture", "P\0NG", 4);
    file_put("t/nothing", "");
    file_put("t/text", "T");
    expect_read("t", "T");
    cr_expect_not_null(strstr(notes, "2 hidden files or folders (names starting with a dot) left out"), "%s", notes);
    cr_expect_not_null(strstr(notes, "1 binary file (a zero byte in the first 8192) left out"), "%s", notes);
    cr_expect_not_null(strstr(notes, "1 empty text left out"), "%s", notes);
}

Test(corpus, loops_of_links_end)
{
    file_put("t/a/text", "T");
    char link[128];
    snprintf(link, sizeof link, "%s/t/a/again", folder);
    cr_assert_eq(symlink("../../t", link), 0);
    expect_read("t", "T");
    cr_expect_not_null(strstr(notes, "1 link to a folder already read left out"), "%s", notes);
}

Test(corpus, characters_of_globs_in_the_folder_or_in_a_file_that_is_there_are_meant_themselves)
{
    file_put("t[1]/a*b.txt", "star");
    file_put("t[1]/axb.txt", "x");
    expect_read("t[1]/a*b.txt", "star");
    size_t length = strlen(folder);
    snprintf(folder + length, sizeof folder - length, "/t[1]");
    expect_read("ax?.txt", "x");
    folder[length] = 0;
}

Test(corpus, what_cannot_be_read_is_named)
{
    char path[128];
    file_put("t/empty", "");
    snprintf(path, sizeof path, "%s/e", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/f/fifo", folder);
    file_put("f/a", "A");
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect_refused("none.txt", "/none.txt': No such file or directory");
    expect_refused("f/fifo", "/f/fifo': it is a FIFO, not a file");
    expect_refused("f", "/f/fifo': it is a FIFO, not a file");
    expect_refused("/dev/null", "cannot read '/dev/null': it is a device, not a file");
    expect_refused("*.none", "/*.none'");
    expect_refused("f/**/a", "'**' in 'f/**/a' is not understood");
    expect_refused("e", "no text in 'e' (0 empty, 0 binary, 0 hidden)");
    expect_refused("t", "no text in 't' (1 empty, 0 binary, 0 hidden)");
    expect_refused("", "an empty path names no file");
}

Test(corpus, a_folder_without_permission_is_refused)
{
    if (geteuid() == 0) /* who may read everything sees no permission */
        cr_skip_test("needs a user who is not root");
    char path[128];
    file_put("t/closed/a", "A");
    snprintf(path, sizeof path, "%s/t/closed", folder);
    chmod(path, 0);
    expect_refused("t", "/t/closed': Permission denied");
    chmod(path, 0700);
}

Test(corpus, lines_of_jsonl_are_documents_with_kinds)
{
    file_put("d.jsonl", "\xef\xbb\xbf{\"text\": \"a\\u00e9\\n\", \"kind\": \"code\", \"source\": 3}\r\n"
                        "\n  \n"
                        "{\"kind\": null, \"text\": \"b\"}\n{\"text\": \"\"}\n{\"text\":\"c\"}");
    expect_read("d.jsonl", "a\xc3\xa9\n:code|b|c");
    file_put("z.jsonl", "{\"text\": \"a\\u0000b\"}");
    struct corpus corpus;
    cr_assert(read_paths("z.jsonl", NULL, &corpus, NULL));
    cr_expect(corpus.documents[0].text.size == 3 && memcmp(corpus.documents[0].text.bytes, "a\0b", 3) == 0);
    corpus_release(&corpus);
}

Test(corpus, a_bad_line_of_jsonl_is_refused_with_its_number)
{
    static const char *const rows[][2] = {
        {"{\"text\": 3}", "\"text\" is not a string"},
        {"{\"kind\": \"code\"}", "\"text\" is missing"},
        {"[1]", "not a JSON object"},
        {"3", "not a JSON object"},
        {"plain", "invalid token"},
        {"{\"text\": \"a\"", "'}' expected"},
        {"{\"text\": \"a\"} x", "end of file expected"},
        {"{\"text\": \"a\", \"text\": \"b\"}", "duplicate object key"},
        {"{\"text\": \"\xff\"}", "unable to decode byte 0xff"},
        {"{\"text\": \"\\ud800\"}", "invalid Unicode"},
        {"{\"text\": \"a\", \"kind\": 3}", "\"kind\" is not a string"},
        {"{\"text\": \"a\", \"kind\": \"\"}", "kind is empty"},
        {"{\"text\": \"a\", \"kind\": \"validation\"}", "kind 'validation' is the name of a split"},
        {"{\"text\": \"a\", \"kind\": \"x\\ny\"}", "control character \\x0a"},
        {"{\"text\": \"a\", \"kind\": \"x\\u0000y\"}", "control character \\x00"},
        {"{\"text\": \"a\", \"kind\": \"1234567890123456789012345678901234567890123456789012345678901234\"}",
         "is longer than 63 bytes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256], wanted[96];
        snprintf(text, sizeof text, "{\"text\": \"good\"}\n\n%s\n", rows[i][0]);
        file_put("d.jsonl", text);
        expect_refused("d.jsonl", rows[i][1]);
        snprintf(wanted, sizeof wanted, "%s/d.jsonl:3: ", folder);
        expect_refused("d.jsonl", wanted);
    }
}

Test(corpus, a_deeply_nested_line_is_refused)
{
    enum { DEPTH = 100000 };
    char *line = memory_alloc(DEPTH + 1, 1);
    memset(line, '[', DEPTH);
    file_put("d.jsonl", line);
    memory_free(line);
    expect_refused("d.jsonl", "d.jsonl:1: maximum parsing depth reached");
}

Test(corpus, seventeen_kinds_are_too_many)
{
    char text[1024];
    size_t used = 0;
    for (int i = 0; i < 17; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "{\"text\": \"a\", \"kind\": \"k%d\"}\n", i);
    file_put("d.jsonl", text);
    expect_refused("d.jsonl", "d.jsonl:17: kind 'k16' is one too many; at most 16 fit");
}

/* Documents and their kinds in turn, up to NULL. */
static void corpus_make(struct corpus *corpus, const char *const *rows)
{
    memset(corpus, 0, sizeof *corpus);
    for (; *rows; rows += 2)
        cr_assert(corpus_add(corpus, memory_copy_text(rows[0]), strlen(rows[0]), *rows[1] ? rows[1] : NULL, NULL));
}

static void expect_pieces(const struct document *pieces, size_t count, const char *wanted)
{
    char got[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(got + used, sizeof got - used, "%s%.*s", i ? "|" : "", (int)pieces[i].text.size,
                                 pieces[i].text.bytes);
    cr_expect_str_eq(got, wanted);
}

Test(corpus, the_last_bytes_of_each_kind_are_validation)
{
    static const char *const rows[] = {"0123456789", "", "abcdefgh", "code", "ABCDEFGHIJ", "", "xy", "code", NULL};
    struct corpus corpus;
    struct corpus_split split;
    corpus_make(&corpus, rows);
    corpus_split_fraction(&corpus, 0.25, &split);
    expect_pieces(split.train, split.train_count, "0123456789|abcdefg|ABCDE");
    expect_pieces(split.validation, split.validation_count, "h|FGHIJ|xy");
    corpus_split_release(&split);
    corpus_release(&corpus);
}

Test(corpus, a_cut_does_not_break_a_character)
{
    static const char *const rows[] = {"ab\xe6\x97\xa5"
                                       "cdefg",
                                       "", NULL};
    static const struct {
        double fraction;
        const char *train;
    } cuts[] = {{0.75, "ab"}, {0.65, "ab"}, {0.55, "ab"}, {0.5, "ab\xe6\x97\xa5"}, {0.85, "a"}};
    struct corpus corpus;
    corpus_make(&corpus, rows);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        struct corpus_split split;
        corpus_split_fraction(&corpus, cuts[i].fraction, &split);
        expect_pieces(split.train, split.train_count, cuts[i].train);
        corpus_split_release(&split);
    }
    corpus_release(&corpus);
}

Test(corpus, bytes_that_are_no_characters_are_cut_where_they_are)
{
    static const char *const rows[] = {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", "", NULL};
    struct corpus corpus;
    struct corpus_split split;
    corpus_make(&corpus, rows);
    corpus_split_fraction(&corpus, 0.5, &split);
    cr_expect(split.train_count == 1 && split.train[0].text.size == 5);
    corpus_split_release(&split);
    corpus_release(&corpus);
}

static void split_hash_of(const char *const *rows, double fraction, char hex[HASH_TEXT_SIZE])
{
    struct corpus corpus;
    struct corpus_split split;
    corpus_make(&corpus, rows);
    corpus_split_fraction(&corpus, fraction, &split);
    corpus_split_hash(&split, hex);
    corpus_split_release(&split);
    corpus_release(&corpus);
}

Test(corpus, the_hash_tells_bytes_kinds_documents_order_and_splits_apart)
{
    static const char *const variants[][5] = {
        {"0123456789", "", "abcd", "code", NULL},  {"0123456788", "", "abcd", "code", NULL},
        {"0123456789", "", "abcd", "prose", NULL}, {"0123456789", "", "abcd", "", NULL},
        {"0123456789a", "", "bcd", "code", NULL},  {"abcd", "code", "0123456789", "", NULL},
        {"0123456789", "", NULL, NULL, NULL},
    };
    enum { VARIANTS = sizeof variants / sizeof *variants };
    char hashes[VARIANTS + 1][HASH_TEXT_SIZE], again[HASH_TEXT_SIZE];
    for (size_t i = 0; i < VARIANTS; i++)
        split_hash_of(variants[i], 0.5, hashes[i]);
    split_hash_of(variants[0], 0.25, hashes[VARIANTS]);
    for (size_t i = 0; i <= VARIANTS; i++)
        for (size_t j = 0; j < i; j++)
            cr_expect_str_neq(hashes[i], hashes[j], "%zu and %zu", i, j);
    split_hash_of(variants[0], 0.5, again);
    cr_expect_str_eq(hashes[0], again);
}

Test(corpus, the_hash_does_not_know_the_folder)
{
    static const char *const names[] = {"one", "two/deeper"};
    char hashes[2][HASH_TEXT_SIZE];
    for (size_t i = 0; i < 2; i++) {
        char name[64];
        struct corpus corpus;
        struct corpus_split split;
        snprintf(name, sizeof name, "%s/%s", names[i], i ? "a" : "b");
        file_put(name, i ? "first" : "second");
        snprintf(name, sizeof name, "%s/%s", names[i], i ? "b" : "a");
        file_put(name, i ? "second" : "first");
        cr_assert(read_paths(names[i], NULL, &corpus, NULL));
        corpus_split_fraction(&corpus, 0.1, &split);
        corpus_split_hash(&split, hashes[i]);
        corpus_split_release(&split);
        corpus_release(&corpus);
    }
    cr_expect_str_eq(hashes[0], hashes[1]);
}

static double overlap_of(const char *train, const char *validation)
{
    const char *const rows[2][3] = {{train, "", NULL}, {validation, "", NULL}};
    struct corpus corpora[2];
    struct corpus_split split;
    corpus_make(&corpora[0], rows[0]);
    corpus_make(&corpora[1], rows[1]);
    corpus_split_given(&corpora[0], &corpora[1], &split);
    double overlap = corpus_split_overlap(&split);
    corpus_split_release(&split);
    corpus_release(&corpora[0]);
    corpus_release(&corpora[1]);
    return overlap;
}

Test(corpus, overlap_is_the_share_of_validation_bytes_that_training_has_too)
{
    char train[129], half[257], other[129];
    for (int i = 0; i < 128; i++) {
        train[i] = (char)(33 + i * 37 % 90);
        other[i] = (char)(33 + i * 41 % 90);
    }
    train[128] = other[128] = 0;
    snprintf(half, sizeof half, "%s%s", other, train);
    cr_expect_eq(overlap_of(train, train), 1);
    cr_expect_eq(overlap_of(train, half), 0.5);
    cr_expect_eq(overlap_of(train, other), 0);
    cr_expect_eq(overlap_of(train, "short"), 0);
}
