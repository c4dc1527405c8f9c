/* Reading a sweep block, and its points by number. */
#include "runner/sweep_block.h"

#include <string.h>

#include "core/memory.h"

enum { LABEL_LIMIT = 200 };

static const char *const method_names[] = {"grid", "ablation", "zip", "list"};
enum { METHODS = sizeof method_names / sizeof method_names[0] };

/* ---- reading ---- */

struct block_reader {
    struct sweep_block *block;
    struct problems *problems;
};

static void method_read(const struct yaml *node, struct sweep_block *block, struct problems *problems)
{
    if (yaml_is_null(node))
        return;
    const char *text = node->kind == YAML_SCALAR ? node->text : "";
    for (int i = 0; i < METHODS; i++)
        if (strcmp(text, method_names[i]) == 0) {
            block->method = (enum sweep_method)i;
            return;
        }
    const char *nearest = suggest_nearest(text, method_names, METHODS);
    problem_add(problems, node->place, "method is '%s': expected grid, ablation, zip or list%s%s%s",
                node->kind == YAML_SCALAR ? text : yaml_kind_name(node), nearest ? " (did you mean " : "",
                nearest ? nearest : "", nearest ? "?)" : "");
}

static bool axis_check(const struct block_reader *reader, int setting, struct place key_place, const struct yaml *node)
{
    const struct sweep_block *block = reader->block;
    const char *name = setting_name(setting);
    if (node->kind != YAML_SEQUENCE || node->count == 0)
        problem_add(reader->problems, node->kind == YAML_SEQUENCE ? key_place : node->place,
                    "axis %s is %s: expected a list of values, as in [a, b]", name,
                    node->kind == YAML_SEQUENCE ? "an empty list" : yaml_kind_name(node));
    for (size_t i = 0; i < block->axis_count; i++)
        if (block->axes[i].setting == setting) {
            problem_add(reader->problems, key_place, "axis %s is given twice: first at line %d, again at line %d", name,
                        block->axes[i].place.line, key_place.line);
            return false;
        }
    return node->kind == YAML_SEQUENCE;
}

static void axis_add(void *context, int setting, struct place key_place, const struct yaml *node)
{
    struct block_reader *reader = context;
    struct sweep_block *block = reader->block;
    struct axis axis = {.setting = setting, .place = key_place};
    if (node && axis_check(reader, setting, key_place, node)) {
        axis.values = memory_alloc(node->count, sizeof *axis.values);
        axis.count = node->count;
    }
    for (size_t i = 0; i < axis.count; i++) {
        if (yaml_is_null(node->items[i]))
            problem_add(reader->problems, node->items[i]->place,
                        "axis %s has nothing among its values: expected a value", setting_name(setting));
        else
            setting_parse(setting, node->items[i], &axis.values[i], reader->problems);
    }
    block->axes = memory_grow(block->axes, block->axis_count * sizeof axis, block->axis_count + 1, sizeof axis);
    block->axes[block->axis_count++] = axis;
}

static bool label_check(const char *label, struct place place, struct problems *problems)
{
    size_t length = strlen(label);
    bool control = false;
    for (const char *p = label; *p; p++)
        control |= (unsigned char)*p < 0x20 || *p == 0x7f;
    if (length && length <= LABEL_LIMIT && !control)
        return true;
    problem_add(problems, place, "label '%.60s' %s: expected 1 to %d bytes without control characters", label,
                control  ? "has control characters"
                : length ? "is too long"
                         : "is empty",
                LABEL_LIMIT);
    return false;
}

static void variants_read(const struct yaml *node, struct sweep_block *block, struct problems *problems)
{
    if (node->kind != YAML_MAPPING || node->count == 0) {
        problem_add(problems, node->place, "variants is %s: expected a mapping such as {wide: {model.d_model: 256}}",
                    node->kind == YAML_MAPPING ? "empty" : yaml_kind_name(node));
        return;
    }
    block->variants = memory_alloc(node->count, sizeof *block->variants);
    for (size_t i = 0; i < node->count; i++) {
        struct named_point *variant = &block->variants[block->variant_count++];
        *variant = (struct named_point){.label = node->keys[i], .place = node->key_places[i]};
        label_check(node->keys[i], node->key_places[i], problems);
        setting_list_read(node->items[i], NULL, &variant->list, problems);
    }
}

