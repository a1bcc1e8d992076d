#ifndef GAVEL_CONFIG_TLS_H
#define GAVEL_CONFIG_TLS_H

#include "config/options.h"
#include "store/store.h"

/* The TLS files as a store takes them; they live as long as the configuration. */
struct store_tls config_tls(const struct config *config);

/* Which option names that file. */
enum option_id config_tls_option(enum store_tls_file file);

/* What a store found wrong, for a log: option, file, reason. */
void config_tls_problem(const struct config *config, const struct store_tls_finding *finding,
                        struct error *text);

/* The same where nothing is wrong, but the key may be read by others. */
void config_tls_exposed(const struct config *config, struct error *text);

#endif
