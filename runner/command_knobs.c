/* runner knobs: every setting that makes a run what it is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/knob.h"
#include "core/memory.h"
#include "runner/command.h"
#include "runner/json.h"

/* What each group is about. A group without a line here stands under its name alone. */
static const struct {
    const char *group, *text;
} headings[] = {
    {"model", "the decoder"},
    {"training", "AdamW: warmup, cosine, decay, clip"},
    {"evaluation", "when and on how much text"},
    {"data", "the text; data.corpus and data.validation take paths and are no knobs"},
    {"data.tokenizer", "how text becomes tokens"},
};

static const char *accepted_short(const struct knob *knob, char *buf, size_t size)
{
    switch (knob->kind) {
    case KNOB_INTEGER: snprintf(buf, size, "%" PRId64 "..%" PRId64, knob->minimum, knob->maximum); break;
    case KNOB_NUMBER: snprintf(buf, size, "%s", knob->range); break;
    case KNOB_BOOLEAN: snprintf(buf, size, "true|false"); break;
    case KNOB_CHOICE: snprintf(buf, size, "%s", knob->choices); break;
    }
    return buf;
}

struct widths {
    int name, kind, accepted, standard;
};

static int longer(int width, const char *text)
{
    int length = (int)strlen(text);
    return length > width ? length : width;
}

static struct widths widths_measure(void)
{
    struct widths widths = {0, 0, 0, 0};
    char accepted[256], text[KNOB_TEXT_SIZE];
    for (size_t i = 0; i < knob_count; i++) {
        widths.name = longer(widths.name, knobs[i].name);
        widths.kind = longer(widths.kind, knob_kind_name(knobs[i].kind));
        widths.accepted = longer(widths.accepted, accepted_short(&knobs[i], accepted, sizeof accepted));
        widths.standard = longer(widths.standard, knob_format(&knobs[i], knobs[i].standard, text));
    }
    return widths;
}

static void heading_print(const char *group)
{
    const char *text = NULL;
    for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++)
        if (strcmp(headings[i].group, group) == 0)
            text = headings[i].text;
    printf("%s%s%s\n", group, text ? ": " : "", text ? text : "");
}

static void knobs_print(void)
{
    struct widths widths = widths_measure();
    char accepted[256], text[KNOB_TEXT_SIZE];
    for (size_t i = 0; i < knob_count; i++) {
        const struct knob *knob = &knobs[i];
        if (i == 0 || strcmp(knob->group, knobs[i - 1].group) != 0) {
            printf("%s", i ? "\n" : "");
            heading_print(knob->group);
        }
        printf("  %-*s  %-*s  %-*s  %-*s  %s\n", widths.name, knob->name, widths.kind, knob_kind_name(knob->kind),
               widths.accepted, accepted_short(knob, accepted, sizeof accepted), widths.standard,
               knob_format(knob, knob->standard, text), knob->doc);
    }
}

static json_t *value_json(const struct knob *knob, union knob_value value)
{
    char text[KNOB_TEXT_SIZE];
    switch (knob->kind) {
    case KNOB_INTEGER: return json_integer(value.integer);
    case KNOB_NUMBER: return json_from_double(value.number);
    case KNOB_BOOLEAN: return json_boolean(value.boolean);
    case KNOB_CHOICE: return json_from_text(knob_format(knob, value, text));
    }
    return json_null();
}

static json_t *choices_json(const struct knob *knob)
{
    json_t *array = json_array();
    char *names = memory_copy_text(knob->choices), *rest = names;
    for (char *name; (name = strsep(&rest, "|"));)
        json_push(array, json_from_text(name));
    memory_free(names);
    return array;
}

static void knobs_print_json(void)
{
    json_t *root = json_object(), *list = json_array();
    for (size_t i = 0; i < knob_count; i++) {
        const struct knob *knob = &knobs[i];
        json_t *row = json_object();
        bool integer = knob->kind == KNOB_INTEGER;
        json_put(row, "name", json_from_text(knob->name));
        json_put(row, "kind", json_from_text(knob_kind_name(knob->kind)));
        json_put(row, "minimum", integer ? json_integer(knob->minimum) : json_null());
        json_put(row, "maximum", integer ? json_integer(knob->maximum) : json_null());
        json_put(row, "range", json_from_text(knob->range));
        json_put(row, "choices", knob->kind == KNOB_CHOICE ? choices_json(knob) : json_null());
        json_put(row, "default", value_json(knob, knob->standard));
        json_put(row, "doc", json_from_text(knob->doc));
        json_push(list, row);
    }
    json_put(root, "knobs", list);
    json_print(root, stdout);
    json_decref(root);
}

static int knobs_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    if (arguments->json)
        knobs_print_json();
    else
        knobs_print();
    return EXIT_DONE;
}

extern const struct command command_knobs;
const struct command command_knobs = {
    .name = "knobs",
    .summary = "List every knob: name, kind, what is accepted, default, meaning.",
    .help =
        "A knob changes the numbers of a run and belongs to its identity. Its name is the key in an experiment file\n"
        "(nested or dotted), an axis of a sweep, and what --set takes.\n"
        "\n"
        "Example:\n"
        "  runner knobs",
    .json = true,
    .run = knobs_run,
};
