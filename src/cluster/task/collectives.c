// collectives.c — Which task leads, and members on their way to it.
#include "cluster/task/collectives.h"

#include "base/alloc.h"
#include "cluster/task/collective_message.h"
#include "cluster/task/collectives_internal.h"

// From so many bytes on, reductions are done by all tasks. Below, one round trip is faster than
// two.
enum { SHARD_SIZE = 256 << 10 };
// A call outlives the timeout, which the hub watches, by so much.
enum { GRACE_S = 5 };
// Who is waited for longer than that is watched.
enum { WATCH_MS = 1000 };

weir_view_t weir_task_of_device(weir_view_t device) {
  for (size_t i = 0; i + 8 <= device.size; ++i) {
    if (!memcmp(device.data + i, "/device:", 8)) return weir_view(device.data, i);
  }
  return device;
}

uint64_t weir_collectives_scope(weir_view_t session_handle) {
  uint64_t scope = weir_hash_bytes(session_handle.data, session_handle.size, 0);
  return scope ? scope : 1;
}

// ---- a member on its way to another task's hub ----

// Two hold it: who asked, until it has the request's handle, and the answer.
typedef struct journey_t {
  weir_ref_t ref;
  weir_hub_caller_t caller;
  weir_tensor_t* own;  // what a broadcast's source gets back; NULL: nothing
  weir_cancel_token_t token;
  weir_mutex_t mu;
  weir_rpc_request_t* request;  // guarded by mu
  bool is_cancelled;            // guarded by mu; before there was a request to cancel
  char task[];                  // where it goes
} journey_t;

static void journey_unref(journey_t* journey) {
  if (!weir_ref_dec(&journey->ref)) return;
  weir_rpc_request_release(journey->request);
  weir_tensor_release(journey->own);
  weir_mutex_destroy(&journey->mu);
  weir_free(journey);
}

static void journey_cancel(void* arg) {
  journey_t* journey = arg;
  weir_mutex_lock(&journey->mu);
  journey->is_cancelled = true;
  weir_rpc_request_t* request = journey->request;
  weir_mutex_unlock(&journey->mu);
  if (request) weir_rpc_request_cancel(request);
}

// What went wrong on the way, as members of one process are told.
static weir_status_t* journey_error(const journey_t* journey, weir_status_t* take_status) {
  if (weir_status_code(take_status) != WEIR_UNAVAILABLE) return take_status;
  if (weir_view_starts_with(weir_view_of(weir_status_message(take_status)), "Collective ops "))
    return take_status;
  weir_status_t* status =
      WEIR_STATUS(UNAVAILABLE, "Collective ops is aborted by: task %s cannot be reached: %s",
                  journey->task, weir_status_message(take_status));
  weir_status_destroy(take_status);
  return status;
}

static void journey_done(void* self, weir_status_t* take_status, weir_rpc_buffer_t* take_message) {
  journey_t* journey = self;
  weir_status_t* status = take_status;
  weir_tensor_t* tensor = NULL;
  if (journey->token) (void)weir_cancel_deregister(journey->caller.cancel, journey->token);
  if (!status) status = weir_collective_read_answer(take_message, &tensor);
  if (!status && !tensor) tensor = weir_tensor_retain(journey->own);
  if (status) status = journey_error(journey, status);
  weir_rpc_buffer_release(take_message);
  weir_hub_caller_t caller = journey->caller;
  journey_unref(journey);
  caller.done(caller.arg, status, tensor);
}

static weir_status_t* journey_create(weir_view_t task, const weir_collective_t* what,
                                     weir_tensor_t* tensor, const weir_hub_caller_t* caller,
                                     journey_t** out_journey) {
  journey_t* journey = weir_calloc(1, sizeof(*journey) + task.size + 1);
  if (!journey) return weir_out_of_memory();
  weir_ref_init(&journey->ref);
  weir_ref_inc(&journey->ref, 1);
  weir_mutex_init(&journey->mu);
  memcpy(journey->task, task.data, task.size);
  journey->caller = *caller;
  if (what->is_source) journey->own = weir_tensor_retain(tensor);
  *out_journey = journey;
  return NULL;
}

