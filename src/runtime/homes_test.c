// homes_test.c — State by container and name: who has a home keeps it, and the oldest give way.
#include "runtime/homes.h"

#include "testing/world.h"

static const weir_placement_t devices[] = {{.device = "/job:a/task:0"},
                                           {.device = "/job:a/task:1"}};

static const weir_node_t* variable(world_t* w, const char* name, const char* container,
                                   const char* shared_name) {
  return add(w, "VarHandleOp", name, WEIR_NO_EDGES,
             WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                        weir_attr_shape("shape", &weir_shape_scalar),
                        weir_attr_string("container", container),
                        weir_attr_string("shared_name", shared_name)));
}

static int find(weir_homes_t* homes, const weir_node_t* node, int device_count) {
  int found = 7;
  check_ok(weir_homes_find(homes, node, devices, device_count, &found));
  return found;
}

static void test_homes(void** state) {
  world_t* w = *state;
  weir_homes_t* homes = NULL;
  check_ok(weir_homes_create(2, &homes));
  const weir_node_t* v = variable(w, "v", "", "");
  assert_true(weir_node_makes_state(v));
  assert_false(weir_node_makes_state(OP(w, "Neg", placeholder(w, "x", WEIR_DTYPE_FLOAT)).node));
  assert_int_equal(find(homes, v, 2), -1);
  check_ok(weir_homes_add(homes, v, devices[1].device));
  check_ok(weir_homes_add(homes, v, devices[0].device));  // too late
  assert_int_equal(find(homes, v, 2), 1);
  assert_int_equal(find(homes, v, 1), -1);                           // not among those
  assert_int_equal(find(homes, variable(w, "u", "", "v"), 2), 1);    // the same, by another name
  assert_int_equal(find(homes, variable(w, "t", "c", "v"), 2), -1);  // of another container
  check_ok(weir_homes_add(homes, variable(w, "a", "", ""), devices[0].device));
  assert_int_equal(find(homes, v, 2), 1);  // is used, so that the other one goes
  check_ok(weir_homes_add(homes, variable(w, "b", "", ""), devices[0].device));
  assert_int_equal(find(homes, v, 2), 1);
  assert_int_equal(find(homes, variable(w, "a2", "", "a"), 2), -1);
  weir_homes_destroy(homes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_homes, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
