/* Makes a model folder of Qwen3-0.6B's shape with random weights, and measures what a program takes in memory:
 *
 *   qwen3_shape make MODEL CASE    MODEL: config.json, BF16 shards of at most 500 MB, index; CASE: 16 tokens
 *   qwen3_shape run PROGRAM ...    runs it; the last line says its largest resident size in MiB
 *
 * Plain C on purpose: nothing of the reader under test writes what it reads. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { C = 1024, F = 3072, LAYERS = 28, H = 16, K = 8, D = 128, V = 151936, TOKENS = 16 };
#define SHARD_BYTES INT64_C(500000000)

struct tensor {
    char name[64];
    int64_t rows, columns; /* columns 0: a vector of ones */
    int shard;
};

static struct tensor tensors[2 + 11 * LAYERS];
static int count, shards;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void add(const char *name, int64_t rows, int64_t columns)
{
    static int64_t used;
    struct tensor *t = &tensors[count++];
    int64_t bytes = 2 * rows * (columns ? columns : 1);
    snprintf(t->name, sizeof t->name, "%s", name);
    t->rows = rows;
    t->columns = columns;
    if (shards == 0 || used + bytes > SHARD_BYTES) {
        shards++;
        used = 0;
    }
    used += bytes;
    t->shard = shards;
}

static void list_tensors(void)
{
    static const struct {
        const char *name;
        int64_t rows, columns;
    } rows[] = {{"input_layernorm", C, 0},      {"self_attn.q_proj", H * D, C},
                {"self_attn.k_proj", K * D, C}, {"self_attn.v_proj", K * D, C},
                {"self_attn.o_proj", C, H * D}, {"self_attn.q_norm", D, 0},
                {"self_attn.k_norm", D, 0},     {"post_attention_layernorm", C, 0},
                {"mlp.gate_proj", F, C},        {"mlp.up_proj", F, C},
                {"mlp.down_proj", C, F}};
    char name[64];
    add("model.embed_tokens.weight", V, C);
    for (int layer = 0; layer < LAYERS; layer++)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            snprintf(name, sizeof name, "model.layers.%d.%s.weight", layer, rows[i].name);
            add(name, rows[i].rows, rows[i].columns);
        }
    add("model.norm.weight", C, 0);
}

/* The upper half of a float between -0.04 and 0.04, or 1; element i of tensor t, the same whenever asked. */
static uint16_t number(int t, int64_t i)
{
    uint64_t x = (uint64_t)t << 40 ^ (uint64_t)i;
    x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 27) * UINT64_C(0xbf58476d1ce4e5b9);
    float value = tensors[t].columns ? ((float)(x >> 40) / 8388608.0f - 1) * 0.04f : 1.0f;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static FILE *create(const char *folder, const char *file)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *out = fopen(path, "wb");
    if (!out)
        die(path);
    return out;
}

static void finish(FILE *out)
{
    if (fclose(out) != 0)
        die("writing");
}

static void write_header(FILE *out, const char *header)
{
    uint64_t length = strlen(header);
    for (int i = 0; i < 8; i++)
        putc((int)(length >> 8 * i & 255), out);
    fputs(header, out);
}

static void shard_name(char name[64], int shard)
{
    snprintf(name, 64, "model-%05d-of-%05d.safetensors", shard, shards);
}

static void write_shard(const char *folder, int shard)
{
    static char header[1 << 16];
    char name[64];
    size_t used = 0;
    int64_t begin = 0;
    for (int t = 0; t < count; t++)
        if (tensors[t].shard == shard) {
            int64_t end = begin + 2 * tensors[t].rows * (tensors[t].columns ? tensors[t].columns : 1);
            char shape[48];
            snprintf(shape, sizeof shape, tensors[t].columns ? "[%" PRId64 ",%" PRId64 "]" : "[%" PRId64 "]",
                     tensors[t].rows, tensors[t].columns);
            used += (size_t)snprintf(header + used, sizeof header - used,
                                     "%s\"%s\":{\"dtype\":\"BF16\",\"shape\":%s,\"data_offsets\":[%" PRId64 ",%" PRId64
                                     "]}",
                                     used ? "," : "{", tensors[t].name, shape, begin, end);
            begin = end;
        }
    snprintf(header + used, sizeof header - used, "}");
    shard_name(name, shard);
    FILE *out = create(folder, name);
    write_header(out, header);
    for (int t = 0; t < count; t++)
        for (int64_t r = 0; tensors[t].shard == shard && r < tensors[t].rows; r++) {
            static uint16_t row[F];
            int64_t columns = tensors[t].columns ? tensors[t].columns : 1;
            for (int64_t c = 0; c < columns; c++)
                row[c] = number(t, r * columns + c);
            fwrite(row, 2, (size_t)columns, out);
        }
    finish(out);
}

