/* Whole-or-absent files. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/output.h"

static char folder[64];

static void folder_begin(void)
{
    snprintf(folder, sizeof folder, "/tmp/test-output-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void folder_end(void)
{
    char file[128];
    static const char *const names[] = {"data", ".data.tmp", "a/b", "a", "plain", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(file, sizeof file, "%s/%s", folder, names[i]);
        remove(file);
    }
}

TestSuite(output, .init = folder_begin, .fini = folder_end);

static const char *inside(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_text(const char *path, const char *text)
{
    struct output out;
    struct error err = {0};
    cr_assert(output_open(&out, path, &err) && output_write(&out, text, strlen(text), &err) &&
                  output_commit(&out, &err),
              "%s", err.text);
    output_discard(&out);
}

static void read_text(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
}

Test(output, the_old_file_stays_until_the_new_one_is_committed)
{
    char path[128], text[32];
    snprintf(path, sizeof path, "%s", inside("data"));
    write_text(path, "old");
    struct output out;
    struct error err = {0};
    cr_assert(output_open(&out, path, &err) && output_write(&out, "newer", 5, &err));
    read_text(path, text, sizeof text);
    cr_assert_str_eq(text, "old");
    cr_assert(output_commit(&out, &err));
    read_text(path, text, sizeof text);
    cr_assert_str_eq(text, "newer");
}

Test(output, a_discarded_file_leaves_nothing)
{
    struct output out;
    cr_assert(output_open(&out, inside("data"), NULL));
    cr_assert(output_is_temporary(strrchr(out.temporary, '/') + 1));
    cr_assert_eq(access(out.temporary, F_OK), 0);
    output_discard(&out);
    cr_assert_neq(access(out.temporary, F_OK), 0);
    cr_assert_neq(access(out.path, F_OK), 0);
}

Test(output, a_full_disk_is_named_and_the_old_file_is_kept)
{
    char path[128], text[32];
    snprintf(path, sizeof path, "%s", inside("data"));
    write_text(path, "old");
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {.rlim_cur = 4, .rlim_max = RLIM_INFINITY}, before;
    getrlimit(RLIMIT_FSIZE, &before);
    limit.rlim_max = before.rlim_max;
    struct output out;
    struct error err = {0};
    cr_assert(output_open(&out, path, &err));
    setrlimit(RLIMIT_FSIZE, &limit);
    bool written = output_write(&out, "too long", 8, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    output_discard(&out);
    cr_assert_not(written);
    cr_assert_not_null(strstr(err.text, "data\": File too large"), "%s", err.text);
    read_text(path, text, sizeof text);
    cr_assert_str_eq(text, "old");
}

Test(output, a_folder_is_made_with_its_parents_and_a_file_in_the_way_is_named)
{
    struct error err = {0};
    cr_assert(folder_make(inside("a/b"), &err), "%s", err.text);
    cr_assert(folder_make(inside("a/b"), &err), "%s", err.text);
    struct stat status;
    cr_assert_eq(stat(inside("a/b"), &status), 0);
    cr_assert(S_ISDIR(status.st_mode));
    write_text(inside("plain"), "x");
    cr_assert_not(folder_make(inside("plain"), &err));
    cr_assert_not_null(strstr(err.text, "plain\": a file of that name exists"), "%s", err.text);
}
