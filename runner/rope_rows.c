/* Moves the rows of rotated tensors. */
#include "runner/rope_rows.h"

#include <string.h>

bool rope_rows_has(const char *tensor)
{
    return strstr(tensor, ".attention.query") || strstr(tensor, ".attention.key");
}

/* Row of the adjacent layout that is row r of the split one. */
static int64_t adjacent_row(int64_t r, int64_t D)
{
    int64_t head = r / D, i = r % D;
    return head * D + (i < D / 2 ? 2 * i : 2 * (i - D / 2) + 1);
}

void rope_rows_to_split(real *out, const real *in, int64_t rows, int64_t columns, int64_t D)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(out + r * columns, in + adjacent_row(r, D) * columns, (size_t)columns * sizeof *out);
}

void rope_rows_to_adjacent(real *out, const real *in, int64_t rows, int64_t columns, int64_t D)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(out + adjacent_row(r, D) * columns, in + r * columns, (size_t)columns * sizeof *out);
}
