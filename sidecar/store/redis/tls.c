#include "store/redis/tls_inside.h"

#include "base/memory.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What may come without any data: a handshake, session tickets, changes of keys. */
#define QUIET_MOST 262144
#define NAME_MOST 255

struct redis_tls {
    SSL_CTX *context;
    struct store_tls files;
};

struct redis_tls *redis_tls_create(const struct store_tls *files,
                                   struct store_tls_finding *finding) {
    SSL_CTX *context = redis_tls_context(files, true, finding);
    if (context == NULL) {
        return NULL;
    }
    struct redis_tls *tls = memory_zeroed(1, sizeof *tls);
    tls->context = context;
    tls->files = *files;
    return tls;
}

bool redis_tls_reload(struct redis_tls *tls, struct store_tls_finding *finding) {
    SSL_CTX *context = redis_tls_context(&tls->files, true, finding);
    if (context == NULL) {
        return false;
    }
    SSL_CTX_free(tls->context); /* each session holds on to its own */
    tls->context = context;
    return true;
}

void redis_tls_destroy(struct redis_tls *tls) {
    if (tls != NULL) {
        SSL_CTX_free(tls->context);
        free(tls);
    }
}

bool redis_tls_check(const struct store_tls *files, struct store_tls_finding *finding) {
    SSL_CTX *context = redis_tls_context(files, false, finding);
    SSL_CTX_free(context);
    return context != NULL;
}

/* Called when the server asks for a certificate; that of the context is then used, if any. */
static int on_asked(SSL *ssl, void *context) {
    struct redis_tls_session *session = context;
    (void)ssl;
    session->asked = true;
    return 1;
}

/* Whom the server's certificate must be for. An empty name would mean anybody. */
static bool expect_host(SSL *ssl, const char *host) {
    char name[NAME_MOST + 1];
    X509_VERIFY_PARAM *parameters = SSL_get0_param(ssl);
    /* Neither the zone of a link-local address nor the dot that ends a full name stands in it. */
    size_t length = strcspn(host, "%");
    if (length > 0 && host[length - 1] == '.') {
        length--;
    }
    if (length == 0 || length > NAME_MOST) {
        return false;
    }
    memcpy(name, host, length);
    name[length] = '\0';
    if (X509_VERIFY_PARAM_set1_ip_asc(parameters, name) == 1) {
        return true;
    }
    X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(parameters, name, length) == 1 &&
           SSL_set_tlsext_host_name(ssl, name) == 1;
}

struct redis_tls_session *redis_tls_begin(const struct redis_tls *tls, const char *host) {
    struct redis_tls_session *session = memory_zeroed(1, sizeof *session);
    ERR_clear_error();
    session->ssl = SSL_new(tls->context);
    session->in = BIO_new(BIO_s_mem());
    session->out = BIO_new(BIO_s_mem());
    if (session->ssl == NULL || session->in == NULL || session->out == NULL) {
        abort(); /* out of memory */
    }
    SSL_set_bio(session->ssl, session->in, session->out);
    SSL_set_connect_state(session->ssl);
    SSL_set_cert_cb(session->ssl, on_asked, session);
    (void)snprintf(session->host, sizeof session->host, "%s", host);
    if (!expect_host(session->ssl, host)) {
        error_set(&session->problem, "no certificate can be for the host %s", session->host);
    }
    ERR_clear_error();
    return session;
}

void redis_tls_end(struct redis_tls_session *session) {
    SSL_free(session->ssl);
    free(session);
}

void redis_tls_feed(struct redis_tls_session *session, const char *bytes, size_t size) {
    if (BIO_write(session->in, bytes, (int)size) != (int)size) {
        abort(); /* out of memory */
    }
    session->quiet += size;
}

/* What OpenSSL has verified by itself, looked at once more. */
static bool is_verified(const SSL *ssl) {
    return SSL_get0_peer_certificate(ssl) != NULL && SSL_get_verify_result(ssl) == X509_V_OK;
}

static enum redis_tls_result finish_handshake(struct redis_tls_session *session) {
    if (!is_verified(session->ssl)) {
        error_set(&session->problem, "the server did not prove who it is");
        return REDIS_TLS_BROKEN;
    }
    session->open = true;
    return REDIS_TLS_OPEN;
}

enum redis_tls_result redis_tls_next(struct redis_tls_session *session, char *out, size_t size,
                                     size_t *got) {
    *got = 0;
    if (session->problem.text[0] != '\0') {
        return REDIS_TLS_BROKEN;
    }
    ERR_clear_error();
    int result =
        session->open ? SSL_read_ex(session->ssl, out, size, got) : SSL_do_handshake(session->ssl);
    if (result == 1 && !session->open) {
        return finish_handshake(session);
    }
    if (result == 1) {
        session->data = true;
        session->quiet = 0;
        return REDIS_TLS_DATA;
    }
    int error = SSL_get_error(session->ssl, result);
    if (error == SSL_ERROR_ZERO_RETURN) {
        return REDIS_TLS_CLOSED;
    }
    if (error != SSL_ERROR_WANT_READ) {
        redis_tls_explain(session);
        return REDIS_TLS_BROKEN;
    }
    if (session->quiet > QUIET_MOST) {
        error_set(&session->problem, "the server talks TLS without end and says nothing in it");
        return REDIS_TLS_BROKEN;
    }
    return REDIS_TLS_WAIT;
}

bool redis_tls_write(struct redis_tls_session *session, const char *bytes, size_t size) {
    size_t written = 0;
    if (!session->open || session->problem.text[0] != '\0') {
        return false;
    }
    ERR_clear_error();
    if (SSL_write_ex(session->ssl, bytes, size, &written) != 1 || written != size) {
        redis_tls_explain(session);
        return false;
    }
    return true;
}

void redis_tls_close(struct redis_tls_session *session) {
    if (session->open && session->problem.text[0] == '\0') {
        ERR_clear_error();
        (void)SSL_shutdown(session->ssl); /* 0: the server's own is not waited for */
        ERR_clear_error();
    }
}

size_t redis_tls_pending(const struct redis_tls_session *session) {
    return BIO_ctrl_pending(session->out);
}

void redis_tls_take(struct redis_tls_session *session, char *bytes, size_t size) {
    if (BIO_read(session->out, bytes, (int)size) != (int)size) {
        abort(); /* there were as many, or the caller is wrong */
    }
}

const char *redis_tls_problem(const struct redis_tls_session *session) {
    return session->problem.text;
}
