#include "bench.h"

#include <signal.h>
#include <stdio.h>

/* What automake and ctest understand as "skipped". */
#define EXIT_SKIPPED 77

int main(void) {
    char why[256] = "";
    struct error error;
    int failed = 0;

    (void)signal(SIGPIPE, SIG_IGN);
    if (!contract_subject.start(&contract_space, why, sizeof why)) {
        fprintf(stderr, "SKIPPED: contract of %s: %s\n", contract_subject.name, why);
        return EXIT_SKIPPED;
    }
    if (!contract_subject.ops->claims(contract_space.url) ||
        !contract_subject.ops->check(contract_space.url, &error)) {
        fprintf(stderr, "contract of %s: the store does not accept %s\n", contract_subject.name,
                contract_space.url);
        failed = 1;
    } else {
        failed += contract_locking();
        failed += contract_priors();
        failed += contract_tokens();
        failed += contract_lifecycle();
        failed += contract_timeouts();
    }
    contract_subject.stop(&contract_space);
    return failed == 0 ? 0 : 1;
}
