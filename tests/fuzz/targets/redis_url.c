/* A store URL of Redis. Whatever is accepted is whole and within its bounds; whatever is refused
 * has an error that repeats no password. */
#include "store/redis/url.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) {
        abort();
    }
}

static bool whole(const char *text, size_t size) {
    return memchr(text, '\0', size) != NULL;
}

static void check_accepted(const struct redis_url *url) {
    require(whole(url->user, sizeof url->user) && whole(url->password, sizeof url->password));
    require(whole(url->host, sizeof url->host) && whole(url->path, sizeof url->path));
    require(whole(url->master, sizeof url->master));
    require(url->database <= 999999999);
    require(!(url->local && url->tls) && !(url->local && url->sentinel));
    require(url->local == (url->path[0] != '\0'));
    require(url->sentinel == (url->master[0] != '\0'));
    require(url->sentinel == (url->sentinel_count > 0));
    require(url->sentinel_count <= REDIS_SENTINELS_MAX);
    for (size_t i = 0; i < url->sentinel_count; i++) {
        require(whole(url->sentinels[i].host, sizeof url->sentinels[i].host));
        require(url->sentinels[i].host[0] != '\0' && url->sentinels[i].port != 0);
    }
    if (!url->local && !url->sentinel) {
        require(url->host[0] != '\0' && url->port != 0);
    }
}

/* The same URL with other letters behind the colon of its password has the same error. */
static void check_error(const char *text, const struct error *error) {
    const char *slashes = strstr(text, "://");
    char *other = strdup(text);
    struct redis_url url;
    struct error again = {""};
    require(other != NULL);
    char *colon = slashes == NULL ? NULL : strchr(other + (slashes + 3 - text), ':');
    for (char *at = colon; at != NULL && *at != '\0' && *at != '@'; at++) {
        if (*at >= 'g' && *at <= 'z') {
            *at = *at == 'q' ? 'w' : 'q';
        }
    }
    if (colon != NULL && !redis_url_parse(other, &url, &again)) {
        require(strcmp(again.text, error->text) == 0);
    }
    free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct redis_url url;
    struct error error = {""};
    char *text = malloc(size + 1);
    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (redis_url_parse(text, &url, &error)) {
        require(redis_url_claims(text));
        check_accepted(&url);
    } else {
        require(strstr(error.text, "store URL") != NULL);
        check_error(text, &error);
    }
    free(text);
    return 0;
}
