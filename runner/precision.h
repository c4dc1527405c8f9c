/* training.precision, for messages. */
#ifndef RUNNER_PRECISION_H
#define RUNNER_PRECISION_H

#include "core/knob.h"

/* "fp32", "bf16x3", "bf16". Static text. */
const char *precision_name(int precision);

/* Says on stderr, once a process, when products of this precision are made in software. */
void precision_note(int precision);

#endif
