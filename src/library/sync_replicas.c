// sync_replicas.c — Synchronous training with backup workers: an accumulator beside each variable,
// a queue of step numbers for each worker, and the worker's step between them.
#include "sync_replicas.h"

#include <stdio.h>
#include <string.h>

#include "nodes.h"
#include "optimizer.h"
#include "weir/control.h"

weir_scope_t* weir_sync_beside(weir_scope_t* scope, weir_edge_t edge) {
  const char* device = weir_node_device(edge.node);
  return *device ? weir_scope_on(scope, device) : scope;
}

weir_edge_t weir_sync_read_step(weir_scope_t* scope, weir_edge_t handle) {
  return weir_read_variable_op(scope, handle, WEIR_DTYPE_INT64);
}

// By what the processes know a thing that they share.
static const char* shared_name(const weir_sync_t* b, const char* what, const char* of) {
  const size_t size = strlen(b->name) + strlen(what) + strlen(of) + 3;
  char* text = weir_scope_alloc(b->scope, size, 1);
  if (text) snprintf(text, size, "%s/%s/%s", b->name, what, of);
  return text ? text : "";
}

// ---- state ----

static weir_edge_t add_accumulator(const weir_sync_t* b, int i, int lane) {
  const weir_variable_info_t* variable = &b->gradients[i].variable;
  const weir_dtype_t dtype = weir_edge_type(variable->value);
  char what[32] = "accumulator";
  if (b->lanes > 1) snprintf(what, sizeof(what), "accumulator/%d", lane);
  const char* name = shared_name(b, what, weir_node_name(variable->handle.node));
  weir_scope_t* s = weir_sync_beside(b->scope, variable->handle);
  int64_t sizes[WEIR_MAX_RANK];
  weir_dims_t shape = {sizes, weir_edge_dims(variable->initial, sizes, WEIR_MAX_RANK), true};
  if (!b->gradients[i].gradient.indices.node)
    return weir_conditional_accumulator(s, dtype, shape, .shared_name = name);
  if (shape.rank > 0) sizes[0] = -1;  // there is a row beyond the last one: see add_sparse
  return weir_sparse_conditional_accumulator(s, dtype, shape, .shared_name = name,
                                             .reduction_type = "SUM");
}

static void add_accumulators(weir_sync_t* b) {
  const size_t count = (size_t)b->count * (size_t)b->lanes;
  b->accumulators = weir_scope_alloc(b->scope, count, sizeof(*b->accumulators));
  for (size_t i = 0; i < count && !weir_scope_status(b->scope); ++i) {
    const int variable = (int)i / b->lanes, lane = (int)i % b->lanes;
    if (b->gradients[variable].gradient.values.node)
      b->accumulators[i] = add_accumulator(b, variable, lane);
  }
}

static void add_state(weir_sync_t* b) {
  add_accumulators(b);
  b->queues = weir_scope_alloc(b->scope, (size_t)b->worker_count, sizeof(*b->queues));
  if (weir_scope_status(b->scope)) return;
  char number[16];
  for (int i = 0; i < b->worker_count; ++i) {
    snprintf(number, sizeof(number), "%d", i);
    b->queues[i] = weir_fifo_queue_v2(b->clock, WEIR_TYPES(WEIR_DTYPE_INT64),
                                      .shapes = WEIR_SHAPES(WEIR_SCALAR_SHAPE),
                                      .shared_name = shared_name(b, "tokens", number));
  }
  // Not variables of the scope: they die with their servers, and no checkpoint should have them.
  b->is_led = weir_var_handle_op(b->clock, WEIR_DTYPE_INT64, WEIR_SCALAR_SHAPE,
                                 .shared_name = shared_name(b, "is_led", ""));
  snprintf(number, sizeof(number), "%d", b->worker);
  b->local_step = weir_var_handle_op(b->scope, WEIR_DTYPE_INT64, WEIR_SCALAR_SHAPE,
                                     .shared_name = shared_name(b, "local_step", number));
}

// ---- the worker ----

static weir_edge_t int64_vector(weir_scope_t* scope, const int64_t* values, int64_t count) {
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = weir_tensor_create_from(WEIR_DTYPE_INT64, 1, &count, values, &tensor);
  if (status) weir_scope_fail(scope, status);
  weir_edge_t edge = weir_const(scope, tensor);
  weir_tensor_release(tensor);
  return edge;
}

