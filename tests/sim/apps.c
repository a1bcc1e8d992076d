#include "apps.h"

#include "checks.h"
#include "host.h"
#include "readers.h"

#include <string.h>

enum app_habit { STOPS_SOON, STOPS_LATE, STOPS_NEVER, HABITS };
enum app_word { WORD_ASKS = 100, WORD_STOPS }; /* beside enum app_event */

static void say(struct world *world, struct host *host, int word, uint64_t token,
                int64_t after_ns) {
    struct message message = {.type = MESSAGE_APP,
                              .at_ns = world->now_ns + after_ns,
                              .host = host->index,
                              .epoch = host->epoch,
                              .number = token,
                              .word = word,
                              .life = host->app.life};
    world_push(world, &message);
}

static int64_t soon_ns(struct world *world) {
    return rng_between(&world->app_rng, 50 * NS_PER_US, 3 * NS_PER_MS);
}

void apps_plan(struct world *world) {
    struct rng *rng = &world->app_rng;
    world->plan.apps = rng_chance(rng, 500) && !schedule_is_off(world->schedule, PART_APPS);
    for (int i = 0; i < world->plan.hosts && world->plan.apps; i++) {
        struct election_config *config = &world->hosts[i].config;
        config->require_app = rng_chance(rng, 300);
        config->app_check = rng_chance(rng, 200);
    }
}

static void attach(struct world *world, struct host *host, int64_t after_ns) {
    struct sim_app *app = &host->app;
    unsigned life = app->life + 1;
    uint64_t last = app->token != 0 ? app->token : app->last_token;
    *app = (struct sim_app){.exists = true, .life = life, .last_token = last};
    app->habit = rng_chance(&world->app_rng, 600) ? STOPS_SOON : rng_index(&world->app_rng, HABITS);
    say(world, host, APP_ATTACHED, 0, after_ns);
    say(world, host, WORD_ASKS, 0, after_ns + 1);
}

void apps_start(struct world *world, struct host *host) {
    unsigned life = host->app.life;
    host->app = (struct sim_app){.life = life};
    host->app_known = (struct app_known){.required = host->config.require_app,
                                         .unhealthy = host->config.app_check};
    if (!world->plan.apps) {
        return;
    }
    if (host->config.app_check) {
        say(world, host, APP_HEALTHY, 0, soon_ns(world));
    }
    if (host->config.require_app || rng_chance(&world->app_rng, 700)) {
        attach(world, host,
               rng_between(&world->app_rng, 1, 1 + (world->plan.calm ? 0 : host->config.ttl_ns)));
    }
}

/* What it was told ends with it. */
static void stop_work(struct world *world, struct host *host) {
    if (host->app.token != 0) {
        host->app.last_token = host->app.token;
    }
    host->app.token = 0;
    host->app.until_ns = 0;
    for (int i = 0; i < world->validity_count; i++) {
        struct validity *validity = &world->validities[i];
        if (validity->host == host->index && validity->app && validity->epoch == host->epoch) {
            validity->end_ns = 0;
        }
    }
}

/* It asks on its own connection: what it is told is in a ledger of its own. */
static void ask(struct world *world, struct host *host) {
    struct sim_app *app = &host->app;
    struct instant now = host_now(world, host);
    struct handouts ledger = host->handouts;
    ledger.until_ns = ledger.app_until_ns;
    struct answer answer = view_answer(&host->published, now, &ledger);
    host->handouts.app_until_ns = ledger.until_ns;
    host->handouts.doubted_ns = ledger.doubted_ns;
    world_count(world, STAT_APP_READS);
    checks_answer_to(world, host, now, &answer, true);
    if (!answer.leader) {
        return;
    }
    int64_t end_ns = sim_clock_reach(&host->boot, answer.deadline_ns);
    if (app->token != answer.token) {
        app->token = answer.token;
        app->owes = host->app_known.attached;
        app->until_ns = 0;
        memcpy(app->nonce, host->book.nonce, NONCE_BYTES);
    }
    app->until_ns = end_ns > app->until_ns ? end_ns : app->until_ns;
}

