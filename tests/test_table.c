/* The table writer, format by format. */
#include "runner/table.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "runner/layout.h"

static struct table *sample_table(const char *label)
{
    struct table *table = table_create();
    table_column(table, "variant", TABLE_LEFT);
    table_column(table, "mean", TABLE_RIGHT);
    table_column(table, "steps", TABLE_RIGHT);
    table_column(table, "verdict", TABLE_LEFT);
    table_text(table, "baseline");
    table_number(table, 2.12, "%.4f");
    table_integer(table, 1200);
    table_absent(table, "-");
    table_text(table, label);
    table_number(table, NAN, "%.4f");
    table_shown(table, 7, "seven");
    table_textf(table, "%d of %d", 2, 3);
    table_caption(table, "Loss at last step");
    table_note(table, "[1] a note");
    return table;
}

static void written(const char *label, enum table_format format, int width, const char *want)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct table *table = sample_table(label);
    table_write(table, format, width, out);
    table_free(table);
    fclose(out);
    cr_assert(strcmp(text, want) == 0, "got:\n%s\nexpected:\n%s", text, want);
    free(text);
}

Test(table, text_is_aligned)
{
    written("rmsnorm", TABLE_TEXT, 100,
            "Loss at last step\n"
            "variant     mean  steps  verdict\n"
            "--------------------------------\n"
            "baseline  2.1200  1,200  -\n"
            "rmsnorm      n/a  seven  2 of 3\n"
            "[1] a note\n");
}

Test(table, text_counts_characters_and_shows_control_bytes)
{
    written("\xc3\xa9t\xc3\xa9\x1b[1m\xff", TABLE_TEXT, 0,
            "Loss at last step\n"
            "variant           mean  steps  verdict\n"
            "--------------------------------------\n"
            "baseline        2.1200  1,200  -\n"
            "\xc3\xa9t\xc3\xa9\\x1B[1m\\xFF     n/a  seven  2 of 3\n"
            "[1] a note\n");
    cr_assert_eq(layout_columns("\xe4\xb8\xad"), 2);
}

Test(table, the_last_column_and_the_notes_wrap_at_the_width)
{
    struct table *table = table_create();
    table_column(table, "name", TABLE_LEFT);
    table_column(table, "doc", TABLE_LEFT);
    table_text(table, "a");
    table_text(table, "one two three four five six seven");
    table_note(table, "[1] one two three four five six");
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    table_write(table, TABLE_TEXT, 26, out);
    fclose(out);
    cr_assert_str_eq(text, "name  doc\n"
                           "--------------------------\n"
                           "a     one two three four\n"
                           "      five six seven\n"
                           "[1] one two three four\n"
                           "    five six\n");
    free(text);
    table_free(table);
}

Test(table, markdown_escapes_what_would_break_a_cell)
{
    written("a|b_c`d<e>", TABLE_MD, 0,
            "Loss at last step\n\n"
            "| variant | mean | steps | verdict |\n"
            "|---|---:|---:|---|\n"
            "| baseline | 2.1200 | 1,200 | - |\n"
            "| a\\|b\\_c\\`d&lt;e&gt; | n/a | seven | 2 of 3 |\n"
            "\n\\[1\\] a note\n");
}

Test(table, csv_has_values_not_their_looks)
{
    written("say \"a, b\"", TABLE_CSV, 0,
            "variant,mean,steps,verdict\n"
            "baseline,2.12,1200,\n"
            "\"say \"\"a, b\"\"\",,7.0,2 of 3\n");
}

Test(table, json_has_null_for_what_is_absent)
{
    struct table *table = sample_table("rms\"norm");
    json_t *rows = table_json(table);
    char *text = json_format(rows, JSON_LINE, false);
    cr_assert_str_eq(text, "[{\"variant\":\"baseline\",\"mean\":2.12,\"steps\":1200,\"verdict\":null},"
                           "{\"variant\":\"rms\\\"norm\",\"mean\":null,\"steps\":7.0,\"verdict\":\"2 of 3\"}]");
    memory_free(text);
    json_decref(rows);
    table_free(table);
}

Test(table, latex_escapes_every_active_character)
{
    written("a_b & 5% #{}~^\\$[-1, -0.2 gqa-4", TABLE_LATEX, 0,
            "\\begin{table}\n\\caption{Loss at last step}\n\\begin{tabular}{lrrl}\n\\hline\n"
            "variant & mean & steps & verdict \\\\\n\\hline\n"
            "baseline & 2.1200 & 1,200 & - \\\\\n"
            "a\\_b \\& 5\\% \\#\\{\\}\\textasciitilde{}\\textasciicircum{}\\textbackslash{}\\${[}$-$1, $-$0.2 gqa-4 & "
            "n/a & seven & 2 of 3 \\\\\n"
            "\\hline\n\\end{tabular}\n\n\\par\\footnotesize {[}1{]} a note\n\\end{table}\n");
}

Test(table, counts_get_commas)
{
    char buf[32];
    cr_assert_str_eq(format_count(3740160, buf), "3,740,160");
    cr_assert_str_eq(format_count(-541952, buf), "-541,952");
    cr_assert_str_eq(format_count(999, buf), "999");
    cr_assert_str_eq(format_count(0, buf), "0");
}

Test(table, an_unknown_format_is_not_found)
{
    enum table_format format;
    cr_assert(table_format_find("latex", &format));
    cr_assert_eq(format, TABLE_LATEX);
    cr_assert_not(table_format_find("html", &format));
}
