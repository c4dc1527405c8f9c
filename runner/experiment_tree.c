/* extends: files are read, made flat, then merged from the base up; --set comes last. */
#include "runner/experiment_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/file.h"
#include "runner/setting.h"
#include "runner/text_index.h"

enum { CHAIN_LIMIT = 16, PATH_LIMIT = 200, FLAT_LIMIT = 4000 };

/* ---- one file, flat ---- */

struct flattener {
    struct yaml *flat;
    struct text_index seen; /* path to index in flat */
    bool file;              /* a whole file, not a mapping of settings inside it */
    struct problems *problems;
};

static bool text_is_in(const char *text, const char *const *list)
{
    for (; list && *list; list++)
        if (strcmp(text, *list) == 0)
            return true;
    return false;
}

/* Takes the value over. */
static void flat_add(struct flattener *f, const char *path, struct place key_place, struct yaml *value)
{
    size_t earlier = text_index_find(&f->seen, path);
    if (earlier != SIZE_MAX || f->flat->count >= FLAT_LIMIT) {
        if (earlier != SIZE_MAX) {
            problem_add(f->problems, key_place, "%s is given twice: first at line %d, again at line %d", path,
                        f->flat->key_places[earlier].line, key_place.line);
            f->flat->items[earlier]->doubtful = true;
        } else
            problem_add(f->problems, key_place, "more than %d keys: expected fewer", FLAT_LIMIT);
        yaml_tree_free(value);
        return;
    }
    text_index_add(&f->seen, path, f->flat->count);
    yaml_node_append(f->flat, memory_copy_text(path), key_place, value);
}

/* A key of the file or of a set of settings that holds others: any but a misspelt one and those read whole. */
static bool key_is_section(const struct flattener *f, const char *key)
{
    static const char *const sections[] = {"data",     "model",   "training", "evaluation",
                                           "baseline", "compare", "launcher", NULL};
    char first[PATH_LIMIT];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(key, "."), key);
    return !f->file || text_is_in(first, sections);
}

static void flatten(struct flattener *f, struct yaml *mapping, const char *prefix)
{
    for (size_t i = 0; i < mapping->count; i++) {
        char path[PATH_LIMIT];
        struct yaml *value = mapping->items[i];
        snprintf(path, sizeof path, "%s%s%s", prefix, prefix[0] ? "." : "", mapping->keys[i]);
        const char *name = strncmp(path, "baseline.", 9) == 0 ? path + 9 : path;
        if (value->kind == YAML_MAPPING && value->count && key_is_section(f, path) && setting_find(name) < 0) {
            flatten(f, value, path);
            continue;
        }
        mapping->items[i] = NULL;
        flat_add(f, path, mapping->key_places[i], value);
    }
}

/* The mapping is used up; its place and file are kept. */
static struct yaml *tree_flatten(struct yaml *mapping, bool file, struct problems *problems)
{
    struct flattener f = {yaml_node_create(YAML_MAPPING, mapping->place), {0}, file, problems};
    flatten(&f, mapping, "");
    text_index_release(&f.seen);
    f.flat->file = mapping->file;
    mapping->file = NULL;
    yaml_tree_free(mapping);
    return f.flat;
}

static void item_flatten(struct yaml *mapping, size_t index, struct problems *problems)
{
    if (mapping->items[index]->kind == YAML_MAPPING)
        mapping->items[index] = tree_flatten(mapping->items[index], false, problems);
}

static struct yaml *file_flatten(struct yaml *root, struct problems *problems)
{
    struct yaml *flat = tree_flatten(root, true, problems);
    for (size_t i = 0; i < flat->count; i++) {
        struct yaml *sweep = flat->items[i];
        if (strcmp(flat->keys[i], "sweep") != 0 || sweep->kind != YAML_MAPPING)
            continue;
        for (size_t k = 0; k < sweep->count; k++) {
            struct yaml *part = sweep->items[k];
            if (strcmp(sweep->keys[k], "parameters") == 0)
                item_flatten(sweep, k, problems);
            if (strcmp(sweep->keys[k], "variants") == 0 && part->kind == YAML_MAPPING)
                for (size_t v = 0; v < part->count; v++)
                    item_flatten(part, v, problems);
        }
    }
    return flat;
}

/* ---- several files ---- */

static size_t key_index(const struct yaml *mapping, const char *key)
{
    for (size_t i = 0; i < mapping->count; i++)
        if (strcmp(mapping->keys[i], key) == 0)
            return i;
    return SIZE_MAX;
}

