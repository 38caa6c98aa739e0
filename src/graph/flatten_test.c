// flatten_test.c — Graphs before and after flattening: calls, calls within calls, conditionals,
// what passes through, what stays, functions that never end, errors, exhausted memory.
#include "graph/flatten.h"

#include "testing/world.h"

#define ARG(name) " {name: '" name "' type: DT_FLOAT}"
#define TYPE(key) " attr {key: '" key "' value {type: DT_FLOAT}}"
#define TYPES(key) " attr {key: '" key "' value {list {type: DT_FLOAT}}}"
#define FUNC(key, value) " attr {key: '" key "' value {func {name: '" value "'}}}"
#define LOWER(value) " attr {key: '_lower_using_switch_merge' value {b: " value "}}"
#define CALL(name, input, f, ...)                                                          \
  " {name: '" name "' op: 'PartitionedCall' input: '" input "'" TYPES("Tin") TYPES("Tout") \
      FUNC("f", f) __VA_ARGS__ "}"
#define IF_OF(cond_type, cond_shape, ...)                                                        \
  "node {name: 'c' op: 'Placeholder' attr {key: 'dtype' value {type: " cond_type                 \
  "}}"                                                                                           \
  " attr {key: 'shape' value {shape {" cond_shape                                                \
  "}}}}"                                                                                         \
  "node {name: 'call' op: 'If' input: 'c' input: 'x' attr {key: 'Tcond' value {type: " cond_type \
  "}}" TYPES("Tin") TYPES("Tout") FUNC("then_branch", "Neg1") FUNC("else_branch", "Twice")       \
      __VA_ARGS__ "}"
#define IF(cond_type, ...) IF_OF(cond_type, "unknown_rank: true", __VA_ARGS__)

// Doubles until it is ten, and does something in each turn.
#define LOOP(name, waits) \
  " function {signature {name: '" name "' input_arg" ARG("a") " output_arg" ARG("r") "}"           \
  "  node_def {name: 'enter' op: 'Enter' input: 'a'" TYPE("T")                                     \
  "   attr {key: 'frame_name' value {s: 'f'}}}"                                                    \
  "  node_def {name: 'merge' op: 'Merge' input: 'enter:output:0' input: 'next:output:0'" TYPE("T") \
  "   attr {key: 'N' value {i: 2}}}"                                                               \
  "  node_def {name: 'ten' op: 'Const' input: '^merge'" TYPE("dtype")                              \
  "   attr {key: 'value' value {tensor {dtype: DT_FLOAT tensor_shape {} float_val: 10}}}}"         \
  "  node_def {name: 'less' op: 'Less' input: 'merge:output:0' input: 'ten:output:0'" TYPE("T") "}"\
  "  node_def {name: 'cond' op: 'LoopCond' input: 'less:z:0'}"                                     \
  "  node_def {name: 'switch' op: 'Switch' input: 'merge:output:0' input: 'cond:output:0'"         \
     TYPE("T") "}"                                                                                 \
  "  node_def {name: 'sum' op: 'AddV2' input: 'switch:output_true:0' input: 'switch:output_true:0'"\
     TYPE("T") "}"                                                                                 \
  "  node_def {name: 'now' op: 'Timestamp' input: '^sum'}"                                         \
  "  node_def {name: 'next' op: 'NextIteration' input: 'sum:z:0'" waits TYPE("T") "}"              \
  "  node_def {name: 'exit' op: 'Exit' input: 'switch:output_false:0'" TYPE("T") "}"               \
  "  ret {key: 'r' value: 'exit:output:0'}}"

