// step.c — The steps a task takes part in: what is sent here waits here, what others send is
// fetched from them.
#include <stdio.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cluster/task/fields.h"
#include "cluster/task/task.h"
#include "cluster/task/tensor_message.h"
#include "wire/wire.h"

// Steps that others ask about before they start here. More is not haste, but an attack or an error.
enum { UNKNOWN_STEP_LIMIT = 10000 };

#define RECV_TENSOR "/tensorflow.WorkerService/RecvTensor"
#define MARK_RECV_FINISHED "/tensorflow.WorkerService/MarkRecvFinished"

typedef struct fetch_t fetch_t;

typedef struct step_t {
  weir_rendezvous_t base;
  weir_task_t* task;
  int64_t id;
  weir_rendezvous_t* local;
  weir_alias_t* alias;  // retained; NULL: the task's own name
  bool is_known;        // guarded by task->mu; run here, not only asked about
  int waiting;          // guarded by task->mu; receivers from other tasks
  weir_mutex_t mu;
  fetch_t* fetches;        // guarded by mu; on their way from other tasks
  weir_status_t* aborted;  // guarded by mu
} step_t;

// A tensor on its way from another task. Two hold it: who asked, until it has the request's handle,
// and the answer.
struct fetch_t {
  weir_ref_t ref;
  step_t* step;  // retained
  fetch_t *next, **place;
  weir_rpc_channel_t* channel;
  int64_t request_id;
  char* key;                           // where transfers are noted; NULL otherwise
  int64_t start_us;                    // of weir_wall_clock_us; with |key|
  void* offers[WEIR_TRANSPORT_LIMIT];  // one a transport of the task; NULL: none was made
  weir_transport_t* passed_by;         // the one that collects the tensor; NULL: it comes as bytes
  bool is_again;                    // that failed: the second request, for the bytes, is on its way
  weir_rpc_request_t* requests[2];  // guarded by step->mu; the second when |is_again|
  bool is_cancelled;                // guarded by step->mu; before there was a request to cancel
  weir_cancel_t* cancel;
  weir_cancel_token_t token;
  weir_recv_done_fn_t done;
  void* arg;
};

static step_t* step_of(weir_rendezvous_t* base) { return (step_t*)base; }

// ---- fetching from another task ----

static void fetch_unref(fetch_t* fetch) {
  if (!weir_ref_dec(&fetch->ref)) return;
  for (int i = 0; i < 2; ++i) weir_rpc_request_release(fetch->requests[i]);
  weir_rendezvous_release(&fetch->step->base);
  weir_free(fetch->key);
  weir_free(fetch);
}

// The offer that |transport| has made.
static void** offer_of(fetch_t* fetch, const weir_transport_t* transport) {
  weir_task_t* task = fetch->step->task;
  int i = 0;
  while (task->transports[i] != transport) ++i;
  return &fetch->offers[i];
}

// With step->mu, under which offers are taken back.
static void fetch_cancel_collect(fetch_t* fetch) {
  weir_transport_t* transport = fetch->passed_by;
  if (transport && transport->vtable->cancel && *offer_of(fetch, transport))
    transport->vtable->cancel(transport, *offer_of(fetch, transport));
}

static void fetch_cancel(void* arg) {
  fetch_t* fetch = arg;
  weir_mutex_lock(&fetch->step->mu);
  fetch->is_cancelled = true;
  weir_rpc_request_t* requests[2] = {fetch->requests[0], fetch->requests[1]};
  fetch_cancel_collect(fetch);
  weir_mutex_unlock(&fetch->step->mu);
  for (int i = 0; i < 2; ++i) {
    if (requests[i]) weir_rpc_request_cancel(requests[i]);
  }
}

static void fetch_unlink(fetch_t* fetch) {
  weir_mutex_lock(&fetch->step->mu);
  if (fetch->place) {
    *fetch->place = fetch->next;
    if (fetch->next) fetch->next->place = fetch->place;
    fetch->place = NULL;
  }
  weir_mutex_unlock(&fetch->step->mu);
}

