// channel.c — How a client gets its connection: resolving, connecting, backing off, draining,
// moving to where the peer is now.
#include "rpc/channel.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/philox.h"
#include "rpc/server.h"

#define NS_OF_MS ((int64_t)1000000)

static void try_target(weir_rpc_channel_t* channel);

void weir_rpc_channel_count(weir_rpc_channel_t* channel, int change) {
  weir_mutex_lock(&channel->mu);
  channel->pending += change;
  if (channel->pending == 0) weir_cond_broadcast(&channel->cond);
  weir_mutex_unlock(&channel->mu);
}

// ---- failed attempts ----
static void fail_impatient(weir_rpc_channel_t* channel) {
  weir_rpc_request_t* next = NULL;
  for (weir_rpc_request_t* request = channel->queue; request; request = next) {
    next = request->next;
    if (!request->wait_for_ready)
      weir_rpc_request_finish(request, weir_status_copy(channel->last_error), NULL);
  }
}

static void attempt_failed(weir_rpc_channel_t* channel, weir_status_t* take_status) {
  weir_status_destroy(channel->last_error);
  channel->last_error = WEIR_STATUS(UNAVAILABLE, "cannot connect to %s: %s", channel->text,
                                    weir_status_message(take_status));
  weir_status_destroy(take_status);
  channel->conn = NULL;
  weir_rpc_timer_clear(channel->thread, &channel->connect_timer);
  channel->state = WEIR_RPC_CHANNEL_BACKOFF;
  // A fifth more or less, so that the clients of a server that comes back do not come all at once.
  double spread = 0.8 + 0.4 * (double)(weir_random_entropy() >> 11) / 9007199254740992.0;
  int64_t wait_ns = (int64_t)((double)channel->backoff_ns * spread);
  channel->backoff_ns =
      WEIR_MIN((int64_t)((double)channel->backoff_ns * 1.6), channel->backoff_max_ns);
  if (!weir_rpc_timer_set(channel->thread, &channel->backoff_timer, weir_clock_ns() + wait_ns))
    channel->state = WEIR_RPC_CHANNEL_IDLE;  // without memory for a timer the next call tries
  fail_impatient(channel);
}

static void backoff_over(weir_rpc_timer_t* timer) {
  weir_rpc_channel_t* channel =
      (weir_rpc_channel_t*)((char*)timer - offsetof(weir_rpc_channel_t, backoff_timer));
  channel->state = WEIR_RPC_CHANNEL_IDLE;
  if (channel->queue) weir_rpc_channel_start(channel);
}

static void connect_timed_out(weir_rpc_timer_t* timer) {
  weir_rpc_channel_t* channel =
      (weir_rpc_channel_t*)((char*)timer - offsetof(weir_rpc_channel_t, connect_timer));
  if (channel->conn) weir_rpc_conn_close(channel->conn, WEIR_STATUS(UNAVAILABLE, "timed out"));
}

// ---- the connection's side ----
static bool conn_refuses(weir_rpc_stream_t* stream) {
  (void)stream;
  return false;  // servers open no streams
}

static void conn_headers_ended(weir_rpc_stream_t* stream) { (void)stream; }

static void conn_is_ready(weir_rpc_conn_t* conn) {
  weir_rpc_channel_t* channel = conn->owner;
  if (channel->conn != conn) return;
  weir_rpc_timer_clear(channel->thread, &channel->connect_timer);
  channel->state = WEIR_RPC_CHANNEL_READY;
  channel->backoff_ns = channel->backoff_min_ns;
  while (channel->queue && channel->state == WEIR_RPC_CHANNEL_READY)
    weir_rpc_request_send(channel->queue);
}

static void conn_is_going_away(weir_rpc_conn_t* conn) {
  weir_rpc_channel_t* channel = conn->owner;
  if (channel->conn != conn) return;
  if (channel->state == WEIR_RPC_CHANNEL_CONNECTING) {
    weir_rpc_conn_fault(conn, WEIR_STATUS(UNAVAILABLE, "the peer refuses connections"));
    return;
  }
  channel->conn = NULL;  // it finishes what it has; the next call makes another
  channel->state = WEIR_RPC_CHANNEL_IDLE;
  weir_rpc_conn_flush_later(conn);
}

