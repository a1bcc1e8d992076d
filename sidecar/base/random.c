#include "base/random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static unsigned char ahead[256]; /* getrandom gives up to 256 bytes without interruption */
static size_t ahead_left;

static void refill(void) {
    size_t have = 0;
    while (have < sizeof ahead) {
        ssize_t got = getrandom(ahead + have, sizeof ahead - have, 0);
        if (got > 0) {
            have += (size_t)got;
        } else if (got < 0 && errno != EINTR) {
            abort();
        }
    }
    ahead_left = sizeof ahead;
}

void random_bytes(void *bytes, size_t count) {
    unsigned char *to = bytes;
    while (count > 0) {
        if (ahead_left == 0) {
            refill();
        }
        size_t part = count < ahead_left ? count : ahead_left;
        unsigned char *from = ahead + sizeof ahead - ahead_left;
        memcpy(to, from, part);
        memset(from, 0, part); /* a nonce is used once */
        ahead_left -= part;
        to += part;
        count -= part;
    }
}
