/* SHA-256 by libmd. */
#include "runner/hash.h"

void hash_init(struct hash *hash)
{
    SHA256Init(&hash->state);
}

void hash_add(struct hash *hash, const void *bytes, size_t size)
{
    if (size)
        SHA256Update(&hash->state, bytes, size);
}

void hash_end(struct hash *hash, char hex[HASH_TEXT_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256Final(digest, &hash->state);
    for (size_t i = 0; i < sizeof digest; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[2 * sizeof digest] = 0;
}

void hash_bytes(const void *bytes, size_t size, char hex[HASH_TEXT_SIZE])
{
    struct hash hash;
    hash_init(&hash);
    hash_add(&hash, bytes, size);
    hash_end(&hash, hex);
}
