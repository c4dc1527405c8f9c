/* Version and commit. build/generated/commit.h is rewritten by make only when the commit has changed. */
#include "runner/version.h"

#include "generated/commit.h"

const char *version_text(void)
{
    return "0.1.0";
}

const char *version_commit(void)
{
    return BUILD_COMMIT;
}
