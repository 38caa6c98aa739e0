// waiter.c — Lists of kernels that wait.
#include "ops/queue/waiter.h"

static void append(weir_waiters_t* list, weir_waiter_t* waiter) {
  waiter->next = NULL;
  waiter->prev = list->tail;
  if (list->tail) {
    list->tail->next = waiter;
  } else {
    list->head = waiter;
  }
  list->tail = waiter;
}

static void take_out(weir_waiters_t* list, weir_waiter_t* waiter) {
  if (waiter->prev) {
    waiter->prev->next = waiter->next;
  } else {
    list->head = waiter->next;
  }
  if (waiter->next) {
    waiter->next->prev = waiter->prev;
  } else {
    list->tail = waiter->prev;
  }
}

void weir_waiters_init(weir_waiters_t* list, weir_mutex_t* mu,
                       void (*flush)(weir_resource_t*, weir_waiters_t*)) {
  *list = (weir_waiters_t){.mu = mu, .flush = flush};
}

void weir_waiter_hold(weir_waiter_t* waiter) {
  take_out(waiter->list, waiter);
  waiter->list = NULL;
}

void weir_waiter_complete(weir_waiter_t* waiter, weir_status_t* take_status,
                          weir_waiters_t* completed) {
  waiter->status = take_status;
  if (waiter->list) weir_waiter_hold(waiter);
  append(completed, waiter);
}

static void cancel_locked(weir_waiters_t* list, weir_waiter_t* waiter, weir_waiters_t* completed) {
  weir_resource_t* owner = waiter->owner;
  if (waiter->abandon) waiter->abandon(waiter);
  weir_waiter_complete(waiter, WEIR_STATUS(CANCELLED, "%s", waiter->cancel_message), completed);
  list->flush(owner, completed);
}

// The step was cancelled. Answering a waiter that was served in the meantime waits for this call to
// end, so |waiter| is there.
static void on_cancel(void* arg) {
  weir_waiter_t* waiter = arg;
  weir_resource_t* owner = weir_resource_retain(waiter->owner);
  weir_mutex_t* mu = waiter->mu;
  weir_waiters_t completed = {0};
  weir_mutex_lock(mu);
  weir_waiters_t* list = waiter->list;
  if (list) {
    waiter->token = 0;  // this very call: not to be waited for
    cancel_locked(list, waiter, &completed);
  }
  weir_mutex_unlock(mu);
  weir_waiters_answer(&completed);
  weir_resource_release(owner);
}

static void answer(void* arg) {
  weir_waiter_t* waiter = arg;
  weir_status_t* status = waiter->status;
  weir_resource_t* owner = waiter->owner;
  weir_done_t done = waiter->done;
  // Outside the resource's mutex: a callback under way on another thread ends first and finds
  // nothing to do.
  (void)weir_cancel_deregister(waiter->ctx->step->cancel, waiter->token);
  if (!status && waiter->finish) status = waiter->finish(waiter);
  if (waiter->destroy) waiter->destroy(waiter);
  weir_free(waiter);
  weir_resource_release(owner);
  weir_done_call(done, status);
}

void weir_waiter_submit(weir_waiters_t* list, weir_waiter_t* take_waiter, weir_resource_t* owner,
                        weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_waiter_t* waiter = take_waiter;
  weir_waiters_t completed = {0};
  waiter->owner = weir_resource_retain(owner);
  waiter->mu = list->mu;
  waiter->ctx = ctx;
  waiter->done = done;
  waiter->token = 0;
  weir_mutex_lock(list->mu);
  append(list, waiter);
  waiter->list = list;
  list->flush(owner, &completed);
  if (waiter->list) {
    waiter->token = weir_cancel_register(ctx->step->cancel, on_cancel, waiter);
    if (waiter->token == 0 && weir_cancel_is_cancelled(ctx->step->cancel)) {
      cancel_locked(list, waiter, &completed);
    }
  }
  bool is_served = waiter->list == NULL;
  weir_mutex_unlock(list->mu);
  if (!is_served) {
    weir_waiters_answer(&completed);
    return;
  }
  // Others first: they may go to other threads, while this kernel's own answer stays here.
  take_out(&completed, waiter);
  weir_waiters_answer(&completed);
  answer(waiter);
}

// Waiters still to be answered by this thread, while an answer is under way further up its stack.
static _Thread_local weir_waiters_t deferred;
static _Thread_local bool is_answering;

void weir_waiters_answer(weir_waiters_t* completed) {
  while (completed->head) {
    weir_waiter_t* waiter = completed->head;
    take_out(completed, waiter);
    append(&deferred, waiter);
  }
  if (is_answering) return;
  is_answering = true;
  while (deferred.head) {
    weir_waiter_t* waiter = deferred.head;
    take_out(&deferred, waiter);
    weir_pool_t* pool = waiter->ctx->step->inter_pool;
    if (pool) {
      weir_pool_submit(pool, answer, waiter);
    } else {
      answer(waiter);
    }
  }
  is_answering = false;
}
