#ifndef GAVEL_STORE_LOCAL_LOCAL_H
#define GAVEL_STORE_LOCAL_LOCAL_H

#include "store/store.h"

/*
 * local:DIR, for the replicas of one host: an open-file-description lock on DIR/NS/NAME.lock and
 * the record beside it, DIR/NS/NAME.record. The kernel frees the lock with the process; a process
 * that is stopped keeps it. Files belong to the user who made them (0600, folders 0700): all
 * replicas of one election run as the same user.
 *
 * Followers sleep: inotify(7) tells them when a descriptor of the lock file that was open for
 * writing is closed, be it by a release or by the end of its process. A WAKE is clean when the
 * holder told of its mark, or when it is not known what happened (news were lost, or the folder
 * cannot be watched: then there is one every 100 ms). Who only looks opens nothing for writing.
 *
 * Every file operation of a request runs in libuv's thread pool, one at a time for each election.
 * One that hangs (a dying disk) is answered with UNSURE in time, and what it did in the end stays
 * with the nonce that asked for it. `closed` waits for it.
 */
extern const struct store_ops local_store_ops;

#endif
