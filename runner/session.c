/* Paths, sweep and reader of a command about one experiment file. */
#include "runner/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/database.h"
#include "runner/experiment.h"
#include "runner/file.h"
#include "runner/lockfile.h"
#include "runner/run_words.h"
#include "runner/shard.h"
#include "runner/shell_word.h"
#include "runner/text_stream.h"

void session_begin(struct session *session, const struct command *command, const struct arguments *arguments)
{
    *session =
        (struct session){.arguments = arguments, .database_path = option_text(arguments, "db", "results/results.db")};
    session->folder = path_folder(session->database_path);
    session->cache = path_join(session->folder, "cache");
    session->checkpoints = path_join(session->folder, "checkpoints");
    session->logs = path_join(session->folder, "logs");
    session->words = run_words(command, arguments, NULL);
    session->words_once = run_words(command, arguments, "retry");
}

void session_end(struct session *session)
{
    sweep_free(session->sweep);
    memory_free(session->folder);
    memory_free(session->cache);
    memory_free(session->checkpoints);
    memory_free(session->logs);
    memory_free(session->words);
    memory_free(session->words_once);
    *session = (struct session){0};
}

int session_load(struct session *session, const char *cache_folder)
{
    const struct arguments *arguments = session->arguments;
    struct shard shard;
    struct error err;
    if (!shard_parse(option_text(arguments, "shard", NULL), &shard, &err)) {
        message("runner: %s", err.text);
        return EXIT_USAGE;
    }
    struct experiment_options options = {.seeds = option_text(arguments, "seeds", NULL),
                                         .yes = option_flag(arguments, "yes")};
    struct problems problems;
    options.set_count = option_list(arguments, "set", &options.sets);
    options.only_count = option_list(arguments, "only", &options.only);
    problems_init(&problems);
    struct experiment *experiment = experiment_load(arguments->positional[0], &options, &problems);
    char holder[LOCKFILE_HOLDER_SIZE];
    bool shared = database_lock_holder(session->database_path, holder, sizeof holder);
    if (experiment)
        session->sweep = sweep_resolve(experiment, cache_folder, shared, &problems);
    problems_print(&problems, stderr);
    int code = session->sweep ? EXIT_DONE : problems.environment ? EXIT_ENVIRONMENT : EXIT_USAGE;
    problems_release(&problems);
    if (session->sweep)
        session->sweep->choice = run_words_choice(arguments);
    for (size_t i = 0; session->sweep && i < session->sweep->run_count; i++)
        session->sweep->runs[i].elsewhere = !shard_has(shard, session->sweep->runs[i].key);
    return code;
}

bool session_reader(const struct session *session, sqlite3 **reader, struct error *err)
{
    *reader = NULL;
    if (access(session->database_path, F_OK) != 0 && errno == ENOENT)
        return true;
    *reader = database_open_reader(session->database_path, err);
    return *reader != NULL;
}

char *session_command(const struct session *session, const char *command)
{
    char *name = shell_word(session->sweep->experiment->name), *path = shell_word(session->database_path);
    struct text_stream text;
    text_stream_open(&text);
    fprintf(text.out, "runner %s %s --db %s", command, name, path);
    memory_free(path);
    memory_free(name);
    return text_stream_take(&text);
}
