// rest.c — REST: which URL means what, threads, limits, errors.
#include "serving/rest.h"

#include <inttypes.h>

#include "rpc/token.h"

static const char json_type[] = "application/json";

// ---- errors ----

// As TensorFlow Serving maps them.
static int http_code(weir_code_t code) {
  switch (code) {
    case WEIR_OK: return 200;
    case WEIR_INVALID_ARGUMENT:
    case WEIR_FAILED_PRECONDITION:
    case WEIR_OUT_OF_RANGE: return 400;
    case WEIR_UNAUTHENTICATED: return 401;
    case WEIR_PERMISSION_DENIED: return 403;
    case WEIR_NOT_FOUND: return 404;
    case WEIR_ALREADY_EXISTS:
    case WEIR_ABORTED: return 409;
    case WEIR_RESOURCE_EXHAUSTED: return 429;
    case WEIR_CANCELLED: return 499;
    case WEIR_UNIMPLEMENTED: return 501;
    case WEIR_UNAVAILABLE: return 503;
    case WEIR_DEADLINE_EXCEEDED: return 504;
    default: return 500;
  }
}

static void respond(weir_http_call_t* http, weir_status_t* take_status, weir_strbuf_t* body) {
  int code = http_code(weir_status_code(take_status));
  if (take_status) {
    body->size = 0;
    weir_strbuf_puts(body, "{\"error\": ");
    weir_json_put_string(weir_status_message(take_status), body);
    weir_strbuf_puts(body, "}\n");
    weir_status_destroy(take_status);
  }
  weir_http_call_respond(http, code, json_type, body);
}

// ---- calls of models ----

static void end_call(weir_rest_call_t* call, weir_status_t* take_status, weir_strbuf_t* body) {
  weir_service_t* service = call->service;
  weir_http_call_t* http = call->http;
  weir_counted_t counted = {.model = call->spec.name,
                            .api = WEIR_API_REST,
                            .method = call->method,
                            .code = weir_status_code(take_status),
                            .duration_ns = weir_clock_ns() - call->begin_ns,
                            .run_ns = call->job.run_ns};
  weir_counts_add(service->counts, &counted);
  weir_job_clear(&call->job);
  weir_free(call);
  weir_service_leave(service);
  respond(http, take_status, body);
}

static void job_done(weir_job_t* job, weir_status_t* take_status) {
  weir_rest_call_t* call = (weir_rest_call_t*)job;
  weir_strbuf_t body = {0};
  weir_status_t* status = take_status;
  if (!status) status = call->write(call, &body);
  if (!status) status = weir_strbuf_finish(&body);
  end_call(call, status, &body);
}

static void run_call(void* arg) {
  weir_rest_call_t* call = arg;
  weir_status_t* status = call->read(call);
  if (status) job_done(&call->job, status);
  else weir_job_start(&call->job);
}

typedef struct verb_t {
  const char* name;
  weir_serving_method_t method;
  weir_rest_read_fn_t read;
  weir_rest_write_fn_t write;
} verb_t;

static void start_call(weir_service_t* service, weir_http_call_t* http,
                       const weir_model_spec_t* spec, const verb_t* verb) {
  weir_strbuf_t body = {0};
  weir_status_t* status = weir_service_enter(service);
  weir_rest_call_t* call = status ? NULL : weir_calloc(1, sizeof(*call));
  if (!status && !call) {
    weir_service_leave(service);
    status = weir_out_of_memory();
  }
  if (status) {
    weir_counted_t counted = {.model = spec->name,
                              .api = WEIR_API_REST,
                              .method = verb->method,
                              .code = weir_status_code(status)};
    weir_counts_add(service->counts, &counted);
    respond(http, status, &body);
    return;
  }
  call->job.deadline_ns = weir_service_deadline(service);
  call->job.done = job_done;
  call->service = service;
  call->http = http;
  call->spec = *spec;
  call->method = verb->method;
  call->read = verb->read;
  call->write = verb->write;
  call->begin_ns = weir_clock_ns();
  weir_pool_submit(service->pool, run_call, call);
}

// ---- URLs ----

