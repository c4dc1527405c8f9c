/* runner tokenizer: what a tokenizer learns from a text, or the one a run was trained with. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/tokenizer.h"
#include "runner/command.h"
#include "runner/corpus.h"
#include "runner/database.h"
#include "runner/experiment.h"
#include "runner/file.h"
#include "runner/hf_tokenizer.h"
#include "runner/json.h"
#include "runner/sql.h"
#include "runner/token_text.h"

static const size_t file_limit = (size_t)1 << 31;

struct measure {
    const char *path; /* NULL: the text that was learned from */
    bool known;
    uint64_t bytes, tokens;
};

struct view {
    struct tokenizer *tokenizer;
    int64_t asked; /* vocabulary size; -1: this kind has none */
    struct measure learned, encoded;
    int32_t *ids; /* of the encoded file */
};

static void note_print(void *context, const char *text)
{
    (void)context;
    message("note: %s", text);
}

static const char *kind_name(int kind, char buf[KNOB_TEXT_SIZE])
{
    return knob_format(knob_find("data.tokenizer.kind"), (union knob_value){.choice = kind}, buf);
}

/* The settings asked for on the command line, over the defaults. */
static struct tokenizer_config settings_read(const struct arguments *arguments)
{
    struct config config;
    union knob_value kind;
    struct error err;
    config_init(&config);
    const char *name = option_text(arguments, "kind", NULL);
    if (name) {
        if (!knob_parse(knob_find("data.tokenizer.kind"), name, false, &kind, &err))
            die(EXIT_USAGE, "--kind: %s", err.text);
        config.tokenizer.kind = kind.choice;
    }
    static const char *const of_bpe[] = {"vocab-size", "min-frequency"};
    for (size_t i = 0; i < 2 && config.tokenizer.kind != TOKENIZER_BPE; i++)
        if (option_integer(arguments, of_bpe[i], -1) >= 0)
            message("note: --%s changes nothing for --kind %s, only for bpe", of_bpe[i], name);
    config.tokenizer.vocab_size = option_integer(arguments, "vocab-size", config.tokenizer.vocab_size);
    config.tokenizer.min_frequency = option_integer(arguments, "min-frequency", config.tokenizer.min_frequency);
    return config.tokenizer;
}

static void corpus_measure(const struct tokenizer *tokenizer, const struct text *documents, size_t count,
                           struct measure *measure)
{
    size_t largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = documents[i].size > largest ? documents[i].size : largest;
    int32_t *ids = memory_alloc(largest, sizeof *ids);
    measure->known = true;
    for (size_t i = 0; i < count; i++) {
        measure->bytes += documents[i].size;
        measure->tokens += tokenizer_encode(tokenizer, documents[i].bytes, documents[i].size, ids);
    }
    memory_free(ids);
}

static bool view_learn(const struct arguments *arguments, struct view *view, struct error *err)
{
    struct tokenizer_config settings = settings_read(arguments);
    char **paths = memory_alloc(arguments->positional_count, sizeof *paths), folder[] = "";
    for (size_t i = 0; i < arguments->positional_count; i++)
        paths[i] = memory_copy_text(arguments->positional[i]);
    struct data_source source = {.builtin = arguments->positional_count == 1 && strcmp(paths[0], "builtin") == 0,
                                 .given = true,
                                 .paths = paths,
                                 .path_count = arguments->positional_count,
                                 .folder = folder};
    struct corpus corpus = {0};
    bool read = corpus_read(&source, &corpus, note_print, NULL, err);
    if (read) {
        struct text *documents = memory_alloc(corpus.count, sizeof *documents);
        for (size_t i = 0; i < corpus.count; i++)
            documents[i] = corpus.documents[i].text;
        view->tokenizer = tokenizer_train(&settings, documents, corpus.count, err);
        if (view->tokenizer)
            corpus_measure(view->tokenizer, documents, corpus.count, &view->learned);
        memory_free(documents);
    }
    corpus_release(&corpus);
    for (size_t i = 0; i < arguments->positional_count; i++)
        memory_free(paths[i]);
    memory_free(paths);
    view->asked = settings.kind == TOKENIZER_BPE ? settings.vocab_size : -1;
    if (view->tokenizer && view->asked > tokenizer_vocab_size(view->tokenizer))
        message("note: asked %" PRId64 ", got %" PRId64 ": no pair of tokens is left that occurs %" PRId64 " times",
                view->asked, tokenizer_vocab_size(view->tokenizer), settings.min_frequency);
    return view->tokenizer;
}

