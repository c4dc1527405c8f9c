/* YAML events to a tree, with everything refused that would be silently misread. */
#include "runner/yaml.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "core/memory.h"
#include "runner/file.h"

enum { DEPTH_LIMIT = 64, NODE_LIMIT = 100000, KEY_LIMIT = 4000, ANCHOR_LIMIT = 1000, EXCERPT = 40 };

struct anchor {
    char *name;
    const struct yaml *node; /* NULL while the node is still being read: an alias to it is a cycle */
};

struct reader {
    yaml_parser_t parser;
    const char *name, *text;
    size_t size;
    struct problems *problems;
    struct anchor anchors[ANCHOR_LIMIT];
    size_t anchor_count, node_count;
    struct yaml *merged; /* what stood behind merge keys: anchors may point into it */
};

/* ---- what libyaml says ---- */

static struct place place_of(const struct reader *reader, yaml_mark_t mark)
{
    return (struct place){reader->name, (int)mark.line + 1, (int)mark.column + 1};
}

/* The mark of a byte, for libyaml gives offsets alone when the bytes are no UTF-8. */
static struct place place_at(const struct reader *reader, size_t offset)
{
    struct place place = {reader->name, 1, 1};
    for (size_t i = 0; i < offset && i < reader->size; i++) {
        bool newline = reader->text[i] == '\n';
        place.line += newline;
        place.column = newline ? 1 : place.column + ((reader->text[i] & 0xc0) != 0x80);
    }
    return place;
}

/* The rest of the line at a mark, cut to a few words. */
static int excerpt_length(const struct reader *reader, size_t line, const char **start)
{
    const char *p = reader->text, *end = reader->text + reader->size;
    for (; line > 0 && p < end; p++)
        line -= *p == '\n';
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    *start = p;
    int length = 0;
    while (p + length < end && p[length] != '\n' && p[length] != '\r' && p[length] && length < EXCERPT)
        length++;
    return length;
}

static bool line_has_leading_tab(const struct reader *reader, size_t line)
{
    const char *p = reader->text, *end = reader->text + reader->size;
    for (; line > 0 && p < end; p++)
        line -= *p == '\n';
    while (p < end && *p == ' ')
        p++;
    return p < end && *p == '\t';
}

static void syntax_report(struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    const char *problem = parser->problem ? parser->problem : "cannot be read";
    if (parser->error == YAML_READER_ERROR) {
        problem_add(reader->problems, place_at(reader, parser->problem_offset),
                    "not UTF-8 text: %s; save the file as UTF-8 without control characters", problem);
        return;
    }
    const char *start;
    int length = excerpt_length(reader, parser->problem_mark.line, &start);
    struct place place = place_of(reader, parser->problem_mark);
    if (line_has_leading_tab(reader, parser->problem_mark.line))
        problem_add(reader->problems, place, "a tab indents '%.*s': indent with spaces", length, start);
    else
        problem_add(reader->problems, place, "not YAML at '%.*s': %s%s%s", length, start, problem,
                    parser->context ? " " : "", parser->context ? parser->context : "");
}

static bool event_next(struct reader *reader, yaml_event_t *event)
{
    if (yaml_parser_parse(&reader->parser, event))
        return true;
    syntax_report(reader);
    return false;
}

/* ---- anchors ---- */

static struct anchor *anchor_find(struct reader *reader, const char *name)
{
    for (size_t i = reader->anchor_count; i-- > 0;)
        if (strcmp(reader->anchors[i].name, name) == 0)
            return &reader->anchors[i];
    return NULL;
}

/* *index gets where the anchor of this event will be completed, or ANCHOR_LIMIT. */
static bool anchor_open(struct reader *reader, const yaml_char_t *name, struct place place, size_t *index)
{
    *index = ANCHOR_LIMIT;
    if (!name)
        return true;
    if (reader->anchor_count == ANCHOR_LIMIT) {
        problem_add(reader->problems, place, "more than %d anchors: expected fewer", ANCHOR_LIMIT);
        return false;
    }
    *index = reader->anchor_count++;
    reader->anchors[*index].name = memory_copy_text((const char *)name);
    return true;
}

static void anchor_close(struct reader *reader, size_t index, const struct yaml *node)
{
    if (index < ANCHOR_LIMIT)
        reader->anchors[index].node = node;
}

