#include <gavel.h>
#include <stdio.h>

int main(void) {
    struct gavel *gavel = gavel_create(NULL, "");
    uint64_t token;
    if (gavel != NULL && gavel_require_leader(gavel, &token) == 0) {
        printf("write with %llu\n", (unsigned long long)token);
    }
    gavel_destroy(gavel);
    return 0;
}