// The transport by which, as |options| of a response say, the tensor was passed. NULL: by none that
// made an offer.
static weir_transport_t* find_passed(const fetch_t* fetch, weir_view_t options) {
  const weir_task_t* task = fetch->step->task;
  for (int i = 0; i < task->transport_count && !fetch->is_again; ++i) {
    weir_transport_t* transport = task->transports[i];
    if (fetch->offers[i] && weir_transport_value(options, transport->vtable->url).size > 0)
      return transport;
  }
  return NULL;
}

// Reads a RecvTensorResponse. |out_passed_by|: what is to collect the tensor; NULL: it is there.
static weir_status_t* parse_response(const fetch_t* fetch, weir_rpc_buffer_t* buffer,
                                     weir_tensor_t** out_tensor, bool* out_is_dead,
                                     weir_transport_t** out_passed_by) {
  weir_wire_reader_t reader = weir_wire_reader(weir_rpc_buffer_view(buffer));
  weir_view_t proto = {.data = NULL}, options = weir_view("", 0);
  *out_is_dead = false;
  while (weir_wire_next(&reader)) {
    if (reader.field == RECV_TENSOR_RESPONSE_TENSOR && reader.type == WEIR_WIRE_BYTES)
      proto = reader.bytes;
    if (reader.field == RECV_TENSOR_RESPONSE_IS_DEAD && reader.type == WEIR_WIRE_VARINT)
      *out_is_dead = weir_wire_bool(&reader);
    if (reader.field == RECV_TENSOR_RESPONSE_TRANSPORT_OPTIONS && reader.type == WEIR_WIRE_BYTES)
      options = reader.bytes;
  }
  WEIR_TRY(weir_wire_check(&reader, "RecvTensorResponse"));
  if (*out_is_dead) return NULL;
  if (proto.data) return weir_message_get_tensor(buffer, proto, out_tensor);
  *out_passed_by = find_passed(fetch, options);
  if (*out_passed_by) return NULL;
  return WEIR_STATUS(INTERNAL, "a RecvTensorResponse has no tensor");
}

static void note_transfer(const fetch_t* fetch, const weir_tensor_t* tensor) {
  weir_transfer_t transfer = {.step_id = fetch->step->id,
                              .key = weir_view_of(fetch->key),
                              .start_us = fetch->start_us,
                              .end_us = weir_wall_clock_us(),
                              .byte_size = weir_tensor_byte_size(tensor)};
  weir_transfer_log_add(&fetch->step->task->transfers, &transfer);
}

static void fetch_withdraw(fetch_t* fetch) {
  weir_task_t* task = fetch->step->task;
  void* offers[WEIR_TRANSPORT_LIMIT];
  weir_mutex_lock(&fetch->step->mu);
  memcpy(offers, fetch->offers, sizeof(offers));
  memset(fetch->offers, 0, sizeof(fetch->offers));
  weir_mutex_unlock(&fetch->step->mu);
  for (int i = 0; i < task->transport_count; ++i) {
    weir_transport_t* transport = task->transports[i];
    if (offers[i]) transport->vtable->withdraw(transport, offers[i]);
  }
}

// Ends the fetch, and hands over what came of it.
static void fetch_finish(fetch_t* take_fetch, weir_status_t* take_status,
                         weir_tensor_t* take_tensor, bool is_dead) {
  fetch_t* fetch = take_fetch;
  weir_status_t* status = take_status;
  if (fetch->token) weir_cancel_deregister(fetch->cancel, fetch->token);
  fetch_withdraw(fetch);
  if (fetch->key && take_tensor) note_transfer(fetch, take_tensor);
  fetch_unlink(fetch);
  weir_mutex_lock(&fetch->step->mu);
  if (status && fetch->step->aborted) {  // the reason, not its consequence
    weir_status_destroy(status);
    status = weir_status_copy(fetch->step->aborted);
  }
  weir_mutex_unlock(&fetch->step->mu);
  weir_recv_done_fn_t done = fetch->done;
  void* arg = fetch->arg;
  fetch_unref(fetch);
  done(arg, status, take_tensor, is_dead);
}