static void conn_is_lost(weir_rpc_conn_t* conn, const weir_status_t* reason) {
  weir_rpc_channel_t* channel = conn->owner;
  if (conn->next) conn->next->prev = conn->prev;
  if (conn->prev) conn->prev->next = conn->next;
  else channel->conns = conn->next;
  if (channel->conn != conn) return;
  channel->conn = NULL;
  if (channel->is_closing) return;
  if (channel->state != WEIR_RPC_CHANNEL_CONNECTING) {
    channel->state = WEIR_RPC_CHANNEL_IDLE;
    if (channel->queue) weir_rpc_channel_start(channel);
  } else if (channel->target_next < channel->target_count) {
    try_target(channel);
  } else {
    attempt_failed(channel, weir_status_copy(reason));
  }
}

static const weir_rpc_role_t channel_role = {
    .opened = conn_refuses,
    .header = weir_rpc_request_header,
    .headers_ended = conn_headers_ended,
    .ended = weir_rpc_request_ended,
    .failed = weir_rpc_request_failed,
    .closed = weir_rpc_request_closed,
    .ready = conn_is_ready,
    .going_away = conn_is_going_away,
    .lost = conn_is_lost,
};

// ---- attempts ----
static weir_status_t* open_conn(weir_rpc_channel_t* channel, int take_fd, bool is_connecting) {
  weir_rpc_conn_options_t options = {.thread = channel->thread,
                                     .role = &channel_role,
                                     .owner = channel,
                                     .is_connecting = is_connecting,
                                     .tls = channel->tls,
                                     .server_name = channel->server_name,
                                     .keepalive_ms = channel->keepalive_ms,
                                     .max_message_size = channel->max_message_size};
  weir_rpc_conn_t* conn = NULL;
  WEIR_TRY(weir_rpc_conn_create(&options, take_fd, &conn));
  snprintf(conn->peer, sizeof(conn->peer), "%.*s", (int)sizeof(conn->peer) - 1, channel->text);
  conn->next = channel->conns;
  if (channel->conns) channel->conns->prev = conn;
  channel->conns = conn;
  channel->conn = conn;
  if (!weir_rpc_timer_set(channel->thread, &channel->connect_timer,
                          weir_clock_ns() + channel->connect_timeout_ns))
    weir_rpc_conn_fault(conn, weir_out_of_memory());
  return NULL;
}

static void try_target(weir_rpc_channel_t* channel) {
  weir_status_t* status = NULL;
  while (channel->target_next < channel->target_count) {
    weir_status_destroy(status);
    int fd = -1;
    status = weir_rpc_connect(&channel->targets[channel->target_next++], &fd);
    if (!status) status = open_conn(channel, fd, true);
    if (!status) return;
  }
  attempt_failed(channel, status ? status : WEIR_STATUS(UNAVAILABLE, "the host has no address"));
}

static void connect_in_process(weir_rpc_channel_t* channel) {
  int fds[2];
  channel->target_next = channel->target_count = 0;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) {
    attempt_failed(channel, WEIR_STATUS(UNAVAILABLE, "socketpair: %s", strerror(errno)));
    return;
  }
  weir_rpc_server_adopt(channel->server, fds[0]);
  weir_status_t* status = open_conn(channel, fds[1], false);
  if (status) attempt_failed(channel, status);
}

// A name is looked up on a thread of its own, since the system's resolver may block for long.
struct weir_rpc_resolver_t {
  weir_rpc_task_t task;
  weir_rpc_channel_t* channel;
  weir_rpc_address_t address;  // the channel's, when it was |moves| old
  int moves;
  pthread_t thread;
  weir_status_t* status;
  weir_rpc_target_t targets[WEIR_RPC_MAX_TARGETS];
  int count;
};