// "M", "M/versions/V", "M/labels/L" of |*path|, which is left at what follows. False: malformed.
static bool parse_model(weir_view_t* path, weir_model_spec_t* spec) {
  weir_view_t kind, value, rest = *path;
  bool is_good = weir_view_next(&rest, '/', &spec->name) && spec->name.size > 0;
  *path = rest;
  if (!is_good || !weir_view_next(&rest, '/', &kind)) return is_good;
  bool is_version = weir_view_is(kind, "versions"), is_label = weir_view_is(kind, "labels");
  if (!is_version && !is_label) return true;
  if (!weir_view_next(&rest, '/', &value) || value.size == 0) return false;
  *path = rest;
  if (is_label) spec->label = value;
  spec->has_version = is_version;
  return is_label || (weir_parse_int64(value, &spec->version) && spec->version >= 0);
}

// Splits ":predict" off the end of |*path|.
static weir_view_t split_verb(weir_view_t* path) {
  const char* colon = path->size > 0 ? memrchr(path->data, ':', path->size) : NULL;
  if (!colon) return weir_view(NULL, 0);
  weir_view_t verb = weir_view(colon + 1, (size_t)(path->data + path->size - colon) - 1);
  path->size = (size_t)(colon - path->data);
  return verb;
}

static weir_status_t* malformed(const weir_http_request_t* request) {
  return WEIR_STATUS(INVALID_ARGUMENT, "Malformed request: %.*s %.*s",
                     (int)WEIR_MIN(request->method.size, (size_t)20), request->method.data,
                     (int)WEIR_MIN(request->path.size, (size_t)300), request->path.data);
}

static bool is_get(const weir_http_request_t* request) {
  return weir_view_is(request->method, "GET") || weir_view_is(request->method, "HEAD");
}

static void show_about(weir_service_t* service, weir_http_call_t* http,
                       const weir_model_spec_t* spec, weir_serving_method_t method) {
  weir_strbuf_t body = {0};
  int64_t begin_ns = weir_clock_ns();
  weir_status_t* status = method == WEIR_METHOD_STATUS
                              ? weir_rest_write_status(service->catalog, spec, &body)
                              : weir_rest_write_metadata(service->catalog, spec, &body);
  weir_counted_t counted = {.model = spec->name,
                            .api = WEIR_API_REST,
                            .method = method,
                            .code = weir_status_code(status),
                            .duration_ns = weir_clock_ns() - begin_ns};
  weir_counts_add(service->counts, &counted);
  respond(http, status, &body);
}

// What follows "/v1/models/".
static void route_v1(weir_service_t* service, weir_http_call_t* http, weir_view_t path) {
  static const verb_t verbs[] = {
      {"predict", WEIR_METHOD_PREDICT, weir_rest_read_predict, weir_rest_write_predict},
      {"classify", WEIR_METHOD_CLASSIFY, weir_rest_read_examples, weir_rest_write_classes},
      {"regress", WEIR_METHOD_REGRESS, weir_rest_read_examples, weir_rest_write_regressions}};
  const weir_http_request_t* request = weir_http_call_request(http);
  weir_model_spec_t spec = {.has_version = false};
  weir_strbuf_t body = {0};
  weir_view_t name = weir_view_is(request->method, "POST") ? split_verb(&path) : (weir_view_t){0};
  bool is_good = parse_model(&path, &spec);
  for (size_t i = 0; is_good && path.size == 0 && i < WEIR_COUNT_OF(verbs); ++i) {
    if (!name.data || !weir_view_is(name, verbs[i].name)) continue;
    start_call(service, http, &spec, &verbs[i]);
    return;
  }
  bool is_metadata = weir_view_is(path, "metadata");
  if (is_good && is_get(request) && (path.size == 0 || is_metadata))
    show_about(service, http, &spec, is_metadata ? WEIR_METHOD_METADATA : WEIR_METHOD_STATUS);
  else respond(http, malformed(request), &body);
}

static weir_status_t* check_ready(weir_service_t* service, const weir_model_spec_t* spec) {
  weir_version_t* version = NULL;
  weir_status_t* status = weir_catalog_find(service->catalog, spec, &version);
  weir_version_release(version);
  return status;
}

