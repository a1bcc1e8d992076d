#include "store/redis/tls_inside.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

/* What went wrong, and what would mend it. Short: an address goes before it. */

#define NAME_SHOWN "%.40s"

static bool has_certificate(const struct redis_tls_session *session) {
    return SSL_get_certificate(session->ssl) != NULL;
}

/* The server's certificate did not pass. */
static void explain_certificate(struct redis_tls_session *session) {
    long result = SSL_get_verify_result(session->ssl);
    switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        error_set(&session->problem,
                  "the server's certificate, or one above it, has expired: renew it");
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        error_set(&session->problem,
                  "the server's certificate is not valid yet: is the clock right here?");
        break;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        error_set(&session->problem,
                  "the server's certificate is not for " NAME_SHOWN ": use a name that is in it, "
                  "or add this one to it",
                  session->host);
        break;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        error_set(&session->problem,
                  "the server's certificate is of a CA that is not trusted: give that CA with "
                  "--tls-ca");
        break;
    default:
        error_set(&session->problem, "the server's certificate is refused: %s",
                  X509_verify_cert_error_string(result));
        break;
    }
}

/* Whether an alert may be about our certificate. */
static bool about_certificate(int alert) {
    switch (alert) {
    case SSL_AD_HANDSHAKE_FAILURE:
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_DECRYPT_ERROR:
    case SSL_AD_CERTIFICATE_REQUIRED:
        return true;
    default:
        return false;
    }
}

static const char certificate_missing[] =
    "the server asks for a client certificate: give --tls-cert and --tls-key";
static const char no_version[] = "the server and gavel have no version of TLS in common, gavel "
                                 "needs 1.2 or later";

/* The server said what it does not like. */
static void explain_alert(struct redis_tls_session *session, int alert) {
    const char *text = SSL_alert_desc_string_long(alert);
    if (session->asked && about_certificate(alert)) {
        if (has_certificate(session)) {
            error_set(&session->problem,
                      "the server refused the client certificate (%s): is --tls-cert right?", text);
        } else {
            error_set(&session->problem, "%s", certificate_missing);
        }
    } else if (alert == SSL_AD_PROTOCOL_VERSION) {
        error_set(&session->problem, "%s", no_version);
    } else if (alert == SSL_AD_UNRECOGNIZED_NAME) {
        error_set(&session->problem,
                  "the server does not know itself as " NAME_SHOWN ": use another name of it",
                  session->host);
    } else {
        error_set(&session->problem, "the server refuses TLS with us (%s): its log says why", text);
    }
}

static bool is_no_tls(int reason) {
    return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
           reason == SSL_R_HTTPS_PROXY_REQUEST || reason == SSL_R_PACKET_LENGTH_TOO_LONG ||
           reason == SSL_R_BAD_RECORD_TYPE;
}

void redis_tls_explain(struct redis_tls_session *session) {
    unsigned long code = ERR_peek_last_error();
    const char *text = ERR_reason_error_string(code);
    int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        explain_certificate(session);
    } else if (reason >= SSL_AD_REASON_OFFSET) {
        explain_alert(session, reason - SSL_AD_REASON_OFFSET);
    } else if (reason == SSL_R_UNSUPPORTED_PROTOCOL) {
        error_set(&session->problem, "%s", no_version);
    } else if (is_no_tls(reason) && !session->open) {
        error_set(&session->problem,
                  "no TLS is spoken there: give the port for TLS, or write redis:// without it");
    } else {
        error_set(&session->problem, "TLS broke: %s", text != NULL ? text : "unknown reason");
    }
    ERR_clear_error();
}

const char *redis_tls_ended(struct redis_tls_session *session, const char *why) {
    if (session->problem.text[0] != '\0' || session->data) {
        return session->problem.text[0] != '\0' ? session->problem.text : why;
    }
    /* A server that refuses may hang up before its last word has been read. */
    if (session->asked && !has_certificate(session)) {
        error_set(&session->problem, "%s", certificate_missing);
    } else if (session->asked) {
        error_set(&session->problem, "%.50s in the TLS handshake: does it take our certificate?",
                  why);
    } else if (!session->open) {
        error_set(&session->problem, "%.50s in the TLS handshake: does it speak TLS at that port?",
                  why);
    } else {
        return why;
    }
    return session->problem.text;
}