static void resolved(weir_rpc_task_t* task) {
  weir_rpc_resolver_t* resolver = (weir_rpc_resolver_t*)task;
  weir_rpc_channel_t* channel = resolver->channel;
  pthread_join(resolver->thread, NULL);
  channel->target_next = 0;
  channel->target_count = resolver->count;
  memcpy(channel->targets, resolver->targets, sizeof(channel->targets));
  weir_status_t* status = resolver->status;
  const bool is_old = resolver->moves != channel->moves;
  weir_free(resolver);
  if (channel->is_closing || is_old) {
    weir_status_destroy(status);
    if (!channel->is_closing) weir_rpc_channel_start(channel);
  } else if (status) {
    attempt_failed(channel, status);
  } else {
    try_target(channel);
  }
  weir_rpc_channel_count(channel, -1);
}

static void* resolver_main(void* arg) {
  weir_rpc_resolver_t* resolver = arg;
  resolver->status =
      weir_rpc_address_resolve(&resolver->address, true, resolver->targets, &resolver->count);
  weir_rpc_post(resolver->channel->thread, &resolver->task);
  return NULL;
}

static void start_resolver(weir_rpc_channel_t* channel) {
  weir_rpc_resolver_t* resolver = weir_calloc(1, sizeof(*resolver));
  if (!resolver) {
    attempt_failed(channel, weir_out_of_memory());
    return;
  }
  resolver->task.run = resolved;
  resolver->channel = channel;
  resolver->address = channel->address;
  resolver->moves = channel->moves;
  weir_rpc_channel_count(channel, 1);
  int error = pthread_create(&resolver->thread, NULL, resolver_main, resolver);
  if (!error) return;
  weir_free(resolver);
  weir_rpc_channel_count(channel, -1);
  attempt_failed(channel,
                 WEIR_STATUS(RESOURCE_EXHAUSTED, "cannot start a thread: %s", strerror(error)));
}

void weir_rpc_channel_start(weir_rpc_channel_t* channel) {
  channel->state = WEIR_RPC_CHANNEL_CONNECTING;
  if (channel->server) {
    connect_in_process(channel);
    return;
  }
  if (!channel->has_address) {
    attempt_failed(channel, WEIR_STATUS(UNAVAILABLE, "nobody has told it yet"));
    return;
  }
  channel->target_next = 0;
  weir_status_t* status =
      weir_rpc_address_resolve(&channel->address, false, channel->targets, &channel->target_count);
  if (status) attempt_failed(channel, status);
  else if (channel->target_count) try_target(channel);
  else start_resolver(channel);
}

// ---- names ----
static void set_names(weir_rpc_channel_t* channel, const char* server_name) {
  const weir_rpc_address_t* address = &channel->address;
  const char* host = address->is_unix || channel->server ? "localhost" : address->host;
  snprintf(channel->server_name, sizeof(channel->server_name), "%s",
           server_name ? server_name : host);
  if (address->is_unix || channel->server)
    snprintf(channel->text, sizeof(channel->text), "localhost");
  else if (!channel->has_address)
    snprintf(channel->text, sizeof(channel->text), "an unknown address");
  else
    snprintf(channel->text, sizeof(channel->text), strchr(host, ':') ? "[%s]:%s" : "%s:%s", host,
             address->port);
}

// ---- moving ----
typedef struct move_t {
  weir_rpc_channel_t* channel;
  weir_rpc_address_t address;
} move_t;

// Leaves what there is of a connection to the address before, or of the wait for one. A resolver
// that is under way finds out by itself.
static void leave_address(weir_rpc_channel_t* channel) {
  weir_rpc_conn_t* conn = channel->conn;
  channel->conn = NULL;
  if (conn || channel->state == WEIR_RPC_CHANNEL_BACKOFF) channel->state = WEIR_RPC_CHANNEL_IDLE;
  weir_rpc_timer_clear(channel->thread, &channel->connect_timer);
  weir_rpc_timer_clear(channel->thread, &channel->backoff_timer);
  channel->backoff_ns = channel->backoff_min_ns;
  if (conn)
    weir_rpc_conn_close(conn, WEIR_STATUS(UNAVAILABLE, "the peer has moved to %s", channel->text));
}

