/* The way to a connection: names, addresses, time, and what is left behind. Look-ups are played by
 * this file: uv_getaddrinfo is wrapped by the linker. */
#include "redis_store_kit.h"

#include "store/redis/gate.h"

#include <netdb.h>

static struct {
    const char *addresses[4]; /* what the name is; none: it does not exist */
    int64_t takes_ms;         /* how long a look-up takes */
    unsigned asked;
    unsigned answered;
} names;

struct lookup {
    uv_timer_t timer;
    uv_getaddrinfo_t *request;
    uv_getaddrinfo_cb done;
    uint16_t port;
};

int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb done,
                          const char *node, const char *service, const struct addrinfo *hints);
void __wrap_uv_freeaddrinfo(struct addrinfo *list);

void __wrap_uv_freeaddrinfo(struct addrinfo *list) {
    while (list != NULL) {
        struct addrinfo *next = list->ai_next;
        free(list->ai_addr);
        free(list);
        list = next;
    }
}

static struct addrinfo *make_list(uint16_t port) {
    struct addrinfo *first = NULL;
    struct addrinfo **link = &first;
    for (size_t i = 0; i < 4 && names.addresses[i] != NULL; i++) {
        struct addrinfo *item = calloc(1, sizeof *item);
        struct sockaddr_storage *address = calloc(1, sizeof *address);
        assert_true(item != NULL && address != NULL);
        if (uv_ip4_addr(names.addresses[i], port, (struct sockaddr_in *)address) == 0) {
            item->ai_addrlen = sizeof(struct sockaddr_in);
        } else {
            uv_ip6_addr(names.addresses[i], port, (struct sockaddr_in6 *)address);
            item->ai_addrlen = sizeof(struct sockaddr_in6);
        }
        item->ai_family = address->ss_family;
        item->ai_addr = (struct sockaddr *)address;
        *link = item;
        link = &item->ai_next;
    }
    return first;
}

static void on_lookup_closed(uv_handle_t *handle) {
    free(handle->data);
}

static void on_lookup(uv_timer_t *timer) {
    struct lookup *lookup = timer->data;
    struct addrinfo *list = make_list(lookup->port);
    names.answered++;
    lookup->done(lookup->request, list != NULL ? 0 : UV_EAI_NONAME, list);
    uv_close((uv_handle_t *)timer, on_lookup_closed);
}

int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb done,
                          const char *node, const char *service, const struct addrinfo *hints) {
    struct lookup *lookup = calloc(1, sizeof *lookup);
    assert_non_null(lookup);
    assert_string_equal(node, "redis.example");
    assert_int_equal(hints->ai_socktype, SOCK_STREAM);
    names.asked++;
    lookup->request = request;
    lookup->done = done;
    lookup->port = (uint16_t)atoi(service);
    lookup->timer.data = lookup;
    uv_timer_init(loop, &lookup->timer);
    uv_timer_start(&lookup->timer, on_lookup, (uint64_t)names.takes_ms, 0);
    return 0;
}

struct all {
    struct shop shop;
    struct peer peer;
};

static int begin(void **state) {
    static struct all all;
    memset(&names, 0, sizeof names);
    shop_init(&all.shop);
    peer_start(&all.peer, &all.shop);
    snprintf(all.shop.url, sizeof all.shop.url, "redis://redis.example:%u", all.peer.port);
    *state = &all;
    return 0;
}

static int end(void **state) {
    struct all *all = *state;
    if (all->shop.store != NULL) {
        shop_close(&all->shop);
    }
    peer_stop(&all->peer);
    shop_finish(&all->shop);
    return 0;
}

#define GATE_TEST(function) cmocka_unit_test_setup_teardown((function), begin, end)

static void all_addresses_are_tried(void **state) {
    struct all *all = *state;
    struct store_request request = shop_request(0, 1);
    names.addresses[0] = "127.0.0.2"; /* nothing listens there */
    names.addresses[1] = "::1";
    names.addresses[2] = "127.0.0.1";
    shop_open(&all->shop);
    shop_expect(&all->shop, STORE_RENEWED, &request, OUTCOME_YES);
}

/* An address whose listener never accepts: the queue of its connections is full. */
struct black_hole {
    int listener;
    int filler[8];
};

