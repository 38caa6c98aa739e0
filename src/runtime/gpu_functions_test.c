// gpu_functions_test.c — Functions whose bodies have kernels of a GPU: they run there, with
// variables there, and errors name their nodes. The GPU and its compiler are fakes: what they are
// asked for counts, not what comes out; numbers that decide anything are int32, on the host.
#include "base/alloc.h"
#include "device/cuda/cuda_compiler.h"
#include "testing/cuda_fake.h"
#include "testing/world.h"

#define FLOAT_ARG(name) " {name: '" name "' type: DT_FLOAT}"
#define INT_ARG(name) " {name: '" name "' type: DT_INT32}"
#define TYPE(key, type) " attr {key: '" key "' value {type: " type "}}"
#define TYPES(key, types) " attr {key: '" key "' value {list {" types "}}}"
#define FUNC(key, value) " attr {key: '" key "' value {func {name: '" value "'}}}"
#define INT(name, value) \
  " {name: '" name "' op: 'Const'" TYPE("dtype", "DT_INT32")            \
  " attr {key: 'value' value {tensor {dtype: DT_INT32 tensor_shape {}"  \
  " int_val: " value "}}}}"
#define BOTH "type: DT_INT32 type: DT_FLOAT"
#define SIGNATURE(name)                                                        \
  "signature {name: '" name "' input_arg" INT_ARG("i") " input_arg" FLOAT_ARG( \
      "x") " output_arg" INT_ARG("j") " output_arg" FLOAT_ARG("y") "}"
#define RETURNS(i, x) "ret {key: 'j' value: '" i "'} ret {key: 'y' value: '" x "'}"

static const char functions[] =
    "node {name: 'x' op: 'Placeholder'" TYPE("dtype", "DT_FLOAT") "}"
    "node" INT("zero", "0")
    "library {"
    " function {" SIGNATURE("Turn")
    "  node_def" INT("one", "1")
    "  node_def {name: 'next' op: 'AddV2' input: 'i' input: 'one:output:0'" TYPE("T", "DT_INT32") "}"
    "  node_def {name: 'soft' op: 'Softmax' input: 'x'" TYPE("T", "DT_FLOAT") "}"
    "  " RETURNS("next:z:0", "soft:softmax:0") "}"
    " function {" SIGNATURE("Same") RETURNS("i", "x") "}"
    " function {signature {name: 'Goes' input_arg" INT_ARG("i") " input_arg" FLOAT_ARG("x")
    "  output_arg {name: 'r' type: DT_BOOL}}"
    "  node_def" INT("five", "5")
    "  node_def {name: 'less' op: 'Less' input: 'i' input: 'five:output:0'" TYPE("T", "DT_INT32") "}"
    "  ret {key: 'r' value: 'less:z:0'}}"
    // Turns five times, by calling itself.
    " function {" SIGNATURE("Rec")
    "  node_def" INT("five", "5")
    "  node_def {name: 'less' op: 'Less' input: 'i' input: 'five:output:0'" TYPE("T", "DT_INT32") "}"
    "  node_def {name: 'choose' op: 'If' input: 'less:z:0' input: 'i' input: 'x'"
       TYPE("Tcond", "DT_BOOL") TYPES("Tin", BOTH) TYPES("Tout", BOTH)
       FUNC("then_branch", "Deeper") FUNC("else_branch", "Same") "}"
    "  " RETURNS("choose:output:0", "choose:output:1") "}"
    " function {" SIGNATURE("Deeper")
    "  node_def {name: 'turn' op: 'PartitionedCall' input: 'i' input: 'x'"
       TYPES("Tin", BOTH) TYPES("Tout", BOTH) FUNC("f", "Turn") "}"
    "  node_def {name: 'again' op: 'PartitionedCall' input: 'turn:output:0' input: 'turn:output:1'"
       TYPES("Tin", BOTH) TYPES("Tout", BOTH) FUNC("f", "Rec") "}"
    "  " RETURNS("again:output:0", "again:output:1") "}"
    // Adds to a variable, and turns.
    " function {signature {name: 'Adds' input_arg" INT_ARG("i") " input_arg" FLOAT_ARG("x")
    "  input_arg {name: 'v' type: DT_RESOURCE} output_arg" INT_ARG("j") " output_arg" FLOAT_ARG("y")
    "  output_arg {name: 'w' type: DT_RESOURCE}}"
    "  node_def" INT("one", "1")
    "  node_def {name: 'next' op: 'AddV2' input: 'i' input: 'one:output:0'" TYPE("T", "DT_INT32") "}"
    "  node_def {name: 'add' op: 'AssignAddVariableOp' input: 'v' input: 'x'"
       TYPE("dtype", "DT_FLOAT") "}"
    "  ret {key: 'j' value: 'next:z:0'} ret {key: 'y' value: 'x'} ret {key: 'w' value: 'v'}}"
    " function {signature {name: 'AddsOn' input_arg" INT_ARG("i") " input_arg" FLOAT_ARG("x")
    "  input_arg {name: 'v' type: DT_RESOURCE} output_arg {name: 'r' type: DT_BOOL}}"
    "  node_def" INT("five", "5")
    "  node_def {name: 'less' op: 'Less' input: 'i' input: 'five:output:0'" TYPE("T", "DT_INT32") "}"
    "  ret {key: 'r' value: 'less:z:0'}}"
    "}";

