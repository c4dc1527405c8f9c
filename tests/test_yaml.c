/* The YAML reader: what it keeps, and everything it must refuse at once. */
#include "runner/yaml.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/memory.h"

static struct yaml *parse(const char *text, struct problems *problems)
{
    problems_init(problems);
    return yaml_parse("f.yaml", text, strlen(text), problems);
}

static struct yaml *parse_good(const char *text)
{
    struct problems problems;
    struct yaml *tree = parse(text, &problems);
    cr_assert_eq(problems.count, 0, "%s", problems.count ? problems.items[0].text : "");
    cr_assert_not_null(tree);
    problems_release(&problems);
    return tree;
}

struct refused {
    const char *text, *message;
};

static const struct refused refused[] = {
    {"a: 1\nb: 2\na: 3\n", "f.yaml:3:1: key 'a' is given twice: first at line 1, again at line 3"},
    {"a: {b: 1, b: 2}\n", "f.yaml:1:11: key 'b' is given twice"},
    {"a: 1\n---\nb: 2\n", "f.yaml:2:1: a second document"},
    {"a:\n\tb: 1\n", "f.yaml:2:1: a tab indents"},
    {"a: b\n\tc: 1\n", "f.yaml:2:1: a tab indents"},
    {"x: &x [*x]\n", "f.yaml:1:8: alias '*x' stands inside its own anchor"},
    {"m: &m {a: *m}\nmodel: *m\n", "f.yaml:1:11: alias '*m' stands inside its own anchor"},
    {"a: *nowhere\n", "f.yaml:1:4: alias '*nowhere' has no anchor"},
    {"a: [1, 2\n", "not YAML at"},
    {"a: b: c\n", "f.yaml:1:5: not YAML at 'a: b: c'"},
    {"a: !!float 1\n", "f.yaml:1:4: tag 'tag:yaml.org,2002:float' is not accepted"},
    {"a: !x {b: 1}\n", "f.yaml:1:4: tag '!x' is not accepted"},
    {"[1, 2]: 3\n", "f.yaml:1:1: a key is a list or mapping"},
    {"a: &k x\n*k : 3\n", "f.yaml:2:1: a key is an alias"},
    {"a: \"x\\0y\"\n", "f.yaml:1:4: text 'x' goes on after a NUL"},
    {"a: \xff\n", "f.yaml:1:4: not UTF-8 text"},
    {"a: 1\nb: \x01\n", "f.yaml:2:4: not UTF-8 text: control characters are not allowed"},
    {"a: {<<: 5}\n", "f.yaml:1:9: merge key '<<' is text"},
    {"<<: {a: 1}\n<<: {b: 1}\n", "f.yaml:2:1: key '<<' is given twice"},
};

ParameterizedTestParameters(yaml, what_would_be_misread_is_refused_with_its_place)
{
    static size_t indices[sizeof refused / sizeof refused[0]];
    for (size_t i = 0; i < sizeof indices / sizeof indices[0]; i++)
        indices[i] = i;
    return cr_make_param_array(size_t, indices, sizeof indices / sizeof indices[0]);
}

ParameterizedTest(size_t *index, yaml, what_would_be_misread_is_refused_with_its_place)
{
    const struct refused *row = &refused[*index];
    struct problems problems;
    struct yaml *tree = parse(row->text, &problems);
    cr_expect_null(tree, "%s", row->text);
    cr_assert_geq(problems.errors, 1);
    cr_expect_not_null(strstr(problems.items[0].text, row->message), "'%s' lacks '%s'", problems.items[0].text,
                       row->message);
    problems_release(&problems);
}

Test(yaml, all_duplicates_of_a_file_are_told_at_once)
{
    struct problems problems;
    cr_assert_null(parse("a: 1\na: 2\nb: {c: 1, c: 2}\n", &problems));
    cr_expect_eq(problems.errors, 2);
    problems_release(&problems);
}

Test(yaml, scalars_stay_text_and_remember_quotes_and_places)
{
    struct yaml *tree = parse_good("# c\na: 010\nb: \"010\"\nc: no\nd: |\n  two\n  lines\n");
    cr_expect_str_eq(yaml_get(tree, "a")->text, "010");
    cr_expect_not(yaml_get(tree, "a")->quoted);
    cr_expect(yaml_get(tree, "b")->quoted);
    cr_expect_str_eq(yaml_get(tree, "c")->text, "no");
    cr_expect_str_eq(yaml_get(tree, "d")->text, "two\nlines\n");
    cr_expect_eq(yaml_get(tree, "b")->place.line, 3);
    cr_expect_eq(yaml_get(tree, "b")->place.column, 4);
    cr_expect_eq(tree->key_places[1].column, 1);
    cr_expect_null(yaml_get(tree, "e"));
    yaml_tree_free(tree);
}