/* include and exclude: lists of mappings. False with a problem when it is anything else. */
static bool points_check(const struct yaml *node, const char *key, struct problems *problems)
{
    if (yaml_is_null(node))
        return false;
    if (node->kind != YAML_SEQUENCE) {
        problem_add(problems, node->place, "%s is %s: expected a list of mappings such as [{model.norm: rmsnorm}]", key,
                    yaml_kind_name(node));
        return false;
    }
    size_t errors = problems->errors;
    for (size_t i = 0; i < node->count; i++)
        if (node->items[i]->kind != YAML_MAPPING || node->items[i]->count == 0)
            problem_add(problems, node->items[i]->place,
                        "an entry of %s is %s: expected settings such as {model.norm: rmsnorm}", key,
                        node->items[i]->kind == YAML_MAPPING ? "empty" : yaml_kind_name(node->items[i]));
    return problems->errors == errors;
}

static void includes_read(const struct yaml *node, struct sweep_block *block, struct problems *problems)
{
    if (!points_check(node, "include", problems))
        return;
    block->includes = memory_alloc(node->count, sizeof *block->includes);
    for (size_t i = 0; i < node->count; i++) {
        struct named_point *point = &block->includes[block->include_count++];
        const struct yaml *label = yaml_get(node->items[i], "label");
        point->place = node->items[i]->place;
        if (label && !yaml_is_null(label)) {
            if (label->kind != YAML_SCALAR)
                problem_add(problems, label->place, "label is %s: expected text", yaml_kind_name(label));
            else if (label_check(label->text, label->place, problems))
                point->label = label->text;
        }
        setting_list_read(node->items[i], "label", &point->list, problems);
    }
}

static void excludes_read(const struct yaml *node, struct sweep_block *block, struct problems *problems)
{
    if (!points_check(node, "exclude", problems))
        return;
    block->exclusions = memory_alloc(node->count, sizeof *block->exclusions);
    for (size_t i = 0; i < node->count; i++) {
        struct exclusion *exclusion = &block->exclusions[block->exclusion_count++];
        exclusion->place = node->items[i]->place;
        setting_list_read(node->items[i], NULL, &exclusion->list, problems);
    }
}

static void block_check(const struct sweep_block *block, bool parameters, bool variants, struct problems *problems)
{
    const char *method = method_names[block->method];
    bool list = block->method == METHOD_LIST;
    if (list ? parameters : variants)
        problem_add(problems, block->place, "method %s has `%s`: expected `%s` (%s)", method,
                    list ? "parameters" : "variants", list ? "variants" : "parameters",
                    list ? "grid, ablation and zip take parameters" : "method: list takes variants");
    else if (!(list ? variants : parameters))
        problem_add(
            problems, block->place, "method %s has no `%s`: expected %s", method, list ? "variants" : "parameters",
            list ? "variants: {name: {model.norm: rmsnorm}}" : "parameters: {model.norm: [layernorm, rmsnorm]}");
}

static void zip_check(const struct sweep_block *block, struct problems *problems)
{
    const struct axis *first = block->axes;
    for (size_t i = 1; block->method == METHOD_ZIP && i < block->axis_count; i++) {
        const struct axis *axis = &block->axes[i];
        if (first->count && axis->count && axis->count != first->count)
            problem_add(problems, axis->place, "zip: %s has %zu values and %s has %zu: expected equal numbers",
                        setting_name(axis->setting), axis->count, setting_name(first->setting), first->count);
    }
}

void sweep_block_read(const struct yaml *node, struct place key_place, bool whole, struct sweep_block *block,
                      struct problems *problems)
{
    static const char *const words[] = {"method", "parameters", "variants", "include", "exclude"};
    enum { WORDS = sizeof words / sizeof words[0] };
    size_t errors = problems->errors;
    *block = (struct sweep_block){.place = key_place};
    if (node->kind != YAML_MAPPING) {
        problem_add(problems, node->place, "sweep is %s: expected a mapping of method and parameters",
                    yaml_kind_name(node));
        return;
    }
    struct block_reader reader = {block, problems};
    bool parameters = false, variants = false;
    for (size_t i = 0; i < node->count; i++) {
        const char *key = node->keys[i];
        const struct yaml *value = node->items[i];
        if (strcmp(key, "method") == 0)
            method_read(value, block, problems);
        else if (strcmp(key, "parameters") == 0) {
            setting_walk(value, NULL, axis_add, &reader, problems);
            parameters = !yaml_is_null(value) && (value->kind != YAML_MAPPING || value->count);
        } else if (strcmp(key, "variants") == 0) {
            variants_read(value, block, problems);
            variants = true;
        } else if (strcmp(key, "include") == 0)
            includes_read(value, block, problems);
        else if (strcmp(key, "exclude") == 0)
            excludes_read(value, block, problems);
        else
            unknown_key_report(problems, node->key_places[i], key, words, WORDS);
    }
    if (problems->errors == errors && whole)
        block_check(block, parameters, variants, problems);
    zip_check(block, problems);
    block->good = problems->errors == errors && whole;
}

