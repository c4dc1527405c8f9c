/* A YAML file as a tree that remembers where everything stood. Scalars stay text: the field decides the type.
 *
 * libyaml does the parsing; this file refuses what it lets through: duplicate keys (both lines named), a second
 * document, tabs, files over 1 MiB, depth over 64, alias cycles and bombs (more than 100,000 nodes after aliases),
 * and applies merge keys (<<). */
#ifndef RUNNER_YAML_H
#define RUNNER_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "runner/problem.h"

enum yaml_kind { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };

struct yaml {
    enum yaml_kind kind;
    struct place place;
    char *text;  /* scalar */
    bool quoted; /* scalar in quotes or a block */
    size_t count;
    struct yaml **items;      /* sequence, or values of a mapping */
    char **keys;              /* mapping */
    struct place *key_places; /* mapping */
};

/* NULL when something was wrong (problems says what). Owner: caller, yaml_free(). A file that cannot be read is a
 * problem too. */
struct yaml *yaml_read(const char *path, struct problems *problems);
struct yaml *yaml_parse(const char *name, const char *text, size_t size, struct problems *problems);
void yaml_free(struct yaml *tree); /* takes NULL */

/* Value of a key of a mapping; NULL when it is absent. */
const struct yaml *yaml_get(const struct yaml *mapping, const char *key);
/* Plain null, ~ or nothing. */
bool yaml_is_null(const struct yaml *node);

#endif
