/* JSON for output: jansson holds the tree, this file builds it from our kinds of values and writes it.
 *
 *   json_t *root = json_object();
 *   json_put(root, "mean", json_from_double(2.1));      // takes the value over; never fails silently
 *   json_put(root, "label", json_from_text(label));
 *   json_print(root, stdout);                           // indented, with a final newline
 *   json_decref(root);
 *
 * Doubles are written as the shortest decimal that reads back the same ("0.1"); values that are not finite are null. */
#ifndef RUNNER_JSON_H
#define RUNNER_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

json_t *json_from_double(double value); /* null when not finite */

/* Bytes that are not UTF-8 become U+FFFD; NULL becomes null. */
json_t *json_from_text(const char *text);

/* Take value over (and end the program when memory is out). json_put replaces an earlier value of the key. */
void json_put(json_t *object, const char *key, json_t *value);
void json_push(json_t *array, json_t *value);

enum json_layout {
    JSON_LINE,   /* no spaces, no newline */
    JSON_PRETTY, /* two spaces a level, arrays of plain values on one line */
};

/* Keys in the order they were put in; sorted: in byte order. Owner: caller, memory_free(). */
char *json_format(const json_t *root, enum json_layout layout, bool sorted);

/* Pretty, in the order put in, with a final newline. */
void json_print(const json_t *root, FILE *out);

/* The shortest decimal that reads back as value, which must be finite. Returns buf. */
enum { JSON_NUMBER_SIZE = 40 };
const char *json_number_format(double value, char buf[JSON_NUMBER_SIZE]);

#endif
