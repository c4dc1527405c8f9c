/* Short names of points, as they stand in tables and legends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/sweep_block.h"
#include "runner/text_stream.h"

static const char *field_of(const char *name)
{
    return strrchr(name, '.') + 1;
}

static void source_describe(const struct yaml *source, FILE *out)
{
    if (!source)
        fputs("builtin", out);
    else if (source->kind == YAML_SCALAR)
        fputs(source->text, out);
    else
        for (size_t i = 0; i < source->count; i++)
            fprintf(out, "%s%s", i ? "+" : "", source->items[i]->text);
}

/* A choice speaks for itself, but for `none`. */
static void knob_describe_short(const struct knob *knob, union knob_value value, FILE *out)
{
    char text[KNOB_TEXT_SIZE];
    knob_format(knob, value, text);
    if (knob->kind == KNOB_BOOLEAN)
        fprintf(out, "%s%s", value.boolean ? "" : "no ", knob->field);
    else if (knob->kind == KNOB_CHOICE && strcmp(text, "none") != 0)
        fputs(text, out);
    else
        fprintf(out, "%s=%s", knob->field, text);
}

static void value_describe(const struct setting_value *value, bool full, FILE *out)
{
    const struct knob *knob = setting_knob(value->setting);
    char text[KNOB_TEXT_SIZE];
    if (knob && !full)
        knob_describe_short(knob, value->knob, out);
    else if (knob)
        fprintf(out, "%s=%s", knob->name, knob_format(knob, value->knob, text));
    else {
        const char *name = setting_name(value->setting);
        fprintf(out, "%s=", full ? name : field_of(name));
        source_describe(value->source, out);
    }
}

char *setting_value_text(const struct setting_value *value)
{
    const struct knob *knob = setting_knob(value->setting);
    struct text_stream text;
    text_stream_open(&text);
    char buf[KNOB_TEXT_SIZE];
    if (knob)
        fputs(knob_format(knob, value->knob, buf), text.out);
    else
        source_describe(value->source, text.out);
    return text_stream_take(&text);
}

char *sweep_point_describe(const struct sweep_point *point, bool full)
{
    struct text_stream text;
    text_stream_open(&text);
    if (point->count == 0)
        fputs("baseline", text.out);
    for (size_t i = 0; i < point->count; i++) {
        if (i)
            fputs(", ", text.out);
        value_describe(point->values[i], full, text.out);
    }
    return text_stream_take(&text);
}