static void black_hole_make(struct black_hole *hole, const char *address, unsigned port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    assert_int_equal(uv_inet_pton(AF_INET, address, &name.sin_addr), 0);
    hole->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(hole->listener, (struct sockaddr *)&name, sizeof name), 0);
    assert_int_equal(listen(hole->listener, 0), 0);
    for (size_t i = 0; i < 8; i++) {
        hole->filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(hole->filler[i], (struct sockaddr *)&name, sizeof name);
    }
}

static void black_hole_fill(struct black_hole *hole) {
    for (size_t i = 0; i < 8; i++) {
        close(hole->filler[i]);
    }
    close(hole->listener);
}

static void dead_address_leaves_time_for_the_next(void **state) {
    struct all *all = *state;
    struct black_hole hole;
    struct store_request request = shop_request(0, 1);
    black_hole_make(&hole, "127.0.0.2", all->peer.port);
    names.addresses[0] = "127.0.0.2";
    names.addresses[1] = "127.0.0.1";
    shop_open(&all->shop);
    request.timeout_ns = NS_PER_S;
    int64_t start_ns = clock_now().boot_ns;
    shop_expect(&all->shop, STORE_RENEWED, &request, OUTCOME_YES);
    assert_true(clock_now().boot_ns - start_ns < 900 * NS_PER_MS);

    /* The one that worked goes first from now on; the name is looked up anew. */
    unsigned asked = names.asked;
    for (int i = 0; i < 3; i++) {
        peer_hang_up(&all->peer);
        shop_turn(&all->shop, 50 * NS_PER_MS, NULL, 0); /* it notices that, and connects */
        start_ns = clock_now().boot_ns;
        shop_expect(&all->shop, STORE_RENEWED, &request, OUTCOME_YES);
        assert_true(clock_now().boot_ns - start_ns < 300 * NS_PER_MS);
    }
    assert_true(names.asked > asked);
    black_hole_fill(&hole);
}

static void unknown_names_are_told(void **state) {
    struct all *all = *state;
    struct store_request request = shop_request(0, 1);
    shop_open(&all->shop);
    const struct store_event *event =
        shop_expect(&all->shop, STORE_RENEWED, &request, OUTCOME_UNSURE);
    assert_int_equal(event->reply.reason, REASON_STORE_UNREACHABLE);
    assert_non_null(strstr(event->text, "redis.example"));
    names.addresses[0] = "127.0.0.1"; /* it is known now */
    int64_t start_ns = clock_now().boot_ns;
    shop_expect(&all->shop, STORE_RENEWED, &request, OUTCOME_YES);
    assert_true(clock_now().boot_ns - start_ns < NS_PER_S);
}

static void hanging_lookups_do_not_pile_up(void **state) {
    struct all *all = *state;
    struct store_request request = shop_request(0, 1);
    names.takes_ms = 1500;
    names.addresses[0] = "127.0.0.1";
    request.timeout_ns = 100 * NS_PER_MS;
    shop_open(&all->shop);
    int64_t start_ns = clock_now().boot_ns;
    while (clock_now().boot_ns - start_ns < 1200 * NS_PER_MS) {
        int64_t called_ns = clock_now().boot_ns;
        const struct store_event *event =
            shop_expect(&all->shop, STORE_RENEWED, &request, OUTCOME_UNSURE);
        assert_int_equal(event->reply.reason, REASON_STORE_UNREACHABLE);
        assert_true(clock_now().boot_ns - called_ns < 300 * NS_PER_MS);
    }
    assert_int_equal(names.asked, 1);
    request.timeout_ns = 3 * NS_PER_S;
    shop_expect(&all->shop, STORE_RENEWED, &request, OUTCOME_YES);
}

static void closes_during_a_lookup(void **state) {
    struct all *all = *state;
    names.takes_ms = 100;
    names.addresses[0] = "127.0.0.1";
    for (int round = 0; round < 2; round++) {
        struct store_request request = shop_request(0, 1);
        shop_open(&all->shop);
        shop_issue(&all->shop, STORE_ACQUIRED, &request);
        shop_turn(&all->shop, 50 * NS_PER_MS * round, NULL, 0);
        shop_close(&all->shop);
        assert_int_equal(names.asked, names.answered); /* waited for: its memory was in use */
    }
    assert_int_equal(all->shop.answers[0], 0);
}

