#ifndef GAVEL_CONFIG_VALUES_H
#define GAVEL_CONFIG_VALUES_H

#include "config/options.h"

/* How the kinds of values are read and shown. `target` is where in struct config they belong. */
option_take take_store;       /* char *: any text; the store itself checks it later */
option_take take_text;        /* char *: any text */
option_take take_name;        /* char *: see names.h */
option_take take_identity;    /* char * */
option_take take_names;       /* elections, separated by commas; adds */
option_take take_time;        /* int64_t, within least and most */
option_take take_drain;       /* a time or "none" */
option_take take_time_or_off; /* int64_t, 0 for off */
option_take take_app_check;   /* char *: see base/http_probe.h; NULL for off */
option_take take_floor;       /* uint64_t up to 9 * 10^13 */
option_take take_count;       /* unsigned, within least and most */
option_take take_switch;      /* bool, by choices */
option_take take_level;       /* int, by choices */
option_take take_address;     /* struct listen_address */
option_take take_socket;      /* an absolute path or "off" */
option_take take_page_dir;    /* an absolute path or "off" */
option_take take_mode;        /* unsigned, octal */
/* values_postgres.c */
option_take take_pg_key;    /* struct store_pg_key */
option_take take_pg_schema; /* char *, up to 63 bytes */
option_take take_pg_token;  /* char *, the sequence's name */
option_show show_pg_key, show_pg_token;

option_show show_store, show_text, show_secret, show_names, show_time, show_drain, show_floor,
    show_count, show_time_or_off, show_app_check, show_switch, show_level, show_address,
    show_socket, show_page_dir, show_mode;

#endif
