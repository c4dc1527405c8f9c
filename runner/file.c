/* Reading with a limit, atomic durable writing, folders, safe names. */
#include "runner/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/hash.h"

static const char temporary_prefix[] = ".tmp-";

const char *file_kind_name(mode_t mode)
{
    if (S_ISREG(mode))
        return "file";
    if (S_ISDIR(mode))
        return "folder";
    if (S_ISFIFO(mode))
        return "FIFO";
    return S_ISSOCK(mode) ? "socket" : "device";
}

int file_open_regular(const char *path, struct stat *status, struct error *err)
{
    /* A socket cannot even be opened: look first. Look again after opening, in case it changed meanwhile. */
    if (stat(path, status) != 0) {
        error_set(err, "cannot read '%s': %s", path, strerror(errno));
        return -1;
    }
    int fd = S_ISREG(status->st_mode) ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
    if (S_ISREG(status->st_mode) && (fd < 0 || fstat(fd, status) != 0))
        error_set(err, "cannot read '%s': %s", path, strerror(errno));
    else if (!S_ISREG(status->st_mode))
        error_set(err, "cannot read '%s': it is a %s, not a file", path, file_kind_name(status->st_mode));
    else
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* All of fd into a block that grows: the size of stat() is only where it starts. */
static bool descriptor_read(int fd, const char *path, size_t limit, size_t expected, char **bytes, size_t *size,
                            struct error *err)
{
    size_t capacity = (expected < limit ? expected : limit) + 2, used = 0;
    char *block = memory_alloc(capacity, 1);
    for (;;) {
        if (used + 1 == capacity) {
            block = memory_grow(block, used, capacity * 2, 1);
            capacity *= 2;
        }
        ssize_t got = read(fd, block + used, capacity - 1 - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            error_set(err, "cannot read '%s': %s", path, strerror(errno));
            break;
        }
        used += (size_t)got;
        if (used > limit) {
            error_set(err, "cannot read '%s': it is larger than %zu bytes", path, limit);
            break;
        }
        if (got == 0) {
            block[used] = 0;
            *bytes = block;
            *size = used;
            return true;
        }
    }
    memory_free(block);
    return false;
}

bool file_read(const char *path, size_t limit, char **bytes, size_t *size, struct error *err)
{
    struct stat status;
    int fd = file_open_regular(path, &status, err);
    if (fd < 0)
        return false;
    bool good = descriptor_read(fd, path, limit, (size_t)status.st_size, bytes, size, err);
    close(fd);
    return good;
}

bool file_writer_open(struct file_writer *writer, const char *path, struct error *err)
{
    static unsigned counter;
    struct stat status;
    memset(writer, 0, sizeof *writer);
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return error_set(err, "cannot write '%s': a %s of that name is there", path, file_kind_name(status.st_mode));
    char *folder = path_folder(path);
    int fd = -1;
    for (int attempt = 0; attempt < 100 && fd < 0; attempt++) {
        char name[64];
        snprintf(name, sizeof name, "%s%ld-%u", temporary_prefix, (long)getpid(), counter++);
        memory_free(writer->temporary);
        writer->temporary = path_join(folder, name);
        fd = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    writer->stream = fd < 0 ? NULL : fdopen(fd, "wb");
    memory_free(folder);
    if (!writer->stream) {
        error_set(err, "cannot write '%s': %s", path, strerror(errno));
        if (fd >= 0) {
            close(fd);
            unlink(writer->temporary);
        }
        memory_free(writer->temporary);
        writer->temporary = NULL;
        return false;
    }
    writer->path = memory_copy_text(path);
    return true;
}

bool file_writer_add(struct file_writer *writer, const void *bytes, size_t size, struct error *err)
{
    if (size == 0 || fwrite(bytes, 1, size, writer->stream) == size)
        return true;
    return error_set(err, "cannot write '%s': %s", writer->path, strerror(errno));
}

bool file_writer_commit(struct file_writer *writer, struct error *err)
{
    char *folder = path_folder(writer->path);
    errno = 0;
    bool good = fflush(writer->stream) == 0 && !ferror(writer->stream) && fsync(fileno(writer->stream)) == 0;
    int reason = errno;
    if (fclose(writer->stream) != 0 && good) {
        good = false;
        reason = errno;
    }
    writer->stream = NULL;
    if (good && rename(writer->temporary, writer->path) != 0) {
        good = false;
        reason = errno;
    }
    if (!good)
        error_set(err, "cannot write '%s': %s", writer->path, reason ? strerror(reason) : "an earlier write failed");
    else {
        memory_free(writer->temporary); /* it has its name now: nothing to remove */
        writer->temporary = NULL;
        good = folder_sync(folder, err);
    }
    memory_free(folder);
    file_writer_abandon(writer);
    return good;
}

void file_writer_abandon(struct file_writer *writer)
{
    if (writer->stream)
        fclose(writer->stream);
    if (writer->temporary)
        unlink(writer->temporary);
    memory_free(writer->temporary);
    memory_free(writer->path);
    memset(writer, 0, sizeof *writer);
}

bool file_write(const char *path, const void *bytes, size_t size, struct error *err)
{
    struct file_writer writer;
    if (!file_writer_open(&writer, path, err))
        return false;
    if (!file_writer_add(&writer, bytes, size, err)) {
        file_writer_abandon(&writer);
        return false;
    }
    return file_writer_commit(&writer, err);
}

static bool folder_make_one(const char *path, struct error *err)
{
    struct stat status;
    if (mkdir(path, 0777) == 0)
        return true;
    int reason = errno;
    if (stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            return true;
        return error_set(err, "cannot make folder '%s': a %s of that name is there", path,
                         file_kind_name(status.st_mode));
    }
    return error_set(err, "cannot make folder '%s': %s", path, strerror(reason));
}

bool folder_make(const char *path, struct error *err)
{
    char *copy = memory_copy_text(path);
    bool good = true;
    for (char *c = copy + 1; *copy && *c && good; c++)
        if (*c == '/') {
            *c = 0;
            good = folder_make_one(copy, err);
            *c = '/';
        }
    memory_free(copy);
    return good && folder_make_one(path, err);
}

size_t folder_missing(const char *path)
{
    struct stat status;
    size_t count = 0;
    char *at = memory_copy_text(path);
    while (stat(at, &status) != 0 && errno == ENOENT && strcmp(at, ".") != 0 && strcmp(at, "/") != 0) {
        char *parent = path_folder(at);
        memory_free(at);
        at = parent;
        count++;
    }
    memory_free(at);
    return count;
}

void folder_unmake(const char *path, size_t count)
{
    char *at = memory_copy_text(path);
    while (count-- && rmdir(at) == 0) {
        char *parent = path_folder(at);
        memory_free(at);
        at = parent;
    }
    memory_free(at);
}

char *folder_temporary(const char *name, struct error *err)
{
    const char *parent = getenv("TMPDIR");
    char unique[64];
    snprintf(unique, sizeof unique, "%s-XXXXXX", name);
    char *path = path_join(parent && *parent == '/' ? parent : "/tmp", unique);
    if (mkdtemp(path))
        return path;
    error_set(err, "cannot make a temporary folder '%s': %s", path, strerror(errno));
    memory_free(path);
    return NULL;
}

bool folder_sync(const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Some file systems have no fsync of folders and say EINVAL: what they do is all there is. */
    bool good = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    if (!good)
        error_set(err, "cannot make folder '%s' durable: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return good;
}

void folder_remove_stale(const char *path, long seconds)
{
    DIR *folder = opendir(path);
    if (!folder)
        return;
    time_t now = time(NULL);
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct stat status;
        if (strncmp(entry->d_name, temporary_prefix, sizeof temporary_prefix - 1) == 0 &&
            fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
            (seconds == 0 || now - status.st_mtime >= seconds))
            unlinkat(dirfd(folder), entry->d_name, 0);
    }
    closedir(folder);
}

char *path_join(const char *folder, const char *name)
{
    if (name[0] == '/' || !folder || folder[0] == 0)
        return memory_copy_text(name);
    size_t length = strlen(folder);
    const char *between = folder[length - 1] == '/' ? "" : "/";
    size_t size = length + strlen(name) + 2;
    char *path = memory_alloc(size, 1);
    snprintf(path, size, "%s%s%s", folder, between, name);
    return path;
}

char *path_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return memory_copy_text(".");
    return slash == path ? memory_copy_text("/") : memory_copy_bytes(path, (size_t)(slash - path));
}

static bool name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}

char *file_name_make(const char *text, size_t limit)
{
    enum { HASH_DIGITS = 8 };
    size_t length = strlen(text), used = 0;
    char *name = memory_alloc(length + HASH_DIGITS + 2, 1);
    bool changed = length == 0 || length > limit;
    for (size_t i = 0; i < length; i++) {
        bool keep = name_character(text[i]) && !(used == 0 && (text[i] == '.' || text[i] == '-'));
        changed |= !keep;
        if (keep)
            name[used++] = text[i];
        else if (used && name[used - 1] != '-')
            name[used++] = '-';
    }
    if (changed) {
        char hex[HASH_TEXT_SIZE];
        hash_bytes(text, length, hex);
        if (used > limit - HASH_DIGITS - 1)
            used = limit - HASH_DIGITS - 1;
        if (used && name[used - 1] != '-')
            name[used++] = '-';
        memcpy(name + used, hex, HASH_DIGITS);
        used += HASH_DIGITS;
        name[used] = 0;
    }
    return name;
}
