/* Text in figures: quoted, broken into lines, in characters that a font has. */
#include "runner/plot_text.h"

#include <criterion/criterion.h>

#include "core/memory.h"
#include "runner/plot_fonts.h"

Test(plot_text, quotes_and_line_breaks_are_put_as_their_numbers)
{
    static const char *const cases[][2] = {
        {"it's\n`x`", "'it'.\"\\047\".'s'.\"\\n\".'`x`'"},
        {"f''", "'f'.\"\\047\".''.\"\\047\".''"},
        {"''; load 'x'", "''.\"\\047\".''.\"\\047\".'; load '.\"\\047\".'x'.\"\\047\".''"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[96] = "";
        FILE *out = fmemopen(text, sizeof text, "w");
        plot_text_quote(out, cases[i][0]);
        fclose(out);
        cr_expect_str_eq(text, cases[i][1]);
    }
}

Test(plot_text, bad_bytes_and_control_characters_are_replaced)
{
    char *clean = plot_text_clean("a\tb\x1b[0m\xff\xc3\xa9");
    cr_assert_str_eq(clean, "a b [0m\xef\xbf\xbd\xc3\xa9");
    memory_free(clean);
}

Test(plot_text, lines_break_at_spaces_then_joints_then_anywhere)
{
    static const struct {
        const char *text, *wrapped;
    } cases[] = {
        {"aaaa bbbb cccc", "aaaa bbbb\ncccc"},
        {"aaaa-bbbb-cccc", "aaaa-bbbb-\ncccc"},
        {"aaaaaaaaaaaaaa", "aaaaaaaaaa\naaaa"},
        {"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9",
         "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\n\xc3\xa9\xc3\xa9"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *wrapped = plot_text_wrap(cases[i].text, 6.35);
        cr_assert_str_eq(wrapped, cases[i].wrapped);
        cr_assert(plot_text_widest(wrapped) <= 6.35);
        memory_free(wrapped);
    }
}

Test(plot_fonts, a_character_that_no_font_has_is_replaced)
{
    struct plot_fonts *fonts = plot_fonts_parse(":charset=20-7e a0-17f 3a9\n:charset=fffd 400-4ff\n");
    cr_assert(plot_fonts_have(fonts, 0x3a9) && plot_fonts_have(fonts, 0x44f) && plot_fonts_have(fonts, 'c'));
    cr_assert_not(plot_fonts_have(fonts, 0x6f22));
    cr_assert_null(plot_text_drawable(fonts, "\xce\xa9 and \xd1\x8f"));
    char *drawable = plot_text_drawable(fonts, "\xce\xa9\xe6\xbc\xa2!");
    cr_assert_str_eq(drawable, "\xce\xa9\xef\xbf\xbd!");
    memory_free(drawable);
    plot_fonts_free(fonts);
    cr_assert(plot_text_common("na\xc3\xafve") && !plot_text_common("\xce\xa9"));
}
