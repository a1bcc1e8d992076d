#include "config/options.h"

#include "base/log.h"
#include "config/values.h"
#include "election/instant.h"

#include <ctype.h>
#include <stddef.h>

#define MINUTE_NS (60 * NS_PER_S)
#define HOUR_NS (60 * MINUTE_NS)
#define AT(member) offsetof(struct config, member)

static const char *const modes[] = {"correctness", "efficiency", NULL};
static const char *const on_failures[] = {"ride-out", "step-down", NULL};
static const char *const no_yes[] = {"false", "true", NULL};
static const char *const pg_locks[] = {"session", "transaction", NULL};
static const char *const pg_poolers[] = {"none", "session", NULL};
static const char *const formats[] = {"text", "json", NULL};
static const char *const levels[] = {"debug", "info", "warn", "error", NULL};
_Static_assert(LOG_DEBUG == 0 && LOG_ERROR == 3, "levels are indexed by enum log_level");

const struct option options[OPTION_COUNT] = {
    [OPTION_STORE] = {.name = "store",
                      .value = "URL",
                      .help = "where the locks live: redis://HOST[:PORT][/DB], "
                              "redis+sentinel://HOST,HOST/MASTER, both with TLS as rediss, "
                              "redis+unix:/PATH, redlock:URL,URL,URL of independent Redis "
                              "servers, postgres://USER@HOST[:PORT]/DB, local:/DIR",
                      .required = true,
                      .file_twin = true,
                      .take = take_store,
                      .show = show_store,
                      .target = AT(store_url)},
    [OPTION_STORE_USER] = {.name = "store-user",
                           .value = "NAME",
                           .help = "the user to log in to the store as",
                           .file_twin = true,
                           .take = take_text,
                           .show = show_text,
                           .target = AT(store_user)},
    [OPTION_STORE_PASSWORD] = {.name = "store-password",
                               .value = "SECRET",
                               .help = "the store's password; never on the command line",
                               .file_twin = true,
                               .secret = true,
                               .take = take_text,
                               .show = show_secret,
                               .target = AT(store_password)},
    [OPTION_TLS_CA] = {.name = "tls-ca",
                       .value = "FILE",
                       .standard = "the system's CAs",
                       .computed = true,
                       .help = "the CAs in PEM that a store with TLS is verified by; this and the "
                               "next two are read again on SIGHUP",
                       .take = take_text,
                       .show = show_text,
                       .target = AT(tls_ca)},
    [OPTION_TLS_CERT] = {.name = "tls-cert",
                         .value = "FILE",
                         .help =
                             "the client certificate in PEM for a store that asks for one, with "
                             "its chain",
                         .take = take_text,
                         .show = show_text,
                         .target = AT(tls_cert)},
    [OPTION_TLS_KEY] = {.name = "tls-key",
                        .value = "FILE",
                        .help = "the private key of --tls-cert in PEM, not encrypted",
                        .take = take_text,
                        .show = show_text,
                        .target = AT(tls_key)},
    [OPTION_ELECTION] = {.name = "election",
                         .value = "NAME",
                         .help = "an election to stand in; several: repeat it, or separate the "
                                 "names by commas",
                         .required = true,
                         .repeatable = true,
                         .take = take_names,
                         .show = show_names,
                         .target = AT(elections)},
    [OPTION_NAMESPACE] = {.name = "namespace",
                          .old_name = "election-namespace",
                          .value = "NAME",
                          .standard = "default",
                          .help = "keeps elections of the same name apart; part of every key",
                          .take = take_name,
                          .show = show_text,
                          .target = AT(namespace_)},
    [OPTION_IDENTITY] = {.name = "identity",
                         .old_name = "id",
                         .value = "ID",
                         .standard = "the host's name",
                         .computed = true,
                         .help = "how this replica is shown as holder; should differ from the "
                                 "others'",
                         .take = take_identity,
                         .show = show_text,
                         .target = AT(identity)},
    [OPTION_TTL] = {.name = "ttl",
                    .value = "TIME",
                    .standard = "10s",
                    .help = "how long a lease lasts without renewal; a crash costs as much",
                    .take = take_time,
                    .show = show_time,
                    .target = AT(ttl_ns),
                    .least = 300 * NS_PER_MS,
                    .most = HOUR_NS},
    [OPTION_MARGIN] = {.name = "margin",
                       .value = "TIME",
                       .standard = "ttl/5",
                       .computed = true,
                       .help = "how much earlier than the store the leader takes its lease for "
                               "ended; at least ttl/10 (correctness), at most ttl/3",
                       .take = take_time,
                       .show = show_time,
                       .target = AT(margin_ns),
                       .least = 50 * NS_PER_MS,
                       .most = HOUR_NS / 3},
    [OPTION_WAIT] = {.name = "wait",
                     .value = "TIME",
                     .standard = "ttl",
                     .computed = true,
                     .help = "the least wait where an older lease may still be trusted; before "
                             "ttl is raised, give the new ttl here on all replicas",
                     .take = take_time,
                     .show = show_time,
                     .target = AT(wait_ns),
                     .least = 300 * NS_PER_MS,
                     .most = 24 * HOUR_NS},
    [OPTION_MODE] = {.name = "mode",
                     .value = "MODE",
                     .standard = "correctness",
                     .help = "correctness: waits where an older lease may still be trusted; "
                             "efficiency: leads at once, an occasional double run is acceptable",
                     .take = take_switch,
                     .show = show_switch,
                     .target = AT(efficiency),
                     .choices = modes},
    [OPTION_ON_RENEW_FAILURE] = {.name = "on-renew-failure",
                                 .value = "WHAT",
                                 .standard = "ride-out",
                                 .help = "ride-out: lead until the lease ends; step-down: give "
                                         "up at the first failed renewal",
                                 .take = take_switch,
                                 .show = show_switch,
                                 .target = AT(step_down),
                                 .choices = on_failures},
    [OPTION_VALID_FOR] = {.name = "valid-for",
                          .value = "TIME",
                          .standard = "2s",
                          .help = "the longest that one answer may be relied on; a handover "
                                  "waits for as long",
                          .take = take_time,
                          .show = show_time,
                          .target = AT(valid_for_ns),
                          .least = NS_PER_MS,
                          .most = HOUR_NS},
    [OPTION_DRAIN] = {.name = "drain",
                      .value = "TIME|none",
                      .standard = "10s",
                      .help = "the longest that ending may take; none: releases at once, for when "
                              "the application has ended before",
                      .take = take_drain,
                      .show = show_drain,
                      .target = AT(drain_ns),
                      .least = NS_PER_MS,
                      .most = HOUR_NS},
    [OPTION_TOKEN_FLOOR] = {.name = "token-floor",
                            .value = "NUMBER",
                            .standard = "0",
                            .help = "tokens are at least this, when what is guarded has seen "
                                    "greater ones",
                            .take = take_floor,
                            .show = show_floor,
                            .target = AT(token_floor)},
    [OPTION_REDIS_WAIT_REPLICAS] = {.name = "redis-wait-replicas",
                                    .value = "NUMBER",
                                    .standard = "0",
                                    .help = "how many replicas of the Redis server have to "
                                            "acknowledge a grant or a renewal before it counts",
                                    .take = take_count,
                                    .show = show_count,
                                    .target = AT(redis_wait_replicas),
                                    .least = 0,
                                    .most = 100},
    [OPTION_REQUIRE_APP] = {.name = "require-app",
                            .value = "true|false",
                            .standard = "false",
                            .help = "stand only while an application is attached to the socket; "
                                    "--require-app alone means true",
                            .flag = true,
                            .take = take_switch,
                            .show = show_switch,
                            .target = AT(require_app),
                            .choices = no_yes},
    [OPTION_APP_TIMEOUT] = {.name = "app-timeout",
                            .value = "TIME|off",
                            .standard = "off",
                            .help = "an attached application has to send a beat at least this "
                                    "often; one that does not is hung: leadership is given away",
                            .take = take_time_or_off,
                            .show = show_time_or_off,
                            .target = AT(app_timeout_ns),
                            .least = 100 * NS_PER_MS,
                            .most = HOUR_NS},
    [OPTION_APP_CHECK] = {.name = "app-check",
                          .value = "URL|off",
                          .standard = "off",
                          .help = "ask the application over HTTP each second, for at most a "
                                  "second; 200 to 399 is good. Three failures in a row give "
                                  "leadership away, three successes let it stand again",
                          .take = take_app_check,
                          .show = show_app_check,
                          .target = AT(app_check)},
    [OPTION_HTTP] = {.name = "http",
                     .value = "ADDRESS|off",
                     .standard = "localhost:4040",
                     .help = "where the application asks over HTTP; port 0 takes a free one and "
                             "logs it",
                     .take = take_address,
                     .show = show_address,
                     .target = AT(http)},
    [OPTION_HEALTH] = {.name = "health",
                       .value = "ADDRESS|off",
                       .standard = ":4041",
                       .help = "where probes and metrics are asked for",
                       .take = take_address,
                       .show = show_address,
                       .target = AT(health)},
    [OPTION_SOCKET] = {.name = "socket",
                       .value = "PATH|off",
                       .standard = "gavel.sock in the runtime directory",
                       .computed = true,
                       .help = "the Unix socket; the runtime directory is $RUNTIME_DIRECTORY, else "
                               "/run/gavel where it can be made, else $XDG_RUNTIME_DIR/gavel",
                       .take = take_socket,
                       .show = show_socket,
                       .target = AT(socket_path)},
    [OPTION_SOCKET_MODE] = {.name = "socket-mode",
                            .value = "MODE",
                            .standard = "0660",
                            .help = "who may use the socket, in octal",
                            .take = take_mode,
                            .show = show_mode,
                            .target = AT(socket_mode)},
    [OPTION_PAGE_DIR] = {.name = "page-dir",
                         .value = "DIR|off",
                         .standard = "the runtime directory",
                         .computed = true,
                         .help =
                             "where the shared pages (NAME.lease) are, which readers map to ask "
                             "without a system call",
                         .take = take_page_dir,
                         .show = show_page_dir,
                         .target = AT(page_dir)},
    [OPTION_PG_LOCK] = {.name = "pg-lock",
                        .value = "KIND",
                        .standard = "session",
                        .help = "session: one connection holds all locks; transaction: each is "
                                "held by an open transaction, for poolers of transactions",
                        .take = take_switch,
                        .show = show_switch,
                        .target = AT(postgres.transaction),
                        .choices = pg_locks},
    [OPTION_PG_POOLER] = {.name = "pg-pooler",
                          .value = "KIND",
                          .standard = "none",
                          .help = "session: a pooler that gives each client a session of its own "
                                  "is accepted",
                          .take = take_switch,
                          .show = show_switch,
                          .target = AT(postgres.session_pooler),
                          .choices = pg_poolers},
    [OPTION_PG_KEY] = {.name = "pg-key",
                       .value = "KEY",
                       .standard = "hash",
                       .help = "the advisory lock's key: hash (of NAMESPACE/NAME, see gavel key), "
                               "one bigint, or two ints as in 7,42",
                       .take = take_pg_key,
                       .show = show_pg_key,
                       .target = AT(postgres.key)},
    [OPTION_PG_SCHEMA] = {.name = "pg-schema",
                          .value = "NAME",
                          .standard = "public",
                          .help = "the schema of the table gavel_election",
                          .take = take_pg_schema,
                          .show = show_text,
                          .target = AT(pg_schema)},
    [OPTION_PG_TOKEN] = {.name = "pg-token",
                         .value = "SOURCE",
                         .standard = "row",
                         .help = "row: tokens come from the table; sequence:SCHEMA.NAME: they are "
                                 "above the next number of that sequence too",
                         .take = take_pg_token,
                         .show = show_pg_token,
                         .target = AT(pg_sequence)},
    [OPTION_PG_SYNCHRONOUS] = {.name = "pg-synchronous",
                               .value = "true|false",
                               .standard = "false",
                               .flag = true,
                               .help = "probes write, and count only where a synchronous "
                                       "standby confirms it: a cut-off primary loses its leader; "
                                       "--pg-synchronous alone means true",
                               .take = take_switch,
                               .show = show_switch,
                               .target = AT(postgres.synchronous),
                               .choices = no_yes},
    [OPTION_LOG_FORMAT] = {.name = "log-format",
                           .value = "FORMAT",
                           .standard = "json",
                           .help = "json or text, on stderr",
                           .take = take_switch,
                           .show = show_switch,
                           .target = AT(log_json),
                           .choices = formats},
    [OPTION_LOG_LEVEL] = {.name = "log-level",
                          .value = "LEVEL",
                          .standard = "info",
                          .help = "what is logged: debug, info, warn or error, and what is worse",
                          .take = take_level,
                          .show = show_level,
                          .target = AT(log_level),
                          .choices = levels},
};

const char *option_variable(const char *name, char variable[OPTION_VARIABLE_MAX]) {
    static const char prefix[] = "GAVEL_";
    size_t length = 0;
    for (; prefix[length] != '\0'; length++) {
        variable[length] = prefix[length];
    }
    for (; *name != '\0' && length + 1 < OPTION_VARIABLE_MAX; name++) {
        variable[length++] = (char)(*name == '-' ? '_' : toupper((unsigned char)*name));
    }
    variable[length] = '\0';
    return variable;
}
