/* Names of the precisions, and the note about those that are slow here. */
#include "runner/precision.h"

#include "core/bf16.h"
#include "runner/command.h"

const char *precision_name(int precision)
{
    static char names[PRECISION_BF16 + 1][KNOB_TEXT_SIZE];
    return knob_format(knob_find("training.precision"), (union knob_value){.choice = precision}, names[precision]);
}

void precision_note(int precision)
{
    static bool said;
    struct error why;
    if (precision == PRECISION_FP32 || said || bf16_in_hardware())
        return;
    said = true;
    bf16_explain(&why);
    message("training.precision %s: %s; operands are rounded in software and multiplied in fp32, which gives the same "
            "precision but is slower than fp32",
            precision_name(precision), why.text);
}