// Accumulators take rows in ascending order, each once. A row of ones comes last: its sum is the
// number of gradients, which the accumulator itself does not tell.
static weir_node_t* add_sparse(weir_scope_t* s, weir_edge_t accumulator, weir_edge_t local,
                               weir_gradient_t gradient, weir_scope_t* on) {
  const int64_t last[] = {INT64_MAX / 2};  // beyond all rows
  gradient = weir_gradient_unique(s, gradient);
  weir_edge_t indices = weir_lib_cast(s, gradient.indices, WEIR_DTYPE_INT64);
  weir_top_kv2_result_t order = weir_top_kv2(s, weir_neg(s, indices), weir_size(s, indices));
  weir_edge_t rows = weir_gather_v2(s, gradient.values, order.indices, weir_const_int(s, 0));
  weir_edge_t rest = weir_lib_part(s, weir_shape(s, rows), 1, 0);
  weir_edge_t one = weir_lib_number(s, weir_edge_type(rows), 1);
  weir_edge_t ones = weir_fill(s, weir_lib_concat(s, weir_lib_vector(s, 1), rest, 0), one);
  indices = weir_lib_concat(s, weir_neg(s, order.values), int64_vector(s, last, 1), 0);
  return weir_sparse_accumulator_apply_gradient(on, accumulator, local, indices,
                                                weir_lib_concat(s, rows, ones, 0),
                                                int64_vector(s, last, 0), false);
}

// A node that hands this worker's gradients in.
static weir_node_t* hand_in(const weir_sync_t* b, weir_edge_t local) {
  weir_node_t** nodes = weir_scope_alloc(b->scope, (size_t)b->count, sizeof(*nodes));
  const int lane = b->worker % b->lanes;
  int used = 0;
  for (int i = 0; nodes && i < b->count && !weir_scope_status(b->scope); ++i) {
    const weir_gradient_t* gradient = &b->gradients[i].gradient;
    if (!gradient->values.node) continue;
    weir_edge_t accumulator = weir_sync_accumulator(b, i, lane);
    weir_scope_t* on = weir_sync_beside(b->scope, accumulator);
    nodes[used++] = gradient->indices.node
                        ? add_sparse(b->scope, accumulator, local, *gradient, on)
                        : weir_accumulator_apply_gradient(on, accumulator, local, gradient->values);
  }
  return nodes ? weir_group(b->scope, "hand_in", nodes, used) : NULL;
}

typedef struct wait_t {
  weir_edge_t queue, local;
} wait_t;

// As long as the token is of the step that is done, or there are newer ones: later in the queue, if
// not higher, since a checkpoint may have been restored.
static weir_edge_t is_old(weir_scope_t* s, const weir_edge_t* token, void* user) {
  const wait_t* wait = user;
  weir_edge_t has_more = weir_greater(s, weir_queue_size_v2(s, wait->queue), weir_const_int(s, 0));
  return weir_logical_or(s, weir_equal(s, *token, wait->local), has_more);
}

static void take_token(weir_scope_t* s, weir_edge_t* token, void* user) {
  const wait_t* wait = user;
  *token = weir_queue_dequeue_v2(s, wait->queue, WEIR_TYPES(WEIR_DTYPE_INT64));
}

static weir_node_t* add_worker_step(const weir_sync_t* b) {
  weir_edge_t local = weir_sync_read_step(b->scope, b->local_step);
  weir_node_t* done = hand_in(b, local);
  if (weir_scope_status(b->scope)) return NULL;
  wait_t wait = {b->queues[b->worker], local};
  weir_edge_t token = local;
  const weir_dims_t any = {NULL, -1, true};
  weir_while_loop(weir_scope_after(b->clock, &done, 1), &token, 1, is_old, take_token, &wait,
                  &token, .parallel_iterations = 1, .name = "wait", .shapes = {&any, 1});
  const weir_edge_t* updates = NULL;
  const int count = weir_scope_collected(b->scope, WEIR_UPDATES, &updates);
  weir_node_t** nodes = weir_scope_alloc(b->scope, (size_t)count + 1, sizeof(*nodes));
  if (!nodes || weir_scope_status(b->scope)) return NULL;
  nodes[0] = weir_assign_variable_op(b->scope, b->local_step, token);
  for (int i = 0; i < count; ++i) nodes[i + 1] = updates[i].node;
  return weir_group(b->scope, "step", nodes, count + 1);
}

