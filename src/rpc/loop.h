// loop.h — What the io threads give to the rest of src/rpc/: tasks, timers, file descriptors, and
// the memory budget of messages being received.
//
// Everything but posting tasks and the budget is thread-confined to the io thread in question.
#ifndef WEIR_RPC_LOOP_H_
#define WEIR_RPC_LOOP_H_

#include "rpc/rpc.h"

typedef struct weir_rpc_thread_t weir_rpc_thread_t;

// ---- tasks: work for an io thread, embedded in what it is about. A task is queued at most once at
// a time; it may be freed or queued again from within |run|. ----
typedef struct weir_rpc_task_t weir_rpc_task_t;
struct weir_rpc_task_t {
  weir_rpc_task_t* next;
  void (*run)(weir_rpc_task_t* task);
};
void weir_rpc_post(weir_rpc_thread_t* thread, weir_rpc_task_t* task);  // thread-safe

// Runs |fn|(|arg|) on |thread| and waits for it. Not on an io thread.
void weir_rpc_run_on(weir_rpc_thread_t* thread, void (*fn)(void* arg), void* arg);

// ---- timers ----
typedef struct weir_rpc_timer_t weir_rpc_timer_t;
struct weir_rpc_timer_t {
  int64_t deadline_ns;
  size_t place;  // 1-based place in the thread's heap; 0: not armed
  void (*fire)(weir_rpc_timer_t* timer);
};
// Arms or moves; |fire| runs once, with the timer disarmed. False when memory is exhausted.
bool weir_rpc_timer_set(weir_rpc_thread_t* thread, weir_rpc_timer_t* timer, int64_t deadline_ns);
void weir_rpc_timer_clear(weir_rpc_thread_t* thread, weir_rpc_timer_t* timer);

// ---- file descriptors ----
typedef struct weir_rpc_watch_t weir_rpc_watch_t;
struct weir_rpc_watch_t {
  int fd;
  uint32_t events;  // EPOLLIN, EPOLLOUT; level-triggered
  void (*ready)(weir_rpc_watch_t* watch, uint32_t events);
};
WEIR_MUST_USE weir_status_t* weir_rpc_watch_add(weir_rpc_thread_t* thread, weir_rpc_watch_t* watch);
void weir_rpc_watch_change(weir_rpc_thread_t* thread, weir_rpc_watch_t* watch, uint32_t events);
// After it returns, |ready| is not called any more, not even for events already fetched.
void weir_rpc_watch_remove(weir_rpc_thread_t* thread, weir_rpc_watch_t* watch);

// ---- deferred work: run once at the end of the current turn, after events, tasks and timers, so
// that all that a turn has to send leaves in one write. ----
typedef struct weir_rpc_deferred_t weir_rpc_deferred_t;
struct weir_rpc_deferred_t {
  weir_rpc_deferred_t* next;
  bool is_queued;
  void (*run)(weir_rpc_deferred_t* deferred);
};
void weir_rpc_defer(weir_rpc_thread_t* thread, weir_rpc_deferred_t* deferred);
void weir_rpc_defer_remove(weir_rpc_thread_t* thread, weir_rpc_deferred_t* deferred);

// ---- threads ----
weir_rpc_thread_t* weir_rpc_loop_thread(weir_rpc_loop_t* loop, int index);
int weir_rpc_loop_thread_count(const weir_rpc_loop_t* loop);
weir_rpc_thread_t* weir_rpc_loop_pick_thread(weir_rpc_loop_t* loop);  // thread-safe; in turns
weir_rpc_loop_t* weir_rpc_thread_loop(weir_rpc_thread_t* thread);
bool weir_rpc_on_thread(const weir_rpc_thread_t* thread);  // is the caller this io thread?
bool weir_rpc_on_any_thread(void);                         // is the caller some io thread?
// Scratch for one read from a socket, shared by the connections of the thread.
#define WEIR_RPC_SPILL_SIZE ((size_t)128 << 10)
uint8_t* weir_rpc_thread_spill(weir_rpc_thread_t* thread);

// ---- memory budget ----
typedef struct weir_rpc_waiter_t weir_rpc_waiter_t;
struct weir_rpc_waiter_t {
  weir_rpc_waiter_t* next;
  weir_rpc_waiter_t* prev;
  uint64_t size;
  bool is_waiting;
  void (*granted)(weir_rpc_waiter_t* waiter);  // |size| bytes are reserved now
};
typedef enum weir_rpc_budget_t {
  WEIR_RPC_BUDGET_GRANTED,
  WEIR_RPC_BUDGET_WAITING,  // |granted| will be called on |thread|
  WEIR_RPC_BUDGET_NEVER,    // more than there is in all
} weir_rpc_budget_t;
weir_rpc_budget_t weir_rpc_budget_reserve(weir_rpc_thread_t* thread, weir_rpc_waiter_t* waiter,
                                          uint64_t size);
void weir_rpc_budget_forget(weir_rpc_thread_t* thread, weir_rpc_waiter_t* waiter);  // stops waiting
void weir_rpc_budget_return(weir_rpc_loop_t* loop, uint64_t size);                  // thread-safe
bool weir_rpc_budget_is_short(const weir_rpc_loop_t* loop);  // somebody waits; thread-safe
int64_t weir_rpc_stall_timeout_ns(const weir_rpc_loop_t* loop);
uint64_t weir_rpc_budget_limit(const weir_rpc_loop_t* loop);  // 0: none

#endif  // WEIR_RPC_LOOP_H_