static bool node_count_more(struct reader *reader, struct place place)
{
    if (++reader->node_count <= NODE_LIMIT)
        return true;
    problem_add(reader->problems, place, "more than %d values once aliases are followed: expected fewer", NODE_LIMIT);
    return false;
}

static bool depth_allowed(struct reader *reader, struct place place, int depth)
{
    if (depth <= DEPTH_LIMIT)
        return true;
    problem_add(reader->problems, place, "nested more than %d deep: expected at most %d", DEPTH_LIMIT, DEPTH_LIMIT);
    return false;
}

static struct yaml *node_copy(struct reader *reader, const struct yaml *node, struct place alias, int depth)
{
    if (!depth_allowed(reader, alias, depth) || !node_count_more(reader, alias))
        return NULL;
    struct yaml *copy = yaml_node_create(node->kind, node->place);
    copy->quoted = node->quoted;
    if (node->text)
        copy->text = memory_copy_text(node->text);
    for (size_t i = 0; i < node->count; i++) {
        struct yaml *item = node_copy(reader, node->items[i], alias, depth + 1);
        if (!item) {
            yaml_tree_free(copy);
            return NULL;
        }
        bool mapping = node->kind == YAML_MAPPING;
        yaml_node_append(copy, mapping ? memory_copy_text(node->keys[i]) : NULL,
                         mapping ? node->key_places[i] : (struct place){0}, item);
    }
    return copy;
}

static struct yaml *alias_read(struct reader *reader, const yaml_event_t *event, int depth)
{
    const char *name = (const char *)event->data.alias.anchor;
    struct place place = place_of(reader, event->start_mark);
    const struct anchor *anchor = anchor_find(reader, name);
    if (!anchor)
        problem_add(reader->problems, place, "alias '*%s' has no anchor '&%s' before it", name, name);
    else if (!anchor->node)
        problem_add(reader->problems, place, "alias '*%s' stands inside its own anchor: expected no cycle", name);
    else
        return node_copy(reader, anchor->node, place, depth);
    return NULL;
}

/* ---- mappings ---- */

static bool keys_refuse(struct reader *reader, struct place place)
{
    problem_add(reader->problems, place, "a mapping of more than %d keys: expected fewer", KEY_LIMIT);
    return false;
}

static int compare_keys(const void *a, const void *b, void *context)
{
    const struct yaml *node = context;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    int order = strcmp(node->keys[i], node->keys[j]);
    return order ? order : (i > j) - (i < j);
}

static void duplicates_report(struct reader *reader, const struct yaml *node)
{
    size_t *order = memory_alloc(node->count, sizeof *order);
    for (size_t i = 0; i < node->count; i++)
        order[i] = i;
    qsort_r(order, node->count, sizeof *order, compare_keys, (void *)(uintptr_t)node);
    for (size_t i = 1; i < node->count; i++)
        if (strcmp(node->keys[order[i]], node->keys[order[i - 1]]) == 0)
            problem_add(reader->problems, node->key_places[order[i]],
                        "key '%s' is given twice: first at line %d, again at line %d", node->keys[order[i]],
                        node->key_places[order[i - 1]].line, node->key_places[order[i]].line);
    memory_free(order);
}

/* Takes the value of a key out of the mapping. */
static struct yaml *mapping_take(struct yaml *node, size_t index)
{
    struct yaml *value = node->items[index];
    memory_free(node->keys[index]);
    node->count--;
    memmove(node->items + index, node->items + index + 1, (node->count - index) * sizeof *node->items);
    memmove(node->keys + index, node->keys + index + 1, (node->count - index) * sizeof *node->keys);
    memmove(node->key_places + index, node->key_places + index + 1, (node->count - index) * sizeof *node->key_places);
    return value;
}

/* Copies what `from` has and the node has not. */
static bool mapping_merge(struct reader *reader, struct yaml *node, const struct yaml *from, int depth)
{
    for (size_t i = 0; i < from->count; i++) {
        if (yaml_get(node, from->keys[i]))
            continue;
        struct yaml *copy = node_copy(reader, from->items[i], from->key_places[i], depth + 1);
        if (!copy)
            return false;
        yaml_node_append(node, memory_copy_text(from->keys[i]), from->key_places[i], copy);
    }
    return node->count <= KEY_LIMIT || keys_refuse(reader, node->place);
}

