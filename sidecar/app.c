#include "app_internal.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "config/tls.h"

#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

/* The composition root: makes the parts, runs the loop, ends it. */

#define HEARTBEAT_NS NS_PER_S
#define FILES_WANTED 8192                  /* 1000 lock files, and the listeners at their limits */
#define SLOTS_APART 25                     /* odd, so that each slot has its turn */
#define STEP_TOLERANCE_NS (50 * NS_PER_MS) /* slewing stays below this in a heartbeat */

/* The wall clock against BOOTTIME since the last heartbeat. */
static void watch_clock(struct app *app, struct instant now) {
    int64_t gap_ns = now.real_ns - now.boot_ns;
    int64_t step_ns = gap_ns - app->clock_gap_ns;
    app->clock_gap_ns = gap_ns;
    if (step_ns > STEP_TOLERANCE_NS || step_ns < -STEP_TOLERANCE_NS) {
        app->counters.clock_steps_real++;
        log_event(LOG_WARN, "clock-step", LOG_TEXT("clock", "real"),
                  LOG_NUMBER("step_ms", step_ns / NS_PER_MS));
    }
}

void app_note_lateness(struct app *app, int64_t due_ns, int64_t now_ns) {
    int64_t lag_ns = now_ns - due_ns;
    if (lag_ns > app->lag_most_ns) {
        app->lag_most_ns = lag_ns;
    }
    if (lag_ns <= app->settings.margin_ns || due_ns < app->stalled_until_ns) {
        return; /* in time, or due in a stall that has been counted */
    }
    app->stalled_until_ns = now_ns;
    app->counters.loop_stalls++;
    log_event(LOG_WARN, "loop-stall", LOG_NUMBER("lag_ms", lag_ns / NS_PER_MS),
              LOG_NUMBER("margin_ms", app->settings.margin_ns / NS_PER_MS));
    /* After a suspend the loop's own timers are late by as much: look at every lease now. */
    for (size_t i = 0; i < app->board.count; i++) {
        app_tick_soon(&app->elections[i]);
    }
}

static void heartbeat_arm(struct app *app);

static void on_heartbeat(uv_timer_t *timer) {
    struct app *app = timer->data;
    struct instant now = clock_now();
    app_note_lateness(app, app->heartbeat_due_ns, now.boot_ns);
    app->counters.loop_lag_s = (double)app->lag_most_ns / (double)NS_PER_S;
    app->lag_most_ns = 0;
    watch_clock(app, now);
    if (app->notify.watchdog_ns > 0 && now.boot_ns >= app->notify.watchdog_due_ns) {
        app->notify.watchdog_due_ns = now.boot_ns + app->notify.watchdog_ns;
        notify_send(&app->notify, "WATCHDOG=1");
    }
    heartbeat_arm(app);
}

static void heartbeat_arm(struct app *app) {
    int64_t every_ns = HEARTBEAT_NS;
    if (app->notify.watchdog_ns > 0 && app->notify.watchdog_ns < every_ns) {
        every_ns = app->notify.watchdog_ns;
    }
    uv_update_time(&app->loop);
    app->heartbeat_due_ns = clock_now().boot_ns + every_ns;
    uv_timer_start(&app->heartbeat, on_heartbeat, (uint64_t)(every_ns / NS_PER_MS), 0);
}

static void settings_fill(struct app *app) {
    const struct config *config = app->config;
    app->settings = (struct election_config){.ttl_ns = config->ttl_ns,
                                             .margin_ns = config->margin_ns,
                                             .wait_floor_ns = config->wait_ns,
                                             .valid_for_ns = config->valid_for_ns,
                                             .drain_ns = config->drain_ns,
                                             .drain_none = config->drain_none,
                                             .efficiency = config->efficiency,
                                             .step_down = config->step_down,
                                             .require_app = config->require_app,
                                             .app_check = config->app_check != NULL,
                                             .one_pace = app->store_ops->batches,
                                             .poll_ns = app->store_ops->poll_ns,
                                             .identity = config->identity};
}

static void elections_init(struct app *app) {
    struct instant now = clock_now();
    uint64_t first_slot;
    random_bytes(&first_slot, sizeof first_slot);
    app->elections = memory_zeroed(app->config->election_count, sizeof *app->elections);
    for (size_t i = 0; i < app->config->election_count; i++) {
        struct app_election *election = &app->elections[i];
        uint64_t first_index;
        random_bytes(&first_index, sizeof first_index);
        election->app = app;
        election->index = i;
        first_index >>= 16; /* 48 bits: exact in any reader's numbers, for ever */
        /* They take turns, far apart where there are few. */
        first_index += (first_slot + i * SLOTS_APART - first_index) % ELECTION_SLOTS;
        election_init(&election->core, &app->settings, first_index, now);
        uv_timer_init(&app->loop, &election->timer);
        election->timer.data = election;
    }
}

