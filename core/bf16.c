/* Which way bf16 products go on this processor. */
#include "core/bf16.h"

#include <string.h>

#include "core/cpu.h"
#include "core/onednn.h"
#include "core/real.h"

static enum bf16_path chosen = BF16_AUTOMATIC;

static bool level_allows(void)
{
    return sizeof(real) == sizeof(float) && strcmp(cpu_level(), "v4") == 0;
}

bool bf16_select(enum bf16_path path, struct error *err)
{
    if (path == BF16_HARDWARE) {
        if (!level_allows())
            return error_set(err, "bf16 products in hardware need kernels v4, and those in use are %s", cpu_level());
        if (!onednn_load(err))
            return error_wrap(err, "bf16 products in hardware");
        if (!onednn_has_bf16() && !onednn_has_amx())
            return error_set(err, "this processor has no instructions for bf16 products (AVX512_BF16 or AMX)");
    }
    chosen = path;
    return true;
}

bool bf16_in_hardware(void)
{
    if (chosen != BF16_AUTOMATIC)
        return chosen == BF16_HARDWARE;
    return level_allows() && onednn_load(NULL) && onednn_has_amx();
}

bool bf16_explain(struct error *err)
{
    if (chosen == BF16_SOFTWARE)
        return error_set(err, "bf16 products are asked for in software");
    if (!level_allows())
        return error_set(err, "kernels %s, which are in use, have no fast bf16 products", cpu_level());
    return onednn_load(err) && error_set(err, "this processor has no fast bf16 products (AMX)");
}