static bool merge_apply(struct reader *reader, struct yaml *node, const struct yaml *value, int depth)
{
    bool list = value->kind == YAML_SEQUENCE;
    size_t count = list ? value->count : 1;
    for (size_t i = 0; i < count; i++) {
        const struct yaml *from = list ? value->items[i] : value;
        if (from->kind != YAML_MAPPING)
            problem_add(reader->problems, from->place, "merge key '<<' is %s: expected a mapping or a list of them",
                        yaml_kind_name(from));
        else if (!mapping_merge(reader, node, from, depth))
            return false;
    }
    return true;
}

static bool merges_apply(struct reader *reader, struct yaml *node, int depth)
{
    for (size_t i = 0; i < node->count;) {
        if (strcmp(node->keys[i], "<<") != 0) {
            i++;
            continue;
        }
        struct yaml *value = mapping_take(node, i);
        yaml_node_append(reader->merged, NULL, (struct place){0}, value);
        if (!merge_apply(reader, node, value, depth))
            return false;
    }
    return true;
}

/* ---- events ---- */

static void tag_check(struct reader *reader, const yaml_char_t *tag, struct place place)
{
    if (tag)
        problem_add(reader->problems, place, "tag '%s' is not accepted: the field decides the type", (const char *)tag);
}

static struct yaml *node_read(struct reader *reader, yaml_event_t *event, int depth);

static struct yaml *scalar_read(struct reader *reader, const yaml_event_t *event)
{
    struct place place = place_of(reader, event->start_mark);
    const char *text = (const char *)event->data.scalar.value;
    tag_check(reader, event->data.scalar.tag, place);
    if (strlen(text) != event->data.scalar.length)
        problem_add(reader->problems, place, "text '%.*s' goes on after a NUL character: expected none", EXCERPT, text);
    struct yaml *node = yaml_node_create(YAML_SCALAR, place);
    node->text = memory_copy_text(text);
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return node;
}

static bool sequence_fill(struct reader *reader, struct yaml *node, int depth)
{
    for (;;) {
        yaml_event_t event;
        if (!event_next(reader, &event))
            return false;
        bool end = event.type == YAML_SEQUENCE_END_EVENT;
        struct yaml *item = end ? NULL : node_read(reader, &event, depth + 1);
        yaml_event_delete(&event);
        if (!item)
            return end;
        yaml_node_append(node, NULL, (struct place){0}, item);
    }
}

/* Takes the key's event over. NULL when it is no text. */
static char *key_read(struct reader *reader, yaml_event_t *event, struct place *place)
{
    *place = place_of(reader, event->start_mark);
    char *key = NULL;
    if (event->type != YAML_SCALAR_EVENT)
        problem_add(reader->problems, *place, "a key is %s: expected a plain word",
                    event->type == YAML_ALIAS_EVENT ? "an alias" : "a list or mapping");
    else {
        struct yaml *scalar = scalar_read(reader, event);
        key = scalar->text;
        scalar->text = NULL;
        yaml_tree_free(scalar);
    }
    yaml_event_delete(event);
    return key;
}

static bool mapping_fill(struct reader *reader, struct yaml *node, int depth)
{
    for (;;) {
        yaml_event_t event;
        struct place place;
        if (!event_next(reader, &event))
            return false;
        if (event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            return true;
        }
        char *key = key_read(reader, &event, &place);
        if (!key || !event_next(reader, &event)) {
            memory_free(key);
            return false;
        }
        struct yaml *value = node_read(reader, &event, depth + 1);
        yaml_event_delete(&event);
        if (!value) {
            memory_free(key);
            return false;
        }
        yaml_node_append(node, key, place, value);
        if (node->count > KEY_LIMIT)
            return keys_refuse(reader, node->place);
    }
}

