// sync_chief.c — The chief's part of synchronous training: means of gradients, the update, and the
// next step for every worker.
#include "nodes.h"
#include "optimizer.h"
#include "sync_replicas.h"
#include "weir/control.h"

// Step numbers that a queue holds at most: a worker that is further behind is asleep or dead, and
// what it would compute is dropped.
enum { MOST_TOKENS = 1000 };

typedef struct token_t {
  weir_edge_t queue, step;
} token_t;

static void send_token(weir_scope_t* s, weir_edge_t* out, void* user) {
  const token_t* token = user;
  weir_node_t* sent = weir_queue_enqueue_v2(s, token->queue, &token->step, 1);
  *out = weir_identity(weir_scope_after(s, &sent, 1), token->step);
}

static void keep_token(weir_scope_t* s, weir_edge_t* out, void* user) {
  *out = weir_identity(s, ((const token_t*)user)->step);
}

// A node that gives every worker |step|, once there is room.
static weir_node_t* tell(const weir_sync_t* b, weir_edge_t step, const char* name) {
  weir_node_t** nodes = weir_scope_alloc(b->clock, (size_t)b->worker_count, sizeof(*nodes));
  for (int i = 0; nodes && i < b->worker_count && !weir_scope_status(b->clock); ++i) {
    token_t token = {b->queues[i], step};
    weir_scope_t* after = weir_scope_after(b->clock, &step.node, 1);
    weir_edge_t has_room = weir_less(b->clock, weir_queue_size_v2(after, token.queue),
                                     weir_const_int(b->clock, MOST_TOKENS));
    weir_edge_t told;
    weir_cond(b->clock, has_room, send_token, keep_token, &token, &told, 1, .name = "tell");
    nodes[i] = told.node;
  }
  return nodes ? weir_group(b->scope, name, nodes, b->worker_count) : NULL;
}

// Not before there is a global step: an attempt that came too early leaves nothing behind.
static void note_leader(weir_scope_t* s, weir_edge_t* out, void* user) {
  const weir_sync_t* b = user;
  *out = weir_sync_read_step(s, b->global_step.handle);
  weir_node_t* noted = weir_assign_variable_op(s, b->is_led, *out);
  *out = weir_identity(weir_scope_after(s, &noted, 1), *out);
}

static void skip_step(weir_scope_t* s, weir_edge_t* out, void* user) {
  const weir_sync_t* b = user;
  *out = weir_lib_number(s, WEIR_DTYPE_INT64, 1);
  weir_node_t* skipped = weir_assign_add_variable_op(s, b->global_step.handle, *out);
  *out = weir_identity(weir_scope_after(s, &skipped, 1), *out);
}

// Where all variables to train have a value: while some are restored the global step may be an old
// one, which goes back with them, and gradients of the steps after it would be dropped for ever.
static weir_scope_t* after_variables(const weir_sync_t* b) {
  weir_node_t** reads = weir_scope_alloc(b->clock, (size_t)b->count, sizeof(*reads));
  for (int i = 0; reads && i < b->count; ++i) {
    const weir_variable_info_t* variable = &b->gradients[i].variable;
    weir_scope_t* there = weir_sync_beside(b->scope, variable->handle);
    reads[i] = weir_read_variable_op(there, variable->handle, weir_edge_type(variable->value)).node;
  }
  return reads ? weir_scope_after(b->clock, reads, b->count) : b->clock;
}

// The step to begin with. The last chief may have died with gradients that it had taken, and their
// workers wait for the next step: it must have a new number for them to compute again.
static weir_edge_t first_step(const weir_sync_t* b) {
  weir_edge_t was_led = weir_var_is_initialized_op(after_variables(b), b->is_led), done;
  weir_cond(b->clock, was_led, skip_step, note_leader, (void*)b, &done, 1, .name = "lead");
  if (weir_scope_status(b->clock)) return WEIR_LIB_NONE;
  return weir_sync_read_step(weir_scope_after(b->clock, &done.node, 1), b->global_step.handle);
}

