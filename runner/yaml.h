/* A YAML file as a tree that remembers where everything stood. Scalars stay text: the field decides the type.
 *
 * libyaml does the parsing; this file refuses what it lets through: duplicate keys (both lines named), a second
 * document, files over 1 MiB, depth over 64, alias cycles and bombs (more than 100,000 nodes after aliases), tags,
 * keys that are no plain text, NUL in text, encodings other than UTF-8; and it applies merge keys (<<: a mapping or a
 * list of them; keys written out win, then earlier mappings). A tab is refused where it indents. */
#ifndef RUNNER_YAML_H
#define RUNNER_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "runner/problem.h"

enum { YAML_FILE_LIMIT = 1 << 20 };

enum yaml_kind { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };

struct yaml {
    enum yaml_kind kind;
    struct place place;
    char *text;    /* scalar */
    bool quoted;   /* scalar in quotes or a block */
    bool doubtful; /* private to experiments: a second value was given elsewhere, and refused */
    size_t count;
    struct yaml **items;      /* sequence, or values of a mapping */
    char **keys;              /* mapping */
    struct place *key_places; /* mapping */
    char *file;               /* private: of the root alone, what all the places point to */
};

/* NULL when something was wrong (problems says what). Owner: caller, yaml_tree_free(). A file that cannot be read is a
 * problem too. An empty document is a null scalar. */
struct yaml *yaml_read(const char *path, struct problems *problems);
struct yaml *yaml_parse(const char *name, const char *text, size_t size, struct problems *problems);
/* Takes NULL. (The name yaml_free is libyaml's own and would take its place.) */
void yaml_tree_free(struct yaml *tree);

/* For trees put together by hand. The place's file must outlive them. append: key and item are taken over; key is NULL
 * in a sequence. */
struct yaml *yaml_node_create(enum yaml_kind kind, struct place place);
void yaml_node_append(struct yaml *node, char *key, struct place key_place, struct yaml *item);

/* Value of a key of a mapping; NULL when it is absent. */
const struct yaml *yaml_get(const struct yaml *mapping, const char *key);
/* Plain null, ~ or nothing. */
bool yaml_is_null(const struct yaml *node);
/* "text", "a list", "a mapping", "nothing". */
const char *yaml_kind_name(const struct yaml *node);

#endif
