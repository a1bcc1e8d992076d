#include "store/local/lock.h"

#include "base/clock.h"
#include "store/local/record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void lock_init(struct lock *lock, const struct place *place, const struct store_setup *setup,
               const char *election) {
    memset(lock, 0, sizeof *lock);
    lock->place = place;
    lock->setup = setup;
    lock->election = election;
    lock->fd = -1;
}

void lock_drop(struct lock *lock) {
    if (lock->fd >= 0) {
        lock_file_give(lock->fd, false);
        lock->fd = -1;
    }
}

static bool is_ours(const struct lock *lock, const struct lock_job *job) {
    return lock->fd >= 0 && memcmp(lock->nonce, job->request.nonce, NONCE_BYTES) == 0;
}

static void refuse(struct lock_job *job, const struct trouble *trouble) {
    job->event.reply.outcome = OUTCOME_UNSURE;
    job->event.reply.reason = REASON_STORE_REFUSED;
    memcpy(job->event.text, trouble->text, sizeof job->event.text);
}

static void grant_yes(const struct lock *lock, struct lock_job *job) {
    struct store_reply *reply = &job->event.reply;
    reply->outcome = OUTCOME_YES;
    reply->token = lock->token;
    reply->longest_ttl_ns = lock->longest_ttl_ns;
    reply->held_since_ms = lock->granted_ms;
    if (job->type == STORE_ACQUIRED) {
        reply->prior = lock->prior;
        reply->doubt = lock->doubt;
    }
}

/* The one rule for tokens. False: there is none left. */
static bool mint(const struct lock *lock, struct lock_job *job, uint64_t recorded,
                 uint64_t *token) {
    uint64_t above = recorded > job->request.seen_token ? recorded : job->request.seen_token;
    uint64_t clock_ms = (uint64_t)(clock_now().real_ns / NS_PER_MS);
    *token = above < TOKEN_MAX ? above + 1 : TOKEN_MAX + 1;
    if (*token < clock_ms) {
        *token = clock_ms;
    }
    if (*token < lock->setup->token_floor) {
        *token = lock->setup->token_floor;
    }
    if (*token <= TOKEN_MAX) {
        return true;
    }
    struct trouble trouble;
    trouble_say(&trouble, "refused", lock->place->folder, lock->election,
                "the next token is above 10^14");
    refuse(job, &trouble);
    return false;
}

static bool write_record(const struct lock *lock, int folder, uint64_t token, bool clean,
                         struct trouble *trouble) {
    struct place_files files = {folder, lock->place->folder, lock->election};
    struct record record = {
        .token = token,
        .clean = clean,
        .longest_ttl_ns = lock->longest_ttl_ns,
        .written_ms = lock->granted_ms,
    };
    memcpy(record.nonce, lock->nonce, sizeof record.nonce);
    snprintf(record.holder, sizeof record.holder, "%s", lock->setup->identity);
    return record_write(&files, &record, trouble);
}

/* A NO with what can be seen of the lock and its holder. */
static void describe(const struct lock *lock, struct lock_job *job, bool held,
                     enum record_found found, const struct record *record) {
    struct store_reply *reply = &job->event.reply;
    reply->outcome = OUTCOME_NO;
    reply->held = held;
    reply->expires_in_ns = -1; /* a stopped holder keeps it for good */
    if (found == RECORD_READ) {
        reply->token = record->token;
        reply->longest_ttl_ns = record->longest_ttl_ns;
    }
    if (!held) {
        return;
    }
    bool same_file =
        lock->fd >= 0 && lock->id.device == job->seen.device && lock->id.inode == job->seen.inode;
    if (same_file) {
        reply->holder_nonce_known = true;
        memcpy(reply->holder_nonce, lock->nonce, NONCE_BYTES);
        snprintf(reply->holder, sizeof reply->holder, "%s", lock->setup->identity);
        reply->held_since_ms = lock->granted_ms;
    } else if (found == RECORD_READ && !record->clean) {
        /* A record with the mark is of the holder before: the new one has not written yet. */
        reply->holder_nonce_known = true;
        memcpy(reply->holder_nonce, record->nonce, NONCE_BYTES);
        memcpy(reply->holder, record->holder, sizeof reply->holder);
        reply->held_since_ms = record->written_ms;
    }
}

