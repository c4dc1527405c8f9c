/* Names of settings, their values, and the guess at a misspelt one. */
#include "runner/setting.h"

#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/file.h"

enum { PATH_SIZE = 256, CHOICES_MAX = 16 };

const char *setting_name(int setting)
{
    switch (setting) {
    case SETTING_CORPUS: return "data.corpus";
    case SETTING_VALIDATION: return "data.validation";
    default: return knobs[setting].name;
    }
}

const struct knob *setting_knob(int setting)
{
    return setting < SETTING_CORPUS ? &knobs[setting] : NULL;
}

int setting_find(const char *name)
{
    for (int i = 0; i < SETTING_COUNT; i++)
        if (strcmp(setting_name(i), name) == 0)
            return i;
    return -1;
}

/* ---- all settings of a run ---- */

void settings_init(struct settings *settings)
{
    config_init(&settings->config);
    settings->corpus = settings->validation = NULL;
    memset(settings->unread, 0, sizeof settings->unread);
}

void settings_apply(struct settings *settings, const struct setting_value *value)
{
    settings->unread[value->setting] = value->unread;
    if (value->unread)
        return;
    if (value->setting == SETTING_CORPUS)
        settings->corpus = value->source;
    else if (value->setting == SETTING_VALIDATION)
        settings->validation = value->source;
    else
        knob_set(&knobs[value->setting], &settings->config, value->knob);
}

bool settings_have(const struct settings *settings, const struct setting_value *value)
{
    if (settings->unread[value->setting])
        return true;
    if (value->setting == SETTING_CORPUS)
        return source_equal(settings->corpus, value->source);
    if (value->setting == SETTING_VALIDATION)
        return source_equal(settings->validation, value->source);
    const struct knob *knob = &knobs[value->setting];
    return knob_equal(knob, knob_get(knob, &settings->config), value->knob);
}

static size_t source_count(const struct yaml *source)
{
    return source->kind == YAML_SEQUENCE ? source->count : 1;
}

static const char *source_path(const struct yaml *source, size_t index)
{
    return source->kind == YAML_SEQUENCE ? source->items[index]->text : source->text;
}

static bool folder_equal(struct place a, struct place b)
{
    char *first = path_folder(a.line ? a.file : "."), *second = path_folder(b.line ? b.file : ".");
    bool equal = strcmp(first, second) == 0;
    memory_free(first);
    memory_free(second);
    return equal;
}

bool source_equal(const struct yaml *a, const struct yaml *b)
{
    if (a == b)
        return true;
    if (!a || !b || source_count(a) != source_count(b) || !folder_equal(a->place, b->place))
        return false;
    for (size_t i = 0; i < source_count(a); i++)
        if (strcmp(source_path(a, i), source_path(b, i)) != 0)
            return false;
    return true;
}

/* ---- values ---- */

static bool source_check(int setting, const struct yaml *node, struct problems *problems)
{
    const char *name = setting_name(setting), *accepted = "builtin, a file, folder or glob, or a list of them";
    if (node->kind == YAML_MAPPING || source_count(node) == 0) {
        problem_add(problems, node->place, "%s is %s: expected %s", name,
                    node->kind == YAML_MAPPING ? "a mapping" : "an empty list", accepted);
        return false;
    }
    for (size_t i = 0; i < source_count(node); i++) {
        const struct yaml *item = node->kind == YAML_SEQUENCE ? node->items[i] : node;
        if (item->kind != YAML_SCALAR || !item->text[0] || yaml_is_null(item)) {
            problem_add(problems, item->place, "%s has %s where a path should be: expected %s", name,
                        item->kind == YAML_SCALAR ? "nothing" : yaml_kind_name(item), accepted);
            return false;
        }
        if (node->kind == YAML_SEQUENCE && strcmp(item->text, "builtin") == 0) {
            problem_add(problems, item->place,
                        "%s has 'builtin' in a list: expected builtin alone, or paths (./builtin for a file)", name);
            return false;
        }
    }
    return true;
}

/* " (did you mean rmsnorm?)" for a misspelt choice. */
static void choice_suggest(const struct knob *knob, const char *text, char *buf, size_t size)
{
    char *names = memory_copy_text(knob->choices), *rest = names;
    const char *choices[CHOICES_MAX], *nearest;
    size_t count = 0;
    for (char *name; count < CHOICES_MAX && (name = strsep(&rest, "|"));)
        choices[count++] = name;
    buf[0] = 0;
    if ((nearest = suggest_nearest(text, choices, count)))
        snprintf(buf, size, " (did you mean %s?)", nearest);
    memory_free(names);
}

