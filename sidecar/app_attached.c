#include "app_internal.h"

#include "base/clock.h"
#include "base/memory.h"

/*
 * The application's side: what is heard of it goes to the core, what it has to be told goes to the
 * socket. An event that comes up in the middle of a step waits for the next turn of the loop.
 */

#define SUSPECT_MS 1 /* one turn of the loop: beats that wait to be read are read */

#define SAID_MS 100 /* what a client may say again and again is logged so often at most */

static void give(struct app_election *election, enum app_event app, uint64_t token) {
    struct election_event event = {.type = EVENT_APP, .app = app, .token = token};
    app_step(election, &event);
}

static struct app_company *company_of(struct app_election *election) {
    if (election->company == NULL) {
        election->company = memory_zeroed(1, sizeof *election->company);
        uv_timer_init(&election->app->loop, &election->company->beat);
        election->company->beat.data = election;
    }
    return election->company;
}

static void log_application(struct app_election *election, enum app_event event) {
    static const char *const words[] = {[APP_ATTACHED] = "attached",
                                        [APP_GONE] = "gone",
                                        [APP_CUT] = "cut-off",
                                        [APP_DONE] = "done",
                                        [APP_RESIGNS] = "resigns"};
    uint64_t suppressed;
    if (log_allow(&company_of(election)->said_limits[event], SAID_MS, &suppressed)) {
        log_event(LOG_INFO, "application",
                  LOG_TEXT("election", election->app->config->elections[election->index]),
                  LOG_TEXT("what", words[event]), LOG_NUMBER("suppressed", suppressed));
    }
}

/* It may say so of any token: what counts, and is logged, is that the core waited for this one. */
static void give_done(struct app_election *election, uint64_t token) {
    bool works = election->core.app_token == token;
    give(election, APP_DONE, token);
    if (works && election->core.app_token != token) {
        log_application(election, APP_DONE);
    }
}

static bool take(bool *flag) {
    bool was = *flag;
    *flag = false;
    return was;
}

void app_notices_take(struct app_election *election) {
    struct app_notices *notices = &election->notices;
    uint64_t done = notices->done;
    notices->done = 0;
    if (done != 0) {
        give_done(election, done);
    }
    if (take(&notices->resigns)) {
        give(election, APP_RESIGNS, 0);
    }
    if (take(&notices->cut)) {
        give(election, APP_CUT, 0);
    }
    if (take(&notices->gone)) {
        give(election, APP_GONE, 0);
    }
    if (take(&notices->attached)) {
        give(election, APP_ATTACHED, 0);
    }
    if (take(&notices->beats)) {
        give(election, APP_BEATS, 0);
    }
    if (take(&notices->hung)) {
        give(election, APP_HUNG, 0);
    }
    if (take(&notices->healthy)) {
        give(election, APP_HEALTHY, 0);
    }
    if (take(&notices->unhealthy)) {
        give(election, APP_UNHEALTHY, 0);
    }
}

static void note(struct app_election *election, enum app_event event, uint64_t token) {
    struct app_notices *notices = &election->notices;
    switch (event) {
    case APP_ATTACHED:
        notices->attached = true;
        break;
    case APP_GONE:
        notices->attached = false; /* what has not been heard of needs no end */
        notices->gone = true;
        break;
    case APP_CUT:
        notices->attached = false;
        notices->cut = true;
        break;
    case APP_HUNG:
        notices->beats = false;
        notices->hung = true;
        break;
    case APP_BEATS:
        notices->hung = false;
        notices->beats = true;
        break;
    case APP_DONE:
        notices->done = token;
        break;
    case APP_RESIGNS:
        notices->resigns = true;
        break;
    case APP_HEALTHY:
    case APP_UNHEALTHY:
        notices->healthy = event == APP_HEALTHY;
        notices->unhealthy = event == APP_UNHEALTHY;
        break;
    }
}

static void notice(struct app_election *election, enum app_event event, uint64_t token) {
    note(election, event, token);
    if (election->app->stepping) {
        election->noticed = true;
        app_tick_soon(election);
    } else {
        app_notices_take(election);
    }
}

static void beat_arm(struct app_election *election);

/* Late itself, the loop has not read yet what the application said in time: it looks again. */
static void on_beat_due(uv_timer_t *timer) {
    struct app_election *election = timer->data;
    struct app_company *company = election->company;
    int64_t now_ns = clock_now().boot_ns;
    if (now_ns < company->beat_due_ns) {
        beat_arm(election);
    } else if (!company->suspected) {
        company->suspected = true;
        uv_timer_start(timer, on_beat_due, SUSPECT_MS, 0);
    } else {
        company->hung = true;
        log_event(LOG_WARN, "application-hung",
                  LOG_TEXT("election", election->app->config->elections[election->index]),
                  LOG_NUMBER("timeout_ms", election->app->config->app_timeout_ns / NS_PER_MS));
        notice(election, APP_HUNG, 0);
    }
}

