// replicas.h — Replicated training: many processes run the same program, each with a worker of its
// own; variables live on parameter servers, which all of them share.
//
//   weir_scope_t* s = weir_scope_replica(weir_scope_create(graph), ps_count, worker);
//   …                                                     // the model, as on one machine
//   weir_sync_replicas_t sync = weir_sync_replicas(s, &adam, loss, worker, worker_count,
//                                                  .needed = worker_count - backups);
//   weir_edge_t missing = weir_uninitialized(s);
//   weir_node_t* init = weir_initializer(s);              // after the step was built
//   …                                                     // finish the scope, open the session
//   if (is_chief) check(weir_sync_replicas_lead(&sync, session, coordinator, 10000));
//   check(weir_fit(session, sync.step, loss, NULL, .init = init,
//                  .start = is_chief ? sync.chief_start : sync.begin,
//                  .uninitialized = missing, .is_worker = !is_chief,
//                  .global_step = sync.global_step, .saver = saver, …));  // until it is closed
//
// Servers may be lost and come back, also without their state, and so may any of the processes: the
// loop waits and goes on, the chief's from its latest checkpoint where state is missing.
//
// Every process must build the same graph but for the number of its worker: what they share, they
// find by name. One worker is the chief: it initialises, and leads synchronous training. With
// weir_lease, or weir_election, that may be any of them, and is another when it dies.
// Asynchronous training needs no more than the scope: weir_minimize instead of weir_sync_replicas,
// and every worker runs the step at its own pace.
//
// In one process, with several GPUs, weir_towers does what a cluster would do with a worker each.
//
// All of this is user-level code over public headers: graphs of accumulators and queues. Threading:
// building is thread-confined, as scopes are; the rest is thread-safe, as sessions are.
#ifndef WEIR_REPLICAS_H_
#define WEIR_REPLICAS_H_

#include "weir/input.h"
#include "weir/lease.h"
#include "weir/optimizer.h"
#include "weir/scope.h"
#include "weir/session.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- where things go ----

// Which parameter server a variable goes to.
typedef enum weir_ps_choice_t {
  WEIR_PS_ROUND_ROBIN = 0,  // one after the other, in the order in which variables are made
  WEIR_PS_BY_SIZE = 1,      // the one with the fewest bytes so far; unknown dimensions count as 1
} weir_ps_choice_t;

typedef struct weir_scope_replica_options_t {
  int reserved;
  weir_ps_choice_t choice;
  const char* ps_job;         // NULL: "ps"
  const char* worker_job;     // NULL: "worker"
  const char* worker_device;  // on the worker's task, "/device:GPU:0"; NULL: any
} weir_scope_replica_options_t;
// The same scope, but variables are dealt out to /job:ps/task:0 … |ps_count| - 1 and everything
// else is on /job:worker/task:|worker|. What optimizers keep beside a variable is where the
// variable is, and so is the step that updates it. With |ps_count| 0 the scope stays as it is, so
// that the same program runs in one process, too. INVALID_ARGUMENT sticks for negative numbers.
WEIR_API weir_scope_t* weir_scope_replica_with(weir_scope_t* scope, int ps_count, int worker,
                                               const weir_scope_replica_options_t* options);
#define weir_scope_replica(scope, ps_count, worker, ...) \
  weir_scope_replica_with(scope, ps_count, worker,       \
                          &(const weir_scope_replica_options_t){0, __VA_ARGS__})

// ---- waiting for the chief ----

// Names of the variables made so far on the root scope that have no value yet: a string vector.
// Whoever waits by it may take a step when it is empty: a chief that finds some without a value
// (weir_fit, weir_wait_initialized) takes the values of all before it gives them new ones.
WEIR_API weir_edge_t weir_uninitialized(weir_scope_t* scope);

typedef struct weir_wait_options_t {
  int reserved;
  weir_node_t* init;        // run once if a variable has no value: the chief's. NULL: only waits
  int64_t timeout_ms;       // of everything; 0: none
  int64_t first_wait_ms;    // before the second look; each pause is twice the one before. 0: 20
  int64_t longest_wait_ms;  // 0: 2000
  weir_coordinator_t* coordinator;  // its stop ends the wait with CANCELLED; NULL: none
} weir_wait_options_t;
// Waits until |uninitialized|, made by weir_uninitialized, is empty. UNAVAILABLE and ABORTED of the
// session (servers that are not there yet, or restart) are waited through. DEADLINE_EXCEEDED names
// what is missing.
WEIR_API WEIR_MUST_USE weir_status_t* weir_wait_initialized_with(
    weir_session_t* session, weir_edge_t uninitialized, const weir_wait_options_t* options);
#define weir_wait_initialized(session, uninitialized, ...) \
  weir_wait_initialized_with(session, uninitialized, &(const weir_wait_options_t){0, __VA_ARGS__})

// ---- synchronous training with backup workers ----