static void count_received(fetch_t* fetch, size_t size) {
  atomic_fetch_add_explicit(&fetch->step->task->bytes_received, (long long)size,
                            memory_order_relaxed);  // a statistic
}

static void fetch_collected(void* arg, weir_status_t* take_status, weir_tensor_t* take_tensor);

// Has |transport| get the tensor that it was told was passed.
static void fetch_collect(fetch_t* fetch, weir_transport_t* transport) {
  void* offer = *offer_of(fetch, transport);
  weir_mutex_lock(&fetch->step->mu);
  fetch->passed_by = transport;
  if (fetch->is_cancelled) fetch_cancel_collect(fetch);
  weir_mutex_unlock(&fetch->step->mu);
  transport->vtable->collect(transport, offer, fetch_collected, fetch);
}

// The bytes came that were asked for again.
static void fetch_refuse(fetch_t* fetch) {
  weir_transport_t* transport = fetch->passed_by;
  if (transport->vtable->refuse) transport->vtable->refuse(transport, fetch->channel);
}

static void fetch_done(void* self, weir_status_t* take_status, weir_rpc_buffer_t* take_message) {
  fetch_t* fetch = self;
  weir_tensor_t* tensor = NULL;
  weir_transport_t* passed_by = NULL;
  bool is_dead = false;
  weir_status_t* status = take_status;
  if (!status) {
    count_received(fetch, weir_rpc_buffer_view(take_message).size);
    status = parse_response(fetch, take_message, &tensor, &is_dead, &passed_by);
  }
  weir_rpc_buffer_release(take_message);
  if (passed_by) {
    fetch_collect(fetch, passed_by);
    return;
  }
  if (!status && fetch->is_again) fetch_refuse(fetch);
  fetch_finish(fetch, status, tensor, is_dead);
}

// Sends the first or the second request. Consumes one reference of two, the answer has the other.
static void fetch_ask(fetch_t* take_fetch, weir_strbuf_t* take_request) {
  fetch_t* fetch = take_fetch;
  step_t* step = fetch->step;
  int turn = fetch->is_again ? 1 : 0;
  weir_rpc_request_t* request = NULL;
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_rpc_message_append_strbuf(message, take_request);
  weir_rpc_channel_call_async(fetch->channel, RECV_TENSOR, message, NULL, fetch_done, fetch,
                              &request);
  weir_mutex_lock(&step->mu);
  fetch->requests[turn] = request;
  bool is_cancelled = fetch->is_cancelled;
  weir_mutex_unlock(&step->mu);
  if (is_cancelled) weir_rpc_request_cancel(request);
  fetch_unref(fetch);
}

static weir_strbuf_t recv_request(fetch_t* fetch, weir_view_t key) {
  weir_task_t* task = fetch->step->task;
  weir_strbuf_t request = {0};
  fetch->request_id = (int64_t)(weir_task_random() >> 1);
  weir_wire_put_int(&request, RECV_TENSOR_REQUEST_STEP_ID, fetch->step->id);
  weir_wire_put_bytes(&request, RECV_TENSOR_REQUEST_RENDEZVOUS_KEY, key.data, key.size);
  // Not to tasks that only a client says are of the cluster: they may be anyone.
  for (int i = 0; i < task->transport_count && !fetch->step->alias; ++i) {
    weir_transport_t* transport = task->transports[i];
    fetch->offers[i] = transport->vtable->offer(transport, fetch->channel, &request);
  }
  weir_wire_put_int(&request, RECV_TENSOR_REQUEST_REQUEST_ID, fetch->request_id);
  return request;
}

// The tensor could not be collected: asks for its bytes.
static void fetch_again(fetch_t* fetch) {
  weir_strbuf_t request = {0};
  weir_wire_put_int(&request, RECV_TENSOR_REQUEST_STEP_ID, fetch->step->id);
  fetch->passed_by->vtable->ask_again(fetch->request_id, &request);
  weir_wire_put_int(&request, RECV_TENSOR_REQUEST_REQUEST_ID, (int64_t)(weir_task_random() >> 1));
  fetch->is_again = true;
  weir_ref_inc(&fetch->ref, 1);
  fetch_ask(fetch, &request);
}

