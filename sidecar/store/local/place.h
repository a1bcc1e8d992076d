#ifndef GAVEL_STORE_LOCAL_PLACE_H
#define GAVEL_STORE_LOCAL_PLACE_H

#include "base/error.h"
#include "store/local/trouble.h"

#include <stdbool.h>

#define PLACE_SCHEME "local:"
#define PLACE_DIR_MAX 1024 /* bytes of DIR, also once its links are resolved */

/* Where the files of one namespace are. Does not change once it is open; any thread may read. */
struct place {
    char *dir;    /* absolute, no links in it; owned */
    char *folder; /* DIR/NS; owned */
    bool in_pod;  /* this process runs in Kubernetes */
};

/* The files of one election: NAME.lock, NAME.record and, while that is written, NAME.tmp. None of
 * the endings is the end of another, so the files of two elections are never the same. */
struct place_files {
    int fd;             /* the open folder */
    const char *folder; /* its path, DIR/NS */
    const char *election;
};
#define PLACE_NAME_MAX 100 /* bytes of an election's or a namespace's name */
#define PLACE_FILE_MAX (PLACE_NAME_MAX + 8)

/* Looks at the text of the URL only. */
bool place_check(const char *url, struct error *error);

/* Whether a namespace or an election can be the name of a file. */
bool place_is_name(const char *name);

/* Makes DIR (its parent must exist) and DIR/NS, mode 0700, and checks that they can be used. Blocks
 * for a moment. Logs a doubtful file system. False: error says what to do; nothing to finish. */
bool place_init(struct place *place, const char *url, const char *namespace_, struct error *error);
void place_finish(struct place *place);

/* Opens DIR/NS, which must be on a file system that is accepted; makes it again if it is gone and
 * `make` is true. A descriptor; -1: trouble is set, and errno is ENOENT when it is not there. */
int place_open_folder(const struct place *place, bool make, struct trouble *trouble);

#endif
