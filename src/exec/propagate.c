// propagate.c — The rules of dataflow: who becomes ready, what is dead, when iterations and frames
// begin and end.
//
// Everything here runs with the run's mutex held.
//
// A node waits for a number of edges, and is ready when all have come. An edge brings a value, or
// nothing: then it is dead, as everything is that comes out of the untaken side of a Switch. A node
// with a dead input is dead itself and its kernel does not run; deadness flows on like a value, or
// those behind it would wait for ever. A Merge is the one place where it ends: it is ready with its
// first live input, and dead only when all are. Its count says both, in bits: the lowest for the
// one value, the others for control edges, which it waits for in any case.
//
// A loop is a frame, made by the first Enter that comes to an iteration of the frame around it.
// Each turn is an iteration with slots and counts of its own, so that turns may overlap, up to
// parallel_iterations; a NextIteration that finds no room is held until the oldest turn is over.
// Iterations end oldest first: a younger one may still be told something by an older. Loop
// invariants (constant Enters) are kept with the frame and handed to every iteration that starts.
//
// Deadness and loops meet in two rules, both TensorFlow's. A dead NextIteration stops: otherwise a
// loop that has ended would start dead turns for ever. And a dead Exit says nothing until the loop
// is over, since in all but the last turn every Exit is dead; only then is it known that the whole
// loop was dead, and what reads the Exit is told.
//
// The invariant behind the counters: |outstanding_ops| of an iteration is what is ready, running or
// being propagated there, and it is lowered after the node's edges have been delivered. So a count
// of zero means that nothing in the iteration can become ready any more, except by an inner frame
// (|outstanding_frames|) or by an Enter still to come (|pending_enters|).
#include "exec/dynamic_state.h"

void weir_run_fail(run_t* run, weir_status_t* take_status) {
  if (run->status) {
    weir_status_destroy(take_status);
  } else {
    run->status = take_status;
  }
  run->is_aborted = true;
  run->ready_count = 0;
}

// Makes room for one more; false when memory is exhausted, and the run has failed.
static bool grow_ready(run_t* run) {
  if (WEIR_GROW(run->ready, run->ready_capacity, run->ready_count + 1)) return true;
  weir_run_fail(run, weir_out_of_memory());
  return false;
}

void weir_run_put_back(run_t* run, const ready_t* item) {
  if (run->is_aborted) return;
  if (run->ready_count == run->ready_capacity && !grow_ready(run)) return;
  run->ready[run->ready_count++] = *item;
}

static void push_ready(iteration_t* it, const weir_plan_node_t* node, int32_t index, bool is_dead) {
  activation_t* activation = it->frame->activation;
  run_t* run = activation->run;
  ++it->outstanding_ops;
  ++activation->outstanding_ops;
  if (run->is_aborted) return;
  if (WEIR_UNLIKELY(run->ready_count == run->ready_capacity) && !grow_ready(run)) return;
  ready_t* item = &run->ready[run->ready_count++];
  *item = (ready_t){.activation = activation,
                    .iteration = it,
                    .node = index,
                    .is_dead = is_dead && node->role != WEIR_ROLE_CONTROL_TRIGGER};
  if (WEIR_UNLIKELY(run->params->trace != NULL)) item->since_ns = weir_clock_ns();
}

static bool has_value(const weir_value_t* value) { return value->tensor || value->ref; }

static weir_value_t retained(const weir_value_t* value) {
  if (value->tensor) weir_tensor_retain_inline(value->tensor);
  if (value->ref) weir_ref_inc(&value->ref->base.ref, 1);
  return *value;
}

// What one edge carries: a value to share or, for the last edge of a value nobody needs afterwards,
// to move. No value: dead.
typedef struct parcel_t {
  weir_value_t* value;  // NULL: none
  bool may_move;
} parcel_t;

static weir_value_t unpack(parcel_t parcel) {
  if (!parcel.may_move) return retained(parcel.value);
  weir_value_t value = *parcel.value;
  *parcel.value = (weir_value_t){.tensor = NULL, .ref = NULL};
  return value;
}

// Delivers one edge to |node|. A Merge waits in |pending| for one live data input (1) and for its
// control inputs (2 each); it is dead when all data inputs are, or when the Enter of a loop on an
// untaken branch is.
static void deliver_merge(iteration_t* it, const weir_plan_node_t* node,
                          const weir_plan_edge_t* edge, parcel_t parcel,
                          const weir_plan_node_t* producer) {
  pending_t* state = &it->pending[node->local];
  int32_t data_inputs = it->frame->info->data_inputs[node->local];
  bool is_dead = false;
  bool is_ready = false;
  if (edge->slot < 0) {
    state->pending -= 2;
    is_dead = state->dead == data_inputs;
    is_ready = state->pending == 0 || (state->pending == 1 && is_dead);
  } else if (parcel.value && has_value(parcel.value)) {
    if (state->pending & 1) {  // the first live one wins
      it->slots[edge->slot] = unpack(parcel);
      state->pending -= 1;
      is_ready = state->pending == 0;
    }
  } else {
    ++state->dead;
    is_dead = state->dead == data_inputs || producer->is_entry;
    is_ready = state->pending == 1 && is_dead;
  }
  if (is_ready) push_ready(it, node, edge->node, is_dead);
}

