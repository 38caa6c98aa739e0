// ucx_receive.c — The receiver's side of UCX: offers, and the tensors that arrive for them.
#include <sys/random.h>

#include "base/log.h"
#include "cluster/task/ucx_internal.h"
#include "tensor/shape.h"
#include "wire/wire.h"

// What was sent is there when the producer says so, but for what its machine still has in buffers.
#define ARRIVAL_LIMIT_NS INT64_C(10000000000)

// An offer, and what arrives for it. Two hold it: who made the offer, and UCX while it writes.
struct ucx_arrival_t {
  weir_ref_t ref;
  weir_ucx_t* ucx;
  char token[UCX_TOKEN_SIZE];
  ucx_arrival_t *next, **place;               // of the thread; where UCX holds it
  enum { OFFERED, ARRIVING, ARRIVED } state;  // guarded by mu
  weir_tensor_t* tensor;                      // guarded by mu
  weir_status_t* status;                      // guarded by mu; why it did not arrive
  weir_collected_fn_t done;                   // guarded by mu; NULL: nobody waits now
  void* arg;                                  // guarded by mu
  int64_t deadline_ns;                        // guarded by mu; of who waits
  bool is_cancelled;                          // guarded by mu
};

static weir_ucx_t* ucx_of(weir_transport_t* base) { return (weir_ucx_t*)base; }
static weir_view_t key_of(const char token[UCX_TOKEN_SIZE]) {
  return weir_view(token, UCX_TOKEN_SIZE);
}

static void arrival_unref(ucx_arrival_t* arrival) {
  if (!weir_ref_dec(&arrival->ref)) return;
  weir_tensor_release(arrival->tensor);
  weir_status_destroy(arrival->status);
  weir_free(arrival);
}

// ---- offers ----

void* weir_ucx_offer(weir_transport_t* base, const void* peer, weir_strbuf_t* request) {
  (void)peer;
  weir_ucx_t* ucx = ucx_of(base);
  ucx_arrival_t* arrival = weir_calloc(1, sizeof(*arrival));
  if (!arrival) return NULL;
  weir_ref_init(&arrival->ref);
  arrival->ucx = ucx;
  weir_status_t* status = NULL;
  bool is_made = getrandom(arrival->token, UCX_TOKEN_SIZE, 0) == UCX_TOKEN_SIZE;
  weir_mutex_lock(&ucx->mu);
  if (is_made) status = weir_map_put(&ucx->offers, key_of(arrival->token), arrival);
  weir_mutex_unlock(&ucx->mu);
  if (!is_made || status) {
    weir_status_destroy(status);
    arrival_unref(arrival);
    return NULL;
  }
  weir_strbuf_t value = {0};
  weir_wire_put_string(&value, OFFER_TASK, ucx->task->name);
  weir_wire_put_fixed64(&value, OFFER_INSTANCE, ucx->instance);
  weir_wire_put_bytes(&value, OFFER_TOKEN, arrival->token, UCX_TOKEN_SIZE);
  weir_transport_put_offer(request, UCX_URL, &value);
  weir_strbuf_free(&value);
  return arrival;
}

void weir_ucx_withdraw(weir_transport_t* base, void* take_offer) {
  weir_ucx_t* ucx = ucx_of(base);
  ucx_arrival_t* arrival = take_offer;
  weir_mutex_lock(&ucx->mu);
  weir_map_remove(&ucx->offers, key_of(arrival->token));
  weir_mutex_unlock(&ucx->mu);
  arrival_unref(arrival);
}

// ---- who waits ----

// Hands over to who waits, if anybody does: |take_status|, or where that is NULL what has arrived.
static void deliver(ucx_arrival_t* arrival, weir_status_t* take_status) {
  weir_status_t* status = take_status;
  weir_tensor_t* tensor = NULL;
  weir_mutex_lock(&arrival->ucx->mu);
  weir_collected_fn_t done = arrival->done;
  void* arg = arrival->arg;
  arrival->done = NULL;
  if (done && !status) {
    status = arrival->status;
    tensor = arrival->tensor;
    arrival->status = NULL;
    arrival->tensor = NULL;
  }
  weir_mutex_unlock(&arrival->ucx->mu);
  if (done) done(arg, status, tensor);
  else weir_status_destroy(status);
}

static weir_status_t* cancelled(void) {
  return WEIR_STATUS(CANCELLED, "the tensor that comes by UCX is not waited for any more");
}

