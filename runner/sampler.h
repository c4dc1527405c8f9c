/* Logits to the next token: the likeliest, or one drawn.
 *
 *   struct sampler sampler;
 *   sampler_init(&sampler, &(struct sampling){.temperature = 0.8, .top_k = 40, .seed = 1}, vocab_size);
 *   next = sampler_next(&sampler, logits, position);
 *   sampler_release(&sampler);
 *
 * What is drawn is a function of the logits, the seed and the position alone (random stream "sample"). */
#ifndef RUNNER_SAMPLER_H
#define RUNNER_SAMPLER_H

#include "core/random.h"
#include "core/real.h"

struct sampling {
    double temperature; /* logits are divided by it; 0 = the likeliest token, of equals the smallest id */
    int64_t top_k;      /* only the k likeliest, of equals the smallest ids; 0 = all */
    int64_t seed;
};

struct sampler {
    struct sampling sampling;
    int64_t vocab_size;
    struct random_stream stream;
    struct candidate { /* [vocab_size] */
        real logit;
        int32_t id;
    } * candidates;
};

/* temperature >= 0 and finite, 0 <= top_k <= vocab_size. Owner: caller, sampler_release(). */
void sampler_init(struct sampler *sampler, const struct sampling *sampling, int64_t vocab_size);
void sampler_release(struct sampler *sampler);

/* position: how many tokens stand before the next one. -1 when a logit is not a finite number. */
int32_t sampler_next(struct sampler *sampler, const real *logits, int64_t position);

#endif
