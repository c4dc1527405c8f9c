/* Seeds: whole numbers from 0 to 2^63 - 1. */
#include "runner/seeds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/knob.h"
#include "core/memory.h"
#include "runner/text_index.h"

static const struct knob seed_kind = {.name = "seed", .kind = KNOB_INTEGER, .minimum = 0, .maximum = INT64_MAX};
static const struct knob count_kind = {.name = "seeds.count", .kind = KNOB_INTEGER, .minimum = 1, .maximum = INT64_MAX};

static bool number_read(const struct knob *kind, const struct yaml *node, int64_t *number, struct problems *problems)
{
    struct error err;
    union knob_value value;
    if (node->kind != YAML_SCALAR || yaml_is_null(node))
        problem_add(problems, node->place, "%s is %s: expected a whole number", kind->name, yaml_kind_name(node));
    else if (!knob_parse(kind, node->text, node->quoted, &value, &err))
        problem_add(problems, node->place, "%s", err.text);
    else {
        *number = value.integer;
        return true;
    }
    return false;
}

static bool range_fits(struct seed_plan *plan, struct problems *problems)
{
    if (plan->count - 1 <= (uint64_t)(INT64_MAX - plan->start))
        return true;
    problem_add(problems, plan->place, "seeds go past %" PRId64 ": expected a smaller start or count", INT64_MAX);
    return false;
}

static bool mapping_read(const struct yaml *node, bool whole, struct seed_plan *plan, struct problems *problems)
{
    size_t errors = problems->errors;
    int64_t count = 0;
    for (size_t i = 0; i < node->count; i++)
        if (strcmp(node->keys[i], "count") == 0)
            number_read(&count_kind, node->items[i], &count, problems);
        else if (strcmp(node->keys[i], "start") == 0)
            number_read(&seed_kind, node->items[i], &plan->start, problems);
        else
            problem_add(problems, node->key_places[i],
                        "unknown key '%s': expected count and start, as in {count: 3, start: 1337}", node->keys[i]);
    if (!yaml_get(node, "count") && whole)
        problem_add(problems, node->place, "seeds has no count: expected {count: 3, start: 1337}");
    plan->count = (uint64_t)count;
    return problems->errors == errors && count && range_fits(plan, problems);
}

static bool list_check(const struct yaml *node, struct problems *problems)
{
    size_t errors = problems->errors;
    int64_t seed;
    if (node->count == 0)
        problem_add(problems, node->place, "seeds is an empty list: expected at least one seed, as in [1337]");
    for (size_t i = 0; i < node->count; i++)
        number_read(&seed_kind, node->items[i], &seed, problems);
    return problems->errors == errors;
}

static bool option_read(const char *option, struct seed_plan *plan, struct problems *problems)
{
    struct error err;
    union knob_value first, last;
    char *text = memory_copy_text(option), *dash = text[0] ? strchr(text + 1, '-') : NULL;
    if (dash)
        *dash = 0;
    bool good = knob_parse(&seed_kind, text, false, &first, &err) &&
                knob_parse(&seed_kind, dash ? dash + 1 : text, false, &last, &err) && last.integer >= first.integer;
    memory_free(text);
    plan->place = (struct place){"--seeds", 0, 0};
    if (!good) {
        problem_add(problems, plan->place, "'%s': expected one seed N, or A-B with A <= B, from 0 to %" PRId64, option,
                    INT64_MAX);
        return false;
    }
    plan->start = first.integer;
    plan->count = (uint64_t)(last.integer - first.integer) + 1;
    return true;
}

bool seed_plan_read(const struct yaml *node, const struct yaml *single, const char *option, bool whole,
                    struct seed_plan *plan, struct problems *problems)
{
    bool good = true;
    *plan = (struct seed_plan){.start = 1337, .count = 1};
    if (single && node)
        problem_add(problems, single->place, "seed at line %d and seeds at line %d: expected one of them",
                    single->place.line, node->place.line);
    if (single && !yaml_is_null(single))
        good = number_read(&seed_kind, single, &plan->start, problems);
    if (node && !yaml_is_null(node)) {
        plan->place = node->place;
        if (node->kind == YAML_SEQUENCE) {
            good &= list_check(node, problems);
            plan->list = node;
            plan->count = node->count;
        } else if (node->kind == YAML_MAPPING)
            good &= mapping_read(node, whole, plan, problems);
        else {
            problem_add(problems, node->place,
                        "seeds is '%s': expected a list such as [1337, 1338] or {count: 3, start: 1337}", node->text);
            good = false;
        }
    }
    if (option) {
        *plan = (struct seed_plan){0};
        good &= option_read(option, plan, problems);
    }
    return good;
}

int64_t *seed_plan_expand(const struct seed_plan *plan, size_t *count, struct problems *problems)
{
    int64_t *seeds = memory_alloc(plan->count, sizeof *seeds);
    *count = 0;
    if (!plan->list) {
        for (; *count < plan->count; (*count)++)
            seeds[*count] = plan->start + (int64_t)*count;
        return seeds;
    }
    struct text_index seen = {0};
    for (size_t i = 0; i < plan->list->count; i++) {
        int64_t seed = strtoll(plan->list->items[i]->text, NULL, 10);
        char text[32];
        snprintf(text, sizeof text, "%" PRId64, seed);
        if (text_index_find(&seen, text) != SIZE_MAX) {
            problem_note(problems, plan->list->items[i]->place, "seed %s is listed again: it runs once", text);
            continue;
        }
        text_index_add(&seen, text, i);
        seeds[(*count)++] = seed;
    }
    text_index_release(&seen);
    return seeds;
}