void weir_ucx_collect(weir_transport_t* base, void* offer, weir_collected_fn_t done, void* arg) {
  weir_ucx_t* ucx = ucx_of(base);
  ucx_arrival_t* arrival = offer;
  weir_mutex_lock(&ucx->mu);
  arrival->done = done;
  arrival->arg = arg;
  arrival->deadline_ns = weir_clock_ns() + ARRIVAL_LIMIT_NS;
  bool is_arrived = arrival->state == ARRIVED;
  if (arrival->is_cancelled) ucx->must_look = true;
  weir_mutex_unlock(&ucx->mu);
  if (is_arrived) deliver(arrival, NULL);
  else weir_ucx_look_soon(ucx);  // from now on it counts how long it takes
}

void weir_ucx_cancel(weir_transport_t* base, void* offer) {
  weir_ucx_t* ucx = ucx_of(base);
  weir_mutex_lock(&ucx->mu);
  ((ucx_arrival_t*)offer)->is_cancelled = true;
  weir_mutex_unlock(&ucx->mu);
  weir_ucx_look_soon(ucx);
}

// One of those that wait in vain by |now_ns|, retained. NULL: there are none.
static ucx_arrival_t* find_late(weir_ucx_t* ucx, bool is_end, int64_t now_ns,
                                bool* out_is_cancelled) {
  ucx_arrival_t* late = NULL;
  weir_map_entry_t* entry;
  weir_mutex_lock(&ucx->mu);
  for (size_t i = 0; !late && ucx->offers.count && (entry = weir_map_next(&ucx->offers, &i));) {
    ucx_arrival_t* arrival = entry->value;
    bool is_late = is_end || arrival->is_cancelled || arrival->deadline_ns <= now_ns;
    if (arrival->done && is_late) late = arrival;
  }
  if (late) weir_ref_inc(&late->ref, 1);
  if (late) *out_is_cancelled = is_end || late->is_cancelled;
  weir_mutex_unlock(&ucx->mu);
  return late;
}

void weir_ucx_look_at_offers(weir_ucx_t* ucx, bool is_end) {
  bool is_cancelled = false;
  int64_t now_ns = weir_clock_ns();
  ucx_arrival_t* late;
  while ((late = find_late(ucx, is_end, now_ns, &is_cancelled))) {
    deliver(late, is_cancelled
                      ? cancelled()
                      : WEIR_STATUS(UNAVAILABLE, "a tensor that was sent by UCX did not arrive"));
    arrival_unref(late);
  }
}

// ---- what arrives ----

typedef struct header_t {
  weir_view_t token;
  int64_t dtype;
  int rank;
  int64_t dims[WEIR_MAX_RANK];
} header_t;

static bool parse_header(weir_view_t bytes, header_t* header) {
  weir_wire_reader_t reader = weir_wire_reader(bytes);
  while (weir_wire_next(&reader)) {
    if (reader.field == HEADER_TOKEN && reader.type == WEIR_WIRE_BYTES)
      header->token = reader.bytes;
    if (reader.field == HEADER_DTYPE) header->dtype = weir_wire_int(&reader);
    if (reader.field != HEADER_DIM) continue;
    if (header->rank == WEIR_MAX_RANK) return false;
    header->dims[header->rank++] = weir_wire_int(&reader);
  }
  return !reader.error && header->token.size == UCX_TOKEN_SIZE;
}

// A tensor for the |size| bytes that are announced.
static weir_status_t* create_tensor(const weir_task_t* task, const header_t* header, size_t size,
                                    weir_tensor_t** out_tensor) {
  weir_dtype_t dtype = (weir_dtype_t)header->dtype;
  int64_t count = 0;
  if (header->dtype <= 0 || header->dtype > INT32_MAX || !weir_dtype_is_plain(dtype))
    return WEIR_STATUS(INVALID_ARGUMENT, "elements of type %lld do not come by UCX",
                       (long long)header->dtype);
  WEIR_TRY(weir_shape_count(dtype, header->rank, header->dims, &count));
  if (size == 0 || (uint64_t)count != size / weir_dtype_size(dtype) ||
      size % weir_dtype_size(dtype) != 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "%lld elements are announced with %zu bytes",
                       (long long)count, size);
  if (task->max_message_size && size > task->max_message_size)
    return WEIR_STATUS(RESOURCE_EXHAUSTED, "a tensor of %zu bytes is not taken", size);
  return weir_tensor_create(dtype, header->rank, header->dims, out_tensor);
}

