#include "stats.h"

#include <stdio.h>

static const char *const names[STAT_COUNT] = {
    [STAT_SCHEDULES] = "schedules",
    [STAT_VIRTUAL_SECONDS] = "virtual seconds",
    [STAT_STEPS] = "steps of the core",
    [STAT_READS] = "answers",
    [STAT_LEADER_READS] = "answers: leader",
    [STAT_GRANTS] = "grants",
    [STAT_RETRIES_GRANTED] = "grants found by a retry",
    [STAT_RENEWALS] = "renewals",
    [STAT_LEADS_CLEAN] = "leads: clean",
    [STAT_LEADS_END] = "leads: end",
    [STAT_LEADS_WAITED] = "leads: after a wait",
    [STAT_LEADS_EFFICIENCY] = "leads: efficiency",
    [STAT_TAKEOVERS] = "takeovers",
    [STAT_PENDINGS] = "waits begun",
    [STAT_RELEASES_CLEAN] = "releases: clean",
    [STAT_RELEASES_UNCLEAN] = "releases: no mark",
    [STAT_DRAINS_RELEASED] = "drains: released",
    [STAT_DRAINS_LAPSED] = "drains: left to lapse",
    [STAT_DOUBTS] = "REALTIME run out",
    [STAT_TOKENS_EXCUSED] = "tokens excused",
    [STAT_REQUESTS_LOST] = "requests lost",
    [STAT_REPLIES_LOST] = "replies lost",
    [STAT_REQUESTS_LATE] = "requests late",
    [STAT_REQUESTS_TWICE] = "requests twice",
    [STAT_TIMEOUTS] = "attempts timed out",
    [STAT_FAULT_CRASH] = "fault: crash",
    [STAT_FAULT_PAUSE] = "fault: pause",
    [STAT_FAULT_STALL] = "fault: stall",
    [STAT_FAULT_VM_PAUSE] = "fault: VM pause",
    [STAT_FAULT_DRAIN] = "fault: drain",
    [STAT_FAULT_RESIGN] = "fault: resign",
    [STAT_FAULT_REAL_FORWARD] = "fault: REALTIME forward",
    [STAT_FAULT_REAL_BACK] = "fault: REALTIME back",
    [STAT_FAULT_CUT] = "fault: cut off",
    [STAT_FAULT_DEAF] = "fault: no replies",
    [STAT_FAULT_STORE_DOWN] = "fault: store down",
    [STAT_FAULT_NOT_MASTER] = "fault: not a master",
    [STAT_FAULT_KEY_DELETED] = "fault: key deleted",
    [STAT_FAULT_KEY_PERSISTED] = "fault: key persisted",
    [STAT_FAULT_RECORD_DELETED] = "fault: record deleted",
    [STAT_FAULT_RECORD_DAMAGED] = "fault: record damaged",
    [STAT_FAULT_FLUSHED] = "fault: FLUSHALL",
    [STAT_FAULT_RESTARTED] = "fault: restarted",
    [STAT_FAULT_RESTARTED_EMPTY] = "fault: restarted empty",
    [STAT_FAULT_RESTORED] = "fault: snapshot restored",
    [STAT_FAULT_PROMOTED] = "fault: replica promoted",
    [STAT_FAULT_PROMOTED_BACK] = "fault: promoted back",
    [STAT_FAULT_ROLLED_BACK] = "fault: VM rolled back",
    [STAT_FAULT_STORE_FORWARD] = "fault: server's clock forward",
    [STAT_FAULT_STORE_BACK] = "fault: server's clock back",
    [STAT_SCENARIO_LOSE] = "scenario: key lost",
    [STAT_SCENARIO_FALL_BACK] = "scenario: fall back",
    [STAT_SCENARIO_RETRY] = "scenario: reply lost",
    [STAT_SCENARIO_UNLED_RELEASE] = "scenario: unled release",
    [STAT_SCENARIO_LATE_RELEASE] = "scenario: late release",
    [STAT_SCENARIO_LATE_ACQUIRE] = "scenario: late acquire",
    [STAT_SCENARIO_VM_PAUSE] = "scenario: VM pause",
    [STAT_SCENARIO_SILENCE] = "scenario: silence",
    [STAT_SCENARIO_SLOW_GRANT] = "scenario: slow grant",
    [STAT_SCENARIO_SHORT_GRANT] = "scenario: short grant",
    [STAT_SCENARIO_REVIVAL] = "scenario: revival",
};

void stats_print(const struct stats *stats, double seconds) {
    for (int i = 0; i < STAT_COUNT; i++) {
        printf("%-32s %12llu\n", names[i], (unsigned long long)stats->counts[i]);
    }
    if (seconds > 0) {
        printf("%-32s %12.0f\n", "schedules a second",
               (double)stats->counts[STAT_SCHEDULES] / seconds);
    }
}