static const char functions[] =
    "node {name: 'x' op: 'Placeholder'" TYPE("dtype") "}"
    "library {"
    " function {signature {name: 'Neg1' input_arg" ARG("a") " output_arg" ARG("r") "}"
    "  node_def {name: 'minus' op: 'Neg' input: 'a'" TYPE("T") "} ret {key: 'r' value: 'minus:y:0'}}"
    " function {signature {name: 'Twice' input_arg" ARG("a") " output_arg" ARG("r") "}"
    "  node_def {name: 'sum' op: 'AddV2' input: 'a' input: 'a'" TYPE("T") "}"
    "  ret {key: 'r' value: 'sum:z:0'}}"
    " function {signature {name: 'Nested' input_arg" ARG("a") " output_arg" ARG("r") "}"
    "  node_def" CALL("first", "a", "Twice", "") " node_def" CALL("second", "first:output:0", "Neg1", "")
    "  ret {key: 'r' value: 'second:output:0'}}"
    " function {signature {name: 'Same' input_arg" ARG("a") " output_arg" ARG("r") "}"
    "  ret {key: 'r' value: 'a'}}"
    " function {signature {name: 'Endless' input_arg" ARG("a") " output_arg" ARG("r") "}"
    "  node_def" CALL("again", "a", "Endless", "") "  ret {key: 'r' value: 'again:output:0'}}"
    " function {signature {name: 'Silent' input_arg" ARG("a") "}}"
    // Its check fails, and belongs to what it promises to do, not to what it returns.
    " function {signature {name: 'Guarded' input_arg" ARG("a") " output_arg" ARG("r")
    "  control_output: 'c'}"
    "  node_def {name: 'minus' op: 'Neg' input: 'a'" TYPE("T") "}"
    "  node_def {name: 'check' op: 'CheckNumerics' input: 'root:y:0'" TYPE("T")
    "   attr {key: 'message' value {s: 'promised'}}}"
    "  node_def {name: 'root' op: 'Sqrt' input: 'minus:y:0'" TYPE("T") "}"
    "  ret {key: 'r' value: 'minus:y:0'} control_ret {key: 'c' value: 'check'}}"
    LOOP("Loop", " input: '^now'") LOOP("Aside", "")
    // Doubles until it is ten, by a conditional that calls it.
    " function {signature {name: 'Rec' input_arg" ARG("a") " output_arg" ARG("r") "}"
    "  node_def {name: 'ten' op: 'Const'" TYPE("dtype")
    "   attr {key: 'value' value {tensor {dtype: DT_FLOAT tensor_shape {} float_val: 10}}}}"
    "  node_def {name: 'less' op: 'Less' input: 'a' input: 'ten:output:0'" TYPE("T") "}"
    "  node_def {name: 'choose' op: 'If' input: 'less:z:0' input: 'a'" TYPES("Tin") TYPES("Tout")
    "   attr {key: 'Tcond' value {type: DT_BOOL}}" FUNC("then_branch", "Deeper")
       FUNC("else_branch", "Same") "}"
    "  ret {key: 'r' value: 'choose:output:0'}}"
    " function {signature {name: 'Deeper' input_arg" ARG("a") " output_arg" ARG("r") "}"
    "  node_def {name: 'sum' op: 'AddV2' input: 'a' input: 'a'" TYPE("T") "}"
    "  node_def" CALL("again", "sum:z:0", "Rec", "") "  ret {key: 'r' value: 'again:output:0'}}"
    // Doubles until it is ten.
    " function {signature {name: 'IsLess' input_arg" ARG("a")
    "  output_arg {name: 'r' type: DT_BOOL}}"
    "  node_def {name: 'ten' op: 'Const'" TYPE("dtype")
    "   attr {key: 'value' value {tensor {dtype: DT_FLOAT tensor_shape {} float_val: 10}}}}"
    "  node_def {name: 'less' op: 'Less' input: 'a' input: 'ten:output:0'" TYPE("T") "}"
    "  ret {key: 'r' value: 'less:z:0'}}"
    // As Guarded, within a call.
    " function {signature {name: 'Around' input_arg {name: 'c' type: DT_BOOL} input_arg" ARG("a")
    "  output_arg" ARG("r") "}"
    "  node_def {name: 'choose' op: 'If' input: 'c' input: 'a'" TYPES("Tin") TYPES("Tout")
    "   attr {key: 'Tcond' value {type: DT_BOOL}}" FUNC("then_branch", "Guarded")
       FUNC("else_branch", "Twice") "}"
    "  ret {key: 'r' value: 'choose:output:0'}}"
    // What it promises is on a branch that is not taken.
    " function {signature {name: 'Untaken' input_arg" ARG("a") " output_arg" ARG("r")
    "  control_output: 'c'}"
    "  node_def {name: 'less' op: 'Less' input: 'a' input: 'a'" TYPE("T") "}"
    "  node_def {name: 'switch' op: 'Switch' input: 'a' input: 'less:z:0'" TYPE("T") "}"
    "  node_def {name: 'check' op: 'CheckNumerics' input: 'switch:output_true:0'" TYPE("T")
    "   attr {key: 'message' value {s: 'promised'}}}"
    "  node_def {name: 'sum' op: 'AddV2' input: 'a' input: 'a'" TYPE("T") "}"
    "  ret {key: 'r' value: 'sum:z:0'} control_ret {key: 'c' value: 'check'}}"
    " function {signature {name: 'First' input_arg" ARG("a") " input_arg" ARG("b") " output_arg"
      ARG("r") "} ret {key: 'r' value: 'a'}}"
    "}";
