/* Which files a written path means: a file, every file under a folder, or what a glob matches; sorted by bytes. */
#ifndef RUNNER_FILE_LIST_H
#define RUNNER_FILE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/error.h"

struct file_list {
    struct file_entry {
        char *path;
        bool searched; /* found in a folder or by a glob, not named itself */
        dev_t device;
        ino_t inode;
    } * entries;
    size_t count, capacity;
    struct folder_id {
        dev_t device;
        ino_t inode;
    } * folders; /* walked so far: each is entered once, so loops of links end */
    size_t folder_count, folder_capacity;
    size_t hidden;   /* names starting with a dot, left out while walking */
    size_t repeated; /* links to folders already walked, left out */
};

/* Adds what `path` means; a relative one is taken from `folder` ("" or NULL: the working folder). False and err when
 * nothing matches, or something there is no readable file. */
bool file_list_add(struct file_list *list, const char *folder, const char *path, struct error *err);
void file_list_release(struct file_list *list); /* takes a zeroed one */

#endif
