/* Statements of the built-in code. */
#include "runner/builtin_module.h"

static void block_write(struct module *module, int depth);

static void line_end(struct module *module)
{
    writer_text(module->writer, module->braces ? ";\n" : "\n");
}

static void block_open(struct module *module)
{
    writer_text(module->writer, module->braces ? " {\n" : ":\n");
}

static void block_close(struct module *module, int depth)
{
    if (module->braces) {
        writer_indent(module->writer, depth);
        writer_text(module->writer, "}\n");
    }
}

static enum type type_draw(struct module *module)
{
    static const enum type types[] = {TYPE_INT, TYPE_INT, TYPE_INT, TYPE_TEXT, TYPE_BOOL, TYPE_LIST, TYPE_RECORD};
    return types[writer_below(module->writer, 7)];
}

static void statement_declare(struct module *module, int depth)
{
    char name[IDENTIFIER_SIZE];
    enum type type = type_draw(module);
    variable_name(module, type, name);
    writer_indent(module->writer, depth);
    if (module->braces)
        writer_format(module->writer, "%s %s = ", type_name(module, type), name);
    else
        writer_format(module->writer, "%s: %s = ", name, type_name(module, type));
    expression_write(module, type, 2);
    line_end(module);
    variable_declare(module, name, type, false);
}

static void statement_assign(struct module *module, int depth)
{
    enum type type = type_draw(module);
    const struct variable *variable = variable_find(module, type, true);
    if (!variable) {
        statement_declare(module, depth);
        return;
    }
    writer_indent(module->writer, depth);
    if (type == TYPE_LIST)
        writer_format(module->writer, module->braces ? "push(%s, " : "%s.append(", variable->name);
    else if (type == TYPE_INT && writer_chance(module->writer, 50))
        writer_format(module->writer, "%s += ", variable->name);
    else
        writer_format(module->writer, "%s = ", variable->name);
    module->avoided = variable;
    expression_write(module, type == TYPE_LIST ? TYPE_INT : type, 2);
    module->avoided = NULL;
    writer_text(module->writer, type == TYPE_LIST ? ")" : "");
    line_end(module);
}

static void condition_open(struct module *module, const char *word, int depth)
{
    writer_indent(module->writer, depth);
    writer_format(module->writer, module->braces ? "%s (" : "%s ", word);
    expression_write(module, TYPE_BOOL, 2);
    writer_text(module->writer, module->braces ? ")" : "");
    block_open(module);
}

static void statement_if(struct module *module, int depth)
{
    condition_open(module, "if", depth);
    block_write(module, depth + 1);
    if (writer_chance(module->writer, 35)) {
        writer_indent(module->writer, depth);
        writer_text(module->writer, module->braces ? "} else {\n" : "else:\n");
        block_write(module, depth + 1);
    }
    block_close(module, depth);
}

/* "if wrong: error(...)" names the function it stands in. */
static void statement_guard(struct module *module, int depth)
{
    condition_open(module, "if", depth);
    writer_indent(module->writer, depth + 1);
    writer_format(module->writer, "%s(\"%s: \" + ", module->braces ? "fail" : "raise error", module->current->name);
    text_literal(module);
    writer_text(module->writer, ")");
    line_end(module);
    block_close(module, depth);
}

static void statement_while(struct module *module, int depth)
{
    const struct variable *variable = variable_find(module, TYPE_INT, true);
    if (!variable) {
        statement_if(module, depth);
        return;
    }
    const char *name = variable->name;
    writer_indent(module->writer, depth);
    writer_format(module->writer, module->braces ? "while (%s > " : "while %s > ", name);
    module->avoided = variable;
    expression_write(module, TYPE_INT, 0);
    module->avoided = NULL;
    writer_text(module->writer, module->braces ? ")" : "");
    block_open(module);
    block_write(module, depth + 1);
    writer_indent(module->writer, depth + 1);
    writer_format(module->writer, "%s -= 1", name);
    line_end(module);
    block_close(module, depth);
}

