// serve.c — weir/serve.h: options become models, threads and two listeners.
#include "weir/serve.h"

#include "base/alloc.h"
#include "base/live.h"
#include "base/log.h"
#include "rpc/address.h"
#include "rpc/token.h"
#include "serving/service.h"
#include "weir/argument.h"

enum { GRPC_PORT = 8500, REST_PORT = 8501, MAX_REQUESTS = 1000, MAX_CONNECTIONS = 1000 };
enum { PATIENCE_MS = 20000 };
static const uint64_t max_body = UINT64_C(128) << 20;

struct weir_serve_t {
  weir_live_t live;
  weir_service_t service;
  weir_lanes_options_t batching;
  weir_rpc_loop_t* loop;
  weir_http_t* http;
  weir_rpc_token_t* token;
  weir_mutex_t mu;
  weir_cond_t cond;
  bool is_stopped;  // guarded by mu
};

// ---- starting ----

static weir_status_t* put_address(const weir_serve_options_t* options, int port, int standard,
                                  weir_strbuf_t* out) {
  const char* host = options->bind ? options->bind : "127.0.0.1";
  bool is_bare_v6 = strchr(host, ':') && host[0] != '[';
  weir_strbuf_printf(out, is_bare_v6 ? "[%s]:%d" : "%s:%d", host,
                     port ? WEIR_MAX(port, 0) : standard);
  return weir_strbuf_finish(out);
}

// What travels in plain text, whoever sees it may use.
static weir_status_t* load_token(weir_serve_t* serve, const weir_serve_options_t* options) {
  if (!options->token_file) return NULL;
  weir_strbuf_t text = {0};
  weir_rpc_address_t address;
  weir_status_t* status = put_address(options, options->port, GRPC_PORT, &text);
  if (!status) status = weir_rpc_address_parse(text.data, &address);
  if (!status && !options->tls_cert && !weir_rpc_address_is_local(&address))
    WEIR_LOG(ERROR, "the token is sent in plain text to and from %s: use TLS (tls_cert)",
             text.data);
  weir_strbuf_free(&text);
  return status ? status : weir_rpc_token_open(options->token_file, &serve->token);
}

static weir_status_t* load_models(weir_serve_t* serve, const weir_serve_options_t* options) {
  serve->batching = (weir_lanes_options_t){.max_rows = options->max_batch,
                                           .timeout_us = options->batch_timeout_us,
                                           .max_runs = weir_cpu_count(),
                                           .pool = serve->service.pool};
  weir_catalog_options_t asked = {.keep = options->keep_versions,
                                  .poll_ms = options->poll_ms,
                                  .threads = options->threads,
                                  .warms_with_zeros = options->warm_up,
                                  .batching = options->max_batch > 1 ? &serve->batching : NULL};
  WEIR_TRY(weir_catalog_create(&asked, &serve->service.catalog));
  if (options->model_count == 0) return WEIR_STATUS(INVALID_ARGUMENT, "no model is given");
  for (int i = 0; i < options->model_count; ++i)
    WEIR_TRY(weir_catalog_add(serve->service.catalog, options->models[i]));
  for (int i = 0; i < options->label_count; ++i)
    WEIR_TRY(weir_catalog_add_label(serve->service.catalog, options->labels[i]));
  WEIR_TRY(weir_catalog_start(serve->service.catalog));
  return weir_counts_create(serve->service.catalog, &serve->service.counts);
}

static weir_status_t* listen_grpc(weir_serve_t* serve, const weir_serve_options_t* options,
                                  const weir_rpc_tls_t* tls) {
  weir_service_t* service = &serve->service;
  weir_strbuf_t address = {0};
  weir_status_t* status = weir_metrics_create(weir_serving_methods, &service->metrics);
  if (!status) status = put_address(options, options->port, GRPC_PORT, &address);
  weir_rpc_server_options_t asked = {
      .address = address.data,
      .tls = *tls,
      .token = serve->token,
      .self = service,
      .max_connections = options->max_connections ? options->max_connections : MAX_CONNECTIONS,
      .max_message_size = options->max_body_size ? options->max_body_size : max_body,
      .observer = weir_metrics_observe,
      .observer_arg = service->metrics};
  if (!status)
    status = weir_rpc_server_create(serve->loop, &asked, weir_serving_methods, &service->rpc);
  weir_strbuf_free(&address);
  return status;
}

static weir_status_t* listen_rest(weir_serve_t* serve, const weir_serve_options_t* options,
                                  const weir_rpc_tls_t* tls) {
  weir_strbuf_t address = {0};
  weir_status_t* status = put_address(options, options->rest_port, REST_PORT, &address);
  weir_http_options_t asked = {
      .address = address.data,
      .tls = *tls,
      .loop = serve->loop,
      .handler = weir_rest_handle,
      .arg = &serve->service,
      .max_connections = options->max_connections ? options->max_connections : MAX_CONNECTIONS,
      .max_body_size = (size_t)(options->max_body_size ? options->max_body_size : max_body),
      .patience_ms = PATIENCE_MS};
  if (!status) status = weir_http_create(&asked, &serve->http);
  weir_strbuf_free(&address);
  return status;
}

