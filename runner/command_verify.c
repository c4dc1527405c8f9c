/* runner verify: is what lies in results/ still what was written? */
#include <inttypes.h>
#include <stdio.h>

#include "runner/command.h"
#include "runner/database.h"
#include "runner/json.h"
#include "runner/verify.h"

static const struct option options[] = {
    {.name = "db", .kind = OPTION_TEXT, .argument = "PATH", .doc = "Database. Default: results/results.db."},
    {0},
};

static void tell_text(void *context, enum verify_check check, const char *text)
{
    (void)context;
    printf("%s: %s\n", verify_name(check), text);
}

static void tell_json(void *context, enum verify_check check, const char *text)
{
    json_t *problem = json_object();
    json_put(problem, "check", json_from_text(verify_name(check)));
    json_put(problem, "text", json_from_text(text));
    json_push(context, problem);
}

static void result_print(const struct verify *verify, int64_t wrong, json_t *problems)
{
    json_t *root = json_object(), *checks = json_object();
    json_put(root, "ok", json_boolean(wrong == 0));
    for (int i = 0; i < VERIFY_COUNT; i++) {
        json_t *check = json_object();
        json_put(check, "looked_at", json_integer(verify->looked_at[i]));
        json_put(check, "wrong", json_integer(verify->wrong[i]));
        json_put(checks, verify_name((enum verify_check)i), check);
    }
    json_put(root, "checks", checks);
    json_put(root, "problems", problems);
    json_print(root, stdout);
    json_decref(root);
}

static int verify_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    struct error err;
    const char *path = option_text(arguments, "db", "results/results.db");
    sqlite3 *db = database_open_reader(path, &err);
    if (!db)
        die(EXIT_ENVIRONMENT, "%s", err.text);
    json_t *problems = json_array();
    struct verify verify = {.tell = arguments->json ? tell_json : tell_text, .context = problems};
    bool ok = verify_all(db, path, &verify, &err);
    sqlite3_close(db);
    int64_t wrong = 0;
    for (int i = 0; i < VERIFY_COUNT; i++)
        wrong += verify.wrong[i];
    if (arguments->json && ok)
        result_print(&verify, wrong, problems);
    else
        json_decref(problems);
    if (!ok)
        die(EXIT_ENVIRONMENT, "%s", err.text);
    if (!arguments->json)
        printf("%s: %" PRId64 " runs with their keys, %" PRId64 " whole curves, %" PRId64 " checkpoints, %" PRId64
               " final weights: %" PRId64 " wrong\n",
               path, verify.looked_at[VERIFY_KEYS], verify.looked_at[VERIFY_CURVES],
               verify.looked_at[VERIFY_CHECKPOINTS], verify.looked_at[VERIFY_WEIGHTS], wrong);
    return wrong ? EXIT_RUNS_FAILED : EXIT_DONE;
}

extern const struct command command_verify;
const struct command command_verify = {
    .name = "verify",
    .arguments = "",
    .summary = "Check the database, the keys of its runs, checkpoints and final weights.",
    .help = "Changes nothing. What is wrong is a line each; exit code 1 when there is any. Checked: SQLite's own "
            "integrity and that no row points nowhere; that each run's key is the hash of its frozen configuration, "
            "seed, text and tokenizer; that finished runs have every step; sizes and SHA-256 of checkpoints; names and "
            "shapes of final weights.\n\n"
            "Example:\n  runner verify",
    .options = options,
    .json = true,
    .run = verify_run,
};
