/* runner sample: text from a trained run, through the KV cache. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/command.h"
#include "runner/generation.h"
#include "runner/json.h"
#include "runner/precision.h"
#include "runner/printer.h"
#include "runner/sampler.h"
#include "runner/trained_run.h"

enum { TOKENS_STANDARD = 200, TOKENS_MOST = 1000000, SEED_STANDARD = 1337 };
#define TEMPERATURE_STANDARD 0.8
#define TEMPERATURE_MOST 100.0

struct request {
    const char *run, *database, *prompt;
    int64_t tokens;
    struct sampling sampling;
};

struct sample {
    const struct request *request;
    struct trained_run run;
    int32_t *tokens; /* bos, the prompt's, then those made */
    int64_t prompt_size, size;
    bool ended;              /* by eos */
    struct printer *printer; /* NULL: nothing is shown on the way */
    bool told_past;
};

static double temperature_read(const struct arguments *arguments)
{
    double temperature = option_number(arguments, "temperature", TEMPERATURE_STANDARD);
    if (!(temperature >= 0 && temperature <= TEMPERATURE_MOST))
        die(EXIT_USAGE, "--temperature is %g: expected a number from 0 (always the likeliest token) to %g", temperature,
            TEMPERATURE_MOST);
    return temperature;
}

static void run_open(struct sample *sample)
{
    const struct request *request = sample->request;
    struct error err;
    enum exit_code code = trained_run_open(request->database, request->run, &sample->run, &err);
    if (code != EXIT_DONE)
        die(code, "%s", err.text);
    int64_t V = tokenizer_vocab_size(sample->run.tokenizer);
    if (request->sampling.top_k > V)
        die(EXIT_USAGE, "--top-k is %" PRId64 ": expected 1 to %" PRId64 ", the run's vocabulary",
            request->sampling.top_k, V);
}

/* bos and the prompt, with room for what follows. */
static void prompt_encode(struct sample *sample)
{
    const struct tokenizer *tokenizer = sample->run.tokenizer;
    const char *prompt = sample->request->prompt;
    size_t size = strlen(prompt), unknown = 0;
    sample->tokens = memory_alloc(size + 1 + (size_t)sample->request->tokens, sizeof *sample->tokens);
    sample->tokens[0] = tokenizer_bos(tokenizer);
    sample->prompt_size = sample->size = 1 + (int64_t)tokenizer_encode(tokenizer, prompt, size, sample->tokens + 1);
    for (int64_t i = 1; i < sample->prompt_size; i++)
        unknown += sample->tokens[i] == tokenizer_unk(tokenizer);
    if (unknown)
        message("note: the run's tokenizer does not know %zu of the prompt's %" PRId64 " characters", unknown,
                sample->prompt_size - 1);
}

static void past_tell(struct sample *sample, const struct generation *generation)
{
    bool windowed;
    if (sample->told_past || !generation_is_past(generation, &windowed))
        return;
    sample->told_past = true;
    if (sample->printer && sample->printer->terminal)
        fputc('\n', stderr); /* the text stands in the middle of a line */
    int64_t T = sample->run.config.model.context_length;
    if (windowed)
        message("note: past the context of %" PRId64 " learned positions: the text goes on from the last %" PRId64
                " tokens each time it is full",
                T, T > 1 ? T / 2 : 1);
    else
        message("note: past the %" PRId64 " positions the run was trained on: it was never taught what follows", T);
}

static bool tokens_make(struct sample *sample, struct generation *generation, struct sampler *sampler, real *logits)
{
    const struct tokenizer *tokenizer = sample->run.tokenizer;
    int64_t fed = 0, longest = sample->prompt_size + sample->request->tokens;
    while (sample->size < longest && !sample->ended) {
        generation_feed(generation, sample->tokens + fed, sample->size - fed, logits);
        fed = sample->size;
        past_tell(sample, generation);
        int32_t next = sampler_next(sampler, logits, sample->size);
        if (next < 0)
            return false;
        sample->tokens[sample->size++] = next;
        sample->ended = next == tokenizer_eos(tokenizer);
        if (sample->printer)
            printer_add(sample->printer, tokenizer_token(tokenizer, next));
        if (ferror(stdout))
            break;
    }
    return true;
}

static struct model *model_make(const struct sample *sample)
{
    const struct model_config *config = &sample->run.config.model;
    struct error err;
    struct model *model = model_create(config, tokenizer_vocab_size(sample->run.tokenizer),
                                       generation_rows(config, sample->prompt_size), &err);
    if (!model)
        die(EXIT_USAGE, "%s", err.text);
    precision_note(sample->run.config.training.precision);
    model_set_precision(model, sample->run.config.training.precision);
    trained_run_read(&sample->run, model_parameters(model));
    return model;
}

static void sample_make(struct sample *sample)
{
    struct error err;
    struct model *model = model_make(sample);
    struct generation *generation = generation_create(model, sample->prompt_size + sample->request->tokens, &err);
    int64_t V = tokenizer_vocab_size(sample->run.tokenizer);
    struct sampler sampler;
    sampler_init(&sampler, &sample->request->sampling, V);
    real *logits = memory_alloc((size_t)V, sizeof *logits);
    if (generation && !tokens_make(sample, generation, &sampler, logits))
        die(EXIT_USAGE, "run %.12s gives logits that are not finite at token %" PRId64 ": its weights are of no use",
            sample->run.key, sample->size);
    if (!generation)
        die(EXIT_USAGE, "%s", err.text);
    memory_free(logits);
    sampler_release(&sampler);
    generation_free(generation);
    model_free(model);
}

