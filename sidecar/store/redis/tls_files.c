#include "store/redis/tls_inside.h"

#include "base/file.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MOST 4194304 /* the CAs of a whole system take a quarter of a MiB */
#define CHAIN_MOST 65536  /* of a server's certificates */

/* One file that is being taken into a context. */
struct source {
    SSL_CTX *context;
    BIO *bio;
    struct error *error;
    bool passphrase; /* it asked for one */
};

/* Nobody is asked, least of all on a terminal. */
static int on_passphrase(char *buffer, int size, int writing, void *context) {
    struct source *source = context;
    (void)buffer;
    (void)size;
    (void)writing;
    source->passphrase = true;
    return -1;
}

/* OpenSSL's own word for what is wrong. */
static const char *reason(void) {
    const char *text = ERR_reason_error_string(ERR_peek_last_error());
    return text != NULL ? text : "unknown reason";
}

/* NULL at the end of the file, or where something is wrong. */
static X509 *next_certificate(struct source *source) {
    return PEM_read_bio_X509(source->bio, NULL, on_passphrase, source);
}

/* After the last certificate: whether there was one, and nothing broken behind it. */
static bool is_whole(struct source *source, size_t count) {
    bool end = ERR_GET_LIB(ERR_peek_last_error()) == ERR_LIB_PEM &&
               ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    if (!end) {
        error_set(source->error, "has a broken certificate, number %zu in it: %s", count + 1,
                  reason());
        return false;
    }
    if (count == 0) {
        error_set(source->error, "holds no certificate: PEM is expected, which begins with "
                                 "-----BEGIN CERTIFICATE-----");
        return false;
    }
    ERR_clear_error();
    return true;
}

static bool take_cas(struct source *source) {
    X509_STORE *trusted = SSL_CTX_get_cert_store(source->context);
    size_t count = 0;
    for (X509 *one = next_certificate(source); one != NULL; one = next_certificate(source)) {
        int added = X509_STORE_add_cert(trusted, one);
        X509_free(one);
        if (added != 1) {
            error_set(source->error, "cannot be used: %s", reason());
            return false;
        }
        count++;
    }
    return is_whole(source, count);
}

static bool take_chain(struct source *source) {
    size_t count = 0;
    for (X509 *one = next_certificate(source); one != NULL; one = next_certificate(source)) {
        /* The first is the one that is shown, the others lead to a CA. */
        int taken = count == 0 ? SSL_CTX_use_certificate(source->context, one)
                               : (int)SSL_CTX_add1_chain_cert(source->context, one);
        X509_free(one);
        if (taken != 1) {
            error_set(source->error, "cannot be used: %s", reason());
            return false;
        }
        count++;
    }
    return is_whole(source, count);
}

static bool take_key(struct source *source) {
    EVP_PKEY *key = PEM_read_bio_PrivateKey(source->bio, NULL, on_passphrase, source);
    if (key == NULL && source->passphrase) {
        error_set(source->error, "is encrypted, and nobody can be asked for its passphrase: give "
                                 "it without one (openssl pkey -in FILE -out NEW), readable for "
                                 "gavel alone");
        return false;
    }
    if (key == NULL) {
        error_set(source->error, "holds no private key: PEM is expected, which begins with "
                                 "-----BEGIN PRIVATE KEY-----");
        return false;
    }
    bool fits = SSL_CTX_use_PrivateKey(source->context, key) == 1 &&
                SSL_CTX_check_private_key(source->context) == 1;
    EVP_PKEY_free(key);
    if (!fits) {
        error_set(source->error, "does not belong to the certificate: %s", reason());
    }
    return fits;
}

static bool take_file(SSL_CTX *context, const struct store_tls *files, enum store_tls_file file,
                      struct store_tls_finding *finding) {
    static bool (*const takers[STORE_TLS_FILES])(struct source * source) = {
        [STORE_TLS_CA] = take_cas,
        [STORE_TLS_CERTIFICATE] = take_chain,
        [STORE_TLS_KEY] = take_key,
    };
    struct file_content content;
    finding->file = file;
    if (files->paths[file] == NULL) {
        return true;
    }
    if (!file_read(files->paths[file], FILE_MOST, &content, &finding->error)) {
        return false;
    }
    if (file == STORE_TLS_KEY) {
        finding->key_exposed = (content.mode & (S_IRGRP | S_IROTH)) != 0;
    }
    struct source source = {.context = context, .error = &finding->error};
    source.bio = BIO_new_mem_buf(content.bytes, (int)content.size);
    if (source.bio == NULL) {
        abort(); /* out of memory */
    }
    ERR_clear_error();
    bool good = takers[file](&source);
    ERR_clear_error();
    BIO_free(source.bio);
    file_content_finish(&content);
    return good;
}

static SSL_CTX *make_context(void) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (context == NULL || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) {
        abort(); /* out of memory */
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    (void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    /* Two connections are idle most of the time: no buffers then. */
    (void)SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_cert_list(context, CHAIN_MOST);
    return context;
}

SSL_CTX *redis_tls_context(const struct store_tls *files, bool system_cas,
                           struct store_tls_finding *finding) {
    memset(finding, 0, sizeof *finding);
    SSL_CTX *context = make_context();
    for (int file = 0; file < STORE_TLS_FILES; file++) {
        if (!take_file(context, files, (enum store_tls_file)file, finding)) {
            SSL_CTX_free(context);
            return NULL;
        }
    }
    if (system_cas && files->paths[STORE_TLS_CA] == NULL) {
        /* Where they are missing, no server can be verified: that is told then. */
        (void)SSL_CTX_set_default_verify_paths(context);
        ERR_clear_error();
    }
    return context;
}