static bool store_start(struct app *app) {
    struct config *config = app->config;
    struct error error = {""};
    app->store_secrets.user = config->store_user;
    app->store_secrets.password = config->store_password;
    app->store_secrets.refresh = app_refresh_secrets;
    app->store_secrets.context = app;
    struct store_setup setup = {.loop = &app->loop,
                                .url = config->store_url,
                                .namespace_ = config->namespace_,
                                .identity = config->identity,
                                .elections = (const char *const *)config->elections,
                                .election_count = config->election_count,
                                .ttl_ns = config->ttl_ns,
                                .margin_ns = config->margin_ns,
                                .token_floor = config->token_floor,
                                .wait_replicas = config->redis_wait_replicas,
                                .secrets = &app->store_secrets,
                                .tls = config_tls(config),
                                .postgres = &config->postgres,
                                .status = &app->store_status,
                                .on_event = app_store_event,
                                .context = app};
    app->store = app->store_ops->open(&setup, &error);
    if (app->store == NULL) {
        log_event(LOG_ERROR, "cannot-start", LOG_TEXT("error", error.text));
        return false;
    }
    return true;
}

/* Listeners first: an application can ask from the first moment, and hears "follower". */
static bool start(struct app *app) {
    if (!app_signals_start(app)) {
        log_event(LOG_ERROR, "cannot-start", LOG_TEXT("error", "signals cannot be watched"));
        return false;
    }
    if (!app_listen(app) || !store_start(app)) {
        return false;
    }
    uv_timer_init(&app->loop, &app->heartbeat);
    app->heartbeat.data = app;
    app->heartbeat_ready = true;
    struct instant now = clock_now();
    app->clock_gap_ns = now.real_ns - now.boot_ns;
    heartbeat_arm(app);
    app_check_start(app);
    for (size_t i = 0; i < app->board.count; i++) {
        app_tick_soon(&app->elections[i]);
    }
    if (app->health != NULL) {
        health_set_ready(app->health, true);
    }
    notify_send(&app->notify, "READY=1\nSTATUS=running");
    log_event(LOG_INFO, "started", LOG_TEXT("identity", app->config->identity),
              LOG_TEXT("store", app->store_ops->kind), LOG_TEXT("mode", app->board.mode),
              LOG_NUMBER("ttl_ms", app->config->ttl_ns / NS_PER_MS),
              LOG_NUMBER("elections", app->config->election_count));
    return true;
}

/* Clients and lock files need descriptors; the soft limit is usually far below the hard one. */
static void raise_file_limit(void) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max &&
        files.rlim_cur < FILES_WANTED) {
        files.rlim_cur = files.rlim_max < FILES_WANTED ? files.rlim_max : FILES_WANTED;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

int app_run(struct config *config) {
    struct error error = {""};
    struct app *app = memory_zeroed(1, sizeof *app);
    signal(SIGPIPE, SIG_IGN);
    mallopt(M_ARENA_MAX, 1); /* the pool's threads hardly allocate: no memory of their own */
    app->config = config;
    app->store_ops = store_for_url(config->store_url, &error);
    raise_file_limit();
    int loop_status = app->store_ops != NULL ? uv_loop_init(&app->loop) : 0;
    if (loop_status != 0) {
        error_set(&error, "the event loop cannot be made: %s", uv_strerror(loop_status));
    }
    if (app->store_ops == NULL || loop_status != 0) {
        log_event(LOG_ERROR, "cannot-start", LOG_TEXT("error", error.text));
        free(app);
        return 1;
    }
    settings_fill(app);
    elections_init(app);
    app_board_init(app);
    notify_init(&app->notify);
    uv_timer_init(&app->loop, &app->patience);
    app->patience.data = app;
    uv_unref((uv_handle_t *)&app->patience);

    bool started = start(app);
    app->started = started;
    if (!started) {
        app_close(app);
    }
    uv_run(&app->loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&app->patience, NULL);
    uv_run(&app->loop, UV_RUN_DEFAULT);
    int leftover = uv_loop_close(&app->loop);
    if (leftover != 0) {
        log_event(LOG_ERROR, "handles-left", LOG_TEXT("error", uv_strerror(leftover)));
    }
    notify_finish(&app->notify);
    for (size_t i = 0; i < app->board.count; i++) {
        counters_finish(&app->counters.elections[i]);
        board_set_problem(&app->board.entries[i], "");
        free(app->elections[i].company);
    }
    free(app->board.entries);
    free(app->counters.elections);
    free(app->elections);
    free(app);
    log_event(LOG_INFO, "stopped");
    return started && leftover == 0 ? 0 : 1;
}
