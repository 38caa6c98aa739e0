// while.c — Loops on a scope: a frame of Enter, Merge, Switch, NextIteration and Exit around the
// nodes that two C functions add.
#include "api/control.h"

enum { DEFAULT_PARALLEL_ITERATIONS = 10 };

typedef struct loop_t {
  weir_scope_t* scope;  // in the context around the loop, under the loop's name
  weir_control_t* frame;
  weir_control_t* body;
  weir_scope_t* in_frame;
  weir_scope_t* in_body;
  int count;
  weir_edge_t* merges;
  weir_edge_t* splits;
  weir_edge_t* state;  // in the body: first what an iteration begins with, then what it ends with
} loop_t;

static weir_status_t* check_arguments(const loop_t* loop, const weir_edge_t* state) {
  if (loop->count < 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "loop '%s' has no state", loop->scope->prefix);
  for (int i = 0; i < loop->count; ++i) {
    if (!weir_control_is_edge(state[i]))
      return WEIR_STATUS(INVALID_ARGUMENT, "state %d of loop '%s' is no edge", i,
                         loop->scope->prefix);
  }
  return NULL;
}

static void loop_init(loop_t* loop, int64_t parallel_iterations) {
  weir_scope_t* scope = loop->scope;
  size_t count = (size_t)WEIR_MAX(loop->count, 1);
  loop->frame = weir_scope_alloc(scope, 1, sizeof(*loop->frame));
  loop->body = weir_scope_alloc(scope, 1, sizeof(*loop->body));
  loop->merges = weir_scope_alloc(scope, count, sizeof(*loop->merges));
  loop->splits = weir_scope_alloc(scope, count, sizeof(*loop->splits));
  loop->state = weir_scope_alloc(scope, count, sizeof(*loop->state));
  const char* name = weir_arena_printf(&scope->root->arena, "%s/frame", scope->prefix);
  if (!name) weir_scope_fail(scope, weir_out_of_memory());
  if (scope->root->status) return;
  *loop->frame = (weir_control_t){.kind = WEIR_CONTROL_FRAME,
                                  .parent = scope->control,
                                  .outside = scope,
                                  .name = scope->prefix,
                                  .frame_name = name,
                                  .parallel_iterations = parallel_iterations};
  *loop->body = (weir_control_t){
      .kind = WEIR_CONTROL_BODY, .parent = loop->frame, .outside = scope, .name = scope->prefix};
  loop->in_frame = weir_control_scope(loop->frame);
  loop->in_body = weir_control_scope(loop->body);
}

// ---- shapes ----

// Whether every shape that |narrow| may be is one that |wide| may be.
static bool is_within(const weir_shape_t* narrow, const weir_shape_t* wide) {
  if (wide->rank < 0) return true;
  if (narrow->rank != wide->rank) return false;
  for (int i = 0; i < wide->rank; ++i) {
    if (wide->dims[i] >= 0 && wide->dims[i] != narrow->dims[i]) return false;
  }
  return true;
}

static const char* shape_text(const weir_shape_t* shape, char text[WEIR_SHAPE_TEXT_SIZE]) {
  return shape->rank < 0 ? "<unknown>" : weir_shape_text(shape->rank, shape->dims, text);
}

// The shape state |index| has in all iterations: what the options say, or the one it enters with.
static const weir_shape_t* lasting_shape(loop_t* loop, int index, weir_edge_t initial,
                                         const weir_shapes_t* given) {
  const weir_shape_t* entering = weir_edge_shape(initial);
  if (index >= given->count || !given->items[index].is_set) return entering;
  weir_dims_t dims = given->items[index];
  if (dims.rank < 0) return &weir_shape_unknown;
  const weir_shape_t* shape =
      weir_shape_make(&loop->scope->root->graph->arena, dims.rank, dims.dims);
  if (!shape) {
    weir_scope_fail(loop->scope, weir_out_of_memory());
    return entering;
  }
  if (!is_within(entering, shape)) {
    char first[WEIR_SHAPE_TEXT_SIZE], second[WEIR_SHAPE_TEXT_SIZE];
    weir_scope_fail(loop->scope,
                    WEIR_STATUS(INVALID_ARGUMENT,
                                "The shape invariant specified for state %d of loop '%s' is not "
                                "compatible with its initial value '%s': %s, but it enters with %s",
                                index, loop->scope->prefix, initial.node->def.name,
                                shape_text(shape, first), shape_text(entering, second)));
  }
  return shape;
}

