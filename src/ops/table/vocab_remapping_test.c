// vocab_remapping_test.c — What shape inference says of GenerateVocabRemapping, whose files are
// read when it runs.
#include "testing/world.h"

static void test_shapes(void** state) {
  world_t* w = *state;
  weir_edge_t name = placeholder(w, "name", WEIR_DTYPE_STRING);
  weir_node_t* node =
      add(w, "GenerateVocabRemapping", NULL, WEIR_EDGES(name, name),
          WEIR_ATTRS(weir_attr_int("new_vocab_offset", 0), weir_attr_int("num_new_vocab", 5)));
  assert_int_equal(node->shapes[0]->rank, 1);
  assert_int_equal(node->shapes[0]->dims[0], 5);
  assert_int_equal(node->shapes[1]->rank, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_shapes, world_setup, world_teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