static void deliver(iteration_t* it, const weir_plan_node_t* producer, const weir_plan_edge_t* edge,
                    parcel_t parcel, bool is_dead) {
  const weir_plan_node_t* node = &it->frame->activation->plan->nodes[edge->node];
  if (node->role == WEIR_ROLE_MERGE) {
    deliver_merge(it, node, edge, parcel, producer);
    return;
  }
  pending_t* state = &it->pending[node->local];
  bool is_data = edge->slot >= 0;
  if (is_data && parcel.value && has_value(parcel.value)) it->slots[edge->slot] = unpack(parcel);
  else if (is_dead || is_data) ++state->dead;
  if (--state->pending == 0) push_ready(it, node, edge->node, state->dead > 0);
}

// Hands all outputs of a node to their consumers in |it|; |may_move|: the outputs are not needed
// afterwards.
static void deliver_all(iteration_t* it, int32_t index, weir_value_t* outputs, bool is_dead,
                        bool may_move) {
  const weir_plan_t* plan = it->frame->activation->plan;
  const weir_plan_node_t* node = &plan->nodes[index];
  const weir_plan_edge_t* edges = plan->edges + node->first_edge;
  for (int32_t i = 0; i < node->edge_count; ++i) {
    bool is_last = i + 1 >= node->data_edge_count || edges[i + 1].output != edges[i].output;
    parcel_t parcel = {.value = outputs && edges[i].output >= 0 ? &outputs[edges[i].output] : NULL,
                       .may_move = may_move && is_last};
    deliver(it, node, &edges[i], parcel, is_dead);
  }
}

static bool hold(held_t** held, size_t* count, size_t* capacity, held_t item) {
  if (!WEIR_GROW(*held, *capacity, *count + 1)) return false;
  (*held)[(*count)++] = item;
  return true;
}

// ---- loops ----

static run_frame_t* find_child(iteration_t* it, int32_t index) {
  for (run_frame_t* child = it->children; child; child = child->next_sibling) {
    if (child->index == index) return child;
  }
  run_frame_t* child = weir_frame_create(it->frame->activation, index, it->frame, it);
  if (!child) return NULL;
  child->next_sibling = it->children;
  it->children = child;
  ++it->outstanding_frames;
  return child;
}

static void cleanup_iterations(run_frame_t* frame);

static void enter(iteration_t* it, int32_t index, weir_value_t* outputs, bool is_dead) {
  run_t* run = it->frame->activation->run;
  const weir_plan_node_t* node = &it->frame->activation->plan->nodes[index];
  run_frame_t* child = find_child(it, node->child_frame);
  if (!child) {
    weir_run_fail(run, weir_out_of_memory());
    return;
  }
  if (node->is_constant_enter) {
    held_t held = {.node = index, .is_dead = is_dead};
    if (outputs) held.value = retained(&outputs[0]);
    if (!hold(&child->invariants, &child->invariant_count, &child->invariant_capacity, held)) {
      weir_value_release(&held.value);
      weir_run_fail(run, weir_out_of_memory());
      return;
    }
    for (iteration_t* live = child->first; live; live = live->next)
      deliver_all(live, index, outputs, is_dead, false);
  } else {
    deliver_all(child->first, index, outputs, is_dead, true);
  }
  --child->pending_enters;
  cleanup_iterations(child);
}

static void deliver_held(iteration_t* it, held_t* held) {
  deliver_all(it, held->node, held->is_dead ? NULL : &held->value, held->is_dead, false);
}

// Starts the next iteration of |frame|; NULL when memory is exhausted (the run has failed then).
static iteration_t* start_iteration(run_frame_t* frame) {
  iteration_t* it = weir_iteration_create(frame, frame->iteration_count + 1);
  if (!it) {
    weir_run_fail(frame->activation->run, weir_out_of_memory());
    return NULL;
  }
  ++frame->iteration_count;
  ++frame->live_iterations;
  frame->dead_exit_count = 0;  // the loop goes on: those exits were dead for one iteration only
  if (frame->last) frame->last->next = it;
  else frame->first = it;
  frame->last = it;
  for (size_t i = 0; i < frame->invariant_count; ++i) deliver_held(it, &frame->invariants[i]);
  return it;
}

static void next_iteration(iteration_t* it, int32_t index, weir_value_t* outputs, bool is_dead) {
  if (is_dead || !outputs) return;  // deadness stops here: the loop ends
  run_frame_t* frame = it->frame;
  iteration_t* target = it->next;
  if (it->number == frame->iteration_count) {
    if (frame->live_iterations == frame->info->parallel_iterations) {
      held_t held = {.node = index, .value = retained(&outputs[0])};
      if (hold(&frame->next_roots, &frame->next_root_count, &frame->next_root_capacity, held))
        return;
      weir_value_release(&held.value);
      weir_run_fail(frame->activation->run, weir_out_of_memory());
      return;
    }
    target = start_iteration(frame);
  }
  if (target) deliver_all(target, index, outputs, false, true);
}

