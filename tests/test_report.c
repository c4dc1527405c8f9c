/* The pages of a report, from databases with known numbers. */
#include "runner/report.h"

#include "runner/file.h"
#include "tests/database_case.h"

static char *html_of(const struct report *report)
{
    struct error err;
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    cr_assert(report_write_html(report, "/nowhere", out, &err), "%s", err.text);
    fclose(out);
    return text;
}

static char *markdown_of(const struct report *report)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    report_write_markdown(report, out);
    fclose(out);
    return text;
}

/* Losses: 2.10 2.14 2.12, each label shifted by its own differences. */
static struct sweep *sweep_run(struct fixture *f, const char *const *labels, size_t count,
                               const double (*differences)[3])
{
    static const double baseline[] = {2.10, 2.14, 2.12};
    struct sweep *sweep = sweep_make("known", labels, count, three_seeds, 3, "r");
    fixture_open(f);
    freeze(f->db, sweep);
    for (size_t r = 0; r < 3 * count; r++)
        run_through(f->db, sweep->runs[r].key, baseline[r % 3] + differences[r / 3][r % 3], RUN_FINISHED);
    return sweep;
}

static struct report *report_of(struct fixture *f)
{
    struct error err;
    struct report *report = report_read(database_handle(f->db), "known", &err);
    cr_assert(report, "%s", err.text);
    return report;
}

