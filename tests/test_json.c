/* JSON output: numbers that read back, texts that are always valid, layouts. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/json.h"

static char *formatted(json_t *root, enum json_layout layout, bool sorted)
{
    char *text = json_format(root, layout, sorted);
    json_decref(root);
    return text;
}

Test(json, a_number_is_the_shortest_text_that_reads_back)
{
    char buf[JSON_NUMBER_SIZE];
    cr_assert_str_eq(json_number_format(0.1, buf), "0.1");
    cr_assert_str_eq(json_number_format(3, buf), "3.0");
    cr_assert_str_eq(json_number_format(6e-4, buf), "0.0006");
    cr_assert_str_eq(json_number_format(1e300, buf), "1e+300");
    const double values[] = {1.0 / 3, DBL_MAX, DBL_MIN, DBL_TRUE_MIN, -0.0, 2.8052340000000001, 123456789012345680.0};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        double back = strtod(json_number_format(values[i], buf), NULL);
        cr_assert(memcmp(&back, &values[i], sizeof back) == 0, "%a was written as %s", values[i], buf);
    }
}

Test(json, nan_and_infinity_become_null)
{
    json_t *array = json_array();
    json_push(array, json_from_double(NAN));
    json_push(array, json_from_double(-INFINITY));
    json_push(array, json_from_double(1.5));
    char *text = formatted(array, JSON_LINE, false);
    cr_assert_str_eq(text, "[null,null,1.5]");
    memory_free(text);
}

Test(json, bytes_that_are_not_utf8_are_replaced_one_by_one)
{
    json_t *array = json_array();
    json_push(array, json_from_text("a\xff\xc3(\xed\xa0\x80z"));
    json_push(array, json_from_text("\xc3\xa9\xe2\x82\xac"));
    json_push(array, json_from_text("cut\xe2\x82"));
    json_push(array, json_from_text(NULL));
    char *text = formatted(array, JSON_LINE, false);
    cr_assert_str_eq(text,
                     "[\"a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\",\"\xc3\xa9\xe2\x82\xac\","
                     "\"cut\xef\xbf\xbd\xef\xbf\xbd\",null]");
    memory_free(text);
}

Test(json, keys_keep_their_order_unless_sorted)
{
    for (int sorted = 0; sorted < 2; sorted++) {
        json_t *object = json_object();
        json_put(object, "b", json_integer(1));
        json_put(object, "a\"", json_true());
        char *text = formatted(object, JSON_LINE, sorted);
        cr_assert_str_eq(text, sorted ? "{\"a\\\"\":true,\"b\":1}" : "{\"b\":1,\"a\\\"\":true}");
        memory_free(text);
    }
}

Test(json, what_is_written_reads_back_equal)
{
    json_t *root = json_object(), *rows = json_array(), *row = json_object();
    json_put(row, "mean", json_from_double(2.12));
    json_put(row, "shape", json_loads("[2, 3]", 0, NULL));
    json_push(rows, row);
    json_put(root, "rows", rows);
    json_put(root, "none", json_array());
    json_put(root, "nothing", json_object());
    char *text = json_format(root, JSON_PRETTY, false);
    cr_assert_str_eq(text, "{\n  \"rows\": [\n    {\n      \"mean\": 2.12,\n      \"shape\": [2, 3]\n    }\n  ],\n"
                           "  \"none\": [],\n  \"nothing\": {}\n}");
    json_t *back = json_loads(text, 0, NULL);
    cr_assert(json_equal(root, back));
    json_decref(root);
    json_decref(back);
    memory_free(text);
}
