/* Shadow folders: symbolic links in a temporary folder. */
#include "runner/shadow.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/file.h"

static void links_make(const char *shadow, const char *cache_folder)
{
    char *real_path = realpath(cache_folder, NULL);
    DIR *folder = real_path ? opendir(real_path) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        char *target = path_join(real_path, entry->d_name), *link = path_join(shadow, entry->d_name);
        /* A link that cannot be made costs the time of preparing that text again, nothing else. */
        if (symlink(target, link) != 0)
            errno = 0;
        memory_free(target);
        memory_free(link);
    }
    if (folder)
        closedir(folder);
    free(real_path);
}

char *shadow_make(const char *cache_folder, struct error *err)
{
    char *path = folder_temporary("runner", err);
    if (path)
        links_make(path, cache_folder);
    return path;
}

void shadow_remove(char *path)
{
    DIR *folder = path ? opendir(path) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    if (path)
        rmdir(path);
    memory_free(path);
}
