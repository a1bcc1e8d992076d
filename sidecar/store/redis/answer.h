#ifndef GAVEL_STORE_REDIS_ANSWER_H
#define GAVEL_STORE_REDIS_ANSWER_H

#include "store/store.h"

#include <hiredis/hiredis.h>

/*
 * Reads what the scripts answer. Only their exact shapes are answers: a flat array of strings, a
 * status word first, its fixed number of members, each within its bounds. Fills in outcome,
 * reason and all that the reply says, but not `sent`. False: it is none of these, and `reply`
 * holds nothing. Re-entrant.
 */
bool redis_answer_read(const redisReply *answer, enum store_event_type type,
                       struct store_reply *reply);

/* Where a list of nodes was sent along, an answer ends with how far the record's is from it: 0, 1,
 * 2 for more; 3: it is another, and has run out. Takes that off `answer`, a copy of its head.
 * False: it does not end so. */
bool redis_answer_take_list(redisReply *answer, unsigned *apart);

/* Of NONCE_BYTES, as the scripts write them: small hex digits. False: it is none. */
bool redis_nonce_read(const char *text, size_t length, unsigned char *nonce);

/* How many replicas were attached to the server, of an answer that was read. */
unsigned redis_answer_replicas(const redisReply *answer);

#endif
