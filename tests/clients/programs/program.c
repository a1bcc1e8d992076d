/* Speaks the line protocol of ../languages.py with the client for C: client_program SOCKET ELECTION
 */
#include <gavel.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct gavel *client;
static int finish; /* eventfd */
static int go;     /* eventfd: readable, on_revoke may return */

static int64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void say(const char *word, uint64_t token) {
    (void)printf("%s %" PRIu64 " %" PRId64 "\n", word, token, now_ns());
    (void)fflush(stdout);
}

static void say_token(const char *word, uint64_t token, const char *none) {
    if (token != 0) {
        (void)printf("%s %" PRIu64 "\n", word, token);
    } else {
        (void)printf("%s %s\n", word, none);
    }
    (void)fflush(stdout);
}

static void on_change(void *context, bool leader, uint64_t token) {
    (void)context;
    say_token(leader ? "change true" : "change false", token, "-");
}

static void on_revoke(void *context, uint64_t token) {
    (void)context;
    eventfd_t count;
    say("revoked", token);
    if (getenv("SLOW") != NULL) {
        (void)eventfd_read(go, &count);
    }
}

static void *churn(void *context) {
    (void)context;
    for (int i = 0; i < 25; i++) {
        (void)gavel_attach(client, on_revoke, NULL);
        gavel_detach(client);
    }
    return NULL;
}

static void churn_in_many(void) {
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        (void)pthread_create(&threads[i], NULL, churn, NULL);
    }
    for (size_t i = 0; i < 4; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    (void)printf("churned\n");
}

static pid_t parent; /* of a child that returns from work */
static int works;    /* how often work was called in it */

static bool fork_in_work(void) {
    parent = getpid();
    works = 1;
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(20);
        return true;
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    say("child", WIFEXITED(status) ? (uint64_t)WEXITSTATUS(status) : 0);
    return false;
}

static int work(struct gavel_leadership *leadership, void *context) {
    eventfd_t count;
    (void)context;
    works++;
    say("started", gavel_leadership_token(leadership));
    if (getenv("FORKS") != NULL && (parent != 0 || fork_in_work())) {
        return 7;
    }
    struct pollfd wanted[] = {{.fd = gavel_leadership_fd(leadership), .events = POLLIN},
                              {.fd = finish, .events = POLLIN}};
    (void)poll(wanted, 2, -1);
    if (gavel_leadership_wait(leadership, 0)) {
        say("cancelled", gavel_leadership_token(leadership));
    }
    (void)eventfd_read(finish, &count);
    say("stopped", gavel_leadership_token(leadership));
    return 7;
}

static void *run(void *context) {
    (void)context;
    int result = gavel_run(client, work, NULL);
    if (parent != 0 && parent != getpid()) {
        _exit(result == -1 && errno == ECHILD && works == 1 ? 3 : 4);
    }
    (void)printf("%s\n", result == 7 ? "returned" : "refused");
    (void)fflush(stdout);
    return NULL;
}

/* A child does all that could disturb its parent. */
static void fork_child(void) {
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(20);
        gavel_stop(client);
        gavel_detach(client);
        bool refused = gavel_attach(client, NULL, NULL) == ECHILD &&
                       gavel_on_change(client, on_change, NULL) == ECHILD &&
                       gavel_run(client, work, NULL) == -1 && errno == ECHILD;
        gavel_destroy(client);
        _exit(refused ? 3 : 4);
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    (void)printf("fork %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void obey(const char *verb) {
    uint64_t token;
    pthread_t thread;
    if (strcmp(verb, "is_leader") == 0) {
        (void)printf("is_leader %s\n", gavel_is_leader(client) ? "true" : "false");
    } else if (strcmp(verb, "token") == 0) {
        say_token("token", gavel_token(client), "-");
    } else if (strcmp(verb, "require") == 0) {
        bool leads = gavel_require_leader(client, &token) == 0;
        say_token("require", leads ? token : 0, "not-leader");
    } else if (strcmp(verb, "watch") == 0) {
        (void)gavel_on_change(client, on_change, NULL);
    } else if (strcmp(verb, "attach") == 0) {
        if (gavel_attach(client, on_revoke, NULL) != 0) {
            (void)printf("cannot\n");
        }
    } else if (strcmp(verb, "detach") == 0) {
        gavel_detach(client);
        (void)printf("detached\n");
    } else if (strcmp(verb, "run") == 0 && pthread_create(&thread, NULL, run, NULL) == 0) {
        (void)pthread_detach(thread);
    } else if (strcmp(verb, "finish") == 0) {
        (void)eventfd_write(finish, 1);
    } else if (strcmp(verb, "go") == 0) {
        (void)eventfd_write(go, 1);
    } else if (strcmp(verb, "fork") == 0) {
        fork_child();
    } else if (strcmp(verb, "churn") == 0) {
        churn_in_many();
    }
    (void)fflush(stdout);
}

int main(int argc, char **argv) {
    char line[64];
    finish = eventfd(0, EFD_CLOEXEC);
    go = eventfd(0, EFD_CLOEXEC);
    client = gavel_create(argv[1], argc > 2 ? argv[2] : "");
    if (client == NULL) {
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        obey(line);
    }
    _exit(0); /* work may still wait for its finish */
}