/* Moves everything of `over` into base, where it wins; mappings are merged. */
static void tree_merge(struct yaml *base, struct yaml *over)
{
    for (size_t i = 0; i < over->count; i++) {
        size_t at = key_index(base, over->keys[i]);
        struct yaml *value = over->items[i];
        over->items[i] = NULL;
        if (at == SIZE_MAX) {
            yaml_node_append(base, over->keys[i], over->key_places[i], value);
            over->keys[i] = NULL;
        } else if (value->kind == YAML_MAPPING && base->items[at]->kind == YAML_MAPPING) {
            base->key_places[at] = over->key_places[i];
            tree_merge(base->items[at], value);
        } else {
            yaml_tree_free(base->items[at]);
            base->items[at] = value;
            base->key_places[at] = over->key_places[i];
        }
    }
    base->place = over->place;
    yaml_tree_free(over);
}

static void file_keep(struct experiment_tree *tree, char *file)
{
    tree->files =
        memory_grow(tree->files, tree->file_count * sizeof *tree->files, tree->file_count + 1, sizeof *tree->files);
    tree->files[tree->file_count++] = file;
}

/* Where the base stands, or NULL when there is none or (*bad) it is no text. */
static char *base_path(struct yaml *root, const char *path, struct place *place, bool *bad, struct problems *problems)
{
    const struct yaml *extends = yaml_get(root, "extends");
    if (!extends || yaml_is_null(extends))
        return NULL;
    *place = extends->place;
    if (extends->kind != YAML_SCALAR || !extends->text[0]) {
        problem_add(problems, extends->place, "extends is %s: expected the path of one file",
                    extends->kind == YAML_SCALAR ? "empty" : yaml_kind_name(extends));
        *bad = true;
        return NULL;
    }
    char *folder = path_folder(path), *joined = path_join(folder, extends->text);
    memory_free(folder);
    if (strncmp(joined, "./", 2) != 0 || strncmp(path, "./", 2) == 0)
        return joined;
    char *plain = memory_copy_text(joined + 2);
    memory_free(joined);
    return plain;
}

static bool file_is_large(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > YAML_FILE_LIMIT;
}

/* One file of the chain; text gets its bytes when not NULL. */
static struct yaml *file_load(const char *path, struct place from, char **text, struct problems *problems)
{
    struct error err;
    char *bytes;
    size_t size;
    struct place place = !from.file && file_is_large(path) ? (struct place){path, 1, 1} : from;
    if (!file_read(path, YAML_FILE_LIMIT, &bytes, &size, &err)) {
        problem_add(problems, place, "%s%s", from.file ? "extends: " : "", err.text);
        return NULL;
    }
    struct yaml *root = yaml_parse(path, bytes, size, problems);
    if (text)
        *text = bytes;
    else
        memory_free(bytes);
    if (root && root->kind != YAML_MAPPING) {
        problem_add(problems, root->place, "the file is %s: expected a mapping such as 'model: {norm: rmsnorm}'",
                    yaml_is_null(root) ? "empty" : yaml_kind_name(root));
        yaml_tree_free(root);
        return NULL;
    }
    return root ? file_flatten(root, problems) : NULL;
}

struct chain {
    struct yaml *roots[CHAIN_LIMIT]; /* the file itself first */
    char *real[CHAIN_LIMIT];         /* resolved paths */
    size_t count;
};

static bool chain_has_room(const struct chain *chain, const char *path, struct place from, struct problems *problems)
{
    char *real = realpath(path, NULL);
    bool again = false;
    for (size_t i = 0; real && i < chain->count; i++)
        again |= chain->real[i] && strcmp(real, chain->real[i]) == 0;
    free(real);
    if (again)
        problem_add(problems, from, "extends: '%s' is already being extended: expected no cycle", path);
    else if (chain->count == CHAIN_LIMIT)
        problem_add(problems, from, "extends: more than %d files in a row: expected fewer", CHAIN_LIMIT);
    return !again && chain->count < CHAIN_LIMIT;
}

/* Fills the chain from the file to its last base. */
static bool chain_read(struct chain *chain, const char *path, struct experiment_tree *tree, struct problems *problems)
{
    char *next = memory_copy_text(path);
    struct place from = {0};
    bool bad = false;
    while (next && chain_has_room(chain, next, from, problems)) {
        struct yaml *root = file_load(next, from, chain->count ? NULL : &tree->text, problems);
        if (!root)
            break;
        file_keep(tree, root->file);
        root->file = NULL;
        chain->real[chain->count] = realpath(next, NULL);
        chain->roots[chain->count++] = root;
        char *base = base_path(root, next, &from, &bad, problems);
        memory_free(next);
        next = base;
    }
    bool complete = !next && !bad;
    memory_free(next);
    return complete;
}

/* ---- the question ---- */