Test(report, the_answer_is_one_sentence_made_of_the_verdicts)
{
    static const char *const labels[] = {"baseline", "good", "same", "bad", "unclear", "fine"};
    static const double differences[][3] = {{0, 0, 0},          {-0.10, -0.12, -0.11}, {0.001, -0.001, 0},
                                            {0.20, 0.22, 0.24}, {0.03, -0.02, 0.05},   {-0.20, -0.22, -0.24}};
    struct fixture f;
    struct sweep *sweep = sweep_run(&f, labels, 6, differences);
    struct report *report = report_of(&f);
    cr_assert_str_eq(report->answer, "Against \x01"
                                     "baseline\x02 (bits_per_byte of 2.1200 on validation), \x01"
                                     "good\x02 (-0.1100) and \x01"
                                     "fine\x02 (-0.2200) are better; \x01"
                                     "bad\x02 (+0.2200) is worse; \x01same\x02 (+0.0000) is the same within 0.01; \x01"
                                     "unclear\x02 (+0.0200) is not separated by these seeds.");
    report_free(report);
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(report, without_a_finished_baseline_there_is_no_answer_yet)
{
    struct fixture f;
    fixture_open(&f);
    struct sweep *sweep = sweep_make("known", two_labels, 2, three_seeds, 3, "n");
    freeze(f.db, sweep);
    struct report *report = report_of(&f);
    cr_assert_str_eq(report->answer,
                     "No answer yet: no run of the baseline has finished (0 of 6 runs have a final value).");
    report_free(report);
    sweep_release(sweep);
    fixture_remove(&f);
}

/* The fourth step's loss is not finite: three updates were made, of 1024 tokens each. */
Test(report, a_step_that_diverged_is_no_update_wherever_it_is_shown)
{
    struct fixture f;
    struct error err;
    int64_t steps;
    fixture_open(&f);
    struct sweep *sweep = sweep_make("known", two_labels, 2, three_seeds, 1, "n");
    freeze(f.db, sweep);
    run_through(f.db, sweep->runs[0].key, 2, RUN_DIVERGED);
    cr_assert(database_flush(f.db, 1, &err));
    ROWS(database_handle(f.db), "select step, tokens from runs where state = 'diverged'", "3|3072\n");
    cr_assert_eq(database_run_state(database_handle(f.db), sweep->runs[0].key, &steps, NULL, 0), RUN_DIVERGED);
    cr_assert_eq(steps, 3);
    struct report *report = report_of(&f);
    char *markdown = markdown_of(report);
    cr_assert(strstr(markdown, "3 of 4"), "%s", strstr(markdown, "## Provenance"));
    cr_assert(strstr(markdown, "2 runs, 3,072 tokens"), "%s", strstr(markdown, "## Provenance"));
    free(markdown);
    report_free(report);
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(report, the_commands_are_those_that_made_the_runs)
{
    static const double differences[][3] = {{0, 0, 0}, {-0.10, -0.12, -0.11}};
    struct fixture f;
    struct sweep *sweep = sweep_run(&f, two_labels, 2, differences);
    struct report *report = report_of(&f);
    char *markdown = markdown_of(report);
    cr_assert(strstr(markdown, "```sh\nrunner run experiments/quick.yaml\nrunner table known\n"), "%s",
              strstr(markdown, "## Again"));
    free(markdown);
    memory_free(report->choices);
    report->choices = memory_copy_text("[]\n[\"--set\", \"a=1\", \"--only\", \"```; rm x\"]\nno words\n");
    report->database = "my x.db";
    report->changed = true;
    markdown = markdown_of(report);
    cr_assert(strstr(markdown, "````sh\n# the file was changed since: as it is now, it makes other runs\n"
                               "runner run experiments/quick.yaml --db 'my x.db'\n"
                               "runner run experiments/quick.yaml --set a=1 --only '```; rm x' --db 'my x.db'\n"
                               "runner run experiments/quick.yaml --db 'my x.db'\n"
                               "runner table known --db 'my x.db'\n"),
              "%s", strstr(markdown, "## Again"));
    free(markdown);
    report_free(report);
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(report, what_others_wrote_is_text_on_both_pages)
{
    static const char *const labels[] = {"baseline", "<script>alert('x')</script> ![x](http://y) **b**"};
    static const double differences[][3] = {{0, 0, 0}, {-0.10, -0.12, -0.11}};
    struct fixture f;
    struct sweep *sweep = sweep_run(&f, labels, 2, differences);
    struct report *report = report_of(&f);
    memory_free(report->question);
    report->question = memory_copy_text("Is </title><img src=http://evil.invalid> \"it\"?\nAnd `more`.");
    memory_free(report->path);
    report->path = memory_copy_text("it's ```a```.yaml");
    char *html = html_of(report), *markdown = markdown_of(report);
    cr_assert_not(strstr(html, "<script>alert"));
    cr_assert_not(strstr(html, "<img src=http"));
    cr_assert(strstr(html, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"));
    cr_assert(strstr(html, "runner run &#39;it&#39;\\&#39;&#39;s ```a```.yaml&#39;\n"), "%s",
              strstr(html, "runner run"));
    cr_assert_not(strstr(markdown, "<script>"));
    cr_assert_not(strstr(markdown, "![x]("));
    cr_assert(strstr(markdown, "````sh\nrunner run 'it'\\''s ```a```.yaml'\n"), "%s", strstr(markdown, "## Again"));
    free(html);
    free(markdown);
    report_free(report);
    sweep_release(sweep);
    fixture_remove(&f);
}

Test(report, the_page_has_landmarks_headings_and_what_sorts_and_asks_for_nothing)
{
    static const double differences[][3] = {{0, 0, 0}, {-0.10, -0.12, -0.11}};
    struct fixture f;
    struct sweep *sweep = sweep_run(&f, two_labels, 2, differences);
    struct report *report = report_of(&f);
    char *html = html_of(report), *again = html_of(report);
    static const char *const wanted[] = {"<html lang=\"en\">",
                                         "<main>",
                                         "<h1>known</h1>",
                                         "default-src 'none'",
                                         "prefers-color-scheme:dark",
                                         "@media print",
                                         "<th scope=\"col\"><button type=\"button\">variant</button></th>",
                                         "<th scope=\"row\"><bdi>rmsnorm</bdi></th>",
                                         "Does it matter?",
                                         "c0ffee",
                                         "70ce",
                                         "abc123",
                                         "Zen 3 (v3)",
                                         "runner report known",
                                         "<bdi>-0.1100</bdi>",
                                         "There are no figures"};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        cr_assert(strstr(html, wanted[i]), "no %s", wanted[i]);
    cr_assert_not(strstr(html, "http://") || strstr(html, "https://"));
    cr_assert_str_eq(html, again);
    free(html);
    free(again);
    report_free(report);
    sweep_release(sweep);
    fixture_remove(&f);
}