static void ignore_done(void* self, weir_status_t* take_status, weir_rpc_buffer_t* take_message) {
  (void)self;
  weir_status_destroy(take_status);  // the producer lets go in the end, with step or connection
  weir_rpc_buffer_release(take_message);
}

// The producer need not hold the tensor any longer.
static void acknowledge(const fetch_t* fetch) {
  weir_strbuf_t request = {0};
  weir_wire_put_int(&request, MARK_RECV_FINISHED_REQUEST_REQUEST_ID, fetch->request_id);
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_rpc_message_append_strbuf(message, &request);
  weir_rpc_channel_call_async(fetch->channel, MARK_RECV_FINISHED, message, NULL, ignore_done, NULL,
                              NULL);
}

static void fetch_collected(void* arg, weir_status_t* take_status, weir_tensor_t* take_tensor) {
  fetch_t* fetch = arg;
  bool is_held = fetch->passed_by->vtable->ask_again != NULL;
  weir_code_t code = weir_status_code(take_status);
  if (take_status && is_held && code != WEIR_RESOURCE_EXHAUSTED) {  // the bytes need as much memory
    WEIR_LOG(INFO, "a tensor is fetched by socket: %s", weir_status_message(take_status));
    weir_status_destroy(take_status);
    fetch_again(fetch);
    return;
  }
  if (take_tensor) count_received(fetch, weir_tensor_byte_size(take_tensor));
  if (take_tensor && is_held) acknowledge(fetch);
  fetch_finish(fetch, take_status, take_tensor, false);
}

// Puts the fetch where an abort finds it. The abort's status when that has happened already.
static weir_status_t* fetch_link(step_t* step, fetch_t* fetch) {
  weir_mutex_lock(&step->mu);
  weir_status_t* status = weir_status_copy(step->aborted);
  if (!status) {
    fetch->next = step->fetches;
    fetch->place = &step->fetches;
    if (fetch->next) fetch->next->place = &fetch->next;
    step->fetches = fetch;
  }
  weir_mutex_unlock(&step->mu);
  return status;
}

// Lets a cancellation find the fetch. One that comes after this, and before there is a request, is
// seen by fetch_ask; one that came before is the status.
static weir_status_t* fetch_register(fetch_t* fetch, weir_view_t key) {
  fetch->token = weir_cancel_register(fetch->cancel, fetch_cancel, fetch);
  if (fetch->token || !fetch->cancel) return NULL;
  if (!weir_cancel_is_cancelled(fetch->cancel)) return weir_out_of_memory();
  return WEIR_STATUS(CANCELLED, "the step was cancelled before it received '%.*s'",
                     WEIR_VIEW_ARG(key));
}

static void fetch_remote(step_t* step, weir_view_t source, weir_view_t key, weir_cancel_t* cancel,
                         weir_recv_done_fn_t done, void* arg) {
  weir_rpc_channel_t* channel = NULL;
  weir_status_t* status = weir_task_channel(step->task, step->alias, source, &channel);
  fetch_t* fetch = status ? NULL : weir_calloc(1, sizeof(*fetch));
  if (!status && !fetch) status = weir_out_of_memory();
  if (fetch) {
    atomic_init(&fetch->ref, 2);
    fetch->step = (step_t*)weir_rendezvous_retain(&step->base);
    fetch->done = done;
    fetch->arg = arg;
    fetch->cancel = cancel;
    status = fetch_link(step, fetch);
  }
  if (!status) status = fetch_register(fetch, key);
  if (status) {
    if (fetch) fetch_unlink(fetch);
    if (fetch) weir_ref_dec(&fetch->ref);
    if (fetch) fetch_unref(fetch);
    done(arg, status, NULL, false);
    return;
  }
  fetch->channel = channel;
  if (weir_transfer_log_is_on(&step->task->transfers)) {
    fetch->key = weir_strndup(key.data, key.size);  // without memory for it nothing is noted
    fetch->start_us = weir_wall_clock_us();
  }
  weir_strbuf_t request = recv_request(fetch, key);
  fetch_ask(fetch, &request);
}

// ---- the rendezvous ----

