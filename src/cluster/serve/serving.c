// serving.c — A server: a task's master and worker behind one address, and what watches over them.
#include "cluster/serve/serving.h"

#include "base/alloc.h"
#include "cluster/master/master.h"
#include "cluster/serve/chief.h"
#include "cluster/serve/metrics.h"
#include "cluster/task/ucx.h"
#include "cluster/worker/worker.h"
#include "rpc/http.h"
#include "rpc/token.h"

enum { METHOD_LIMIT = 64 };

struct weir_serving_t {
  weir_task_t* task;
  weir_rpc_server_t* rpc;
  weir_metrics_t* metrics;  // NULL: nobody asks
  weir_http_t* http;        // NULL: none
  weir_chief_watch_t* chief;
  weir_serving_wish_fn_t wish_fn;
  void* wish_arg;
  atomic_bool is_stopping;
};

// ---- what a client or the chief's end asks for ----

static void wish_shutdown(void* arg) {
  weir_serving_t* serving = arg;
  serving->wish_fn(serving->wish_arg, WEIR_SERVING_SHUTDOWN);
}

static void wish_chief_gone(void* arg) {
  weir_serving_t* serving = arg;
  serving->wish_fn(serving->wish_arg, WEIR_SERVING_CHIEF_GONE);
}

static void handle_shutdown(void* self, weir_rpc_call_t* call) {
  weir_task_t* task = self;
  if (!task->shutdown_fn) {
    weir_rpc_call_fail(call, WEIR_STATUS(PERMISSION_DENIED, "this server is not ended by clients"));
    return;
  }
  weir_rpc_call_respond(call, weir_rpc_message_create());
  task->shutdown_fn(task->shutdown_arg);
}

static void handle_state(void* self, weir_rpc_call_t* call) {
  weir_strbuf_t text = {0};
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_metrics_write_task(self, &text);
  weir_rpc_message_append_strbuf(message, &text);
  weir_rpc_call_respond(call, message);
}

// What a peer has not read by now it will not read any more, nor tell of the end of its steps.
static void peer_gone(void* self, uint64_t connection) {
  weir_task_t* task = self;
  weir_same_host_end_connection(&task->same_host, connection);
  weir_ucx_end_connection(task->ucx, connection);
  weir_gate_disconnect(task->gate, connection);
}

// ---- pages for monitoring ----

// Probes of health bear no secrets and learn none.
static bool may_see(const weir_serving_t* serving, const weir_http_request_t* request) {
  weir_rpc_token_t* token = serving->task->token;
  return !token || weir_view_is(request->path, "/healthz") ||
         weir_rpc_token_is_in(token, request->authorization);
}

static int write_page(weir_serving_t* serving, const weir_http_request_t* request,
                      weir_strbuf_t* body, const char** out_type) {
  weir_view_t path = request->path;
  if (!weir_view_is(request->method, "GET") && !weir_view_is(request->method, "HEAD")) {
    weir_strbuf_puts(body, "pages are read by GET\n");
    return 405;
  }
  if (!may_see(serving, request)) {
    weir_strbuf_puts(body, "this server asks for its token: 'Authorization: Bearer ...'\n");
    return 401;
  }
  if (weir_view_is(path, "/metrics")) {
    *out_type = WEIR_METRICS_CONTENT_TYPE;
    weir_metrics_write(serving->metrics, serving->task, serving->rpc, body);
    return 200;
  }
  bool is_stopping = atomic_load(&serving->is_stopping);
  if (weir_view_is(path, "/healthz")) {
    weir_strbuf_puts(body, is_stopping ? "stopping\n" : "ok\n");
    return is_stopping ? 503 : 200;
  }
  weir_strbuf_printf(body, "%s: there are /metrics and /healthz here\n", serving->task->name);
  return weir_view_is(path, "/") ? 200 : 404;
}

static void show_page(void* arg, weir_http_call_t* call) {
  weir_strbuf_t body = {0};
  const char* type = NULL;
  int code = write_page(arg, weir_http_call_request(call), &body, &type);
  weir_http_call_respond(call, code, type, &body);
}

// ---- life ----

