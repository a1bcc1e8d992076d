#include "past.h"

static const struct store_copy *copy_at(const struct world *world, unsigned back) {
    return &world->past[(world->past_count - 1 - back) % PAST_MOST];
}

static unsigned kept(const struct world *world) {
    return world->past_count < PAST_MOST ? world->past_count : PAST_MOST;
}

void past_note(struct world *world) {
    world->past[world->past_count++ % PAST_MOST] =
        (struct store_copy){.at_ns = world->now_ns,
                            .key = world->store.key,
                            .record = world->store.record,
                            .server = world->store.server};
}

struct store_copy past_before(const struct world *world, int64_t lag_ns) {
    struct store_copy copy = {.at_ns = 0};
    for (unsigned back = 0; back < kept(world); back++) {
        copy = *copy_at(world, back);
        if (copy.at_ns <= world->now_ns - lag_ns) {
            break;
        }
    }
    return copy;
}

bool past_clean(const struct world *world, struct store_copy *copy) {
    for (unsigned back = 0; back < kept(world); back++) {
        const struct store_copy *past = copy_at(world, back);
        if (!past->key.present && past->record.present && past->record.clean) {
            *copy = *past;
            return true;
        }
    }
    return false;
}
