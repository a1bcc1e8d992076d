#ifndef GAVEL_SIM_LEGAL_H
#define GAVEL_SIM_LEGAL_H

#include "election/states.h"

/* Whether one step may go from one state to another: a change of the table, or two in a row, since
 * a step may go through a state that nobody sees. */
bool legal_change(enum election_state from, enum election_state to);

#endif
