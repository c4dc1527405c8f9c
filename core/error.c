/* Error messages in a caller's buffer. */
#include "core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool error_set(struct error *err, const char *format, ...)
{
    if (!err)
        return false;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return false;
}

bool error_wrap(struct error *err, const char *format, ...)
{
    if (!err)
        return false;
    char prefix[sizeof err->text];
    va_list args;
    va_start(args, format);
    vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    struct error inner = *err;
    size_t used = strnlen(prefix, sizeof prefix - 1);
    memcpy(err->text, prefix, used);
    snprintf(err->text + used, sizeof err->text - used, ": %s", inner.text);
    return false;
}
