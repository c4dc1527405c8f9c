/* Which runner this is: for `runner version`, `doctor` and every run's row. */
#ifndef RUNNER_VERSION_H
#define RUNNER_VERSION_H

const char *version_text(void); /* "0.1.0" */

/* The commit it was built from, "-dirty" after it when tracked files differed; "unknown" when built outside git. */
const char *version_commit(void);

#endif
