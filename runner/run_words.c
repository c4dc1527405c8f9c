/* Writing a command line back from what was parsed of it. */
#include "runner/run_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/json.h"
#include "runner/shell_word.h"
#include "runner/text_stream.h"

static void word_print(const char *text, FILE *out)
{
    char *word = shell_word(text);
    fprintf(out, " %s", word);
    memory_free(word);
}

static void option_print(const struct option *option, const struct arguments *arguments, FILE *out)
{
    const char *const *texts = NULL;
    /* Every kind keeps its texts as they were given; a flag's is empty. */
    size_t count = option_list(arguments, option->name, &texts);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, " --%s", option->name);
        if (option->kind != OPTION_FLAG)
            word_print(texts[i], out);
    }
}

char *run_words(const struct command *command, const struct arguments *arguments, const char *without)
{
    struct text_stream text;
    text_stream_open(&text);
    FILE *out = text.out;
    fprintf(out, "runner %s", command->name);
    for (size_t i = 0; i < arguments->positional_count; i++)
        word_print(arguments->positional[i], out);
    for (const struct option *option = command->options; option && option->name; option++)
        if (!without || strcmp(option->name, without) != 0)
            option_print(option, arguments, out);
    return text_stream_take(&text);
}

char *run_words_choice(const struct arguments *arguments)
{
    static const char *const choosing[] = {"set", "seeds", "only"};
    json_t *words = json_array();
    for (size_t i = 0; i < sizeof choosing / sizeof *choosing; i++) {
        const char *const *texts = NULL;
        size_t count = option_list(arguments, choosing[i], &texts);
        for (size_t k = 0; k < count; k++) {
            char option[16];
            snprintf(option, sizeof option, "--%s", choosing[i]);
            json_push(words, json_from_text(option));
            json_push(words, json_from_text(texts[k]));
        }
    }
    char *text = json_format(words, JSON_LINE, false);
    json_decref(words);
    return text;
}
