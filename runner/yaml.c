/* The tree of a YAML file: nodes made, looked up and freed. */
#include "runner/yaml.h"

#include <string.h>

#include "core/memory.h"

struct yaml *yaml_node_create(enum yaml_kind kind, struct place place)
{
    struct yaml *node = memory_alloc(1, sizeof *node);
    node->kind = kind;
    node->place = place;
    return node;
}

void yaml_tree_free(struct yaml *tree)
{
    if (!tree)
        return;
    for (size_t i = 0; i < tree->count; i++) {
        yaml_tree_free(tree->items[i]);
        if (tree->keys)
            memory_free(tree->keys[i]);
    }
    memory_free(tree->items);
    memory_free(tree->keys);
    memory_free(tree->key_places);
    memory_free(tree->text);
    memory_free(tree->file);
    memory_free(tree);
}

/* Room grows in powers of two, so that long lists cost no quadratic copying. */
void yaml_node_append(struct yaml *node, char *key, struct place key_place, struct yaml *item)
{
    size_t n = node->count;
    if ((n & (n - 1)) == 0) {
        size_t room = n ? 2 * n : 1;
        node->items = memory_grow(node->items, n * sizeof *node->items, room, sizeof *node->items);
        if (node->kind == YAML_MAPPING) {
            node->keys = memory_grow(node->keys, n * sizeof *node->keys, room, sizeof *node->keys);
            node->key_places =
                memory_grow(node->key_places, n * sizeof *node->key_places, room, sizeof *node->key_places);
        }
    }
    node->items[n] = item;
    if (node->kind == YAML_MAPPING) {
        node->keys[n] = key;
        node->key_places[n] = key_place;
    }
    node->count++;
}

const struct yaml *yaml_get(const struct yaml *mapping, const char *key)
{
    if (mapping && mapping->kind == YAML_MAPPING)
        for (size_t i = 0; i < mapping->count; i++)
            if (strcmp(mapping->keys[i], key) == 0)
                return mapping->items[i];
    return NULL;
}

bool yaml_is_null(const struct yaml *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    if (node->kind != YAML_SCALAR || node->quoted)
        return false;
    for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++)
        if (strcmp(node->text, nulls[i]) == 0)
            return true;
    return false;
}

const char *yaml_kind_name(const struct yaml *node)
{
    if (yaml_is_null(node))
        return "nothing";
    switch (node->kind) {
    case YAML_SCALAR: return "text";
    case YAML_SEQUENCE: return "a list";
    case YAML_MAPPING: return "a mapping";
    }
    return "";
}
