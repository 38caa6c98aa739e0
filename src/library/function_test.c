// function_test.c — Functions built on a scope: calls, what they capture and copy, and misuse.
#include "weir/function.h"

#include "testing/bench.h"
#include "weir/control.h"

static const weir_spec_t a_float = {{(const weir_dtype_t[]){WEIR_DTYPE_FLOAT}, 1}, {NULL, 0}};

static weir_edge_t call(bench_t* b, weir_defined_t f, weir_edge_t x) {
  weir_edge_t values[8] = {x};
  assert_true(f.captured_count < 8);
  for (int i = 0; i < f.captured_count; ++i) values[1 + i] = f.captured[i];
  return weir_partitioned_call(b->s, values, 1 + f.captured_count, f.results.types, f.name);
}

static void check_value(bench_t* b, weir_edge_t y, float expected) {
  weir_session_t* session = NULL;
  float value = 0;
  weir_node_t* init = weir_initializer(b->s);
  check_built(b);
  check_ok(weir_session_create(b->graph, NULL, &session));
  check_ok(weir_session_run_target(session, init));
  check_ok(weir_session_fetch_float(session, y, &value));
  assert_float_equal(value, expected, 1e-6);
  weir_session_destroy(session);
}

// (x + outside) * outside, and x itself.
static void use_outside(weir_scope_t* s, const weir_edge_t* args, weir_edge_t* results,
                        void* user) {
  weir_edge_t outside = *(weir_edge_t*)user;
  results[0] = weir_mul(s, weir_add_v2(s, args[0], outside), outside);
  results[1] = args[0];
}

static void test_values_are_captured_once(void** state) {
  bench_t* b = *state;
  weir_edge_t v = weir_variable(b->s, "v", weir_const_float(b->s, 3));
  weir_defined_t f = weir_define_function(b->s, "f", a_float, use_outside, &v, 2);
  check_built(b);
  assert_int_equal(f.captured_count, 1);
  assert_ptr_equal(f.captured[0].node, v.node);
  assert_int_equal(f.results.types.count, 2);
  check_value(b, call(b, f, weir_const_float(b->s, 2)), 15);
}

static void test_small_constants_are_copied(void** state) {
  bench_t* b = *state;
  weir_edge_t c = weir_const_float(b->s, 3);
  weir_defined_t f = weir_define_function(b->s, "f", a_float, use_outside, &c, 2);
  assert_int_equal(f.captured_count, 0);
  weir_defined_t g = weir_define_function(b->s, "f", a_float, use_outside, &c, 2);
  assert_string_not_equal(f.name, g.name);
  check_value(b, call(b, g, weir_const_float(b->s, 2)), 15);
}

typedef struct nested_t {
  weir_edge_t outside;
  weir_defined_t inner;
} nested_t;

// A function inside of a function: what is outside of both goes through both.
static void define_inner(weir_scope_t* s, const weir_edge_t* args, weir_edge_t* results,
                         void* user) {
  nested_t* nested = user;
  nested->inner = weir_define_function(s, "inner", a_float, use_outside, &nested->outside, 2);
  weir_edge_t values[] = {args[0], nested->inner.captured[0]};
  results[0] = weir_partitioned_call(s, values, 2, nested->inner.results.types, nested->inner.name);
}

static void test_functions_nest(void** state) {
  bench_t* b = *state;
  nested_t nested = {.outside = weir_variable(b->s, "v", weir_const_float(b->s, 3))};
  weir_defined_t f = weir_define_function(b->s, "outer", a_float, define_inner, &nested, 1);
  assert_int_equal(f.captured_count, 1);
  check_value(b, call(b, f, weir_const_float(b->s, 2)), 15);
}

static weir_edge_t is_small(weir_scope_t* s, const weir_edge_t* state, void* user) {
  return weir_less(s, state[0], *(weir_edge_t*)user);
}
static void double_it(weir_scope_t* s, weir_edge_t* state, void* user) {
  (void)user;
  state[0] = weir_add_v2(s, state[0], state[0]);
}
static void loop(weir_scope_t* s, const weir_edge_t* args, weir_edge_t* results, void* user) {
  weir_while_loop(s, args, 1, is_small, double_it, user, results);
}

static void test_loops_are_part_of_bodies(void** state) {
  bench_t* b = *state;
  weir_edge_t limit = weir_variable(b->s, "limit", weir_const_float(b->s, 100));
  weir_defined_t f = weir_define_function(b->s, "loop", a_float, loop, &limit, 1);
  check_value(b, call(b, f, weir_const_float(b->s, 3)), 192);
}

// One output of several, and a graph that is written and read again.
static void take_second(weir_scope_t* s, const weir_edge_t* args, weir_edge_t* results,
                        void* user) {
  const weir_edge_t both[] = {args[0], weir_neg(s, args[0])};
  weir_edge_t rows = weir_pack(s, both, 2);
  weir_edge_t second = {weir_unpack(s, rows, 2).node, 1};
  (void)user;
  results[0] = weir_identity(s, second);
}

