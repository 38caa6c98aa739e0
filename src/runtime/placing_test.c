// placing_test.c — Placement by cost in a session: what has state stays where it was put.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "testing/world.h"

#define ON_A_GUARD "/device:GUARD:*"

static weir_node_t* add_on(world_t* w, const char* device, const char* op, const char* name,
                           weir_edges_t inputs, weir_attrs_t attrs) {
  weir_node_params_t params = {
      .op = op, .name = name, .device = device, .inputs = inputs, .attrs = attrs};
  weir_node_t* node = NULL;
  check_ok(weir_graph_add(w->graph, &params, &node));
  return node;
}

#define FLOAT_ATTRS WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT))

// A variable on some guard, which |init| gives a value, and a function of it.
typedef struct branch_t {
  weir_node_t* init;
  weir_edge_t handle;
  weir_edge_t end;
} branch_t;

static branch_t add_branch(world_t* w, const char* name, float start) {
  branch_t branch;
  char full[32];
  snprintf(full, sizeof(full), "%s/v", name);
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                                  weir_attr_shape("shape", &weir_shape_scalar),
                                  weir_attr_string("shared_name", name));
  branch.handle = output(add_on(w, ON_A_GUARD, "VarHandleOp", full, WEIR_NO_EDGES, attrs), 0);
  snprintf(full, sizeof(full), "%s/init", name);
  weir_edge_t value = weir_const_float(w->scope, start);
  branch.init =
      add_on(w, "", "AssignVariableOp", full, WEIR_EDGES(branch.handle, value), FLOAT_ATTRS);
  snprintf(full, sizeof(full), "%s/read", name);
  weir_edge_t read =
      output(add_on(w, "", "ReadVariableOp", full, WEIR_EDGES(branch.handle), FLOAT_ATTRS), 0);
  branch.end = output(add_on(w, ON_A_GUARD, "Square", name, WEIR_EDGES(read), WEIR_NO_ATTRS), 0);
  return branch;
}

// A trace by which each branch takes a second.
static void write_trace(char* path) {
  static const char event[] = "{\"ts\":0,\"dur\":1e6,\"args\":{\"name\":\"%s\"}}%s";
  int file = mkstemp(path);
  assert_true(file >= 0);
  FILE* out = fdopen(file, "w");
  assert_non_null(out);
  fputs("{\"traceEvents\":[", out);
  fprintf(out, event, "a", ",");
  fprintf(out, event, "b", ",");
  fprintf(out, event, "c", "]}");
  assert_int_equal(fclose(out), 0);
}

// Initialisation, which is run first, could have both variables on one guard; the step wants them
// apart. A graph that grows moves nothing.
static void test_state_stays(void** state) {
  world_t* w = *state;
  char path[] = "/tmp/weir_placing_XXXXXX", place[64];
  write_trace(path);
  snprintf(place, sizeof(place), "cost:%s", path);
  branch_t a = add_branch(w, "a", 2), b = add_branch(w, "b", 3);
  weir_edge_t sum = OP(w, "AddV2", a.end, b.end);
  weir_session_options_t options = {.threads = 2, .devices = "cpu,guard:2", .place = place};
  check_ok(weir_session_create(w->graph, &options, &w->session));
  check_ok(weir_session_run_target(w->session, a.init));
  check_ok(weir_session_run_target(w->session, b.init));
  assert_true(fetch_float(w->session, a.end) == 4);
  assert_true(fetch_float(w->session, b.end) == 9);
  assert_true(fetch_float(w->session, sum) == 13);
  branch_t c = add_branch(w, "c", 5);
  weir_edge_t more = OP(w, "AddV2", sum, OP(w, "AddV2", c.end, c.end));
  check_ok(weir_session_run_target(w->session, c.init));
  assert_true(fetch_float(w->session, more) == 63);
  weir_node_t* update = add_on(w, "", "AssignAddVariableOp", "update",
                               WEIR_EDGES(a.handle, weir_const_float(w->scope, 1)), FLOAT_ATTRS);
  check_ok(weir_session_run_target(w->session, update));
  assert_true(fetch_float(w->session, sum) == 18);
  assert_int_equal(unlink(path), 0);
}

// Where nodes without a device are given one, the graph is placed as a whole, so that all steps
// find its state at the same place: a step is refused for a node that it does not need.
static void test_graph_that_cannot_be_placed(void** state) {
  static const char* const places[] = {"random:7", "/device:GUARD:0", "/device:CPU:1"};
  world_t* w = *state;
  weir_edge_t two = weir_const_float(w->scope, 2);
  weir_edge_t square = OP(w, "Square", two);
  for (int is_bad = 0; is_bad < 2; ++is_bad) {
    if (is_bad) add_on(w, "/device:GUARD:7", "Neg", "bad", WEIR_EDGES(two), WEIR_NO_ATTRS);
    for (size_t i = 0; i < WEIR_COUNT_OF(places); ++i) {
      weir_session_t* session = NULL;
      weir_session_options_t options = {
          .threads = 1, .devices = "cpu:2,guard:1", .place = places[i]};
      float value = 0;
      check_ok(weir_session_create(w->graph, &options, &session));
      weir_status_t* status = weir_session_fetch_float(session, square, &value);
      if (is_bad) check_error(status, WEIR_INVALID_ARGUMENT, "assign a device for operation bad");
      else check_ok(status);
      assert_float_equal(value, is_bad ? 0 : 4, 0);
      weir_session_destroy(session);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_state_stays, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_graph_that_cannot_be_placed, world_setup,
                                      world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
