// budget.c — The memory that messages being received may take, shared by the threads of a loop.
//
// Waiters are kept by thread, first come first served there. Whoever returns memory wakes the
// threads that have any. A waiter counts itself before its last try, and the returner subtracts
// before it looks at the count: one of the two sees the other.
#include "rpc/loop_internal.h"

static bool try_reserve(weir_rpc_loop_t* loop, uint64_t size) {
  if (!loop->budget_limit) return true;
  uint64_t used = atomic_load(&loop->budget_used);
  do {
    if (size > loop->budget_limit - used) return false;
  } while (!atomic_compare_exchange_weak(&loop->budget_used, &used, used + size));
  return true;
}

static void unlink_waiter(weir_rpc_thread_t* thread, weir_rpc_waiter_t* waiter) {
  if (waiter->prev) waiter->prev->next = waiter->next;
  else thread->waiters = waiter->next;
  if (waiter->next) waiter->next->prev = waiter->prev;
  else thread->last_waiter = waiter->prev;
  waiter->is_waiting = false;
  atomic_fetch_sub(&thread->loop->budget_waiters, 1);
}

static void grant_waiters(weir_rpc_task_t* task) {
  weir_rpc_thread_t* thread =
      (weir_rpc_thread_t*)((char*)task - offsetof(weir_rpc_thread_t, retry));
  weir_mutex_lock(&thread->mu);
  thread->is_retry_posted = false;
  weir_mutex_unlock(&thread->mu);
  while (thread->waiters && try_reserve(thread->loop, thread->waiters->size)) {
    weir_rpc_waiter_t* waiter = thread->waiters;
    unlink_waiter(thread, waiter);
    waiter->granted(waiter);
  }
}

void weir_rpc_budget_thread_init(weir_rpc_thread_t* thread) { thread->retry.run = grant_waiters; }

static void wake_waiters(weir_rpc_thread_t* thread) {
  weir_mutex_lock(&thread->mu);
  bool must_post = !thread->is_retry_posted;
  thread->is_retry_posted = true;
  weir_mutex_unlock(&thread->mu);
  if (must_post) weir_rpc_post(thread, &thread->retry);
}

weir_rpc_budget_t weir_rpc_budget_reserve(weir_rpc_thread_t* thread, weir_rpc_waiter_t* waiter,
                                          uint64_t size) {
  weir_rpc_loop_t* loop = thread->loop;
  if (!loop->budget_limit) return WEIR_RPC_BUDGET_GRANTED;
  if (size > loop->budget_limit) return WEIR_RPC_BUDGET_NEVER;
  if (!thread->waiters && try_reserve(loop, size)) return WEIR_RPC_BUDGET_GRANTED;
  waiter->size = size;
  waiter->is_waiting = true;
  waiter->next = NULL;
  waiter->prev = thread->last_waiter;
  if (thread->last_waiter) thread->last_waiter->next = waiter;
  else thread->waiters = waiter;
  thread->last_waiter = waiter;
  atomic_fetch_add(&loop->budget_waiters, 1);
  wake_waiters(thread);  // memory may have been returned since the try above
  return WEIR_RPC_BUDGET_WAITING;
}

void weir_rpc_budget_forget(weir_rpc_thread_t* thread, weir_rpc_waiter_t* waiter) {
  if (!waiter->is_waiting) return;
  unlink_waiter(thread, waiter);
  if (thread->waiters) wake_waiters(thread);  // a smaller one may have stood behind it
}

void weir_rpc_budget_return(weir_rpc_loop_t* loop, uint64_t size) {
  if (!loop->budget_limit || !size) return;
  atomic_fetch_sub(&loop->budget_used, size);
  if (atomic_load(&loop->budget_waiters) == 0) return;
  for (int i = 0; i < loop->thread_count; ++i) wake_waiters(&loop->threads[i]);
}

uint64_t weir_rpc_budget_limit(const weir_rpc_loop_t* loop) { return loop->budget_limit; }

bool weir_rpc_budget_is_short(const weir_rpc_loop_t* loop) {
  return atomic_load(&loop->budget_waiters) > 0;
}

int64_t weir_rpc_stall_timeout_ns(const weir_rpc_loop_t* loop) { return loop->stall_timeout_ns; }
