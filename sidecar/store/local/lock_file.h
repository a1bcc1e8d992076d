#ifndef GAVEL_STORE_LOCAL_LOCK_FILE_H
#define GAVEL_STORE_LOCAL_LOCK_FILE_H

#include "store/local/place.h"

#include <sys/types.h>

/* The open-file-description lock on DIR/NS/NAME.lock. All of it may block; thread-safe. */

/* Which file it is: a path can come to name another one. */
struct lock_file_id {
    dev_t device;
    ino_t inode;
};

enum lock_file_tried { LOCK_FILE_GOT, LOCK_FILE_BUSY, LOCK_FILE_FAILED };
/* Makes the file if need be, locks it, and sees to it that the path still names it. GOT: *fd holds
 * the lock. GOT and BUSY set *id. FAILED: trouble is set. */
enum lock_file_tried lock_file_take(const struct place_files *files, int *fd,
                                    struct lock_file_id *id, struct trouble *trouble);

enum lock_file_seen { LOCK_FILE_FREE, LOCK_FILE_HELD, LOCK_FILE_UNSEEN };
/* Only looks, which wakes nobody who watches the folder. `*id` is zeroed when there is no file.
 * UNSEEN: trouble is set. */
enum lock_file_seen lock_file_look(const struct place_files *files, struct lock_file_id *id,
                                   struct trouble *trouble);

enum lock_file_match { LOCK_FILE_SAME, LOCK_FILE_REPLACED, LOCK_FILE_UNKNOWN };
/* Whether the path DIR/NS/NAME.lock names this file now. UNKNOWN: trouble is set. */
enum lock_file_match lock_file_match(const char *folder, const char *election,
                                     struct lock_file_id id, struct trouble *trouble);

/* Unlocks and closes, which those who watch the folder see. `announce` touches the file in between:
 * the record has the clean mark. */
void lock_file_give(int fd, bool announce);

#endif