/* Answers NO from a look at the files. */
static void look(const struct lock *lock, struct lock_job *job, enum election_reason reason) {
    struct trouble trouble;
    struct record record;
    enum record_found found = RECORD_MISSING;
    enum lock_file_seen seen = LOCK_FILE_FREE; /* also when nobody has been here yet */
    int folder = place_open_folder(lock->place, false, &trouble);
    if (folder >= 0) {
        struct place_files files = {folder, lock->place->folder, lock->election};
        seen = lock_file_look(&files, &job->seen, &trouble);
        found = record_read(&files, &record, &job->note);
        close(folder);
    } else if (errno != ENOENT) {
        seen = LOCK_FILE_UNSEEN;
    }
    if (seen == LOCK_FILE_UNSEEN && job->type == STORE_ACQUIRED) {
        refuse(job, &trouble);
        return;
    }
    job->event.reply.reason = reason;
    describe(lock, job, seen == LOCK_FILE_HELD, found, &record);
}

static void judge_prior(struct lock *lock, enum record_found found, const struct record *record,
                        uint64_t seen_token) {
    lock->prior = PRIOR_NONE;
    if (found != RECORD_READ) {
        lock->doubt = DOUBT_NO_RECORD;
    } else if (record->token < seen_token) {
        lock->doubt = DOUBT_TOKEN_BEHIND;
    } else if (!record->clean) {
        lock->doubt = DOUBT_UNCLEAN;
    } else {
        lock->prior = PRIOR_CLEAN;
        lock->doubt = DOUBT_NONE;
    }
}

/* The longest ttl that may still be in use once we have the lock: unless the last lease ended
 * cleanly, whatever we or the record know of passes on to those after us. `record` may be NULL. */
static int64_t longest_ttl_ns(const struct lock *lock, const struct lock_job *job,
                              const struct record *record) {
    int64_t longest_ns = lock->setup->ttl_ns;
    if (lock->prior == PRIOR_CLEAN) {
        return longest_ns;
    }
    if (record != NULL && record->longest_ttl_ns > longest_ns) {
        longest_ns = record->longest_ttl_ns;
    }
    int64_t wait_ns = job->request.wait_ns;
    if (wait_ns > RECORD_LONGEST_TTL_NS) {
        wait_ns = RECORD_LONGEST_TTL_NS;
    }
    return wait_ns > longest_ns ? wait_ns : longest_ns;
}

/* The lock is ours: reads the record, mints, writes. False: nothing is granted, job says why. */
static bool grant(struct lock *lock, struct lock_job *job, const struct place_files *files) {
    struct record record = {0};
    struct trouble trouble;
    enum record_found found = record_read(files, &record, &trouble);
    uint64_t token;

    if (found == RECORD_FAILED) {
        refuse(job, &trouble);
        return false;
    }
    if (found == RECORD_SPOILED) {
        job->note = trouble;
    }
    if (!mint(lock, job, found == RECORD_READ ? record.token : 0, &token)) {
        return false;
    }
    judge_prior(lock, found, &record, job->request.seen_token);
    lock->longest_ttl_ns = longest_ttl_ns(lock, job, found == RECORD_READ ? &record : NULL);
    memcpy(lock->nonce, job->request.nonce, NONCE_BYTES);
    lock->granted_ms = clock_now().real_ns / NS_PER_MS;
    if (!write_record(lock, files->fd, token, false, &trouble)) {
        refuse(job, &trouble);
        return false;
    }
    lock->token = lock->minted = token;
    return true;
}

static void held_by_other(struct lock *lock, struct lock_job *job,
                          const struct place_files *files) {
    struct record record;
    job->event.reply.reason = REASON_HELD_BY_OTHER;
    describe(lock, job, true, record_read(files, &record, &job->note), &record);
}

static void take_in(struct lock *lock, struct lock_job *job, const struct place_files *files) {
    struct trouble trouble;
    /* First a look, which opens nothing for writing: closing that would wake all the others. */
    enum lock_file_seen seen = lock_file_look(files, &job->seen, &trouble);
    if (seen == LOCK_FILE_HELD) {
        held_by_other(lock, job, files);
        return;
    }
    if (seen == LOCK_FILE_UNSEEN) {
        refuse(job, &trouble);
        return;
    }
    switch (lock_file_take(files, &lock->fd, &lock->id, &trouble)) {
    case LOCK_FILE_FAILED:
        refuse(job, &trouble);
        break;
    case LOCK_FILE_BUSY:
        job->seen = lock->id;
        held_by_other(lock, job, files);
        break;
    case LOCK_FILE_GOT:
        job->seen = lock->id;
        if (grant(lock, job, files)) {
            grant_yes(lock, job);
        } else {
            lock_drop(lock);
        }
        break;
    }
}