void apps_actions(struct world *world, struct host *host, const struct election_actions *actions) {
    struct sim_app *app = &host->app;
    if (actions->app_stopped) {
        host->handouts.app_until_ns = 0;
    }
    if (!actions->revoke || !app->exists) {
        return;
    }
    world_count(world, STAT_APP_REVOKED);
    int64_t by_ns = sim_clock_reach(&host->boot, actions->revoke_by_ns);
    world_trace(world, "host %d: its application is to stop within %.3f ms", host->index,
                (double)(by_ns - world->now_ns) / 1e6);
    bool later = actions->revoke_by_ns > host_now(world, host).boot_ns;
    if (app->token == actions->revoke_token && later && by_ns > app->until_ns) {
        checks_promise(world, host, by_ns);
        app->until_ns = by_ns;
    }
    if (app->habit == STOPS_NEVER || app->told == actions->revoke_token) {
        return;
    }
    app->told = actions->revoke_token;
    int64_t after_ns = soon_ns(world);
    if (app->habit == STOPS_LATE) {
        after_ns = rng_between(&world->app_rng, 0, 2 * host->config.ttl_ns);
    }
    say(world, host, WORD_STOPS, actions->revoke_token, after_ns);
    if (rng_chance(&world->app_rng, 300) && app->last_token != 0) {
        say(world, host, APP_DONE, app->last_token, soon_ns(world) / 4); /* an old word again */
    }
}

/* --- what the process hears ------------------------------------------------------------------ */

static void note_known(struct host *host, int word) {
    struct app_known *known = &host->app_known;
    switch (word) {
    case APP_ATTACHED:
        known->attached = known->required = true;
        known->silent = false;
        break;
    case APP_GONE:
    case APP_CUT:
        known->attached = known->silent = false;
        break;
    case APP_HUNG:
        known->silent = true;
        break;
    case APP_BEATS:
        known->silent = false;
        break;
    case APP_HEALTHY:
    case APP_UNHEALTHY:
        known->unhealthy = word == APP_UNHEALTHY;
        break;
    default:
        break;
    }
}

static void hear(struct world *world, struct host *host, const struct message *message) {
    static const char *const words[] = {"attaches", "is gone",     "is cut off",
                                        "is hung",  "beats again", "says done",
                                        "resigns",  "is healthy",  "is unhealthy"};
    world_trace(world, "host %d: its application %s", host->index, words[message->word]);
    note_known(host, message->word);
    struct sim_app *app = &host->app;
    if (message->word == APP_DONE && app->token == message->number) {
        stop_work(world, host);
    }
    if (message->word == APP_CUT || message->word == APP_HUNG) {
        app->owes = false; /* it may stop without a word; what it was told still counts */
        if (message->word == APP_HUNG && host->config.efficiency) {
            stop_work(world, host); /* an overlap is acceptable there */
        }
    }
    struct election_event event = {
        .type = EVENT_APP, .app = (enum app_event)message->word, .token = message->number};
    host_event(world, host, &event);
    app->joined = app->joined || message->word == APP_RESIGNS;
    bool ends = message->word == APP_GONE || message->word == APP_CUT ||
                message->word == APP_HUNG || message->word == APP_RESIGNS ||
                message->word == APP_UNHEALTHY;
    if (ends && host->running && readers_would_lead(world, host)) {
        world_violation(world, "P5: host %d leads on although its application %s", host->index,
                        words[message->word]);
    }
}

/* --- what the application does --------------------------------------------------------------- */

static void fail(struct world *world, struct host *host) {
    struct sim_app *app = &host->app;
    struct rng *rng = &world->app_rng;
    int64_t back_ns = rng_between(rng, NS_PER_MS, 2 * host->config.ttl_ns);
    if (!host->running) {
        return;
    }
    if (host->config.app_check && rng_chance(rng, 200)) {
        say(world, host, APP_UNHEALTHY, 0, 0);
        say(world, host, APP_HEALTHY, 0, back_ns);
        return;
    }
    if (!app->exists || !host->app_known.attached) {
        return;
    }
    world_count(world, STAT_APP_FAULTS);
    switch (rng_index(rng, 5)) {
    case 0: /* dies: it works no more, and its end is heard of */
        stop_work(world, host);
        say(world, host, APP_GONE, 0, soon_ns(world));
        attach(world, host, back_ns);
        break;
    case 1:
        say(world, host, APP_HUNG, 0, 0);
        say(world, host, APP_BEATS, 0, back_ns);
        break;
    case 2: /* hung, then killed */
        say(world, host, APP_HUNG, 0, 0);
        say(world, host, WORD_STOPS + 1, 0, back_ns);
        break;
    case 3: /* cut off: works on for as long as it may, and comes back */
        say(world, host, APP_CUT, 0, 0);
        say(world, host, WORD_STOPS + 2, 0, back_ns);
        break;
    default:
        stop_work(world, host);
        app->joined = false; /* asks no more before it is heard */
        say(world, host, APP_RESIGNS, 0, 0);
        break;
    }
}