static weir_status_t* serve(weir_serving_t* serving, const weir_serving_params_t* params) {
  weir_rpc_method_t methods[METHOD_LIMIT] = {{.path = NULL}};
  int count = 0;
  for (const weir_rpc_method_t* m = weir_master_methods; m->path; ++m) methods[count++] = *m;
  for (const weir_rpc_method_t* m = weir_worker_methods; m->path; ++m) methods[count++] = *m;
  methods[count++] = (weir_rpc_method_t){WEIR_SHUTDOWN_PATH, handle_shutdown, .is_inline = true};
  methods[count++] = (weir_rpc_method_t){WEIR_STATE_PATH, handle_state, .is_inline = true};
  const char* address = params->address;
  if (!address)
    address =
        weir_cluster_spec_find(&serving->task->spec, serving->task->job, serving->task->index);
  weir_rpc_server_options_t options = {.address = address,
                                       .tls = params->tls,
                                       .token = serving->task->token,
                                       .pool = serving->task->pool,
                                       .self = serving->task,
                                       .disconnected = peer_gone,
                                       .max_connections = params->max_connections,
                                       .max_calls = params->max_calls,
                                       .max_steps = params->max_steps,
                                       .max_message_size = params->task.max_message_size};
  if (params->metrics_address) {
    WEIR_TRY(weir_metrics_create(methods, &serving->metrics));
    options.observer = weir_metrics_observe;
    options.observer_arg = serving->metrics;
  }
  WEIR_TRY(weir_rpc_server_create(serving->task->loop, &options, methods, &serving->rpc));
  if (!params->metrics_address) return NULL;
  weir_http_options_t pages = {
      .address = params->metrics_address, .tls = params->tls, .handler = show_page, .arg = serving};
  return weir_http_create(&pages, &serving->http);
}

// Now that it is there, says where.
static weir_status_t* join(weir_serving_t* serving, const weir_serving_params_t* params) {
  const weir_task_t* task = serving->task;
  const int port = weir_rpc_server_port(serving->rpc);
  const char* given = weir_cluster_spec_find(&task->spec, task->job, task->index);
  weir_strbuf_t address = {0};
  if (!weir_cluster_is_absent(given)) weir_strbuf_puts(&address, given);
  else if (params->host && port) weir_strbuf_printf(&address, "%s:%d", params->host, port);
  else weir_strbuf_puts(&address, weir_rpc_server_address(serving->rpc));
  weir_status_t* status = weir_strbuf_finish(&address);
  if (!status) status = weir_members_start(task->members, address.data);
  weir_strbuf_free(&address);
  return status;
}

weir_status_t* weir_serving_start(weir_serving_params_t* params, weir_serving_t** out_serving) {
  weir_serving_t* serving = weir_calloc(1, sizeof(*serving));
  if (!serving) return weir_out_of_memory();
  serving->wish_fn = params->wish_fn;
  serving->wish_arg = params->wish_arg;
  weir_status_t* status = weir_task_create(&params->task, &serving->task);
  if (!status && params->wish_fn) {
    serving->task->shutdown_fn = wish_shutdown;
    serving->task->shutdown_arg = serving;
  }
  if (!status) status = weir_master_create(serving->task, &serving->task->master);
  if (!status) status = weir_worker_create(serving->task, &serving->task->worker);
  if (!status) status = serve(serving, params);
  if (!status && serving->task->members) status = join(serving, params);
  if (!status && params->wish_fn && params->chief_patience_s > 0)
    status = weir_chief_watch_create(serving->task, params->chief_patience_s, wish_chief_gone,
                                     serving, &serving->chief);
  if (status) weir_serving_stop(serving, 0);
  else *out_serving = serving;
  return status;
}

int weir_serving_port(const weir_serving_t* serving) { return weir_rpc_server_port(serving->rpc); }
weir_task_t* weir_serving_task(const weir_serving_t* serving) { return serving->task; }
const char* weir_serving_address(const weir_serving_t* serving) {
  return weir_rpc_server_address(serving->rpc);
}
int weir_serving_metrics_port(const weir_serving_t* serving) {
  return serving->http ? weir_http_port(serving->http) : 0;
}

void weir_serving_stop(weir_serving_t* take_serving, int grace_ms) {
  if (!take_serving) return;
  atomic_store(&take_serving->is_stopping, true);
  weir_chief_watch_destroy(take_serving->chief);
  if (take_serving->task) weir_members_stop(take_serving->task->members);
  if (take_serving->rpc) weir_rpc_server_shutdown(take_serving->rpc, grace_ms);
  weir_http_destroy(take_serving->http);
  weir_task_t* task = take_serving->task;
  if (task) weir_master_stop(task->master);
  if (task) weir_worker_stop(task->worker);
  if (take_serving->rpc) weir_rpc_server_destroy(take_serving->rpc);  // waits for the handlers
  if (task) weir_master_destroy(task->master);
  if (task) weir_worker_destroy(task->worker);
  weir_task_destroy(task);
  weir_metrics_destroy(take_serving->metrics);
  weir_free(take_serving);
}
