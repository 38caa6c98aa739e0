// rendezvous.c — The rendezvous within one process: queues of values and of receivers, by key.
#include "op/rendezvous.h"

#include "base/alloc.h"
#include "base/map.h"
#include "base/outcome.h"

typedef struct local_t local_t;

// A value that waits for its receiver, or a receiver that waits for its value.
typedef struct item_t {
  struct item_t* next;
  bool is_waiter;
  // A value.
  weir_tensor_t* tensor;
  bool is_dead;
  // A receiver.
  local_t* owner;
  weir_view_t key;            // of the queue it stands in; owned
  weir_cancel_t* cancel;      // may be NULL
  weir_cancel_token_t token;  // 0: not registered
  bool is_queued;             // guarded by owner->mu; who clears it frees the item
  weir_recv_done_fn_t done;
  void* arg;
} item_t;

// Never holds values and receivers at once.
typedef struct queue_t {
  item_t* head;
  item_t** tail;
} queue_t;

struct local_t {
  weir_rendezvous_t base;
  weir_mutex_t mu;
  weir_map_t queues;       // guarded by mu; key → queue_t, never empty
  weir_status_t* aborted;  // guarded by mu
};

weir_rendezvous_t* weir_rendezvous_retain(weir_rendezvous_t* rendezvous) {
  if (rendezvous) weir_ref_inc(&rendezvous->ref, 1);
  return rendezvous;
}

void weir_rendezvous_release(weir_rendezvous_t* rendezvous) {
  if (rendezvous && weir_ref_dec(&rendezvous->ref)) rendezvous->vtable->destroy(rendezvous);
}

// ---- waiting ----

typedef struct wait_t {
  weir_outcome_t outcome;
  weir_tensor_t* tensor;
} wait_t;

static void wait_done(void* arg, weir_status_t* take_status, weir_tensor_t* take_tensor,
                      bool is_dead) {
  wait_t* wait = arg;
  if (!take_status && is_dead)
    take_status = WEIR_STATUS(INVALID_ARGUMENT, "the value to fetch is on a branch not taken");
  wait->tensor = take_tensor;
  weir_outcome_set(&wait->outcome, take_status);
}

weir_status_t* weir_rendezvous_wait(weir_rendezvous_t* rendezvous, weir_view_t key,
                                    weir_cancel_t* cancel, weir_tensor_t** out_tensor) {
  wait_t wait = {.tensor = NULL};
  weir_outcome_init(&wait.outcome);
  rendezvous->vtable->recv_async(rendezvous, key, cancel, wait_done, &wait);
  weir_status_t* status = weir_outcome_wait(&wait.outcome);
  if (status) weir_tensor_release(wait.tensor);
  else *out_tensor = wait.tensor;
  return status;
}

// ---- queues ----

static weir_status_t* push_locked(local_t* self, weir_view_t key, item_t* item)
    WEIR_REQUIRES(self->mu) {
  queue_t* queue = weir_map_find(&self->queues, key);
  if (!queue) {
    queue = weir_malloc(sizeof(*queue));
    if (!queue) return weir_out_of_memory();
    queue->head = NULL;
    queue->tail = &queue->head;
    weir_status_t* status = weir_map_put(&self->queues, key, queue);
    if (status) {
      weir_free(queue);
      return status;
    }
  }
  item->next = NULL;
  *queue->tail = item;
  queue->tail = &item->next;
  return NULL;
}

// Takes |item| (NULL: the first) out of the queue of |key|; a queue that runs empty goes.
static item_t* unlink_locked(local_t* self, weir_view_t key, item_t* item) WEIR_REQUIRES(self->mu) {
  queue_t* queue = weir_map_find(&self->queues, key);
  if (!queue) return NULL;
  item_t** at = &queue->head;
  while (item && *at && *at != item) at = &(*at)->next;
  item_t* found = *at;
  if (!found) return NULL;
  *at = found->next;
  if (!*at) queue->tail = at;
  found->is_queued = false;
  if (!queue->head) {
    weir_map_remove(&self->queues, key);
    weir_free(queue);
  }
  return found;
}

