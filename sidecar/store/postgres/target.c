#include "store/postgres/target.h"

#include "election/instant.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool pg_target_claims(const char *url) {
    return strncmp(url, "postgresql://", 13) == 0 || strncmp(url, "postgres://", 11) == 0;
}

static const char *value_of(const PQconninfoOption *options, const char *keyword) {
    for (; options != NULL && options->keyword != NULL; options++) {
        if (strcmp(options->keyword, keyword) == 0) {
            return options->val != NULL ? options->val : "";
        }
    }
    return "";
}

/* NULL: good. Everybody has to mean the same database, whatever the environment says. */
static const char *problem_of(const PQconninfoOption *options) {
    const char *attributes = value_of(options, "target_session_attrs");
    if (value_of(options, "service")[0] == '\0') {
        if (value_of(options, "host")[0] == '\0' && value_of(options, "hostaddr")[0] == '\0') {
            return "names no host: write postgresql://USER@HOST:PORT/DATABASE";
        }
        if (value_of(options, "dbname")[0] == '\0') {
            return "names no database, and locks are a database's own: write "
                   "postgresql://USER@HOST:PORT/DATABASE";
        }
    }
    if (strchr(value_of(options, "host"), '@') != NULL) {
        return "has an @ in its host: one in the user or the password is written %40";
    }
    if (strstr(attributes, "standby") != NULL || strcmp(attributes, "read-only") == 0) {
        return "asks for a standby (target_session_attrs), which cannot hold an election: use "
               "read-write, or leave it out";
    }
    if (value_of(options, "replication")[0] != '\0') {
        return "asks for a replication connection: leave out replication";
    }
    return NULL;
}

bool pg_target_check(const char *url, struct error *error) {
    char *why = NULL;
    PQconninfoOption *options = PQconninfoParse(url, &why);
    /* libpq's own text repeats parts of the URL, and they may be the password. */
    const char *problem =
        options != NULL ? problem_of(options)
                        : "is not a URL as libpq takes it: postgresql://USER@HOST:PORT/DATABASE"
                          "?PARAMETER=VALUE, special characters percent-encoded, parameters as in "
                          "its documentation";
    if (why != NULL) {
        PQfreemem(why);
    }
    PQconninfoFree(options);
    if (problem != NULL) {
        error_set(error, "%s", problem);
    }
    return problem == NULL;
}

/* The part number `index` of a list with commas. False: there is none. */
static bool part(const char *list, size_t index, char *out, size_t size) {
    for (; index > 0; index--) {
        list = strchr(list, ',');
        if (list == NULL) {
            return false;
        }
        list++;
    }
    (void)snprintf(out, size, "%.*s", (int)strcspn(list, ","), list);
    return true;
}

static bool fill(struct pg_target *target, const PQconninfoOption *options, const char *addresses) {
    const char *hosts = value_of(options, "host");
    const char *ports = value_of(options, "port");
    const char *list = hosts[0] != '\0' ? hosts : addresses;
    for (target->count = 0; target->count < PG_HOSTS_MAX; target->count++) {
        size_t i = target->count;
        if (!part(list, i, target->hosts[i].host, sizeof target->hosts[i].host)) {
            break;
        }
        if (!part(addresses, i, target->hosts[i].address, sizeof target->hosts[i].address)) {
            target->hosts[i].address[0] = '\0';
        }
        char *port = target->hosts[i].port;
        if ((!part(ports, i, port, sizeof target->hosts[i].port) &&
             !part(ports, 0, port, sizeof target->hosts[i].port)) ||
            port[0] == '\0') {
            (void)snprintf(port, sizeof target->hosts[i].port, "5432");
        }
    }
    long seconds = strtol(value_of(options, "connect_timeout"), NULL, 10);
    target->connect_timeout_ns = seconds > 0 && seconds < 3600 ? seconds * NS_PER_S : 0;
    return target->count > 0 && target->hosts[0].host[0] != '\0';
}

/* libpq ignores such a file and says so on stderr: better to say it where it is seen. */
static bool passfile_is_good(const char *path, char text[PG_TEXT]) {
    char standard[512];
    struct stat status;
    const char *home = getenv("HOME");
    if (path[0] == '\0' && home != NULL) {
        (void)snprintf(standard, sizeof standard, "%s/.pgpass", home);
        path = standard;
    }
    if (path[0] == '\0' || stat(path, &status) != 0) {
        return true;
    }
    if (!S_ISREG(status.st_mode) || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        (void)snprintf(text, PG_TEXT,
                       "passfile %.80s is readable for others, or no file: libpq ignores it; "
                       "chmod 0600",
                       path);
        return false;
    }
    return true;
}

bool pg_target_read(const char *url, struct pg_target *target, char text[PG_TEXT]) {
    /* A connection that cannot start, but knows of the service file and the environment: it is
     * refused for its sslmode, before it would do anything. A database that nobody names is called
     * like the user, who is nobody here. */
    static const char nobody[] = "\1";
    const char *const names[] = {"dbname", "password", "sslmode", "user", NULL};
    const char *const values[] = {url, "-", "-", nobody, NULL};
    char *why = NULL;
    PQconninfoOption *given = PQconninfoParse(url, &why);
    PGconn *reader = PQconnectStartParams(names, values, 1);
    PQconninfoOption *all = PQconninfo(reader);
    bool good = given != NULL && all != NULL;
    memset(target, 0, sizeof *target);
    if (!good || !fill(target, all, value_of(given, "hostaddr"))) {
        pg_text(text, PG_TEXT,
                value_of(given, "service")[0] != '\0'
                    ? "no such service, or it names no host (pg_service.conf)"
                    : "the URL names no host");
        good = false;
    } else if (strcmp(value_of(all, "dbname"), nobody) == 0) {
        pg_text(text, PG_TEXT,
                "the service names no database, and locks are a database's own: add dbname to it "
                "(pg_service.conf)");
        good = false;
    }
    bool has_password = value_of(given, "password")[0] != '\0' || getenv("PGPASSWORD") != NULL;
    if (good && !has_password) {
        good = passfile_is_good(value_of(all, "passfile"), text);
    }
    if (why != NULL) {
        PQfreemem(why);
    }
    PQconninfoFree(all);
    PQconninfoFree(given);
    PQfinish(reader);
    return good;
}

void pg_target_environment(char *names, size_t size) {
    PQconninfoOption *options = PQconndefaults();
    size_t used = 0;
    names[0] = '\0';
    for (const PQconninfoOption *at = options; at != NULL && at->keyword != NULL; at++) {
        if (at->envvar != NULL && getenv(at->envvar) != NULL && used < size) {
            int added =
                snprintf(names + used, size - used, "%s%s", used > 0 ? " " : "", at->envvar);
            used += added > 0 ? (size_t)added : 0;
        }
    }
    PQconninfoFree(options);
}
