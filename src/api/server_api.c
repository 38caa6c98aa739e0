// server_api.c — Servers of the public API: options become a cluster and a task of it.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/live.h"
#include "base/log.h"
#include "cluster/config/config.h"
#include "cluster/serve/serving.h"
#include "file/roots.h"
#include "rpc/address.h"
#include "rpc/token.h"
#include "weir/argument.h"
#include "weir/server.h"

#define ASK_TIMEOUT_S 10

struct weir_server_t {
  weir_live_t live;
  bool has_roots;
  weir_serving_t* serving;
  weir_mutex_t mu;
  weir_cond_t cond;
  weir_server_end_t end;  // guarded by mu
};

// ---- ending ----

static void set_end(weir_server_t* server, weir_server_end_t end) {
  weir_mutex_lock(&server->mu);
  if (server->end == WEIR_SERVER_RUNNING) server->end = end;
  weir_cond_broadcast(&server->cond);
  weir_mutex_unlock(&server->mu);
}

static void wish(void* arg, weir_serving_wish_t wish) {
  set_end(arg, wish == WEIR_SERVING_SHUTDOWN ? WEIR_SERVER_SHUT_DOWN : WEIR_SERVER_CHIEF_GONE);
}

void weir_server_stop(weir_server_t* server) {
  WEIR_ASSERT_ARG(server);
  set_end(server, WEIR_SERVER_STOPPED);
}

weir_server_end_t weir_server_wait(weir_server_t* server, int timeout_ms) {
  WEIR_ASSERT_ARG(server);
  int64_t deadline_ns = weir_clock_ns() + timeout_ms * INT64_C(1000000);
  weir_mutex_lock(&server->mu);
  bool is_in_time = true;
  while (server->end == WEIR_SERVER_RUNNING && is_in_time) {
    if (timeout_ms < 0) weir_cond_wait(&server->cond, &server->mu);
    else is_in_time = weir_cond_wait_until(&server->cond, &server->mu, deadline_ns);
  }
  weir_server_end_t end = server->end;
  weir_mutex_unlock(&server->mu);
  return end;
}

// ---- starting ----

static const char* get_variable(void* arg, const char* name) {
  (void)arg;
  return getenv(name);
}

static weir_status_t* read_config(const weir_server_options_t* options,
                                  weir_cluster_config_t* out_config) {
  weir_config_options_t asked = {.cluster = options->cluster,
                                 .job = options->job,
                                 .task = options->task,
                                 .jobs = options->jobs,
                                 .bind = options->bind,
                                 .unix_path = options->unix_path,
                                 .port = options->port,
                                 .has_etcd = options->etcd != NULL,
                                 .getenv_fn = options->use_environment ? get_variable : NULL};
  return weir_cluster_config_read(&asked, out_config);
}

static void put_host(const char* host, weir_strbuf_t* out) {
  bool is_bare_v6 = strchr(host, ':') && host[0] != '[';
  weir_strbuf_printf(out, is_bare_v6 ? "[%s]" : "%s", host);
}

static void put_bind(const weir_server_options_t* options, weir_strbuf_t* out) {
  put_host(options->bind ? options->bind : "127.0.0.1", out);
  weir_strbuf_putc(out, ':');
}

// A task that the others find by etcd: wherever the caller says, on any port that is free.
static weir_status_t* bind_anywhere(const weir_server_options_t* options, weir_strbuf_t* out) {
  if (options->unix_path) {
    weir_strbuf_printf(out, "unix:%s", options->unix_path);
  } else {
    put_bind(options, out);
    weir_strbuf_printf(out, "%d", options->port);
  }
  return weir_strbuf_finish(out);
}

// Where the others find this task, where the cluster does not say it.
static weir_status_t* advertised_host(const weir_server_options_t* options,
                                      const weir_cluster_config_t* config, weir_strbuf_t* out) {
  static const char* const everywhere[] = {"0.0.0.0", "::", "[::]"};
  const char* given = weir_cluster_spec_find(&config->spec, config->job, config->task);
  const char* host = options->advertise ? options->advertise : options->bind;
  char name[256] = "";
  if (!options->etcd || !weir_cluster_is_absent(given)) return NULL;
  bool is_everywhere = false;
  for (size_t i = 0; i < WEIR_COUNT_OF(everywhere) && host; ++i)
    is_everywhere = is_everywhere || !strcmp(host, everywhere[i]);
  if (is_everywhere && gethostname(name, sizeof(name) - 1) == 0) host = name;
  put_host(host ? host : "127.0.0.1", out);
  return weir_strbuf_finish(out);
}

