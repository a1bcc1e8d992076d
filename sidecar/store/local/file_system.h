#ifndef GAVEL_STORE_LOCAL_FILE_SYSTEM_H
#define GAVEL_STORE_LOCAL_FILE_SYSTEM_H

/* Whether a lock file on this kind of file system does what is asked of it: locks that all
 * processes of the host see, and a record that lasts. */
enum file_system_verdict {
    FILE_SYSTEM_GOOD,
    FILE_SYSTEM_DOUBTFUL, /* good for development; `why` says what is missing */
    FILE_SYSTEM_REFUSED,
};

/* By the type that statfs(2) gives. `name` and `why` get static strings; name is "unknown" for
 * one that is not in the table, why is empty for a good one. */
enum file_system_verdict file_system_judge(unsigned long type, const char **name, const char **why);

#endif
