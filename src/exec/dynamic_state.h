// dynamic_state.h — The memory of a running step: runs, activations, frames, iterations.
#ifndef WEIR_EXEC_DYNAMIC_STATE_H_
#define WEIR_EXEC_DYNAMIC_STATE_H_

#include "exec/run.h"

typedef struct run_t run_t;
typedef struct activation_t activation_t;
typedef struct run_frame_t run_frame_t;
typedef struct iteration_t iteration_t;

// What a node of one iteration still waits for.
typedef struct pending_t {
  int32_t pending;
  int32_t dead;  // dead inputs so far
} pending_t;

// One turn of a loop, or the single one of the whole graph.
struct iteration_t {
  run_frame_t* frame;
  int64_t number;
  int32_t outstanding_ops;     // ready, running, or waiting to be propagated
  int32_t outstanding_frames;  // inner loops started from here
  run_frame_t* children;       // inner loops started from here, live ones
  iteration_t* next;           // in the frame's list of live iterations, or in the free list
  weir_value_t* slots;
  pending_t* pending;
};

// A value kept for later: a loop invariant, or a NextIteration that waits for room.
typedef struct held_t {
  int32_t node;
  weir_value_t value;
  bool is_dead;
} held_t;

// A frame: one execution of a loop.
struct run_frame_t {
  activation_t* activation;
  const weir_plan_frame_t* info;
  int32_t index;
  int64_t id;
  run_frame_t* parent;
  iteration_t* parent_iteration;
  run_frame_t* next_sibling;
  iteration_t* first;  // live iterations, oldest first
  iteration_t* last;
  int64_t iteration_count;  // number of the newest
  int32_t live_iterations;
  int32_t pending_enters;  // Enter nodes still to come
  held_t* invariants;
  size_t invariant_count, invariant_capacity;
  held_t* next_roots;  // NextIteration values that wait for room
  size_t next_root_count, next_root_capacity;
  int32_t* dead_exits;
  size_t dead_exit_count, dead_exit_capacity;
};

// One plan being executed: the step itself, or a function it called.
struct activation_t {
  run_t* run;
  weir_plan_t* plan;
  run_frame_t* root;
  weir_tensor_t** rets;
  weir_done_t done;       // called when all of it is through
  weir_status_t* status;  // what |done| will be told; once it is through
  int64_t size;           // bytes it is charged with
  int32_t in_flight;      // kernels running, synchronous or not
  activation_t* next;     // in the run's list of live ones, or of those that are through
  activation_t* previous;
  iteration_t** free_iterations;  // by static frame
  int64_t outstanding_ops;        // of all its iterations
};

typedef struct ready_t {
  activation_t* activation;
  iteration_t* iteration;
  int32_t node;
  bool is_dead;
  int64_t since_ns;  // when it became ready; only in traced runs
} ready_t;

struct run_t {
  weir_step_t step;  // first: a kernel's ctx->step leads here
  const weir_run_params_t* params;
  weir_run_params_t own_params;      // what |params| points to when nobody waits for the run
  weir_done_t finished;              // nobody waits: called at the end; fn NULL: a thread does
  weir_cancel_token_t cancel_token;  // of on_cancel
  weir_mutex_t mu;                   // guards all below
  weir_cond_t wake;                  // the calling thread waits on it
  ready_t* ready;                    // a stack
  size_t ready_count, ready_capacity;
  activation_t* activations;
  activation_t* through;   // their callbacks are still to be called
  weir_status_t* status;   // the first error
  bool is_aborted;         // no further node starts
  bool is_cancel_started;  // the step's cancellation has been started
  bool has_passed;         // the gate, or there is none: nodes may write
  bool is_done;
  bool is_on_pool;  // its end was handed to a pool thread, out of a cancellation
  bool is_ended;    // nobody waits, and the last thread has left: only |mu| may still be touched
  int helpers;      // threads at work for this run, but for one that waits: it ends when they left
  int64_t next_frame_id;
};

// dynamic_state.c: allocation. All return NULL when memory is exhausted.
iteration_t* weir_iteration_create(run_frame_t* frame, int64_t number);
void weir_iteration_recycle(iteration_t* iteration);
run_frame_t* weir_frame_create(activation_t* activation, int32_t index, run_frame_t* parent,
                               iteration_t* parent_iteration);
void weir_frame_destroy(run_frame_t* frame);
activation_t* weir_activation_create(run_t* run, weir_plan_t* plan, weir_tensor_t** rets,
                                     weir_done_t done);
// Takes it out of the run's list of live ones.
void weir_activation_unlink(activation_t* activation);
void weir_activation_destroy(activation_t* activation);
// Whether the calls under way in this process leave room for one of |plan|.
bool weir_activation_fits(const weir_plan_t* plan);

// propagate.c: called with run->mu held.
// The node at |item| is through, with |outputs| (NULL when dead): hands them on, starts and ends
// iterations and frames. What is left in |outputs| is the caller's to release.
void weir_propagate(const ready_t* item, weir_value_t* outputs, bool is_dead);
// Pushes the roots and hands out the arguments.
void weir_propagate_start(activation_t* activation, weir_tensor_t* const* args);
// Whether nothing of the activation is left to do.
bool weir_activation_is_through(const activation_t* activation);
// Puts a node that was taken back among those that are ready.
void weir_run_put_back(run_t* run, const ready_t* item);
// Records an error (the first one wins) and stops further nodes; the caller cancels the step.
// Consumes |take_status|.
void weir_run_fail(run_t* run, weir_status_t* take_status);

#endif  // WEIR_EXEC_DYNAMIC_STATE_H_
