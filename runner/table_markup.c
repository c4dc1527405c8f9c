/* Tables in marked-up languages: Markdown, HTML, LaTeX, each with its own escapes. */
#include <string.h>

#include "core/memory.h"
#include "runner/layout.h"
#include "runner/table_cells.h"

/* ---- Markdown ---- */

static const char *md_escape(char c)
{
    switch (c) {
    case '|': return "\\|";
    case '\\': return "\\\\";
    case '*': return "\\*";
    case '_': return "\\_";
    case '`': return "\\`";
    case '[': return "\\[";
    case ']': return "\\]";
    case '~': return "\\~";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '&': return "&amp;";
    case '#': return "\\#";
    case '$': return "\\$";
    default: return NULL;
    }
}

void markdown_put(const char *text, FILE *out)
{
    layout_put(text, strlen(text), md_escape, out);
}

void table_write_md(const struct table *table, FILE *out)
{
    for (size_t i = 0; i < table->captions.count; i++) {
        markdown_put(table->captions.texts[i], out);
        fputs("\n\n", out);
    }
    for (size_t c = 0; c < table->column_count; c++) {
        fputs("| ", out);
        markdown_put(table->columns[c].heading, out);
        fputc(' ', out);
    }
    fputs("|\n", out);
    for (size_t c = 0; c < table->column_count; c++)
        fputs(table->columns[c].align == TABLE_RIGHT ? "|---:" : "|---", out);
    fputs("|\n", out);
    for (size_t r = 0; r < table_row_count(table); r++) {
        for (size_t c = 0; c < table->column_count; c++) {
            fputs("| ", out);
            markdown_put(cell_at(table, r, c)->shown, out);
            fputc(' ', out);
        }
        fputs("|\n", out);
    }
    for (size_t i = 0; i < table->notes.count; i++) {
        fputc('\n', out);
        markdown_put(table->notes.texts[i], out);
        fputc('\n', out);
    }
}

/* ---- HTML ---- */

static const char *html_escape(char c)
{
    switch (c) {
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '&': return "&amp;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

void html_put(const char *text, FILE *out)
{
    layout_put(text, strlen(text), html_escape, out);
}

/* Names may come from files in any script: bdi keeps their direction to themselves. */
static void html_cell(const struct cell *cell, enum table_align align, bool names_row, FILE *out)
{
    const char *tag = names_row ? "th scope=\"row\"" : align == TABLE_RIGHT ? "td class=\"number\"" : "td";
    fprintf(out, "<%s><bdi>", tag);
    html_put(cell->shown, out);
    fprintf(out, "</bdi></%s>", names_row ? "th" : "td");
}

/* A setting's name may be broken after its dot and its underscores. */
static void heading_html(const char *text, FILE *out)
{
    char *copy = memory_copy_text(text), *part = copy;
    for (size_t length; strchr(text, '.') && (length = strcspn(part, "._")) && part[length]; part += length + 1) {
        char mark[2] = {part[length], 0};
        part[length] = 0;
        html_put(part, out);
        fprintf(out, "%s<wbr>", mark);
    }
    html_put(part, out);
    memory_free(copy);
}

void table_write_html(const struct table *table, FILE *out)
{
    fputs("<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"", out);
    html_put(table->captions.count ? table->captions.texts[0] : "table", out);
    fputs("\">\n<table>\n<caption>", out);
    for (size_t i = 0; i < table->captions.count; i++) {
        fputs(i ? " " : "", out);
        html_put(table->captions.texts[i], out);
    }
    fputs("</caption>\n<thead><tr>", out);
    for (size_t c = 0; c < table->column_count; c++) {
        fprintf(out, "<th scope=\"col\"%s><button type=\"button\">",
                table->columns[c].align == TABLE_RIGHT ? " class=\"number\"" : "");
        heading_html(table->columns[c].heading, out);
        fputs("</button></th>", out);
    }
    fputs("</tr></thead>\n<tbody>\n", out);
    for (size_t r = 0; r < table_row_count(table); r++) {
        fputs("<tr>", out);
        for (size_t c = 0; c < table->column_count; c++)
            html_cell(cell_at(table, r, c), table->columns[c].align, c == 0, out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody>\n</table>\n</div>\n", out);
    for (size_t i = 0; i < table->notes.count; i++) {
        fputs("<p class=\"note\">", out);
        html_put(table->notes.texts[i], out);
        fputs("</p>\n", out);
    }
}

/* ---- LaTeX ---- */

static const char *latex_escape(char c)
{
    switch (c) {
    case '\\': return "\\textbackslash{}";
    case '&': return "\\&";
    case '%': return "\\%";
    case '$': return "\\$";
    case '#': return "\\#";
    case '_': return "\\_";
    case '{': return "\\{";
    case '}': return "\\}";
    case '~': return "\\textasciitilde{}";
    case '^': return "\\textasciicircum{}";
    case '<': return "\\textless{}";
    case '>': return "\\textgreater{}";
    case '"': return "\\textquotedbl{}";
    case '`': return "\\textasciigrave{}";
    case '[': return "{[}"; /* after \\ a bracket would be read as a length */
    case ']': return "{]}";
    default: return NULL;
    }
}

/* A hyphen that is the sign of a number becomes a minus. */
static void latex_put(const char *text, FILE *out)
{
    const char *begin = text;
    for (const char *at = text; *at; at++)
        if (*at == '-' && strchr("0123456789", at[1]) && at[1] && (at == text || strchr(" ([", at[-1]))) {
            layout_put(begin, (size_t)(at - begin), latex_escape, out);
            fputs("$-$", out);
            begin = at + 1;
        }
    layout_put(begin, strlen(begin), latex_escape, out);
}

void table_write_latex(const struct table *table, FILE *out)
{
    fputs("\\begin{table}\n", out);
    if (table->captions.count) {
        fputs("\\caption{", out);
        for (size_t i = 0; i < table->captions.count; i++) {
            fputs(i ? " " : "", out);
            latex_put(table->captions.texts[i], out);
        }
        fputs("}\n", out);
    }
    fputs("\\begin{tabular}{", out);
    for (size_t c = 0; c < table->column_count; c++)
        fputc(table->columns[c].align == TABLE_RIGHT ? 'r' : 'l', out);
    fputs("}\n\\hline\n", out);
    for (size_t c = 0; c < table->column_count; c++) {
        fputs(c ? " & " : "", out);
        latex_put(table->columns[c].heading, out);
    }
    fputs(" \\\\\n\\hline\n", out);
    for (size_t r = 0; r < table_row_count(table); r++) {
        for (size_t c = 0; c < table->column_count; c++) {
            fputs(c ? " & " : "", out);
            latex_put(cell_at(table, r, c)->shown, out);
        }
        fputs(" \\\\\n", out);
    }
    fputs("\\hline\n\\end{tabular}\n", out);
    for (size_t i = 0; i < table->notes.count; i++) {
        fputs("\n\\par\\footnotesize ", out);
        latex_put(table->notes.texts[i], out);
        fputc('\n', out);
    }
    fputs("\\end{table}\n", out);
}