// What follows "/v2/models/".
static void route_v2_model(weir_service_t* service, weir_http_call_t* http, weir_view_t path) {
  static const verb_t infer = {"infer", WEIR_METHOD_INFER, weir_rest_read_infer,
                               weir_rest_write_infer};
  const weir_http_request_t* request = weir_http_call_request(http);
  weir_model_spec_t spec = {.has_version = false};
  weir_strbuf_t body = {0};
  weir_status_t* status = parse_model(&path, &spec) ? NULL : malformed(request);
  if (!status && weir_view_is(path, "infer") && weir_view_is(request->method, "POST")) {
    start_call(service, http, &spec, &infer);
    return;
  }
  if (!status && !is_get(request)) status = malformed(request);
  if (!status && weir_view_is(path, "ready")) {
    status = check_ready(service, &spec);
    if (!status) weir_strbuf_puts(&body, "{\"ready\": true}\n");
  } else if (!status && path.size == 0) {
    status = weir_rest_write_v2_model(service->catalog, &spec, &body);
  } else if (!status) {
    status = malformed(request);
  }
  respond(http, status, &body);
}

// ---- pages that are about no model ----

static weir_status_t* health(weir_service_t* service) {
  if (atomic_load(&service->is_stopping)) return WEIR_STATUS(UNAVAILABLE, "about to end");
  if (!weir_catalog_is_ready(service->catalog))
    return WEIR_STATUS(UNAVAILABLE, "not every model serves");
  return NULL;
}

static void show_health(weir_service_t* service, weir_http_call_t* http, bool is_live) {
  weir_strbuf_t body = {0};
  weir_status_t* status = is_live ? NULL : health(service);
  weir_strbuf_puts(&body, is_live ? "{\"live\": true}\n" : "{\"ready\": true}\n");
  respond(http, status, &body);
}

static void show_metrics(weir_service_t* service, weir_http_call_t* http) {
  weir_strbuf_t body = {0};
  weir_metrics_write_common(service->metrics, service->rpc, &body);
  weir_counts_write(service->counts, &body);
  weir_http_call_respond(http, 200, WEIR_METRICS_CONTENT_TYPE, &body);
}

static void show_server(weir_http_call_t* http) {
  weir_strbuf_t body = {0};
  weir_strbuf_printf(&body, "{\"name\": \"weir\", \"version\": \"%s\", \"extensions\": []}\n",
                     WEIR_VERSION);
  weir_http_call_respond(http, 200, json_type, &body);
}

// False: the path is none of these.
static bool route_page(weir_service_t* service, weir_http_call_t* http, weir_view_t path) {
  bool is_live = weir_view_is(path, "/healthz") || weir_view_is(path, "/v2/health/live");
  bool is_ready = weir_view_is(path, "/readyz") || weir_view_is(path, "/v2/health/ready");
  bool is_metrics =
      weir_view_is(path, "/metrics") || weir_view_is(path, "/monitoring/prometheus/metrics");
  if (is_live || is_ready) show_health(service, http, is_live);
  else if (is_metrics) show_metrics(service, http);
  else if (weir_view_is(path, "/v2")) show_server(http);
  else return false;
  return true;
}

// Probes of health bear no secrets and learn none.
static bool needs_token(const weir_service_t* service, weir_view_t path) {
  return service->token && !weir_view_is(path, "/healthz") && !weir_view_is(path, "/readyz") &&
         !weir_view_starts_with(path, "/v2/health/");
}

static weir_view_t behind(weir_view_t path, const char* prefix) {
  size_t size = strlen(prefix);
  return weir_view(path.data + size, path.size - size);
}

void weir_rest_handle(void* arg, weir_http_call_t* http) {
  static const char v1[] = "/v1/models/", v2[] = "/v2/models/";
  weir_service_t* service = arg;
  const weir_http_request_t* request = weir_http_call_request(http);
  weir_view_t path = request->path;
  weir_strbuf_t body = {0};
  if (needs_token(service, path) && !weir_rpc_token_is_in(service->token, request->authorization)) {
    respond(http,
            WEIR_STATUS(UNAUTHENTICATED,
                        "this server asks for its token: 'Authorization: "
                        "Bearer ...'"),
            &body);
  } else if (weir_view_starts_with(path, v1)) {
    route_v1(service, http, behind(path, v1));
  } else if (weir_view_starts_with(path, v2)) {
    route_v2_model(service, http, behind(path, v2));
  } else if (weir_view_starts_with(path, "/v1/") || !is_get(request)) {
    respond(http, malformed(request), &body);
  } else if (!route_page(service, http, path)) {
    respond(http,
            WEIR_STATUS(NOT_FOUND, "%.*s: no such page; models are at /v1/models/NAME",
                        (int)WEIR_MIN(path.size, (size_t)300), path.data),
            &body);
  }
}