weir_node_t* weir_sync_chief_begin(const weir_sync_t* b) {
  const int count = b->count * b->lanes;
  weir_node_t** nodes = weir_scope_alloc(b->scope, (size_t)count + 1, sizeof(*nodes));
  weir_edge_t step = first_step(b);
  int used = 0;
  for (int i = 0; nodes && i < count && !weir_scope_status(b->scope); ++i) {
    weir_edge_t accumulator = b->accumulators[i];
    if (!accumulator.node) continue;
    nodes[used++] = weir_accumulator_set_global_step(weir_sync_beside(b->scope, accumulator),
                                                     accumulator, step);
  }
  weir_node_t* told = tell(b, step, "told");
  if (!nodes || weir_scope_status(b->scope)) return NULL;
  nodes[used++] = told;
  return weir_group(b->scope, "chief_begin", nodes, used);
}

// What an accumulator has of a variable: the mean of dense gradients; of sparse ones the sum, with
// their number in a last row of its own.
static weir_gradient_t take(const weir_sync_t* b, int i, int lane, weir_node_t** out_take) {
  weir_edge_t accumulator = weir_sync_accumulator(b, i, lane);
  weir_scope_t* s = weir_sync_beside(b->scope, accumulator);
  weir_edge_t needed = weir_const_int(s, b->lanes > 1 ? 1 : b->needed);
  const weir_dtype_t dtype = weir_edge_type(b->gradients[i].variable.value);
  weir_gradient_t taken = {.indices = WEIR_LIB_NONE};
  if (b->gradients[i].gradient.indices.node) {
    weir_sparse_accumulator_take_gradient_result_t sum =
        weir_sparse_accumulator_take_gradient(s, accumulator, needed, dtype);
    taken.indices = sum.indices;
    taken.values = sum.values;
  } else {
    taken.values = weir_accumulator_take_gradient(s, accumulator, needed, dtype);
  }
  *out_take = taken.values.node;
  return taken;
}

static weir_gradient_t sparse_mean(const weir_sync_t* b, int i, weir_gradient_t sum) {
  weir_scope_t* s = weir_sync_beside(b->scope, weir_sync_accumulator(b, i, 0));
  return (weir_gradient_t){.indices = weir_lib_part(s, sum.indices, 0, -1),
                           .values = weir_real_div(s, weir_lib_part(s, sum.values, 0, -1),
                                                   weir_lib_part(s, sum.values, -1, 0)),
                           .dense_shape = b->gradients[i].gradient.dense_shape};
}

// The mean of what each worker gave, summed in their order.
static weir_gradient_t mean_in_order(const weir_sync_t* b, int i, const weir_gradient_t* lanes) {
  weir_scope_t* s = weir_sync_beside(b->scope, weir_sync_accumulator(b, i, 0));
  weir_edge_t* values = weir_scope_alloc(s, (size_t)b->lanes, sizeof(*values));
  weir_edge_t* indices = weir_scope_alloc(s, (size_t)b->lanes, sizeof(*indices));
  weir_gradient_t mean = {.indices = WEIR_LIB_NONE};
  if (!values || !indices) return mean;
  for (int lane = 0; lane < b->lanes; ++lane) {
    values[lane] = lanes[lane].values;
    indices[lane] = lanes[lane].indices;
  }
  weir_edge_t count = weir_lib_number(s, weir_edge_type(values[0]), b->lanes);
  if (indices[0].node) {
    mean.indices = weir_concat_v2(s, indices, b->lanes, weir_const_int(s, 0));
    mean.values = weir_concat_v2(s, values, b->lanes, weir_const_int(s, 0));
    mean.dense_shape = lanes[0].dense_shape;
    mean = weir_gradient_unique(s, mean);
  } else {
    mean.values = weir_add_n(s, values, b->lanes);
  }
  mean.values = weir_real_div(s, mean.values, count);
  return mean;
}

