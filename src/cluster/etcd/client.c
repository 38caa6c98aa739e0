// client.c — Calls to etcd, by whichever of its endpoints answers.
#include "cluster/etcd/client.h"

#include "base/alloc.h"

enum {
  MOST_ENDPOINTS = 16,
  MOST_ANSWER = 16 << 20,  // bytes
  LONGEST_BACKOFF_MS = 500,
};

struct weir_etcd_client_t {
  weir_rpc_loop_t* loop;
  weir_rpc_channel_t* channels[MOST_ENDPOINTS];
  int count;
  atomic_int next;  // the one to ask first
};

// ---- endpoints ----

// As etcd's own tools write them.
static void write_address(weir_strbuf_t* out, weir_view_t endpoint) {
  static const char plain[] = "http://", tls[] = "https://";
  const bool is_plain = weir_view_starts_with(endpoint, plain);
  const bool is_tls = weir_view_starts_with(endpoint, tls);
  const size_t scheme = is_plain ? strlen(plain) : is_tls ? strlen(tls) : 0;
  if (is_tls) weir_strbuf_puts(out, "grpc+tls://");
  weir_strbuf_append(out, endpoint.data + scheme, endpoint.size - scheme);
}

static weir_status_t* add_endpoint(weir_etcd_client_t* client, weir_view_t endpoint,
                                   const weir_rpc_tls_t* tls) {
  weir_strbuf_t address = {0};
  if (client->count == MOST_ENDPOINTS)
    return WEIR_STATUS(INVALID_ARGUMENT, "more than %d endpoints", MOST_ENDPOINTS);
  write_address(&address, endpoint);
  weir_status_t* status = weir_strbuf_finish(&address);
  const weir_rpc_channel_options_t options = {.address = address.data,
                                              .tls = *tls,
                                              .max_message_size = MOST_ANSWER,
                                              .backoff_max_ms = LONGEST_BACKOFF_MS};
  if (!status)
    status = weir_rpc_channel_create(client->loop, &options, &client->channels[client->count]);
  if (!status) ++client->count;
  weir_strbuf_free(&address);
  return status;
}

static weir_status_t* add_endpoints(weir_etcd_client_t* client,
                                    const weir_etcd_options_t* options) {
  weir_view_t rest = weir_view_of(options->endpoints), endpoint;
  while (weir_view_next(&rest, ',', &endpoint))
    WEIR_TRY(add_endpoint(client, weir_view_trim(endpoint), &options->tls));
  return client->count ? NULL : WEIR_STATUS(INVALID_ARGUMENT, "no endpoint is given");
}

weir_status_t* weir_etcd_client_create(const weir_etcd_options_t* options,
                                       weir_etcd_client_t** out_client) {
  weir_etcd_client_t* client = weir_calloc(1, sizeof(*client));
  if (!client) return weir_out_of_memory();
  weir_status_t* status = weir_rpc_loop_create(NULL, &client->loop);
  if (!status) status = add_endpoints(client, options);
  if (!status) *out_client = client;
  else weir_etcd_client_destroy(client);
  return status ? weir_status_prefix(status, "etcd at '%s': ", options->endpoints) : NULL;
}

void weir_etcd_client_destroy(weir_etcd_client_t* client) {
  if (!client) return;
  for (int i = 0; i < client->count; ++i) weir_rpc_channel_destroy(client->channels[i]);
  if (client->loop) weir_rpc_loop_destroy(client->loop);
  weir_free(client);
}

// ---- calls ----

// Whether another endpoint may know better: this one is lost, has no quorum, or is no etcd.
static bool is_elsewhere(const weir_status_t* status) {
  switch (weir_status_code(status)) {
    case WEIR_UNAVAILABLE:
    case WEIR_DEADLINE_EXCEEDED:
    case WEIR_INTERNAL:
    case WEIR_UNKNOWN:
    case WEIR_UNIMPLEMENTED: return true;
    default: return false;
  }
}

static weir_status_t* call_one(weir_rpc_channel_t* channel, const char* path, weir_view_t request,
                               int64_t deadline_ns, weir_rpc_buffer_t** out_answer) {
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_rpc_message_append(message, request.data, request.size);
  return weir_rpc_channel_call(channel, path, message,
                               &(weir_rpc_call_options_t){.deadline_ns = deadline_ns}, out_answer);
}

