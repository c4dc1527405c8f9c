/* Which kernels this processor runs, and what OpenBLAS says of itself. */
#include "core/cpu.h"

#include <cblas.h>
#include <stdio.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <xmmintrin.h>
#endif

#include "core/kernels.h"

/* blas_good: names of OpenBLAS kernels that use this level; blas_wanted: what to ask for otherwise. */
struct level {
    const struct kernels *kernels;
    bool (*present)(void);
    const char *blas_good, *blas_wanted;
};

#ifdef __x86_64__

extern const struct kernels kernels_v2, kernels_v3, kernels_v4;

static bool has_v2(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
}

static bool has_v3(void)
{
    return has_v2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

static bool has_v4(void)
{
    return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

/* Best first. */
static const struct level levels[] = {
    {&kernels_v4, has_v4, "SkylakeX Cooperlake SapphireRapids Zen", "SkylakeX"},
    {&kernels_v3, has_v3, "Haswell Zen", "Haswell"},
    {&kernels_v2, has_v2, "Nehalem Barcelona Sandybridge Bulldozer", "Nehalem"},
};

#else

extern const struct kernels kernels_generic;

static bool has_generic(void)
{
    return true;
}

static const struct level levels[] = {{&kernels_generic, has_generic, NULL, NULL}};

#endif

enum { LEVELS = sizeof levels / sizeof levels[0] };

static const struct kernels *chosen;

static const struct level *level_best(void)
{
    for (size_t i = 0; i < LEVELS; i++)
        if (levels[i].present())
            return &levels[i];
    return &levels[LEVELS - 1];
}

const struct kernels *kernels(void)
{
    if (!chosen)
        chosen = level_best()->kernels;
    return chosen;
}

static const struct level *level_find(const char *name)
{
    for (size_t i = 0; i < LEVELS; i++)
        if (strcmp(levels[i].kernels->level, name) == 0)
            return &levels[i];
    return NULL;
}

bool cpu_select(const char *level, struct error *err)
{
    const struct level *row = level ? level_find(level) : level_best();
    if (!row) {
        char names[64] = "";
        for (size_t i = 0, used = 0; i < LEVELS && used < sizeof names; i++)
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", levels[i].kernels->level);
        return error_set(err, "CPU level '%.40s' is unknown: expected one of %s", level, names);
    }
    if (!row->present())
        return error_set(err, "CPU level '%s' needs instructions this CPU does not have: its best is %s", level,
                         cpu_best_level());
    chosen = row->kernels;
    return true;
}

const char *cpu_level(void)
{
    return kernels()->level;
}

const char *cpu_best_level(void)
{
    return level_best()->kernels->level;
}

const char *cpu_model_name(void)
{
    static char name[49];
    if (name[0])
        return name;
    snprintf(name, sizeof name, "unknown");
#ifdef __x86_64__
    unsigned int words[12];
    if ((unsigned int)__get_cpuid_max(0x80000000u, NULL) >= 0x80000004u) {
        for (unsigned int i = 0; i < 3; i++)
            __get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
        memcpy(name, words, 48);
        size_t lead = strspn(name, " ");
        memmove(name, name + lead, sizeof name - lead);
    }
#endif
    return name;
}

void cpu_flush_denormals(void)
{
#ifdef __x86_64__
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
#endif
}

const char *blas_core_name(void)
{
    return openblas_get_corename();
}

const char *blas_config(void)
{
    return openblas_get_config();
}

int blas_threads(void)
{
    return openblas_get_num_threads();
}

void blas_use_one_thread(void)
{
    openblas_set_num_threads(1);
}

const char *blas_core_wanted(const char *level)
{
    const struct level *row = level_find(level);
    if (!row || !row->blas_good)
        return NULL;
    const char *core = blas_core_name(), *at = strstr(row->blas_good, core);
    size_t length = strlen(core);
    bool good = at && (at == row->blas_good || at[-1] == ' ') && (at[length] == ' ' || at[length] == 0);
    return good ? NULL : row->blas_wanted;
}
