/* What this processor can do, which compiled set of kernels serves it, and which BLAS answers. */
#ifndef CORE_CPU_H
#define CORE_CPU_H

#include <stdbool.h>

#include "core/error.h"

/* Picks the kernels: "v2", "v3", "v4" (x86-64 levels), or NULL for the best this CPU has. Elsewhere only "generic".
 * False and err when the CPU cannot run that level. Without a call the best is used. Call before any model is made. */
bool cpu_select(const char *level, struct error *err);

const char *cpu_level(void);      /* "v4" */
const char *cpu_best_level(void); /* highest the CPU has */
const char *cpu_model_name(void); /* as the kernel names it, "unknown" elsewhere */

/* Denormal results and inputs become zero in this thread, so that vanishing Adam moments do not cost 25 times. */
void cpu_flush_denormals(void);

/* OpenBLAS: the name of the kernels it uses ("SkylakeX"), its version and build, its threads, and their number
 * set to 1. */
const char *blas_core_name(void);
const char *blas_config(void);
int blas_threads(void);
void blas_use_one_thread(void);

/* The OPENBLAS_CORETYPE that fits the level, for a process that has not loaded OpenBLAS yet; NULL when the name
 * OpenBLAS picked by itself is as good. */
const char *blas_core_wanted(const char *level);

#endif