static void acquire(struct lock *lock, struct lock_job *job) {
    struct trouble trouble;
    if (!job->request.take) {
        look(lock, job, REASON_HELD_BY_OTHER);
        return;
    }
    if (is_ours(lock, job)) {
        enum lock_file_match match =
            lock_file_match(lock->place->folder, lock->election, lock->id, &trouble);
        if (match == LOCK_FILE_SAME) {
            grant_yes(lock, job); /* its first answer was lost */
            return;
        }
        if (match == LOCK_FILE_UNKNOWN) {
            refuse(job, &trouble);
            return;
        }
    }
    lock_drop(lock); /* of a grant that nobody wants any more, or a file that is no longer it */
    int folder = place_open_folder(lock->place, true, &trouble);
    if (folder < 0) {
        refuse(job, &trouble);
        return;
    }
    struct place_files files = {folder, lock->place->folder, lock->election};
    take_in(lock, job, &files);
    close(folder);
}

/* Mints anew under the lock that we hold. */
static void raise_token(struct lock *lock, struct lock_job *job) {
    struct trouble trouble;
    uint64_t token;
    if (!mint(lock, job, lock->minted, &token)) {
        return;
    }
    int folder = place_open_folder(lock->place, false, &trouble);
    if (folder < 0) {
        refuse(job, &trouble);
        return;
    }
    lock->minted = token;
    bool written = write_record(lock, folder, token, false, &trouble);
    close(folder);
    if (!written) {
        refuse(job, &trouble);
        return;
    }
    lock->token = token;
    grant_yes(lock, job);
}

static void renew(struct lock *lock, struct lock_job *job) {
    struct trouble trouble;
    if (!is_ours(lock, job)) {
        look(lock, job, REASON_RENEWAL_REFUSED);
        return;
    }
    job->seen = lock->id;
    switch (lock_file_match(lock->place->folder, lock->election, lock->id, &trouble)) {
    case LOCK_FILE_UNKNOWN:
        refuse(job, &trouble);
        break;
    case LOCK_FILE_REPLACED:
        trouble_say(&job->note, "lost", lock->place->folder, lock->election,
                    "another lock file is in its place");
        lock_drop(lock);
        look(lock, job, REASON_RENEWAL_REFUSED);
        break;
    case LOCK_FILE_SAME:
        if (job->request.raise_token) {
            raise_token(lock, job);
        } else {
            grant_yes(lock, job);
        }
        break;
    }
}

/* The clean mark, on the disk. Only into the record of this very grant. */
static bool mark(const struct lock *lock, struct lock_job *job) {
    bool same_grant = job->request.token == lock->token && lock->minted == lock->token;
    if (!job->request.clean || !same_grant) {
        return false;
    }
    int folder = place_open_folder(lock->place, false, &job->note);
    if (folder < 0) {
        return false;
    }
    bool written = write_record(lock, folder, lock->token, true, &job->note);
    close(folder);
    return written;
}

static void release(struct lock *lock, struct lock_job *job) {
    struct trouble trouble;
    enum lock_file_match match = LOCK_FILE_SAME;
    if (is_ours(lock, job)) {
        match = lock_file_match(lock->place->folder, lock->election, lock->id, &trouble);
    }
    if (!is_ours(lock, job) || match == LOCK_FILE_REPLACED) {
        if (match == LOCK_FILE_REPLACED) {
            lock_drop(lock); /* another may hold the real one: its record is not ours to mark */
        }
        look(lock, job, REASON_RENEWAL_REFUSED);
        return;
    }
    /* The lock is given back even if the mark cannot be written: the next one waits, that is all.
     */
    bool marked = match == LOCK_FILE_SAME && mark(lock, job);
    job->seen = lock->id;
    grant_yes(lock, job);
    lock_file_give(lock->fd, marked);
    lock->fd = -1;
}

void lock_work(struct lock *lock, struct lock_job *job) {
    struct store_reply *reply = &job->event.reply;
    reply->sent = clock_now(); /* before anything is tried */
    if (lock->place->in_pod) {
        reply->warnings |= WARNING_LOCAL_STORE_IN_A_POD;
    }
    if (job->type == STORE_ACQUIRED) {
        acquire(lock, job);
    } else if (job->type == STORE_RENEWED) {
        renew(lock, job);
    } else {
        release(lock, job);
    }
}
