/* Files read whole with a limit, and files that appear whole or not at all.
 *
 *   struct file_writer writer;
 *   if (!file_writer_open(&writer, path, &err)) ...
 *   fprintf(writer.stream, ...);                    // or file_writer_add(), which reports at once
 *   if (!file_writer_commit(&writer, &err)) ...     // every write checked, fsync, rename, fsync of the folder
 *
 * Messages name the path and the system's reason. */
#ifndef RUNNER_FILE_H
#define RUNNER_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

#include "core/error.h"

/* A regular file of at most limit bytes; *bytes gets a final 0 that *size does not count. Folders, FIFOs, sockets and
 * devices are refused by what they are, without waiting on them. *bytes: caller's, memory_free(). */
bool file_read(const char *path, size_t limit, char **bytes, size_t *size, struct error *err);

/* Opened for reading without ever blocking, and known to be a regular file; -1 and err otherwise. */
int file_open_regular(const char *path, struct stat *status, struct error *err);

/* "folder", "FIFO", "socket", "device", "file". */
const char *file_kind_name(mode_t mode);

struct file_writer {
    FILE *stream;
    char *path, *temporary; /* private */
};

/* The folder must exist. What is there already stays as it is until the commit; anything but a regular file there is
 * refused. */
bool file_writer_open(struct file_writer *writer, const char *path, struct error *err);
bool file_writer_add(struct file_writer *writer, const void *bytes, size_t size, struct error *err);
/* On failure the temporary file is gone and the old one untouched. The writer is released either way. */
bool file_writer_commit(struct file_writer *writer, struct error *err);
/* Gives up; also after a commit or a failed open, and on a zeroed writer. */
void file_writer_abandon(struct file_writer *writer);

/* Open, add, commit. */
bool file_write(const char *path, const void *bytes, size_t size, struct error *err);

/* Makes the folder and those above it. Fine when it exists; an error names what is in the way. */
bool folder_make(const char *path, struct error *err);
/* How many folders that would make; and removes as many again, from path upwards, as long as they are empty. */
size_t folder_missing(const char *path);
void folder_unmake(const char *path, size_t count);
bool folder_sync(const char *path, struct error *err);

/* A new folder "NAME-XXXXXX" in TMPDIR, or in /tmp when that names no absolute path. NULL and err. Owner: caller,
 * memory_free(), who removes the folder too. */
char *folder_temporary(const char *name, struct error *err);

/* Removes what a killed file_writer left in the folder longer than `seconds` ago; with 0 all of it, whatever a file
 * system's clock said. Never fails: it is tidying. */
void folder_remove_stale(const char *path, long seconds);

/* "a/b" and "c" to "a/b/c"; an absolute name, or an empty folder, gives the name alone. Owner: caller, memory_free().
 */
char *path_join(const char *folder, const char *name);
/* "a/b/c" to "a/b", "c" to ".", "/c" to "/". Owner: caller, memory_free(). */
char *path_folder(const char *path);

/* A file name from any text: letters, digits, '.', '_', '-' stay, each other run becomes one '-'; never empty, never
 * starting with '.' or '-', at most limit (16 or more) bytes. Texts that had to be changed get 8 digits of their hash
 * at the end, so that different texts have different names. Owner: caller, memory_free(). */
char *file_name_make(const char *text, size_t limit);

#endif
