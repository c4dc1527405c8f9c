/* Runs gnuplot as a child process without a shell. */
#include "runner/gnuplot.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "core/memory.h"
#include "runner/child.h"
#include "runner/file.h"

/* gnuplot's own words on one line, without the caret lines it points with. */
static void output_squeeze(struct child_output *out)
{
    size_t used = 0;
    bool gap = false;
    for (size_t i = 0; i < out->used && used < 400; i++) {
        unsigned char byte = (unsigned char)out->text[i];
        if (byte <= ' ' || byte == '^' || byte == 0x7f) {
            gap = used > 0;
            continue;
        }
        if (gap)
            out->text[used++] = ' ';
        gap = false;
        out->text[used++] = (char)byte;
    }
    out->text[used] = 0;
    out->used = used;
}

/* Runs it and says in words what became of it, with what it said. */
static enum gnuplot_result run(const char *folder, char *const argv[], double timeout, struct child_output *out,
                               struct error *err)
{
    struct error problem = {""};
    int status;
    enum child_result ended = child_run(folder, argv, timeout, out, &status, &problem);
    output_squeeze(out);
    const char *said = out->used ? out->text : "nothing";
    if (ended == CHILD_NOT_STARTED) {
        error_set(err, "%s (Debian: apt-get install gnuplot-nox)", problem.text);
        return GNUPLOT_MISSING;
    }
    if (ended == CHILD_HUNG) {
        error_set(err, "%s; it said: %s", problem.text, said);
        return GNUPLOT_HUNG;
    }
    if (status == 0)
        return GNUPLOT_DONE;
    if (WIFSIGNALED(status))
        error_set(err, "gnuplot was killed by signal %d; it said: %s", WTERMSIG(status), said);
    else
        error_set(err, "gnuplot failed with exit code %d; it said: %s", WEXITSTATUS(status), said);
    return GNUPLOT_FAILED;
}

enum gnuplot_result gnuplot_run(const char *folder, const char *setup, const char *script, double timeout,
                                struct error *err)
{
    char program[] = "gnuplot", defaults[] = "-d", command[] = "-e", text[2048] = "";
    char *setup_copy = memory_copy_text(setup), *script_copy = memory_copy_text(script);
    char *argv[] = {program, defaults, command, setup_copy, script_copy, NULL};
    struct child_output out = {.text = text, .size = sizeof text};
    enum gnuplot_result result = run(folder, argv, timeout, &out, err);
    memory_free(setup_copy);
    memory_free(script_copy);
    return result;
}

enum gnuplot_result gnuplot_describe(char *text, size_t size, struct error *err)
{
    char program[] = "gnuplot", defaults[] = "-d", command[] = "-e";
    char question[] = "has(t) = strstrt(GPVAL_TERMINALS, ' '.t.' ') ? ' '.t : ''; "
                      "print gprintf('%.1f', GPVAL_VERSION).' patchlevel '.GPVAL_PATCHLEVEL.':'."
                      "has('pngcairo').has('svg').has('pdfcairo')";
    char *argv[] = {program, defaults, command, question, NULL};
    struct child_output out = {.text = text, .size = size};
    text[0] = 0;
    return run(NULL, argv, 10, &out, err);
}

/* Reads the file's start and end, up to 16 bytes each. */
static bool ends_read(FILE *file, char head[17], char tail[17], long *size)
{
    memset(head, 0, 17);
    memset(tail, 0, 17);
    if (fseek(file, 0, SEEK_END) != 0 || (*size = ftell(file)) < 0)
        return false;
    long span = *size < 16 ? *size : 16;
    rewind(file);
    if (fread(head, 1, (size_t)span, file) != (size_t)span)
        return false;
    return fseek(file, -span, SEEK_END) == 0 && fread(tail, 1, (size_t)span, file) == (size_t)span;
}

/* True when text, without white space at its end, ends with the given ending. */
static bool text_ends_with(const char *text, size_t size, const char *ending)
{
    while (size && (unsigned char)text[size - 1] <= ' ')
        size--;
    size_t wanted = strlen(ending);
    return size >= wanted && memcmp(text + size - wanted, ending, wanted) == 0;
}

bool gnuplot_output_whole(const char *path, const char *extension, struct error *err)
{
    FILE *file = fopen(path, "rbe");
    if (!file)
        return error_set(err, "gnuplot ended without an error but wrote no %s", extension);
    char head[17], tail[17];
    long size = 0;
    bool whole = ends_read(file, head, tail, &size);
    size_t span = size < 16 ? (size_t)size : 16;
    if (whole && strcmp(extension, "png") == 0)
        whole = size > 32 && memcmp(head, "\x89PNG", 4) == 0 && memcmp(tail + 8, "IEND", 4) == 0;
    else if (whole && strcmp(extension, "svg") == 0)
        whole = memcmp(head, "<?xml", 5) == 0 && text_ends_with(tail, span, "</svg>");
    else if (whole && strcmp(extension, "pdf") == 0)
        whole = memcmp(head, "%PDF", 4) == 0 && text_ends_with(tail, span, "%%EOF");
    fclose(file);
    if (size == 0)
        return error_set(err, "gnuplot ended without an error but wrote an empty %s", extension);
    return whole || error_set(err, "gnuplot ended without an error but its %s of %ld bytes is cut short (disk full?)",
                              extension, size);
}

/* "/CreationDate (D:20261130165438+01'00)": the digits, and the zone after them up to the parenthesis. */
static bool stamp_put(char *bytes, size_t size, const char *digits)
{
    static const char key[] = "/CreationDate (D:";
    char *found = memmem(bytes, size, key, sizeof key - 1);
    char *place = found ? found + sizeof key - 1 : NULL;
    if (!place || (size_t)(bytes + size - place) < strlen(digits) + 8)
        return false;
    char *end = memchr(place, ')', 32);
    if (!end || (size_t)(end - place) < strlen(digits))
        return false;
    memcpy(place, digits, strlen(digits));
    for (char *c = place + strlen(digits); c < end; c++)
        if (*c >= '0' && *c <= '9')
            *c = '0';
        else if (*c == '-')
            *c = '+';
    return true;
}

bool gnuplot_pdf_stamp(const char *path, const char *digits, struct error *err)
{
    enum { LARGEST = 1 << 28 };
    char *bytes = NULL;
    size_t size = 0;
    if (!file_read(path, LARGEST, &bytes, &size, err))
        return false;
    bool ok = stamp_put(bytes, size, digits) ? file_write(path, bytes, size, err)
                                             : error_set(err, "gnuplot's pdf has no CreationDate to set");
    memory_free(bytes);
    return ok;
}
