/* Messages to the user, on standard error. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "runner/command.h"

/* Control bytes come from texts that others wrote and could drive the terminal: they are shown as \xNN. */
static void text_print(const char *text)
{
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f)
            fprintf(stderr, "\\x%02x", byte);
        else
            fputc(byte, stderr);
    }
    fputc('\n', stderr);
}

static void arguments_print(const char *prefix, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

static void arguments_print(const char *prefix, const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0)
        abort();
    fputs(prefix, stderr);
    text_print(text);
    free(text);
}

void message(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    arguments_print("", format, args);
    va_end(args);
}

_Noreturn void die(enum exit_code code, const char *format, ...)
{
    fflush(stdout);
    va_list args;
    va_start(args, format);
    arguments_print("runner: ", format, args);
    va_end(args);
    exit((int)code);
}