static weir_status_t* step_send(weir_rendezvous_t* base, weir_view_t key, weir_tensor_t* tensor,
                                bool is_dead) {
  step_t* step = step_of(base);
  return step->local->vtable->send(step->local, key, tensor, is_dead);
}

// Whether |device| is of the task |name|.
static bool is_of_task(weir_view_t device, const char* name) {
  size_t size = strlen(name);
  return weir_view_starts_with(device, name) && (device.size == size || device.data[size] == '/');
}

static void step_recv(weir_rendezvous_t* base, weir_view_t key, weir_cancel_t* cancel,
                      weir_recv_done_fn_t done, void* arg) {
  step_t* step = step_of(base);
  weir_view_t rest = key, source;
  bool has_source = weir_view_next(&rest, ';', &source) && source.size > 0;
  if (!has_source || is_of_task(source, step->alias ? step->alias->task : step->task->name))
    step->local->vtable->recv_async(step->local, key, cancel, done, arg);
  else fetch_remote(step, source, key, cancel, done, arg);
}

static void step_abort(weir_rendezvous_t* base, const weir_status_t* status) {
  step_t* step = step_of(base);
  weir_rendezvous_retain(base);
  step->local->vtable->abort(step->local, status);
  weir_mutex_lock(&step->mu);
  if (!step->aborted) step->aborted = weir_status_copy(status);
  while (step->fetches) {
    fetch_t* fetch = step->fetches;
    step->fetches = fetch->next;
    if (fetch->next) fetch->next->place = &step->fetches;
    fetch->place = NULL;
    weir_ref_inc(&fetch->ref, 1);
    weir_mutex_unlock(&step->mu);
    fetch_cancel(fetch);
    fetch_unref(fetch);
    weir_mutex_lock(&step->mu);
  }
  weir_mutex_unlock(&step->mu);
  weir_rendezvous_release(base);
}

static void step_destroy(weir_rendezvous_t* base) {
  step_t* step = step_of(base);
  weir_rendezvous_release(step->local);
  weir_alias_release(step->alias);
  weir_status_destroy(step->aborted);
  weir_mutex_destroy(&step->mu);
  weir_free(step);
}

static const weir_rendezvous_vtable_t step_vtable = {
    .destroy = step_destroy, .send = step_send, .recv_async = step_recv, .abort = step_abort};

// ---- the steps of a task ----

static weir_view_t key_of(const int64_t* id) { return weir_view((const char*)id, sizeof(*id)); }

static weir_status_t* step_create(weir_task_t* task, int64_t id, step_t** out_step) {
  step_t* step = weir_calloc(1, sizeof(*step));
  if (!step) return weir_out_of_memory();
  step->base.vtable = &step_vtable;
  weir_ref_init(&step->base.ref);
  step->task = task;
  step->id = id;
  weir_mutex_init(&step->mu);
  weir_status_t* status = weir_local_rendezvous_create(&step->local);
  if (status) step_destroy(&step->base);
  else *out_step = step;
  return status;
}

// Finds or makes step |id| and retains it for the caller.
static weir_status_t* step_find(weir_task_t* task, int64_t id, bool is_receiver,
                                step_t** out_step) {
  weir_status_t* status = NULL;
  weir_mutex_lock(&task->mu);
  step_t* step = weir_map_find(&task->steps, key_of(&id));
  if (!step && is_receiver && task->unknown_step_count >= UNKNOWN_STEP_LIMIT) {
    status = WEIR_STATUS(RESOURCE_EXHAUSTED,
                         "step %lld is not known here, like %d others that tensors are asked of",
                         (long long)id, UNKNOWN_STEP_LIMIT);
  } else if (!step) {
    status = step_create(task, id, &step);
    if (!status) status = weir_map_put(&task->steps, key_of(&id), step);
    if (!status) ++task->unknown_step_count;
    if (status && step) {
      weir_rendezvous_release(&step->base);
      step = NULL;
    }
  }
  if (step) {
    weir_rendezvous_retain(&step->base);
    if (is_receiver) ++step->waiting;
    else if (!step->is_known) --task->unknown_step_count;
    if (!is_receiver) step->is_known = true;
  }
  weir_mutex_unlock(&task->mu);
  *out_step = step;
  return status;
}

