/* Finding final weights beside databases, and bringing them together. */
#include "runner/weights.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/file.h"

enum { COPY_BYTES = 1 << 20 };

/* "<folder of the database>/<place>/<key>/final.safetensors". Owner: caller, memory_free(). */
static char *path_at(const char *database, const char *place, const char *key)
{
    char name[128];
    snprintf(name, sizeof name, "%s/%.64s/final.safetensors", place, key);
    char *folder = path_folder(database), *path = path_join(folder, name);
    memory_free(folder);
    return path;
}

/* A file that cannot be reached for another reason is there: whoever opens it hears why. */
static bool is_there(const char *path)
{
    return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

char *weights_path(const char *database, const char *key, bool *there)
{
    char *path = path_at(database, "checkpoints", key), *shard = path_at(database, "shards", key);
    *there = is_there(path);
    if (!*there && is_there(shard)) {
        memory_free(path);
        *there = true;
        return shard;
    }
    memory_free(shard);
    return path;
}

static bool bytes_copy(int fd, const char *from, struct file_writer *writer, struct error *err)
{
    char *bytes = memory_alloc(COPY_BYTES, 1);
    ssize_t got = 0;
    bool ok = true;
    while (ok && (got = read(fd, bytes, COPY_BYTES)) > 0)
        ok = file_writer_add(writer, bytes, (size_t)got, err);
    if (ok && got < 0)
        ok = error_set(err, "cannot read '%s': %s", from, strerror(errno));
    memory_free(bytes);
    return ok;
}

static bool file_copy(const char *from, const char *to, struct error *err)
{
    struct stat status;
    struct file_writer writer = {.stream = NULL};
    int fd = file_open_regular(from, &status, err);
    bool ok = fd >= 0 && file_writer_open(&writer, to, err) && bytes_copy(fd, from, &writer, err) &&
              file_writer_commit(&writer, err);
    file_writer_abandon(&writer);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Weights are never written to once they have their name, so that two names of one file are as good as two files. */
static bool one_bring(const char *from, const char *to, struct error *err)
{
    char *folder = path_folder(to);
    bool ok = folder_make(folder, err) && (link(from, to) == 0 || errno == EEXIST || file_copy(from, to, err)) &&
              folder_sync(folder, err);
    memory_free(folder);
    return ok;
}

bool weights_bring(const char *into, const char *const *from, size_t from_count, const char *key, bool *found,
                   struct error *err)
{
    char *to = weights_path(into, key, found);
    bool ok = true;
    for (size_t i = 0; ok && !*found && i < from_count; i++) {
        char *path = weights_path(from[i], key, found);
        ok = !*found || one_bring(path, to, err);
        memory_free(path);
    }
    memory_free(to);
    return ok;
}
