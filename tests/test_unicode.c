/* UTF-8 and character classes, over all code points. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/unicode.h"

Test(unicode, every_code_point_reads_back_and_surrogates_do_not)
{
    for (int32_t c = 0; c <= UNICODE_MAXIMUM; c++) {
        if (c >= 0xD800 && c <= 0xDFFF)
            continue;
        char bytes[4];
        int32_t back;
        size_t length = unicode_encode(c, bytes);
        if (unicode_decode(bytes, length, &back) != length || back != c)
            cr_assert_fail("U+%04X came back as %d", (unsigned)c, back);
        if (length > 1 && (unicode_decode(bytes, length - 1, &back) != 1 || back != UNICODE_INVALID))
            cr_assert_fail("U+%04X cut short is not refused", (unsigned)c);
    }
    for (int32_t c = 0xD800; c <= 0xDFFF; c++) {
        char bytes[3] = {(char)0xED, (char)(0x80 | (c >> 6 & 0x3F)), (char)(0x80 | (c & 0x3F))};
        int32_t back;
        cr_assert(unicode_decode(bytes, 3, &back) == 1 && back == UNICODE_INVALID);
    }
}

Test(unicode, overlong_and_too_high_sequences_are_single_bytes)
{
    static const char *const bad[] = {
        "\xC0\x80",         "\xC1\xBF",         "\xE0\x80\x80",     "\xE0\x9F\xBF", "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF",         "\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int32_t c;
        cr_expect_eq(unicode_decode(bad[i], strlen(bad[i]), &c), 1);
        cr_expect_eq(c, UNICODE_INVALID, "case %zu", i);
    }
}

Test(unicode, white_space_is_exactly_the_property)
{
    static const int32_t spaces[] = {0x09,   0x0A,   0x0B,   0x0C,   0x0D,   0x20,   0x85,   0xA0,   0x1680,
                                     0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008,
                                     0x2009, 0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000};
    size_t next = 0;
    for (int32_t c = 0; c <= UNICODE_MAXIMUM; c++) {
        bool listed = next < sizeof spaces / sizeof *spaces && spaces[next] == c;
        if (listed)
            next++;
        if ((unicode_class_of(c) == UNICODE_SPACE) != listed)
            cr_assert_fail("U+%04X", (unsigned)c);
    }
    cr_assert_eq(next, 25);
}

Test(unicode, letters_take_marks_and_the_underscore_with_them)
{
    static const struct {
        const char *text;
        size_t run;
    } cases[] = {{"snake_case1", 10},
                 {"e\xCC\x81!", 3},
                 {"\xE0\xA4\xA8\xE0\xA5\x8D.", 6},
                 {"42\xC2\xBDx", 4},
                 {" \t\r\n\xC2\xA0x", 6},
                 {"\xC3\x97+a", 3},
                 {"a\xFF", 1},
                 {"\xFF\xFE?a", 3},
                 {"\xF0\x9F\x98\x80\xE3\x82", 6},
                 {"\xE2\x85\xA7V", 3},
                 {"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_eq(unicode_run(cases[i].text, strlen(cases[i].text)), cases[i].run, "case %zu", i);
}

Test(unicode, controls_and_direction_marks_are_not_printable)
{
    static const int32_t hidden[] = {UNICODE_INVALID, 0,      0x1B,   0x7F,   0x85,     0x9B,  0xA0, 0xAD,
                                     0x200B,          0x202E, 0x2028, 0xE000, 0x10FFFF, 0xFEFF},
                         shown[] = {' ', '~', 0xA1, 0xE9, 0x301, 0x65E5, 0x1F600, 0xD7};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        cr_expect_not(unicode_is_printable(hidden[i]), "U+%04X", (unsigned)hidden[i]);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        cr_expect(unicode_is_printable(shown[i]), "U+%04X", (unsigned)shown[i]);
}