// Those that are left share the time that is left.
static weir_status_t* call_any(weir_etcd_client_t* client, const char* path, weir_view_t request,
                               int64_t deadline_ns, weir_rpc_buffer_t** out_answer) {
  const int first = atomic_load(&client->next);
  weir_status_t* status = NULL;
  for (int i = 0; i < client->count; ++i) {
    const int at = (first + i) % client->count;
    const int64_t now = weir_clock_ns();
    const int64_t share_ns = (deadline_ns - now) / (client->count - i);
    weir_status_destroy(status);
    status = call_one(client->channels[at], path, request, now + share_ns, out_answer);
    if (is_elsewhere(status)) continue;
    atomic_store(&client->next, at);
    return status;
  }
  atomic_store(&client->next, (first + 1) % client->count);
  return status;
}

static weir_status_t* call(weir_etcd_client_t* client, const char* path,
                           weir_strbuf_t* take_request, int64_t deadline_ns,
                           weir_rpc_buffer_t** out_answer) {
  weir_status_t* status = weir_strbuf_finish(take_request);
  if (!status)
    status = call_any(client, path, weir_strbuf_view(take_request), deadline_ns, out_answer);
  weir_strbuf_free(take_request);
  return status ? weir_status_prefix(status, "etcd: ") : NULL;
}

weir_status_t* weir_etcd_get(weir_etcd_client_t* client, int64_t deadline_ns, weir_view_t key,
                             weir_view_t end, weir_etcd_entry_fn_t fn, void* arg) {
  weir_strbuf_t request = {0};
  weir_rpc_buffer_t* answer = NULL;
  weir_etcd_write_range(&request, key, end);
  WEIR_TRY(call(client, "/etcdserverpb.KV/Range", &request, deadline_ns, &answer));
  weir_status_t* status = weir_etcd_read_range(weir_rpc_buffer_view(answer), fn, arg);
  weir_rpc_buffer_release(answer);
  return status;
}

weir_status_t* weir_etcd_put(weir_etcd_client_t* client, int64_t deadline_ns,
                             const weir_etcd_put_t* put) {
  weir_strbuf_t request = {0};
  weir_rpc_buffer_t* answer = NULL;
  weir_etcd_write_put(&request, put);
  WEIR_TRY(call(client, "/etcdserverpb.KV/Put", &request, deadline_ns, &answer));
  weir_rpc_buffer_release(answer);  // that there is one says all
  return NULL;
}

weir_status_t* weir_etcd_put_if(weir_etcd_client_t* client, int64_t deadline_ns,
                                const weir_etcd_put_t* put, int64_t revision, bool* out_is_put) {
  weir_strbuf_t request = {0};
  weir_rpc_buffer_t* answer = NULL;
  weir_etcd_write_put_if(&request, put, revision);
  WEIR_TRY(call(client, "/etcdserverpb.KV/Txn", &request, deadline_ns, &answer));
  weir_status_t* status = weir_etcd_read_put_if(weir_rpc_buffer_view(answer), out_is_put);
  weir_rpc_buffer_release(answer);
  return status;
}

weir_status_t* weir_etcd_grant(weir_etcd_client_t* client, int64_t deadline_ns, int64_t seconds,
                               int64_t* out_lease, int64_t* out_seconds) {
  weir_strbuf_t request = {0};
  weir_rpc_buffer_t* answer = NULL;
  weir_etcd_write_grant(&request, seconds);
  WEIR_TRY(call(client, "/etcdserverpb.Lease/LeaseGrant", &request, deadline_ns, &answer));
  weir_status_t* status =
      weir_etcd_read_grant(weir_rpc_buffer_view(answer), out_lease, out_seconds);
  weir_rpc_buffer_release(answer);
  return status;
}

// A stream of etcd's protocol, of which one question and its answer are a unary call.
weir_status_t* weir_etcd_keep_alive(weir_etcd_client_t* client, int64_t deadline_ns, int64_t lease,
                                    int64_t* out_seconds) {
  weir_strbuf_t request = {0};
  weir_rpc_buffer_t* answer = NULL;
  weir_etcd_write_keep_alive(&request, lease);
  WEIR_TRY(call(client, "/etcdserverpb.Lease/LeaseKeepAlive", &request, deadline_ns, &answer));
  weir_status_t* status =
      weir_etcd_read_keep_alive(weir_rpc_buffer_view(answer), lease, out_seconds);
  weir_rpc_buffer_release(answer);
  return status;
}

weir_status_t* weir_etcd_revoke(weir_etcd_client_t* client, int64_t deadline_ns, int64_t lease) {
  weir_strbuf_t request = {0};
  weir_rpc_buffer_t* answer = NULL;
  weir_etcd_write_revoke(&request, lease);
  WEIR_TRY(call(client, "/etcdserverpb.Lease/LeaseRevoke", &request, deadline_ns, &answer));
  weir_rpc_buffer_release(answer);
  return NULL;
}
