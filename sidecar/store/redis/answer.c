#include "store/redis/answer.h"

#include <string.h>

#define TTL_MAX_MS UINT64_C(3600000)
/* Redis' own bound on an expiry is far above; this one keeps nanoseconds within 64 bits. */
#define EXPIRY_MAX_MS UINT64_C(9000000000000)
#define APART_MOST UINT64_C(3)
#define REPLICAS_MAX UINT64_C(10000)
#define CLOCK_MAX_US UINT64_C(9007199254740991) /* 2^53 - 1: exact in Lua */

/* Where the members of an answer stand; the first six are common to all. */
enum member {
    MEMBER_STATUS,
    MEMBER_TOKEN,
    MEMBER_TTL,
    MEMBER_CLOCK,
    MEMBER_SERVER,
    MEMBER_REPLICAS,
    MEMBER_COMMON_COUNT,
    MEMBER_HOW = MEMBER_COMMON_COUNT,
    MEMBER_DOUBT,
    MEMBER_END,
    MEMBER_GRANT_COUNT,
    MEMBER_NONCE = MEMBER_COMMON_COUNT,
    MEMBER_HOLDER,
    MEMBER_EXPIRY,
    MEMBER_STUCK,
    MEMBER_HELD_COUNT,
};

static const struct {
    const char *name;
    enum prior_doubt doubt;
} doubts[] = {
    {"no-record", DOUBT_NO_RECORD},
    {"other-server", DOUBT_OTHER_SERVER},
    {"unknown-server", DOUBT_UNKNOWN_SERVER},
    {"token-behind", DOUBT_TOKEN_BEHIND},
    {"unclean", DOUBT_UNCLEAN},
};

static const redisReply *member(const redisReply *answer, enum member index) {
    return answer->element[index];
}

static bool is_text(const redisReply *text, const char *expected) {
    return text->len == strlen(expected) && memcmp(text->str, expected, text->len) == 0;
}

static bool read_whole(const redisReply *text, uint64_t most, uint64_t *number) {
    if (text->len == 0 || text->len > 16) {
        return false;
    }
    *number = 0;
    for (size_t i = 0; i < text->len; i++) {
        if (text->str[i] < '0' || text->str[i] > '9') {
            return false;
        }
        *number = *number * 10 + (uint64_t)(text->str[i] - '0');
    }
    return *number <= most;
}

static bool read_flag(const redisReply *text, bool *flag) {
    *flag = is_text(text, "1");
    return *flag || is_text(text, "0");
}

static bool all_texts(const redisReply *answer) {
    if (answer->type != REDIS_REPLY_ARRAY || answer->elements < MEMBER_COMMON_COUNT) {
        return false;
    }
    for (size_t i = 0; i < answer->elements; i++) {
        if (answer->element[i]->type != REDIS_REPLY_STRING) {
            return false;
        }
    }
    return true;
}

static bool read_server(const redisReply *text, char *server) {
    if (text->len >= SERVER_ID_MAX) {
        return false;
    }
    for (size_t i = 0; i < text->len; i++) {
        if (text->str[i] <= ' ' || text->str[i] > '~') {
            return false;
        }
    }
    memcpy(server, text->str, text->len);
    server[text->len] = '\0';
    return true;
}

static bool read_common(const redisReply *answer, struct store_reply *reply) {
    uint64_t ttl_ms = 0;
    uint64_t clock_us = 0;
    uint64_t replicas = 0;
    if (!read_whole(member(answer, MEMBER_TOKEN), TOKEN_MAX, &reply->token) ||
        !read_whole(member(answer, MEMBER_TTL), TTL_MAX_MS, &ttl_ms) ||
        !read_whole(member(answer, MEMBER_CLOCK), CLOCK_MAX_US, &clock_us) || clock_us == 0 ||
        !read_server(member(answer, MEMBER_SERVER), reply->server) ||
        !read_whole(member(answer, MEMBER_REPLICAS), REPLICAS_MAX, &replicas)) {
        return false;
    }
    reply->longest_ttl_ns = (int64_t)ttl_ms * NS_PER_MS;
    reply->server_now_us = (int64_t)clock_us;
    reply->warnings = replicas > 0 ? WARNING_STORE_REPLICATED_ASYNC : 0;
    return true;
}

static bool read_doubt(const redisReply *text, enum prior_doubt *doubt) {
    for (size_t i = 0; i < sizeof doubts / sizeof doubts[0]; i++) {
        if (is_text(text, doubts[i].name)) {
            *doubt = doubts[i].doubt;
            return true;
        }
    }
    return false;
}

static bool read_prior(const redisReply *answer, struct store_reply *reply) {
    const redisReply *how = member(answer, MEMBER_HOW);
    const redisReply *doubt = member(answer, MEMBER_DOUBT);
    uint64_t end_us = 0;
    if (!read_whole(member(answer, MEMBER_END), CLOCK_MAX_US, &end_us)) {
        return false;
    }
    if (is_text(how, "none")) {
        reply->prior = PRIOR_NONE;
        return end_us == 0 && read_doubt(doubt, &reply->doubt);
    }
    reply->prior = is_text(how, "clean") ? PRIOR_CLEAN : PRIOR_END;
    reply->prior_end_us = (int64_t)end_us;
    bool known = reply->prior == PRIOR_CLEAN ? end_us == 0 : is_text(how, "end");
    return known && is_text(doubt, "none");
}

