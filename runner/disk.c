/* Asking a file system what is left of it. */
#include "runner/disk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

bool disk_free(const char *folder, uint64_t *bytes, struct error *err)
{
    struct statvfs disk;
    if (statvfs(folder, &disk) != 0)
        return error_set(err, "cannot ask how much of the disk with '%s' is free: %s", folder, strerror(errno));
    if (__builtin_mul_overflow((uint64_t)disk.f_bavail, (uint64_t)disk.f_frsize, bytes))
        *bytes = UINT64_MAX;
    return true;
}

/* "12.3 GB", rounded as people do. */
static const char *bytes_format(uint64_t bytes, char text[32])
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes / 1000;
    size_t unit = 0;
    for (; value >= 1000 && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1000;
    snprintf(text, 32, "%.1f %s", value, units[unit]);
    return text;
}

bool disk_fits(const char *folder, uint64_t needed, uint64_t available, struct error *err)
{
    char want[32], have[32];
    if (needed <= available)
        return true;
    return error_set(err,
                     "this sweep needs about %s of disk and '%s' has %s free: make room (`runner gc` removes what is "
                     "hidden or orphaned), or name another place with --db",
                     bytes_format(needed, want), folder, bytes_format(available, have));
}

bool disk_has_room(const char *folder, uint64_t needed, struct error *err)
{
    uint64_t available = UINT64_MAX;
    return !disk_free(folder, &available, NULL) || disk_fits(folder, needed, available, err);
}