static bool view_open(sqlite3 *db, const char *run, struct view *view, struct error *err)
{
    char key[65];
    size_t size;
    struct config config;
    if (!database_find_run(db, run, key, err))
        return false;
    void *image = database_tokenizer(db, key, &size, err);
    char *json = image ? database_run_config(db, key, err) : NULL;
    if (json && config_from_json(json, &config, err)) {
        view->asked = config.tokenizer.kind == TOKENIZER_BPE ? config.tokenizer.vocab_size : -1;
        view->tokenizer = tokenizer_load(image, size, err);
    }
    memory_free(json);
    memory_free(image);
    return view->tokenizer;
}

/* The tokenizer is there already: nothing that says how to learn one goes with it. */
static void learning_refuse(const struct arguments *arguments, const char *option, const char *whose)
{
    static const char *const of_learning[] = {"vocab-size", "min-frequency"};
    if (arguments->positional_count)
        die(EXIT_USAGE, "'%s' beside --%s: %s's tokenizer is shown as it was learned; give paths or --%s",
            arguments->positional[0], option, whose, option);
    if (option_text(arguments, "kind", NULL))
        die(EXIT_USAGE, "--kind beside --%s: %s has its tokenizer already", option, whose);
    for (size_t i = 0; i < 2; i++)
        if (option_integer(arguments, of_learning[i], -1) >= 0)
            die(EXIT_USAGE, "--%s beside --%s: %s has its tokenizer already", of_learning[i], option, whose);
}

static void view_open_run(const struct arguments *arguments, const char *run, struct view *view)
{
    struct error err;
    learning_refuse(arguments, "run", "a run");
    sqlite3 *db = database_open_reader(option_text(arguments, "db", "results/results.db"), &err);
    if (!db)
        die(EXIT_ENVIRONMENT, "%s", err.text);
    bool opened = view_open(db, run, view, &err), failed = sql_has_failed(db);
    sqlite3_close(db);
    if (!opened)
        die(failed ? EXIT_ENVIRONMENT : EXIT_USAGE, "--run '%s': %s", run, err.text);
}

static void view_open_folder(const struct arguments *arguments, const char *folder, struct view *view)
{
    struct error err;
    learning_refuse(arguments, "hf", "a folder");
    if (option_text(arguments, "run", NULL))
        die(EXIT_USAGE, "--run beside --hf: give one of them");
    char *path = path_join(folder, "tokenizer.json");
    view->tokenizer = hf_tokenizer_read(path, &err);
    memory_free(path);
    if (!view->tokenizer)
        die(EXIT_USAGE, "--hf: %s", err.text);
}

static void view_encode(struct view *view, const char *path)
{
    struct error err;
    char *bytes;
    size_t size;
    if (!file_read(path, file_limit, &bytes, &size, &err))
        die(EXIT_USAGE, "--encode: %s", err.text);
    view->ids = memory_alloc(size, sizeof *view->ids);
    view->encoded = (struct measure){path, true, size, tokenizer_encode(view->tokenizer, bytes, size, view->ids)};
    memory_free(bytes);
}