static void write_index(const char *folder)
{
    FILE *out = create(folder, "model.safetensors.index.json");
    char name[64];
    fputs("{\"metadata\": {}, \"weight_map\": {", out);
    for (int t = 0; t < count; t++) {
        shard_name(name, tensors[t].shard);
        fprintf(out, "%s\"%s\": \"%s\"", t ? ",\n" : "\n", tensors[t].name, name);
    }
    fputs("}}\n", out);
    finish(out);
}

static void write_config(const char *folder)
{
    FILE *out = create(folder, "config.json");
    fprintf(out,
            "{\"architectures\": [\"Qwen3ForCausalLM\"], \"model_type\": \"qwen3\", \"attention_bias\": false,\n"
            "\"head_dim\": %d, \"hidden_act\": \"silu\", \"hidden_size\": %d, \"intermediate_size\": %d,\n"
            "\"max_position_embeddings\": 40960, \"num_attention_heads\": %d, \"num_hidden_layers\": %d,\n"
            "\"num_key_value_heads\": %d, \"rms_norm_eps\": 1e-06, \"rope_scaling\": null, \"rope_theta\": 1000000,\n"
            "\"sliding_window\": null, \"tie_word_embeddings\": true, \"torch_dtype\": \"bfloat16\",\n"
            "\"use_sliding_window\": false, \"vocab_size\": %d}\n",
            D, C, F, H, LAYERS, K, V);
    finish(out);
}

/* 16 tokens, and what is sure of a model of random weights: their rows of the embedding. */
static void write_case(const char *folder)
{
    FILE *out = create(folder, "inputs.safetensors");
    write_header(out, "{\"inputs\":{\"dtype\":\"I64\",\"shape\":[1,16],\"data_offsets\":[0,128]}}");
    for (int64_t i = 0; i < TOKENS; i++)
        for (int byte = 0; byte < 8; byte++)
            putc((int)(i * 9973 >> 8 * byte & 255), out);
    finish(out);
    out = create(folder, "expected.safetensors");
    write_header(out, "{\"embed\":{\"dtype\":\"BF16\",\"shape\":[1,16,1024],\"data_offsets\":[0,32768]}}");
    for (int64_t i = 0; i < TOKENS; i++)
        for (int64_t c = 0; c < C; c++) {
            uint16_t bits = number(0, i * 9973 * C + c);
            fwrite(&bits, 2, 1, out);
        }
    finish(out);
}

static int make(const char *model, const char *example)
{
    int64_t parameters = 0;
    list_tensors();
    for (int t = 0; t < count; t++)
        parameters += tensors[t].rows * (tensors[t].columns ? tensors[t].columns : 1);
    for (int shard = 1; shard <= shards; shard++)
        write_shard(model, shard);
    write_index(model);
    write_config(model);
    write_case(example);
    printf("%" PRId64 " parameters in %d shards\n", parameters, shards);
    return 0;
}

static int run(char **words)
{
    struct rusage usage;
    int status;
    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0) {
        execvp(words[0], words);
        die(words[0]);
    }
    if (wait4(child, &status, 0, &usage) != child)
        die("wait4");
    printf("exit code %d, %ld s, resident peak %ld MiB\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
           (long)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec), usage.ru_maxrss / 1024);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "make") == 0)
        return make(argv[2], argv[3]);
    if (argc > 2 && strcmp(argv[1], "run") == 0)
        return run(argv + 2);
    fputs("usage: qwen3_shape make MODEL-DIR CASE-DIR | qwen3_shape run PROGRAM ...\n", stderr);
    return 2;
}
