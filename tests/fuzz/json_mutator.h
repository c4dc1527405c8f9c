/* Mutations of the meaning of a JSON text, beside libFuzzer's own of its bytes: the JSON library is not instrumented,
 * so bytes alone hardly ever get past it. For one target each, which names its words. */
#ifndef TESTS_FUZZ_JSON_MUTATOR_H
#define TESTS_FUZZ_JSON_MUTATOR_H

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Of libFuzzer: its own mutation of size bytes in place; returns their new number, at most most. */
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most);

static uint32_t json_draw(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

/* One of the JSON texts, ends with NULL. */
static json_t *json_any(const char *const *words, uint32_t *state)
{
    uint32_t count = 0;
    while (words[count])
        count++;
    return json_loads(words[json_draw(state, count)], JSON_DECODE_ANY, NULL);
}

static void json_mutate_object(json_t *object, const char *const *keys, const char *const *words, uint32_t *state)
{
    size_t count = json_object_size(object), at = count ? json_draw(state, (uint32_t)count) : 0;
    uint32_t names = 0;
    void *place = json_object_iter(object);
    while (at-- > 0 && place)
        place = json_object_iter_next(object, place);
    while (keys[names])
        names++;
    const char *key = place ? json_object_iter_key(place) : keys[0];
    json_t *value = place ? json_object_iter_value(place) : NULL;
    switch (json_draw(state, value && (json_is_object(value) || json_is_array(value)) ? 8 : 4)) {
    case 0: json_object_set_new(object, keys[json_draw(state, names)], json_any(words, state)); break;
    case 1: json_object_del(object, key); break;
    case 2: json_object_set(object, keys[json_draw(state, names)], value ? value : object); break;
    case 3: json_object_set_new(object, key, json_any(words, state)); break;
    default:
        if (json_is_object(value))
            json_mutate_object(value, keys, words, state);
        else
            json_array_set_new(value, json_draw(state, (uint32_t)json_array_size(value) + 1), json_any(words, state));
    }
}

/* The text with something of it changed; 0 when it is no object, or the result does not fit. */
static size_t json_mutate(char *text, size_t size, size_t most, const char *const *keys, const char *const *words,
                          uint32_t seed)
{
    json_t *root = json_loadb(text, size, 0, NULL);
    char *out = NULL;
    size_t length = 0;
    for (uint32_t times = 1 + json_draw(&seed, 3); json_is_object(root) && times > 0; times--)
        json_mutate_object(root, keys, words, &seed);
    if (json_is_object(root))
        out = json_dumps(root, JSON_COMPACT);
    if (out && strlen(out) <= most) {
        length = strlen(out);
        memcpy(text, out, length);
    }
    free(out);
    json_decref(root);
    return length;
}

#endif