static void measure_put(json_t *object, const struct measure *measure)
{
    json_put(object, "bytes", measure->known ? json_integer((json_int_t)measure->bytes) : json_null());
    json_put(object, "tokens", measure->known ? json_integer((json_int_t)measure->tokens) : json_null());
    json_put(object, "bytes_per_token",
             measure->tokens ? json_from_double((double)measure->bytes / (double)measure->tokens) : json_null());
}

static json_t *merges_json(const struct tokenizer *tokenizer)
{
    json_t *merges = json_array();
    for (size_t i = 0; i < tokenizer_merge_count(tokenizer); i++) {
        int32_t left, right;
        tokenizer_merge(tokenizer, i, &left, &right);
        json_t *merge = json_array();
        json_push(merge, json_integer(left));
        json_push(merge, json_integer(right));
        json_push(merges, merge);
    }
    return merges;
}

static json_t *vocabulary_json(const struct tokenizer *tokenizer)
{
    json_t *vocabulary = json_array();
    for (int32_t id = 0; id < tokenizer_vocab_size(tokenizer); id++) {
        json_t *token = json_object();
        json_put(token, "id", json_integer(id));
        const char *special = token_special_name(tokenizer, id);
        if (special) {
            json_put(token, "special", json_from_text(special));
        } else {
            char *text = token_escape(tokenizer_token(tokenizer, id)), *hex = token_hex(tokenizer_token(tokenizer, id));
            json_put(token, "text", json_from_text(text));
            json_put(token, "hex", json_from_text(hex));
            memory_free(text);
            memory_free(hex);
        }
        json_push(vocabulary, token);
    }
    return vocabulary;
}

static void view_print_json(const struct view *view)
{
    char kind[KNOB_TEXT_SIZE];
    json_t *root = json_object();
    json_put(root, "kind", json_from_text(kind_name(tokenizer_kind(view->tokenizer), kind)));
    json_put(root, "vocab_size", json_integer(tokenizer_vocab_size(view->tokenizer)));
    json_put(root, "asked", view->asked < 0 ? json_null() : json_integer(view->asked));
    measure_put(root, &view->learned);
    json_put(root, "merges", merges_json(view->tokenizer));
    json_put(root, "vocabulary", vocabulary_json(view->tokenizer));
    if (view->encoded.known) {
        json_t *encoded = json_object(), *ids = json_array();
        json_put(encoded, "file", json_from_text(view->encoded.path));
        measure_put(encoded, &view->encoded);
        json_put(root, "encoded", encoded);
        for (uint64_t i = 0; i < view->encoded.tokens; i++)
            json_push(ids, json_integer(view->ids[i]));
        json_put(root, "ids", ids);
    }
    json_print(root, stdout);
    json_decref(root);
}

static void measure_print(const char *label, const struct measure *measure)
{
    if (!measure->known)
        return;
    printf("%-12s%" PRIu64 " bytes, %" PRIu64 " tokens", label, measure->bytes, measure->tokens);
    if (measure->tokens)
        printf(", %.3f bytes a token", (double)measure->bytes / (double)measure->tokens);
    putchar('\n');
}

static void vocabulary_print(const struct tokenizer *tokenizer)
{
    enum { SHOWN = 200 };
    for (int32_t id = 0; id < tokenizer_vocab_size(tokenizer); id++) {
        const char *special = token_special_name(tokenizer, id);
        struct text token = tokenizer_token(tokenizer, id);
        size_t size = token.size;
        if (size > SHOWN)
            token.size = SHOWN;
        char *text = token_escape(token);
        if (special)
            printf("%7" PRId32 "  %s\n", id, special);
        else if (size > SHOWN)
            printf("%7" PRId32 "  \"%s\"... (%zu bytes)\n", id, text, size);
        else
            printf("%7" PRId32 "  \"%s\"\n", id, text);
        memory_free(text);
    }
}