static void statement_for(struct module *module, int depth)
{
    char name[IDENTIFIER_SIZE];
    const struct variable *list = variable_find(module, TYPE_LIST, false);
    int scope = module->variable_count;
    variable_name(module, TYPE_INT, name);
    writer_indent(module->writer, depth);
    writer_format(module->writer, module->braces ? "for (int %s : " : "for %s in ", name);
    if (list)
        writer_text(module->writer, list->name);
    else {
        writer_text(module->writer, "range(");
        expression_write(module, TYPE_INT, 1);
        writer_byte(module->writer, ')');
    }
    writer_text(module->writer, module->braces ? ")" : "");
    block_open(module);
    variable_declare(module, name, TYPE_INT, true);
    block_write(module, depth + 1);
    module->variable_count = scope;
    block_close(module, depth);
}

static void statement_call(struct module *module, int depth)
{
    uint32_t pick = writer_below(module->writer, (uint32_t)module->function_count);
    const struct function *function = &module->functions[pick];
    if (function == module->current)
        return;
    writer_indent(module->writer, depth);
    call_write(module, function, 1);
    line_end(module);
}

static void statement_log(struct module *module, int depth)
{
    enum type type = type_draw(module);
    const struct variable *variable = variable_find(module, type, false);
    if (!variable)
        return;
    writer_indent(module->writer, depth);
    writer_text(module->writer, "log(");
    text_literal(module);
    writer_format(module->writer, ", %s)", variable->name);
    line_end(module);
}

static void statement_field(struct module *module, int depth)
{
    const struct variable *record = variable_find(module, TYPE_RECORD, false);
    const struct variable *field = &module->fields[writer_below(module->writer, (uint32_t)module->field_count)];
    if (!record)
        return;
    writer_indent(module->writer, depth);
    writer_format(module->writer, "%s.%s = ", record->name, field->name);
    expression_write(module, field->type, 2);
    line_end(module);
}

/* Of a variable in scope, or of nothing there is. */
static void statement_comment(struct module *module, int depth)
{
    static const char *const states[] = {
        "is not yet known here", "was checked above", "may be empty", "must stay ", "is now ", "was never "};
    enum { PLAIN_STATES = 3 };
    struct writer *writer = module->writer;
    const struct variable *variable = variable_find(module, type_draw(module), false);
    const char *adjective = topic_word(&module->topic, writer, WORD_ADJECTIVE)->forms[FORM_BASE];
    const char *noun = topic_word(&module->topic, writer, WORD_NOUN)->forms[FORM_PLURAL];
    const char *verb = topic_word(&module->topic, writer, WORD_MOTION)->forms[FORM_BASE];
    uint32_t state = writer_below(writer, 6);
    comment_start(module, depth);
    if (variable && state < PLAIN_STATES)
        writer_format(writer, "%s %s\n", variable->name, states[state]);
    else if (variable)
        writer_format(writer, "%s %s%s while the %s %s\n", variable->name, states[state], adjective, noun, verb);
    else
        writer_format(writer, "%s %s %s here\n", adjective, noun, verb);
}

static void statement_write(struct module *module, int depth)
{
    static void (*const simple[])(struct module * module, int depth) = {
        statement_declare, statement_declare, statement_assign, statement_assign,
        statement_call,    statement_log,     statement_field,  statement_comment};
    static void (*const nested[])(struct module * module, int depth) = {statement_if,    statement_if,  statement_guard,
                                                                        statement_while, statement_for, statement_for};
    module->statements--;
    if (depth < 5 && module->statements > 0 && writer_chance(module->writer, 35))
        nested[writer_below(module->writer, 6)](module, depth);
    else
        simple[writer_below(module->writer, 8)](module, depth);
}

/* One to four statements in a scope of their own; the first always writes a line. */
static void block_write(struct module *module, int depth)
{
    int scope = module->variable_count;
    statement_assign(module, depth);
    for (uint32_t more = writer_below(module->writer, 4); more > 0 && module->variable_count < MAX_VARIABLES - 12;
         more--)
        statement_write(module, depth);
    module->variable_count = scope;
}

void body_write(struct module *module)
{
    module->statements = (int)writer_between(module->writer, 4, 18);
    while (module->statements > 0 && module->variable_count < MAX_VARIABLES - 12)
        statement_write(module, 1);
    writer_indent(module->writer, 1);
    writer_text(module->writer, "return ");
    expression_write(module, module->current->returns, 2);
    line_end(module);
}
