// ucx_internal.h — What the files of the UCX transport share: ucx.c, its life and its thread;
// ucx_receive.c, offers and what arrives; ucx_send.c, peers and what is sent to them.
#ifndef WEIR_CLUSTER_TASK_UCX_INTERNAL_H_
#define WEIR_CLUSTER_TASK_UCX_INTERNAL_H_

#include "base/alloc.h"
#include "base/map.h"
#include "base/thread.h"
#include "cluster/task/task.h"
#include "cluster/task/ucx.h"
#include "cluster/task/ucx_api.h"

#define UCX_URL "weir/ucx"
#define UCX_TOKEN_SIZE 16
#define UCX_MESSAGE_ID 1  // of our active messages

enum {
  OFFER_TASK = 1,  // fields of an offer
  OFFER_INSTANCE = 2,
  OFFER_TOKEN = 3,
  HEADER_TOKEN = 1,  // of what stands before a tensor's elements
  HEADER_DTYPE = 2,
  HEADER_DIM = 3,
  ADDRESS_INSTANCE = 1,  // of the answer to WEIR_UCX_ADDRESS_PATH
  ADDRESS_BYTES = 2,
  ADDRESS_VERSION = 3,
};

// Work for the thread, embedded in what it is about.
typedef struct ucx_job_t ucx_job_t;
struct ucx_job_t {
  ucx_job_t* next;
  void (*run)(weir_ucx_t* ucx, ucx_job_t* job);
};

typedef struct ucx_arrival_t ucx_arrival_t;    // ucx_receive.c
typedef struct ucx_endpoint_t ucx_endpoint_t;  // ucx_send.c
typedef struct ucx_send_t ucx_send_t;

struct weir_ucx_t {
  weir_transport_t base;
  weir_task_t* task;
  const ucx_api_t* api;
  uint64_t instance;
  bool is_local;
  char version[16];  // "1.13": peers have the same
  pthread_t thread;
  int wake_fd;  // an eventfd: there is something for the thread
  // Of the thread; |address| is immutable once it runs.
  ucp_context_t* context;
  ucp_worker_t* worker;
  void* address;
  size_t address_size, max_header_size;
  int event_fd;               // of UCX, when something has happened there; -1: it has none
  int pause_ms;               // without it: to the next look
  ucx_arrival_t* arriving;    // that UCX writes to
  ucx_send_t* sends;          // not sent yet
  ucx_endpoint_t* endpoints;  // not closed yet
  weir_mutex_t mu;
  weir_cond_t cond;             // |has_started| changed
  bool has_started;             // guarded by mu
  weir_status_t* failure;       // guarded by mu; why it did not start
  bool is_ending;               // guarded by mu
  bool must_look;               // guarded by mu; somebody has given up, or gone
  ucx_job_t *jobs, **last_job;  // guarded by mu
  weir_map_t offers;            // guarded by mu; token → ucx_arrival_t
  weir_map_t peers;             // guarded by mu; name of a task → ucx_peer_t
  atomic_llong tensors_received, bytes_received, tensors_sent, bytes_sent;
  atomic_int sends_open;
};

// ---- ucx.c ----
void weir_ucx_queue(weir_ucx_t* ucx, ucx_job_t* job);
// Has the thread look at who has given up waiting.
void weir_ucx_look_soon(weir_ucx_t* ucx);

// ---- ucx_receive.c ----
void* weir_ucx_offer(weir_transport_t* base, const void* peer, weir_strbuf_t* request);
void weir_ucx_withdraw(weir_transport_t* base, void* take_offer);
void weir_ucx_collect(weir_transport_t* base, void* offer, weir_collected_fn_t done, void* arg);
void weir_ucx_cancel(weir_transport_t* base, void* offer);
// Of the thread: a message has come; ends waits that have been cancelled or take too long, or all
// of them; forgets what UCX wrote to, once it does not any more.
ucs_status_t weir_ucx_receive(void* arg, const void* header, size_t header_size, void* data,
                              size_t size, const ucp_message_t* message);
void weir_ucx_look_at_offers(weir_ucx_t* ucx, bool is_end);
void weir_ucx_forget_arrivals(weir_ucx_t* ucx);

// ---- ucx_send.c ----
bool weir_ucx_pass(weir_transport_t* base, const weir_passing_t* passing);
// Of the thread, like those of what arrives; and whether anything is still to be sent or closed.
void weir_ucx_look_at_sends(weir_ucx_t* ucx, bool is_end);
bool weir_ucx_has_sends(const weir_ucx_t* ucx);
void weir_ucx_forget_sends(weir_ucx_t* ucx);

#endif  // WEIR_CLUSTER_TASK_UCX_INTERNAL_H_