// Where to listen: the port that the cluster gives this task, unless the caller says otherwise.
static weir_status_t* bind_address(const weir_server_options_t* options,
                                   const weir_cluster_config_t* config, weir_strbuf_t* out) {
  const char* given = weir_cluster_spec_find(&config->spec, config->job, config->task);
  weir_rpc_address_t address;
  if (weir_cluster_is_absent(given)) return bind_anywhere(options, out);
  WEIR_TRY(weir_rpc_address_parse(given, &address));
  bool is_base = strcmp(config->source, "Slurm") == 0;  // |port| is in the address already
  if (options->unix_path) weir_strbuf_printf(out, "unix:%s", options->unix_path);
  else if (address.is_unix) weir_strbuf_puts(out, given);
  else put_bind(options, out);
  if (!options->unix_path && !address.is_unix && options->port && !is_base)
    weir_strbuf_printf(out, "%d", options->port);
  else if (!options->unix_path && !address.is_unix) weir_strbuf_puts(out, address.port);
  bool is_local = options->bind || options->unix_path || weir_rpc_address_is_local(&address);
  if (!is_local)
    WEIR_LOG(WARNING,
             "%s: the cluster knows this task as %s, but it listens on the loopback interface "
             "only; bind it to 0.0.0.0 for other machines to reach it",
             config->source, given);
  return weir_strbuf_finish(out);
}

// What travels in plain text, whoever sees it may use.
static weir_status_t* load_token(const weir_server_options_t* options, const char* bound,
                                 weir_rpc_token_t** out_token) {
  weir_rpc_address_t address;
  if (!options->token_file) return NULL;
  WEIR_TRY(weir_rpc_address_parse(bound, &address));
  if (!options->tls_cert && !weir_rpc_address_is_local(&address))
    WEIR_LOG(ERROR, "the token is sent in plain text to and from %s: use TLS (tls_cert)", bound);
  return weir_rpc_token_open(options->token_file, out_token);
}

static bool is_local(const char* bound) {
  weir_rpc_address_t address;
  weir_status_t* status = weir_rpc_address_parse(bound, &address);
  bool is_so = status || weir_rpc_address_is_local(&address);
  weir_status_destroy(status);
  return is_so;
}

// Graphs read and write files, as TensorFlow's do: who may send them should be known.
static void warn_if_open(const weir_server_options_t* options, const char* bound) {
  if (is_local(bound) || options->token_file || options->is_tls_mutual || options->file_roots)
    return;
  WEIR_LOG(ERROR,
           "whoever reaches %s can run graphs here, and so read and write this user's files: see "
           "token_file, tls_mutual and file_roots",
           bound);
}

static weir_status_t* read_transport(const weir_server_options_t* options,
                                     weir_transport_choice_t* out_choice) {
  const char* wish = options->transport ? options->transport : getenv("WEIR_TRANSPORT");
  return weir_transport_parse(wish, options->tls_cert != NULL, out_choice);
}

static weir_status_t* metrics_address(const weir_server_options_t* options, weir_strbuf_t* out) {
  if (options->metrics_port == 0) return NULL;
  put_bind(options, out);
  weir_strbuf_printf(out, "%d", WEIR_MAX(options->metrics_port, 0));
  return weir_strbuf_finish(out);
}

static weir_rpc_tls_t tls_of(const weir_server_options_t* options, bool is_client) {
  return (weir_rpc_tls_t){.is_enabled = options->tls_cert || (is_client && options->tls_ca),
                          .cert_file = options->tls_cert,
                          .key_file = options->tls_key,
                          .ca_file = options->tls_ca,
                          .is_mutual = options->is_tls_mutual};
}

// TLS for the endpoints that ask for it.
static weir_members_options_t members_of(const weir_server_options_t* options) {
  const weir_rpc_tls_t tls = {
      .cert_file = options->tls_cert, .key_file = options->tls_key, .ca_file = options->tls_ca};
  return (weir_members_options_t){.etcd = {.endpoints = options->etcd, .tls = tls},
                                  .prefix = options->etcd_prefix};
}

static weir_status_t* start(const weir_server_options_t* options, weir_server_t* server) {
  weir_cluster_config_t config = {.job = NULL};
  weir_strbuf_t address = {0}, metrics = {0}, host = {0};
  weir_rpc_token_t* token = NULL;
  weir_transport_choice_t transport = WEIR_TRANSPORT_AUTO;
  weir_status_t* status = weir_roots_add(options->file_roots);
  server->has_roots = !status && options->file_roots;
  if (!status) status = read_config(options, &config);
  if (!status) status = bind_address(options, &config, &address);
  if (!status) status = advertised_host(options, &config, &host);
  if (!status) status = metrics_address(options, &metrics);
  if (!status) status = load_token(options, address.data, &token);
  if (!status) warn_if_open(options, address.data);
  if (!status) status = read_transport(options, &transport);
  if (!status) {
    weir_serving_params_t params = {.task = {.spec = config.spec,
                                             .job = config.job,
                                             .index = config.task,
                                             .devices = options->devices,
                                             .place = options->place,
                                             .rates = options->rates,
                                             .threads = options->threads,
                                             .tls = tls_of(options, false),
                                             .token = token,
                                             .transport = transport,
                                             .is_local = is_local(address.data),
                                             .max_message_size = options->max_message_size,
                                             .max_graph_size = options->max_graph_size,
                                             .members = members_of(options)},
                                    .tls = tls_of(options, false),
                                    .address = address.data,
                                    .host = host.data,
                                    .metrics_address = metrics.data,
                                    .max_connections = options->max_connections,
                                    .max_calls = options->max_calls,
                                    .max_steps = options->max_steps,
                                    .chief_patience_s = options->exit_with_chief_s,
                                    .wish_fn = wish,
                                    .wish_arg = server};
    status = weir_serving_start(&params, &server->serving);
    config.spec = params.task.spec;  // empty where the task took it
  }
  weir_cluster_config_free(&config);
  weir_strbuf_free(&address);
  weir_strbuf_free(&metrics);
  weir_strbuf_free(&host);
  weir_rpc_token_release(token);
  return status;
}