// The mean of the first gradients of variable |i|. |out_takes|: as many nodes as there are lanes.
static weir_gradient_t take_mean(const weir_sync_t* b, int i, weir_node_t** out_takes) {
  weir_gradient_t* lanes = weir_scope_alloc(b->scope, (size_t)b->lanes, sizeof(*lanes));
  if (!lanes) return (weir_gradient_t){.indices = WEIR_LIB_NONE};
  for (int lane = 0; lane < b->lanes; ++lane) {
    lanes[lane] = take(b, i, lane, &out_takes[lane]);
    if (lanes[lane].indices.node) lanes[lane] = sparse_mean(b, i, lanes[lane]);
  }
  return b->lanes > 1 ? mean_in_order(b, i, lanes) : lanes[0];
}

// No variable moves before all gradients are taken: whoever sees some of them moved has a gradient
// that every accumulator drops.
weir_node_t* weir_sync_advance(const weir_sync_t* b, const weir_optimizer_t* optimizer,
                               const weir_minimize_options_t* options) {
  const size_t room = (size_t)b->count;
  weir_variable_gradient_t* means = weir_scope_alloc(b->scope, room, sizeof(*means));
  weir_node_t** takes = weir_scope_alloc(b->scope, room * (size_t)b->lanes, sizeof(*takes));
  if (!means || !takes) return NULL;
  int used = 0;
  for (int i = 0; i < b->count && !weir_scope_status(b->scope); ++i) {
    means[i].variable = b->gradients[i].variable;
    if (!weir_sync_accumulator(b, i, 0).node) continue;
    means[i].gradient = take_mean(b, i, &takes[used]);
    used += b->lanes;
  }
  for (int i = 0; i < b->count && !weir_scope_status(b->scope); ++i) {
    weir_edge_t accumulator = weir_sync_accumulator(b, i, 0);
    if (!accumulator.node) continue;
    weir_scope_t* s = weir_scope_after(weir_sync_beside(b->scope, accumulator), takes, used);
    means[i].gradient.values = weir_identity(s, means[i].gradient.values);
  }
  weir_minimize_options_t own = *options;
  own.global_step = b->global_step.value;
  const char* name = optimizer->name ? optimizer->name : optimizer->rule->name;
  application_t application = {.scope = weir_scope_in(b->scope, name),
                               .state = weir_scope_lift(b->outer),
                               .optimizer = optimizer,
                               .gradients = means,
                               .count = b->count,
                               .options = &own};
  weir_node_t* updated = weir_scope_status(b->scope) ? NULL : weir_library_apply(&application);
  if (weir_scope_status(b->scope)) return NULL;
  weir_edge_t step =
      weir_sync_read_step(weir_scope_after(b->clock, &updated, 1), b->global_step.handle);
  return tell(b, step, "advance");
}

static void close_queue(weir_scope_t* s, weir_edge_t* out, void* user) {
  weir_node_t* closed = weir_queue_close_v2(s, *(const weir_edge_t*)user);
  *out = weir_identity(weir_scope_after(s, &closed, 1), weir_const_int(s, 0));
}

static void leave_queue(weir_scope_t* s, weir_edge_t* out, void* user) {
  (void)user;
  *out = weir_const_int(s, 0);
}

// Closes what the chief before, who may have been gone in the midst of it, has not.
weir_node_t* weir_sync_close(const weir_sync_t* b) {
  weir_node_t** nodes = weir_scope_alloc(b->clock, (size_t)b->worker_count, sizeof(*nodes));
  for (int i = 0; nodes && i < b->worker_count && !weir_scope_status(b->clock); ++i) {
    weir_edge_t queue = b->queues[i], done;
    weir_edge_t is_closed = weir_queue_is_closed_v2(b->clock, queue);
    weir_cond(b->clock, is_closed, leave_queue, close_queue, &queue, &done, 1, .name = "end");
    nodes[i] = done.node;
  }
  return nodes ? weir_group(b->clock, "close", nodes, b->worker_count) : NULL;
}
