/* Writes a stream of bytes, on a terminal one whole character at a time. */
#include "runner/printer.h"

#include <string.h>

static void character_print(const struct printer *printer, const char *bytes, size_t size, int32_t code_point)
{
    if (code_point == '\n' || code_point == '\t' || (code_point >= 0 && unicode_is_printable(code_point)))
        fwrite(bytes, 1, size, printer->out);
    else if (code_point < 128)
        fprintf(printer->out, "\\x%02x", (unsigned char)bytes[0]);
    else
        fprintf(printer->out, "\\u{%x}", (unsigned)code_point);
}

/* Bytes that the first byte of a character asks for; 1 when it starts none. */
static size_t length_of(unsigned char first)
{
    return first >= 0xF0 && first < 0xF8   ? 4
           : first >= 0xE0 && first < 0xF0 ? 3
           : first >= 0xC0 && first < 0xE0 ? 2
                                           : 1;
}

/* Whether more bytes can make a character of what is held. */
static bool may_go_on(const char *bytes, size_t size)
{
    for (size_t i = 1; i < size; i++)
        if (((unsigned char)bytes[i] & 0xC0) != 0x80)
            return false;
    return size < length_of((unsigned char)bytes[0]);
}

/* Prints from the front of what is held until it is a character's beginning; all of it at the end. */
static void held_print(struct printer *printer, bool end)
{
    while (printer->held_size && (end || !may_go_on(printer->held, printer->held_size))) {
        int32_t code_point;
        size_t length = unicode_decode(printer->held, printer->held_size, &code_point);
        character_print(printer, printer->held, length, code_point);
        printer->held_size -= length;
        memmove(printer->held, printer->held + length, printer->held_size);
    }
}

void printer_add(struct printer *printer, struct text text)
{
    if (!printer->terminal)
        fwrite(text.bytes, 1, text.size, printer->out);
    for (size_t i = 0; i < text.size && printer->terminal; i++) {
        printer->held[printer->held_size++] = text.bytes[i];
        held_print(printer, false);
    }
    fflush(printer->out);
}

void printer_end(struct printer *printer)
{
    held_print(printer, true);
    fflush(printer->out);
}