static const char reader[] = "node {name: 'y' op: 'Neg' input: 'call'" TYPE("T") "}";

static weir_node_t* node_of(world_t* w, const char* name) {
  weir_node_t* node = weir_graph_find_node(w->graph, name);
  assert_non_null(node);
  return node;
}

// Imports the functions and |text|, which has a node 'call', and a reader of it.
static void build(world_t* w, const char* text) {
  import_text(w, functions);
  import_text(w, text);
  import_text(w, reader);
}

static float run_at(world_t* w, float value) {
  open_session(w, 1);
  float result =
      feed_float(w->session, output(node_of(w, "x"), 0), value, output(node_of(w, "y"), 0));
  weir_session_destroy(w->session);
  w->session = NULL;
  return result;
}

static size_t count_of(world_t* w, const char* op) {
  size_t count = 0;
  for (size_t i = 0; i < w->graph->node_count; ++i)
    count += strcmp(w->graph->nodes[i]->def.op_name, op) == 0;
  return count;
}

static const char* source_op(world_t* w, const char* reader_name) {
  return node_of(w, reader_name)->inputs[0].node->def.op_name;
}

static void test_call_becomes_its_body(void** state) {
  world_t* w = *state;
  build(w, "node" CALL("call", "x", "Twice", ""));
  assert_float_equal(run_at(w, 3), -6, 0);
  int version = w->graph->version;
  check_ok(weir_flatten(w->graph, WEIR_FLATTEN_AND_CALLS));
  assert_true(w->graph->version > version);
  assert_int_equal(count_of(w, "PartitionedCall"), 0);
  assert_int_equal(count_of(w, "IdentityN"), 1);  // what holds the inputs until all are there
  assert_string_equal(source_op(w, "y"), "AddV2");
  // The call itself is left as something to wait for.
  const weir_node_t* call = node_of(w, "call");
  assert_string_equal(call->def.op_name, "NoOp");
  assert_int_equal(call->def.input_count, 0);
  assert_true(call->control_count > 0);
  assert_float_equal(run_at(w, 3), -6, 0);
}

static void test_calls_within_calls(void** state) {
  world_t* w = *state;
  build(w, "node" CALL("call", "x", "Nested", ""));
  check_ok(weir_flatten(w->graph, WEIR_FLATTEN_AND_CALLS));
  assert_int_equal(count_of(w, "PartitionedCall"), 0);
  assert_int_equal(count_of(w, "AddV2"), 1);
  assert_string_equal(source_op(w, "y"), "Neg");
  assert_float_equal(run_at(w, 3), 6, 0);
}

