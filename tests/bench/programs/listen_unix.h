#ifndef GAVEL_BENCH_LISTEN_UNIX_H
#define GAVEL_BENCH_LISTEN_UNIX_H

/* A socket that listens at the path, which must be free. Ends the process when it cannot. */
int listen_unix(const char *path);

/* Tells whoever started this process that it answers from now on: one line on stdout. */
void say_ready(void);

#endif
