#include "config/check.h"

#include "base/memory.h"
#include "config/address.h"
#include "config/duration.h"
#include "config/mask.h"
#include "config/names.h"
#include "config/options.h"
#include "config/report.h"
#include "config/runtime_dir.h"
#include "config/tls.h"
#include "store/store.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define LEAST_MARGIN_NS (50 * NS_PER_MS)
/* A shared page counts as read at the moment at which a drain clears it, not before. */
#define PAGE_EXTRA_NS (50 * NS_PER_MS)

struct checker {
    struct config *config;
    struct config_report *report;
    char *const *environment;
};

static bool is_bad(const struct checker *checker, enum option_id id) {
    return checker->config->settings[id].bad;
}

static bool is_given(const struct checker *checker, enum option_id id) {
    return checker->config->settings[id].key != NULL;
}

/* Blames one option, by the name under which it was given. */
static void blame(struct checker *checker, enum option_id id, const char *text) {
    struct config_setting *setting = &checker->config->settings[id];
    char name[OPTION_VARIABLE_MAX];
    (void)snprintf(name, sizeof name, "--%s", options[id].name);
    report_error(checker->report, setting->key != NULL ? setting->key : name, setting->shown, "%s",
                 text);
    setting->bad = true;
}

static void blame_time(struct checker *checker, enum option_id id, const char *what,
                       int64_t limit_ns, const char *why) {
    char limit[DURATION_TEXT_MAX];
    struct error error;
    error_set(&error, "%s %s%s", what, duration_format(limit_ns, limit, sizeof limit), why);
    blame(checker, id, error.text);
}

static const char *variable(char *const *environment, const char *name) {
    size_t length = strlen(name);
    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=') {
            return *environment + length + 1;
        }
    }
    return NULL;
}

static void default_identity(struct checker *checker) {
    char name[256] = "";
    if (gethostname(name, sizeof name - 1) != 0 || !name_is_identity(name)) {
        blame(checker, OPTION_IDENTITY,
              "the host's name does not serve (1 to 128 printable ASCII characters without spaces "
              "and quotes): give --identity ID");
        return;
    }
    checker->config->identity = memory_text(name);
}

static struct runtime_places runtime_places(const struct checker *checker) {
    return (struct runtime_places){
        .runtime_directory = variable(checker->environment, "RUNTIME_DIRECTORY"),
        .system_directory = RUNTIME_SYSTEM_DIRECTORY,
        .user_directory = variable(checker->environment, "XDG_RUNTIME_DIR"),
    };
}

static void default_page_dir(struct checker *checker) {
    struct runtime_places places = runtime_places(checker);
    char path[PATH_MAX];
    if (!runtime_directory(&places, RUNTIME_SIDECAR, path, sizeof path)) {
        blame(checker, OPTION_PAGE_DIR,
              "there is no runtime directory (RUNTIME_DIRECTORY and XDG_RUNTIME_DIR are not set, "
              "/run/gavel cannot be made or written to): give --page-dir DIR or --page-dir off");
        return;
    }
    checker->config->page_dir = memory_text(path);
}

static void default_socket(struct checker *checker) {
    struct runtime_places places = runtime_places(checker);
    char path[SOCKET_PATH_MAX + 1];
    if (!runtime_socket(&places, RUNTIME_SIDECAR, path, sizeof path)) {
        blame(checker, OPTION_SOCKET,
              "there is no runtime directory of at most 96 bytes (RUNTIME_DIRECTORY and "
              "XDG_RUNTIME_DIR are not set, /run/gavel cannot be made or written to): give "
              "--socket PATH or "
              "--socket off");
        return;
    }
    checker->config->socket_path = memory_text(path);
}

static void fill_in(struct checker *checker) {
    struct config *config = checker->config;
    if (!is_given(checker, OPTION_MARGIN)) {
        int64_t fifth_ns = config->ttl_ns / 5;
        config->margin_ns = fifth_ns > LEAST_MARGIN_NS ? fifth_ns : LEAST_MARGIN_NS;
    }
    if (!is_given(checker, OPTION_WAIT)) {
        config->wait_ns = config->ttl_ns;
    }
    if (!is_given(checker, OPTION_IDENTITY) && !is_bad(checker, OPTION_IDENTITY)) {
        default_identity(checker);
    }
    if (!is_given(checker, OPTION_SOCKET) && !is_bad(checker, OPTION_SOCKET)) {
        default_socket(checker);
    }
    if (!is_given(checker, OPTION_PAGE_DIR) && !is_bad(checker, OPTION_PAGE_DIR)) {
        default_page_dir(checker);
    }
}

static const char *store_kind(const struct config *config) {
    struct error error;
    const struct store_ops *ops =
        config->store_url != NULL ? store_for_url(config->store_url, &error) : NULL;
    return ops != NULL ? ops->kind : "";
}