/* The gate alone: a thousand refused connections. */
struct refusals {
    struct redis_gate gate;
    struct redis_resolver resolver;
    struct store_lives lives;
    struct redis_url url;
    unsigned failed;
    bool gone;
};

static void on_refused(void *context, enum redis_gate_end end_, const char *text) {
    struct refusals *refusals = context;
    assert_int_equal(end_, REDIS_GATE_UNREACHABLE);
    assert_non_null(strstr(text, "refused"));
    refusals->failed++;
}

static void on_wonder(void *context, struct redis_stream *stream, uint32_t warnings) {
    (void)context;
    (void)warnings;
    redis_stream_close(stream);
    fail_msg("connected to nothing");
}

static void on_gone(void *context) {
    struct refusals *refusals = context;
    refusals->gone = true;
}

static void refusals_leave_nothing_behind(void **state) {
    struct all *all = *state;
    static struct refusals refusals;
    memset(&refusals, 0, sizeof refusals);
    refusals.lives.empty = on_gone;
    refusals.lives.context = &refusals;
    snprintf(refusals.url.host, sizeof refusals.url.host, "127.0.0.1");
    refusals.url.port = (uint16_t)redis_server_free_port();
    redis_resolver_init(&refusals.resolver, &all->shop.loop, &refusals.lives, refusals.url.host,
                        refusals.url.port);
    struct redis_gate_setup setup = {.loop = &all->shop.loop,
                                     .url = &refusals.url,
                                     .resolver = &refusals.resolver,
                                     .lives = &refusals.lives,
                                     .requests = true,
                                     .on_open = on_wonder,
                                     .on_failed = on_refused,
                                     .context = &refusals};
    redis_gate_init(&refusals.gate, &setup);
    unsigned files = shop_open_files();
    for (unsigned i = 0; i < 1000; i++) {
        redis_gate_start(&refusals.gate, NS_PER_S);
        shop_turn(&all->shop, 2 * NS_PER_S, &refusals.failed, i + 1);
        assert_int_equal(refusals.failed, i + 1);
    }
    uv_run(&all->shop.loop, UV_RUN_NOWAIT);
    assert_int_equal(shop_open_files(), files);
    assert_int_equal(refusals.lives.count, 1); /* its timer */
    refusals.lives.closing = true;
    redis_gate_close(&refusals.gate);
    uv_run(&all->shop.loop, UV_RUN_NOWAIT);
    assert_true(refusals.gone);
}

static char told_text[REDIS_GATE_TEXT];

static void on_gate_failed(void *context, enum redis_gate_end gate_end, const char *text) {
    (void)context;
    assert_int_equal(gate_end, REDIS_GATE_TIMEOUT);
    snprintf(told_text, sizeof told_text, "%s", text);
}

static void on_lives_empty(void *context) {
    (void)context;
}

/* As behind Sentinels that have taken all the time. */
static void no_time_left_is_told_in_words(void **state) {
    struct all *all = *state;
    struct redis_url url = {.host = "127.0.0.1", .port = 1};
    struct store_lives lives = {.empty = on_lives_empty};
    struct redis_resolver resolver;
    struct redis_gate gate;
    redis_resolver_init(&resolver, &all->shop.loop, &lives, url.host, url.port);
    struct redis_gate_setup setup = {.loop = &all->shop.loop,
                                     .url = &url,
                                     .resolver = &resolver,
                                     .lives = &lives,
                                     .on_failed = on_gate_failed};
    told_text[0] = '\0';
    redis_gate_init(&gate, &setup);
    redis_gate_start(&gate, 0);
    while (told_text[0] == '\0' && gate.state != REDIS_GATE_IDLE) {
        uv_run(&all->shop.loop, UV_RUN_NOWAIT);
    }
    redis_gate_close(&gate);
    shop_turn(&all->shop, 20 * NS_PER_MS, NULL, 0);
    assert_string_not_equal(told_text, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GATE_TEST(no_time_left_is_told_in_words),         GATE_TEST(all_addresses_are_tried),
        GATE_TEST(dead_address_leaves_time_for_the_next), GATE_TEST(unknown_names_are_told),
        GATE_TEST(hanging_lookups_do_not_pile_up),        GATE_TEST(closes_during_a_lookup),
        GATE_TEST(refusals_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