/* The comment that opens the file, without its '#' signs. Owner: caller. */
static char *question_read(const char *text)
{
    char *question = memory_alloc(strlen(text) + 1, 1), *end = question;
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        const char *start = line + strspn(line, " \t");
        bool blank = (size_t)(start - line) >= length || *start == '\r';
        if (*start == '#') {
            start += 1 + (start[1] == ' ');
            size_t size = length > (size_t)(start - line) ? length - (size_t)(start - line) : 0;
            while (size && (start[size - 1] == '\r' || start[size - 1] == ' '))
                size--;
            if (end != question)
                *end++ = '\n';
            memcpy(end, start, size);
            end += size;
        } else if (end != question || (!blank && strncmp(line, "---", 3) != 0 && *line != '%'))
            break;
        line += length + (line[length] == '\n');
    }
    *end = 0;
    return question;
}

/* ---- --set ---- */

static const char *const set_words[] = {"name",          "description",    "compare.metric",
                                        "compare.split", "compare.margin", "compare.alpha"};
enum { SET_WORDS = sizeof set_words / sizeof set_words[0] };

static bool set_key_check(const char *key, struct place place, struct problems *problems)
{
    if (setting_find(key) >= 0)
        return true;
    for (size_t i = 0; i < SET_WORDS; i++)
        if (strcmp(key, set_words[i]) == 0)
            return true;
    if (strcmp(key, "seeds") == 0 || strcmp(key, "seed") == 0)
        problem_add(problems, place, "'%s' is not set this way: expected --seeds N or --seeds A-B", key);
    else
        unknown_key_report(problems, place, key, set_words, SET_WORDS);
    return false;
}

static bool set_value_check(const char *key, const char *value, struct place place, struct problems *problems)
{
    bool empty = value[strspn(value, " \t")] == 0;
    bool null = strcmp(value, "~") == 0 || strcasecmp(value, "null") == 0;
    bool list = strchr("[{", value[0]) || (strchr(value, ',') && strcmp(key, "description") != 0);
    if (empty || null)
        problem_add(problems, place, "%s has %s: expected one value, as in --set model.norm=rmsnorm", key,
                    empty ? "no value" : "nothing");
    else if (list)
        problem_add(
            problems, place,
            "%s is '%s': expected one value; several to compare are listed in the file under sweep: parameters:", key,
            value);
    return !empty && !null && !list;
}

static void set_apply(struct experiment_tree *tree, const char *set, struct text_index *seen, struct problems *problems)
{
    size_t size = strlen(set) + sizeof "--set ";
    char *name = memory_alloc(size, 1), *key = memory_copy_text(set), *equal = strchr(key, '=');
    snprintf(name, size, "--set %s", set);
    file_keep(tree, name);
    struct place place = {name, 0, 0};
    if (equal)
        *equal = 0;
    if (!equal || !key[0])
        problem_add(problems, place, "'%s' has no %s: expected key=value, as in --set model.norm=rmsnorm", set,
                    equal ? "key" : "'='");
    else if (text_index_find(seen, key) != SIZE_MAX) {
        size_t at = key_index(tree->root, key);
        problem_add(problems, place, "%s is set twice: expected once", key);
        if (at != SIZE_MAX)
            tree->root->items[at]->doubtful = true;
    } else {
        text_index_add(seen, key, 0);
        if (set_key_check(key, place, problems) && set_value_check(key, equal + 1, place, problems)) {
            struct yaml *over = yaml_node_create(YAML_MAPPING, tree->root->place);
            struct yaml *value = yaml_node_create(YAML_SCALAR, place);
            value->text = memory_copy_text(equal + 1);
            yaml_node_append(over, memory_copy_text(key), place, value);
            tree_merge(tree->root, over);
        }
    }
    memory_free(key);
}

bool experiment_tree_read(const char *path, const struct experiment_options *options, struct experiment_tree *tree,
                          struct problems *problems)
{
    struct chain chain = {.count = 0};
    *tree = (struct experiment_tree){0};
    tree->complete = chain_read(&chain, path, tree, problems);
    while (chain.count) {
        struct yaml *over = chain.roots[--chain.count];
        free(chain.real[chain.count]);
        if (tree->root)
            tree_merge(tree->root, over);
        else
            tree->root = over;
    }
    if (tree->text)
        tree->question = question_read(tree->text);
    struct text_index seen = {0};
    for (size_t i = 0; tree->root && i < options->set_count; i++)
        set_apply(tree, options->sets[i], &seen, problems);
    text_index_release(&seen);
    return tree->root != NULL;
}

void experiment_tree_release(struct experiment_tree *tree)
{
    yaml_tree_free(tree->root);
    for (size_t i = 0; i < tree->file_count; i++)
        memory_free(tree->files[i]);
    memory_free(tree->files);
    memory_free(tree->text);
    memory_free(tree->question);
    *tree = (struct experiment_tree){0};
}