static bool knob_read(const struct knob *knob, const struct yaml *node, struct setting_value *value,
                      struct problems *problems)
{
    struct error err;
    char hint[128] = "";
    if (node->kind != YAML_SCALAR) {
        char accepted[256];
        problem_add(problems, node->place, "%s is %s: expected %s%s", knob->name, yaml_kind_name(node),
                    knob_describe(knob, accepted, sizeof accepted),
                    node->kind == YAML_SEQUENCE ? "; values to compare are listed under sweep: parameters:" : "");
        return false;
    }
    if (yaml_is_null(node)) {
        value->knob = knob->standard;
        return true;
    }
    if (knob_parse(knob, node->text, node->quoted, &value->knob, &err))
        return true;
    if (knob->kind == KNOB_CHOICE)
        choice_suggest(knob, node->text, hint, sizeof hint);
    problem_add(problems, node->place, "%s%s", err.text, hint);
    return false;
}

bool setting_parse(int setting, const struct yaml *node, struct setting_value *value, struct problems *problems)
{
    *value = (struct setting_value){.setting = setting, .key_place = node->place, .place = node->place};
    const struct knob *knob = setting_knob(setting);
    if (knob)
        return knob_read(knob, node, value, problems);
    if (yaml_is_null(node))
        return true;
    if (!source_check(setting, node, problems))
        return false;
    bool standard = setting == SETTING_CORPUS && node->kind == YAML_SCALAR && strcmp(node->text, "builtin") == 0;
    value->source = standard ? NULL : node;
    return true;
}

/* ---- names that are not there ---- */

static const char *field_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* The setting whose field is nearest to the last part of the key: in the key's own section, then in any. */
static const char *setting_nearest(const char *key)
{
    const char *fields[SETTING_COUNT], *names[SETTING_COUNT];
    size_t section = (size_t)(field_of(key) - key), count = 0;
    for (int i = 0; i < SETTING_COUNT; i++)
        if (strcmp(field_of(setting_name(i)), field_of(key)) == 0)
            return setting_name(i);
    for (int everywhere = 0; everywhere < 2; everywhere++, count = 0) {
        for (int i = 0; i < SETTING_COUNT; i++) {
            const char *name = setting_name(i);
            bool here = (size_t)(field_of(name) - name) == section && strncmp(name, key, section) == 0;
            if (here || everywhere) {
                fields[count] = field_of(name);
                names[count++] = name;
            }
        }
        const char *nearest = suggest_nearest(field_of(key), fields, count);
        for (size_t i = 0; nearest && i < count; i++)
            if (fields[i] == nearest)
                return names[i];
    }
    return NULL;
}

static const char *word_nearest(const char *key, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(field_of(words[i]), key) == 0)
            return words[i];
    return suggest_nearest(key, words, count);
}

static void words_join(char *buf, size_t size, const char *const *words, size_t count)
{
    size_t used = 0;
    buf[0] = 0;
    for (size_t i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "", words[i]);
}

/* The fields of the section a key stands in. */
static void section_describe(const char *key, char *buf, size_t size)
{
    const char *fields[SETTING_COUNT];
    size_t section = (size_t)(field_of(key) - key), count = 0;
    for (int i = 0; i < SETTING_COUNT; i++) {
        const char *name = setting_name(i);
        if (section && (size_t)(field_of(name) - name) == section && strncmp(name, key, section) == 0)
            fields[count++] = field_of(name);
    }
    words_join(buf, size, fields, count);
}

const char *unknown_key_report(struct problems *problems, struct place place, const char *key, const char *const *words,
                               size_t word_count)
{
    char accepted[1024];
    if (problems->errors >= PROBLEMS_SHOWN) { /* guessing costs time and nobody will see it */
        problem_add(problems, place, "unknown key '%s'", key);
        return NULL;
    }
    if (strcmp(field_of(key), "seed") == 0 || strcmp(field_of(key), "seeds") == 0) {
        problem_add(problems, place, "unknown key '%s': seeds stand at the top of the file, as in seeds: [1337, 1338]",
                    key);
        return NULL;
    }
    const char *nearest = word_nearest(key, words, word_count);
    if (!nearest)
        nearest = setting_nearest(key);
    if (nearest) {
        problem_add(problems, place, "unknown key '%s': did you mean %s?", key, nearest);
        return nearest;
    }
    while (word_count && strchr(words[word_count - 1], '.'))
        word_count--;
    words_join(accepted, sizeof accepted, words, word_count);
    if (!accepted[0])
        section_describe(key, accepted, sizeof accepted);
    if (accepted[0])
        problem_add(problems, place, "unknown key '%s': expected one of %s", key, accepted);
    else
        problem_add(problems, place,
                    "unknown key '%s': expected a full name such as model.norm (`runner knobs` lists them)", key);
    return NULL;
}

