/* Names, types and expressions of the built-in code. */
#include "runner/builtin_module.h"

#include <stdio.h>
#include <string.h>

static const struct word *word_of(struct module *module, enum word_class class)
{
    return topic_word(&module->topic, module->writer, class);
}

const char *type_name(const struct module *module, enum type type)
{
    static const char *const names[TYPES] = {"int", "text", "bool", "list", ""};
    return type == TYPE_RECORD ? module->record : names[type];
}

void comment_start(struct module *module, int depth)
{
    writer_indent(module->writer, depth);
    writer_text(module->writer, module->braces ? "// " : "# ");
}

static bool name_taken(const struct module *module, const char *name)
{
    for (int i = 0; i < module->variable_count; i++)
        if (strcmp(module->variables[i].name, name) == 0)
            return true;
    for (int i = 0; i < module->function_count; i++)
        if (strcmp(module->functions[i].name, name) == 0)
            return true;
    return false;
}

/* The first try is short; a taken one gets an adjective, then a number. */
void variable_name(struct module *module, enum type type, char name[IDENTIFIER_SIZE])
{
    static const char *const after[] = {"_name", "_label", "_title", "_word", "_key", "_text"};
    const char *end = after[writer_below(module->writer, 6)];
    for (int attempt = 0;; attempt++) {
        const struct word *noun = word_of(module, WORD_NOUN), *adjective = word_of(module, WORD_ADJECTIVE);
        const char *first = adjective->forms[FORM_BASE],
                   *stem = noun->forms[type == TYPE_LIST ? FORM_PLURAL : FORM_BASE];
        if (type == TYPE_BOOL)
            snprintf(name, IDENTIFIER_SIZE, attempt % 2 ? "seems_%s" : "is_%s", first);
        else if (type == TYPE_RECORD)
            snprintf(name, IDENTIFIER_SIZE, "%s%s%s", attempt ? first : "", attempt ? "_" : "",
                     module->record_variable);
        else
            snprintf(name, IDENTIFIER_SIZE, "%s%s%s%s", attempt ? first : "", attempt ? "_" : "", stem,
                     type == TYPE_TEXT ? end : "");
        if (attempt > 4)
            snprintf(name, IDENTIFIER_SIZE, "%s_%d", stem, attempt);
        if (!name_taken(module, name))
            return;
    }
}

void function_name(struct module *module, char name[IDENTIFIER_SIZE])
{
    for (int attempt = 0;; attempt++) {
        const struct word *verb = word_of(module, WORD_VERB), *noun = word_of(module, WORD_NOUN);
        bool plural = writer_chance(module->writer, 40);
        snprintf(name, IDENTIFIER_SIZE, "%s_%s", verb->forms[FORM_BASE], noun->forms[plural ? FORM_PLURAL : FORM_BASE]);
        if (attempt > 4)
            snprintf(name, IDENTIFIER_SIZE, "%s_%d", verb->forms[FORM_BASE], attempt);
        if (!name_taken(module, name))
            return;
    }
}

void constant_name(struct module *module, char name[IDENTIFIER_SIZE])
{
    static const char *const starts[] = {"MAX", "MIN", "FIRST", "LAST", "DEFAULT", "COUNT"};
    const struct word *noun = word_of(module, WORD_NOUN);
    snprintf(name, IDENTIFIER_SIZE, "%s_%s", starts[writer_below(module->writer, 6)], noun->forms[FORM_BASE]);
    for (char *c = name; *c; c++)
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
}

const struct variable *variable_find(struct module *module, enum type type, bool assigned)
{
    const struct variable *found[MAX_VARIABLES];
    uint32_t count = 0;
    for (int i = module->variable_count - 1; i >= 0; i--)
        if (module->variables[i].type == type && !(assigned && module->variables[i].constant) &&
            &module->variables[i] != module->avoided)
            found[count++] = &module->variables[i];
    if (count == 0)
        return NULL;
    uint32_t last = writer_below(module->writer, count);
    return found[writer_below(module->writer, last + 1)];
}

void variable_declare(struct module *module, const char *name, enum type type, bool constant)
{
    struct variable *variable = &module->variables[module->variable_count++];
    snprintf(variable->name, sizeof variable->name, "%s", name);
    variable->type = type;
    variable->constant = constant;
}

void text_literal(struct module *module)
{
    const char *adjective = word_of(module, WORD_ADJECTIVE)->forms[FORM_BASE];
    const struct word *noun = word_of(module, WORD_NOUN), *verb = word_of(module, WORD_MOTION);
    switch (writer_below(module->writer, 6)) {
    case 0: writer_format(module->writer, "\"%s\"", noun->forms[FORM_PLURAL]); break;
    case 3: writer_format(module->writer, "\"no %s %s\"", noun->forms[FORM_BASE], verb->forms[FORM_PAST]); break;
    case 4: writer_format(module->writer, "\"%s the %s\"", verb->forms[FORM_ING], noun->forms[FORM_BASE]); break;
    case 1: writer_format(module->writer, "\"the %s %s\"", noun->forms[FORM_BASE], verb->forms[FORM_S]); break;
    case 2: writer_format(module->writer, "\"%s are %s\"", noun->forms[FORM_PLURAL], adjective); break;
    default: writer_format(module->writer, "\"%s %s\"", adjective, noun->forms[FORM_BASE]);
    }
}

