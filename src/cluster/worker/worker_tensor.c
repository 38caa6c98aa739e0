// worker_tensor.c — RecvTensor: tensors of a step, for the workers that receive them.
#include "base/details.h"
#include "cluster/task/fields.h"
#include "cluster/worker/worker_internal.h"

typedef struct receive_t {
  weir_worker_t* worker;
  weir_rpc_call_t* call;
  weir_passing_t passing;  // what transports are told; |offer| is that of the one at hand
  weir_view_t offers[WEIR_TRANSPORT_LIMIT];  // into the request, one a transport of the task
  weir_transport_t* passed_by;               // that passes the tensor; NULL: it goes as bytes
} receive_t;

// Puts bytes before the tensor so that its elements are aligned within the message: then the
// receiver need not copy them. The filler stands in transport_options, which gRPC does not use.
static void align_content(weir_message_builder_t* builder, const weir_tensor_t* tensor) {
  size_t size = weir_tensor_byte_size(tensor);
  if (!weir_dtype_is_plain(weir_tensor_type(tensor)) || size < 4096) return;
  weir_message_builder_t trial = {.message = NULL};
  weir_message_put_tensor(&trial, RECV_TENSOR_RESPONSE_TENSOR, (weir_tensor_t*)tensor);
  size_t head = weir_message_size(&trial) - size;
  weir_message_abandon(&trial);
  size_t at = weir_message_size(builder) + head + 4;  // two tags and two lengths of the filler
  size_t filler = (WEIR_TENSOR_ALIGNMENT - at % WEIR_TENSOR_ALIGNMENT) % WEIR_TENSOR_ALIGNMENT;
  static const char zeros[WEIR_TENSOR_ALIGNMENT];
  size_t any = weir_wire_begin(&builder->head, RECV_TENSOR_RESPONSE_TRANSPORT_OPTIONS);
  weir_wire_put_bytes(&builder->head, ANY_VALUE, zeros, filler);
  weir_wire_end(&builder->head, any);
}

// An empty tensor, which stands in the message of a dead one.
static void put_dead_tensor(weir_strbuf_t* out) {
  enum { TENSOR_DTYPE = 1, TENSOR_SHAPE = 2, SHAPE_DIM = 2 };
  size_t tensor = weir_wire_begin(out, RECV_TENSOR_RESPONSE_TENSOR);
  weir_wire_put_int(out, TENSOR_DTYPE, WEIR_DTYPE_FLOAT);
  size_t shape = weir_wire_begin(out, TENSOR_SHAPE);
  size_t dim = weir_wire_begin(out, SHAPE_DIM);
  weir_wire_end(out, dim);
  weir_wire_end(out, shape);
  weir_wire_end(out, tensor);
}

static weir_status_t* tensor_response(const receive_t* receive, weir_tensor_t* tensor, bool is_dead,
                                      weir_rpc_message_t** out_message) {
  weir_message_builder_t builder = {.message = NULL};
  if (is_dead || !tensor) {
    weir_wire_put_bool(&builder.head, RECV_TENSOR_RESPONSE_IS_DEAD, true);
    put_dead_tensor(&builder.head);
  } else {
    weir_wire_put_int(&builder.head, RECV_TENSOR_RESPONSE_SEND_START_MICROS, weir_wall_clock_us());
    if (receive->passed_by) {
      weir_transport_put_passed(&builder.head, receive->passed_by);
    } else {
      align_content(&builder, tensor);
      weir_message_put_tensor(&builder, RECV_TENSOR_RESPONSE_TENSOR, tensor);
    }
  }
  return weir_message_finish(&builder, out_message);
}

static void count_sent(weir_task_t* task, size_t size) {
  atomic_fetch_add_explicit(&task->bytes_sent, (long long)size, memory_order_relaxed);
}

// Answers the call: with |take_status|, or with the tensor or the news that it was passed.
static void respond(receive_t* take_receive, weir_status_t* take_status, bool is_dead) {
  receive_t* receive = take_receive;
  weir_task_t* task = receive->worker->task;
  weir_tensor_t* tensor = receive->passing.tensor;
  weir_rpc_message_t* message = NULL;
  weir_status_t* status = take_status;
  if (!status) status = tensor_response(receive, tensor, is_dead, &message);
  if (!status && receive->passed_by) count_sent(task, weir_tensor_byte_size(tensor));
  weir_tensor_release(tensor);
  weir_rpc_call_on_cancel(receive->call, NULL, NULL);
  atomic_fetch_sub_explicit(&task->receives_open, 1, memory_order_relaxed);
  if (status) {
    status = weir_status_payloads(weir_status_from(status, task->name));
    weir_rpc_call_fail(receive->call, status);
  } else {
    count_sent(task, weir_rpc_message_size(message));
    weir_rpc_call_respond(receive->call, message);
  }
  weir_cancel_destroy(receive->passing.cancel);
  weir_free(receive);
}

