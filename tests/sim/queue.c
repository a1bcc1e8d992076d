#include "queue.h"

void queue_init(struct queue *queue) {
    queue->count = 0;
    queue->order = 0;
    queue->spare_count = QUEUE_MOST;
    for (int i = 0; i < QUEUE_MOST; i++) {
        queue->spare[i] = QUEUE_MOST - 1 - i;
    }
}

static bool before(const struct queue *queue, int a, int b) {
    if (queue->heap[a].at_ns != queue->heap[b].at_ns) {
        return queue->heap[a].at_ns < queue->heap[b].at_ns;
    }
    return queue->heap[a].order < queue->heap[b].order;
}

static void swap(struct queue *queue, int a, int b) {
    __typeof__(queue->heap[0]) held = queue->heap[a];
    queue->heap[a] = queue->heap[b];
    queue->heap[b] = held;
}

void queue_push(struct queue *queue, const struct message *message) {
    if (queue->spare_count == 0) {
        return;
    }
    int slot = queue->spare[--queue->spare_count];
    queue->slots[slot] = *message;
    int at = queue->count++;
    queue->heap[at].at_ns = message->at_ns;
    queue->heap[at].order = queue->order++;
    queue->heap[at].slot = slot;
    while (at > 0 && before(queue, at, (at - 1) / 2)) {
        swap(queue, at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

bool queue_pop(struct queue *queue, struct message *message) {
    if (queue->count == 0) {
        return false;
    }
    int slot = queue->heap[0].slot;
    *message = queue->slots[slot];
    queue->spare[queue->spare_count++] = slot;
    queue->heap[0] = queue->heap[--queue->count];
    for (int at = 0;;) {
        int least = at;
        for (int child = 2 * at + 1; child <= 2 * at + 2 && child < queue->count; child++) {
            least = before(queue, child, least) ? child : least;
        }
        if (least == at) {
            return true;
        }
        swap(queue, at, least);
        at = least;
    }
}

void queue_drop(struct queue *queue, enum message_type type) {
    for (int i = 0; i < queue->count; i++) {
        struct message *message = &queue->slots[queue->heap[i].slot];
        if (message->type == type) {
            message->type = MESSAGE_CALL;
            message->call = NULL;
        }
    }
}
