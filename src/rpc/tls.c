// tls.c — TLS on OpenSSL: contexts from files, and non-blocking reads and writes.
#include "rpc/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#include "base/alloc.h"

struct weir_rpc_tls_context_t {
  SSL_CTX* ssl;
  bool is_server;
  bool is_http1;
};

struct weir_rpc_tls_stream_t {
  SSL* ssl;
  bool is_http1;
  bool is_broken;  // a shutdown message must not follow a failure
  char error[256];
};

static const unsigned char alpn_h2[] = {2, 'h', '2'};
static const unsigned char alpn_http1[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

// The first entry of OpenSSL's error queue of this thread, which is emptied.
static void take_error(char* out_text, size_t size) {
  unsigned long code = ERR_get_error();
  if (code) ERR_error_string_n(code, out_text, size);
  else snprintf(out_text, size, "%s", errno ? strerror(errno) : "unknown error");
  ERR_clear_error();
}

static weir_status_t* tls_status(const char* what, const char* file) {
  char text[256];
  take_error(text, sizeof(text));
  return WEIR_STATUS(INVALID_ARGUMENT, "TLS: cannot use %s '%s': %s", what, file, text);
}

// Servers take their protocol out of what the client offers and refuse clients that offer others.
static int select_alpn(SSL* ssl, const unsigned char** out, unsigned char* out_size,
                       const unsigned char* in, unsigned in_size, void* arg) {
  (void)ssl;
  const weir_rpc_tls_context_t* context = arg;
  const unsigned char* own = context->is_http1 ? alpn_http1 : alpn_h2;
  unsigned own_size = context->is_http1 ? sizeof(alpn_http1) : sizeof(alpn_h2);
  unsigned char* selected = NULL;
  if (SSL_select_next_proto(&selected, out_size, own, own_size, in, in_size) !=
      OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = selected;
  return SSL_TLSEXT_ERR_OK;
}

static weir_status_t* load_own(SSL_CTX* ssl, const weir_rpc_tls_t* options) {
  if (!options->cert_file) return NULL;
  if (SSL_CTX_use_certificate_chain_file(ssl, options->cert_file) != 1)
    return tls_status("certificate", options->cert_file);
  const char* key = options->key_file ? options->key_file : options->cert_file;
  if (SSL_CTX_use_PrivateKey_file(ssl, key, SSL_FILETYPE_PEM) != 1) return tls_status("key", key);
  if (SSL_CTX_check_private_key(ssl) != 1) return tls_status("key", key);
  return NULL;
}

static weir_status_t* load_trust(SSL_CTX* ssl, const weir_rpc_tls_t* options, bool is_server) {
  if (options->ca_file) {
    if (SSL_CTX_load_verify_file(ssl, options->ca_file) != 1)
      return tls_status("CA file", options->ca_file);
    if (is_server) SSL_CTX_set_client_CA_list(ssl, SSL_load_client_CA_file(options->ca_file));
  } else if (!is_server && SSL_CTX_set_default_verify_paths(ssl) != 1) {
    return tls_status("CA file", "the system's");
  }
  int mode = SSL_VERIFY_PEER;
  if (is_server) {
    mode = options->is_mutual ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT : SSL_VERIFY_NONE;
  }
  SSL_CTX_set_verify(ssl, mode, NULL);
  return NULL;
}

static weir_status_t* configure(weir_rpc_tls_context_t* context, const weir_rpc_tls_t* options) {
  SSL_CTX* ssl = context->ssl;
  bool is_server = context->is_server;
  SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION);
  SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_RELEASE_BUFFERS);
  WEIR_TRY(load_own(ssl, options));
  WEIR_TRY(load_trust(ssl, options, is_server));
  if (is_server) {
    static const unsigned char session_name[] = "weir";
    SSL_CTX_set_session_id_context(ssl, session_name, sizeof(session_name) - 1);
    SSL_CTX_set_alpn_select_cb(ssl, select_alpn, context);
  } else if (SSL_CTX_set_alpn_protos(ssl, alpn_h2, sizeof(alpn_h2)) != 0) {
    return weir_out_of_memory();
  }
  return NULL;
}

weir_status_t* weir_rpc_tls_context_create(const weir_rpc_tls_t* options, bool is_server,
                                           weir_rpc_tls_context_t** out_context) {
  if (is_server && !options->cert_file)
    return WEIR_STATUS(INVALID_ARGUMENT, "TLS: a server needs a certificate");
  if (is_server && options->is_mutual && !options->ca_file)
    return WEIR_STATUS(INVALID_ARGUMENT, "TLS: mutual authentication needs a CA file");
  weir_rpc_tls_context_t* context = weir_calloc(1, sizeof(*context));
  if (!context) return weir_out_of_memory();
  weir_status_t* status = NULL;
  context->is_server = is_server;
  context->is_http1 = options->is_http1;
  context->ssl = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
  status = context->ssl ? configure(context, options) : weir_out_of_memory();
  if (status) goto done;
  *out_context = context;
  context = NULL;
done:
  weir_rpc_tls_context_destroy(context);
  return status;
}

