// collective_watch.c — Noticing that a task is gone which members of a group wait for: a call to it
// that it does not answer, but that ends with it.
//
// The call asks for a tensor that is never sent, by RecvTensor: any worker holds it, and one that
// was restarted says so at once, as the key has the device's incarnation.
#include "base/alloc.h"
#include "cluster/task/collectives_internal.h"
#include "cluster/task/fields.h"
#include "wire/wire.h"

#define RECV_TENSOR "/tensorflow.WorkerService/RecvTensor"

// Two hold it: who made it, until it has the request's handle, and the answer. It is in the list
// until that comes.
struct watch_t {
  weir_ref_t ref;
  weir_collectives_t* owner;
  watch_t* next;                // guarded by the owner's mu, as all below
  weir_rpc_request_t* request;  // NULL: not known yet
  bool is_over;                 // nobody waits any more
  char task[];
};

static void watch_unref(watch_t* watch) {
  if (!weir_ref_dec(&watch->ref)) return;
  weir_rpc_request_release(watch->request);
  weir_free(watch);
}

// Whether an error of the call says that the task, or its process of that time, is gone.
static bool says_gone(const weir_status_t* status) {
  weir_code_t code = weir_status_code(status);
  return code == WEIR_UNAVAILABLE || code == WEIR_ABORTED;
}

static void watch_done(void* self, weir_status_t* take_status, weir_rpc_buffer_t* take_message) {
  watch_t* watch = self;
  weir_collectives_t* owner = watch->owner;
  weir_mutex_lock(&owner->mu);
  watch_t** place = &owner->watches;
  while (*place != watch) place = &(*place)->next;
  *place = watch->next;
  bool is_over = watch->is_over;
  weir_mutex_unlock(&owner->mu);
  if (!is_over && says_gone(take_status)) {
    weir_status_t* status =
        WEIR_STATUS(UNAVAILABLE, "Collective ops is aborted by: task %s is gone: %s", watch->task,
                    weir_status_message(take_status));
    weir_hub_lose(owner->hub, weir_view_of(watch->task), status);
    weir_status_destroy(status);
  }
  weir_status_destroy(take_status);
  weir_rpc_buffer_release(take_message);
  watch_unref(watch);
}

static weir_rpc_message_t* watch_request(const char* device, uint64_t incarnation) {
  weir_strbuf_t key = {0}, request = {0};
  weir_strbuf_printf(&key, "%s;%016llx;%s;collective watch;0:0", device,
                     (unsigned long long)incarnation, device);
  weir_wire_put_int(&request, RECV_TENSOR_REQUEST_STEP_ID, (int64_t)(weir_task_random() >> 1));
  weir_wire_put_bytes(&request, RECV_TENSOR_REQUEST_RENDEZVOUS_KEY, key.data, key.size);
  weir_wire_put_int(&request, RECV_TENSOR_REQUEST_REQUEST_ID, (int64_t)(weir_task_random() >> 1));
  weir_strbuf_free(&key);
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_rpc_message_append_strbuf(message, &request);
  return message;
}

// Puts a new watch of |task| into the list. NULL: there is one already, or no memory.
static watch_t* add_watch(weir_collectives_t* self, weir_view_t task) {
  watch_t* watch = weir_calloc(1, sizeof(*watch) + task.size + 1);
  if (!watch) return NULL;
  memcpy(watch->task, task.data, task.size);
  watch->owner = self;
  weir_ref_init(&watch->ref);
  weir_ref_inc(&watch->ref, 1);
  weir_mutex_lock(&self->mu);
  const watch_t* other = self->watches;
  while (other && (other->is_over || !weir_view_is(task, other->task))) other = other->next;
  if (!other) {
    watch->next = self->watches;
    self->watches = watch;
  }
  weir_mutex_unlock(&self->mu);
  if (!other) return watch;
  weir_free(watch);
  return NULL;
}

static void end_watches(weir_collectives_t* self) {
  weir_mutex_lock(&self->mu);
  for (watch_t* watch = self->watches; watch; watch = watch->next) {
    watch->is_over = true;
    if (watch->request) weir_rpc_request_cancel(watch->request);  // its end comes later, elsewhere
  }
  weir_mutex_unlock(&self->mu);
}

void weir_collectives_watch(void* arg, const char* device, uint64_t incarnation) {
  weir_collectives_t* self = arg;
  if (!device) {
    end_watches(self);
    return;
  }
  weir_view_t task = weir_task_of_device(weir_view_of(device));
  weir_rpc_channel_t* channel = NULL;
  weir_rpc_request_t* request = NULL;
  if (weir_view_is(task, self->task->name)) return;
  weir_status_t* status = weir_task_channel(self->task, NULL, task, &channel);
  watch_t* watch = status ? NULL : add_watch(self, task);
  weir_status_destroy(status);  // a name that is not of the cluster: there is nobody to be watched
  if (!watch) return;
  weir_rpc_channel_call_async(channel, RECV_TENSOR, watch_request(device, incarnation), NULL,
                              watch_done, watch, &request);
  weir_mutex_lock(&self->mu);
  watch->request = request;
  bool is_over = watch->is_over;
  weir_mutex_unlock(&self->mu);
  if (is_over) weir_rpc_request_cancel(request);
  watch_unref(watch);
}