static weir_status_t* check_next(const loop_t* loop, int index, weir_edge_t next) {
  const char* name = loop->scope->prefix;
  if (!weir_control_is_edge(next))
    return WEIR_STATUS(INVALID_ARGUMENT, "the body of loop '%s' gives no state %d", name, index);
  weir_dtype_t before = weir_edge_dtype(loop->merges[index]);
  weir_dtype_t after = weir_dtype_base(weir_edge_dtype(next));
  if (before != after) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "state %d of loop '%s' enters as %s, but is %s after one iteration ('%s')",
                       index, name, weir_dtype_name(before), weir_dtype_name(after),
                       next.node->def.name);
  }
  const weir_shape_t* lasting = weir_edge_shape(loop->merges[index]);
  if (is_within(weir_edge_shape(next), lasting)) return NULL;
  char first[WEIR_SHAPE_TEXT_SIZE], second[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "The shape for state %d is not an invariant for the loop '%s'. It enters the "
                     "loop with shape %s, but has shape %s after one iteration ('%s'). Give the "
                     "loop wider shapes",
                     index, name, shape_text(lasting, first),
                     shape_text(weir_edge_shape(next), second), next.node->def.name);
}

// ---- building ----

static void enter_state(loop_t* loop, const weir_edge_t* state, const weir_shapes_t* shapes) {
  weir_scope_root_t* root = loop->scope->root;
  weir_named_attr_t attrs[] = {
      weir_attr_string("frame_name", loop->frame->frame_name), weir_attr_bool("is_constant", false),
      weir_attr_int("parallel_iterations", loop->frame->parallel_iterations)};
  for (int i = 0; i < loop->count && !root->status; ++i) {
    weir_node_t* enter =
        weir_scope_add(loop->scope, "Enter", NULL, WEIR_EDGES(state[i]),
                       (weir_attrs_t){.items = attrs, .count = WEIR_COUNT_OF(attrs)});
    if (!enter) return;
    weir_control_note(root, enter, loop->frame);
    enter->shapes[0] = lasting_shape(loop, i, state[i], shapes);
    // The second input becomes the NextIteration once there is one.
    weir_edge_t first = weir_scope_first(enter);
    loop->merges[i] = weir_scope_first(
        weir_control_add(loop->scope, "Merge", WEIR_EDGES(first, first), loop->frame));
  }
  loop->frame->pivot = loop->merges[0].node;
}

// Whether what a condition gave is one, which is an error of the loop else.
static bool check_cond(const loop_t* loop, weir_edge_t goes_on) {
  bool is_truth = weir_control_is_edge(goes_on) &&
                  weir_dtype_base(weir_edge_dtype(goes_on)) == WEIR_DTYPE_BOOL &&
                  weir_edge_shape(goes_on)->rank <= 0;
  if (!is_truth)
    weir_scope_fail(
        loop->scope,
        WEIR_STATUS(INVALID_ARGUMENT,
                    "the condition of loop '%s' must give a bool scalar, but gives %s",
                    loop->scope->prefix, goes_on.node ? goes_on.node->def.name : "none"));
  return is_truth;
}

static void add_cond(loop_t* loop, weir_loop_cond_fn_t cond, void* user) {
  weir_scope_root_t* root = loop->scope->root;
  if (root->status) return;
  weir_edge_t goes_on = cond(loop->in_frame, loop->merges, user);
  if (root->status || !check_cond(loop, goes_on)) return;
  weir_edge_t decides = weir_scope_first(
      weir_scope_add(loop->in_frame, "LoopCond", NULL, WEIR_EDGES(goes_on), WEIR_NO_ATTRS));
  for (int i = 0; i < loop->count && !root->status; ++i) {
    loop->splits[i] = weir_scope_first(
        weir_control_add(loop->scope, "Switch", WEIR_EDGES(loop->merges[i], decides), loop->frame));
    weir_edge_t alive = {.node = loop->splits[i].node, .index = 1};
    if (!alive.node) return;
    loop->state[i] =
        weir_scope_first(weir_control_add(loop->scope, "Identity", WEIR_EDGES(alive), loop->body));
  }
  loop->body->pivot = loop->state[0].node;
}

static void add_body(loop_t* loop, weir_loop_body_fn_t body, void* user) {
  weir_scope_root_t* root = loop->scope->root;
  if (root->status) return;
  body(loop->in_body, loop->state, user);
  for (int i = 0; i < loop->count && !root->status; ++i) {
    weir_status_t* status = check_next(loop, i, loop->state[i]);
    weir_node_t* next = status ? NULL
                               : weir_scope_add(loop->in_body, "NextIteration", NULL,
                                                WEIR_EDGES(loop->state[i]), WEIR_NO_ATTRS);
    weir_mutex_lock(&root->graph->mu);
    if (next) status = weir_graph_set_input(loop->merges[i].node, 1, weir_scope_first(next));
    weir_mutex_unlock(&root->graph->mu);
    if (status) weir_scope_fail(loop->scope, status);
  }
}