weir_status_t* weir_task_step_as(weir_task_t* task, int64_t id, weir_alias_t* alias,
                                 weir_rendezvous_t** out_rendezvous) {
  step_t* step = NULL;
  weir_status_t* status = step_find(task, id, false, &step);
  if (step && alias) {
    weir_mutex_lock(&task->mu);
    if (!step->alias) step->alias = weir_alias_retain(alias);
    weir_mutex_unlock(&task->mu);
  }
  *out_rendezvous = step ? &step->base : NULL;
  return status;
}

weir_status_t* weir_task_step(weir_task_t* task, int64_t id, weir_rendezvous_t** out_rendezvous) {
  return weir_task_step_as(task, id, NULL, out_rendezvous);
}

bool weir_task_has_step(weir_task_t* task, int64_t id) {
  weir_mutex_lock(&task->mu);
  bool has_step = weir_map_find(&task->steps, key_of(&id)) != NULL;
  weir_mutex_unlock(&task->mu);
  return has_step;
}

void weir_task_end_step(weir_task_t* task, int64_t id) {
  weir_mutex_lock(&task->mu);
  step_t* step = weir_map_remove(&task->steps, key_of(&id));
  if (step && !step->is_known) --task->unknown_step_count;
  weir_mutex_unlock(&task->mu);
  weir_same_host_end_step(&task->same_host, id);
  weir_gate_leave(task->gate, id);
  if (!step) return;
  weir_status_t* status = WEIR_STATUS(ABORTED, "Cleanup %lld", (long long)id);
  step_abort(&step->base, status);
  weir_status_destroy(status);
  weir_rendezvous_release(&step->base);
}

void weir_task_end_all_steps(weir_task_t* task) {
  for (bool has_more = true; has_more;) {
    int64_t id = 0;
    size_t i = 0;
    weir_mutex_lock(&task->mu);
    weir_map_entry_t* entry = weir_map_next(&task->steps, &i);
    has_more = entry != NULL;
    if (entry) id = ((step_t*)entry->value)->id;
    weir_mutex_unlock(&task->mu);
    if (has_more) weir_task_end_step(task, id);
  }
}

// ---- serving receivers of other tasks ----

typedef struct receiver_t {
  step_t* step;  // retained
  weir_recv_done_fn_t done;
  void* arg;
} receiver_t;

// A receiver is through with |step|.
static void receiver_leave(step_t* take_step) {
  weir_task_t* task = take_step->task;
  weir_mutex_lock(&task->mu);
  bool is_forgotten = --take_step->waiting == 0 && !take_step->is_known &&
                      weir_map_find(&task->steps, key_of(&take_step->id)) == take_step;
  if (is_forgotten) {
    weir_map_remove(&task->steps, key_of(&take_step->id));
    --task->unknown_step_count;
  }
  weir_mutex_unlock(&task->mu);
  if (is_forgotten) weir_rendezvous_release(&take_step->base);
  weir_rendezvous_release(&take_step->base);
}

static void receiver_done(void* arg, weir_status_t* take_status, weir_tensor_t* take_tensor,
                          bool is_dead) {
  receiver_t receiver = *(receiver_t*)arg;
  weir_free(arg);
  receiver_leave(receiver.step);
  receiver.done(receiver.arg, take_status, take_tensor, is_dead);
}

void weir_task_receive(weir_task_t* task, int64_t id, weir_view_t key, weir_cancel_t* cancel,
                       weir_recv_done_fn_t done, void* arg) {
  step_t* step = NULL;
  weir_status_t* status = step_find(task, id, true, &step);
  receiver_t* receiver = status ? NULL : weir_malloc(sizeof(*receiver));
  if (!receiver) {
    if (step) receiver_leave(step);
    done(arg, status ? status : weir_out_of_memory(), NULL, false);
    return;
  }
  *receiver = (receiver_t){.step = step, .done = done, .arg = arg};
  step->local->vtable->recv_async(step->local, key, cancel, receiver_done, receiver);
}