void weir_rpc_tls_context_destroy(weir_rpc_tls_context_t* context) {
  if (!context) return;
  SSL_CTX_free(context->ssl);
  weir_free(context);
}

// A client checks the certificate against the name or number it meant to reach.
static bool expect_name(SSL* ssl, const char* name) {
  unsigned char number[sizeof(struct in6_addr)];
  if (inet_pton(AF_INET, name, number) == 1 || inet_pton(AF_INET6, name, number) == 1)
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
  return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

weir_status_t* weir_rpc_tls_stream_create(weir_rpc_tls_context_t* context, int fd,
                                          const char* server_name,
                                          weir_rpc_tls_stream_t** out_stream) {
  weir_rpc_tls_stream_t* stream = weir_calloc(1, sizeof(*stream));
  if (!stream) return weir_out_of_memory();
  stream->is_http1 = context->is_http1;
  stream->ssl = SSL_new(context->ssl);
  bool is_good = stream->ssl && SSL_set_fd(stream->ssl, fd) == 1;
  if (is_good && !context->is_server) is_good = expect_name(stream->ssl, server_name);
  if (!is_good) {
    weir_rpc_tls_stream_destroy(stream);
    ERR_clear_error();
    return weir_out_of_memory();
  }
  if (context->is_server) SSL_set_accept_state(stream->ssl);
  else SSL_set_connect_state(stream->ssl);
  stream->is_broken = true;  // until the handshake is done there is nothing to end
  *out_stream = stream;
  return NULL;
}

void weir_rpc_tls_stream_destroy(weir_rpc_tls_stream_t* stream) {
  if (!stream) return;
  if (stream->ssl && !stream->is_broken) {
    ERR_clear_error();
    SSL_shutdown(stream->ssl);
    ERR_clear_error();
  }
  SSL_free(stream->ssl);
  weir_free(stream);
}

// What OpenSSL's return value |rc| (not above 0) means.
static weir_rpc_tls_result_t explain(weir_rpc_tls_stream_t* stream, int rc) {
  int saved_errno = errno;
  switch (SSL_get_error(stream->ssl, rc)) {
    case SSL_ERROR_WANT_READ: return WEIR_RPC_TLS_WANT_READ;
    case SSL_ERROR_WANT_WRITE: return WEIR_RPC_TLS_WANT_WRITE;
    case SSL_ERROR_ZERO_RETURN: return WEIR_RPC_TLS_END;
    default: break;
  }
  stream->is_broken = true;
  long verified = SSL_get_verify_result(stream->ssl);
  if (verified != X509_V_OK) {
    snprintf(stream->error, sizeof(stream->error), "the peer's certificate is not trusted: %s",
             X509_verify_cert_error_string(verified));
    ERR_clear_error();
  } else {
    errno = saved_errno;
    take_error(stream->error, sizeof(stream->error));
  }
  return WEIR_RPC_TLS_FAILED;
}

weir_rpc_tls_result_t weir_rpc_tls_handshake(weir_rpc_tls_stream_t* stream) {
  ERR_clear_error();
  errno = 0;
  int rc = SSL_do_handshake(stream->ssl);
  if (rc != 1) return explain(stream, rc);
  const unsigned char* protocol = NULL;
  unsigned size = 0;
  SSL_get0_alpn_selected(stream->ssl, &protocol, &size);
  if (!stream->is_http1 && (size != 2 || memcmp(protocol, "h2", 2) != 0)) {
    snprintf(stream->error, sizeof(stream->error), "the peer did not agree on HTTP/2");
    return WEIR_RPC_TLS_FAILED;
  }
  stream->is_broken = false;
  return WEIR_RPC_TLS_OK;
}

weir_rpc_tls_result_t weir_rpc_tls_read(weir_rpc_tls_stream_t* stream, void* data, size_t size,
                                        size_t* out_size) {
  ERR_clear_error();
  errno = 0;
  int rc = SSL_read_ex(stream->ssl, data, size, out_size);
  return rc == 1 ? WEIR_RPC_TLS_OK : explain(stream, rc);
}

weir_rpc_tls_result_t weir_rpc_tls_write(weir_rpc_tls_stream_t* stream, const void* data,
                                         size_t size, size_t* out_size) {
  ERR_clear_error();
  errno = 0;
  int rc = SSL_write_ex(stream->ssl, data, size, out_size);
  return rc == 1 ? WEIR_RPC_TLS_OK : explain(stream, rc);
}

bool weir_rpc_tls_has_pending(const weir_rpc_tls_stream_t* stream) {
  return SSL_pending(stream->ssl) > 0;
}

const char* weir_rpc_tls_error(const weir_rpc_tls_stream_t* stream) { return stream->error; }
