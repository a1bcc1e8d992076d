#ifndef GAVEL_SIM_MUTANTS_H
#define GAVEL_SIM_MUTANTS_H

#include <stdbool.h>

/* Plants the fault of that name ("no-delay"). False: there is none. */
bool mutants_plant(const char *name);

/* Prints the names, one a line. */
void mutants_list(void);

#endif