static void travel(weir_collectives_t* self, weir_view_t task, const weir_collective_t* what,
                   weir_tensor_t* tensor, const weir_hub_caller_t* caller) {
  weir_rpc_channel_t* channel = NULL;
  weir_rpc_message_t* message = NULL;
  journey_t* journey = NULL;
  weir_status_t* status = weir_task_channel(self->task, NULL, task, &channel);
  if (!status) status = journey_create(task, what, tensor, caller, &journey);
  if (!status) status = weir_collective_write(what, tensor, &message);
  if (status) {
    if (journey) journey_unref(journey);
    if (journey) journey_unref(journey);
    caller->done(caller->arg, status, NULL);
    return;
  }
  int64_t patience_ns = what->timeout_ns + (int64_t)GRACE_S * 1000000000;
  weir_rpc_call_options_t options = {
      .deadline_ns = what->timeout_ns ? weir_clock_ns() + patience_ns : 0,
      .pool = self->task->pool};
  weir_rpc_request_t* request = NULL;
  journey->token = weir_cancel_register(caller->cancel, journey_cancel, journey);
  bool is_cancelled = !journey->token && weir_cancel_is_cancelled(caller->cancel);
  weir_rpc_channel_call_async(channel, WEIR_JOIN_COLLECTIVE_PATH, message, &options, journey_done,
                              journey, &request);
  weir_mutex_lock(&journey->mu);
  journey->request = request;
  is_cancelled = is_cancelled || journey->is_cancelled;
  weir_mutex_unlock(&journey->mu);
  if (is_cancelled) weir_rpc_request_cancel(request);
  journey_unref(journey);
}

void weir_collectives_join_at(weir_collectives_t* self, weir_view_t task,
                              const weir_collective_t* what, weir_tensor_t* tensor,
                              const weir_hub_caller_t* caller) {
  if (weir_view_is(task, self->task->name)) weir_hub_join(self->hub, what, tensor, caller);
  else travel(self, task, what, tensor, caller);
}

// ---- entering ----

static void enter(void* arg, const weir_collective_t* what, weir_tensor_t* tensor,
                  const weir_hub_caller_t* caller) {
  weir_collectives_t* self = arg;
  bool is_large = what->kind == WEIR_COLLECTIVE_REDUCE && tensor && what->group_size > 1 &&
                  weir_tensor_byte_size(tensor) >= SHARD_SIZE;
  if (is_large) weir_collectives_join_shards(self, what, tensor, caller);
  else weir_collectives_join_at(self, weir_view_of(self->leader), what, tensor, caller);
}

static const weir_cluster_job_t* leading_job(const weir_cluster_spec_t* spec) {
  const weir_cluster_job_t* leading = &spec->jobs[0];
  for (int i = 0; i < spec->job_count; ++i) {
    if (!strcmp(spec->jobs[i].name, "chief")) return &spec->jobs[i];
    if (!strcmp(spec->jobs[i].name, "worker")) leading = &spec->jobs[i];
  }
  return leading;
}

static weir_status_t* find_leader(weir_collectives_t* self) {
  const weir_cluster_spec_t* spec = &self->task->spec;
  int count = 0;
  for (int i = 0; i < spec->job_count; ++i) count += spec->jobs[i].task_count;
  if (count < 2) return NULL;
  const weir_cluster_job_t* job = leading_job(spec);
  weir_strbuf_t name = {0};
  weir_strbuf_printf(&name, "/job:%s/replica:0/task:%d", job->name, job->tasks[0].index);
  WEIR_TRY(weir_strbuf_finish(&name));
  self->leader = name.data;
  return NULL;
}

weir_status_t* weir_collectives_create(weir_task_t* task, weir_collectives_t** out_collectives) {
  weir_collectives_t* self = weir_calloc(1, sizeof(*self));
  if (!self) return weir_out_of_memory();
  self->task = task;
  self->hub = task->runtime->hub;
  weir_mutex_init(&self->mu);
  weir_status_t* status = find_leader(self);
  if (status) {
    weir_collectives_destroy(self);
    return status;
  }
  if (self->leader) {
    weir_hub_put_before(self->hub, enter, self);
    weir_hub_watch(self->hub, weir_collectives_watch, self, (int64_t)WATCH_MS * 1000000);
  }
  *out_collectives = self;
  return NULL;
}

void weir_collectives_destroy(weir_collectives_t* self) {
  if (!self) return;
  WEIR_CHECK(!self->watches);
  weir_mutex_destroy(&self->mu);
  weir_free(self->leader);
  weir_free(self);
}
