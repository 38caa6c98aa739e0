// world.h — A graph, a scope and a session for one test, and short ways to add the nodes that tests
// need.
#ifndef WEIR_TESTS_TESTING_WORLD_H_
#define WEIR_TESTS_TESTING_WORLD_H_

#include "api/scope.h"
#include "testing/tensors.h"
#include "weir/session.h"

typedef struct world_t {
  weir_graph_t* graph;
  weir_scope_t* scope;
  weir_session_t* session;  // NULL until open_session
} world_t;

static inline int world_setup(void** state) {
  world_t* w = calloc(1, sizeof(*w));
  check_ok(weir_graph_create(&w->graph));
  w->scope = weir_scope_create(w->graph);
  assert_non_null(w->scope);
  *state = w;
  return 0;
}

static inline int world_teardown(void** state) {
  world_t* w = *state;
  weir_session_destroy(w->session);
  if (w->scope) weir_status_destroy(weir_scope_finish(w->scope));
  weir_graph_release(w->graph);
  free(w);
  return 0;
}

static inline weir_session_t* open_session(world_t* w, int threads) {
  weir_session_options_t options = {.threads = threads};
  check_ok(weir_session_create(w->graph, &options, &w->session));
  return w->session;
}

static inline void import_text(world_t* w, const char* text) {
  check_ok(weir_graph_import_text(w->graph, text, strlen(text), NULL));
}

// ---- nodes ----

static inline void check_scope(world_t* w) {
  const weir_status_t* status = weir_scope_status(w->scope);
  if (status) fail_msg("%s", weir_status_message(status));
}

static inline weir_node_t* add(world_t* w, const char* op, const char* name, weir_edges_t inputs,
                               weir_attrs_t attrs) {
  weir_node_t* node = weir_scope_add(w->scope, op, name, inputs, attrs);
  check_scope(w);
  return node;
}
static inline weir_edge_t output(weir_node_t* node, int index) {
  return (weir_edge_t){.node = node, .index = index};
}
// Output 0 of a new node whose attributes its inputs determine.
#define OP(w, op, ...) output(add((w), (op), NULL, WEIR_EDGES(__VA_ARGS__), WEIR_NO_ATTRS), 0)

static inline weir_edge_t placeholder(world_t* w, const char* name, weir_dtype_t dtype) {
  return output(
      add(w, "Placeholder", name, WEIR_NO_EDGES, WEIR_ATTRS(weir_attr_type("dtype", dtype))), 0);
}
static inline weir_edge_t const_bool(world_t* w, bool value) {
  weir_tensor_t* tensor = make_bool(value);
  weir_edge_t edge = weir_const(w->scope, tensor);
  weir_tensor_release(tensor);
  return edge;
}

// A FIFO queue of floats and one dequeue from it.
typedef struct queue_nodes_t {
  weir_edge_t handle;
  weir_edge_t value;     // of the dequeue
  weir_node_t* enqueue;  // of the placeholder |fed|
  weir_edge_t fed;
  weir_node_t* close;
} queue_nodes_t;
static inline queue_nodes_t add_queue(world_t* w, const char* name, int64_t capacity) {
  weir_dtype_t types[] = {WEIR_DTYPE_FLOAT};
  weir_named_attr_t components = weir_attr_types("component_types", types, 1);
  queue_nodes_t q;
  q.handle = output(add(w, "FIFOQueueV2", name, WEIR_NO_EDGES,
                        WEIR_ATTRS(components, weir_attr_int("capacity", capacity))),
                    0);
  q.fed = placeholder(w, "element", WEIR_DTYPE_FLOAT);
  q.enqueue = add(w, "QueueEnqueueV2", NULL, WEIR_EDGES(q.handle, q.fed), WEIR_NO_ATTRS);
  q.value = output(add(w, "QueueDequeueV2", NULL, WEIR_EDGES(q.handle), WEIR_ATTRS(components)), 0);
  q.close = add(w, "QueueCloseV2", NULL, WEIR_EDGES(q.handle), WEIR_NO_ATTRS);
  return q;
}

