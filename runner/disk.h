/* Room on the disk, asked for before hours of training need it. */
#ifndef RUNNER_DISK_H
#define RUNNER_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

/* Bytes that this user may still write in the folder. False and err when it cannot be asked. */
bool disk_free(const char *folder, uint64_t *bytes, struct error *err);

/* False with both numbers when `needed` bytes do not fit; true when nobody can say how many do. */
bool disk_has_room(const char *folder, uint64_t needed, struct error *err);

/* The same, told of what is free. */
bool disk_fits(const char *folder, uint64_t needed, uint64_t available, struct error *err);

#endif