static bool read_yes(const redisReply *answer, enum store_event_type type,
                     struct store_reply *reply) {
    size_t count = type == STORE_ACQUIRED ? MEMBER_GRANT_COUNT : MEMBER_COMMON_COUNT;
    reply->outcome = OUTCOME_YES;
    return answer->elements == count && reply->token != 0 &&
           (type != STORE_ACQUIRED || read_prior(answer, reply));
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool redis_nonce_read(const char *text, size_t length, unsigned char *nonce) {
    if (length != (size_t)2 * NONCE_BYTES) {
        return false;
    }
    for (size_t i = 0; i < NONCE_BYTES; i++) {
        int high = hex_value(text[2 * i]);
        int low = hex_value(text[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        nonce[i] = (unsigned char)(high * 16 + low);
    }
    return true;
}

static void read_holder(const redisReply *text, char *holder) {
    bool shown = text->len >= 1 && text->len <= IDENTITY_MAX;
    for (size_t i = 0; shown && i < text->len; i++) {
        char c = text->str[i];
        shown = c > ' ' && c <= '~' && c != '"' && c != '\'';
    }
    if (shown) {
        memcpy(holder, text->str, text->len);
        holder[text->len] = '\0';
    } else {
        memcpy(holder, "?", sizeof "?");
    }
}

static bool read_held(const redisReply *answer, struct store_reply *reply) {
    bool stuck = false;
    uint64_t left_ms = 0;
    if (answer->elements != MEMBER_HELD_COUNT) {
        return false;
    }
    const redisReply *nonce = member(answer, MEMBER_NONCE);
    if (!redis_nonce_read(nonce->str, nonce->len, reply->holder_nonce) ||
        !read_flag(member(answer, MEMBER_STUCK), &stuck)) {
        return false;
    }
    const redisReply *expiry = member(answer, MEMBER_EXPIRY);
    if (is_text(expiry, "-1")) {
        reply->expires_in_ns = -1;
    } else if (read_whole(expiry, EXPIRY_MAX_MS, &left_ms)) {
        reply->expires_in_ns = (int64_t)left_ms * NS_PER_MS;
    } else {
        return false;
    }
    reply->held = true;
    reply->holder_nonce_known = true;
    reply->warnings |= stuck ? WARNING_KEY_WITHOUT_EXPIRY : 0;
    read_holder(member(answer, MEMBER_HOLDER), reply->holder);
    return true;
}

static bool read_no(const redisReply *answer, enum store_event_type type,
                    struct store_reply *reply) {
    const redisReply *status = member(answer, MEMBER_STATUS);
    reply->outcome = OUTCOME_NO;
    reply->expires_in_ns = -1;
    bool held_listed = is_text(status, "held-listed");
    bool listed = is_text(status, "listed");
    reply->warnings |= held_listed || listed ? (uint32_t)WARNING_NODE_LIST_DIFFERS : 0;
    if (held_listed || is_text(status, "held")) {
        reply->reason = type == STORE_ACQUIRED ? REASON_HELD_BY_OTHER : REASON_RENEWAL_REFUSED;
        return read_held(answer, reply);
    }
    if (listed) {
        reply->reason = REASON_STORE_REFUSED;
        reply->held = true;
    } else if (is_text(status, "foreign")) {
        reply->reason = REASON_FOREIGN_VALUE;
        reply->held = true;
        memcpy(reply->holder, "?", sizeof "?");
    } else if (is_text(status, "free")) {
        reply->reason = type == STORE_ACQUIRED ? REASON_STARTING : REASON_RENEWAL_REFUSED;
    } else {
        return false;
    }
    return answer->elements == MEMBER_COMMON_COUNT;
}

bool redis_answer_read(const redisReply *answer, enum store_event_type type,
                       struct store_reply *reply) {
    memset(reply, 0, sizeof *reply);
    bool right = all_texts(answer) && read_common(answer, reply) &&
                 (is_text(member(answer, MEMBER_STATUS), "yes") ? read_yes(answer, type, reply)
                                                                : read_no(answer, type, reply));
    if (!right) {
        memset(reply, 0, sizeof *reply);
    }
    return right;
}

bool redis_answer_take_list(redisReply *answer, unsigned *apart) {
    uint64_t number = 0;
    if (answer->type != REDIS_REPLY_ARRAY || answer->elements == 0) {
        return false;
    }
    const redisReply *last = answer->element[answer->elements - 1];
    if (last->type != REDIS_REPLY_STRING || !read_whole(last, APART_MOST, &number)) {
        return false;
    }
    *apart = (unsigned)number;
    answer->elements--;
    return true;
}

unsigned redis_answer_replicas(const redisReply *answer) {
    uint64_t replicas = 0;
    return read_whole(member(answer, MEMBER_REPLICAS), REPLICAS_MAX, &replicas) ? (unsigned)replicas
                                                                                : 0;
}
