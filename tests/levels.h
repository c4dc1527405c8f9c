/* A test on every set of kernels that this processor runs. */
#ifndef TESTS_LEVELS_H
#define TESTS_LEVELS_H

#include <criterion/criterion.h>

#include "core/cpu.h"

static const char *level; /* in use, for messages */

static inline void each_level(void (*test)(void))
{
    static const char *const levels[] = {"v2", "v3", "v4", "generic"};
    int tested = 0;
    for (int i = 0; i < 4; i++) {
        struct error err;
        if (!cpu_select(levels[i], &err))
            continue;
        level = levels[i];
        test();
        tested++;
    }
    cr_assert_gt(tested, 0, "no level runs here");
}

#endif
