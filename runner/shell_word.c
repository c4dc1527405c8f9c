/* Quoting for a shell: single quotes keep everything but themselves. */
#include "runner/shell_word.h"

#include <string.h>

#include "core/memory.h"

char *shell_word(const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/=,:+@%";
    if (*text && !text[strspn(text, plain)])
        return memory_copy_text(text);
    char *quoted = memory_alloc(4 * strlen(text) + 3, 1), *to = quoted;
    *to++ = '\'';
    for (; *text; text++) {
        const char *part = *text == '\'' ? "'\\'" : ""; /* ends the quotes, a quote by itself; then it begins them */
        while (*part)
            *to++ = *part++;
        *to++ = *text;
    }
    *to = '\'';
    return quoted;
}
