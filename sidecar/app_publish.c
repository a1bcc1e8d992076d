#include "app_internal.h"

#include "base/memory.h"

/* The readers' side: the board, what is logged of it, the listeners. */

static void board_lock_space(void *context, size_t election, char *text, size_t size) {
    struct app *app = context;
    text[0] = '\0';
    if (app->store != NULL && !app->closing) { /* nothing may be asked of a closed store */
        app->store_ops->lock_space(app->store, election, text, size);
    }
}

/* A reader found the wall clock past the lease. */
static void board_doubted(void *context, size_t election) {
    struct app *app = context;
    app_tick_soon(&app->elections[election]);
}

void app_board_init(struct app *app) {
    struct config *config = app->config;
    app->board.namespace_ = config->namespace_;
    app->board.identity = config->identity;
    app->board.store_kind = app->store_ops->kind;
    app->board.mode = config->efficiency ? "efficiency" : "correctness";
    app->board.unmeasured_ns =
        config->margin_ns < config->valid_for_ns ? config->margin_ns : config->valid_for_ns;
    app->board.count = config->election_count;
    app->board.entries = memory_zeroed(config->election_count, sizeof *app->board.entries);
    app->board.lock_space = board_lock_space;
    app->board.doubted = board_doubted;
    app->board.context = app;
    app->counters.elections =
        memory_zeroed(config->election_count, sizeof *app->counters.elections);
    for (size_t i = 0; i < config->election_count; i++) {
        app->board.entries[i].name = config->elections[i];
        app->board.entries[i].view = app->elections[i].core.view;
    }
}

static void log_change(const struct app_election *election, const struct view *before,
                       const struct view *after) {
    const struct election_transition *transition =
        election_transition_find(before->state, after->state);
    log_event(
        LOG_INFO, "state", LOG_TEXT("election", election->app->config->elections[election->index]),
        LOG_TEXT("from", election_state_name(before->state)),
        LOG_TEXT("to", election_state_name(after->state)),
        LOG_TEXT("reason", election_reason_name(after->reason)), LOG_NUMBER("token", after->token),
        LOG_TEXT("holder", after->holder),
        LOG_TEXT("comment", transition != NULL ? transition->comment : ""),
        LOG_TEXT("detail", after->state == STATE_PENDING ? prior_doubt_text(after->doubt) : ""));
}

static void log_warnings(const struct app_election *election, uint32_t before, uint32_t after) {
    for (unsigned bit = 0; bit < WARNING_COUNT; bit++) {
        uint32_t mask = UINT32_C(1) << bit;
        if (((before ^ after) & mask) != 0) {
            log_event(after & mask ? LOG_WARN : LOG_INFO, after & mask ? "warning" : "warning-over",
                      LOG_TEXT("election", election->app->config->elections[election->index]),
                      LOG_TEXT("code", warning_name(bit)));
        }
    }
}

void app_publish(struct app_election *election, const struct view *before, bool changed) {
    struct app *app = election->app;
    const struct view *after = &election->core.view;
    board_publish(&app->board, &app->board.entries[election->index], after, changed);
    if (after->state != before->state) {
        counters_transition(&app->counters.elections[election->index], after->state, after->reason);
        log_change(election, before, after);
    }
    if (after->warnings != before->warnings) {
        log_warnings(election, before->warnings, after->warnings);
    }
}

static bool refuse(const struct error *error) {
    log_event(LOG_ERROR, "cannot-start", LOG_TEXT("error", error->text));
    return false;
}

bool app_listen(struct app *app) {
    struct config *config = app->config;
    struct error error = {""};
    if (!config->http.off) {
        struct http_setup setup = {.loop = &app->loop,
                                   .board = &app->board,
                                   .counters = &app->counters,
                                   .address = &config->http};
        app->http = http_create(&setup, &error);
        if (app->http == NULL) {
            return refuse(&error);
        }
    }
    if (!config->health.off) {
        struct health_setup setup = {.loop = &app->loop,
                                     .board = &app->board,
                                     .counters = &app->counters,
                                     .own_counters = &app->counters,
                                     .store = &app->store_status,
                                     .address = &config->health};
        app->health = health_create(&setup, &error);
        if (app->health == NULL) {
            return refuse(&error);
        }
    }
    if (!config->socket_off) {
        struct socket_setup setup = {.loop = &app->loop,
                                     .board = &app->board,
                                     .counters = &app->counters,
                                     .path = config->socket_path,
                                     .mode = config->socket_mode,
                                     .resign = app_resign,
                                     .application = app_application,
                                     .ttl_ns = config->ttl_ns,
                                     .app_timeout_ns = config->app_timeout_ns,
                                     .context = app};
        app->socket = socket_create(&setup, &error);
        if (app->socket == NULL) {
            return refuse(&error);
        }
    }
    if (!config->page_dir_off) {
        struct pages_setup setup = {.directory = config->page_dir,
                                    .board = &app->board,
                                    .good_for_ns = config->ttl_ns - config->margin_ns};
        app->board.pages = pages_create(&setup, &error);
        if (app->board.pages == NULL) {
            return refuse(&error);
        }
    }
    return true;
}
