/* SHA-256 in hexadecimal: the names of texts, tokenizers, runs and files. */
#ifndef RUNNER_HASH_H
#define RUNNER_HASH_H

#include <stddef.h>
#include <sys/types.h>

#include <sha2.h>

enum { HASH_TEXT_SIZE = 65 }; /* 64 digits and the final 0 */

struct hash {
    SHA2_CTX state;
};

void hash_init(struct hash *hash);
void hash_add(struct hash *hash, const void *bytes, size_t size);
/* Lower case. The hash must be set up again before it is used again. */
void hash_end(struct hash *hash, char hex[HASH_TEXT_SIZE]);

/* All of it at once. */
void hash_bytes(const void *bytes, size_t size, char hex[HASH_TEXT_SIZE]);

#endif