// ---- a GPU ----

static const char* wrong;

static weir_status_t* compile(const char* name, const char* source, int architecture,
                              char** out_code, size_t* out_size) {
  (void)architecture;
  if (wrong && strstr(source, wrong)) return WEIR_STATUS(INTERNAL, "%s is wrong", name);
  *out_code = weir_calloc(1, 1);
  *out_size = 1;
  return *out_code ? NULL : weir_out_of_memory();
}

static int setup(void** state) {
  wrong = NULL;
  weir_cuda_driver_replace(&cuda_fake_driver);
  weir_cuda_compiler_replace(compile);
  return world_setup(state);
}

static int teardown(void** state) {
  int result = world_teardown(state);
  weir_cuda_compiler_replace(NULL);
  weir_cuda_driver_replace(NULL);
  return result;
}

static void build(world_t* w, const char* text) {
  import_text(w, functions);
  import_text(w, text);
  weir_session_options_t options = {.threads = 2, .devices = "cpu,cuda"};
  check_ok(weir_session_create(w->graph, &options, &w->session));
}

static weir_tensor_t* make_matrix(void) {
  weir_tensor_t* x = NULL;
  check_ok(weir_tensor_create(WEIR_DTYPE_FLOAT, 2, (const int64_t[]){2, 3}, &x));
  memset(x->data, 0, weir_tensor_byte_size(x));
  return x;
}

// Fetches |name|'s output 0 and runs its output 1, with x a matrix; launches that this took.
static weir_status_t* run(world_t* w, const char* name, int* out_value, int* out_launches) {
  weir_tensor_t* x = make_matrix();
  weir_tensor_t* results[2] = {NULL};
  weir_node_t* node = weir_graph_find_node(w->graph, name);
  int before = cuda_fake_launches;
  weir_step_spec_t spec = {WEIR_FEEDS({output(weir_graph_find_node(w->graph, "x"), 0), x}),
                           WEIR_FETCHES(output(node, 0), output(node, 1))};
  weir_status_t* status = weir_session_run(w->session, &spec, results);
  *out_launches = cuda_fake_launches - before;
  if (!status) *out_value = *WEIR_TENSOR_DATA(results[0], const int32_t);
  weir_tensor_release(results[0]);
  weir_tensor_release(results[1]);
  weir_tensor_release(x);
  return status;
}

// ---- tests ----

#define LOOP(name, ...)                                                                   \
  "node {name: '" name "' op: 'StatelessWhile' input: 'zero' input: 'x'" TYPES("T", BOTH) \
      FUNC("cond", "Goes") FUNC("body", "Turn") __VA_ARGS__ "}"
#define LOWER(value) " attr {key: '_lower_using_switch_merge' value {b: " value "}}"
#define CALL(name, f, ...)                                                                   \
  "node {name: '" name "' op: 'PartitionedCall' input: 'zero' input: 'x'" TYPES("Tin", BOTH) \
      TYPES("Tout", BOTH) FUNC("f", f) __VA_ARGS__ "}"

