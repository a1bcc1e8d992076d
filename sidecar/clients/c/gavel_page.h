#ifndef GAVEL_CLIENTS_C_GAVEL_PAGE_H
#define GAVEL_CLIENTS_C_GAVEL_PAGE_H

/*
 * The shared page: leadership to be asked without a system call. libc only, C11 or C++.
 *
 *     struct gavel_page *page = gavel_page_create("/run/gavel/billing.lease");
 *     struct gavel_page_answer answer;
 *     if (gavel_page_check(page, &answer)) {
 *         effect(answer.token);    // before each effect anew
 *     }
 *
 * Needs no running sidecar: when that is stopped or dead, the page says "not leader" as soon as a
 * deadline in it has passed. Every doubt means "not leader".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The layout: 4096 bytes, 64-bit words in the byte order of the host, here by their index.
 *
 * A reader in any language does this, each load an acquire, and gives up after a bounded number
 * of tries ("not leader"):
 *   1. When the file is opened: regular, 4096 bytes at least, magic, version, boot id and time
 *      namespace as they should be. Else the clocks in it are not the reader's: refuse.
 *   2. Load the sequence; odd: again. Load what is needed. Load the sequence; changed: again.
 *   3. Read CLOCK_BOOTTIME, then CLOCK_REALTIME. Load the sequence; changed: again from 2. Without
 *      this a reader that was held up before it read the clocks would count on more than the
 *      sidecar waits for.
 *      Cheaper: BOOTTIME and the difference of the deadlines say what the time of day should be.
 *      Where CLOCK_REALTIME_COARSE is 0 to 20 ms before that, nobody has stepped the clock by more,
 *      and that is the time; else read CLOCK_REALTIME.
 *   4. Leader if state is 3 and both clocks are before their deadlines. Good for the smallest of
 *      what remains to either and of valid-for, from the BOOTTIME read in 3.
 *   5. Once CLOCK_REALTIME was found past its deadline while BOOTTIME was not, only a page whose
 *      word "renewed" is not before that BOOTTIME says "leader" again.
 */
#define GAVEL_PAGE_BYTES 4096
#define GAVEL_PAGE_MAGIC UINT64_C(0x0047504c45564147) /* "GAVELPG" and a NUL, little-endian */
#define GAVEL_PAGE_VERSION 1
#define GAVEL_PAGE_HOLDER_BYTES 168

enum gavel_page_word {
    /* These never change in one file. */
    GAVEL_PAGE_WORD_MAGIC = 0,
    GAVEL_PAGE_WORD_VERSION = 1,
    GAVEL_PAGE_WORD_BYTES = 2,
    GAVEL_PAGE_WORD_BOOT_ID = 3,        /* two words: the 16 bytes of the kernel's boot id */
    GAVEL_PAGE_WORD_TIME_NAMESPACE = 5, /* inode of /proc/self/ns/time; 0: the kernel has none */
    GAVEL_PAGE_WORD_WRITER = 6,         /* process id, in the writer's own namespace */
    GAVEL_PAGE_WORD_WRITER_START = 7,   /* field 22 of its /proc/PID/stat */
    /* These change, all of them between two changes of the sequence. */
    GAVEL_PAGE_WORD_SEQUENCE = 8,       /* odd: a change is under way */
    GAVEL_PAGE_WORD_STATE = 9,          /* enum gavel_page_state */
    GAVEL_PAGE_WORD_TOKEN = 10,         /* 0 unless leader, as the deadlines are */
    GAVEL_PAGE_WORD_BOOT_DEADLINE = 11, /* CLOCK_BOOTTIME, nanoseconds */
    GAVEL_PAGE_WORD_REAL_DEADLINE = 12, /* CLOCK_REALTIME, nanoseconds */
    GAVEL_PAGE_WORD_RENEWED = 13,       /* BOOTTIME of the request that brought the deadlines */
    GAVEL_PAGE_WORD_VALID_FOR = 14,     /* nanoseconds: the longest that one reading is good for */
    GAVEL_PAGE_WORD_HOLDER_BYTES = 15,
    GAVEL_PAGE_WORD_HOLDER = 16 /* GAVEL_PAGE_HOLDER_BYTES, text without an end */
};

enum gavel_page_state {
    GAVEL_PAGE_UNKNOWN = 0,
    GAVEL_PAGE_FOLLOWER = 1,
    GAVEL_PAGE_PENDING = 2,
    GAVEL_PAGE_LEADER = 3,
    GAVEL_PAGE_RESIGNING = 4
};

/* Why a page cannot be read. */
enum gavel_page_problem {
    GAVEL_PAGE_GOOD = 0,
    GAVEL_PAGE_NO_FILE,       /* it is not there, or cannot be opened or mapped */
    GAVEL_PAGE_NOT_A_PAGE,    /* too short, no regular file, or without the magic */
    GAVEL_PAGE_OTHER_VERSION, /* its layout is not the one of this reader */
    GAVEL_PAGE_OTHER_BOOT,    /* written before a reboot, or on another kernel */
    GAVEL_PAGE_OTHER_CLOCK,   /* the writer is in another time namespace */
    GAVEL_PAGE_NO_PROC,       /* /proc does not tell this reader its boot or namespace */
    GAVEL_PAGE_BUSY           /* changed or stayed half-written at each of many tries */
};

struct gavel_page_answer {
    bool leader;
    uint64_t token;                  /* to be sent along with the effect; 0 unless leader */
    int64_t valid_ns;                /* good for so long from this check; 0 unless leader */
    int64_t deadline_ns;             /* the same as CLOCK_BOOTTIME; 0 unless leader */
    enum gavel_page_state state;     /* LEADER only if `leader` */
    enum gavel_page_problem problem; /* not GOOD: state is unknown */
};

/* One election's page, mapped. To be used by one thread at a time; several threads may each have
 * their own. */
struct gavel_page;

/* `path` is the file NAME.lease in the sidecar's --page-dir; it is copied. The file need not be
 * there yet, it is looked for again later. NULL: out of memory (errno is set). */
struct gavel_page *gavel_page_create(const char *path);
void gavel_page_destroy(struct gavel_page *page); /* NULL is allowed */

/*
 * Whether this replica leads now. No allocation and no system call, where the kernel's vDSO reads
 * the clocks; only while the answer is "not leader", at most ten times a second, the path is looked
 * at for a new file. `answer` may be NULL. Returns answer->leader.
 *
 * The file must not be made shorter by others: touching a page that is gone ends the process
 * (SIGBUS). The sidecar never does it.
 */
bool gavel_page_check(struct gavel_page *page, struct gavel_page_answer *answer);

/* Checks, and writes who leads as far as the page knows; empty while nobody does, this replica's
 * identity only while it leads. Cut to `size`, always ended by NUL. */
void gavel_page_holder(struct gavel_page *page, char *holder, size_t size);

/* What a problem means, for people; static text. */
const char *gavel_page_problem_text(enum gavel_page_problem problem);

#ifdef __cplusplus
}
#endif

#endif
