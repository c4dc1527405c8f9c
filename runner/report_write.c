/* The two pages of a report. Nothing in them depends on when, where or by whom they are made. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/file.h"
#include "runner/plot_text.h"
#include "runner/report.h"
#include "runner/shell_word.h"

extern const char report_style_text[], report_script_text[]; /* report_page.c */

/* A text from a file that others wrote, harmless. */
static void text_html(const char *text, FILE *out)
{
    char *clean = plot_text_clean(text);
    html_put(clean, out);
    memory_free(clean);
}

static void text_markdown(const char *text, FILE *out)
{
    char *clean = plot_text_clean(text);
    markdown_put(clean, out);
    memory_free(clean);
}

/* The parts between the marks of names go through put, the marks become begin and end. */
static void answer_write(const char *answer, const char *begin, const char *end,
                         void (*put)(const char *text, FILE *out), FILE *out)
{
    char *copy = memory_copy_text(answer);
    for (char *part = copy; *part;) {
        size_t length = strcspn(part, "\x01\x02");
        char mark = part[length];
        part[length] = 0;
        put(part, out);
        if (mark)
            fputs(mark == REPORT_NAME_BEGIN ? begin : end, out);
        part += length + (mark != 0);
    }
    memory_free(copy);
}

/* What others wrote, as words of a shell. */
static void word_put(const char *before, const char *text, void (*put)(const char *text, FILE *out), FILE *out)
{
    char *word = shell_word(text);
    put(before, out);
    put(word, out);
    memory_free(word);
}

static void command_end(const struct report *report, void (*put)(const char *text, FILE *out), FILE *out)
{
    if (report->database)
        word_put(" --db ", report->database, put, out);
    fputc('\n', out); /* a line's end in both pages, where put() writes what a text has */
}

static void commands_write(const struct report *report, void (*put)(const char *text, FILE *out), FILE *out)
{
    static const char *const readers[] = {"runner table ", "runner plot ", "runner report "};
    char *choices = memory_copy_text(report->choices), *rest = choices;
    if (report->changed)
        fputs("# the file was changed since: as it is now, it makes other runs\n", out);
    for (char *line = strsep(&rest, "\n"); line; line = rest && *rest ? strsep(&rest, "\n") : NULL) {
        json_t *words = json_loads(line, 0, NULL);
        word_put("runner run ", report->path, put, out);
        for (size_t i = 0; i < json_array_size(words); i++)
            if (json_is_string(json_array_get(words, i)))
                word_put(" ", json_string_value(json_array_get(words, i)), put, out);
        json_decref(words);
        command_end(report, put, out);
    }
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        word_put(readers[i], report->experiment, put, out);
        command_end(report, put, out);
    }
    memory_free(choices);
}

/* ---- HTML ---- */

static void base64_write(const unsigned char *bytes, size_t size, FILE *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        unsigned group = (unsigned)bytes[i] << 16;
        group |= i + 1 < size ? (unsigned)bytes[i + 1] << 8 : 0;
        group |= i + 2 < size ? bytes[i + 2] : 0;
        fputc(digits[group >> 18], out);
        fputc(digits[group >> 12 & 63], out);
        fputc(i + 1 < size ? digits[group >> 6 & 63] : '=', out);
        fputc(i + 2 < size ? digits[group & 63] : '=', out);
    }
}

/* As the picture of an img element a drawing can run no script and ask for nothing, whatever its texts say. */
static bool figure_html(const struct report *report, const struct report_figure *figure, const char *folder, FILE *out,
                        struct error *err)
{
    enum { LARGEST = 1 << 28 };
    char *path = path_join(folder, figure->file), *bytes = NULL;
    size_t size = 0;
    bool ok = file_read(path, LARGEST, &bytes, &size, err);
    if (ok) {
        fputs("<figure>\n<img alt=\"", out);
        html_put(figure->caption, out);
        fputs(", ", out);
        text_html(report->experiment, out);
        fputs(". Its numbers are in the tables.\" src=\"data:image/svg+xml;base64,", out);
        base64_write((const unsigned char *)bytes, size, out);
        fputs("\">\n<figcaption>", out);
        html_put(figure->caption, out);
        fputs("</figcaption>\n</figure>\n", out);
    }
    memory_free(bytes);
    memory_free(path);
    return ok;
}

static void head_html(const struct report *report, FILE *out)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
          "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>",
          out);
    text_html(report->experiment, out);
    fprintf(out, "</title>\n<style>\n%s</style>\n</head>\n", report_style_text);
}

/* The first line of the question is the question, the others say more. */
static void question_html(const struct report *report, FILE *out)
{
    char *copy = memory_copy_text(report->question), *rest = copy, *line = strsep(&rest, "\n");
    fputs("<section aria-labelledby=\"question\">\n<h2 id=\"question\">Question</h2>\n<p class=\"question\">", out);
    text_html(*line ? line : "The experiment's file asks none.", out);
    fputs("</p>\n", out);
    if (rest && *rest) {
        fputs("<p>", out);
        text_html(rest, out);
        fputs("</p>\n", out);
    }
    fputs("</section>\n", out);
    memory_free(copy);
}

