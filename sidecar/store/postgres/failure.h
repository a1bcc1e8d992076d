#ifndef GAVEL_STORE_POSTGRES_FAILURE_H
#define GAVEL_STORE_POSTGRES_FAILURE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * What an error means for us, by its SQLSTATE: texts are in the server's language. None of them
 * keeps leadership. Re-entrant.
 */
enum pg_failure {
    PG_FAILURE_LOST,   /* the session is over, or there is no server: connect anew */
    PG_FAILURE_LATER,  /* not now: a lock or statement timeout, too many connections, a deadlock */
    PG_FAILURE_CONFIG, /* somebody has to change something: password, privilege, database */
    PG_FAILURE_SERVER, /* the wrong server: in recovery, or read-only */
    PG_FAILURE_OTHER,
};

#define PG_SQLSTATE 6 /* with its end */
#define PG_TEXT 200   /* what is told of a failure; longer texts are cut */

/* An empty state: the connection itself failed. */
enum pg_failure pg_failure_of(const char *sqlstate);

/* What would help against it, "" for nothing more than the server's words. */
const char *pg_failure_fix(const char *sqlstate);

/* Like pg_failure_of() for what libpq itself says of a connection that was not made: there is no
 * SQLSTATE then, but a wrong certificate or option does not mend itself. In English: nobody sets a
 * locale here. `fix`: what would help, "" for nothing more than the words. */
enum pg_failure pg_failure_of_words(const char *words, const char **fix);

/* "lost", "not-now", "configuration", "wrong-server", "other"; for the log. */
const char *pg_failure_name(enum pg_failure failure);

/* The SQLSTATE in libpq's verbose text of a failed connection ("FATAL:  28P01: password ..."), and
 * the words after it. False: there is none, the first line is taken, without where it was tried. */
bool pg_failure_read(const char *verbose, char sqlstate[PG_SQLSTATE], char *text, size_t size);

/* Copies the first line, control characters replaced; always ended. */
void pg_text(char *out, size_t size, const char *text);

#endif
