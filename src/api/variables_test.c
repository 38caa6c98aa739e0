// variables_test.c — The variables of a session, read and set by their names.
#include "weir/variables.h"

#include "testing/world.h"

typedef struct vars_t {
  weir_session_t* session;
  weir_edge_t count, matrix, there;  // there: on the second device
} vars_t;

// Two devices, of which the second has memory that the host cannot touch.
static vars_t open_vars(world_t* w) {
  weir_scope_t* s = w->scope;
  weir_edge_t values = weir_const_floats(s, WEIR_DIMS(2, 2), (const float[]){1, 2, 3, 4});
  vars_t v = {.count = weir_variable(s, "count", weir_const_int(s, 7)),
              .matrix = weir_variable(s, "layer/matrix", values),
              .there = weir_variable(weir_scope_on(s, "/device:GUARD:0"), "there",
                                     weir_const_float(s, .5f))};
  check_scope(w);
  weir_session_options_t options = {.threads = 1, .devices = "cpu:1,guard:1"};
  check_ok(weir_session_create(w->graph, &options, &w->session));
  v.session = w->session;
  return v;
}

static weir_tensor_t* floats(int rank, const int64_t* dims, const float* values) {
  weir_tensor_t* tensor = NULL;
  check_ok(weir_tensor_create_from(WEIR_DTYPE_FLOAT, rank, dims, values, &tensor));
  return tensor;
}

static void check_read(weir_session_t* session, const char* name, const float* values, int count) {
  weir_tensor_t* tensor = NULL;
  check_ok(weir_session_read_variable(session, name, &tensor));
  assert_int_equal(weir_tensor_count(tensor), count);
  assert_memory_equal(weir_tensor_data(tensor), values, sizeof(*values) * (size_t)count);
  weir_tensor_release(tensor);
}

static weir_status_t* set(weir_session_t* session, const char* name, weir_tensor_t* take_value) {
  weir_status_t* status = weir_session_set_variables(session, &name, &take_value, 1);
  weir_tensor_release(take_value);
  return status;
}

// Nothing else gives them their first values.
static void test_set_and_read(void** state) {
  vars_t v = open_vars(*state);
  weir_tensor_t* none = NULL;
  check_error(weir_session_read_variable(v.session, "there", &none), WEIR_FAILED_PRECONDITION,
              "variable 'there' is not initialised");
  check_ok(set(v.session, "there", floats(0, NULL, (const float[]){.25f})));
  check_ok(set(v.session, "layer/matrix", floats(WEIR_DIMS(2, 2), (const float[]){5, 6, 7, 8})));
  check_read(v.session, "there", (const float[]){.25f}, 1);
  check_read(v.session, "layer/matrix", (const float[]){5, 6, 7, 8}, 4);
  assert_float_equal(fetch_float(v.session, v.there), .25f, 0);
}

// A step that changes the variable changes neither what was read of it nor what it was set to.
static void test_values_are_kept(void** state) {
  world_t* w = *state;
  vars_t v = open_vars(w);
  weir_tensor_t *first = floats(WEIR_DIMS(2, 2), (const float[]){5, 6, 7, 8}), *read = NULL;
  const char* name = "layer/matrix";
  weir_node_t* handle = weir_graph_find_node(w->graph, name);
  weir_node_t* twice =
      add(w, "AssignAddVariableOp", "twice", WEIR_EDGES(output(handle, 0), v.matrix),
          WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT)));
  check_ok(weir_session_set_variables(v.session, &name, &first, 1));
  check_ok(weir_session_read_variable(v.session, name, &read));
  check_ok(weir_session_run_target(v.session, twice));
  check_read(v.session, name, (const float[]){10, 12, 14, 16}, 4);
  assert_memory_equal(weir_tensor_data(first), ((const float[]){5, 6, 7, 8}), 4 * sizeof(float));
  assert_memory_equal(weir_tensor_data(read), ((const float[]){5, 6, 7, 8}), 4 * sizeof(float));
  weir_tensor_release(first);
  weir_tensor_release(read);
}

static void test_refused(void** state) {
  vars_t v = open_vars(*state);
  weir_tensor_t* none = NULL;
  check_error(weir_session_read_variable(v.session, "layer/matirx", &none), WEIR_NOT_FOUND,
              "there is no variable 'layer/matirx' (did you mean 'layer/matrix'?)");
  check_error(set(v.session, "layer/matrix", floats(WEIR_DIMS(3), (const float[]){1, 2, 3})),
              WEIR_INVALID_ARGUMENT,
              "variable 'layer/matrix' has shape [2,2], and does not take shape [3]");
  check_error(set(v.session, "count", floats(0, NULL, (const float[]){1})), WEIR_INVALID_ARGUMENT,
              "variable 'count' is int32, and does not take float");
  check_error(set(v.session, "count", NULL), WEIR_INVALID_ARGUMENT, "no tensor");
}

static void test_all_or_none(void** state) {
  vars_t v = open_vars(*state);
  weir_tensor_t* value = floats(0, NULL, (const float[]){2});
  weir_tensor_t* both[] = {value, value};
  check_ok(set(v.session, "there", floats(0, NULL, (const float[]){1})));
  check_error(weir_session_set_variables(v.session, (const char*[]){"there", "nowhere"}, both, 2),
              WEIR_NOT_FOUND, "nowhere");
  check_error(weir_session_set_variables(v.session, (const char*[]){"there", "there"}, both, 2),
              WEIR_INVALID_ARGUMENT, "variable 'there' is given two values");
  check_read(v.session, "there", (const float[]){1}, 1);
  check_ok(weir_session_set_variables(v.session, NULL, NULL, 0));
  weir_tensor_release(value);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_set_and_read, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_values_are_kept, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_refused, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_all_or_none, world_setup, world_teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
