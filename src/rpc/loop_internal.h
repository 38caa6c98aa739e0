// loop_internal.h — The structs behind loop.h, for loop.c and budget.c.
#ifndef WEIR_RPC_LOOP_INTERNAL_H_
#define WEIR_RPC_LOOP_INTERNAL_H_

#include <sys/epoll.h>

#include "rpc/loop.h"

#define WEIR_RPC_EVENT_COUNT 64

struct weir_rpc_thread_t {
  weir_rpc_loop_t* loop;
  pthread_t id;
  bool is_started;
  int epoll_fd;
  weir_rpc_watch_t wake;  // an eventfd
  weir_rpc_task_t stop;

  weir_mutex_t mu;
  weir_rpc_task_t* tasks;      // guarded by mu
  weir_rpc_task_t* last_task;  // guarded by mu
  bool is_asleep;              // guarded by mu: a post has to write to |wake|
  bool is_retry_posted;        // guarded by mu: |retry| is queued

  // The rest is confined to the thread itself.
  bool is_stopping;
  weir_rpc_timer_t** timers;  // heap
  size_t timer_count, timer_capacity;
  weir_rpc_deferred_t* deferred;
  struct epoll_event events[WEIR_RPC_EVENT_COUNT];  // fetched; of these
  int event_next, event_count;                      // [next, count) are still to be handled
  weir_rpc_waiter_t* waiters;                       // for memory, first come first
  weir_rpc_waiter_t* last_waiter;
  weir_rpc_task_t retry;  // grants what fits now
  uint8_t* spill;
};

struct weir_rpc_loop_t {
  int spin_us;
  int64_t stall_timeout_ns;
  uint64_t budget_limit;         // 0: none
  _Atomic uint64_t budget_used;  // reserved bytes
  atomic_int budget_waiters;     // on all threads
  atomic_uint turn;              // of weir_rpc_loop_pick_thread
  int thread_count;
  weir_rpc_thread_t threads[];
};

void weir_rpc_budget_thread_init(weir_rpc_thread_t* thread);

#endif  // WEIR_RPC_LOOP_INTERNAL_H_