// Whether a hold that was made is not ended any more by the end of the step or of the connection:
// they came before it.
static bool is_too_late(const receive_t* receive) {
  return !weir_task_has_step(receive->worker->task, receive->passing.step_id) ||
         weir_rpc_call_is_cancelled(receive->call);
}

static void passed(void* arg, weir_status_t* take_status) {
  receive_t* receive = arg;
  weir_task_t* task = receive->worker->task;
  const weir_passing_t* passing = &receive->passing;
  weir_status_t* status = NULL;
  if (weir_status_code(take_status) == WEIR_CANCELLED) status = weir_status_copy(take_status);
  if (take_status) receive->passed_by = NULL;
  weir_status_destroy(take_status);
  if (receive->passed_by == &task->same_host.base && is_too_late(receive)) {
    weir_tensor_release(
        weir_same_host_take(&task->same_host, passing->request_id, passing->connection));
    receive->passed_by = NULL;
  }
  respond(receive, status, false);
}

// Has the first transport pass the tensor that accepts what it is offered.
static bool pass(receive_t* receive) {
  weir_task_t* task = receive->worker->task;
  weir_tensor_t* tensor = receive->passing.tensor;
  if (!weir_dtype_is_plain(weir_tensor_type(tensor)) ||
      weir_tensor_byte_size(tensor) < WEIR_TRANSPORT_MIN_SIZE)
    return false;
  for (int i = 0; i < task->transport_count; ++i) {
    receive->passed_by = task->transports[i];
    receive->passing.offer = receive->offers[i];
    if (receive->offers[i].size > 0 &&
        receive->passed_by->vtable->pass(receive->passed_by, &receive->passing))
      return true;
  }
  receive->passed_by = NULL;
  return false;
}

static void receive_done(void* arg, weir_status_t* take_status, weir_tensor_t* take_tensor,
                         bool is_dead) {
  receive_t* receive = arg;
  weir_status_t* status = take_status;
  // Written to between the Send and now, what was read of a variable shows that.
  if (!status && take_tensor) status = weir_tensor_renew(&take_tensor);
  receive->passing.tensor = take_tensor;
  if (!status && !is_dead && take_tensor && pass(receive)) return;
  respond(receive, status, is_dead);
}

static void cancel_receive(void* arg) { weir_cancel_start(((receive_t*)arg)->passing.cancel); }

// Hexadecimal digits as a number; false when there are other characters, or too many.
static bool parse_incarnation(weir_view_t text, uint64_t* out_value) {
  uint64_t value = 0;
  for (size_t i = 0; i < text.size; ++i) {
    const char* digits = "0123456789abcdef";
    const char* digit = text.data[i] ? strchr(digits, text.data[i]) : NULL;
    if (!digit) return false;
    value = value << 4 | (uint64_t)(digit - digits);
  }
  *out_value = value;
  return text.size > 0 && text.size <= 16;
}

// The device of this task that a key names.
static weir_status_t* find_sender(const weir_task_t* task, const weir_device_name_t* name,
                                  weir_view_t text, const weir_device_t** out_device) {
  int ordinal = weir_runtime_find(task->runtime, name);
  if (ordinal < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "%.*s unknown device.", WEIR_VIEW_ARG(text));
  *out_device = task->runtime->devices[ordinal];
  return NULL;
}

// Keys are "source device;incarnation;destination device;tensor;frame:iteration". A receiver that
// knows an earlier process of this task waits for what will never come: it is told at once.
static weir_status_t* check_key(const weir_task_t* task, weir_view_t key) {
  weir_view_t rest = key, part = weir_view("", 0), from = weir_view("", 0);
  weir_device_name_t device, sender = {.type = ""};
  const weir_device_t* own = NULL;
  uint64_t incarnation = 0;
  int count = 0;
  weir_status_t* status = NULL;
  while (!status && weir_view_next(&rest, ';', &part)) {
    bool is_device = count == 0 || count == 2;
    if (is_device) status = weir_device_name_parse(part, &device);
    if (is_device && !status && !device.job[0]) break;
    if (count == 0) sender = device;
    if (count == 0) from = part;
    if (count == 1 && !parse_incarnation(part, &incarnation)) break;
    ++count;
  }
  bool is_key = !status && count == 5;
  weir_status_destroy(status);
  if (!is_key)
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid rendezvous key: %.*s", WEIR_VIEW_ARG(key));
  WEIR_TRY(find_sender(task, &sender, from, &own));
  if (incarnation == own->incarnation) return NULL;
  return WEIR_STATUS(ABORTED,
                     "RecvTensor expects a different device incarnation: %llu vs. %llu. Your "
                     "worker job (\"%s\") was probably restarted. Check your worker job for the "
                     "reason why it was restarted.",
                     (unsigned long long)incarnation, (unsigned long long)own->incarnation,
                     task->name);
}

