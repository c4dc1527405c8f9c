/* Whole-or-absent files: temporary name, checked writes, fsync, rename, fsync of the folder. */
#include "runner/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OUTPUT_WRITE_MOST = 1 << 30 };

/* Length of the part of path up to and with its last slash. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

bool output_open(struct output *output, const char *path, struct error *err)
{
    output->fd = -1;
    size_t folder = folder_length(path);
    int length = snprintf(output->path, sizeof output->path, "%s", path);
    int longer = snprintf(output->temporary, sizeof output->temporary, "%.*s.%s.tmp", (int)folder, path, path + folder);
    if (length < 0 || longer < 0 || (size_t)longer >= sizeof output->temporary)
        return error_set(err, "cannot write \"%.200s...\": the path is longer than %zu bytes", path,
                         sizeof output->temporary - 1);
    output->fd = open(output->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (output->fd < 0)
        return error_set(err, "cannot write \"%s\": %s", output->temporary, strerror(errno));
    return true;
}

bool output_write(struct output *output, const void *bytes, size_t size, struct error *err)
{
    const char *next = bytes;
    while (size) {
        ssize_t done = write(output->fd, next, size < OUTPUT_WRITE_MOST ? size : OUTPUT_WRITE_MOST);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return error_set(err, "cannot write \"%s\": %s", output->path, strerror(done ? errno : ENOSPC));
        next += done;
        size -= (size_t)done;
    }
    return true;
}

static bool folder_sync(const char *path)
{
    char folder[4096];
    size_t length = folder_length(path);
    snprintf(folder, sizeof folder, "%.*s", length ? (int)length : 1, length ? path : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    /* Some network file systems refuse to sync a folder; the rename has been made all the same. */
    bool ok = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
    return close(fd) == 0 && ok;
}

bool output_commit(struct output *output, struct error *err)
{
    int reason = fsync(output->fd) == 0 ? 0 : errno;
    if (close(output->fd) != 0 && !reason)
        reason = errno;
    output->fd = -1;
    if (reason) {
        unlink(output->temporary);
        return error_set(err, "cannot write \"%s\": %s", output->path, strerror(reason));
    }
    if (rename(output->temporary, output->path) != 0) {
        reason = errno;
        unlink(output->temporary);
        return error_set(err, "cannot put \"%s\" in place: %s", output->path, strerror(reason));
    }
    if (!folder_sync(output->path))
        return error_set(err, "cannot make the folder of \"%s\" durable: %s", output->path, strerror(errno));
    return true;
}

void output_discard(struct output *output)
{
    if (output->fd < 0)
        return;
    close(output->fd);
    output->fd = -1;
    unlink(output->temporary);
}

bool output_is_temporary(const char *name)
{
    size_t length = strlen(name);
    return name[0] == '.' && length > 5 && strcmp(name + length - 4, ".tmp") == 0;
}

static bool folder_make_one(const char *path, struct error *err)
{
    if (mkdir(path, 0777) == 0)
        return true;
    int reason = errno;
    struct stat status;
    if (stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            return true;
        return error_set(err, "cannot make folder \"%s\": a file of that name exists", path);
    }
    return error_set(err, "cannot make folder \"%s\": %s", path, strerror(reason));
}

bool folder_make(const char *path, struct error *err)
{
    char part[4096];
    size_t length = strlen(path);
    if (length >= sizeof part)
        return error_set(err, "cannot make folder \"%.200s...\": the path is longer than %zu bytes", path,
                         sizeof part - 1);
    memcpy(part, path, length + 1);
    for (size_t i = 1; i < length; i++) {
        if (part[i] != '/')
            continue;
        part[i] = 0;
        if (!folder_make_one(part, err))
            return false;
        part[i] = '/';
    }
    return folder_make_one(part, err);
}