static weir_node_t* add_worker_begin(const weir_sync_t* b) {
  return weir_assign_variable_op(weir_scope_name(b->scope, "begin"), b->local_step,
                                 weir_sync_read_step(b->clock, b->global_step.handle));
}

static weir_node_t* add_chief_start(const weir_sync_t* b, weir_node_t* chief_begin) {
  if (weir_scope_status(b->scope)) return NULL;
  weir_scope_t* after = weir_scope_after(b->clock, &chief_begin, 1);
  return weir_assign_variable_op(weir_scope_name(b->scope, "chief_start"), b->local_step,
                                 weir_sync_read_step(after, b->global_step.handle));
}

// ---- both ----

static weir_status_t* check(const weir_sync_t* b, const weir_optimizer_t* optimizer,
                            const weir_minimize_options_t* options) {
  if (!optimizer || !optimizer->rule)
    return WEIR_STATUS(INVALID_ARGUMENT, "an optimizer without a rule");
  if (b->worker < 0 || b->worker >= b->worker_count)
    return WEIR_STATUS(INVALID_ARGUMENT, "there is no worker %d of %d", b->worker, b->worker_count);
  if (b->needed < 1 || b->needed > b->worker_count)
    return WEIR_STATUS(INVALID_ARGUMENT, "%d workers cannot give %d gradients a step",
                       b->worker_count, b->needed);
  if (b->lanes > 1 && b->needed < b->worker_count)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "a mean in the order of workers needs all %d of them, not %d",
                       b->worker_count, b->needed);
  if (options->accumulate > 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "synchronous replicas do not accumulate %d steps",
                       options->accumulate);
  if (options->loss_scale != 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "synchronous replicas do not scale the loss");
  return optimizer->rule->check ? optimizer->rule->check(optimizer) : NULL;
}

// The gradients, and the variable that counts steps.
static weir_status_t* prepare(weir_sync_t* b, weir_edge_t loss,
                              const weir_minimize_options_t* options) {
  weir_variable_gradient_t* gradients = NULL;
  b->count = weir_compute_gradients_with(b->outer, loss, &gradients, options);
  b->gradients = gradients;
  weir_edge_t step = options->global_step.node ? options->global_step : weir_global_step(b->outer);
  if (weir_scope_status(b->outer)) return NULL;  // stuck already
  int used = 0;
  for (int i = 0; i < b->count; ++i) used += gradients[i].gradient.values.node != NULL;
  if (!used)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "no gradients provided for any variable: the loss depends on none of %d "
                       "variables to train",
                       b->count);
  const bool is_variable = weir_library_find_variable(b->outer, step, &b->global_step);
  if (!is_variable || weir_edge_type(b->global_step.value) != WEIR_DTYPE_INT64)
    return WEIR_STATUS(INVALID_ARGUMENT, "global step '%s' is no int64 variable",
                       weir_node_name(step.node));
  b->clock = weir_sync_beside(b->scope, b->global_step.handle);
  return NULL;
}

weir_sync_replicas_t weir_sync_replicas_with(weir_scope_t* scope, const weir_optimizer_t* optimizer,
                                             weir_edge_t loss, int worker, int worker_count,
                                             const weir_sync_replicas_options_t* options) {
  options = options ? options : &(const weir_sync_replicas_options_t){0};
  weir_sync_replicas_t sync = {0};
  if (weir_scope_status(scope)) return sync;
  weir_sync_t b = {.outer = scope,
                   .name = options->name ? options->name : "sync_replicas",
                   .worker = worker,
                   .worker_count = worker_count,
                   .lanes = options->in_order ? worker_count : 1,
                   .needed = options->needed ? options->needed : worker_count};
  b.scope = weir_scope_in(scope, b.name);
  weir_status_t* status = check(&b, optimizer, &options->minimize);
  if (!status) status = prepare(&b, loss, &options->minimize);
  if (status) weir_scope_fail(scope, status);
  if (!weir_scope_status(scope)) add_state(&b);
  if (weir_scope_status(scope)) return sync;
  sync.global_step = b.global_step.value;
  sync.begin = add_worker_begin(&b);
  sync.step = add_worker_step(&b);
  sync.chief_begin = weir_sync_chief_begin(&b);
  sync.chief_start = add_chief_start(&b, sync.chief_begin);
  sync.advance = weir_sync_advance(&b, optimizer, &options->minimize);
  sync.close = weir_sync_close(&b);
  sync.lease = options->lease;
  return weir_scope_status(scope) ? (weir_sync_replicas_t){0} : sync;
}
