/* SQLite connections, and the state of their files. */
#include "runner/connection.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "core/memory.h"
#include "runner/file.h"

bool connection_path_check(const char *path, bool *exists, struct error *err)
{
    struct stat st;
    if (!*path)
        return error_set(err, "the database's path is empty: expected the path of a file");
    *exists = stat(path, &st) == 0;
    if (!*exists && errno != ENOENT)
        return error_set(err, "cannot open the database '%s': %s", path, strerror(errno));
    if (*exists && !S_ISREG(st.st_mode))
        return error_set(err, "'%s' is a %s: expected a database file", path, file_kind_name(st.st_mode));
    return true;
}

sqlite3 *connection_open(const char *path, int flags, int busy_milliseconds, struct error *err)
{
    char *name = *path == ':' ? path_join(".", path) : memory_copy_text(path);
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(name, &db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        error_set(err, "cannot open the database '%s': %s", path, db ? sqlite3_errmsg(db) : "out of memory");
        sqlite3_close(db);
        db = NULL;
    } else {
        sqlite3_busy_timeout(db, busy_milliseconds);
        sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    }
    memory_free(name);
    return db;
}

bool connection_journal_is_left(const char *path)
{
    static const char *const suffixes[] = {"-wal", "-journal"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        struct stat st;
        char *name = sqlite3_mprintf("%s%s", path, suffixes[i]);
        bool left = name && stat(name, &st) == 0 && st.st_size > 0;
        sqlite3_free(name);
        if (left)
            return true;
    }
    return false;
}