// A launch for each turn, whether or not the loop asks to be lowered; the counter is the host's.
static void test_loops(void** state) {
  world_t* w = *state;
  int value = 0, launches = 0;
  build(w, LOOP("loop", "") LOOP("marked", LOWER("true")) LOOP("kept", LOWER("false")));
  const char* const names[] = {"loop", "marked", "kept"};
  for (size_t i = 0; i < WEIR_COUNT_OF(names); ++i) {
    check_ok(run(w, names[i], &value, &launches));
    assert_int_equal(value, 5);
    assert_int_equal(launches, 5);
  }
}

static void test_calls(void** state) {
  world_t* w = *state;
  int value = 0, launches = 0;
  build(w, CALL("call", "Turn", "") CALL("kept", "Turn", LOWER("false")));
  const char* const names[] = {"call", "kept"};
  for (size_t i = 0; i < WEIR_COUNT_OF(names); ++i) {
    check_ok(run(w, names[i], &value, &launches));
    assert_int_equal(value, 1);
    assert_int_equal(launches, 1);
  }
}

static void test_conditionals(void** state) {
  world_t* w = *state;
  int value = 0, launches = 0;
  build(w, "node" INT("no", "0") "node" INT("yes", "1")
           "node {name: 'true' op: 'Cast' input: 'yes'" TYPE("SrcT", "DT_INT32") TYPE("DstT", "DT_BOOL") "}"
           "node {name: 'if' op: 'StatelessIf' input: 'true' input: 'zero' input: 'x'"
           TYPE("Tcond", "DT_BOOL") TYPES("Tin", BOTH) TYPES("Tout", BOTH)
           FUNC("then_branch", "Turn") FUNC("else_branch", "Same") "}"
           "node {name: 'case' op: 'Case' input: 'no' input: 'zero' input: 'x'"
           TYPES("Tin", BOTH) TYPES("Tout", BOTH) " attr {key: 'branches' value {list {"
           " func {name: 'Turn'} func {name: 'Same'}}}}}");
  const char* const names[] = {"if", "case"};
  for (size_t i = 0; i < WEIR_COUNT_OF(names); ++i) {
    check_ok(run(w, names[i], &value, &launches));
    assert_int_equal(value, 1);
    assert_int_equal(launches, 1);
  }
}

// As deep as values say; what is beyond the first turn may be on the CPU.
static void test_recursion(void** state) {
  world_t* w = *state;
  int value = 0, launches = 0;
  build(w, CALL("call", "Rec", ""));
  check_ok(run(w, "call", &value, &launches));
  assert_int_equal(value, 5);
  assert_true(launches > 0);
}

#define ALL "type: DT_INT32 type: DT_FLOAT type: DT_RESOURCE"
static void test_variables(void** state) {
  world_t* w = *state;
  int value = 0, launches = 0;
  build(w, "node {name: 'v' op: 'VarHandleOp' device: '/device:GPU:0'" TYPE("dtype", "DT_FLOAT")
           " attr {key: 'shape' value {shape {unknown_rank: true}}}}"
           "node {name: 'init' op: 'AssignVariableOp' input: 'v' input: 'x'" TYPE("dtype", "DT_FLOAT") "}"
           "node {name: 'loop' op: 'While' input: 'zero' input: 'x' input: 'v'" TYPES("T", ALL)
           FUNC("cond", "AddsOn") FUNC("body", "Adds") "}");
  weir_tensor_t* x = make_matrix();
  weir_step_spec_t spec = {WEIR_FEEDS({output(weir_graph_find_node(w->graph, "x"), 0), x}),
                           WEIR_TARGETS(weir_graph_find_node(w->graph, "init"))};
  check_ok(weir_session_run(w->session, &spec, NULL));
  weir_tensor_release(x);
  check_ok(run(w, "loop", &value, &launches));
  assert_int_equal(value, 5);
  assert_int_equal(launches, 5);
}

static void test_errors_name_their_node(void** state) {
  world_t* w = *state;
  int value = 0, launches = 0;
  build(w, LOOP("loop", ""));
  wrong = "softmax_short";
  check_error(run(w, "loop", &value, &launches), WEIR_INTERNAL, "soft' (Softmax)");
  assert_int_equal(launches, 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_loops),     TEST(test_calls),     TEST(test_conditionals),
      TEST(test_recursion), TEST(test_variables), TEST(test_errors_name_their_node),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