// The first of the queue when it is of the kind asked for.
static item_t* pop_locked(local_t* self, weir_view_t key, bool is_waiter) WEIR_REQUIRES(self->mu) {
  queue_t* queue = weir_map_find(&self->queues, key);
  if (!queue || queue->head->is_waiter != is_waiter) return NULL;
  return unlink_locked(self, key, NULL);
}

static void item_free(item_t* item) {
  weir_tensor_release(item->tensor);
  weir_free((char*)(uintptr_t)item->key.data);
  weir_free(item);
}

// Hands the waiter to a receiver that was taken out of its queue. No lock is held; the item is
// gone afterwards.
static void deliver(item_t* waiter, weir_status_t* take_status, weir_tensor_t* take_tensor,
                    bool is_dead) {
  // Waits for a cancellation that is looking for the item just now: it will not find it queued.
  if (waiter->token) weir_cancel_deregister(waiter->cancel, waiter->token);
  weir_recv_done_fn_t done = waiter->done;
  void* arg = waiter->arg;
  item_free(waiter);
  done(arg, take_status, take_tensor, is_dead);
}

// ---- the interface ----

static weir_status_t* local_send(weir_rendezvous_t* base, weir_view_t key, weir_tensor_t* tensor,
                                 bool is_dead) {
  local_t* self = (local_t*)base;
  item_t* value = weir_calloc(1, sizeof(*value));
  if (!value) return weir_out_of_memory();
  value->tensor = weir_tensor_retain(tensor);
  value->is_dead = is_dead;
  weir_status_t* status = NULL;
  item_t* waiter = NULL;
  weir_mutex_lock(&self->mu);
  if (self->aborted) {
    status = weir_status_copy(self->aborted);
  } else {
    waiter = pop_locked(self, key, true);
    if (!waiter) status = push_locked(self, key, value);
  }
  weir_mutex_unlock(&self->mu);
  if (waiter) {
    weir_tensor_t* moved = value->tensor;
    value->tensor = NULL;
    deliver(waiter, NULL, moved, is_dead);
  }
  if (waiter || status) item_free(value);
  return status;
}

static void on_cancel(void* arg) {
  item_t* waiter = arg;
  local_t* self = waiter->owner;
  weir_mutex_lock(&self->mu);
  bool is_ours = waiter->is_queued;
  if (is_ours) unlink_locked(self, waiter->key, waiter);
  weir_mutex_unlock(&self->mu);
  if (!is_ours) return;  // being delivered: that thread waits for this call and frees the item
  waiter->token = 0;     // the registration is used up
  deliver(waiter, WEIR_STATUS(CANCELLED, "RecvAsync is cancelled."), NULL, false);
}

static item_t* waiter_create(local_t* self, weir_view_t key, weir_cancel_t* cancel,
                             weir_recv_done_fn_t done, void* arg) {
  item_t* waiter = weir_calloc(1, sizeof(*waiter));
  if (!waiter) return NULL;
  char* text = weir_strndup(key.data ? key.data : "", key.size);
  if (!text) {
    weir_free(waiter);
    return NULL;
  }
  waiter->key = weir_view(text, key.size);
  waiter->is_waiter = true;
  waiter->owner = self;
  waiter->cancel = cancel;
  waiter->done = done;
  waiter->arg = arg;
  return waiter;
}