// The offer that |token| is of, which no other message can be for any more. Retained.
static ucx_arrival_t* take_offer(weir_ucx_t* ucx, weir_view_t token) {
  weir_mutex_lock(&ucx->mu);
  ucx_arrival_t* arrival = weir_map_find(&ucx->offers, token);
  if (arrival && arrival->state != OFFERED) arrival = NULL;
  if (arrival) arrival->state = ARRIVING;
  if (arrival) weir_ref_inc(&arrival->ref, 1);
  weir_mutex_unlock(&ucx->mu);
  return arrival;
}

// UCX is through with the arrival, whose reference it had.
static void end_arrival(ucx_arrival_t* take_arrival, weir_status_t* take_status) {
  ucx_arrival_t* arrival = take_arrival;
  weir_ucx_t* ucx = arrival->ucx;
  weir_mutex_lock(&ucx->mu);
  size_t size = take_status ? 0 : weir_tensor_byte_size(arrival->tensor);
  weir_tensor_t* failed = take_status ? arrival->tensor : NULL;
  if (take_status) arrival->tensor = NULL;
  arrival->state = ARRIVED;
  arrival->status = take_status;
  weir_mutex_unlock(&ucx->mu);
  weir_tensor_release(failed);
  // Statistics, ordered with nothing.
  if (size) atomic_fetch_add_explicit(&ucx->tensors_received, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&ucx->bytes_received, (long long)size, memory_order_relaxed);
  deliver(arrival, NULL);
  arrival_unref(arrival);
}

static void received(void* request, ucs_status_t status, size_t size, void* arg) {
  ucx_arrival_t* arrival = arg;
  const ucx_api_t* api = arrival->ucx->api;
  (void)size;
  *arrival->place = arrival->next;
  if (arrival->next) arrival->next->place = arrival->place;
  if (request) api->free_request(request);
  end_arrival(arrival, status ? weir_ucx_api_error(api, "a tensor comes by UCX", status) : NULL);
}

// Has the elements come into the arrival's tensor.
static ucs_status_t begin_receive(ucx_arrival_t* take_arrival, void* descriptor, size_t size) {
  ucx_arrival_t* arrival = take_arrival;
  weir_ucx_t* ucx = arrival->ucx;
  ucp_request_params_t params = {
      .mask = UCP_REQUEST_FN | UCP_REQUEST_ARG, .fn.received = received, .arg = arrival};
  arrival->next = ucx->arriving;
  arrival->place = &ucx->arriving;
  if (arrival->next) arrival->next->place = &arrival->next;
  ucx->arriving = arrival;
  ucs_result_t result =
      ucx->api->receive(ucx->worker, descriptor, weir_tensor_data(arrival->tensor), size, &params);
  if (result && !ucs_is_error(result)) return UCS_INPROGRESS;
  received(NULL, ucs_status_of(result), size, arrival);
  return ucs_status_of(result);
}

ucs_status_t weir_ucx_receive(void* arg, const void* header_bytes, size_t header_size, void* data,
                              size_t size, const ucp_message_t* message) {
  weir_ucx_t* ucx = arg;
  header_t header = {.rank = 0};
  if (!parse_header(weir_view(header_bytes, header_size), &header)) return UCS_ERR_INVALID_PARAM;
  ucx_arrival_t* arrival = take_offer(ucx, header.token);
  if (!arrival) return UCS_ERR_CANCELED;  // not waited for any more
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = create_tensor(ucx->task, &header, size, &tensor);
  if (status) {  // the producer learns that it is not taken, and sends bytes
    WEIR_LOG(INFO, "a tensor is not taken by UCX: %s", weir_status_message(status));
    end_arrival(arrival, status);
    return UCS_ERR_NO_MEMORY;
  }
  arrival->tensor = tensor;  // which only this thread looks at until it has arrived
  if (message->mask & UCP_MESSAGE_IS_RENDEZVOUS) return begin_receive(arrival, data, size);
  memcpy(weir_tensor_data(tensor), data, size);
  end_arrival(arrival, NULL);
  return UCS_OK;
}

void weir_ucx_forget_arrivals(weir_ucx_t* ucx) {
  while (ucx->arriving) {
    ucx_arrival_t* arrival = ucx->arriving;
    ucx->arriving = arrival->next;
    arrival_unref(arrival);
  }
}
