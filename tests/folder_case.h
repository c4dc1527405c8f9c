/* A folder of a test's own, and files in it. Gone at the end, whatever it holds. */
#ifndef TESTS_FOLDER_CASE_H
#define TESTS_FOLDER_CASE_H

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/file.h"

static char folder[64];

static inline void folder_open(void)
{
    snprintf(folder, sizeof folder, "/tmp/runner-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static inline int entry_remove(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status, (void)kind, (void)where;
    return remove(path);
}

static inline void folder_remove(const char *path)
{
    cr_assert_eq(nftw(path, entry_remove, 8, FTW_DEPTH | FTW_PHYS), 0, "'%s' is left", path);
}

static inline void folder_close(void)
{
    folder_remove(folder);
}

/* name may have folders in front. */
static inline void bytes_put(const char *name, const char *bytes, size_t size)
{
    char *path = path_join(folder, name), *above = path_folder(path);
    struct error err = {""};
    cr_assert(folder_make(above, &err) && file_write(path, bytes, size, &err), "%s", err.text);
    memory_free(path);
    memory_free(above);
}

static inline void file_put(const char *name, const char *text)
{
    bytes_put(name, text, strlen(text));
}

#endif
