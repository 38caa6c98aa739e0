// worker_tensor.c — RecvTensor: tensors of a step, for the workers that receive them.
#include "base/details.h"
#include "cluster/task/fields.h"
#include "cluster/worker/worker_internal.h"

typedef struct receive_t {
  weir_worker_t* worker;
  weir_rpc_call_t* call;
  weir_cancel_t* cancel;
  weir_same_host_reader_t reader;
  bool is_same_host;  // the receiver may read the tensor from memory
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

// Says where the tensor is instead of sending it. False when the bytes had better go.
static bool hold_tensor(const receive_t* receive, weir_tensor_t* tensor, weir_strbuf_t* head) {
  const weir_same_host_reader_t* reader = &receive->reader;
  weir_task_t* task = receive->worker->task;
  size_t size = head->size;
  if (!receive->is_same_host || !weir_same_host_hold(&task->same_host, reader, tensor, head))
    return false;
  // The step or the connection may have ended before there was a hold to end.
  if (weir_task_has_step(task, reader->step_id) && !weir_rpc_call_is_cancelled(receive->call)) {
    atomic_fetch_add_explicit(&task->bytes_sent, (long long)weir_tensor_byte_size(tensor),
                              memory_order_relaxed);  // a statistic
    return true;
  }
  weir_tensor_release(
      weir_same_host_take(&task->same_host, reader->request_id, reader->connection));
  head->size = size;
  return false;
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
    if (!hold_tensor(receive, tensor, &builder.head)) {
      align_content(&builder, tensor);
      weir_message_put_tensor(&builder, RECV_TENSOR_RESPONSE_TENSOR, tensor);
    }
  }
  return weir_message_finish(&builder, out_message);
}

static void receive_done(void* arg, weir_status_t* take_status, weir_tensor_t* take_tensor,
                         bool is_dead) {
  receive_t* receive = arg;
  weir_task_t* task = receive->worker->task;
  weir_rpc_message_t* message = NULL;
  weir_status_t* status = take_status;
  // Written to between the Send and now, what was read of a variable shows that.
  if (!status && take_tensor) status = weir_tensor_renew(&take_tensor);
  if (!status) status = tensor_response(receive, take_tensor, is_dead, &message);
  weir_tensor_release(take_tensor);
  weir_rpc_call_on_cancel(receive->call, NULL, NULL);
  atomic_fetch_sub_explicit(&task->receives_open, 1, memory_order_relaxed);
  if (status) {
    status = weir_status_payloads(weir_status_from(status, task->name));
    weir_rpc_call_fail(receive->call, status);
  } else {
    atomic_fetch_add_explicit(&task->bytes_sent, (long long)weir_rpc_message_size(message),
                              memory_order_relaxed);  // a statistic
    weir_rpc_call_respond(receive->call, message);
  }
  weir_cancel_destroy(receive->cancel);
  weir_free(receive);
}

static void cancel_receive(void* arg) { weir_cancel_start(((receive_t*)arg)->cancel); }

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
  weir_tensor_t* tensor = weir_same_host_take(same_host, again, receive->reader.connection);
  weir_status_t* status =
      tensor ? NULL
             : WEIR_STATUS(ABORTED, "the tensor of request %lld is not held any more",
                           (long long)again);
  receive_done(receive, status, tensor, false);
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

void weir_handle_recv_tensor(void* self, weir_rpc_call_t* call) {
  weir_worker_t* worker = ((weir_task_t*)self)->worker;
  int64_t step_id = 0, request_id = 0;
  weir_view_t key = weir_view("", 0), options = weir_view("", 0);
  weir_wire_reader_t reader = weir_worker_call_reader(call);
  while (weir_wire_next(&reader)) {
    if (reader.field == RECV_TENSOR_REQUEST_STEP_ID) step_id = weir_wire_int(&reader);
    if (reader.field == RECV_TENSOR_REQUEST_RENDEZVOUS_KEY && reader.type == WEIR_WIRE_BYTES)
      key = reader.bytes;
    if (reader.field == RECV_TENSOR_REQUEST_TRANSPORT_OPTIONS && reader.type == WEIR_WIRE_BYTES)
      options = reader.bytes;
    if (reader.field == RECV_TENSOR_REQUEST_REQUEST_ID) request_id = weir_wire_int(&reader);
  }
  weir_status_t* status = weir_wire_check(&reader, "RecvTensorRequest");
  weir_same_host_wish_t wish = weir_same_host_wish(&worker->task->same_host, options);
  if (!status && !wish.again) status = check_key(worker->task, key);
  if (!status) status = weir_request_ids_add(&worker->task->receive_ids, request_id, "RecvTensor");
  receive_t* receive = status ? NULL : weir_calloc(1, sizeof(*receive));
  if (receive) {
    receive->worker = worker;
    receive->call = call;
    receive->is_same_host = wish.is_here;
    receive->reader = (weir_same_host_reader_t){
        .request_id = request_id, .step_id = step_id, .connection = weir_rpc_call_connection(call)};
    if (wish.is_here) {
      memcpy(receive->reader.socket, wish.socket.data, wish.socket.size);
      memcpy(receive->reader.token, wish.token.data, wish.token.size);
    }
    status = weir_cancel_create(worker->cancel, &receive->cancel);
  } else if (!status) {
    status = weir_out_of_memory();
  }
  if (status) {
    weir_free(receive);
    weir_worker_call_finish(call, status);
    return;
  }
  atomic_fetch_add_explicit(&worker->task->receives_open, 1, memory_order_relaxed);
  weir_rpc_call_on_cancel(call, cancel_receive, receive);
  if (wish.again) send_held(receive, wish.again);
  else weir_task_receive(worker->task, step_id, key, receive->cancel, receive_done, receive);
}