// The receiver could not read the tensor that it was told the place of: it gets the bytes.
static void send_held(receive_t* receive, int64_t again) {
  weir_same_host_t* same_host = &receive->worker->task->same_host;
  weir_tensor_t* tensor = weir_same_host_take(same_host, again, receive->passing.connection);
  weir_status_t* status =
      tensor ? NULL
             : WEIR_STATUS(ABORTED, "the tensor of request %lld is not held any more",
                           (long long)again);
  receive->passing.tensor = tensor;
  respond(receive, status, false);
}

void weir_handle_mark_recv_finished(void* self, weir_rpc_call_t* call) {
  weir_task_t* task = self;
  int64_t request_id = 0;
  weir_wire_reader_t reader = weir_worker_call_reader(call);
  while (weir_wire_next(&reader)) {
    if (reader.field == MARK_RECV_FINISHED_REQUEST_REQUEST_ID) request_id = weir_wire_int(&reader);
  }
  weir_status_t* status = weir_wire_check(&reader, "MarkRecvFinishedRequest");
  if (!status)
    weir_tensor_release(
        weir_same_host_take(&task->same_host, request_id, weir_rpc_call_connection(call)));
  weir_worker_call_finish(call, status);
}

// Notes the offer in |any|, one of the request's transport_options. |out_again|: not 0: the number
// of a request of which the receiver wants the bytes after all.
static void note_offer(receive_t* receive, weir_view_t any, int64_t* out_again) {
  weir_task_t* task = receive->worker->task;
  weir_same_host_wish_t wish =
      weir_same_host_wish(&task->same_host, weir_transport_value(any, WEIR_SAME_HOST_URL));
  if (wish.again) *out_again = wish.again;
  for (int i = 0; i < task->transport_count; ++i) {
    weir_view_t offer = weir_transport_value(any, task->transports[i]->vtable->url);
    if (offer.size > 0) receive->offers[i] = offer;
  }
}

static weir_status_t* parse_request(receive_t* receive, weir_view_t* out_key, int64_t* out_again) {
  weir_wire_reader_t reader = weir_worker_call_reader(receive->call);
  while (weir_wire_next(&reader)) {
    bool is_bytes = reader.type == WEIR_WIRE_BYTES;
    if (reader.field == RECV_TENSOR_REQUEST_STEP_ID)
      receive->passing.step_id = weir_wire_int(&reader);
    if (reader.field == RECV_TENSOR_REQUEST_RENDEZVOUS_KEY && is_bytes) *out_key = reader.bytes;
    if (reader.field == RECV_TENSOR_REQUEST_TRANSPORT_OPTIONS && is_bytes)
      note_offer(receive, reader.bytes, out_again);
    if (reader.field == RECV_TENSOR_REQUEST_REQUEST_ID)
      receive->passing.request_id = weir_wire_int(&reader);
  }
  return weir_wire_check(&reader, "RecvTensorRequest");
}

void weir_handle_recv_tensor(void* self, weir_rpc_call_t* call) {
  weir_task_t* task = self;
  weir_view_t key = weir_view("", 0);
  int64_t again = 0;
  receive_t* receive = weir_calloc(1, sizeof(*receive));
  if (!receive) {
    weir_worker_call_finish(call, weir_out_of_memory());
    return;
  }
  weir_passing_t* passing = &receive->passing;
  receive->worker = task->worker;
  receive->call = call;
  *passing = (weir_passing_t){
      .connection = weir_rpc_call_connection(call), .done = passed, .arg = receive};
  weir_status_t* status = parse_request(receive, &key, &again);
  if (!status && !again) status = check_key(task, key);
  if (!status) status = weir_request_ids_add(&task->receive_ids, passing->request_id, "RecvTensor");
  if (!status) status = weir_cancel_create(task->worker->cancel, &passing->cancel);
  if (status) {
    weir_free(receive);
    weir_worker_call_finish(call, status);
    return;
  }
  atomic_fetch_add_explicit(&task->receives_open, 1, memory_order_relaxed);
  weir_rpc_call_on_cancel(call, cancel_receive, receive);
  if (again) send_held(receive, again);
  else weir_task_receive(task, passing->step_id, key, passing->cancel, receive_done, receive);
}