static void section_open(const char *id, const char *title, FILE *out)
{
    fprintf(out, "<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">%s</h2>\n", id, id, title);
}

static void losses_html(const struct loss_table *losses, FILE *out)
{
    struct table *values = loss_table_values(losses), *comparisons = loss_table_comparisons(losses);
    table_write_html(values, out);
    if (table_row_count(comparisons))
        table_write_html(comparisons, out);
    table_free(values);
    table_free(comparisons);
}

bool report_write_html(const struct report *report, const char *folder, FILE *out, struct error *err)
{
    bool ok = true;
    head_html(report, out);
    fputs("<body>\n<header>\n<h1>", out);
    text_html(report->experiment, out);
    fputs("</h1>\n<p>", out);
    text_html(report->description, out);
    fputs("</p>\n</header>\n<main>\n", out);
    question_html(report, out);
    section_open("answer", "Answer", out);
    fputs("<p class=\"answer\">", out);
    answer_write(report->answer, "<strong><bdi>", "</bdi></strong>", text_html, out);
    fputs("</p>\n</section>\n", out);
    section_open("table", "Table", out);
    losses_html(report->losses[0], out);
    fputs("</section>\n", out);
    section_open("figures", "Figures", out);
    for (size_t i = 0; ok && i < report->figure_count; i++)
        ok = figure_html(report, &report->figures[i], folder, out, err);
    if (report->figure_count == 0)
        fputs("<p>There are no figures in this report.</p>\n", out);
    fputs("</section>\n", out);
    section_open("settings", "Settings", out);
    table_write_html(report->settings, out);
    fputs("</section>\n", out);
    if (report->loss_count > 1)
        section_open("splits", "Other splits", out);
    for (size_t i = 1; i < report->loss_count; i++)
        losses_html(report->losses[i], out);
    if (report->loss_count > 1)
        fputs("</section>\n", out);
    section_open("provenance", "Provenance", out);
    table_write_html(report->provenance, out);
    table_write_html(report->runs, out);
    fputs("</section>\n", out);
    section_open("again", "Again", out);
    fputs("<pre><code>", out);
    commands_write(report, html_put, out);
    fprintf(out, "</code></pre>\n</section>\n</main>\n<script>\n%s</script>\n</body>\n</html>\n", report_script_text);
    return ok;
}

/* ---- Markdown ---- */

static void losses_markdown(const struct loss_table *losses, FILE *out)
{
    loss_table_write(losses, TABLE_MD, 0, out);
    fputc('\n', out);
}

static void code_put(const char *text, FILE *out)
{
    fputs(text, out);
}

/* A fence longer than any run of back-quotes within. */
static void commands_markdown(const struct report *report, FILE *out)
{
    size_t longest = 2, run = 0;
    const char *const texts[] = {report->path, report->experiment, report->choices,
                                 report->database ? report->database : ""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++, run = 0)
        for (const char *c = texts[i]; *c; c++) {
            run = *c == '`' ? run + 1 : 0;
            longest = run > longest ? run : longest;
        }
    char *fence = memory_alloc(longest + 2, 1);
    memset(fence, '`', longest + 1);
    fprintf(out, "## Again\n\n%ssh\n", fence);
    commands_write(report, code_put, out);
    fprintf(out, "%s\n", fence);
    memory_free(fence);
}

void report_write_markdown(const struct report *report, FILE *out)
{
    fputs("# ", out);
    text_markdown(report->experiment, out);
    fputs("\n\n", out);
    text_markdown(report->description, out);
    fputs("\n\n## Question\n\n", out);
    text_markdown(*report->question ? report->question : "The experiment's file asks none.", out);
    fputs("\n\n## Answer\n\n", out);
    answer_write(report->answer, "**", "**", text_markdown, out);
    fputs("\n\n## Table\n\n", out);
    losses_markdown(report->losses[0], out);
    fputs("## Figures\n\n", out);
    for (size_t i = 0; i < report->figure_count; i++)
        fprintf(out, "![%s](%s)\n\n", report->figures[i].caption, report->figures[i].file);
    if (report->figure_count == 0)
        fputs("There are no figures in this report.\n\n", out);
    fputs("## Settings\n\n", out);
    table_write(report->settings, TABLE_MD, 0, out);
    if (report->loss_count > 1)
        fputs("\n## Other splits\n\n", out);
    for (size_t i = 1; i < report->loss_count; i++)
        losses_markdown(report->losses[i], out);
    fputs("\n## Provenance\n\n", out);
    table_write(report->provenance, TABLE_MD, 0, out);
    fputc('\n', out);
    table_write(report->runs, TABLE_MD, 0, out);
    fputc('\n', out);
    commands_markdown(report, out);
}