/* A drain ends the process, answers that were given or not. What becomes of the lock then: */
static void check_drain(struct checker *checker) {
    const struct config *config = checker->config;
    if (is_bad(checker, OPTION_DRAIN) || is_bad(checker, OPTION_VALID_FOR) || config->drain_none) {
        return;
    }
    const char *kind = store_kind(config);
    bool local = strcmp(kind, "local") == 0;
    bool postgres = strcmp(kind, "postgres") == 0;
    int64_t lease_ns = config->ttl_ns - config->margin_ns;
    int64_t promised_ns = config->valid_for_ns < lease_ns ? config->valid_for_ns : lease_ns;
    if (!config->page_dir_off) {
        promised_ns += PAGE_EXTRA_NS;
    }
    if (config->drain_ns >= promised_ns) {
        return;
    }
    if (local || (postgres && config->efficiency)) {
        blame_time(checker, OPTION_DRAIN,
                   local ? "ends before the answers that were given (--valid-for), and a lock file "
                           "is free as soon as the process has ended: at least"
                         : "ends before the answers that were given (--valid-for), and PostgreSQL "
                           "frees the lock as soon as the process has ended: at least",
                   promised_ns, ", or none where the application has ended before");
        return;
    }
    report_warning(checker->report,
                   "--drain is shorter than what answers promise (--valid-for, and 50ms for shared "
                   "pages): a drain may end before the lock can be given back, and %s",
                   postgres ? "the others, who get it as soon as the process has ended, wait for "
                              "as long as --wait before they lead"
                            : "the others wait for the lease to run out");
}

static void check_times(struct checker *checker) {
    const struct config *config = checker->config;
    if (is_bad(checker, OPTION_TTL)) {
        return;
    }
    if (!is_bad(checker, OPTION_MARGIN)) {
        /* A renewal each ttl/3 and an attempt of ttl/6 have to find their place before it. */
        if (config->margin_ns > config->ttl_ns / 3) {
            blame_time(checker, OPTION_MARGIN, "leaves no time to renew the lease: at most ttl/3,",
                       config->ttl_ns / 3, "");
        } else if (!config->efficiency && !is_bad(checker, OPTION_MODE) &&
                   config->margin_ns < config->ttl_ns / 10) {
            blame_time(checker, OPTION_MARGIN, "is too small in mode correctness: at least ttl/10,",
                       config->ttl_ns / 10, "");
        }
    }
    if (!is_bad(checker, OPTION_WAIT) && config->wait_ns < config->ttl_ns) {
        blame_time(checker, OPTION_WAIT,
                   "is less than the ttl, which is waited for anyway: at "
                   "least",
                   config->ttl_ns, ", or leave it out");
    }
    check_drain(checker);
}

static void check_addresses(struct checker *checker) {
    const struct config *config = checker->config;
    if (config->http.off && config->health.off && config->socket_off) {
        blame(checker, OPTION_SOCKET,
              "--http, --health and --socket are all off, nobody could ask: leave one on");
        return;
    }
    if (is_bad(checker, OPTION_HTTP) || is_bad(checker, OPTION_HEALTH) ||
        !address_overlaps(&config->http, &config->health)) {
        return;
    }
    /* Blame the one that was given. */
    bool health = is_given(checker, OPTION_HEALTH);
    enum option_id other = health ? OPTION_HTTP : OPTION_HEALTH;
    const struct listen_address *taken = health ? &config->http : &config->health;
    char address[ADDRESS_TEXT_MAX];
    struct error error;
    error_set(&error, "listens where --%s does (%s): give them different ports",
              options[other].name, address_format(taken, address));
    blame(checker, health ? OPTION_HEALTH : OPTION_HTTP, error.text);
}

/* Applications attach to the socket. */
static void check_application(struct checker *checker) {
    const struct config *config = checker->config;
    if (!config->socket_off || is_bad(checker, OPTION_SOCKET)) {
        return;
    }
    if (config->require_app && !is_bad(checker, OPTION_REQUIRE_APP)) {
        blame(checker, OPTION_REQUIRE_APP,
              "applications attach to the socket, and --socket is off: leave one of them out");
    }
    if (config->app_timeout_ns > 0 && !is_bad(checker, OPTION_APP_TIMEOUT)) {
        blame(checker, OPTION_APP_TIMEOUT,
              "beats come over the socket, and --socket is off: leave one of them out");
    }
}

/* One of user and password: `in_url` says that the URL carries one too. */
static void check_credential(struct checker *checker, enum option_id id, const char *store,
                             bool in_url) {
    if (!is_given(checker, id) || is_bad(checker, id)) {
        return;
    }
    if (strcmp(store, "local") == 0) {
        blame(checker, id, "a local store has no users: leave it out");
    } else if (strcmp(store, "postgres") == 0) {
        blame(checker, id,
              "PostgreSQL has its own: the user in the URL, the password in the URL "
              "(GAVEL_STORE_FILE) or in a passfile as libpq reads it");
    } else if (in_url) {
        blame(checker, id, "the store's URL carries one as well: give it in one place");
    }
}