void apps_message(struct world *world, struct host *host, const struct message *message) {
    struct sim_app *app = &host->app;
    bool own = message->word != APP_HEALTHY && message->word != APP_UNHEALTHY;
    bool old_word = message->word == APP_GONE || message->word == APP_DONE;
    if (own && message->life != app->life && !old_word) {
        return;
    }
    if (message->word == WORD_ASKS) {
        if (app->joined && host_is_awake(world, host)) {
            ask(world, host);
        }
        say(world, host, WORD_ASKS, 0,
            rng_between(&world->app_rng, NS_PER_MS, 2 * host->read_every_ns));
    } else if (message->word == WORD_STOPS) {
        stop_work(world, host);
        hear(world, host, &(struct message){.word = APP_DONE, .number = message->number});
    } else if (message->word == WORD_STOPS + 1) {
        stop_work(world, host);
        hear(world, host, &(struct message){.word = APP_GONE});
        attach(world, host, soon_ns(world));
    } else if (message->word == WORD_STOPS + 2) {
        attach(world, host, soon_ns(world));
    } else {
        if (message->word == APP_ATTACHED && host->app_known.attached) {
            say(world, host, APP_ATTACHED, 0,
                NS_PER_MS); /* busy: the last one's end is on its way */
            return;
        }
        if (message->word == APP_ATTACHED) {
            app->joined = true;
        }
        hear(world, host, message);
    }
}

void apps_fault(struct world *world) {
    struct rng usual = world->app_rng;
    world->app_rng = world->rng;
    int host = readers_leader(world);
    if (host < 0 || rng_chance(&world->app_rng, 200)) {
        host = rng_index(&world->app_rng, world->plan.hosts);
    }
    fail(world, &world->hosts[host]);
    world->rng = world->app_rng;
    world->app_rng = usual;
}

void apps_calm_down(struct world *world) {
    for (int i = 0; i < world->plan.hosts; i++) {
        struct host *host = &world->hosts[i];
        host->app.habit = STOPS_SOON;
        if (host->running && world->plan.apps) {
            say(world, host, APP_BEATS, 0, 2 * host->config.ttl_ns);
            /* A pause may have brought "unhealthy" after "healthy": the last word counts. */
            say(world, host, APP_HEALTHY, 0, 2 * host->config.ttl_ns);
        }
    }
}

/* --- what must not happen -------------------------------------------------------------------- */

void apps_check_operation(struct world *world, const struct host *host,
                          const struct election_actions *actions) {
    const struct sim_app *app = &host->app;
    const struct app_known *known = &host->app_known;
    if (actions->op == OP_ACQUIRE && actions->take &&
        ((known->required && !known->attached) || known->silent || known->unhealthy)) {
        world_violation(world, "P5: host %d stands although no healthy application is attached",
                        host->index);
    }
    if (actions->op != OP_RELEASE || app->token == 0 || host->readers_stopped ||
        memcmp(app->nonce, actions->nonce, NONCE_BYTES) != 0) {
        return;
    }
    if (app->until_ns > world->now_ns) {
        world_violation(world, "P4: host %d gives the lock back under its application",
                        host->index);
    }
    model_store_expire(&world->store, world->now_ns);
    const struct lock_key *key = &world->store.key;
    if (app->owes && key->present && memcmp(key->nonce, actions->nonce, NONCE_BYTES) == 0 &&
        actions->clean) {
        world_violation(world, "P4: host %d gives the lock back, its application never said done",
                        host->index);
    }
}

void apps_check_answer(struct world *world, const struct host *host) {
    const struct sim_app *app = &host->app;
    if (app->token != 0 && app->until_ns > world->now_ns &&
        memcmp(app->nonce, host->book.nonce, NONCE_BYTES) != 0) {
        world_violation(world,
                        "P4: host %d leads a new grant, its application works under the last one "
                        "for %.3f ms more",
                        host->index, (double)(app->until_ns - world->now_ns) / 1e6);
    }
}
