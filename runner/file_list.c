/* Paths, folders and globs to files. The system's own order of names is never used. */
#include "runner/file_list.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/memory.h"
#include "runner/file.h"

static bool path_add(struct file_list *list, const char *path, bool searched, struct error *err);

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int entry_compare(const void *a, const void *b)
{
    return strcmp(((const struct file_entry *)a)->path, ((const struct file_entry *)b)->path);
}

static void entry_add(struct file_list *list, const char *path, bool searched, const struct stat *status)
{
    if (list->count == list->capacity) {
        size_t old = list->capacity * sizeof *list->entries;
        list->capacity = list->capacity ? 2 * list->capacity : 16;
        list->entries = memory_grow(list->entries, old, list->capacity, sizeof *list->entries);
    }
    list->entries[list->count++] =
        (struct file_entry){memory_copy_text(path), searched, status->st_dev, status->st_ino};
}

/* False when the folder has been walked before. */
static bool folder_enter(struct file_list *list, const struct stat *status)
{
    for (size_t i = 0; i < list->folder_count; i++)
        if (list->folders[i].device == status->st_dev && list->folders[i].inode == status->st_ino)
            return false;
    if (list->folder_count == list->folder_capacity) {
        size_t old = list->folder_capacity * sizeof *list->folders;
        list->folder_capacity = list->folder_capacity ? 2 * list->folder_capacity : 16;
        list->folders = memory_grow(list->folders, old, list->folder_capacity, sizeof *list->folders);
    }
    list->folders[list->folder_count++] = (struct folder_id){status->st_dev, status->st_ino};
    return true;
}

/* Names in a folder without the hidden ones, sorted. Owner of names and each of them: caller. */
static bool folder_names(const char *path, char ***names, size_t *count, size_t *hidden, struct error *err)
{
    DIR *folder = opendir(path);
    if (!folder)
        return error_set(err, "cannot read folder '%s': %s", path, strerror(errno));
    size_t capacity = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (!entry)
            break;
        if (entry->d_name[0] == '.') {
            *hidden += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
            continue;
        }
        if (*count == capacity) {
            size_t old = capacity * sizeof **names;
            capacity = capacity ? 2 * capacity : 64;
            *names = memory_grow(*names, old, capacity, sizeof **names);
        }
        (*names)[(*count)++] = memory_copy_text(entry->d_name);
    }
    int reason = errno;
    closedir(folder);
    if (reason)
        return error_set(err, "cannot read folder '%s': %s", path, strerror(reason));
    if (*count)
        qsort(*names, *count, sizeof **names, name_compare);
    return true;
}

static bool folder_walk(struct file_list *list, const char *path, const struct stat *status, struct error *err)
{
    if (!folder_enter(list, status)) {
        list->repeated++;
        return true;
    }
    char **names = NULL;
    size_t count = 0;
    bool good = folder_names(path, &names, &count, &list->hidden, err);
    for (size_t i = 0; i < count; i++) {
        char *inner = path_join(path, names[i]);
        good = good && path_add(list, inner, true, err);
        memory_free(inner);
        memory_free(names[i]);
    }
    memory_free(names);
    return good;
}

static bool path_add(struct file_list *list, const char *path, bool searched, struct error *err)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return error_set(err, "cannot read '%s': %s", path, strerror(errno));
    if (S_ISDIR(status.st_mode))
        return folder_walk(list, path, &status, err);
    if (!S_ISREG(status.st_mode))
        return error_set(err, "cannot read '%s': it is a %s, not a file", path, file_kind_name(status.st_mode));
    entry_add(list, path, searched, &status);
    return true;
}

/* The folder's own name is not a pattern: its special characters are quoted. */
static char *glob_pattern(const char *folder, const char *path)
{
    if (path[0] == '/' || !folder || !folder[0])
        return memory_copy_text(path);
    size_t length = strlen(folder), used = 0;
    char *quoted = memory_alloc(2 * length + 1, 1);
    for (size_t i = 0; i < length; i++) {
        if (strchr("*?[]\\", folder[i]))
            quoted[used++] = '\\';
        quoted[used++] = folder[i];
    }
    char *pattern = path_join(quoted, path);
    memory_free(quoted);
    return pattern;
}

static bool glob_add(struct file_list *list, const char *folder, const char *path, struct error *err)
{
    if (strstr(path, "**"))
        return error_set(err, "'**' in '%s' is not understood; name the folder instead, it is read with all below it",
                         path);
    glob_t found = {0};
    char *pattern = glob_pattern(folder, path);
    int result = glob(pattern, GLOB_ERR | GLOB_NOSORT, NULL, &found);
    int reason = errno;
    bool good = result == 0;
    if (result == GLOB_NOMATCH)
        error_set(err, "no file matches '%s'", pattern);
    else if (!good)
        error_set(err, "cannot look for '%s': %s", pattern, result == GLOB_NOSPACE ? "too many" : strerror(reason));
    for (size_t i = 0; good && i < found.gl_pathc; i++)
        good = path_add(list, found.gl_pathv[i], true, err);
    globfree(&found);
    memory_free(pattern);
    return good;
}

bool file_list_add(struct file_list *list, const char *folder, const char *path, struct error *err)
{
    if (path[0] == 0)
        return error_set(err, "an empty path names no file");
    size_t before = list->count;
    char *joined = path_join(folder, path);
    struct stat status;
    /* A file that has such a name is meant itself. */
    bool is_glob = strpbrk(path, "*?[") && lstat(joined, &status) != 0;
    bool good = is_glob ? glob_add(list, folder, path, err) : path_add(list, joined, false, err);
    if (good && list->count > before)
        qsort(list->entries + before, list->count - before, sizeof *list->entries, entry_compare);
    memory_free(joined);
    return good;
}

void file_list_release(struct file_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        memory_free(list->entries[i].path);
    memory_free(list->entries);
    memory_free(list->folders);
    memset(list, 0, sizeof *list);
}
