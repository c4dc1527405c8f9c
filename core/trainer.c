/* One run: batches drawn by counter, the schedule, updates, evaluation. */
#include "core/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "core/optimizer.h"
#include "core/random.h"

/* Tokens of one pass: enough rows for the matrix products, few enough for the activations to stay near the cache. A
 * constant, so that the order of summation, and with it every bit, depends on the settings alone. */
enum { PASS_TOKENS = 1024 };

struct trainer {
    struct config config;
    struct token_stream train;
    struct model *model;
    struct optimizer *optimizer;
    struct random_stream data;
    int64_t steps_done;
    int64_t sequences; /* of the two buffers below */
    int32_t *inputs, *targets;
    struct profile *profile;
};

static int64_t pass_sequences(const struct config *config)
{
    int64_t fit = PASS_TOKENS / config->model.context_length;
    fit = fit < 1 ? 1 : fit;
    return fit < config->training.batch_size ? fit : config->training.batch_size;
}

int64_t token_stream_blocks(const struct token_stream *stream, int64_t context_length)
{
    return (int64_t)(stream->count / (size_t)(context_length + 1));
}

struct trainer *trainer_create(const struct config *config, int64_t seed, int64_t vocab_size,
                               const struct token_stream *train, struct error *err)
{
    int64_t T = config->model.context_length;
    if (token_stream_blocks(train, T) < 1) {
        error_set(err, "the training text has %zu tokens: context_length %" PRId64 " needs at least %" PRId64,
                  train->count, T, T + 1);
        return NULL;
    }
    struct model *model = model_create(&config->model, vocab_size, pass_sequences(config) * T, err);
    if (!model)
        return NULL;
    struct trainer *trainer = memory_alloc(1, sizeof *trainer);
    trainer->config = *config;
    trainer->train = *train;
    trainer->model = model;
    trainer->optimizer = optimizer_create(model_tensors(model), &config->training);
    trainer->data = random_stream_make(seed, "data");
    trainer->sequences = config->training.batch_size;
    trainer->inputs = memory_alloc((size_t)(trainer->sequences * T), sizeof *trainer->inputs);
    trainer->targets = memory_alloc((size_t)(trainer->sequences * T), sizeof *trainer->targets);
    model_init(model, seed);
    model_set_precision(model, config->training.precision);
    return trainer;
}

size_t trainer_memory(const struct config *config, int64_t vocab_size)
{
    int64_t T = config->model.context_length;
    struct tensor_table *table = tensor_table_create(&config->model, vocab_size);
    size_t moments = 2 * table->total * sizeof(real),
           batch = 2 * (size_t)(config->training.batch_size * T) * sizeof(int32_t);
    tensor_table_free(table);
    return model_memory(&config->model, vocab_size, pass_sequences(config) * T, config->training.precision) + moments +
           batch;
}

void trainer_free(struct trainer *trainer)
{
    if (!trainer)
        return;
    model_free(trainer->model);
    optimizer_free(trainer->optimizer);
    memory_free(trainer->inputs);
    memory_free(trainer->targets);
    memory_free(trainer);
}

double learning_rate_at(const struct training_config *training, int64_t step)
{
    double peak = training->learning_rate, least = training->min_learning_rate;
    if (step < training->warmup_steps)
        return peak * (double)(step + 1) / (double)training->warmup_steps;
    if (step >= training->steps)
        return least;
    double progress = (double)(step - training->warmup_steps) / (double)(training->steps - training->warmup_steps);
    return least + (peak - least) * (1 + cos(3.14159265358979323846 * progress)) / 2;
}

/* Block number `block` of the stream into row `row` of inputs and targets. */
static void sequence_load(struct trainer *trainer, const struct token_stream *stream, int64_t block, int64_t row)
{
    int64_t T = trainer->config.model.context_length;
    const int32_t *tokens = stream->tokens + block * (T + 1);
    memcpy(trainer->inputs + row * T, tokens, (size_t)T * sizeof *tokens);
    memcpy(trainer->targets + row * T, tokens + 1, (size_t)T * sizeof *tokens);
}

static uint64_t batch_checksum(const struct trainer *trainer)
{
    int64_t T = trainer->config.model.context_length;
    uint64_t hash = 14695981039346656037ull;
    for (int64_t i = 0; i < trainer->sequences; i++) {
        hash = (hash ^ (uint32_t)trainer->inputs[i * T]) * 1099511628211ull;
        for (int64_t t = 0; t < T; t++)
            hash = (hash ^ (uint32_t)trainer->targets[i * T + t]) * 1099511628211ull;
    }
    return hash;
}