/* ---- mappings of settings ---- */

static bool path_is_section(const char *path)
{
    size_t length = strlen(path);
    for (int i = 0; i < SETTING_COUNT; i++)
        if (strncmp(setting_name(i), path, length) == 0 && setting_name(i)[length] == '.')
            return true;
    return false;
}

/* Reports the key and shows the setting that it probably means. */
static void unknown_see(const char *key, struct place place, const char *skip, setting_seen *see, void *context,
                        struct problems *problems)
{
    const char *nearest = unknown_key_report(problems, place, key, skip ? &skip : NULL, skip ? 1 : 0);
    int setting = nearest ? setting_find(nearest) : -1;
    if (setting >= 0)
        see(context, setting, place, NULL);
}

static void section_walk(const struct yaml *section, const char *path, struct place key_place, setting_seen *see,
                         void *context, struct problems *problems)
{
    if (yaml_is_null(section))
        return;
    if (section->kind != YAML_MAPPING) {
        problem_add(problems, key_place, "'%s' is %s%s%.60s%s: expected a mapping of its settings", path,
                    yaml_kind_name(section), section->text ? " '" : "", section->text ? section->text : "",
                    section->text ? "'" : "");
        return;
    }
    for (size_t i = 0; i < section->count; i++) {
        char key[PATH_SIZE];
        snprintf(key, sizeof key, "%s.%.200s", path, section->keys[i]);
        if (!setting_entry(key, section->key_places[i], section->items[i], see, context, problems))
            unknown_see(key, section->key_places[i], NULL, see, context, problems);
    }
}

bool setting_entry(const char *path, struct place key_place, const struct yaml *node, setting_seen *see, void *context,
                   struct problems *problems)
{
    int setting = setting_find(path);
    if (setting >= 0)
        see(context, setting, key_place, node);
    else if (path_is_section(path))
        section_walk(node, path, key_place, see, context, problems);
    else
        return false;
    return true;
}

void setting_walk(const struct yaml *mapping, const char *skip, setting_seen *see, void *context,
                  struct problems *problems)
{
    if (yaml_is_null(mapping))
        return;
    if (mapping->kind != YAML_MAPPING) {
        problem_add(problems, mapping->place, "expected a mapping of settings such as {model.norm: rmsnorm}, got %s",
                    yaml_kind_name(mapping));
        return;
    }
    for (size_t i = 0; i < mapping->count; i++) {
        if (skip && strcmp(mapping->keys[i], skip) == 0)
            continue;
        if (!setting_entry(mapping->keys[i], mapping->key_places[i], mapping->items[i], see, context, problems))
            unknown_see(mapping->keys[i], mapping->key_places[i], skip, see, context, problems);
    }
}

struct list_reader {
    struct setting_list *list;
    struct problems *problems;
};

void setting_list_add(struct setting_list *list, int setting, struct place key_place, const struct yaml *node,
                      struct problems *problems)
{
    struct setting_value value = {.setting = setting, .place = key_place, .guess = true}, *earlier = NULL;
    for (size_t i = 0; i < list->count; i++)
        if (list->values[i].setting == setting)
            earlier = &list->values[i];
    if (earlier && !node)
        return;
    if (earlier && !earlier->guess) {
        problem_add(problems, key_place, "%s is given twice: first at line %d, again at line %d", setting_name(setting),
                    earlier->key_place.line, key_place.line);
        earlier->unread = true;
        return;
    }
    bool read = node && setting_parse(setting, node, &value, problems);
    value.unread = !read || node->doubtful;
    value.key_place = key_place;
    if (earlier) {
        *earlier = value;
        return;
    }
    list->values = memory_grow(list->values, list->count * sizeof *list->values, list->count + 1, sizeof *list->values);
    list->values[list->count++] = value;
}

static void list_see(void *context, int setting, struct place key_place, const struct yaml *node)
{
    struct list_reader *reader = context;
    setting_list_add(reader->list, setting, key_place, node, reader->problems);
}

void setting_list_read(const struct yaml *mapping, const char *skip, struct setting_list *list,
                       struct problems *problems)
{
    struct list_reader reader = {list, problems};
    setting_walk(mapping, skip, list_see, &reader, problems);
}

void setting_list_release(struct setting_list *list)
{
    memory_free(list->values);
    *list = (struct setting_list){0};
}
