#ifndef GAVEL_APP_INTERNAL_H
#define GAVEL_APP_INTERNAL_H

/* What the app*.c files share: the one place where loop, core, stores and readers meet. */

#include "app.h"
#include "base/counters.h"
#include "base/http_probe.h"
#include "base/log.h"
#include "base/notify.h"
#include "election/election.h"
#include "health/health.h"
#include "publish/board.h"
#include "publish/http.h"
#include "publish/page.h"
#include "publish/socket.h"
#include "store/store.h"

#include <uv.h>

#define APP_SIGNALS 3 /* SIGTERM, SIGINT, SIGHUP */

struct app;

/* What was heard of the application in the middle of a step. */
struct app_notices {
    bool attached, gone, cut, hung, beats, resigns, healthy, unhealthy;
    uint64_t done; /* the token; 0: none */
};

/* What is kept of the application once one has been heard of. */
struct app_company {
    uv_timer_t beat;     /* its next beat is due */
    int64_t beat_due_ns; /* BOOTTIME */
    bool suspected;      /* it is late: looked at once more */
    bool hung;
    struct log_limit said_limits[APP_UNHEALTHY + 1]; /* one for each enum app_event */
};

/* One election: its core, and what the loop keeps for it. */
struct app_election {
    struct app *app;
    size_t index;
    struct election core;
    uv_timer_t timer;      /* the core's next deadline */
    int64_t op_started_ns; /* BOOTTIME */
    bool resign_asked;     /* taken up from the timer, never from inside the socket */
    bool finished;
    bool noticed; /* something in the notices waits for the timer */
    struct app_notices notices;
    struct app_company *company; /* heap; NULL: no application yet */
    struct log_limit trouble_limit;
};

struct app {
    struct config *config;
    uv_loop_t loop;
    struct election_config settings;

    const struct store_ops *store_ops;
    struct store *store;
    struct store_status store_status;
    struct store_secrets store_secrets;
    struct log_limit reload_limit;

    struct app_election *elections;
    struct board board;
    struct counters counters;
    struct socket_server *socket;
    struct http_api *http;
    struct health *health;

    struct http_probe *probe; /* of --app-check; NULL: off */
    bool app_well;            /* as the cores know it */
    bool app_was_well;
    unsigned check_failures; /* in a row */
    unsigned check_successes;
    struct log_limit check_limit;

    uv_signal_t signals[APP_SIGNALS];
    size_t signals_ready;
    uv_timer_t heartbeat;
    bool heartbeat_ready;
    uv_timer_t patience; /* how long the end waits for a thread that hangs; unreferenced */
    struct notify notify;
    int64_t heartbeat_due_ns; /* BOOTTIME */
    int64_t lag_most_ns;      /* since the last heartbeat */
    int64_t stalled_until_ns; /* BOOTTIME at which the last stall ended */
    int64_t clock_gap_ns;     /* REALTIME minus BOOTTIME at the last heartbeat */

    bool started;
    bool stepping; /* a core is being stepped: no other step from within */
    bool draining;
    bool closing;
    size_t finished; /* elections that are drained */
};

/* Steps the core with an event, then does what it asks: publish first, then the operation
 * (app_actions.c). */
void app_step(struct app_election *election, struct election_event *event);
void app_tick(struct app_election *election);
/* The timer of an election fires as soon as the loop turns. */
void app_tick_soon(struct app_election *election);
/* Measures how late the loop came to something that was due; counts a stall once (app.c). */
void app_note_lateness(struct app *app, int64_t due_ns, int64_t now_ns);
/* store_setup.on_event */
void app_store_event(void *context, const struct store_event *event);

/* Reads secrets and TLS files again: on SIGHUP, and as store_secrets.refresh (app_reload.c). */
void app_reload(struct app *app);
void app_refresh_secrets(void *context);

/* The board's side (app_publish.c). */
void app_board_init(struct app *app);
void app_publish(struct app_election *election, const struct view *before, bool changed);
bool app_listen(struct app *app);

/* The application's side (app_attached.c): socket_setup.application, and what its check says. */
void app_application(void *context, size_t election, enum app_event event, uint64_t token);
void app_check_start(struct app *app);
void app_check_close(struct app *app);
void app_notices_take(struct app_election *election);
void app_tell(struct app_election *election, const struct election_actions *actions);

/* The end of the process, and what signals do (app_drain.c). */
bool app_signals_start(struct app *app);
void app_resign(void *context, size_t election);
void app_election_finished(struct app_election *election, bool left_to_lapse);
void app_close(struct app *app);

#endif
