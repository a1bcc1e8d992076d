#include "contract.h"

#include "store/fake/fake.h"

#include <stdio.h>

static bool start(struct contract_space *space, char *why, size_t why_size) {
    (void)why;
    (void)why_size;
    space->data = fake_server_create("contract");
    snprintf(space->url, sizeof space->url, "fake:contract");
    return true;
}

static void stop(struct contract_space *space) {
    fake_server_destroy(space->data);
}

static void freeze(struct contract_space *space) {
    struct fake_server *server = space->data;
    server->frozen = true;
}

static void thaw(struct contract_space *space) {
    struct fake_server *server = space->data;
    server->frozen = false;
}

const struct contract_subject contract_subject = {
    .name = "fake",
    .ops = &fake_store_ops,
    .start = start,
    .stop = stop,
    .freeze = freeze,
    .thaw = thaw,
    .wakes = true,
    .expires = true,
};
