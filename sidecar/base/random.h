#ifndef GAVEL_BASE_RANDOM_H
#define GAVEL_BASE_RANDOM_H

#include <stddef.h>

/* Random bytes from the kernel (getrandom), read ahead in small blocks. Never fails: without
 * randomness no nonce is safe, so the process ends. Loop thread only. */
void random_bytes(void *bytes, size_t count);

#endif