// Step n + 1 of the parameters is step n moved by the mean of the first |needed| gradients that
// workers computed from step n, and of any that came before it was taken; those of the other
// workers come too late and are dropped. So the slowest |worker_count| - |needed| workers delay
// nobody, nor do workers that died.
//
// Each variable has an accumulator beside it, which counts gradients and drops those of older
// steps. Each worker has a queue with the numbers of the steps that the parameters reached; it
// takes the newest, and never computes two gradients from the same step. Once it has been asleep
// for a thousand steps its queue takes no more until it wakes up.
//
// Sparse gradients stay sparse. Their mean counts a row as zero where a worker's gradient lacks it,
// so it is that of dense gradients (SyncReplicasOptimizer divides each row by how many had it).
typedef struct weir_sync_replicas_t {
  // For every worker. |begin| is run once, when variables are initialised, and again by a worker
  // that restarts; |step| then with each batch. It waits for the parameters' next step at its end,
  // and is OUT_OF_RANGE when the chief has ended the training. What layers collected under
  // WEIR_UPDATES runs with it.
  weir_node_t* begin;
  weir_node_t* step;
  weir_edge_t global_step;  // its value

  // For the chief: what weir_sync_replicas_lead runs.
  weir_node_t* chief_begin;  // at first: accumulators and queues learn the global step
  weir_node_t* advance;      // each time: waits for gradients, updates, tells the workers
  weir_node_t* close;        // at the end: workers' steps are OUT_OF_RANGE from now on
  // The chief's |begin|: |chief_begin| before it, since what was restored may have another step. A
  // number is left out each time but the first.
  weir_node_t* chief_start;
  weir_lease_t lease;  // as in the options
} weir_sync_replicas_t;

typedef struct weir_sync_replicas_options_t {
  int reserved;
  int needed;  // gradients that a step takes; 0: one of each worker
  // Sums in the order of workers, not in that in which they are done, so that the same seeds give
  // the same bits. Takes every worker's gradient, and room for each beside the variables.
  bool in_order;
  // As for weir_minimize, but |accumulate| is an error. The global norm is that of the mean.
  // |global_step|: by default weir_global_step.
  weir_minimize_options_t minimize;
  const char* name;    // of nodes, queues and accumulators; NULL: "sync_replicas"
  weir_lease_t lease;  // who has it leads; nothing: who calls weir_sync_replicas_lead
} weir_sync_replicas_options_t;
// Wraps |optimizer|, which is applied by the chief's |advance|, on the devices of the variables.
// Errors stick in |scope|; all nodes are NULL after one.
WEIR_API weir_sync_replicas_t weir_sync_replicas_with(weir_scope_t* scope,
                                                      const weir_optimizer_t* optimizer,
                                                      weir_edge_t loss, int worker,
                                                      int worker_count,
                                                      const weir_sync_replicas_options_t* options);
#define weir_sync_replicas(scope, optimizer, loss, worker, worker_count, ...) \
  weir_sync_replicas_with(scope, optimizer, loss, worker, worker_count,       \
                          &(const weir_sync_replicas_options_t){0, __VA_ARGS__})

// The chief's part, on a thread of |coordinator|: runs |chief_begin|, then |advance| until the
// global step is |last_step| (0: without end) or the coordinator's stop is requested, then |close|.
// Returns once the thread is started; what goes wrong later stops the coordinator, whose join
// returns it. Servers that are lost and variables that have no value (yet) are waited for, up to
// ten minutes; then it leads on from the global step that it finds. |session| must outlive the
// thread: join first. A chief that died may be started again and leads on, leaving out one number;
// until then workers wait. Queues that were closed stay so: another training on the same servers
// needs another name, or weir_session_reset.
WEIR_API WEIR_MUST_USE weir_status_t* weir_sync_replicas_lead(const weir_sync_replicas_t* sync,
                                                              weir_session_t* session,
                                                              weir_coordinator_t* coordinator,
                                                              int64_t last_step);

// ---- several devices of one process ----

// Builds the model for a part of a batch: |inputs| are the parts of what is fed. Returns its loss,
// a mean over the examples. Called once for each device; makes the same variables each time.
typedef weir_edge_t (*weir_tower_fn_t)(weir_scope_t* scope, const weir_edge_t* inputs, void* arg);
typedef struct weir_tower_model_t {
  weir_tower_fn_t build;
  void* arg;
  const weir_edge_t* inputs;  // whole batches; their rows are dealt out evenly
  int input_count;
} weir_tower_model_t;

typedef struct weir_towers_t {
  weir_node_t* start;  // gives all what the first has: to be run when variables have their values,
                       // after the initializer or a checkpoint (weir_fit's |start|)
  weir_node_t* step;
  weir_edge_t loss;  // the mean of all
} weir_towers_t;
// One graph with the model on each of |devices|, "/gpu:0", with variables of its own there; each
// gets its part of a batch, and all apply the mean of all gradients, by |optimizer|. So variables
// stay the same everywhere, and it is the step that one device would take with the whole batch.
// Those of the first have their usual names, those of the others begin with "tower_1/".
//
// Between GPUs the mean is NCCL's, or the host's where there is none; between other devices, and of
// sparse gradients, which stay so, values are copied. |options| as for weir_minimize, but
// |variables|, |accumulate| and |loss_scale| are errors. Errors stick in |scope|; all is NULL then.
WEIR_API weir_towers_t weir_towers_with(weir_scope_t* scope, const weir_optimizer_t* optimizer,
                                        const weir_tower_model_t* model, const char* const* devices,
                                        int device_count, const weir_minimize_options_t* options);
#define weir_towers(scope, optimizer, model, devices, device_count, ...) \
  weir_towers_with(scope, optimizer, model, devices, device_count,       \
                   &(const weir_minimize_options_t){0, __VA_ARGS__})

#ifdef __cplusplus
}
#endif
#endif  // WEIR_REPLICAS_H_