static void beat_arm(struct app_election *election) {
    struct app_company *company = company_of(election);
    int64_t left_ns = company->beat_due_ns - clock_now().boot_ns;
    uint64_t left_ms = left_ns <= 0 ? 0 : (uint64_t)((left_ns + NS_PER_MS - 1) / NS_PER_MS);
    uv_update_time(&election->app->loop);
    uv_timer_start(&company->beat, on_beat_due, left_ms, 0);
}

/* The timer is not set anew for each beat: it looks when it fires. */
static void beat(struct app_election *election) {
    int64_t timeout_ns = election->app->config->app_timeout_ns;
    if (timeout_ns == 0 || election->app->closing) {
        return;
    }
    struct app_company *company = company_of(election);
    company->beat_due_ns = clock_now().boot_ns + timeout_ns;
    bool again = company->suspected || !uv_is_active((uv_handle_t *)&company->beat);
    company->suspected = false;
    if (again) {
        beat_arm(election);
    }
    if (company->hung) {
        company->hung = false;
        notice(election, APP_BEATS, 0);
    }
}

void app_application(void *context, size_t index, enum app_event event, uint64_t token) {
    struct app *app = context;
    struct app_election *election = &app->elections[index];
    if (app->closing && election->company == NULL) {
        return; /* no new handle */
    }
    struct app_company *company = company_of(election);
    switch (event) {
    case APP_BEATS:
        beat(election);
        return; /* to the core it is news only after it was hung */
    case APP_ATTACHED:
        company->hung = false;
        beat(election);
        app->counters.elections[index].attached_apps = 1;
        log_application(election, event);
        break;
    case APP_GONE:
    case APP_CUT:
        company->hung = false;
        uv_timer_stop(&company->beat);
        app->counters.elections[index].attached_apps = 0;
        log_application(election, event);
        break;
    case APP_RESIGNS:
        log_application(election, event);
        break;
    case APP_DONE: /* logged when the core takes it */
    case APP_HUNG:
    case APP_HEALTHY:
    case APP_UNHEALTHY:
        break;
    }
    notice(election, event, token);
}

/* Before the lock can change hands. */
void app_tell(struct app_election *election, const struct election_actions *actions) {
    struct app *app = election->app;
    if (actions->app_stopped) {
        app->board.entries[election->index].handouts.app_until_ns = 0;
    }
    if (app->socket == NULL) {
        return;
    }
    if (actions->revoke) {
        int64_t left_ns = actions->revoke_by_ns - clock_now().boot_ns;
        log_event(LOG_INFO, "revoked",
                  LOG_TEXT("election", app->config->elections[election->index]),
                  LOG_NUMBER("token", actions->revoke_token),
                  LOG_NUMBER("within_ms", left_ns > 0 ? left_ns / NS_PER_MS : 0));
        socket_revoke(app->socket, election->index, actions->revoke_token, actions->revoke_by_ns);
    }
    socket_lease(app->socket, election->index);
}

/* --- --app-check -------------------------------------------------------------------------------
 */

#define CHECK_EVERY_MS 1000
#define CHECK_TIMEOUT_MS 1000
#define CHECKS_TO_CHANGE 3

static void set_well(struct app *app, bool well) {
    app->app_well = well;
    app->app_was_well = app->app_was_well || well;
    log_event(well ? LOG_INFO : LOG_WARN, well ? "application-well" : "application-unhealthy",
              LOG_TEXT("url", app->config->app_check));
    for (size_t i = 0; i < app->board.count; i++) {
        notice(&app->elections[i], well ? APP_HEALTHY : APP_UNHEALTHY, 0);
    }
}

static void on_checked(void *context, bool well, const char *why) {
    struct app *app = context;
    app->check_failures = well ? 0 : app->check_failures + 1;
    app->check_successes = well ? app->check_successes + 1 : 0;
    uint64_t suppressed = 0;
    if (!well && log_allow(&app->check_limit, 10000, &suppressed)) {
        log_event(LOG_WARN, "app-check", LOG_TEXT("url", app->config->app_check),
                  LOG_TEXT("problem", why), LOG_NUMBER("suppressed", suppressed));
    }
    if (app->app_well && app->check_failures >= CHECKS_TO_CHANGE) {
        set_well(app, false);
        return;
    }
    unsigned enough = app->app_was_well ? CHECKS_TO_CHANGE : 1; /* one will do at the start */
    if (!app->app_well && app->check_successes >= enough) {
        set_well(app, true);
    }
}

void app_check_start(struct app *app) {
    struct http_target target;
    struct error error;
    if (app->config->app_check != NULL &&
        http_target_parse(app->config->app_check, &target, &error)) {
        app->probe = http_probe_create(&app->loop, &target, CHECK_EVERY_MS, CHECK_TIMEOUT_MS,
                                       on_checked, app);
    }
}

void app_check_close(struct app *app) {
    if (app->probe != NULL) {
        http_probe_close(app->probe);
        app->probe = NULL;
    }
}
