/* Modules of the built-in code: imports, constants, a record, functions, tests, exports. */
#include "runner/builtin_code.h"

#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/builtin_module.h"

enum { LIBRARIES = 40, LIBRARY_FUNCTIONS = 6, MOST_IMPORTS = 5 };

static const char *const library_names[LIBRARIES] = {
    "queue",   "stack",  "buffer", "clock",  "files",   "paths",  "strings", "numbers", "lists",  "maps",
    "sets",    "trees",  "graphs", "matrix", "random",  "events", "signals", "threads", "locks",  "tasks",
    "sockets", "http",   "json",   "tables", "records", "logs",   "errors",  "config",  "cache",  "store",
    "index",   "search", "parse",  "lexer",  "format",  "units",  "dates",   "money",   "colors", "shapes"};

/* What a library offers is the same in every document: one stream of chance a library. */
static void library_load(struct module *module, uint32_t library)
{
    static const char *const verbs[] = {"open", "close", "read",  "write", "find", "count", "sort",
                                        "join", "split", "merge", "check", "load", "copy",  "reset"};
    static const char *const nouns[] = {"all",  "first", "last",  "next", "item",
                                        "size", "range", "state", "key",  "value"};
    struct writer writer;
    writer_start(&writer, "library", library);
    for (int i = 0; i < LIBRARY_FUNCTIONS; i++) {
        struct function *function = &module->functions[module->function_count++];
        const char *verb = verbs[writer_below(&writer, 14)], *noun = nouns[writer_below(&writer, 10)];
        snprintf(function->name, sizeof function->name, "%s.%s_%s", library_names[library], verb, noun);
        function->parameter_count = (int)writer_between(&writer, 1, 3);
        for (int j = 0; j < function->parameter_count; j++)
            function->parameters[j].type = (enum type)writer_below(&writer, TYPE_RECORD);
        function->returns = (enum type)writer_below(&writer, TYPE_RECORD);
    }
    memory_free(writer.bytes);
}

static void imports_write(struct module *module)
{
    uint32_t taken[MOST_IMPORTS], count = writer_between(module->writer, 2, MOST_IMPORTS);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t library = writer_below(module->writer, LIBRARIES);
        bool again = false;
        for (uint32_t j = 0; j < i; j++)
            again |= taken[j] == library;
        taken[i] = library;
        if (again)
            continue;
        writer_format(module->writer, module->braces ? "#include <%s>\n" : "import %s\n", library_names[library]);
        library_load(module, library);
    }
    module->imported = module->function_count;
    writer_byte(module->writer, '\n');
}

static void constants_write(struct module *module)
{
    module->constant_count = (int)writer_between(module->writer, 2, MAX_CONSTANTS);
    for (int i = 0; i < module->constant_count; i++) {
        constant_name(module, module->constants[i]);
        unsigned value = writer_between(module->writer, 2, 999);
        writer_format(module->writer, module->braces ? "const int %s = %u;\n" : "%s: int = %u\n", module->constants[i],
                      value);
    }
    writer_byte(module->writer, '\n');
}

static void record_write(struct module *module)
{
    struct writer *writer = module->writer;
    const char *noun = topic_word(&module->topic, writer, WORD_NOUN)->forms[FORM_BASE];
    snprintf(module->record_variable, sizeof module->record_variable, "%s", noun);
    snprintf(module->record, sizeof module->record, "%s", noun);
    module->record[0] = (char)(noun[0] - 'a' + 'A');
    module->field_count = (int)writer_between(writer, 3, MAX_FIELDS);
    writer_format(writer, module->braces ? "struct %s {\n" : "class %s:\n", module->record);
    for (int i = 0; i < module->field_count; i++) {
        struct variable *field = &module->fields[i];
        field->type = (enum type)(i < TYPE_RECORD ? i : 0);
        variable_name(module, field->type, field->name);
        const char *type = type_name(module, field->type);
        writer_format(writer, module->braces ? "    %s %s;\n" : "    %s: %s\n", module->braces ? type : field->name,
                      module->braces ? field->name : type);
    }
    writer_text(writer, module->braces ? "};\n\n" : "\n\n");
}

static void signature_write(struct module *module, const struct function *function)
{
    struct writer *writer = module->writer;
    writer_format(writer, "%s %s(", module->braces ? type_name(module, function->returns) : "def", function->name);
    for (int i = 0; i < function->parameter_count; i++) {
        const struct variable *parameter = &function->parameters[i];
        const char *type = type_name(module, parameter->type);
        writer_text(writer, i ? ", " : "");
        if (module->braces)
            writer_format(writer, "%s %s", type, parameter->name);
        else
            writer_format(writer, "%s: %s", parameter->name, type);
    }
    if (module->braces)
        writer_text(writer, ") {\n");
    else
        writer_format(writer, ") -> %s:\n", type_name(module, function->returns));
}