// What a body does in a loop, nobody outside can wait for but by the loop's end.
static void test_effects_in_a_loop(void** state) {
  world_t* w = *state;
  build(w, "node" CALL("call", "x", "Loop", ""));
  check_ok(weir_flatten(w->graph, WEIR_FLATTEN_AND_CALLS));
  const weir_node_t* call = node_of(w, "call");
  assert_int_equal(call->control_count, 2);
  const weir_node_t* effects = call->control_inputs[0];
  assert_string_equal(effects->def.op_name, "NoOp");
  assert_string_equal(effects->control_inputs[0]->def.op_name, "Exit");
  assert_float_equal(run_at(w, 3), -12, 0);
}

// What nothing that leaves the loop waits for would be forgotten: such a call stays.
static void test_effects_beside_a_loop_stay(void** state) {
  world_t* w = *state;
  build(w, "node" CALL("call", "x", "Aside", ""));
  check_ok(weir_flatten(w->graph, WEIR_FLATTEN_AND_CALLS));
  assert_string_equal(node_of(w, "call")->def.op_name, "PartitionedCall");
  assert_float_equal(run_at(w, 3), -12, 0);
}

// Two calls of one function are two bodies, and one call may read another's result.
static void test_chain_of_calls(void** state) {
  world_t* w = *state;
  build(w, "node" CALL("before", "x", "Twice", "") "node" CALL("call", "before", "Twice", ""));
  check_ok(weir_flatten(w->graph, WEIR_FLATTEN_AND_CALLS));
  assert_int_equal(count_of(w, "AddV2"), 2);
  assert_float_equal(run_at(w, 1), -4, 0);
}

// What passes through a function unchanged is read where it comes from.
static void test_argument_passes_through(void** state) {
  world_t* w = *state;
  build(w, "node" CALL("call", "x", "Same", ""));
  check_ok(weir_flatten(w->graph, WEIR_FLATTEN_AND_CALLS));
  assert_float_equal(run_at(w, 2), -2, 0);
  weir_edge_t edge = node_of(w, "y")->inputs[0];
  assert_string_equal(edge.node->def.op_name, "IdentityN");
  edge = edge.node->inputs[edge.index];
  assert_ptr_equal(edge.node, node_of(w, "x"));
}

static void test_call_without_results(void** state) {
  world_t* w = *state;
  import_text(w, functions);
  import_text(w, "node {name: 'call' op: 'PartitionedCall' input: 'x'" TYPES("Tin")
                     FUNC("f", "Silent") " attr {key: 'Tout' value {list {}}}}");
  check_ok(weir_flatten(w->graph, WEIR_FLATTEN_AND_CALLS));
  assert_string_equal(node_of(w, "call")->def.op_name, "NoOp");
}

static void test_conditional_that_asks_for_it(void** state) {
  world_t* w = *state;
  build(w, IF("DT_BOOL", LOWER("true")));
  check_ok(weir_flatten(w->graph, WEIR_FLATTEN_AND_CALLS));
  assert_int_equal(count_of(w, "If"), 0);
  assert_true(count_of(w, "Switch") > 0);
  assert_string_equal(source_op(w, "y"), "Merge");
  weir_tensor_t *x = make_float(3), *yes = make_bool(true), *no = make_bool(false), *value = NULL;
  weir_edge_t c = output(node_of(w, "c"), 0), y = output(node_of(w, "y"), 0);
  open_session(w, 1);
  for (int i = 0; i < 2; ++i) {
    weir_step_spec_t spec = {WEIR_FEEDS({output(node_of(w, "x"), 0), x}, {c, i ? yes : no}),
                             WEIR_FETCHES(y)};
    check_ok(weir_session_run(w->session, &spec, &value));
    assert_float_equal(float_of(value), i ? 3 : -6, 0);
    weir_tensor_release(value);
  }
  weir_tensor_release(x);
  weir_tensor_release(yes);
  weir_tensor_release(no);
}

