/* Which characters can be drawn here, asked from fontconfig. */
#include "runner/plot_fonts.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/unicode.h"
#include "runner/child.h"

enum { COMMON_LATIN = 0x250 };

struct plot_fonts {
    uint8_t bits[(UNICODE_MAXIMUM + 8) / 8];
};

static void range_add(struct plot_fonts *fonts, unsigned long first, unsigned long last)
{
    for (unsigned long code = first; code <= last && code <= UNICODE_MAXIMUM; code++)
        fonts->bits[code / 8] |= (uint8_t)(1u << code % 8);
}

struct plot_fonts *plot_fonts_parse(const char *text)
{
    struct plot_fonts *fonts = memory_alloc(1, sizeof *fonts);
    while (*text) {
        char *end;
        const char *from = text;
        unsigned long first = strtoul(from, &end, 16);
        if (end == from || (from[0] == 'c' && from[1] == 'h')) { /* "charset=" starts with a hexadecimal digit */
            const char *equals = strchr(from, '=');
            const char *line = strchr(from, '\n');
            text = equals && (!line || equals < line) ? equals + 1 : from + 1;
            continue;
        }
        unsigned long last = first;
        if (*end == '-') {
            from = end + 1;
            last = strtoul(from, &end, 16);
        }
        range_add(fonts, first, last);
        text = end;
    }
    return fonts;
}

struct plot_fonts *plot_fonts_create(void)
{
    enum { LIMIT = 16 << 20 };
    static const char common[] = "20-7e a0-2ff 370-3ff 400-52f 1e00-1fff 2010-206f 20a0-20bf 2100-214f 2190-22ff fffd";
    char program[] = "fc-list", any[] = ":", element[] = "charset";
    char *argv[] = {program, any, element, NULL};
    struct child_output out = {.text = memory_alloc(LIMIT, 1), .size = LIMIT};
    int status;
    bool asked = child_run(NULL, argv, 20, &out, &status, NULL) == CHILD_ENDED && status == 0 && out.used > 0;
    struct plot_fonts *fonts = plot_fonts_parse(asked ? out.text : common);
    memory_free(out.text);
    return fonts;
}

void plot_fonts_free(struct plot_fonts *fonts)
{
    memory_free(fonts);
}

bool plot_fonts_have(const struct plot_fonts *fonts, int32_t code_point)
{
    return code_point < COMMON_LATIN || (fonts->bits[code_point / 8] >> code_point % 8 & 1);
}

bool plot_text_common(const char *text)
{
    for (size_t size = strlen(text), i = 0; i < size;) {
        int32_t code_point;
        i += unicode_decode(text + i, size - i, &code_point);
        if (code_point >= COMMON_LATIN)
            return false;
    }
    return true;
}

char *plot_text_drawable(const struct plot_fonts *fonts, const char *text)
{
    size_t size = strlen(text), used = 0;
    char *drawable = memory_alloc(3 * size + 1, 1);
    const char *box = plot_fonts_have(fonts, 0xfffd) ? "\xef\xbf\xbd" : "?";
    bool changed = false;
    for (size_t i = 0; i < size;) {
        int32_t code_point;
        size_t length = unicode_decode(text + i, size - i, &code_point);
        bool have = code_point != UNICODE_INVALID && plot_fonts_have(fonts, code_point);
        const char *from = have ? text + i : box;
        size_t copied = have ? length : strlen(box);
        memcpy(drawable + used, from, copied);
        used += copied;
        i += length;
        changed = changed || !have;
    }
    if (changed)
        return drawable;
    memory_free(drawable);
    return NULL;
}