/* ---- output ---- */

static json_t *ids_json(const int32_t *ids, int64_t count)
{
    json_t *array = json_array();
    for (int64_t i = 0; i < count; i++)
        json_push(array, json_integer(ids[i]));
    return array;
}

/* The bytes of the tokens made; what is no UTF-8 and zero bytes become U+FFFD. */
static json_t *text_json(const struct sample *sample)
{
    size_t size = 0, used = 0;
    for (int64_t i = sample->prompt_size; i < sample->size; i++)
        size += tokenizer_token(sample->run.tokenizer, sample->tokens[i]).size;
    char *text = memory_alloc(size + 1, 1);
    for (int64_t i = sample->prompt_size; i < sample->size; i++) {
        struct text token = tokenizer_token(sample->run.tokenizer, sample->tokens[i]);
        memcpy(text + used, token.bytes, token.size);
        used += token.size;
    }
    for (size_t i = 0; i < size; i++)
        if (!text[i])
            text[i] = (char)0xFF;
    json_t *json = json_from_text(text);
    memory_free(text);
    return json;
}

static void sample_print_json(const struct sample *sample)
{
    json_t *root = json_object();
    json_put(root, "run", json_from_text(sample->run.key));
    json_put(root, "prompt", json_from_text(sample->request->prompt));
    json_put(root, "text", text_json(sample));
    json_put(root, "prompt_tokens", ids_json(sample->tokens, sample->prompt_size));
    json_put(root, "tokens", ids_json(sample->tokens + sample->prompt_size, sample->size - sample->prompt_size));
    json_put(root, "stopped", json_from_text(sample->ended ? "eos" : "tokens"));
    json_print(root, stdout);
    json_decref(root);
}

static void sample_print(struct sample *sample)
{
    struct printer printer = {.out = stdout, .terminal = isatty(STDOUT_FILENO)};
    /* cppcheck-suppress autoVariables ; taken back below */
    sample->printer = &printer;
    printer_add(&printer, (struct text){sample->request->prompt, strlen(sample->request->prompt)});
    sample_make(sample);
    printer_end(&printer);
    sample->printer = NULL;
    if (printer.terminal)
        putchar('\n');
}

static int sample_command(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    struct request request = {
        .run = arguments->positional[0],
        .database = option_text(arguments, "db", "results/results.db"),
        .prompt = option_text(arguments, "prompt", ""),
        .tokens = option_integer(arguments, "tokens", TOKENS_STANDARD),
        .sampling = {.temperature = temperature_read(arguments),
                     .top_k = option_integer(arguments, "top-k", 0),
                     .seed = option_integer(arguments, "seed", SEED_STANDARD)},
    };
    struct sample sample = {.request = &request};
    run_open(&sample);
    prompt_encode(&sample);
    if (arguments->json) {
        sample_make(&sample);
        sample_print_json(&sample);
    } else {
        sample_print(&sample);
    }
    memory_free(sample.tokens);
    trained_run_close(&sample.run);
    return EXIT_DONE;
}

static const struct option sample_options[] = {
    {.name = "prompt", .kind = OPTION_TEXT, .argument = "TEXT", .doc = "what the text begins with (default: nothing)"},
    {.name = "tokens",
     .kind = OPTION_INTEGER,
     .argument = "N",
     .doc = "tokens to make at most (default 200)",
     .minimum = 1,
     .maximum = TOKENS_MOST},
    {.name = "temperature",
     .kind = OPTION_NUMBER,
     .argument = "T",
     .doc = "logits are divided by it; 0 = always the likeliest token (default 0.8)"},
    {.name = "top-k",
     .kind = OPTION_INTEGER,
     .argument = "K",
     .doc = "draw from the K likeliest tokens alone (default: from all)",
     .minimum = 1,
     .maximum = 1000000},
    {.name = "seed",
     .kind = OPTION_INTEGER,
     .argument = "S",
     .doc = "another text (default 1337); the same seed gives the same text",
     .minimum = 0,
     .maximum = INT64_MAX},
    {.name = "db", .kind = OPTION_TEXT, .argument = "PATH", .doc = "database (default results/results.db)"},
    {0},
};

extern const struct command command_sample;
const struct command command_sample = {
    .name = "sample",
    .arguments = "RUN",
    .summary = "Text from a trained run.",
    .help = "RUN is a key's first digits or experiment/variant/seed; it must be finished. The\n"
            "model reads bos and the prompt, then its own tokens, until eos or N tokens. The\n"
            "prompt and the tokens' bytes are printed as they come; on a terminal what could\n"
            "drive it is escaped. Past the context length, learned positions start anew from\n"
            "its last half; other positions go on. --json has the token numbers too.\n"
            "\n"
            "Example:\n"
            "  runner sample quick/baseline/1337 --prompt \"The \" --temperature 0",
    .options = sample_options,
    .json = true,
    .minimum_arguments = 1,
    .maximum_arguments = 1,
    .run = sample_command,
};
