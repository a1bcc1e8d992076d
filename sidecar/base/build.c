#include "base/build.h"

const char *build_version(void) {
    return GAVEL_VERSION;
}

const char *build_revision(void) {
    return GAVEL_REVISION;
}

const char *build_details(void) {
    return GAVEL_BUILD_DETAILS;
}