Test(yaml, only_plain_spellings_of_nothing_are_null)
{
    struct yaml *tree = parse_good("a:\nb: ~\nc: null\nd: ''\ne: 0\nf: no\n");
    cr_expect(yaml_is_null(yaml_get(tree, "a")));
    cr_expect(yaml_is_null(yaml_get(tree, "b")));
    cr_expect(yaml_is_null(yaml_get(tree, "c")));
    cr_expect_not(yaml_is_null(yaml_get(tree, "d")));
    cr_expect_not(yaml_is_null(yaml_get(tree, "e")));
    cr_expect_not(yaml_is_null(yaml_get(tree, "f")));
    yaml_tree_free(tree);
}

Test(yaml, a_byte_order_mark_is_passed_over)
{
    struct yaml *tree = parse_good("\xef\xbb\xbf"
                                   "a: 1\r\nb: 2\r\n");
    cr_assert_eq(tree->count, 2);
    cr_expect_str_eq(yaml_get(tree, "a")->text, "1");
    cr_expect_eq(yaml_get(tree, "b")->place.line, 2);
    yaml_tree_free(tree);
}

Test(yaml, an_empty_file_is_nothing)
{
    struct yaml *tree = parse_good("# only a comment\n");
    cr_expect(yaml_is_null(tree));
    yaml_tree_free(tree);
}

Test(yaml, merge_keys_fill_in_what_is_not_written)
{
    struct yaml *tree = parse_good("base: &b {x: 1, y: 2}\nmore: &m {y: 3, z: 4}\n"
                                   "one: {<<: *b, x: 9}\ntwo: {<<: [*b, *m]}\nthree: {<<: &new {q: 1}}\nfour: *new\n");
    const struct yaml *one = yaml_get(tree, "one"), *two = yaml_get(tree, "two");
    cr_expect_eq(one->count, 2);
    cr_expect_str_eq(yaml_get(one, "x")->text, "9");
    cr_expect_str_eq(yaml_get(one, "y")->text, "2");
    cr_expect_eq(two->count, 3);
    cr_expect_str_eq(yaml_get(two, "y")->text, "2", "the earlier mapping wins");
    cr_expect_str_eq(yaml_get(two, "z")->text, "4");
    cr_expect_str_eq(yaml_get(yaml_get(tree, "four"), "q")->text, "1");
    yaml_tree_free(tree);
}

/* ---- hostile files: each refused within a second ---- */

static char *text_repeated(const char *piece, size_t times)
{
    size_t length = strlen(piece);
    char *text = memory_alloc(length * times + 1, 1);
    for (size_t i = 0; i < times; i++)
        memcpy(text + i * length, piece, length);
    return text;
}

static void expect_refused_soon(const char *text, const char *message)
{
    struct timespec start, end;
    struct problems problems;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    struct yaml *tree = parse(text, &problems);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double seconds = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
    cr_expect_null(tree);
    cr_assert_geq(problems.errors, 1);
    cr_expect_not_null(strstr(problems.items[0].text, message), "%.200s", problems.items[0].text);
    cr_expect_lt(seconds, 1.0);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    cr_expect_lt(usage.ru_maxrss, 1000000, "kilobytes: under 1 GB");
    problems_release(&problems);
}

Test(yaml, a_hundred_thousand_brackets_are_refused_at_once)
{
    static const char *const pieces[] = {"[", "[\n", "- ", "{a: ", "{", "? "};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        char *text = text_repeated(pieces[i], 100000);
        expect_refused_soon(text, i < 4 ? "nested more than 64 deep" : "a key is a list or mapping");
        memory_free(text);
    }
}

Test(yaml, nine_levels_of_nine_aliases_are_refused_at_once)
{
    char text[2048] = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 9; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n",
                 i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    }
    expect_refused_soon(text, "more than 100000 values");
}

Test(yaml, aliases_do_not_lift_the_limit_of_depth)
{
    char text[8192] = "- &a0 x\n";
    for (int i = 1; i < 100; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "- &a%d [*a%d]\n", i, i - 1);
    }
    expect_refused_soon(text, "nested more than 64 deep");
}

