#ifndef GAVEL_TESTS_REDIS_SERVER_H
#define GAVEL_TESTS_REDIS_SERVER_H

#include <fcntl.h>
#include <ftw.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * A redis-server of the test's own: a free port and a Unix socket, in a folder that goes with it.
 * It dies with the test. Blocking; for tests only.
 */
#define REDIS_SERVER_ARGUMENTS 32

struct redis_server {
    pid_t pid;
    unsigned port;
    char dir[64];
    char socket[80];
    const char *extra[REDIS_SERVER_ARGUMENTS];
};

static inline unsigned redis_server_free_port(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        abort();
    }
    close(fd);
    return ntohs(address.sin_port);
}

static inline void redis_server_exec(struct redis_server *server, pid_t parent) {
    char port[8];
    const char *arguments[64] = {"redis-server", "--port", port,        "--unixsocket",
                                 server->socket, "--dir",  server->dir, "--logfile",
                                 "log",          "--save", "",          "--appendonly",
                                 "no",           "--bind", "127.0.0.1"};
    size_t count = 15;
    snprintf(port, sizeof port, "%u", server->port);
    for (size_t i = 0; server->extra[i] != NULL; i++) {
        arguments[count++] = server->extra[i];
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
        _exit(127);
    }
    execvp(arguments[0], (char *const *)arguments);
    _exit(127);
}

/* The test's own connection; NULL: there is no server. */
static inline redisContext *redis_server_connect(const struct redis_server *server) {
    redisContext *context = redisConnectUnix(server->socket);
    if (context != NULL && context->err != 0) {
        redisFree(context);
        return NULL;
    }
    return context;
}

static inline bool redis_server_answers(const struct redis_server *server) {
    redisContext *context = redis_server_connect(server);
    redisReply *reply = context != NULL ? redisCommand(context, "PING") : NULL;
    bool answers = reply != NULL && reply->type != REDIS_REPLY_NIL;
    freeReplyObject(reply);
    if (context != NULL) {
        redisFree(context);
    }
    return answers;
}

/* Starts it (again), in its folder and on its port. */
static inline bool redis_server_launch(struct redis_server *server) {
    pid_t parent = getpid();
    server->pid = fork();
    if (server->pid == 0) {
        redis_server_exec(server, parent);
    }
    for (int i = 0; i < 2000 && server->pid > 0; i++) {
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid) {
            server->pid = -1; /* no such program, or its port is taken */
        } else if (redis_server_answers(server)) {
            return true;
        } else {
            usleep(5000);
        }
    }
    return false;
}

static inline void redis_server_kill(struct redis_server *server) {
    if (server->pid > 0) {
        kill(server->pid, SIGKILL);
        waitpid(server->pid, NULL, 0);
        server->pid = -1;
    }
    unlink(server->socket);
}

static inline int redis_server_remove_one(const char *path, const struct stat *status, int type,
                                          struct FTW *walk) {
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static inline void redis_server_stop(struct redis_server *server) {
    redis_server_kill(server);
    nftw(server->dir, redis_server_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(server);
}

/* `extra` are more arguments for the program, ended by NULL; may be NULL. NULL: cannot start. */
static inline struct redis_server *redis_server_start(const char *const *extra) {
    struct redis_server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        abort();
    }
    snprintf(server->dir, sizeof server->dir, "/tmp/gavel-redis-XXXXXX");
    if (mkdtemp(server->dir) == NULL) {
        abort();
    }
    snprintf(server->socket, sizeof server->socket, "%s/socket", server->dir);
    for (size_t i = 0; extra != NULL && extra[i] != NULL; i++) {
        server->extra[i] = extra[i];
    }
    for (int attempt = 0; attempt < 5; attempt++) {
        server->port = redis_server_free_port();
        if (redis_server_launch(server)) {
            return server;
        }
        redis_server_kill(server);
    }
    redis_server_stop(server);
    return NULL;
}

static inline void redis_server_signal(const struct redis_server *server, int number) {
    kill(server->pid, number);
}

/* One command on a connection of its own; the reply is the caller's. Aborts if there is none. */
static inline redisReply *redis_server_do(const struct redis_server *server, const char *format,
                                          ...) {
    va_list arguments;
    redisContext *context = redis_server_connect(server);
    if (context == NULL) {
        abort();
    }
    va_start(arguments, format);
    redisReply *reply = redisvCommand(context, format, arguments);
    va_end(arguments);
    if (reply == NULL) {
        abort();
    }
    redisFree(context);
    return reply;
}

/* The same, without looking at the reply; it must not be an error. */
static inline void redis_server_run(const struct redis_server *server, const char *format, ...) {
    va_list arguments;
    redisContext *context = redis_server_connect(server);
    if (context == NULL) {
        abort();
    }
    va_start(arguments, format);
    redisReply *reply = redisvCommand(context, format, arguments);
    va_end(arguments);
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        fprintf(stderr, "%s: %s\n", format, reply == NULL ? "no reply" : reply->str);
        abort();
    }
    freeReplyObject(reply);
    redisFree(context);
}

#endif