static weir_status_t* run_at_one(world_t* w, const char* fetch, const char* target) {
  weir_tensor_t *x = make_float(1), *yes = make_bool(true), *value = NULL;
  weir_edge_t c = output(node_of(w, "c"), 0);
  weir_edge_t fetched = fetch ? output(node_of(w, fetch), 0) : WEIR_NO_EDGE;
  weir_node_t* targets[] = {target ? node_of(w, target) : NULL};
  weir_step_spec_t spec = {WEIR_FEEDS({output(node_of(w, "x"), 0), x}, {c, yes}),
                           .fetches = &fetched, .fetch_count = fetch ? 1 : 0, .targets = targets,
                           .target_count = target ? 1 : 0};
  weir_status_t* status = weir_session_run(w->session, &spec, &value);
  weir_tensor_release(x);
  weir_tensor_release(yes);
  weir_tensor_release(value);
  return status;
}

#define GUARDED_IF(...)                                                          \
  "node {name: 'c' op: 'Placeholder' attr {key: 'dtype' value {type: DT_BOOL}}}" \
  "node {name: 'call' op: 'If' input: 'c' input: 'x'"                            \
  " attr {key: 'Tcond' value {type: DT_BOOL}}" TYPES("Tin") TYPES("Tout")        \
      FUNC("then_branch", "Guarded") FUNC("else_branch", "Twice") __VA_ARGS__    \
      "}"                                                                        \
      "node {name: 'after' op: 'NoOp' input: '^call'}"

// A reader of a result needs no side effect; who waits for the node, fetches or runs it, does.
static void test_effects_of_a_conditional(void** state) {
  world_t* w = *state;
  build(w, GUARDED_IF(LOWER("true")));
  open_session(w, 1);
  check_ok(run_at_one(w, "y", NULL));
  check_error(run_at_one(w, "call", NULL), WEIR_INVALID_ARGUMENT, "promised");
  check_error(run_at_one(w, NULL, "call"), WEIR_INVALID_ARGUMENT, "promised");
  check_error(run_at_one(w, NULL, "after"), WEIR_INVALID_ARGUMENT, "promised");
}

// One that did not ask to be lowered runs as a whole.
static void test_effects_of_a_whole(void** state) {
  world_t* w = *state;
  build(w, GUARDED_IF(""));
  open_session(w, 1);
  check_error(run_at_one(w, "y", NULL), WEIR_INVALID_ARGUMENT, "promised");
}

// And so it does where it is lowered nevertheless, for whoever reads it, within a call as well. A
// call always does.
static void test_effects_of_a_lowered_whole(void** state) {
  (void)state;
  static const char* const texts[] = {
      GUARDED_IF(""), GUARDED_IF(LOWER("false")),
      "node {name: 'c' op: 'Placeholder' attr {key: 'dtype' value {type: DT_BOOL}}}"
      "node" CALL("call", "x", "Guarded", LOWER("false")) "node {name: 'after' op: 'NoOp' input: '^call'}",
      "node {name: 'c' op: 'Placeholder' attr {key: 'dtype' value {type: DT_BOOL}}}"
      "node" CALL("call", "x", "Guarded", "") "node {name: 'after' op: 'NoOp' input: '^call'}",
      "node {name: 'c' op: 'Placeholder' attr {key: 'dtype' value {type: DT_BOOL}}}"
      "node {name: 'call' op: 'PartitionedCall' input: 'c' input: 'x'" TYPES("Tout")
      " attr {key: 'Tin' value {list {type: DT_BOOL type: DT_FLOAT}}}" FUNC("f", "Around") "}"
      "node {name: 'after' op: 'NoOp' input: '^call'}"};
  for (size_t i = 0; i < WEIR_COUNT_OF(texts); ++i) {
    world_t* w = NULL;
    world_setup((void**)&w);
    build(w, texts[i]);
    check_ok(weir_flatten(w->graph, WEIR_FLATTEN_ALL));
    assert_int_equal(count_of(w, "If"), 0);
    open_session(w, 1);
    check_error(run_at_one(w, "y", NULL), WEIR_INVALID_ARGUMENT, "promised");
    check_error(run_at_one(w, NULL, "call"), WEIR_INVALID_ARGUMENT, "promised");
    check_error(run_at_one(w, NULL, "after"), WEIR_INVALID_ARGUMENT, "promised");
    world_teardown((void**)&w);
  }
}

