/* Text on a terminal: how wide it is, what must not reach it, where a line ends. */
#include "runner/layout.h"

#include <string.h>

#include <utf8proc.h>

/* One character of text: its bytes, and columns on a terminal; -1 columns = a control or a byte that is no UTF-8,
 * one byte, to be shown as \xNN. */
static size_t character_at(const char *text, int *columns)
{
    utf8proc_int32_t code;
    utf8proc_ssize_t bytes = utf8proc_iterate((const utf8proc_uint8_t *)text, -1, &code);
    if (bytes <= 0 || code < 0x20 || (code >= 0x7f && code < 0xa0)) {
        *columns = -1;
        return 1;
    }
    *columns = utf8proc_charwidth(code);
    return (size_t)bytes;
}

void layout_line_put(const char *text, const char *kept, FILE *out)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if ((*p < 0x20 || *p == 0x7f) && !strchr(kept, *p))
            fprintf(out, "\\x%02x", *p);
        else
            fputc(*p, out);
    fputc('\n', out);
}

int layout_columns(const char *text)
{
    int total = 0;
    while (*text) {
        int columns;
        text += character_at(text, &columns);
        total += columns < 0 ? 4 : columns;
    }
    return total;
}

void layout_put(const char *text, size_t size, const char *(*escape)(char c), FILE *out)
{
    const char *end = text + size, *backslash = escape ? escape('\\') : "\\";
    while (text < end) {
        int columns;
        size_t bytes = character_at(text, &columns);
        const char *escaped = escape && bytes == 1 ? escape(*text) : NULL;
        if (columns < 0)
            fprintf(out, "%sx%02X", backslash, (unsigned char)*text);
        else if (escaped)
            fputs(escaped, out);
        else
            fwrite(text, 1, bytes, out);
        text += bytes;
    }
}

void layout_spaces(int count, FILE *out)
{
    fprintf(out, "%*s", count > 0 ? count : 0, "");
}

/* How many bytes of text go on a line of so many columns: up to the last space that fits, else to the next one. */
static size_t line_bytes(const char *text, int width)
{
    size_t used = 0, space = 0;
    int total = 0;
    while (text[used]) {
        int columns;
        size_t bytes = character_at(text + used, &columns);
        if (text[used] == ' ') {
            if (total > width)
                return used;
            space = used;
        }
        total += columns < 0 ? 4 : columns;
        if (total > width && space && text[used] != ' ')
            return space;
        used += bytes;
    }
    return used;
}

void layout_wrap(const char *text, int width, int indent, FILE *out)
{
    for (bool first = true; *text || first; first = false) {
        if (!first)
            layout_spaces(indent, out);
        size_t bytes = width > 0 ? line_bytes(text, width) : strlen(text);
        layout_put(text, bytes, NULL, out);
        fputc('\n', out);
        text += bytes;
        text += strspn(text, " ");
    }
}