static void check_credentials(struct checker *checker, const char *store) {
    const struct config *config = checker->config;
    struct url_credentials in_url = url_credentials(config->store_url);
    check_credential(checker, OPTION_STORE_USER, store, in_url.user);
    check_credential(checker, OPTION_STORE_PASSWORD, store, in_url.password);
    if (is_given(checker, OPTION_STORE_USER) && !is_bad(checker, OPTION_STORE_USER) &&
        !in_url.password && config->store_password == NULL &&
        !is_bad(checker, OPTION_STORE_PASSWORD)) {
        blame(checker, OPTION_STORE_USER,
              "a user needs a password: give GAVEL_STORE_PASSWORD or --store-password-file");
    }
    const struct config_setting *setting = &config->settings[OPTION_STORE];
    if (in_url.password && setting->file == NULL && strncmp(setting->key, "--", 2) == 0) {
        report_warning(checker->report,
                       "--store: the URL carries a password, which everybody on the host can read "
                       "on the command line: use --store-file or GAVEL_STORE_PASSWORD_FILE");
    }
}

static void check_tls_pair(struct checker *checker) {
    bool certificate = is_given(checker, OPTION_TLS_CERT);
    bool key = is_given(checker, OPTION_TLS_KEY);
    if (certificate && !key && !is_bad(checker, OPTION_TLS_CERT)) {
        blame(checker, OPTION_TLS_CERT, "is of no use without its private key: give --tls-key too");
    } else if (key && !certificate && !is_bad(checker, OPTION_TLS_KEY)) {
        blame(checker, OPTION_TLS_KEY, "is of no use without its certificate: give --tls-cert too");
    }
}

/* False: there is nothing to be read. */
static bool check_tls_options(struct checker *checker, bool tls) {
    bool good = true;
    for (int file = 0; file < STORE_TLS_FILES; file++) {
        enum option_id id = config_tls_option((enum store_tls_file)file);
        if (!tls && is_given(checker, id) && !is_bad(checker, id)) {
            blame(checker, id,
                  "is of no use, the store's URL does not ask for TLS: write rediss:// in it, or "
                  "leave this out");
        }
        good = good && !is_bad(checker, id);
    }
    return good && tls;
}

static void check_tls(struct checker *checker, const struct store_ops *ops) {
    const struct config *config = checker->config;
    bool tls = ops->uses_tls != NULL && ops->uses_tls(config->store_url);
    struct store_tls files = config_tls(config);
    struct store_tls_finding finding;
    if (!check_tls_options(checker, tls)) {
        return;
    }
    if (!ops->check_tls(&files, &finding)) {
        blame(checker, config_tls_option(finding.file), finding.error.text);
    }
    if (finding.key_exposed) {
        struct error text;
        config_tls_exposed(config, &text);
        report_warning(checker->report, "%s", text.text);
    }
}

static void check_postgres(struct checker *checker, bool postgres) {
    struct config *config = checker->config;
    for (int id = OPTION_PG_LOCK; id <= OPTION_PG_SYNCHRONOUS; id++) {
        if (!postgres && is_given(checker, (enum option_id)id) &&
            !is_bad(checker, (enum option_id)id)) {
            blame(checker, (enum option_id)id,
                  "is for PostgreSQL alone, and the store is another: leave it out");
        }
    }
    if (config->postgres.key.form != STORE_PG_KEY_HASH && config->election_count > 1 &&
        !is_bad(checker, OPTION_PG_KEY)) {
        blame(checker, OPTION_PG_KEY,
              "is one key, and there is more than one election: leave it out, or run one sidecar "
              "for each");
    }
    config->postgres.schema = config->pg_schema;
    config->postgres.sequence = config->pg_sequence;
}

static void check_store(struct checker *checker) {
    const struct config *config = checker->config;
    struct error error;
    if (is_bad(checker, OPTION_STORE)) {
        return;
    }
    const struct store_ops *ops = store_for_url(config->store_url, &error);
    if (ops == NULL || !ops->check(config->store_url, &error)) {
        blame(checker, OPTION_STORE, error.text);
        return;
    }
    check_tls(checker, ops);
    if (strcmp(ops->kind, "redis") != 0 && config->redis_wait_replicas > 0) {
        blame(checker, OPTION_REDIS_WAIT_REPLICAS,
              "is about the replicas of a Redis server, and this store is none: leave it out");
    }
    check_credentials(checker, ops->kind);
    check_postgres(checker, strcmp(ops->kind, "postgres") == 0);
}

void config_check(struct config *config, char *const *environment, struct config_report *report) {
    struct checker checker = {.config = config, .report = report, .environment = environment};
    fill_in(&checker);
    check_times(&checker);
    check_addresses(&checker);
    check_tls_pair(&checker);
    check_application(&checker);
    check_store(&checker);
}