static void test_loop_that_did_not_ask(void** state) {
  world_t* w = *state;
  build(w, "node {name: 'call' op: 'While' input: 'x'" TYPES("T") FUNC("cond", "IsLess")
               FUNC("body", "Twice") "}");
  check_ok(weir_flatten(w->graph, WEIR_FLATTEN_ALL));
  assert_int_equal(count_of(w, "While"), 0);
  assert_float_equal(run_at(w, 3), -12, 0);
}

// Nobody waits for what a body does on a branch that it does not take.
static void test_dead_effects(void** state) {
  (void)state;
  static const char* const texts[] = {"node" CALL("call", "x", "Untaken", ""),
                                      "node {name: 'call' op: 'While' input: 'x'" TYPES("T")
                                          FUNC("cond", "IsLess") FUNC("body", "Untaken") "}"};
  for (size_t i = 0; i < WEIR_COUNT_OF(texts); ++i) {
    world_t* w = NULL;
    world_setup((void**)&w);
    build(w, texts[i]);
    assert_float_equal(run_at(w, 8), -16, 0);
    check_ok(weir_flatten(w->graph, WEIR_FLATTEN_ALL));
    import_text(w, "node {name: 'z' op: 'Neg' input: 'y' input: '^call'" TYPE("T") "}");
    open_session(w, 1);
    assert_float_equal(
        feed_float(w->session, output(node_of(w, "x"), 0), 8, output(node_of(w, "z"), 0)), 16, 0);
    world_teardown((void**)&w);
  }
}

// But what asks to be lowered dies with them.
static void test_dead_effects_of_what_asks(void** state) {
  world_t* w = *state;
  build(w,
        "node {name: 'c' op: 'Placeholder' attr {key: 'dtype' value {type: DT_BOOL}}}"
        "node {name: 'call' op: 'While' input: 'x'" TYPES("T") FUNC("cond", "IsLess")
            FUNC("body", "Untaken") LOWER("true") "}");
  open_session(w, 1);
  check_error(run_at_one(w, "y", NULL), WEIR_INVALID_ARGUMENT, "does not have value");
}

// Values say how deep a recursion goes: its conditional is lowered once, and calls from there on.
static void test_recursion(void** state) {
  world_t* w = *state;
  build(w, "node" CALL("call", "x", "Rec", ""));
  check_ok(weir_flatten(w->graph, WEIR_FLATTEN_ALL));
  assert_int_equal(count_of(w, "If"), 1);
  assert_true(w->graph->node_count < 100);
  assert_float_equal(run_at(w, 1), -16, 0);
  assert_float_equal(run_at(w, 20), -20, 0);
}

// What needs a dead input is dead, and nothing else.
static void test_dead_input(void** state) {
  world_t* w = *state;
  import_text(w, functions);
  import_text(w, "node {name: 'c' op: 'Placeholder' attr {key: 'dtype' value {type: DT_BOOL}}}"
                 "node {name: 's' op: 'Switch' input: 'x' input: 'c'" TYPE("T") "}"
                 "node {name: 'call' op: 'If' input: 'c' input: 'x' input: 's:0'"
                 " attr {key: 'Tcond' value {type: DT_BOOL}}" TYPES("Tout")
                 " attr {key: 'Tin' value {list {type: DT_FLOAT type: DT_FLOAT}}}"
                 FUNC("then_branch", "First") FUNC("else_branch", "First") LOWER("true") "}"
                 "node {name: 'after' op: 'NoOp' input: '^call'}");
  import_text(w, reader);
  open_session(w, 1);
  check_ok(run_at_one(w, "y", NULL));
  check_ok(run_at_one(w, NULL, "after"));
}