static void server_free(weir_server_t* server) {
  if (server->has_roots) weir_roots_remove();
  weir_cond_destroy(&server->cond);
  weir_mutex_destroy(&server->mu);
  weir_free(server);
}

weir_status_t* weir_server_create(const weir_server_options_t* options,
                                  weir_server_t** out_server) {
  WEIR_REQUIRE_ARG(out_server);
  const weir_server_options_t defaults = {.cluster = NULL};
  weir_server_t* server = weir_calloc(1, sizeof(*server));
  if (!server) return weir_out_of_memory();
  weir_mutex_init(&server->mu);
  weir_cond_init(&server->cond);
  weir_status_t* status = start(options ? options : &defaults, server);
  if (status) server_free(server);
  if (status) return status;
  weir_live_add(&server->live, server);
  *out_server = server;
  return NULL;
}

void weir_server_destroy(weir_server_t* server, int grace_ms) {
  if (!server) return;
  if (!weir_live_remove(server)) weir_abort_ended(__func__, "server");
  weir_serving_stop(server->serving, grace_ms);
  server_free(server);
}

// ---- what it is ----

int weir_server_port(const weir_server_t* server) {
  WEIR_ASSERT_ARG(server);
  return weir_serving_port(server->serving);
}
const char* weir_server_address(const weir_server_t* server) {
  WEIR_ASSERT_ARG(server);
  return weir_serving_address(server->serving);
}
const char* weir_server_task_name(const weir_server_t* server) {
  WEIR_ASSERT_ARG(server);
  return weir_serving_task(server->serving)->name;
}
int weir_server_metrics_port(const weir_server_t* server) {
  WEIR_ASSERT_ARG(server);
  return weir_serving_metrics_port(server->serving);
}

// ---- another server ----

// Calls |path| of the server at |target| and waits for its answer.
static weir_status_t* ask(const char* target, const weir_server_options_t* options,
                          const char* path, weir_rpc_buffer_t** out_answer) {
  weir_rpc_loop_t* loop = NULL;
  weir_rpc_channel_t* channel = NULL;
  weir_rpc_channel_options_t channel_options = {.address = target};
  weir_rpc_token_t* token = NULL;
  if (options) channel_options.tls = tls_of(options, true);
  weir_status_t* status = weir_rpc_loop_create(NULL, &loop);
  if (!status && options && options->token_file)
    status = weir_rpc_token_open(options->token_file, &token);
  channel_options.token = token;
  if (!status) status = weir_rpc_channel_create(loop, &channel_options, &channel);
  if (!status) {
    weir_rpc_call_options_t call = {.deadline_ns =
                                        weir_clock_ns() + ASK_TIMEOUT_S * INT64_C(1000000000)};
    status = weir_rpc_channel_call(channel, path, weir_rpc_message_create(), &call, out_answer);
  }
  weir_rpc_token_release(token);
  if (channel) weir_rpc_channel_destroy(channel);
  if (loop) weir_rpc_loop_destroy(loop);
  return status;
}

weir_status_t* weir_server_shut_down(const char* target, const weir_server_options_t* options) {
  WEIR_REQUIRE_ARG(target);
  weir_rpc_buffer_t* answer = NULL;
  weir_status_t* status = ask(target, options, WEIR_SHUTDOWN_PATH, &answer);
  weir_rpc_buffer_release(answer);
  return status;
}

weir_status_t* weir_server_state(const char* target, const weir_server_options_t* options,
                                 char** out_text) {
  WEIR_REQUIRE_ARG(target);
  WEIR_REQUIRE_ARG(out_text);
  weir_rpc_buffer_t* answer = NULL;
  WEIR_TRY(ask(target, options, WEIR_STATE_PATH, &answer));
  weir_view_t text = weir_rpc_buffer_view(answer);
  char* copy = weir_strndup(text.data ? text.data : "", text.size);
  weir_rpc_buffer_release(answer);
  if (!copy) return weir_out_of_memory();
  *out_text = copy;
  return NULL;
}
