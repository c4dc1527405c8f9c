/* A throw-away stand-in for a cache folder: what is in the real one can be read through it, what is written to it goes
 * with it. For commands that must change nothing. */
#ifndef RUNNER_SHADOW_H
#define RUNNER_SHADOW_H

#include "core/error.h"

/* A folder under TMPDIR with a link to each file of cache_folder, which need not exist. NULL and err. Owner: caller,
 * shadow_remove(). */
char *shadow_make(const char *cache_folder, struct error *err);
void shadow_remove(char *path); /* the folder, its files and the text; takes NULL */

#endif
