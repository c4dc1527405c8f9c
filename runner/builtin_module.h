/* A module of the built-in code while it is written: what is declared so far, so that all that is used exists and fits.
 *
 * The language has the types below and two spellings, one with indented blocks and one with braces. */
#ifndef RUNNER_BUILTIN_MODULE_H
#define RUNNER_BUILTIN_MODULE_H

#include "runner/builtin_words.h"

enum type { TYPE_INT, TYPE_TEXT, TYPE_BOOL, TYPE_LIST, TYPE_RECORD, TYPES };

enum { IDENTIFIER_SIZE = 56, MAX_PARAMETERS = 4, MAX_FIELDS = 5, MAX_FUNCTIONS = 48, MAX_VARIABLES = 48 };
enum { MAX_CONSTANTS = 6 };

struct variable {
    char name[IDENTIFIER_SIZE];
    enum type type;
    bool constant; /* a loop's: not assigned */
};

struct function {
    char name[IDENTIFIER_SIZE]; /* "merge_rates", "queue.push" for one of an imported module */
    struct variable parameters[MAX_PARAMETERS];
    int parameter_count;
    enum type returns;
};

struct module {
    struct writer *writer;
    struct topic topic;
    bool braces;
    char name[IDENTIFIER_SIZE], record[WORD_SIZE], record_variable[WORD_SIZE];
    struct variable fields[MAX_FIELDS];
    int field_count;
    char constants[MAX_CONSTANTS][IDENTIFIER_SIZE];
    int constant_count;
    struct function functions[MAX_FUNCTIONS]; /* those imported come first */
    int imported, function_count;
    struct variable variables[MAX_VARIABLES]; /* in scope, outermost first */
    int variable_count;
    const struct function *current;
    const struct variable *avoided; /* just named: would be idle to name again */
    int statements;                 /* left in this function */
};

const char *type_name(const struct module *module, enum type type);

/* "grey_lamps": a name that fits the type and is not in scope. */
void variable_name(struct module *module, enum type type, char name[IDENTIFIER_SIZE]);
void function_name(struct module *module, char name[IDENTIFIER_SIZE]);
void constant_name(struct module *module, char name[IDENTIFIER_SIZE]);

/* One in scope, the latest the most likely; NULL when there is none. assigned: not one of a loop. */
const struct variable *variable_find(struct module *module, enum type type, bool assigned);
void variable_declare(struct module *module, const char *name, enum type type, bool constant);

/* A whole expression of the type; depth more levels may open inside. */
void expression_write(struct module *module, enum type type, int depth);
void call_write(struct module *module, const struct function *function, int depth);

/* A few words in quotes. */
void text_literal(struct module *module);

/* Statements of a function's body, its blocks closed again. */
void body_write(struct module *module);

/* "# " or "// " */
void comment_start(struct module *module, int depth);

#endif
