#include "store/redis/ops.h"

#include "base/memory.h"

#include <stdlib.h>

void redis_ops_init(struct redis_ops *ops, size_t count) {
    *ops = (struct redis_ops){.list = memory_zeroed(count, sizeof *ops->list),
                              .count = count,
                              .order = memory_zeroed(count + 1, sizeof *ops->order)};
}

void redis_ops_finish(struct redis_ops *ops) {
    for (size_t i = 0; i < ops->count; i++) {
        free(ops->list[i].text);
    }
    free(ops->list);
    free(ops->order);
}

void redis_ops_push(struct redis_ops *ops, size_t index) {
    ops->order[(ops->first + ops->due) % (ops->count + 1)] = index;
    ops->due++;
}

size_t redis_ops_pop(struct redis_ops *ops) {
    size_t index = ops->order[ops->first];
    ops->first = (ops->first + 1) % (ops->count + 1);
    ops->due--;
    return index;
}

void redis_ops_forget(struct redis_ops *ops) {
    ops->first = 0;
    ops->due = 0;
}

void redis_op_doubt(struct redis_op *op, enum election_reason reason, const char *text) {
    op->state = REDIS_OP_DOUBTED;
    op->reason = reason;
    free(op->text);
    op->text = memory_text_part(text, REDIS_OP_TEXT - 1);
}

void redis_ops_doubt_under_way(struct redis_ops *ops, enum election_reason reason,
                               const char *text) {
    for (size_t i = 0; i < ops->count; i++) {
        if (redis_op_is_under_way(&ops->list[i])) {
            redis_op_doubt(&ops->list[i], reason, text);
        }
    }
}

void redis_ops_doubt_queued(struct redis_ops *ops, enum election_reason reason, const char *text) {
    for (size_t i = 0; i < ops->count; i++) {
        if (ops->list[i].state == REDIS_OP_QUEUED) {
            redis_op_doubt(&ops->list[i], reason, text);
        }
    }
}

int64_t redis_ops_deadline_ns(const struct redis_ops *ops) {
    int64_t at_ns = NEVER_NS;
    for (size_t i = 0; i < ops->count; i++) {
        const struct redis_op *op = &ops->list[i];
        if (redis_op_is_under_way(op) && op->deadline_ns < at_ns) {
            at_ns = op->deadline_ns;
        }
    }
    return at_ns;
}

int64_t redis_ops_earliest_ns(const struct redis_ops *ops, bool connected) {
    int64_t at_ns = NEVER_NS;
    for (size_t i = 0; i < ops->count; i++) {
        const struct redis_op *op = &ops->list[i];
        if (op->state != REDIS_OP_IDLE && op->deadline_ns < at_ns) {
            at_ns = op->deadline_ns;
        }
        if (op->state == REDIS_OP_QUEUED && connected && op->hold_ns < at_ns) {
            at_ns = op->hold_ns;
        }
    }
    return at_ns;
}