static void points_name(const struct named_point *points, size_t count, bool named[SETTING_COUNT])
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < points[i].list.count; k++)
            named[points[i].list.values[k].setting] = true;
}

void sweep_block_names(const struct sweep_block *block, bool named[SETTING_COUNT])
{
    for (size_t i = 0; i < block->axis_count; i++)
        named[block->axes[i].setting] = true;
    points_name(block->variants, block->variant_count, named);
    points_name(block->includes, block->include_count, named);
}

static void named_points_free(struct named_point *points, size_t count)
{
    for (size_t i = 0; i < count; i++)
        setting_list_release(&points[i].list);
    memory_free(points);
}

void sweep_block_release(struct sweep_block *block)
{
    for (size_t i = 0; i < block->axis_count; i++)
        memory_free(block->axes[i].values);
    memory_free(block->axes);
    named_points_free(block->variants, block->variant_count);
    named_points_free(block->includes, block->include_count);
    for (size_t i = 0; i < block->exclusion_count; i++)
        setting_list_release(&block->exclusions[i].list);
    memory_free(block->exclusions);
    *block = (struct sweep_block){0};
}

/* ---- points ---- */

bool sweep_block_count(const struct sweep_block *block, uint64_t *count)
{
    uint64_t n = block->method == METHOD_GRID || block->method == METHOD_ABLATION;
    bool fits = true;
    for (size_t i = 0; i < block->axis_count; i++)
        switch (block->method) {
        case METHOD_GRID: fits &= !__builtin_mul_overflow(n, block->axes[i].count, &n); break;
        case METHOD_ABLATION: fits &= !__builtin_add_overflow(n, block->axes[i].count, &n); break;
        case METHOD_ZIP: n = block->axes[i].count; break;
        case METHOD_LIST: break;
        }
    fits &= !__builtin_add_overflow(n, block->variant_count + block->include_count, count);
    return fits;
}

size_t sweep_block_width(const struct sweep_block *block)
{
    size_t width = block->axis_count;
    for (size_t i = 0; i < block->variant_count; i++)
        width = block->variants[i].list.count > width ? block->variants[i].list.count : width;
    for (size_t i = 0; i < block->include_count; i++)
        width = block->includes[i].list.count > width ? block->includes[i].list.count : width;
    return width;
}

static void point_add(struct sweep_point *point, const struct setting_value *value)
{
    point->values[point->count++] = value;
}

static void point_from_axes(const struct sweep_block *block, uint64_t number, struct sweep_point *point)
{
    if (block->method == METHOD_ABLATION) {
        point->on_baseline = true;
        point->control = number == 0;
        for (size_t i = 0; number > 0 && i < block->axis_count; i++) {
            if (number <= block->axes[i].count)
                point_add(point, &block->axes[i].values[number - 1]);
            number = number > block->axes[i].count ? number - block->axes[i].count : 0;
        }
        return;
    }
    uint64_t rest = number;
    for (size_t i = block->axis_count; i-- > 0;) {
        uint64_t index = block->method == METHOD_ZIP ? number : rest % block->axes[i].count;
        rest /= block->axes[i].count;
        point->values[i] = &block->axes[i].values[index];
    }
    point->count = block->axis_count;
}

void sweep_block_point(const struct sweep_block *block, uint64_t number, struct sweep_point *point)
{
    uint64_t total = 0;
    sweep_block_count(block, &total);
    uint64_t expanded = total - block->include_count;
    const struct setting_value **values = point->values;
    *point = (struct sweep_point){.values = values, .included = number >= expanded, .place = block->place};
    const struct named_point *named = point->included                ? &block->includes[number - expanded]
                                      : block->method == METHOD_LIST ? &block->variants[number]
                                                                     : NULL;
    if (!named) {
        point_from_axes(block, number, point);
        if (point->count)
            point->place = point->values[0]->place;
        return;
    }
    point->label = named->label;
    point->place = named->place;
    for (size_t i = 0; i < named->list.count; i++)
        point_add(point, &named->list.values[i]);
}

struct exclusion *sweep_block_exclusion(const struct sweep_block *block, const struct settings *settings)
{
    for (size_t i = 0; i < block->exclusion_count; i++) {
        const struct setting_list *list = &block->exclusions[i].list;
        bool all = list->count > 0;
        for (size_t k = 0; all && k < list->count; k++)
            all = settings_have(settings, &list->values[k]);
        if (all)
            return &block->exclusions[i];
    }
    return NULL;
}
