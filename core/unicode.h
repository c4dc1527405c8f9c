/* Bytes as UTF-8 characters, and text cut into runs of one class: what tokenizers see of Unicode. */
#ifndef CORE_UNICODE_H
#define CORE_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    const char *bytes;
    size_t size;
};

enum { UNICODE_INVALID = -1, UNICODE_MAXIMUM = 0x10FFFF };

/* Length in bytes of the character at the start of size >= 1 bytes; *code_point gets its number. A byte that starts no
 * valid character (overlong, surrogate, above U+10FFFF, cut short) has length 1 and the number UNICODE_INVALID. */
size_t unicode_decode(const char *bytes, size_t size, int32_t *code_point);

/* UTF-8 of a valid code point; returns its length, 1 to 4. */
size_t unicode_encode(int32_t code_point, char bytes[4]);

enum unicode_class {
    UNICODE_LETTER, /* general categories L and M, and '_' */
    UNICODE_NUMBER, /* N */
    UNICODE_SPACE,  /* the property White_Space */
    UNICODE_OTHER   /* the rest, UNICODE_INVALID with it */
};
enum unicode_class unicode_class_of(int32_t code_point);

/* True for what shows as itself on a terminal: not for controls, format characters (they can turn a line around),
 * unassigned and private ones, nor for white space but ' '. */
bool unicode_is_printable(int32_t code_point);

/* Length in bytes of the run of one class at the start of the text; 0 for size 0. */
size_t unicode_run(const char *bytes, size_t size);

#endif