static void test_graphs_keep_functions(void** state) {
  bench_t* b = *state;
  char* def = NULL;
  size_t size = 0;
  weir_graph_t* read = NULL;
  weir_session_t* session = NULL;
  weir_edge_t y;
  float value = 0;
  weir_defined_t f = weir_define_function(b->s, "second", a_float, take_second, NULL, 1);
  y = call(b, f, weir_const_float(b->s, 4));
  check_built(b);
  check_ok(weir_graph_to_def(b->graph, &def, &size));
  check_ok(weir_graph_create(&read));
  check_ok(weir_graph_import_def(read, def, size, NULL));
  check_ok(weir_graph_find_output(read, weir_node_name(y.node), &y));
  check_ok(weir_session_create(read, NULL, &session));
  check_ok(weir_session_fetch_float(session, y, &value));
  assert_true(value == -4);
  weir_session_destroy(session);
  weir_graph_release(read);
  weir_buffer_free(def);
}

static void test_copies(void** state) {
  bench_t* b = *state;
  weir_edge_t two = weir_const_float(b->s, 2);
  weir_edge_t y = weir_mul(b->s, two, weir_add_v2(b->s, two, two));
  weir_defined_t f = weir_define_copy(b->s, "copy", &y, 1);
  check_built(b);
  assert_int_equal(f.captured_count, 0);
  check_value(b, weir_partitioned_call(b->s, NULL, 0, f.results.types, f.name), 8);
  weir_edge_t of_variable = weir_neg(b->s, weir_variable(b->s, "v", two));
  assert_null(weir_define_copy(b->s, "copy", &of_variable, 1).name);
  check_fails(b, (weir_edge_t){0}, "holds state that others share");
  weir_edge_t of_input = weir_neg(b->s, FED(b, FLOAT, 1));
  assert_null(weir_define_copy(b->s, "copy", &of_input, 1).name);
  check_fails(b, (weir_edge_t){0}, "must be fed");
}

static void nothing(weir_scope_t* s, const weir_edge_t* args, weir_edge_t* results, void* user) {
  (void)s, (void)args, (void)results, (void)user;
}
static void finish(weir_scope_t* s, const weir_edge_t* args, weir_edge_t* results, void* user) {
  (void)user;
  results[0] = args[0];
  check_error(weir_scope_finish(s), WEIR_FAILED_PRECONDITION, "not a root scope");
}
static void wrong_type(weir_scope_t* s, const weir_edge_t* args, weir_edge_t* results, void* user) {
  (void)user;
  results[0] = weir_add_v2(s, args[0], weir_const_int(s, 1));
}
static void wait_for(weir_scope_t* s, const weir_edge_t* args, weir_edge_t* results, void* user) {
  weir_node_t* node = user;
  results[0] = weir_identity(weir_scope_after(s, &node, 1), args[0]);
}

static void check_refused(bench_t* b, weir_defined_t f, const char* text) {
  assert_null(f.name);
  check_fails(b, (weir_edge_t){0}, text);
}

static void test_misuse(void** state) {
  bench_t* b = *state;
  weir_edge_t none = {0}, strange = {weir_const_int(b->s, 1).node, 7};
  weir_node_t* node = weir_no_op(b->s);
  weir_spec_t negative = {.types = {NULL, -1}}, absent = {.types = {NULL, 1}};
  check_refused(b, weir_define_function(b->s, "f", a_float, NULL, NULL, 1), "fn is NULL");
  check_refused(b, weir_define_function(b->s, "f", negative, nothing, NULL, 1), "is -1");
  check_refused(b, weir_define_function(b->s, "f", absent, nothing, NULL, 1), "is NULL");
  check_refused(b, weir_define_function(b->s, "f", a_float, nothing, NULL, -1), "is -1");
  check_refused(b, weir_define_function(b->s, "f", a_float, nothing, NULL, 1),
                "function 'f': result 0 is no edge");
  check_refused(b, weir_define_function(b->s, NULL, a_float, wrong_type, NULL, 1), "AddV2");
  check_refused(b, weir_define_function(b->s, "f", a_float, use_outside, &strange, 2), "graph");
  check_refused(b, weir_define_function(b->s, "f", a_float, use_outside, &none, 2), "no edge");
  check_refused(b, weir_define_function(b->s, "f", a_float, wait_for, node, 1), "another graph");
  check_refused(b, weir_define_copy(b->s, "f", NULL, 1), "results is NULL");
  check_refused(b, weir_define_copy(b->s, "f", &none, 1), "result 0 is no edge");
  check_refused(b, weir_define_copy(b->s, "f", &strange, 1), "has 1 outputs");
  assert_non_null(weir_define_function(b->s, "f", a_float, finish, NULL, 1).name);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {TEST(test_values_are_captured_once),
                                     TEST(test_small_constants_are_copied),
                                     TEST(test_functions_nest),
                                     TEST(test_loops_are_part_of_bodies),
                                     TEST(test_graphs_keep_functions),
                                     TEST(test_copies),
                                     TEST(test_misuse)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
