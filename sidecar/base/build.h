#ifndef GAVEL_BASE_BUILD_H
#define GAVEL_BASE_BUILD_H

/* What this program was built from; static strings. The revision is "unknown" where the sources
 * were not under version control. */
const char *build_version(void);
const char *build_revision(void);
/* Compiler, kind of build, processor: "GNU 12.2.0, RelWithDebInfo, x86_64". */
const char *build_details(void);

#endif
