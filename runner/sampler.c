/* Draws tokens by temperature and top-k. */
#include "runner/sampler.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"

void sampler_init(struct sampler *sampler, const struct sampling *sampling, int64_t vocab_size)
{
    *sampler = (struct sampler){.sampling = *sampling, .vocab_size = vocab_size};
    sampler->stream = random_stream_make(sampling->seed, "sample");
    sampler->candidates = memory_alloc((size_t)vocab_size, sizeof *sampler->candidates);
}

void sampler_release(struct sampler *sampler)
{
    memory_free(sampler->candidates);
    *sampler = (struct sampler){.candidates = NULL};
}

/* The first of the largest; -1 when one is not finite. */
static int32_t largest(const real *logits, int64_t count)
{
    int32_t best = 0;
    for (int32_t id = 0; id < count; id++) {
        if (!isfinite(logits[id]))
            return -1;
        if (logits[id] > logits[best])
            best = id;
    }
    return best;
}

static int candidate_compare(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->logit < y->logit || x->logit > y->logit)
        return x->logit > y->logit ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static double weight_of(const struct sampler *sampler, const struct candidate *candidate, real top)
{
    return exp(((double)candidate->logit - (double)top) / sampler->sampling.temperature);
}

/* By inversion: the candidate in which uniform * (sum of weights) falls. */
static int32_t draw(const struct sampler *sampler, int64_t count, real top, double uniform)
{
    const struct candidate *candidates = sampler->candidates;
    double sum = 0, passed = 0;
    for (int64_t i = 0; i < count; i++)
        sum += weight_of(sampler, &candidates[i], top);
    int32_t last = -1;
    for (int64_t i = 0; i < count; i++) {
        double weight = weight_of(sampler, &candidates[i], top);
        passed += weight;
        if (weight > 0)
            last = candidates[i].id;
        if (passed > uniform * sum)
            return candidates[i].id;
    }
    return last; /* rounding left the sum behind */
}

int32_t sampler_next(struct sampler *sampler, const real *logits, int64_t position)
{
    int64_t count = sampler->vocab_size, top_k = sampler->sampling.top_k;
    int32_t best = largest(logits, count);
    if (best < 0 || top_k == 1 || !(sampler->sampling.temperature > 0))
        return best;
    for (int32_t id = 0; id < count; id++)
        sampler->candidates[id] = (struct candidate){logits[id], id};
    if (top_k > 0 && top_k < count) {
        qsort(sampler->candidates, (size_t)count, sizeof *sampler->candidates, candidate_compare);
        count = top_k;
    }
    return draw(sampler, count, logits[best], random_uniform(&sampler->stream, (uint64_t)position));
}