// while (i < limit) { i += 1; x = body(x) }: raw control flow nodes. Types of |i| are int32.
typedef struct loop_nodes_t {
  weir_edge_t i, x;     // inside the body
  weir_edge_t limit;    // inside: loop invariant
  weir_node_t* next_x;  // to be given the body's result by close_loop
  weir_node_t* merge_x;
  weir_edge_t exit_i, exit_x;
} loop_nodes_t;
static inline weir_edge_t add_enter(world_t* w, weir_edge_t value, const char* frame,
                                    bool is_constant, int parallel) {
  return output(add(w, "Enter", NULL, WEIR_EDGES(value),
                    WEIR_ATTRS(weir_attr_string("frame_name", frame),
                               weir_attr_bool("is_constant", is_constant),
                               weir_attr_int("parallel_iterations", parallel))),
                0);
}
static inline loop_nodes_t open_loop(world_t* w, const char* frame, weir_edge_t start_i,
                                     weir_edge_t start_x, weir_edge_t limit, int parallel) {
  loop_nodes_t loop;
  weir_edge_t enter_i = add_enter(w, start_i, frame, false, parallel);
  weir_edge_t enter_x = add_enter(w, start_x, frame, false, parallel);
  loop.limit = add_enter(w, limit, frame, true, parallel);
  // Back edges are set once their sources exist.
  weir_node_t* merge_i = add(w, "Merge", NULL, WEIR_EDGES(enter_i, enter_i), WEIR_NO_ATTRS);
  loop.merge_x = add(w, "Merge", NULL, WEIR_EDGES(enter_x, enter_x), WEIR_NO_ATTRS);
  weir_edge_t less = OP(w, "Less", output(merge_i, 0), loop.limit);
  weir_edge_t go_on = OP(w, "LoopCond", less);
  weir_node_t* switch_i =
      add(w, "Switch", NULL, WEIR_EDGES(output(merge_i, 0), go_on), WEIR_NO_ATTRS);
  weir_node_t* switch_x =
      add(w, "Switch", NULL, WEIR_EDGES(output(loop.merge_x, 0), go_on), WEIR_NO_ATTRS);
  loop.exit_i = OP(w, "Exit", output(switch_i, 0));
  loop.exit_x = OP(w, "Exit", output(switch_x, 0));
  loop.i = OP(w, "Identity", output(switch_i, 1));
  loop.x = OP(w, "Identity", output(switch_x, 1));
  weir_node_t* pivot = loop.i.node;  // constants of the body run inside the frame
  weir_scope_t* outside = w->scope;
  w->scope = weir_scope_after(outside, &pivot, 1);
  weir_edge_t one = weir_const_int(w->scope, 1);
  w->scope = outside;
  weir_edge_t next_i = OP(w, "NextIteration", OP(w, "AddV2", loop.i, one));
  check_ok(weir_graph_set_input(merge_i, 1, next_i));
  return loop;
}
static inline void close_loop(world_t* w, loop_nodes_t* loop, weir_edge_t result) {
  check_ok(weir_graph_set_input(loop->merge_x, 1, OP(w, "NextIteration", result)));
}

// ---- running ----

static inline float fetch_float(weir_session_t* session, weir_edge_t edge) {
  float value = 0;
  check_ok(weir_session_fetch_float(session, edge, &value));
  return value;
}
static inline int32_t fetch_int(weir_session_t* session, weir_edge_t edge) {
  weir_tensor_t* result = NULL;
  check_ok(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(edge)}, &result));
  int32_t value = int_of(result);
  weir_tensor_release(result);
  return value;
}
// Feeds one float and fetches one.
static inline float feed_float(weir_session_t* session, weir_edge_t at, float value,
                               weir_edge_t edge) {
  weir_tensor_t* fed = make_float(value);
  weir_tensor_t* result = NULL;
  check_ok(weir_session_run(session, &(weir_step_spec_t){WEIR_FEEDS({at, fed}), WEIR_FETCHES(edge)},
                            &result));
  weir_tensor_release(fed);
  float got = float_of(result);
  weir_tensor_release(result);
  return got;
}
static inline void enqueue_float(weir_session_t* session, const queue_nodes_t* q, float value) {
  weir_tensor_t* fed = make_float(value);
  weir_tensor_t* none = NULL;
  check_ok(weir_session_run(
      session, &(weir_step_spec_t){WEIR_FEEDS({q->fed, fed}), WEIR_TARGETS(q->enqueue)}, &none));
  weir_tensor_release(fed);
}

#endif  // WEIR_TESTS_TESTING_WORLD_H_