static weir_status_t* start(weir_serve_t* serve, const weir_serve_options_t* options) {
  weir_service_t* service = &serve->service;
  weir_rpc_tls_t tls = {.is_enabled = options->tls_cert != NULL,
                        .cert_file = options->tls_cert,
                        .key_file = options->tls_key,
                        .ca_file = options->tls_ca,
                        .is_mutual = options->is_tls_mutual};
  if (!options->tls_cert && (options->tls_key || options->is_tls_mutual))
    return WEIR_STATUS(INVALID_ARGUMENT, "TLS needs a certificate (tls_cert)");
  service->max_requests = options->max_requests ? options->max_requests : MAX_REQUESTS;
  service->timeout_ns = options->request_timeout_ms * INT64_C(1000000);
  WEIR_TRY(load_token(serve, options));
  service->token = serve->token;
  WEIR_TRY(weir_pool_create(WEIR_MAX(weir_cpu_count(), 2) + 1, &service->pool));
  WEIR_TRY(load_models(serve, options));
  weir_rpc_loop_options_t loop = {.thread_count = weir_cpu_count() > 4 ? 2 : 1};
  WEIR_TRY(weir_rpc_loop_create(&loop, &serve->loop));
  WEIR_TRY(listen_grpc(serve, options, &tls));
  return listen_rest(serve, options, &tls);
}

// ---- ending ----

// In this order: no new requests; those under way are answered; models go last.
static void serve_free(weir_serve_t* serve, int grace_ms) {
  weir_service_t* service = &serve->service;
  int64_t deadline_ns = weir_clock_ns() + grace_ms * INT64_C(1000000);
  atomic_store(&service->is_stopping, true);
  if (serve->http) weir_http_shutdown(serve->http, grace_ms);
  int64_t left_ms = WEIR_MAX((deadline_ns - weir_clock_ns()) / 1000000, 0);
  if (service->rpc) weir_rpc_server_shutdown(service->rpc, (int)left_ms);
  if (service->catalog) weir_catalog_cancel(service->catalog);  // nobody hears of these any more
  weir_http_destroy(serve->http);
  weir_rpc_server_destroy(service->rpc);
  if (serve->loop) weir_rpc_loop_destroy(serve->loop);
  weir_pool_destroy(service->pool);
  weir_catalog_destroy(service->catalog);
  weir_counts_destroy(service->counts);
  weir_metrics_destroy(service->metrics);
  weir_rpc_token_release(serve->token);
  weir_cond_destroy(&serve->cond);
  weir_mutex_destroy(&serve->mu);
  weir_free(serve);
}

weir_status_t* weir_serve_create(const weir_serve_options_t* options, weir_serve_t** out_serve) {
  WEIR_REQUIRE_ARG(options);
  WEIR_REQUIRE_ARG(out_serve);
  weir_serve_t* serve = weir_calloc(1, sizeof(*serve));
  if (!serve) return weir_out_of_memory();
  weir_mutex_init(&serve->mu);
  weir_cond_init(&serve->cond);
  weir_status_t* status = start(serve, options);
  if (status) {
    serve_free(serve, 0);
    return status;
  }
  weir_live_add(&serve->live, serve);
  *out_serve = serve;
  return NULL;
}

void weir_serve_destroy(weir_serve_t* serve, int grace_ms) {
  if (!serve) return;
  if (!weir_live_remove(serve)) weir_abort_ended(__func__, "serve");
  serve_free(serve, grace_ms);
}

int weir_serve_port(const weir_serve_t* serve) {
  WEIR_ASSERT_ARG(serve);
  return weir_rpc_server_port(serve->service.rpc);
}
int weir_serve_rest_port(const weir_serve_t* serve) {
  WEIR_ASSERT_ARG(serve);
  return weir_http_port(serve->http);
}

void weir_serve_stop(weir_serve_t* serve) {
  WEIR_ASSERT_ARG(serve);
  weir_mutex_lock(&serve->mu);
  serve->is_stopped = true;
  weir_cond_broadcast(&serve->cond);
  weir_mutex_unlock(&serve->mu);
}

bool weir_serve_wait(weir_serve_t* serve, int timeout_ms) {
  WEIR_ASSERT_ARG(serve);
  int64_t deadline_ns = weir_clock_ns() + timeout_ms * INT64_C(1000000);
  weir_mutex_lock(&serve->mu);
  bool is_in_time = true;
  while (!serve->is_stopped && is_in_time) {
    if (timeout_ms < 0) weir_cond_wait(&serve->cond, &serve->mu);
    else is_in_time = weir_cond_wait_until(&serve->cond, &serve->mu, deadline_ns);
  }
  bool is_stopped = serve->is_stopped;
  weir_mutex_unlock(&serve->mu);
  return is_stopped;
}
