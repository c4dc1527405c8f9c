/* Messages to the user, on standard error. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "runner/command.h"
#include "runner/layout.h"

static void arguments_print(const char *prefix, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

static void arguments_print(const char *prefix, const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0)
        abort();
    fputs(prefix, stderr);
    layout_line_put(text, "\n\t", stderr);
    free(text);
}

void message(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    arguments_print("", format, args);
    va_end(args);
}

void message_note(void *context, const char *text)
{
    (void)context;
    message("%s", text);
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
