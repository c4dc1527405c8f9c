/* Bytes as they come: a pipe gets them all, a terminal nothing that drives it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/printer.h"

/* The bytes in portions of `portion`; what was written. Owner: caller, free(). */
static char *printed(const char *bytes, size_t size, bool terminal, size_t portion)
{
    char *text = NULL;
    size_t written;
    FILE *out = open_memstream(&text, &written);
    cr_assert_not_null(out);
    struct printer printer = {.out = out, .terminal = terminal};
    for (size_t at = 0; at < size; at += portion)
        printer_add(&printer, (struct text){bytes + at, size - at < portion ? size - at : portion});
    printer_end(&printer);
    cr_assert_eq(fclose(out), 0);
    return text;
}

static void terminal_check(const char *bytes, const char *want)
{
    for (size_t portion = 1; portion < 6; portion++) {
        char *got = printed(bytes, strlen(bytes), true, portion);
        cr_expect_str_eq(got, want, "portions of %zu", portion);
        free(got);
    }
}

Test(printer, a_terminal_gets_text_as_it_is)
{
    terminal_check("plain \"text\"\\\n\ttab", "plain \"text\"\\\n\ttab");
    terminal_check("caf\xC3\xA9 \xE4\xB8\xAD\xE6\x96\x87 \xF0\x9F\x99\x82",
                   "caf\xC3\xA9 \xE4\xB8\xAD\xE6\x96\x87 \xF0\x9F\x99\x82");
}

Test(printer, a_terminal_is_not_driven)
{
    terminal_check("\x1B[2J\x07\r", "\\x1b[2J\\x07\\x0d");
    terminal_check("\xC2\x9B"
                   "31m",
                   "\\u{9b}31m");
    terminal_check("a\xE2\x80\xAE"
                   "b",
                   "a\\u{202e}b");
    terminal_check("\x7F", "\\x7f");
}

Test(printer, bytes_that_are_no_characters_are_shown_one_by_one)
{
    terminal_check("\xFFx\xC3(\xE4\xB8", "\\xffx\\xc3(\\xe4\\xb8");
    terminal_check("\xF0\x9F\xC3\xA9", "\\xf0\\x9f\xC3\xA9");
    terminal_check("\x80\xBF", "\\x80\\xbf");
}

Test(printer, a_pipe_gets_every_byte)
{
    static const char bytes[] = "\0\x1B[2J\xFF\xC3";
    char *got = printed(bytes, sizeof bytes - 1, false, 2);
    cr_assert_arr_eq(got, bytes, sizeof bytes - 1);
    free(got);
}
