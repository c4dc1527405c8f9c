/* UTF-8 and character classes, by utf8proc; ASCII goes by a table. */
#include "core/unicode.h"

#include <utf8proc.h>

#define S UNICODE_SPACE
#define N UNICODE_NUMBER
#define L UNICODE_LETTER
#define O UNICODE_OTHER
static const uint8_t ascii_class[128] = {
    O, O, O, O, O, O, O, O, O, S, S, S, S, S, O, O, /* tab to carriage return */
    O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, /**/
    S, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, /* space */
    N, N, N, N, N, N, N, N, N, N, O, O, O, O, O, O, /* 0 to 9 */
    O, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, /* A */
    L, L, L, L, L, L, L, L, L, L, L, O, O, O, O, L, /* to Z, _ */
    O, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, /* a */
    L, L, L, L, L, L, L, L, L, L, L, O, O, O, O, O, /* to z */
};
#undef S
#undef N
#undef L
#undef O

size_t unicode_decode(const char *bytes, size_t size, int32_t *code_point)
{
    utf8proc_ssize_t length =
        utf8proc_iterate((const utf8proc_uint8_t *)bytes, size < 4 ? (utf8proc_ssize_t)size : 4, code_point);
    if (length > 0)
        return (size_t)length;
    *code_point = UNICODE_INVALID;
    return 1;
}

size_t unicode_encode(int32_t code_point, char bytes[4])
{
    return (size_t)utf8proc_encode_char(code_point, (utf8proc_uint8_t *)bytes);
}

/* Past ASCII. utf8proc has the general categories alone, and no version of them decides what White_Space is. */
static bool is_space(int32_t c)
{
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

enum unicode_class unicode_class_of(int32_t code_point)
{
    if (code_point < 0)
        return UNICODE_OTHER;
    if (code_point < 128)
        return ascii_class[code_point];
    if (is_space(code_point))
        return UNICODE_SPACE;
    utf8proc_category_t category = utf8proc_category(code_point);
    if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ME)
        return UNICODE_LETTER;
    if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO)
        return UNICODE_NUMBER;
    return UNICODE_OTHER;
}

bool unicode_is_printable(int32_t code_point)
{
    if (code_point < 128)
        return code_point >= 0x20 && code_point < 0x7F;
    utf8proc_category_t category = utf8proc_category(code_point);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_SO;
}

size_t unicode_run(const char *bytes, size_t size)
{
    enum unicode_class run_class = UNICODE_OTHER;
    size_t at = 0;
    while (at < size) {
        unsigned char byte = (unsigned char)bytes[at];
        enum unicode_class next;
        size_t length = 1;
        if (byte < 128) {
            next = ascii_class[byte];
        } else {
            int32_t code_point;
            length = unicode_decode(bytes + at, size - at, &code_point);
            next = unicode_class_of(code_point);
        }
        if (at && next != run_class)
            break;
        run_class = next;
        at += length;
    }
    return at;
}
