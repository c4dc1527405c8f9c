/* What a started program finds in its environment. */
#include "runner/environment.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"

static bool is_replaced(const char *entry, char *const settings[])
{
    for (; *settings; settings++)
        if (strncmp(entry, *settings, strcspn(*settings, "=") + 1) == 0)
            return true;
    return false;
}

char **environment_with(char *const settings[])
{
    size_t ours = 0, more = 0, used = 0;
    while (environ[ours])
        ours++;
    while (settings[more])
        more++;
    char **all = memory_alloc(ours + more + 1, sizeof *all);
    for (size_t i = 0; i < ours; i++)
        if (!is_replaced(environ[i], settings))
            all[used++] = environ[i];
    memcpy(all + used, settings, more * sizeof *all);
    return all;
}
