#ifndef GAVEL_TESTS_UNIT_STORE_POSTGRES_SERVER_H
#define GAVEL_TESTS_UNIT_STORE_POSTGRES_SERVER_H

/* A PostgreSQL server of the test's own: one cluster in a temporary folder, a free port, an
 * ordinary role "app" with a database "app". Ended with the test, by its process ids. */

#include <arpa/inet.h>
#include <dirent.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define POSTGRES_BIN_MAX 64

struct postgres_server {
    pid_t pid;
    unsigned port;
    uid_t user; /* the server refuses to run as root */
    char folder[64];
    char bin[POSTGRES_BIN_MAX];
};

/* Debian's folders, the newest first. */
static inline bool postgres_server_find(char bin[POSTGRES_BIN_MAX]) {
    for (int version = 19; version >= 14; version--) {
        char path[POSTGRES_BIN_MAX + 16];
        snprintf(bin, POSTGRES_BIN_MAX, "/usr/lib/postgresql/%d/bin", version);
        snprintf(path, sizeof path, "%s/postgres", bin);
        if (access(path, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

static inline unsigned postgres_server_free_port(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (unsigned i = 0; i < 200; i++) {
        unsigned port = 20000 + ((unsigned)getpid() * 31 + i * 7919) % 12000;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        address.sin_port = htons((uint16_t)port);
        bool good = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
        close(fd);
        if (good) {
            return port;
        }
    }
    return 0;
}

/* Runs a shell command as the server's user; its exit status. */
static inline int postgres_server_run(const struct postgres_server *server, const char *command) {
    pid_t pid = fork();
    if (pid == 0) {
        /* Away from a folder where that user may not be: PostgreSQL refuses to start in one. */
        if (chdir("/") != 0 ||
            (geteuid() == 0 && (setgid(server->user) != 0 || setuid(server->user) != 0))) {
            _exit(126);
        }
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                           : -1;
}

/* SQL as the superuser in a database; true when it succeeded. */
static inline bool postgres_server_sql(const struct postgres_server *server, const char *database,
                                       const char *sql) {
    char command[2048];
    snprintf(
        command, sizeof command,
        "psql -q -X -v ON_ERROR_STOP=1 -h %s -p %u -U super -d %s -c \"%s\" >>%s/psql.log 2>&1",
        server->folder, server->port, database, sql, server->folder);
    return postgres_server_run(server, command) == 0;
}

static inline int postgres_server_remove(const char *path, const struct stat *status, int type,
                                         struct FTW *walk) {
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static inline void postgres_server_signal_all(const struct postgres_server *server, int number) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)server->pid, (int)server->pid);
    if (number == SIGSTOP) {
        kill(server->pid, number); /* first, so that it starts no more */
    }
    FILE *file = fopen(path, "r");
    int child;
    while (file != NULL && fscanf(file, "%d", &child) == 1) {
        kill(child, number);
    }
    if (file != NULL) {
        fclose(file);
    }
    if (number != SIGSTOP) {
        kill(server->pid, number);
    }
}

static inline void postgres_server_stop(struct postgres_server *server) {
    if (server->pid > 0) {
        postgres_server_signal_all(server, SIGCONT);
        kill(server->pid, SIGQUIT);
        waitpid(server->pid, NULL, 0);
    }
    nftw(server->folder, postgres_server_remove, 16, FTW_DEPTH | FTW_PHYS);
    free(server);
}

static inline bool postgres_server_launch(struct postgres_server *server) {
    char data[80];
    char port[16];
    char path[96];
    char log[96];
    snprintf(data, sizeof data, "%s/data", server->folder);
    snprintf(path, sizeof path, "%s/postgres", server->bin);
    snprintf(log, sizeof log, "%s/log", server->folder);
    snprintf(port, sizeof port, "%u", server->port);
    server->pid = fork();
    if (server->pid == 0) {
        /* Away from a folder where that user may not be: PostgreSQL refuses to start in one. */
        if (chdir("/") != 0 ||
            (geteuid() == 0 && (setgid(server->user) != 0 || setuid(server->user) != 0))) {
            _exit(126);
        }
        prctl(PR_SET_PDEATHSIG, SIGQUIT);
        if (freopen(log, "a", stderr) == NULL || freopen("/dev/null", "w", stdout) == NULL) {
            _exit(126);
        }
        execl(path, path, "-D", data, "-p", port, "-k", server->folder, "-c",
              "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=60",
              (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 400 && server->pid > 0; i++) {
        if (postgres_server_sql(server, "postgres", "SELECT 1")) {
            return true;
        }
        usleep(50000);
    }
    return false;
}

/* NULL: there is no PostgreSQL here, or it does not start. */
static inline struct postgres_server *postgres_server_start(void) {
    struct postgres_server *server = calloc(1, sizeof *server);
    char command[512];
    snprintf(server->folder, sizeof server->folder, "/tmp/gpg-XXXXXX");
    if (!postgres_server_find(server->bin) || mkdtemp(server->folder) == NULL) {
        free(server);
        return NULL;
    }
    server->user = 65534; /* nobody */
    if (geteuid() == 0 && chown(server->folder, server->user, server->user) != 0) {
        postgres_server_stop(server);
        return NULL;
    }
    server->port = postgres_server_free_port();
    snprintf(command, sizeof command,
             "%s/initdb -D %s/data -U super -A trust --no-sync --locale=C.UTF-8 -E UTF8 "
             ">%s/initdb.log 2>&1",
             server->bin, server->folder, server->folder);
    if (postgres_server_run(server, command) != 0 || !postgres_server_launch(server) ||
        !postgres_server_sql(server, "postgres", "CREATE ROLE app LOGIN") ||
        !postgres_server_sql(server, "postgres", "CREATE DATABASE app") ||
        !postgres_server_sql(server, "app", "GRANT CREATE ON SCHEMA public TO app")) {
        postgres_server_stop(server);
        return NULL;
    }
    return server;
}

#endif
