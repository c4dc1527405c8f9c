/* Read before each file that clang-tidy looks at: what it cannot see across files. */
#include "core/error.h"
#define error_set(...) ((error_set)(__VA_ARGS__), false)
#define error_wrap(...) ((error_wrap)(__VA_ARGS__), false)