// An Exit that is dead in the last iteration means that the whole loop was not taken; remember it
// until the frame ends.
static void leave(iteration_t* it, int32_t index, weir_value_t* outputs, bool is_dead) {
  run_frame_t* frame = it->frame;
  if (!is_dead && outputs) {
    deliver_all(frame->parent_iteration, index, outputs, false, true);
    return;
  }
  if (it->number != frame->iteration_count) return;
  if (!WEIR_GROW(frame->dead_exits, frame->dead_exit_capacity, frame->dead_exit_count + 1)) {
    weir_run_fail(frame->activation->run, weir_out_of_memory());
    return;
  }
  frame->dead_exits[frame->dead_exit_count++] = index;
}

static bool iteration_is_done(const run_frame_t* frame, const iteration_t* it) {
  bool is_oldest = frame->first == it;
  bool is_entered = it->number > 0 || frame->pending_enters == 0;
  return is_oldest && is_entered && it->outstanding_ops == 0 && it->outstanding_frames == 0;
}

static void end_frame(run_frame_t* frame) {
  iteration_t* it = frame->parent_iteration;
  for (size_t i = 0; i < frame->dead_exit_count; ++i)
    deliver_all(it, frame->dead_exits[i], NULL, true, false);
  run_frame_t** link = &it->children;
  while (*link != frame) link = &(*link)->next_sibling;
  *link = frame->next_sibling;
  --it->outstanding_frames;
  weir_frame_destroy(frame);
}

// Ends iterations whose work is done, oldest first, and lets waiting ones start.
static void end_iterations(run_frame_t* frame) {
  while (frame->first && iteration_is_done(frame, frame->first)) {
    iteration_t* done = frame->first;
    iteration_t* started = NULL;
    if (frame->next_root_count > 0) {
      held_t* roots = frame->next_roots;
      size_t count = frame->next_root_count;
      frame->next_roots = NULL;
      frame->next_root_count = frame->next_root_capacity = 0;
      --frame->live_iterations;  // makes room before the next one starts
      started = start_iteration(frame);
      ++frame->live_iterations;
      for (size_t i = 0; i < count; ++i) {
        if (started) deliver_held(started, &roots[i]);
        weir_value_release(&roots[i].value);
      }
      weir_free(roots);
    }
    frame->first = done->next;
    if (!frame->first) frame->last = NULL;
    --frame->live_iterations;
    weir_iteration_recycle(done);
  }
}

// Ends what is done of |frame|: iterations and, with its last one, the frame itself, after which
// the same goes for the one around it. The graph itself is one iteration that ends with the
// activation.
static void cleanup_iterations(run_frame_t* frame) {
  while (frame->parent) {
    run_frame_t* parent = frame->parent;
    end_iterations(frame);
    if (frame->first) return;  // as the first one is while an Enter is still to come
    end_frame(frame);
    frame = parent;
  }
}

// ---- entry points ----

void weir_propagate(const ready_t* item, weir_value_t* outputs, bool is_dead) {
  iteration_t* it = item->iteration;
  const weir_plan_node_t* node = &item->activation->plan->nodes[item->node];
  if (item->activation->run->is_aborted) return;
  switch (node->role) {
    case WEIR_ROLE_ENTER: enter(it, item->node, is_dead ? NULL : outputs, is_dead); break;
    case WEIR_ROLE_EXIT: leave(it, item->node, is_dead ? NULL : outputs, is_dead); break;
    case WEIR_ROLE_NEXT_ITERATION:
      next_iteration(it, item->node, is_dead ? NULL : outputs, is_dead);
      break;
    default: deliver_all(it, item->node, is_dead ? NULL : outputs, is_dead, true); break;
  }
  --it->outstanding_ops;
  --item->activation->outstanding_ops;
  cleanup_iterations(it->frame);
}

void weir_propagate_start(activation_t* activation, weir_tensor_t* const* args) {
  const weir_plan_t* plan = activation->plan;
  iteration_t* it = activation->root->first;
  ++activation->outstanding_ops;  // keeps the activation alive while it starts
  for (int32_t i = 0; i < plan->given_count; ++i) {
    weir_value_t value = {.tensor = plan->given[i].tensor};
    deliver_all(it, plan->given[i].node, &value, false, false);
  }
  for (int32_t i = 0; i < plan->root_count; ++i)
    push_ready(it, &plan->nodes[plan->roots[i]], plan->roots[i], false);
  for (int32_t i = 0; i < plan->arg_count; ++i) {
    if (plan->args[i] < 0) continue;
    weir_value_t value = {.tensor = args[i]};
    deliver_all(it, plan->args[i], &value, false, false);
  }
  --activation->outstanding_ops;
}

// Not when all loops have ended: one into which a value never comes, because another loop that was
// to give it did not run to its end, waits for ever. As in TensorFlow, what it would have given is
// missed only by those who ask for it.
bool weir_activation_is_through(const activation_t* activation) {
  // Kernels in flight whose outputs were promised are outstanding no more.
  if (activation->in_flight > 0) return false;
  return activation->run->is_aborted || activation->outstanding_ops == 0;
}
