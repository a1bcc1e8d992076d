#include "store/redlock/list.h"

#include "base/memory.h"
#include "store/redis/url.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_BYTES (REDIS_HOST_MAX + 32)

static const char scheme[] = "redlock:";
static const char about[] = "store URL: ";

bool redlock_list_claims(const char *url) {
    return strncasecmp(url, scheme, strlen(scheme)) == 0;
}

/* What tells the node from others. */
static void make_name(const struct redis_url *url, char *name, size_t size) {
    if (url->local) {
        snprintf(name, size, "unix:%s/%u", url->path, url->database);
        return;
    }
    bool bare = strchr(url->host, ':') == NULL;
    snprintf(name, size, "%s%s%s:%u/%u", bare ? "" : "[", url->host, bare ? "" : "]",
             (unsigned)url->port, url->database);
    for (char *c = name; *c != '\0'; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
}

static bool is_plain(const char *name) {
    for (; *name != '\0'; name++) {
        if (*name <= ' ' || *name > '~' || *name == ',') {
            return false;
        }
    }
    return true;
}

static bool add_node(struct redlock_list *list, const char *text, size_t size,
                     struct error *error) {
    char name[NAME_MAX_BYTES];
    struct redis_url parsed;
    struct error why;
    size_t number = list->count + 1;
    if (list->count == QUORUM_NODES_MAX) {
        error_set(error, "store URL: redlock has at most %d nodes", QUORUM_NODES_MAX);
        return false;
    }
    char *url = memory_text_part(text, size);
    list->urls[list->count] = url;
    list->count++;
    if (!redis_url_parse(url, &parsed, &why)) {
        bool known = strncmp(why.text, about, strlen(about)) == 0;
        error_set(error, "store URL: node %zu of redlock: %.380s%s", number,
                  why.text + (known ? strlen(about) : 0),
                  size == 0 ? "; nothing stands between two commas, or at an end" : "");
        return false;
    }
    bool sentinel = parsed.sentinel;
    list->tls = list->tls || parsed.tls;
    make_name(&parsed, name, sizeof name);
    explicit_bzero(&parsed, sizeof parsed);
    if (sentinel || !is_plain(name)) {
        error_set(error, "store URL: node %zu of redlock: %s", number,
                  sentinel ? "nodes are independent masters, not found by Sentinels: write "
                             "redis://host:6379"
                           : "the path of a socket may have visible ASCII characters without "
                             "commas only");
        return false;
    }
    for (size_t i = 0; i + 1 < list->count; i++) {
        if (strcmp(list->names[i], name) == 0) {
            error_set(error,
                      "store URL: nodes %zu and %zu of redlock are the same: each is a "
                      "server of its own",
                      i + 1, number);
            return false;
        }
    }
    list->names[list->count - 1] = memory_text(name);
    return true;
}

static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool join(struct redlock_list *list, struct error *error) {
    char *sorted[QUORUM_NODES_MAX];
    size_t length = 0;
    list->all = memory_zeroed(REDLOCK_LIST_MAX + 1, 1);
    memcpy(sorted, list->names, sizeof sorted);
    qsort(sorted, list->count, sizeof sorted[0], compare);
    for (size_t i = 0; i < list->count; i++) {
        size_t left = REDLOCK_LIST_MAX + 1 - length;
        int added = snprintf(list->all + length, left, "%s%s", i > 0 ? "," : "", sorted[i]);
        if (added < 0 || (size_t)added >= left) {
            error_set(error,
                      "store URL: the hosts, ports and databases of all nodes of redlock are "
                      "longer than %d bytes: use shorter names",
                      REDLOCK_LIST_MAX);
            return false;
        }
        length += (size_t)added;
    }
    return true;
}

bool redlock_list_parse(const char *url, struct redlock_list *list, struct error *error) {
    memset(list, 0, sizeof *list);
    const char *from = url + strlen(scheme);
    for (bool more = true; more;) {
        size_t size = strcspn(from, ",");
        more = from[size] == ',';
        if (!add_node(list, from, size, error)) {
            return false;
        }
        from += size + 1;
    }
    if (list->count < REDLOCK_NODES_LEAST) {
        error_set(error,
                  "store URL: redlock needs at least %d nodes, as in "
                  "redlock:redis://a,redis://b,redis://c; %zu are given",
                  REDLOCK_NODES_LEAST, list->count);
        return false;
    }
    return join(list, error);
}

void redlock_list_finish(struct redlock_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        memory_free_secret(list->urls[i]);
        free(list->names[i]);
    }
    free(list->all);
    memset(list, 0, sizeof *list);
}