static void move_channel(void* arg) {
  move_t* move = arg;
  weir_rpc_channel_t* channel = move->channel;
  char name[sizeof(channel->server_name)];
  memcpy(name, channel->server_name, sizeof(name));
  channel->address = move->address;
  channel->has_address = true;
  ++channel->moves;
  set_names(channel, channel->is_named ? name : NULL);
  leave_address(channel);
  if (channel->queue && channel->state == WEIR_RPC_CHANNEL_IDLE) weir_rpc_channel_start(channel);
}

weir_status_t* weir_rpc_channel_move(weir_rpc_channel_t* channel, const char* address) {
  move_t move = {.channel = channel};
  WEIR_TRY(weir_rpc_address_parse(address, &move.address));
  if (move.address.is_tls && !channel->tls)
    return WEIR_STATUS(INVALID_ARGUMENT, "'%s' asks for TLS, which its channel does not use",
                       address);
  weir_rpc_run_on(channel->thread, move_channel, &move);
  return NULL;
}

// ---- life ----
static int64_t or_default(int ms, int64_t default_ms) {
  return (ms > 0 ? ms : default_ms) * NS_OF_MS;
}

weir_status_t* weir_rpc_channel_create(weir_rpc_loop_t* loop,
                                       const weir_rpc_channel_options_t* options,
                                       weir_rpc_channel_t** out_channel) {
  weir_rpc_channel_t* channel = weir_calloc(1, sizeof(*channel));
  if (!channel) return weir_out_of_memory();
  weir_status_t* status = NULL;
  weir_mutex_init(&channel->mu);
  weir_cond_init(&channel->cond);
  channel->thread = weir_rpc_loop_pick_thread(loop);
  channel->server = options->server;
  channel->keepalive_ms = options->keepalive_ms;
  channel->max_message_size = options->max_message_size;
  channel->connect_timeout_ns = or_default(options->connect_timeout_ms, 20000);
  channel->backoff_min_ns = or_default(options->backoff_min_ms, 20);
  channel->backoff_max_ns = or_default(options->backoff_max_ms, 5000);
  channel->backoff_ns = channel->backoff_min_ns;
  channel->connect_timer.fire = connect_timed_out;
  channel->backoff_timer.fire = backoff_over;
  channel->has_address = options->address && !channel->server;
  channel->is_named = options->tls.server_name != NULL;
  if (channel->has_address) status = weir_rpc_address_parse(options->address, &channel->address);
  if (status) goto done;
  set_names(channel, options->tls.server_name);
  if (options->tls.is_enabled || channel->address.is_tls)
    status = weir_rpc_tls_context_create(&options->tls, false, &channel->tls);
  channel->token = weir_rpc_token_retain(options->token);
  if (status) goto done;
  *out_channel = channel;
  channel = NULL;
done:
  weir_rpc_channel_destroy(channel);
  return status;
}

static void close_channel(void* arg) {
  weir_rpc_channel_t* channel = arg;
  channel->is_closing = true;
  weir_rpc_timer_clear(channel->thread, &channel->connect_timer);
  weir_rpc_timer_clear(channel->thread, &channel->backoff_timer);
  while (channel->queue) {
    weir_rpc_request_finish(channel->queue, WEIR_STATUS(CANCELLED, "the channel is closed"), NULL);
  }
  while (channel->conns) {
    weir_rpc_conn_t* conn = channel->conns;
    for (weir_rpc_stream_t* stream = conn->streams; stream; stream = stream->next) {
      if (!stream->owner) continue;
      weir_rpc_request_finish(stream->owner, WEIR_STATUS(CANCELLED, "the channel is closed"), NULL);
    }
    weir_rpc_conn_close(conn, WEIR_STATUS(CANCELLED, "the channel is closed"));
  }
}

void weir_rpc_channel_destroy(weir_rpc_channel_t* channel) {
  if (!channel) return;
  weir_rpc_run_on(channel->thread, close_channel, channel);
  weir_mutex_lock(&channel->mu);
  while (channel->pending > 0) weir_cond_wait(&channel->cond, &channel->mu);
  weir_mutex_unlock(&channel->mu);
  weir_rpc_tls_context_destroy(channel->tls);
  weir_rpc_token_release(channel->token);
  weir_status_destroy(channel->last_error);
  weir_cond_destroy(&channel->cond);
  weir_mutex_destroy(&channel->mu);
  weir_free(channel);
}