static void batch_draw(struct trainer *trainer)
{
    uint64_t blocks = (uint64_t)token_stream_blocks(&trainer->train, trainer->config.model.context_length);
    for (int64_t i = 0; i < trainer->sequences; i++) {
        uint64_t draw = (uint64_t)(trainer->steps_done * trainer->sequences + i);
        sequence_load(trainer, &trainer->train, (int64_t)random_below(&trainer->data, draw, blocks), i);
    }
}

bool trainer_step(struct trainer *trainer, struct step_record *record)
{
    const struct config *config = &trainer->config;
    int64_t T = config->model.context_length, step = trainer->steps_done;
    profile_at(trainer->profile, PROFILE_BATCH, PROFILE_FORWARD, 0);
    batch_draw(trainer);
    double loss = model_loss_gradient(trainer->model, trainer->inputs, trainer->targets, trainer->sequences, T, step);
    const real *gradients = model_gradients(trainer->model);
    profile_at(trainer->profile, PROFILE_GRADIENT_NORM, PROFILE_FORWARD, 0);
    double grad_norm = optimizer_grad_norm(gradients, model_tensors(trainer->model)->total);
    profile_at(trainer->profile, PROFILE_BATCH, PROFILE_FORWARD, 0);
    *record = (struct step_record){
        .step = step,
        .tokens = (step + 1) * trainer->sequences * T,
        .loss = loss,
        .grad_norm = grad_norm,
        .learning_rate = learning_rate_at(&config->training, step),
        .batch_checksum = batch_checksum(trainer),
    };
    if (!isfinite(loss) || !isfinite(grad_norm))
        return false;
    profile_at(trainer->profile, PROFILE_ADAMW, PROFILE_FORWARD, 0);
    optimizer_step(trainer->optimizer, model_parameters(trainer->model), gradients, grad_norm, record->learning_rate,
                   step);
    trainer->steps_done++;
    profile_at(trainer->profile, PROFILE_OTHER, PROFILE_FORWARD, 0);
    return true;
}

void trainer_evaluate(struct trainer *trainer, const struct token_stream *stream, int64_t limit,
                      struct evaluation_record *record)
{
    int64_t T = trainer->config.model.context_length, blocks = token_stream_blocks(stream, T);
    int64_t wanted = limit == 0 || limit > blocks ? blocks : limit;
    struct metric_sums sums = {{0}};
    *record = (struct evaluation_record){.blocks = wanted};
    for (int64_t done = 0; done < wanted;) {
        int64_t rows = wanted - done < trainer->sequences ? wanted - done : trainer->sequences, counted;
        for (int64_t i = 0; i < rows; i++) {
            int64_t block = (done + i) * blocks / wanted;
            sequence_load(trainer, stream, block, i);
            for (int64_t t = 1; t <= T; t++)
                record->bytes += stream->bytes[block * (T + 1) + t];
        }
        struct metric_sums of_rows = {{0}}; /* added up first: so are nats summed, to the bit */
        model_measure(trainer->model, &of_rows);
        model_loss(trainer->model, trainer->inputs, trainer->targets, rows, T, &counted);
        metric_add(&sums, &of_rows);
        record->tokens += counted;
        done += rows;
    }
    model_measure(trainer->model, NULL);
    metric_finish(&sums, record);
}

bool trainer_evaluation_due(const struct config *config, int64_t steps_done, int64_t *limit)
{
    bool last = steps_done == config->training.steps;
    *limit = last ? config->evaluation.final_blocks : config->evaluation.blocks;
    return last || steps_done % config->evaluation.interval == 0;
}

void trainer_profile(struct trainer *trainer, struct profile *profile)
{
    trainer->profile = profile;
    model_profile(trainer->model, profile);
}

int64_t trainer_steps_done(const struct trainer *trainer)
{
    return trainer->steps_done;
}

struct model *trainer_model(struct trainer *trainer)
{
    return trainer->model;
}

struct trainer_state trainer_state(struct trainer *trainer)
{
    struct trainer_state state = {
        .parameters = model_parameters(trainer->model),
        .first_moment = optimizer_first_moment(trainer->optimizer),
        .second_moment = optimizer_second_moment(trainer->optimizer),
        .count = model_tensors(trainer->model)->total,
    };
    return state;
}

void trainer_resume(struct trainer *trainer, int64_t steps_done)
{
    trainer->steps_done = steps_done;
}
