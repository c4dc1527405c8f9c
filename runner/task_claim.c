/* A claim is made by link(), which no two processes win, on network file systems too. */
#include "runner/task_claim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "runner/file.h"

enum { CLAIM_LIMIT = 100 };

/* The claim appears whole or not at all, and only once: by link(), which no two processes win. */
bool claim_make(const char *claim, const char *array, struct error *err)
{
    char temporary[4200];
    int length = snprintf(temporary, sizeof temporary, "%s.%ld-%s", claim, (long)getpid(), array);
    FILE *file = length < (int)sizeof temporary ? fopen(temporary, "w") : NULL;
    bool ok = file && fprintf(file, "%s\n", array) > 0;
    if (file)
        ok = fclose(file) == 0 && ok;
    ok = (ok && (link(temporary, claim) == 0 || errno == EEXIST)) ||
         error_set(err, "cannot write '%s': %s", claim, strerror(errno));
    if (file)
        unlink(temporary);
    return ok;
}

bool claim_holder(const char *claim, char array[24])
{
    char *text;
    size_t size;
    if (access(claim, F_OK) != 0 || !file_read(claim, CLAIM_LIMIT, &text, &size, NULL))
        return false;
    snprintf(array, 24, "%.*s", (int)strspn(text, "0123456789"), text);
    memory_free(text);
    return *array != 0;
}
