/* Settings: what a run is made of, as named in a file: every knob, and where the text comes from.
 *
 * A mapping of settings may be nested (model: {norm: rmsnorm}) or dotted (model.norm: rmsnorm); what the value means
 * is decided by the setting. */
#ifndef RUNNER_SETTING_H
#define RUNNER_SETTING_H

#include <stdbool.h>
#include <stddef.h>

#include "core/knob.h"
#include "runner/problem.h"
#include "runner/yaml.h"

/* Numbered like knobs[], then the two that are no knobs. */
/* clang-format off */
#define GROUP(group)
#define END_GROUP
#define INTEGER(...) + 1
#define NUMBER(...) + 1
#define BOOLEAN(...) + 1
#define CHOICE(...) + 1
enum {
    SETTING_CORPUS = 0
#include "core/knobs.def"
    , SETTING_VALIDATION, SETTING_COUNT
};
#undef GROUP
#undef END_GROUP
#undef INTEGER
#undef NUMBER
#undef BOOLEAN
#undef CHOICE
/* clang-format on */

const char *setting_name(int setting); /* "model.norm", "data.corpus" */
int setting_find(const char *name);    /* -1 when there is none */
/* Knobs only; NULL for the two others. */
const struct knob *setting_knob(int setting);

/* One setting and the value it gets. */
struct setting_value {
    int setting;
    bool unread; /* what was written is refused, or there are two: the value is not known */
    bool guess;  /* unread, and the key too is refused: this setting is probably meant */
    struct place key_place, place;
    union knob_value knob;
    const struct yaml *source; /* data.corpus and data.validation: text or list; NULL = not given */
};

/* Everything that decides a run but the seed, before config_canonicalize(). */
struct settings {
    struct config config;
    const struct yaml *corpus, *validation; /* NULL: built in, held out */
    bool unread[SETTING_COUNT];             /* given with a value that is refused: it could be any */
};

void settings_init(struct settings *settings);
void settings_apply(struct settings *settings, const struct setting_value *value);
/* An unread setting may have every value. */
bool settings_have(const struct settings *settings, const struct setting_value *value);

/* The text and list of paths of a source are equal, and so are the folders they are relative to. */
bool source_equal(const struct yaml *a, const struct yaml *b);

/* Reads one value; nothing (null) is the default. False with a problem. */
bool setting_parse(int setting, const struct yaml *node, struct setting_value *value, struct problems *problems);

struct setting_list {
    struct setting_value *values;
    size_t count;
};

/* A mapping of settings, in file order; each unknown key, second spelling and bad value becomes a problem, and what it
 * was to set is in the list unread. skip names one key of the mapping that is not a setting ("label"), or is NULL. */
void setting_list_read(const struct yaml *mapping, const char *skip, struct setting_list *list,
                       struct problems *problems);
void setting_list_release(struct setting_list *list);

/* The same without reading the values: calls see(context, setting, key place, node) for each; with node NULL for the
 * setting that an unknown key probably means. */
typedef void setting_seen(void *context, int setting, struct place key_place, const struct yaml *node);
void setting_walk(const struct yaml *mapping, const char *skip, setting_seen *see, void *context,
                  struct problems *problems);

/* One key: a setting, or a section whose mapping holds some. False when the path names neither: nothing is reported. */
bool setting_entry(const char *path, struct place key_place, const struct yaml *node, setting_seen *see, void *context,
                   struct problems *problems);

/* Adds a value to a list, unread when it is refused or node is NULL; a second one of the same setting is a problem. */
void setting_list_add(struct setting_list *list, int setting, struct place key_place, const struct yaml *node,
                      struct problems *problems);

/* "unknown key 'x': did you mean y?" with the nearest of the words, then of the settings. Words with a dot come
 * last: they are places where a misplaced key belongs, not keys accepted here. Returns what was suggested, or NULL. */
const char *unknown_key_report(struct problems *problems, struct place place, const char *key, const char *const *words,
                               size_t word_count);

#endif
