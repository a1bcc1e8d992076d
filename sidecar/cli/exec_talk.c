#include "cli/cli.h"
#include "cli/exec_inside.h"
#include "cli/exec_line.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* The attached connection to the sidecar, and what is heard on it. */

void exec_complain(const char *what, const char *why) {
    (void)fprintf(stderr, "%s exec: %s%s%s\n", cli_program(), what, why[0] != '\0' ? ": " : "",
                  why);
}

void exec_say(struct supervisor *supervisor, const char *verb, const char *what) {
    if (supervisor->connected) {
        (void)client_send(&supervisor->client, verb, what, client_now_ns() + 20 * NS_PER_MS);
    }
}

void exec_ask_to_end(struct supervisor *supervisor) {
    supervisor->lost = true;
    if (supervisor->children.group != 0 && !supervisor->stopping) {
        supervisor->stopping = true;
        children_signal(&supervisor->children, SIGTERM);
        children_signal(&supervisor->children, SIGCONT);
    }
}

/* Its end says that nothing works under the lease any more, so it waits for that. */
static void hang_up(struct supervisor *supervisor) {
    if (supervisor->client.fd >= 0 && !supervisor->connected && supervisor->children.group == 0) {
        (void)shutdown(supervisor->client.fd, SHUT_RDWR); /* the guard has a copy */
        client_close(&supervisor->client);
    }
}

static void disconnect(struct supervisor *supervisor) {
    supervisor->connected = supervisor->answered = false;
    supervisor->reconnect_ns = client_now_ns() + RECONNECT_NS;
    supervisor->beat_every_ns = 0;
    supervisor->revoked = 0;
    exec_ask_to_end(supervisor); /* the end of the connection means: not leader */
}

/* Once the command was asked to end, or should have ended, what was known then stays the time of
 * its end: else one that does not obey would run on for as long as the lease is extended. */
static void hear_lease(struct supervisor *supervisor, const struct exec_line *heard) {
    bool running = supervisor->children.group != 0;
    bool ending = supervisor->stopping || exec_lease_left_ns(&supervisor->lease) <= KILL_BEFORE_NS;
    bool other = heard->token != supervisor->lease.token;
    if (supervisor->revoked == heard->token || (running && (ending || other))) {
        return;
    }
    if (!exec_lease_hear(&supervisor->lease, heard->token, heard->ms, heard->deadline_ns,
                         heard->ttl_ms) &&
        !supervisor->clock_blamed) {
        supervisor->clock_blamed = true;
        exec_complain("ignores a lease",
                      "its deadline is further away than it is valid for, so the "
                      "sidecar has another CLOCK_BOOTTIME (a time namespace)");
    }
}

static void hear_revoke(struct supervisor *supervisor, uint64_t token, int64_t ms) {
    supervisor->revoked = token;
    if (token == supervisor->lease.token) {
        exec_lease_shorten(&supervisor->lease, ms);
        exec_ask_to_end(supervisor);
    }
}

static void hear(struct supervisor *supervisor, const char *line) {
    struct exec_line heard = exec_line_parse(line);
    switch (heard.kind) {
    case EXEC_LINE_LEASE:
        hear_lease(supervisor, &heard);
        break;
    case EXEC_LINE_REVOKE:
        hear_revoke(supervisor, heard.token, heard.ms);
        break;
    case EXEC_LINE_BEAT:
        supervisor->beat_every_ns = heard.ms * NS_PER_MS / 4;
        supervisor->beat_ns = client_now_ns();
        break;
    case EXEC_LINE_OTHER:
        break;
    }
}

/* The answer to "attach". False: it will not become better, `*status` is the end. */
static bool hear_answer(struct supervisor *supervisor, const char *line, int *status) {
    struct reply reply;
    if (strcmp(line, "ok") == 0) {
        supervisor->answered = true;
        supervisor->give_up_ns = NEVER_NS;
        exec_say(supervisor, "lease", "");
        return true;
    }
    if (reply_is_error(line, &reply) &&
        (strcmp(reply.code, "busy") == 0 || strcmp(reply.code, "shutting-down") == 0 ||
         strcmp(reply.code, "too-many") == 0)) {
        disconnect(supervisor); /* until there is room */
        return true;
    }
    bool error = reply_is_error(line, &reply);
    exec_complain(supervisor->arguments->socket,
                  error ? reply.text : "this is no sidecar's answer");
    *status = EXIT_GAVEL;
    return false;
}

bool exec_listen(struct supervisor *supervisor, int *status) {
    const char *line;
    while (supervisor->connected) {
        enum client_result result = client_read(&supervisor->client, 0, &line);
        if (result == CLIENT_TIMEOUT) {
            break; /* nothing more for now */
        }
        if (result != CLIENT_OK) {
            disconnect(supervisor);
        } else if (supervisor->answered) {
            hear(supervisor, line);
        } else if (!hear_answer(supervisor, line, status)) {
            return false;
        }
    }
    return true;
}

/* In words at once: it is told much later, when errno is about something else. */
static void note_failure(struct supervisor *supervisor, enum client_result result) {
    bool absent = result == CLIENT_ABSENT;
    (void)snprintf(supervisor->failure, sizeof supervisor->failure, "%s%s%s",
                   absent ? "no sidecar: " : "", client_result_text(result),
                   absent ? "; is it running? --socket says where" : "");
}

/* False: no command can be run by what this sidecar says. */
static bool attach(struct supervisor *supervisor, int *status) {
    if (!exec_clock_is_shared(supervisor->client.fd)) {
        exec_complain(
            supervisor->arguments->socket,
            "the sidecar is in another time namespace, so its deadlines mean nothing here: "
            "run both in the same one");
        *status = EXIT_GAVEL;
        return false;
    }
    if (!exec_guard_hold(&supervisor->guard, supervisor->client.fd)) {
        hang_up(supervisor);
        return true;
    }
    supervisor->connected = true;
    note_failure(supervisor, CLIENT_TIMEOUT); /* unless it answers */
    supervisor->lease.token = 0; /* what was told on another connection ended with it */
    exec_say(supervisor, "attach", supervisor->arguments->name);
    return true;
}

bool exec_connect(struct supervisor *supervisor, int *status) {
    int64_t now_ns = client_now_ns();
    hang_up(supervisor);
    if (now_ns >= supervisor->give_up_ns) {
        exec_complain(supervisor->arguments->socket, supervisor->failure);
        *status = EXIT_GAVEL;
        return false;
    }
    if (supervisor->connected || supervisor->children.group != 0 ||
        now_ns < supervisor->reconnect_ns) {
        return true;
    }
    supervisor->reconnect_ns = now_ns + RECONNECT_NS;
    enum client_result result =
        client_connect(&supervisor->client, supervisor->arguments->socket, now_ns + RECONNECT_NS);
    if (result != CLIENT_OK) {
        note_failure(supervisor, result);
        return true;
    }
    return attach(supervisor, status);
}

void exec_beat(struct supervisor *supervisor) {
    if (supervisor->beat_every_ns > 0 && client_now_ns() >= supervisor->beat_ns) {
        supervisor->beat_ns = client_now_ns() + supervisor->beat_every_ns;
        exec_say(supervisor, "beat", "");
    }
}