static void view_print_text(const struct view *view)
{
    char kind[KNOB_TEXT_SIZE];
    printf("%-12s%s\n", "kind", kind_name(tokenizer_kind(view->tokenizer), kind));
    printf("%-12s%" PRId64 " tokens", "vocabulary", tokenizer_vocab_size(view->tokenizer));
    if (view->asked > tokenizer_vocab_size(view->tokenizer))
        printf(" (asked %" PRId64 ", got %" PRId64 ")", view->asked, tokenizer_vocab_size(view->tokenizer));
    putchar('\n');
    measure_print("text", &view->learned);
    measure_print("encoded", &view->encoded);
    printf("\n%7s  token\n", "id");
    vocabulary_print(view->tokenizer);
}

static int tokenizer_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    struct view view = {.asked = -1};
    struct error err;
    const char *run = option_text(arguments, "run", NULL), *encode = option_text(arguments, "encode", NULL);
    const char *folder = option_text(arguments, "hf", NULL);
    if (!run && option_text(arguments, "db", NULL))
        die(EXIT_USAGE, "--db without --run: a database is read for a run's tokenizer alone");
    if (folder)
        view_open_folder(arguments, folder, &view);
    else if (run)
        view_open_run(arguments, run, &view);
    else if (!arguments->positional_count)
        die(EXIT_USAGE, "no text to learn from: give files, folders, globs or builtin, or --run RUN");
    else if (!view_learn(arguments, &view, &err))
        die(EXIT_USAGE, "%s", err.text);
    if (encode)
        view_encode(&view, encode);
    if (arguments->json)
        view_print_json(&view);
    else
        view_print_text(&view);
    memory_free(view.ids);
    tokenizer_free(view.tokenizer);
    return EXIT_DONE;
}

static const struct option tokenizer_options[] = {
    {.name = "kind",
     .kind = OPTION_TEXT,
     .argument = "KIND",
     .doc = "what to learn (default bpe)",
     .choices = "bpe|char|byte"},
    {.name = "vocab-size",
     .kind = OPTION_INTEGER,
     .argument = "N",
     .doc = "bpe: largest vocabulary, 259 = bytes and specials alone (default 1024)",
     .minimum = 1,
     .maximum = 1000000},
    {.name = "min-frequency",
     .kind = OPTION_INTEGER,
     .argument = "N",
     .doc = "bpe: a pair seen less often is not merged (default 2)",
     .minimum = 1,
     .maximum = 1000000000},
    {.name = "encode",
     .kind = OPTION_TEXT,
     .argument = "FILE",
     .doc = "encode FILE as one text; its token numbers are in --json"},
    {.name = "run",
     .kind = OPTION_TEXT,
     .argument = "RUN",
     .doc = "the tokenizer RUN was trained with; RUN is a key prefix or experiment/variant/seed"},
    {.name = "db", .kind = OPTION_TEXT, .argument = "PATH", .doc = "database of --run (default results/results.db)"},
    {.name = "hf",
     .kind = OPTION_TEXT,
     .argument = "DIR",
     .doc = "the tokenizer.json of a folder that runner export made"},
    {0},
};

extern const struct command command_tokenizer;
const struct command command_tokenizer = {
    .name = "tokenizer",
    .arguments = "PATH...",
    .summary = "Learn a tokenizer from text, or show a run's: vocabulary, bytes per token.",
    .help = "PATH is a file, a folder, a glob, a .jsonl with one {\"text\": ..} a line, or the\n"
            "word builtin. All of the text is learned from (a run learns from its training\n"
            "part alone). Tokens are shown in quotes, with \\n, \\t, \\xNN or \\u{N} for what does\n"
            "not show as itself. --json has the merges too and, with --encode, the token\n"
            "numbers of FILE, without bos and eos. --run and --hf learn nothing and need no PATH.\n"
            "\n"
            "Example:\n"
            "  runner tokenizer corpus.txt --vocab-size 600 --encode corpus.txt",
    .options = tokenizer_options,
    .json = true,
    .minimum_arguments = 0,
    .maximum_arguments = -1,
    .run = tokenizer_run,
};