Test(yaml, floods_of_keys_anchors_and_values_are_refused_at_once)
{
    char *keys = memory_alloc(1 << 20, 1), *anchors = memory_alloc(1 << 20, 1);
    size_t k = 0, a = 0;
    for (int i = 0; i < 60000; i++) {
        k += (size_t)snprintf(keys + k, (1 << 20) - k, "k%d: 1\n", i);
        a += (size_t)snprintf(anchors + a, (1 << 20) - a, "- &a%d x\n", i);
    }
    expect_refused_soon(keys, "a mapping of more than 4000 keys");
    expect_refused_soon(anchors, "more than 1000 anchors");
    char *values = text_repeated("- 1\n", 200000);
    expect_refused_soon(values, "more than 100000 values");
    memory_free(values);
    memory_free(keys);
    memory_free(anchors);
}

Test(yaml, a_file_over_one_mebibyte_is_refused_before_it_is_read)
{
    char *text = text_repeated("# comment\n", 110000);
    expect_refused_soon(text, "1100000 bytes: expected at most 1048576");
    memory_free(text);
}

Test(yaml, a_file_that_cannot_be_read_is_a_problem)
{
    static const char *const paths[] = {"/nonexistent/a.yaml", "/tmp", "/dev/null"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct problems problems;
        problems_init(&problems);
        cr_expect_null(yaml_read(paths[i], &problems));
        cr_assert_eq(problems.errors, 1);
        cr_expect_not_null(strstr(problems.items[0].text, paths[i]), "%s", problems.items[0].text);
        problems_release(&problems);
    }
}

/* ---- problems ---- */

Test(problem, a_list_shows_places_escapes_control_bytes_and_stops_at_fifty)
{
    struct problems problems;
    problems_init(&problems);
    problem_add(&problems, (struct place){"--set", 0, 0}, "a\nb\x1b[0m");
    problem_note(&problems, (struct place){"f", 3, 4}, "told");
    for (int i = 0; i < 60; i++)
        problem_add(&problems, (struct place){0}, "p%d", i);
    char *shown = NULL;
    size_t size;
    FILE *out = open_memstream(&shown, &size);
    problems_print(&problems, out);
    fclose(out);
    static const char start[] = "--set: a\\x0ab\\x1b[0m\nf:3:4: note: told\np0\n";
    cr_expect(strncmp(shown, start, strlen(start)) == 0, "%s", shown);
    cr_expect_not_null(strstr(shown, "p48\n... and 11 more problems\n"), "%s", shown);
    cr_expect_eq(problems.errors, 61);
    free(shown);
    problems_release(&problems);
}

Test(problem, sorting_goes_by_place_and_keeps_the_order_of_equals)
{
    static const struct {
        struct place place;
        const char *text, *sorted;
    } rows[] = {{{"f", 10, 1}, "x", "f:2:1: c"},
                {{"f", 2, 9}, "b", "f:2:9: b"},
                {{"f", 2, 1}, "c", "f:2:9: a"},
                {{"f", 2, 9}, "a", "f:10:1: x"},
                {{"fa", 1, 1}, "d", "fa:1:1: d"}};
    struct problems problems;
    problems_init(&problems);
    for (size_t i = 0; i < 5; i++)
        problem_add(&problems, rows[i].place, "%s", rows[i].text);
    problems_sort(&problems);
    for (size_t i = 0; i < 5; i++)
        cr_expect_str_eq(problems.items[i].text, rows[i].sorted);
    problems_release(&problems);
}

Test(problem, the_nearest_word_is_found_and_a_far_one_is_not_guessed)
{
    static const char *const words[] = {"learning_rate", "warmup_steps", "steps", "norm", "rmsnorm"};
    struct {
        const char *word, *nearest;
    } cases[] = {{"warmpu", "warmup_steps"},
                 {"nrom", "norm"},
                 {"rmsnrom", "rmsnorm"},
                 {"learning-rate", "learning_rate"},
                 {"stpes", "steps"},
                 {"zebra", NULL},
                 {"", NULL},
                 {"warmup", "warmup_steps"},
                 {"rms", "rmsnorm"},
                 {"momentum", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *found = suggest_nearest(cases[i].word, words, 5);
        if (cases[i].nearest)
            cr_expect_str_eq(found ? found : "(none)", cases[i].nearest, "%s", cases[i].word);
        else
            cr_expect_null(found, "%s gave %s", cases[i].word, found);
    }
}