/* One that can be called here: imported or above. */
static const struct function *function_find(struct module *module, enum type returns)
{
    const struct function *found[MAX_FUNCTIONS];
    uint32_t count = 0;
    for (int i = 0; i < module->function_count; i++)
        if (module->functions[i].returns == returns && &module->functions[i] != module->current)
            found[count++] = &module->functions[i];
    return count ? found[writer_below(module->writer, count)] : NULL;
}

void call_write(struct module *module, const struct function *function, int depth)
{
    writer_format(module->writer, "%s(", function->name);
    for (int i = 0; i < function->parameter_count; i++) {
        if (i)
            writer_text(module->writer, ", ");
        expression_write(module, function->parameters[i].type, depth - 1);
    }
    writer_byte(module->writer, ')');
}

/* "ledger.rate" of a record in scope. */
static bool field_write(struct module *module, enum type type)
{
    const struct variable *record = variable_find(module, TYPE_RECORD, false);
    uint32_t start = writer_below(module->writer, (uint32_t)module->field_count);
    for (int i = 0; record && i < module->field_count; i++) {
        const struct variable *field = &module->fields[((int)start + i) % module->field_count];
        if (field->type == type) {
            writer_format(module->writer, "%s.%s", record->name, field->name);
            return true;
        }
    }
    return false;
}

static void literal_write(struct module *module, enum type type)
{
    struct writer *writer = module->writer;
    switch (type) {
    case TYPE_INT:
        if (module->constant_count && writer_chance(writer, 40))
            writer_text(writer, module->constants[writer_below(writer, (uint32_t)module->constant_count)]);
        else
            writer_format(writer, "%u", writer_below(writer, writer_chance(writer, 40) ? 4 : 1000));
        break;
    case TYPE_TEXT: text_literal(module); break;
    case TYPE_BOOL: writer_text(writer, writer_chance(writer, 50) ? "true" : "false"); break;
    case TYPE_LIST:
        writer_byte(writer, '[');
        for (uint32_t i = 0, count = writer_below(writer, 4); i < count; i++)
            writer_format(writer, "%s%u", i ? ", " : "", writer_below(writer, 100));
        writer_byte(writer, ']');
        break;
    default:
        writer_format(writer, "%s(", module->record);
        for (int i = 0; i < module->field_count; i++) {
            writer_text(writer, i ? ", " : "");
            expression_write(module, module->fields[i].type, 0);
        }
        writer_byte(writer, ')');
    }
}

static void pair_write(struct module *module, enum type type, const char *operation, int depth)
{
    const struct variable *outer = module->avoided, *left = variable_find(module, type, false);
    if (left)
        writer_text(module->writer, left->name);
    else
        expression_write(module, type, depth - 1);
    writer_text(module->writer, operation);
    module->avoided = left;
    expression_write(module, type, depth - 1);
    module->avoided = outer;
}

/* Forms that are neither name, call nor literal. */
static void compound_write(struct module *module, enum type type, int depth)
{
    static const char *const sums[] = {" + ", " - ", " * ", " % "};
    static const char *const comparisons[] = {" < ", " > ", " == ", " != ", " <= ", " >= "};
    struct writer *writer = module->writer;
    const struct variable *list = variable_find(module, TYPE_LIST, false);
    uint32_t form = writer_below(writer, 4);
    if (type == TYPE_INT && list && form < 2) {
        writer_format(writer, form ? "len(%s)" : "%s[", list->name);
        if (form == 0) {
            expression_write(module, TYPE_INT, 0);
            writer_byte(writer, ']');
        }
    } else if (type == TYPE_INT) {
        writer_byte(writer, '(');
        pair_write(module, TYPE_INT, sums[form], depth);
        writer_byte(writer, ')');
    } else if (type == TYPE_TEXT)
        pair_write(module, TYPE_TEXT, " + ", depth);
    else if (type == TYPE_BOOL && form < 2)
        pair_write(module, TYPE_INT, comparisons[writer_below(writer, 6)], depth);
    else if (type == TYPE_BOOL && form == 2) {
        writer_text(writer, module->braces ? "!" : "not ");
        expression_write(module, TYPE_BOOL, 0);
    } else if (type == TYPE_BOOL)
        pair_write(module, TYPE_BOOL, module->braces ? " && " : " and ", depth);
    else
        literal_write(module, type);
}

void expression_write(struct module *module, enum type type, int depth)
{
    struct writer *writer = module->writer;
    uint32_t form = writer_below(writer, 100);
    if (depth > 0 && form < 18) {
        const struct function *function = function_find(module, type);
        if (function) {
            call_write(module, function, depth);
            return;
        }
    }
    if (depth > 0 && form < 45) {
        compound_write(module, type, depth);
        return;
    }
    if (form < 60 && type != TYPE_RECORD && field_write(module, type))
        return;
    const struct variable *variable = form < 90 ? variable_find(module, type, false) : NULL;
    if (variable)
        writer_text(writer, variable->name);
    else if (type == TYPE_BOOL && depth > 0)
        pair_write(module, TYPE_INT, " > ", depth);
    else
        literal_write(module, type);
}
