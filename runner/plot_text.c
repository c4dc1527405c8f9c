/* Texts for figures: cleaned, measured, wrapped, quoted. */
#include "runner/plot_text.h"

#include <string.h>
#include <utf8proc.h>

#include "core/memory.h"
#include "core/unicode.h"

char *plot_text_clean(const char *text)
{
    static const char replacement[3] = {'\xef', '\xbf', '\xbd'};
    static const char zero_width_space[3] = {'\xe2', '\x80', '\x8b'};
    size_t size = strlen(text), used = 0;
    char *clean = memory_alloc(3 * size + 1, 1);
    for (size_t i = 0; i < size;) {
        int32_t code_point;
        size_t length = unicode_decode(text + i, size - i, &code_point);
        if (code_point == UNICODE_INVALID) {
            memcpy(clean + used, replacement, 3);
            used += 3;
        } else if (code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0)) {
            clean[used++] = ' ';
        } else {
            if (code_point == '>' && used >= 2 && clean[used - 1] == ']' && clean[used - 2] == ']') {
                memcpy(clean + used, zero_width_space, 3);
                used += 3;
            }
            memcpy(clean + used, text + i, length);
            used += length;
        }
        i += length;
    }
    return clean;
}

static double character_width(int32_t code_point)
{
    if (code_point >= 0x80)
        return utf8proc_charwidth(code_point) == 2 ? 1.05 : utf8proc_charwidth(code_point) == 0 ? 0 : 0.72;
    if (strchr("ijl.,:;'|!", code_point))
        return 0.34;
    if (strchr(" fIrt()[]/\\-`", code_point))
        return 0.42;
    if (strchr("MWmw%@", code_point))
        return 0.98;
    if (strchr("#+<=>^~", code_point))
        return 0.84;
    return code_point >= 'A' && code_point <= 'Z' ? 0.74 : 0.63;
}

double plot_text_width(const char *text)
{
    double width = 0;
    size_t size = strlen(text);
    for (size_t i = 0; i < size;) {
        int32_t code_point;
        i += unicode_decode(text + i, size - i, &code_point);
        width += character_width(code_point == UNICODE_INVALID ? '?' : code_point);
    }
    return width;
}

/* Bytes of text that make the next line of at most width; at least one character. */
static size_t line_fit(const char *text, size_t size, double width)
{
    double used = 0;
    size_t space = 0, joint = 0;
    for (size_t i = 0; i < size;) {
        int32_t code_point;
        size_t length = unicode_decode(text + i, size - i, &code_point);
        used += character_width(code_point == UNICODE_INVALID ? '?' : code_point);
        if (used > width && i > 0 && code_point != ' ')
            return space ? space : 2 * joint > i ? joint : i;
        i += length;
        if (code_point == ' ')
            space = i;
        else if (code_point < 0x80 && strchr("-_/,=", code_point))
            joint = i;
    }
    return size;
}

char *plot_text_wrap(const char *text, double width)
{
    size_t size = strlen(text), used = 0;
    char *wrapped = memory_alloc(2 * size + 1, 1);
    while (size) {
        size_t fit = line_fit(text, size, width), shown = fit;
        while (fit < size && shown && text[shown - 1] == ' ')
            shown--;
        memcpy(wrapped + used, text, shown);
        used += shown;
        text += fit;
        size -= fit;
        if (size)
            wrapped[used++] = '\n';
    }
    return wrapped;
}

size_t plot_text_lines(const char *text)
{
    size_t lines = 1;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

double plot_text_widest(const char *text)
{
    double widest = 0;
    char *copy = memory_copy_text(text), *rest = copy;
    for (char *line; (line = strsep(&rest, "\n"));) {
        double width = plot_text_width(line);
        widest = width > widest ? width : widest;
    }
    memory_free(copy);
    return widest;
}

/* A quote is put as its number, wherever it stands: two of them side by side would be one, an end or an empty text,
 * depending on what is before them. */
void plot_text_quote(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'.\"\\047\".'", out);
        else if (*text == '\n')
            fputs("'.\"\\n\".'", out);
        else
            fputc(*text, out);
    }
    fputc('\'', out);
}