/* Says the function's and its parameters' names before they stand in the signature. */
static void function_comment(struct module *module, const struct function *function)
{
    static const char *const purposes[] = {
        "finds the %s of the %s", "keeps the %s out of the %s", "adds the %s to the %s",     "counts each %s of a %s",
        "makes the %s %s",        "says whether the %s is %s",  "fails when a %s is not %s", "waits until no %s is %s"};
    enum { PURPOSES_OF_NOUNS = 4 };
    struct writer *writer = module->writer;
    uint32_t purpose = writer_below(writer, 8);
    const char *first = topic_word(&module->topic, writer, WORD_NOUN)->forms[FORM_BASE];
    enum word_class class = purpose < PURPOSES_OF_NOUNS ? WORD_NOUN : WORD_ADJECTIVE;
    const char *second = topic_word(&module->topic, writer, class)->forms[FORM_BASE];
    comment_start(module, 0);
    writer_format(writer, "%s: ", function->name);
    for (const char *c = purposes[purpose], *next = first; *c; c++)
        if (*c == '%') {
            writer_text(writer, next);
            next = second;
            c++;
        } else
            writer_byte(writer, *c);
    writer_text(writer, "\n");
    if (writer_chance(writer, 50))
        return;
    comment_start(module, 0);
    writer_text(writer, "takes ");
    for (int i = 0; i < function->parameter_count; i++)
        writer_format(writer, "%s%s", i ? " and " : "", function->parameters[i].name);
    writer_format(writer, ", returns %s\n", type_name(module, function->returns));
}

static void function_write(struct module *module)
{
    struct writer *writer = module->writer;
    struct function *function = &module->functions[module->function_count];
    function_name(module, function->name);
    function->parameter_count = (int)writer_between(writer, 1, MAX_PARAMETERS);
    function->returns = (enum type)writer_below(writer, TYPES);
    module->variable_count = 0;
    for (int i = 0; i < function->parameter_count; i++) {
        struct variable *parameter = &function->parameters[i];
        parameter->type = (enum type)writer_below(writer, TYPES);
        variable_name(module, parameter->type, parameter->name);
        variable_declare(module, parameter->name, parameter->type, false);
    }
    function_comment(module, function);
    signature_write(module, function);
    module->current = function;
    body_write(module);
    if (module->braces)
        writer_format(writer, "} // %s\n", function->name);
    writer_byte(writer, '\n');
    module->function_count++; /* from here on it can be called */
}

/* Each function once more, in order, with arguments that fit. */
static void tests_write(struct module *module)
{
    struct writer *writer = module->writer;
    module->variable_count = 0;
    module->current = NULL;
    writer_text(writer, module->braces ? "void test_all() {\n" : "def test_all():\n");
    for (int i = module->imported; i < module->function_count; i++) {
        const struct function *function = &module->functions[i];
        writer_indent(writer, 1);
        if (function->returns == TYPE_RECORD && module->variable_count == 0) {
            writer_format(writer, module->braces ? "%s %s = " : "%s: %s = ",
                          module->braces ? module->record : module->record_variable,
                          module->braces ? module->record_variable : module->record);
            call_write(module, function, 0);
            variable_declare(module, module->record_variable, TYPE_RECORD, false);
        } else {
            writer_text(writer, module->braces ? "assert(" : "assert ");
            call_write(module, function, 0);
            writer_text(writer, " == ");
            expression_write(module, function->returns, 0);
            writer_text(writer, module->braces ? ")" : "");
        }
        writer_text(writer, module->braces ? ";\n" : "\n");
    }
    writer_text(writer, module->braces ? "}\n\n" : "\n");
}

static void exports_write(struct module *module)
{
    comment_start(module, 0);
    writer_format(module->writer, "exports of %s:\n", module->name);
    for (int i = module->imported; i < module->function_count; i++) {
        comment_start(module, 0);
        writer_format(module->writer, "  %s/%d\n", module->functions[i].name, module->functions[i].parameter_count);
    }
}

void code_write(struct writer *writer, const struct lexicon *lexicon)
{
    struct module *module = memory_alloc(1, sizeof *module);
    module->writer = writer;
    topic_init(&module->topic, lexicon, writer);
    module->braces = writer_chance(writer, 50);
    function_name(module, module->name);
    comment_start(module, 0);
    writer_format(writer, "module %s\n\n", module->name);
    imports_write(module);
    constants_write(module);
    record_write(module);
    for (uint32_t count = writer_between(writer, 6, MAX_FUNCTIONS - MOST_IMPORTS * LIBRARY_FUNCTIONS); count > 0;
         count--)
        function_write(module);
    tests_write(module);
    exports_write(module);
    memory_free(module);
}
