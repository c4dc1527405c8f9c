/* runner report: one HTML page and one Markdown page of an experiment, from the database alone. */
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "runner/command.h"
#include "runner/database.h"
#include "runner/file.h"
#include "runner/json.h"
#include "runner/report.h"
#include "runner/sql.h"

static char *folder_default(const char *database_path, const char *experiment)
{
    char *beside = path_folder(database_path), *reports = path_join(beside, "reports");
    char *name = file_name_make(experiment, 100), *folder = path_join(reports, name);
    memory_free(beside);
    memory_free(reports);
    memory_free(name);
    return folder;
}

static bool pages_write(const struct report *report, const char *folder, const char *html, const char *markdown,
                        struct error *err)
{
    struct file_writer page = {0}, text = {0};
    bool ok = file_writer_open(&page, html, err) && file_writer_open(&text, markdown, err) &&
              report_write_html(report, folder, page.stream, err);
    if (ok) {
        report_write_markdown(report, text.stream);
        ok = file_writer_commit(&page, err) && file_writer_commit(&text, err);
    }
    file_writer_abandon(&page);
    file_writer_abandon(&text);
    return ok;
}

static void files_tell(const struct report *report, const char *html, const char *markdown, bool json)
{
    if (!json) {
        printf("%s\n%s\n", html, markdown);
        return;
    }
    json_t *root = json_object();
    json_put(root, "experiment", json_from_text(report->experiment));
    json_put(root, "html", json_from_text(html));
    json_put(root, "markdown", json_from_text(markdown));
    json_put(root, "figures", json_integer((json_int_t)report->figure_count));
    json_print(root, stdout);
    json_decref(root);
}

/* The pages do not depend on gnuplot: without it they have no figures, and the exit code says so. */
static int report_make(struct report *report, sqlite3 *db, const char *folder, bool figures, bool json)
{
    struct error err, trouble;
    char *html = path_join(folder, "report.html"), *markdown = path_join(folder, "report.md");
    int code = EXIT_ENVIRONMENT;
    if (!folder_make(folder, &err)) {
        message("runner: %s", err.text);
        goto done;
    }
    bool drawn = !figures || report_draw(report, db, folder, &trouble);
    if (!pages_write(report, folder, html, markdown, &err)) {
        message("runner: %s", err.text);
        goto done;
    }
    files_tell(report, html, markdown, json);
    if (drawn)
        code = EXIT_DONE;
    else
        message("runner: the pages are there, but not all figures: %s", trouble.text);
done:
    memory_free(html);
    memory_free(markdown);
    return code;
}

static int report_run(const struct command *command, const struct arguments *arguments)
{
    (void)command;
    struct error err;
    static const char standard[] = "results/results.db";
    const char *path = option_text(arguments, "db", standard);
    const char *out = option_text(arguments, "out", NULL);
    sqlite3 *db = database_open_reader(path, &err);
    if (!db)
        die(EXIT_ENVIRONMENT, "%s", err.text);
    struct report *report = NULL;
    int code;
    if (sql_script(db, "begin", &err)) /* one moment for all its queries */
        report = report_read(db, arguments->positional[0], &err);
    if (report) {
        report->database = strcmp(path, standard) ? path : NULL;
        char *folder = out ? memory_copy_text(out) : folder_default(path, report->experiment);
        code = report_make(report, db, folder, !option_flag(arguments, "no-figures"), arguments->json);
        memory_free(folder);
    } else {
        code = sql_has_failed(db) ? EXIT_ENVIRONMENT : EXIT_USAGE;
        message("runner: %s", err.text);
    }
    report_free(report);
    sqlite3_close(db);
    return code;
}

static const struct option options[] = {
    {.name = "out",
     .kind = OPTION_TEXT,
     .argument = "DIR",
     .doc = "folder for the pages; reports/EXPERIMENT beside the database when not given"},
    {.name = "no-figures", .kind = OPTION_FLAG, .doc = "tables and words only"},
    {.name = "db", .kind = OPTION_TEXT, .argument = "PATH", .doc = "the database; results/results.db when not given"},
    {0},
};

extern const struct command command_report;
const struct command command_report = {
    .name = "report",
    .arguments = "EXPERIMENT",
    .summary = "Write an experiment up: one HTML page and one Markdown page.",
    .help = "Question, answer in one sentence made from the verdicts, table, figures, settings that differ, where the\n"
            "numbers come from, and the commands that make them again. The HTML page holds everything itself and asks\n"
            "the network for nothing; the Markdown page has its figures beside it. Only the database is read, and the\n"
            "same database gives the same bytes.\n\n"
            "Example:\n  runner report quick --out write-up",
    .options = options,
    .json = true,
    .minimum_arguments = 1,
    .maximum_arguments = 1,
    .run = report_run,
};