static struct yaml *collection_read(struct reader *reader, const yaml_event_t *event, int depth)
{
    bool mapping = event->type == YAML_MAPPING_START_EVENT;
    struct place place = place_of(reader, event->start_mark);
    size_t anchor;
    tag_check(reader, mapping ? event->data.mapping_start.tag : event->data.sequence_start.tag, place);
    if (!anchor_open(reader, mapping ? event->data.mapping_start.anchor : event->data.sequence_start.anchor, place,
                     &anchor))
        return NULL;
    struct yaml *node = yaml_node_create(mapping ? YAML_MAPPING : YAML_SEQUENCE, place);
    if (!(mapping ? mapping_fill(reader, node, depth) : sequence_fill(reader, node, depth))) {
        yaml_tree_free(node);
        return NULL;
    }
    if (mapping) {
        duplicates_report(reader, node);
        if (!merges_apply(reader, node, depth)) {
            yaml_tree_free(node);
            return NULL;
        }
    }
    anchor_close(reader, anchor, node);
    return node;
}

/* The node that starts with the event, to its end; NULL when reading cannot go on. */
static struct yaml *node_read(struct reader *reader, yaml_event_t *event, int depth)
{
    struct place place = place_of(reader, event->start_mark);
    if (!depth_allowed(reader, place, depth))
        return NULL;
    if (event->type == YAML_ALIAS_EVENT)
        return alias_read(reader, event, depth);
    if (!node_count_more(reader, place))
        return NULL;
    if (event->type != YAML_SCALAR_EVENT)
        return collection_read(reader, event, depth);
    size_t anchor;
    if (!anchor_open(reader, event->data.scalar.anchor, place, &anchor))
        return NULL;
    struct yaml *node = scalar_read(reader, event);
    anchor_close(reader, anchor, node);
    return node;
}

/* STREAM-START DOCUMENT-START node DOCUMENT-END STREAM-END, and nothing else. */
static struct yaml *document_read(struct reader *reader)
{
    struct yaml *root = NULL;
    for (;;) {
        yaml_event_t event;
        if (!event_next(reader, &event))
            return root;
        yaml_event_type_t type = event.type;
        if (type == YAML_DOCUMENT_START_EVENT && root) {
            problem_add(reader->problems, place_of(reader, event.start_mark),
                        "a second document begins at '---': expected one document a file");
            yaml_event_delete(&event);
            return root;
        }
        bool structural = type == YAML_STREAM_START_EVENT || type == YAML_STREAM_END_EVENT ||
                          type == YAML_DOCUMENT_START_EVENT || type == YAML_DOCUMENT_END_EVENT;
        if (!structural)
            root = node_read(reader, &event, 1);
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT || (!structural && !root))
            return root;
    }
}

struct yaml *yaml_parse(const char *name, const char *text, size_t size, struct problems *problems)
{
    size_t errors = problems->errors;
    if (size > YAML_FILE_LIMIT) {
        problem_add(problems, (struct place){name, 0, 0}, "%zu bytes: expected at most %d", size, YAML_FILE_LIMIT);
        return NULL;
    }
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* libyaml takes a byte order mark for text */
        text += 3;
        size -= 3;
    }
    char *file = memory_copy_text(name);
    struct reader *reader = memory_alloc(1, sizeof *reader);
    *reader = (struct reader){.name = file, .text = text, .size = size, .problems = problems};
    reader->merged = yaml_node_create(YAML_SEQUENCE, (struct place){file, 0, 0});
    struct yaml *root = NULL;
    if (!yaml_parser_initialize(&reader->parser))
        abort();
    yaml_parser_set_encoding(&reader->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader->parser, (const unsigned char *)text, size);
    root = document_read(reader);
    yaml_parser_delete(&reader->parser);
    for (size_t i = 0; i < reader->anchor_count; i++)
        memory_free(reader->anchors[i].name);
    yaml_tree_free(reader->merged);
    memory_free(reader);
    if (problems->errors > errors) {
        yaml_tree_free(root);
        root = NULL;
    } else if (!root) {
        root = yaml_node_create(YAML_SCALAR, (struct place){file, 1, 1});
        root->text = memory_copy_text("");
    }
    if (root)
        root->file = file;
    else
        memory_free(file);
    return root;
}

struct yaml *yaml_read(const char *path, struct problems *problems)
{
    char *text;
    size_t size;
    struct error err;
    if (!file_read(path, YAML_FILE_LIMIT, &text, &size, &err)) {
        problem_add(problems, (struct place){0}, "%s", err.text);
        return NULL;
    }
    struct yaml *root = yaml_parse(path, text, size, problems);
    memory_free(text);
    return root;
}