// Puts a receiver in its queue, registered for cancellation; an error when it must not wait.
static weir_status_t* enqueue_waiter_locked(local_t* self, weir_view_t key, weir_cancel_t* cancel,
                                            weir_recv_done_fn_t done, void* arg)
    WEIR_REQUIRES(self->mu) {
  item_t* waiter = waiter_create(self, key, cancel, done, arg);
  if (!waiter) return weir_out_of_memory();
  weir_status_t* status = push_locked(self, waiter->key, waiter);
  if (status) {
    item_free(waiter);
    return status;
  }
  waiter->is_queued = true;
  // Under our lock, so that a callback that fires at once finds the token stored.
  waiter->token = weir_cancel_register(cancel, on_cancel, waiter);
  if (waiter->token || !cancel) return NULL;
  status = weir_cancel_is_cancelled(cancel) ? WEIR_STATUS(CANCELLED, "RecvAsync is cancelled.")
                                            : weir_out_of_memory();
  unlink_locked(self, waiter->key, waiter);
  item_free(waiter);
  return status;
}

static void local_recv_async(weir_rendezvous_t* base, weir_view_t key, weir_cancel_t* cancel,
                             weir_recv_done_fn_t done, void* arg) {
  local_t* self = (local_t*)base;
  weir_status_t* status = NULL;
  item_t* value = NULL;
  weir_mutex_lock(&self->mu);
  if (self->aborted) {
    status = weir_status_copy(self->aborted);
  } else {
    value = pop_locked(self, key, false);
    if (!value) status = enqueue_waiter_locked(self, key, cancel, done, arg);
  }
  weir_mutex_unlock(&self->mu);
  if (value) {
    weir_tensor_t* tensor = value->tensor;
    bool is_dead = value->is_dead;
    value->tensor = NULL;
    item_free(value);
    done(arg, NULL, tensor, is_dead);
  } else if (status) {
    done(arg, status, NULL, false);
  }
}

// Takes any item out of the table; NULL when it is empty.
static item_t* pop_any(local_t* self) {
  item_t* item = NULL;
  weir_mutex_lock(&self->mu);
  size_t position = 0;
  weir_map_entry_t* entry = weir_map_next(&self->queues, &position);
  if (entry) item = unlink_locked(self, entry->key, NULL);
  weir_mutex_unlock(&self->mu);
  return item;
}

static void fail_all(local_t* self, const weir_status_t* status) {
  item_t* item = NULL;
  while ((item = pop_any(self))) {
    if (item->is_waiter) {
      deliver(item, weir_status_copy(status), NULL, false);
    } else {
      item_free(item);
    }
  }
}

static void local_abort(weir_rendezvous_t* base, const weir_status_t* status) {
  local_t* self = (local_t*)base;
  weir_rendezvous_retain(base);  // a receiver's continuation may drop the last other reference
  weir_mutex_lock(&self->mu);
  if (!self->aborted) {
    self->aborted =
        status ? weir_status_copy(status) : WEIR_STATUS(CANCELLED, "the rendezvous was aborted");
  }
  weir_status_t* first = weir_status_copy(self->aborted);
  weir_mutex_unlock(&self->mu);
  fail_all(self, first);
  weir_status_destroy(first);
  weir_rendezvous_release(base);
}

static void local_destroy(weir_rendezvous_t* base) {
  local_t* self = (local_t*)base;
  weir_status_t* status = WEIR_STATUS(CANCELLED, "the rendezvous is gone");
  fail_all(self, status);
  weir_status_destroy(status);
  weir_status_destroy(self->aborted);
  weir_map_free(&self->queues);
  weir_mutex_destroy(&self->mu);
  weir_free(self);
}

static const weir_rendezvous_vtable_t local_vtable = {
    .destroy = local_destroy,
    .send = local_send,
    .recv_async = local_recv_async,
    .abort = local_abort,
};

weir_status_t* weir_local_rendezvous_create(weir_rendezvous_t** out_rendezvous) {
  local_t* self = weir_calloc(1, sizeof(*self));
  if (!self) return weir_out_of_memory();
  self->base.vtable = &local_vtable;
  weir_ref_init(&self->base.ref);
  weir_mutex_init(&self->mu);
  self->queues.owns_keys = true;
  *out_rendezvous = &self->base;
  return NULL;
}
