// worker_collective.c — JoinCollective: members of other tasks join this task's hub.
#include "base/details.h"
#include "cluster/task/collective_message.h"
#include "cluster/worker/worker_internal.h"

typedef struct join_t {
  weir_task_t* task;
  weir_rpc_call_t* call;
  weir_cancel_t* cancel;
  bool is_source;  // of a broadcast: it has what it would get
} join_t;

static void cancel_join(void* arg) { weir_cancel_start(((join_t*)arg)->cancel); }

static void join_done(void* arg, weir_status_t* take_status, weir_tensor_t* take_tensor) {
  join_t* join = arg;
  weir_rpc_message_t* message = NULL;
  weir_status_t* status = take_status;
  if (!status)
    status = weir_collective_write_answer(join->is_source ? NULL : take_tensor, &message);
  weir_tensor_release(take_tensor);
  weir_rpc_call_on_cancel(join->call, NULL, NULL);
  if (status) weir_rpc_call_fail(join->call, weir_status_payloads(status));
  else weir_rpc_call_respond(join->call, message);
  weir_cancel_destroy(join->cancel);
  weir_free(join);
}

static weir_status_t* join_create(weir_task_t* task, weir_rpc_call_t* call, bool is_source,
                                  join_t** out_join) {
  join_t* join = weir_calloc(1, sizeof(*join));
  if (!join) return weir_out_of_memory();
  *join = (join_t){.task = task, .call = call, .is_source = is_source};
  weir_status_t* status = weir_cancel_create(task->worker->cancel, &join->cancel);
  if (status) weir_free(join);
  else *out_join = join;
  return status;
}

void weir_handle_join_collective(void* self, weir_rpc_call_t* call) {
  weir_task_t* task = self;
  weir_collective_request_t request;
  join_t* join = NULL;
  weir_status_t* status = weir_collective_read(weir_rpc_call_request(call), &request);
  if (!status) status = join_create(task, call, request.what.is_source, &join);
  if (status) {
    weir_worker_call_finish(call, status);
  } else {
    weir_hub_caller_t caller = {
        .cancel = join->cancel, .pool = task->pool, .done = join_done, .arg = join};
    weir_rpc_call_on_cancel(call, cancel_join, join);
    weir_hub_join(task->runtime->hub, &request.what, request.tensor, &caller);
  }
  weir_collective_request_free(&request);
}
