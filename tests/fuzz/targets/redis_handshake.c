/* What a server or a Sentinel answers on a new connection: the first byte says what was asked, then
 * come the answers as they arrive. A connection is good only after every answer; a failure says why
 * in a text within its bounds; an address of a master is a name and a port. */
#include "store/redis/barrier.h"
#include "store/redis/handshake.h"
#include "store/redis/reader.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) {
        abort();
    }
}

/* In the place of a connection. */
bool redis_stream_send(struct redis_stream *stream, char *bytes, size_t size) {
    (void)stream;
    require(size > 0);
    free(bytes);
    return true;
}

static void check_master(const struct redis_master *master) {
    require(memchr(master->host, '\0', sizeof master->host) != NULL);
    require((master->host[0] != '\0') == (master->port != 0));
    for (const char *at = master->host; *at != '\0'; at++) {
        require(*at > ' ' && *at <= '~');
    }
}

/* What a connection hears later, of these shapes: an answer to WAIT, a message of a Sentinel. */
static void check_later(const redisReply *reply) {
    char text[REDIS_BARRIER_TEXT];
    struct redis_master master = {.port = 0};
    enum redis_barrier_result result = redis_barrier_read(2, reply, text);
    require(result != REDIS_BARRIER_PASSED ||
            (reply->type == REDIS_REPLY_INTEGER && reply->integer >= 2));
    require(memchr(text, '\0', sizeof text) != NULL);
    if (reply->type == REDIS_REPLY_STRING &&
        redis_master_read_switch(reply->str, "mine", &master)) {
        require(strncmp(reply->str, "mine ", 5) == 0 && master.port != 0);
    }
    check_master(&master);
}

static enum redis_handshake_result take(struct redis_handshake *handshake,
                                        const redisReply *reply) {
    size_t answered = handshake->answered;
    enum redis_handshake_result result = redis_handshake_take(handshake, reply);
    require(memchr(handshake->problem, '\0', sizeof handshake->problem) != NULL);
    require(memchr(handshake->version, '\0', sizeof handshake->version) != NULL);
    check_master(&handshake->master);
    if (result == REDIS_HANDSHAKE_FAILED) {
        require(handshake->problem[0] != '\0');
    } else {
        require(handshake->answered == answered + 1);
        require((result == REDIS_HANDSHAKE_DONE) == (handshake->answered == handshake->count));
    }
    if (result == REDIS_HANDSHAKE_DONE && handshake->setup.sentinel) {
        require(handshake->master.port != 0);
    }
    return result;
}

static void play(struct redis_handshake *handshake, const uint8_t *data, size_t size) {
    struct redis_reader reader;
    redisReply *reply = NULL;
    enum redis_handshake_result result = REDIS_HANDSHAKE_MORE;
    redis_reader_init(&reader);
    redis_reader_feed(&reader, (const char *)data, size);
    while (redis_reader_next(&reader, &reply) == REDIS_READER_REPLY) {
        check_later(reply);
        if (result == REDIS_HANDSHAKE_MORE) {
            result = take(handshake, reply);
        }
        freeReplyObject(reply);
    }
    redis_reader_finish(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct redis_url url;
    struct store_secrets secrets = {.password = "p"};
    struct redis_handshake handshake;
    if (size == 0) {
        return 0;
    }
    memset(&url, 0, sizeof url);
    url.database = (data[0] & 8) != 0 ? 3 : 0;
    url.sentinel = (data[0] & 2) != 0;
    strcpy(url.master, "mine");
    struct redis_handshake_setup setup = {.url = &url,
                                          .secrets = (data[0] & 4) != 0 ? &secrets : NULL,
                                          .host = (data[0] & 16) != 0 ? "::1" : "127.0.0.1",
                                          .port = 6379,
                                          .requests = (data[0] & 3) == 1,
                                          .sentinel = url.sentinel};
    if (redis_handshake_begin(&handshake, &setup, NULL) == REDIS_HANDSHAKE_MORE) {
        play(&handshake, data + 1, size - 1);
    }
    return 0;
}
