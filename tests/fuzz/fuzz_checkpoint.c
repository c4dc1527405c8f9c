/* libFuzzer target: any bytes as a checkpoint of a tiny run, as they are and with the SHA-256 that makes a reader go
 * on. What is refused is told, and nothing of it is used. */
#include <sha2.h>
#include <string.h>

#include "core/memory.h"
#include "runner/checkpoint.h"
#include "tests/fuzz/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* As in the seeds. */
enum { REALS = 3, STEPS = 5 };
static const char key[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static void note_keep(void *context, const char *text)
{
    assert(*text);
    ++*(int *)context;
}

static void checkpoint_try(const void *bytes, size_t size)
{
    real parameters[REALS] = {1, 2, 3}, first[REALS] = {4, 5, 6}, second[REALS] = {7, 8, 9};
    struct trainer_state state = {parameters, first, second, REALS};
    struct checkpoint checkpoint;
    struct error err = {{0}}, other = {{0}};
    int notes = 0;
    bool gone;
    fuzz_file(key, "step-5.ckpt", bytes, size);
    bool good = checkpoint_read(fuzz_folder, key, &state, &checkpoint, note_keep, &notes, &err);
    assert(good == (notes == 0) && !*err.text);
    assert(!good || checkpoint_check(fuzz_folder, key, STEPS, &gone, &other));
    assert(good || (parameters[0] == 1 && first[1] == 5 && second[2] == 9 && !checkpoint.steps));
    if (good)
        assert(checkpoint.steps_done == STEPS);
    checkpoint_release(&checkpoint);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    SHA2_CTX hash;
    checkpoint_try(bytes, size);
    uint8_t *hashed = memory_alloc(size + SHA256_DIGEST_LENGTH, 1);
    size_t body = size > SHA256_DIGEST_LENGTH ? size - SHA256_DIGEST_LENGTH : size;
    if (body)
        memcpy(hashed, bytes, body);
    SHA256Init(&hash);
    SHA256Update(&hash, hashed, body);
    SHA256Final(hashed + body, &hash);
    checkpoint_try(hashed, body + SHA256_DIGEST_LENGTH);
    memory_free(hashed);
    return 0;
}
