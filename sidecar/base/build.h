#ifndef GAVEL_BASE_BUILD_H
#define GAVEL_BASE_BUILD_H

/* What this program was built from; static strings. The revision is "unknown" where the sources
 * were not under version control. */
const char *build_version(void);
const char *build_revision(void);

#endif
