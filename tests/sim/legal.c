#include "legal.h"

bool legal_change(enum election_state from, enum election_state to) {
    if (from == to || election_transition_find(from, to)) {
        return true;
    }
    for (int i = 0; i < STATE_COUNT; i++) {
        if (election_transition_find(from, (enum election_state)i) &&
            election_transition_find((enum election_state)i, to)) {
            return true;
        }
    }
    return false;
}
