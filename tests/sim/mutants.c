#include "mutants.h"

#include "election/mutant.h"

#include <stdio.h>
#include <string.h>

enum mutant mutant_active = MUTANT_NO_FAULT;

static const char *const names[MUTANT_COUNT] = {
    [MUTANT_NO_FAULT] = "no-fault",
    [MUTANT_CACHED_FLAG] = "cached-flag",
    [MUTANT_RELEASE_BEFORE_PUBLISH] = "release-before-publish",
    [MUTANT_RELEASE_WHILE_VALID] = "release-while-valid",
    [MUTANT_DEADLINE_FROM_REPLY] = "deadline-from-reply",
    [MUTANT_NO_DELAY] = "no-delay",
    [MUTANT_END_ALWAYS_TRUSTED] = "end-always-trusted",
    [MUTANT_NO_HELD_SEEN] = "no-held-seen",
    [MUTANT_NO_VOUCH] = "no-vouch",
    [MUTANT_NO_RENEWAL_AFTER_WAIT] = "no-renewal-after-wait",
    [MUTANT_WAIT_OWN_TTL] = "wait-own-ttl",
    [MUTANT_CLEAN_ALWAYS] = "clean-always",
    [MUTANT_NONCE_REUSED] = "nonce-reused",
    [MUTANT_SEEN_TOKEN_FORGOTTEN] = "seen-token-forgotten",
    [MUTANT_REAL_IGNORED] = "real-ignored",
    [MUTANT_NO_LATCH] = "no-latch",
    [MUTANT_WAIT_FROM_SEND] = "wait-from-send",
    [MUTANT_LATCH_ANY_YES] = "latch-any-yes",
    [MUTANT_APP_RELEASE_BEFORE_DONE] = "app-release-before-done",
    [MUTANT_APP_LEAD_BEFORE_DONE] = "app-lead-before-done",
    [MUTANT_APP_DRAIN_RELEASES] = "app-drain-releases",
    [MUTANT_APP_SILENT_IS_DONE] = "app-silent-is-done",
    [MUTANT_APP_GONE_STAYS] = "app-gone-stays",
    [MUTANT_APP_STANDS_ALONE] = "app-stands-alone",
    [MUTANT_APP_DONE_ANY] = "app-done-any",
    [MUTANT_QUORUM_NO_WAIT] = "quorum-no-wait",
    [MUTANT_QUORUM_NO_WRITE_BACK] = "quorum-no-write-back",
    [MUTANT_QUORUM_NAMES_VOTE] = "quorum-names-vote",
    [MUTANT_QUORUM_ANY_LIST] = "quorum-any-list",
    [MUTANT_QUORUM_SENT_LATEST] = "quorum-sent-latest",
    [MUTANT_QUORUM_MARK_ANY] = "quorum-mark-any",
    [MUTANT_QUORUM_LATE_PROVES] = "quorum-late-proves",
    [MUTANT_STORE_NO_SERVER_CHECK] = "store-no-server-check",
    [MUTANT_STORE_NO_REPLID] = "store-no-replid",
    [MUTANT_STORE_NO_TOKEN_CHECK] = "store-no-token-check",
    [MUTANT_STORE_NO_KEPT_ANSWER] = "store-no-kept-answer",
    [MUTANT_STORE_RENEW_CREATES] = "store-renew-creates",
    [MUTANT_STORE_RELEASE_ANY] = "store-release-any",
    [MUTANT_STORE_TOKEN_NOT_RAISED] = "store-token-not-raised",
    [MUTANT_STORE_RELEASE_ENDS] = "store-release-ends",
    [MUTANT_STORE_END_SHORT] = "store-end-short",
    [MUTANT_SESSION_NO_GRACE] = "session-no-grace",
    [MUTANT_SESSION_ANY_SERVER] = "session-any-server",
    [MUTANT_SESSION_MARK_STAYS] = "session-mark-stays",
    [MUTANT_SESSION_MARK_ANY] = "session-mark-any",
    [MUTANT_RESOURCE_OPEN] = "resource-open",
};

bool mutants_plant(const char *name) {
    for (int i = 0; i < MUTANT_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            mutant_active = (enum mutant)i;
            return true;
        }
    }
    return false;
}

void mutants_list(void) {
    for (int i = 1; i < MUTANT_COUNT; i++) {
        puts(names[i]);
    }
}
