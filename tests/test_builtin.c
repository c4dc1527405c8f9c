/* The text that comes with the program: the same bytes everywhere, enough of it, and with the structure it promises. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/memory.h"
#include "runner/builtin.h"

static struct corpus corpus;

static void corpus_begin(void)
{
    builtin_documents(&corpus);
}

static void corpus_end(void)
{
    corpus_release(&corpus);
}

TestSuite(builtin, .init = corpus_begin, .fini = corpus_end);

static bool has_kind(const struct document *document, const char *kind)
{
    return strcmp(document->kind, kind) == 0;
}

static void hash_of(const struct corpus *text, char hex[HASH_TEXT_SIZE])
{
    struct hash hash;
    hash_init(&hash);
    for (size_t i = 0; i < text->count; i++) {
        hash_add(&hash, text->documents[i].kind, strlen(text->documents[i].kind) + 1);
        hash_add(&hash, text->documents[i].text.bytes, text->documents[i].text.size);
    }
    hash_end(&hash, hex);
}

/* Its bytes are part of the identity of every run on it: who changes them on purpose changes this value, and all
 * earlier runs on the built-in text become other runs. */
Test(builtin, bytes_are_those_they_have_always_been)
{
    char hex[HASH_TEXT_SIZE];
    hash_of(&corpus, hex);
    cr_expect_str_eq(hex, "dab1886c442dd14fd3b4ae9a56704d8642fafda636489ac08237f69ff7bac6b6");
}

Test(builtin, a_second_time_gives_the_same)
{
    struct corpus again;
    char hex[2][HASH_TEXT_SIZE];
    builtin_documents(&again);
    hash_of(&corpus, hex[0]);
    hash_of(&again, hex[1]);
    cr_expect_str_eq(hex[0], hex[1]);
    corpus_release(&again);
}

Test(builtin, there_are_hundreds_of_documents_and_enough_of_both_kinds)
{
    size_t bytes[2] = {0}, documents[2] = {0};
    for (size_t i = 0; i < corpus.count; i++) {
        bytes[has_kind(&corpus.documents[i], "code")] += corpus.documents[i].text.size;
        documents[has_kind(&corpus.documents[i], "code")]++;
        cr_expect(corpus.documents[i].text.size > 2000 && corpus.documents[i].text.size < 30000);
    }
    cr_expect(bytes[0] > 2500000 && bytes[1] > 2500000);
    cr_expect(documents[0] > 150 && documents[1] > 150);
}

Test(builtin, text_is_plain_ascii_without_tabs_or_spaces_at_ends_of_lines)
{
    for (size_t i = 0; i < corpus.count; i++) {
        struct text text = corpus.documents[i].text;
        for (size_t j = 0; j < text.size; j++) {
            char c = text.bytes[j];
            cr_assert(c == '\n' || (c >= ' ' && c <= '~'), "document %zu byte %zu", i, j);
            cr_assert(c != '\n' || j == 0 || text.bytes[j - 1] != ' ', "document %zu byte %zu", i, j);
        }
    }
}

Test(builtin, brackets_and_quotes_of_every_document_close_in_order)
{
    for (size_t i = 0; i < corpus.count; i++) {
        struct text text = corpus.documents[i].text;
        char open[64];
        size_t depth = 0;
        bool quoted = false;
        for (size_t j = 0; j < text.size; j++) {
            const char *bracket = strchr("()[]{}", text.bytes[j]);
            quoted ^= text.bytes[j] == '"';
            if (!bracket || !text.bytes[j])
                continue;
            if ((bracket - "()[]{}") % 2 == 0) {
                cr_assert_lt(depth, sizeof open);
                open[depth++] = bracket[1];
            } else
                cr_assert(depth > 0 && open[--depth] == text.bytes[j], "document %zu byte %zu", i, j);
        }
        cr_expect(depth == 0 && !quoted, "document %zu", i);
    }
}

/* "//   find_lamp/3" of the exports of a module against "find_lamp(a, b, c)" in its tests. */
Test(builtin, functions_are_called_with_as_many_arguments_as_they_have)
{
    size_t checked = 0;
    for (size_t i = 0; i < corpus.count; i++) {
        char *text = memory_copy_bytes(corpus.documents[i].text.bytes, corpus.documents[i].text.size);
        const char *tests = strstr(text, "test_all()"), *exports = strstr(text, " exports of ");
        for (const char *line = exports; line && (line = strchr(line, '\n')) && line[1]; line++) {
            char name[80];
            int parameters, depth = 0, commas = 0;
            bool quoted = false;
            if (sscanf(line, "\n%*[/#] %60[a-z_0-9]/%d", name, &parameters) != 2)
                continue;
            strncat(name, "(", 2);
            const char *call = strstr(tests, name);
            cr_assert_not_null(call, "document %zu: %s is not tested", i, name);
            for (call += strlen(name); *call != '\n' && !(depth == 0 && *call == ')' && !quoted); call++) {
                quoted ^= *call == '"';
                depth += quoted ? 0 : (strchr("([", *call) != NULL) - (strchr(")]", *call) != NULL);
                commas += depth == 0 && !quoted && *call == ',';
            }
            cr_assert_eq(commas + 1, parameters, "document %zu: %s%d", i, name, parameters);
            checked++;
        }
        memory_free(text);
    }
    cr_expect_gt(checked, 1000);
}

Test(builtin, who_is_a_miss_is_she_in_what_became_of_them)
{
    size_t checked = 0;
    for (size_t i = 0; i < corpus.count; i++) {
        char *text = memory_copy_bytes(corpus.documents[i].text.bytes, corpus.documents[i].text.size);
        const char *end = strstr(text, "This is what became of them. ");
        for (const char *at = end; at && (at = strstr(at, " stayed at "));) {
            const char *name = at, *pronoun = strstr(at, ", and h");
            char title[64];
            while (name[-1] != ' ')
                name--;
            cr_assert_not_null(pronoun);
            snprintf(title, sizeof title, " %.*s, the ", (int)(at - name), name);
            const char *introduced = strstr(text, title), *first = introduced;
            cr_assert_not_null(introduced, "document %zu: '%s'", i, title);
            do
                first--;
            while (first[-1] != ' ' && first[-1] != '\n' && first[-1] != '"');
            bool miss = strncmp(first - 5, "Miss ", 5) == 0;
            cr_expect_eq(strncmp(pronoun, ", and her ", 10) == 0, miss, "document %zu: '%s'", i, title);
            checked++;
            at = pronoun;
        }
        memory_free(text);
    }
    cr_expect_gt(checked, 200);
}

Test(builtin, validation_text_is_not_in_the_training_text)
{
    struct corpus_split split;
    corpus_split_fraction(&corpus, 0.1, &split);
    cr_expect_lt(corpus_split_overlap(&split), 0.01);
    corpus_split_release(&split);
}
