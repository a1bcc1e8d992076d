#include "app_internal.h"

#include "base/clock.h"

#include <signal.h>
#include <unistd.h>

/* Signals, resignation, and the end of the process. */

#define PATIENCE_MS 1000

void app_resign(void *context, size_t election) {
    struct app *app = context;
    app->elections[election].resign_asked = true;
    app_tick_soon(&app->elections[election]);
}

static void drain(struct app *app, const char *signal_name) {
    app->draining = true;
    log_event(
        LOG_INFO, "draining", LOG_TEXT("signal", signal_name),
        LOG_NUMBER("drain_ms", app->settings.drain_none ? 0 : app->settings.drain_ns / NS_PER_MS));
    notify_send(&app->notify, "STOPPING=1\nSTATUS=draining");
    if (app->health != NULL) {
        health_set_ready(app->health, false);
    }
    if (app->socket != NULL) {
        socket_drain(app->socket);
    }
    for (size_t i = 0; i < app->board.count; i++) {
        app->board.entries[i].draining = true;
    }
    for (size_t i = 0; i < app->board.count; i++) {
        struct election_event event = {.type = EVENT_DRAIN};
        app_step(&app->elections[i], &event);
    }
}

void app_election_finished(struct app_election *election, bool left_to_lapse) {
    struct app *app = election->app;
    election->finished = true;
    uv_timer_stop(&election->timer);
    log_event(left_to_lapse ? LOG_WARN : LOG_INFO, left_to_lapse ? "left-to-lapse" : "drained",
              LOG_TEXT("election", app->config->elections[election->index]));
    app->finished++;
    if (app->finished == app->board.count) {
        app_close(app);
    }
}

static void on_signal(uv_signal_t *signal, int number) {
    struct app *app = signal->data;
    if (number == SIGHUP) {
        app_reload(app);
        return;
    }
    const char *name = number == SIGINT ? "SIGINT" : "SIGTERM";
    if (app->draining) {
        log_event(LOG_WARN, "exit-now", LOG_TEXT("signal", name));
        _exit(1); /* the second signal: the leases lapse by themselves */
    }
    drain(app, name);
}

bool app_signals_start(struct app *app) {
    static const int numbers[APP_SIGNALS] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < APP_SIGNALS; i++) {
        if (uv_signal_init(&app->loop, &app->signals[i]) != 0) {
            return false;
        }
        app->signals[i].data = app;
        app->signals_ready++;
        if (uv_signal_start(&app->signals[i], on_signal, numbers[i]) != 0) {
            return false;
        }
    }
    return true;
}

/* A name server or a disk that hangs holds one of libuv's threads, which nothing ends but the end
 * of the process. All that matters is done: readers are gone, locks given back or left to lapse. */
static void on_patience(uv_timer_t *timer) {
    const struct app *app = timer->data;
    log_event(LOG_WARN, "stopped",
              LOG_TEXT("detail", "a thread still hangs, in a name look-up perhaps"));
    _exit(app->started ? 0 : 1);
}

static void on_part_closed(void *context) {
    (void)context; /* the loop ends by itself when the last handle has gone */
}

void app_close(struct app *app) {
    if (app->closing) {
        return;
    }
    app->closing = true;
    uv_timer_start(&app->patience, on_patience, PATIENCE_MS, 0);
    if (app->board.pages != NULL) {
        pages_destroy(app->board.pages);
        app->board.pages = NULL;
    }
    if (app->http != NULL) {
        http_close(app->http, on_part_closed, app);
    }
    if (app->health != NULL) {
        health_close(app->health, on_part_closed, app);
    }
    if (app->socket != NULL) {
        socket_close(app->socket, on_part_closed, app);
    }
    app_check_close(app);
    if (app->store != NULL) {
        app->store_ops->close(app->store, on_part_closed, app);
    }
    for (size_t i = 0; i < app->board.count; i++) {
        uv_close((uv_handle_t *)&app->elections[i].timer, NULL);
        if (app->elections[i].company != NULL) {
            uv_close((uv_handle_t *)&app->elections[i].company->beat, NULL);
        }
    }
    for (size_t i = 0; i < app->signals_ready; i++) {
        uv_close((uv_handle_t *)&app->signals[i], NULL);
    }
    if (app->heartbeat_ready) {
        uv_close((uv_handle_t *)&app->heartbeat, NULL);
    }
}
