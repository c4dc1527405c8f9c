/* Whether products of bf16 operands are made by the processor or by rounding in software and multiplying in fp32. */
#ifndef CORE_BF16_H
#define CORE_BF16_H

#include <stdbool.h>

#include "core/error.h"

/* By itself: hardware where it was measured, or is built, to be faster (AMX). AVX512_BF16 alone has half the rate of
 * fp32 on the processors where we could measure it, so it takes part only when asked for. */
enum bf16_path { BF16_AUTOMATIC, BF16_SOFTWARE, BF16_HARDWARE };

/* False and err when hardware is asked for that is not there. Call before any model is made. */
bool bf16_select(enum bf16_path path, struct error *err);

bool bf16_in_hardware(void);

/* False, and err: why they are not in hardware. Only when they are not. */
bool bf16_explain(struct error *err);

#endif
