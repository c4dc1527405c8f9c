/* VACUUM INTO writes what is committed, whatever journal it is in; then the copy is made durable and gets its name. */
#include "runner/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/file.h"
#include "runner/sql.h"

enum { COPIES_MOST = 1000 };

static bool file_sync(const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (!ok)
        error_set(err, "cannot write '%s': %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

/* link() fails when the name is taken, where rename() would replace. */
static bool name_give(const char *temporary, const char *path, size_t version, char **copy, struct error *err)
{
    size_t size = strlen(path) + 64;
    char *name = memory_alloc(size, 1);
    for (int i = 1; i <= COPIES_MOST; i++) {
        int used = snprintf(name, size, "%s.version-%zu", path, version);
        if (i > 1)
            snprintf(name + used, size - (size_t)used, "-%d", i);
        /* A file system without links: only we write here, under the database's lock. */
        if (link(temporary, name) == 0 ||
            (errno != EEXIST && access(name, F_OK) != 0 && rename(temporary, name) == 0)) {
            *copy = name;
            return true;
        }
        if (errno != EEXIST && access(name, F_OK) != 0)
            break;
    }
    error_set(err, "cannot name the copy '%s': %s", name, strerror(errno));
    memory_free(name);
    return false;
}

bool backup_make(sqlite3 *db, const char *path, size_t version, char **copy, struct error *err)
{
    char *folder = path_folder(path), name[64];
    snprintf(name, sizeof name, ".tmp-%ld-backup", (long)getpid());
    char *temporary = path_join(folder, name);
    unlink(temporary);
    *copy = NULL;
    bool ok = sql_run(db, "vacuum into ?", "t", err, temporary) && file_sync(temporary, err) &&
              name_give(temporary, path, version, copy, err) && folder_sync(folder, err);
    unlink(temporary);
    if (!ok) {
        error_wrap(err, "the database is not changed, because no copy of it as it is can be made first");
        memory_free(*copy);
        *copy = NULL;
    }
    memory_free(temporary);
    memory_free(folder);
    return ok;
}