// On an eager scope: iteration by iteration.
static void run(const loop_t* loop, const weir_edge_t* initial, weir_loop_cond_fn_t cond,
                weir_loop_body_fn_t body, void* user, weir_edge_t* state) {
  weir_scope_root_t* root = loop->scope->root;
  weir_status_t* status = root->status ? NULL : check_arguments(loop, initial);
  if (status) weir_scope_fail(loop->scope, status);
  for (int i = 0; i < loop->count; ++i) state[i] = initial[i];
  while (!root->status) {
    weir_edge_t goes_on = cond(loop->scope, state, user);
    if (root->status || !check_cond(loop, goes_on)) break;
    if (!weir_control_truth(loop->scope, goes_on)) return;
    body(loop->scope, state, user);
    status = root->status ? NULL : check_arguments(loop, state);
    if (status) weir_scope_fail(loop->scope, status);
  }
  for (int i = 0; i < loop->count; ++i) state[i] = WEIR_NO_EDGE;
}

static void build(loop_t* loop, const weir_edge_t* state, weir_loop_cond_fn_t cond,
                  weir_loop_body_fn_t body, void* user, weir_edge_t* out_state,
                  const weir_while_loop_options_t* options) {
  weir_scope_root_t* root = loop->scope->root;
  if (weir_scope_is_eager(loop->scope)) {
    run(loop, state, cond, body, user, out_state);
    return;
  }
  weir_status_t* status = root->status ? NULL : check_arguments(loop, state);
  if (status) weir_scope_fail(loop->scope, status);
  loop_init(loop, options->parallel_iterations > 0 ? options->parallel_iterations
                                                   : DEFAULT_PARALLEL_ITERATIONS);
  if (!root->status) enter_state(loop, state, &options->shapes);
  add_cond(loop, cond, user);
  add_body(loop, body, user);
  for (int i = 0; i < loop->count; ++i) {
    out_state[i] = weir_scope_first(
        weir_control_add(loop->scope, "Exit", WEIR_EDGES(loop->splits[i]), loop->scope->control));
  }
}

// ---- a limit of iterations: a counter as one more state ----

typedef struct limited_t {
  weir_loop_cond_fn_t cond;
  weir_loop_body_fn_t body;
  void* user;
  int count;
  int maximum;
} limited_t;

static weir_edge_t limited_cond(weir_scope_t* scope, const weir_edge_t* state, void* user) {
  const limited_t* limited = user;
  weir_edge_t goes_on = limited->cond(scope, state, limited->user);
  weir_edge_t maximum = weir_const_int(scope, limited->maximum);
  weir_edge_t is_below = weir_scope_first(weir_scope_add(
      scope, "Less", NULL, WEIR_EDGES(state[limited->count], maximum), WEIR_NO_ATTRS));
  return weir_scope_first(
      weir_scope_add(scope, "LogicalAnd", NULL, WEIR_EDGES(is_below, goes_on), WEIR_NO_ATTRS));
}

static void limited_body(weir_scope_t* scope, weir_edge_t* state, void* user) {
  const limited_t* limited = user;
  limited->body(scope, state, limited->user);
  weir_edge_t* counter = &state[limited->count];
  *counter = weir_scope_first(weir_scope_add(
      scope, "AddV2", NULL, WEIR_EDGES(*counter, weir_const_int(scope, 1)), WEIR_NO_ATTRS));
}

void weir_while_loop_with(weir_scope_t* scope, const weir_edge_t* state, int count,
                          weir_loop_cond_fn_t cond, weir_loop_body_fn_t body, void* user,
                          weir_edge_t* out_state, const weir_while_loop_options_t* options) {
  options = options ? options : &(const weir_while_loop_options_t){0};
  WEIR_ASSERT_ARG(scope);
  if (!WEIR_HAS_ARG(scope, state) || !WEIR_HAS_ARG(scope, out_state)) return;
  if (!WEIR_HAS_ARG(scope, cond) || !WEIR_HAS_ARG(scope, body)) return;
  loop_t loop = {.scope = weir_scope_in(scope, options->name ? options->name : "while"),
                 .count = count};
  if (options->maximum_iterations <= 0 || count < 1 || scope->root->status) {
    build(&loop, state, cond, body, user, out_state, options);
    return;
  }
  limited_t limited = {.cond = cond,
                       .body = body,
                       .user = user,
                       .count = count,
                       .maximum = (int)WEIR_MIN(options->maximum_iterations, (int64_t)INT32_MAX)};
  weir_edge_t* all = weir_scope_alloc(scope, (size_t)count + 1, sizeof(*all));
  if (!all) {
    for (int i = 0; i < count; ++i) out_state[i] = WEIR_NO_EDGE;
    return;
  }
  memcpy(all, state, sizeof(*all) * (size_t)count);
  all[count] = weir_const_int(loop.scope, 0);
  loop.count = count + 1;
  build(&loop, all, limited_cond, limited_body, &limited, all, options);
  memcpy(out_state, all, sizeof(*all) * (size_t)count);
}