static void test_what_stays(void** state) {
  (void)state;
  static const char* const texts[] = {
      "node" CALL("call", "x", "Twice", LOWER("false")),  // asked not to be
      IF("DT_BOOL", ""),                                  // did not ask
      IF("DT_BOOL", LOWER("false")),
      IF_OF("DT_BOOL", "dim {size: 2}", LOWER("true")),  // no lowered form: it fails when it runs
  };
  for (size_t i = 0; i < WEIR_COUNT_OF(texts); ++i) {
    world_t* w = NULL;
    world_setup((void**)&w);
    build(w, texts[i]);
    const char* op = node_of(w, "call")->def.op_name;
    check_ok(weir_flatten(w->graph, WEIR_FLATTEN_AND_CALLS));
    assert_string_equal(node_of(w, "call")->def.op_name, op);
    assert_ptr_equal(node_of(w, "y")->inputs[0].node, node_of(w, "call"));
    world_teardown((void**)&w);
  }
}

static void test_nothing_to_do(void** state) {
  world_t* w = *state;
  import_text(w, functions);
  int version = w->graph->version;
  size_t count = w->graph->node_count;
  check_ok(weir_flatten(w->graph, WEIR_FLATTEN_AND_CALLS));
  assert_int_equal(w->graph->version, version);
  assert_int_equal(w->graph->node_count, count);
}

// A function that calls itself is lowered so far and no further.
static void test_endless_function(void** state) {
  world_t* w = *state;
  build(w, "node" CALL("call", "x", "Endless", ""));
  check_ok(weir_flatten(w->graph, WEIR_FLATTEN_AND_CALLS));
  assert_int_equal(count_of(w, "PartitionedCall"), 1);
  assert_true(w->graph->node_count < 1000);
  assert_ptr_not_equal(node_of(w, "y")->inputs[0].node, node_of(w, "call"));
}

static void test_unknown_function(void** state) {
  world_t* w = *state;
  import_text(w, functions);
  import_text(w, "node" CALL("call", "x", "Nobody", ""));
  check_error(weir_flatten(w->graph, WEIR_FLATTEN_AND_CALLS), WEIR_NOT_FOUND, "Nobody");
}

static void test_exhausted_memory(void** state) {
  (void)state;
  bool is_done = false;
  for (int64_t n = 1; !is_done; n += 1 + n / 16) {
    world_t* w = NULL;
    world_setup((void**)&w);
    build(w, "node" CALL("call", "x", "Rec", ""));
    weir_alloc_fail_at(n, true);
    weir_status_t* status = weir_flatten(w->graph, WEIR_FLATTEN_ALL);
    weir_alloc_fail_at(0, false);
    is_done = !status;
    if (status) assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
    weir_status_destroy(status);
    world_teardown((void**)&w);
  }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_call_becomes_its_body),
      TEST(test_calls_within_calls),
      TEST(test_effects_in_a_loop),
      TEST(test_effects_beside_a_loop_stay),
      TEST(test_chain_of_calls),
      TEST(test_argument_passes_through),
      TEST(test_call_without_results),
      TEST(test_conditional_that_asks_for_it),
      TEST(test_effects_of_a_conditional),
      TEST(test_effects_of_a_whole),
      cmocka_unit_test(test_effects_of_a_lowered_whole),
      TEST(test_loop_that_did_not_ask),
      cmocka_unit_test(test_dead_effects),
      TEST(test_dead_effects_of_what_asks),
      TEST(test_recursion),
      TEST(test_dead_input),
      cmocka_unit_test(test_what_stays),
      TEST(test_nothing_to_do),
      TEST(test_endless_function),
      TEST(test_unknown_function),
      cmocka_unit_test(test_exhausted_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
