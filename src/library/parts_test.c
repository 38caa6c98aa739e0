// parts_test.c — Variables in parts: how many there are, what they are called, where they and
// the work beside them are, what they start with, errors. Training and checkpoints are compared
// with TensorFlow's in tests/partitions_test.py.
#include "testing/bench.h"
#include "weir/ops.h"
#include "weir/optimizer.h"
#include "weir/partition.h"
#include "weir/replicas.h"
#include "weir/sampled.h"
#include "weir/saver.h"
#include "weir/session.h"

static weir_tables_t make(bench_t* b, weir_init_t init, int64_t rows, weir_partitioner_t how) {
  return weir_partitioned_variable(b->s, "table", init, WEIR_SHAPE(rows, 4), how);
}

static void check_part(bench_t* b, weir_edge_t variable, const char* name, const char* slice) {
  weir_variable_part_t part = {0};
  assert_true(weir_variable_part(b->s, variable, &part));
  assert_string_equal(part.name, name);
  assert_string_equal(part.slice, slice);
}

static void test_fixed(void** state) {
  bench_t* b = *state;
  weir_tables_t table = make(b, weir_init_zeros(), 11, weir_partition_fixed(3));
  check_built(b);
  assert_int_equal(table.count, 3);
  check_part(b, table.items[0], "table", "11 4 0,4:0,4");
  check_part(b, table.items[1], "table", "11 4 4,4:0,4");
  check_part(b, weir_variable_handle(table.items[2]), "table", "11 4 8,3:0,4");
  assert_string_equal(weir_node_name(weir_variable_handle(table.items[2]).node), "table/part_2");
  weir_tables_t other = make(b, weir_init_zeros(), 2, weir_partition_fixed(5));
  assert_int_equal(other.count, 2);
  check_part(b, other.items[1], "table_1", "2 4 1,1:0,4");
  assert_false(
      weir_variable_part(b->s, weir_weight(b->s, "w", weir_init_zeros(), WEIR_SHAPE(2)), NULL));
}

static void test_by_size(void** state) {
  bench_t* b = *state;
  assert_int_equal(make(b, weir_init_zeros(), 10, weir_partition_by_size(48, 0)).count, 4);
  assert_int_equal(make(b, weir_init_zeros(), 10, weir_partition_by_size(1, 0)).count, 10);
  assert_int_equal(make(b, weir_init_zeros(), 10, weir_partition_by_size(1, 6)).count, 6);
  assert_int_equal(make(b, weir_init_zeros(), 10, weir_partition_by_size(1000, 0)).count, 1);
  weir_tables_t halves =
      weir_partitioned_variable(b->s, "half", weir_init_zeros(), WEIR_SHAPE(10),
                                weir_partition_by_size(10, 0), .dtype = WEIR_DTYPE_HALF);
  assert_int_equal(halves.count, 2);
  check_built(b);
}

// ---- initial values ----

// What the parts start with, one after the other.
static void check_rows(bench_t* b, weir_tables_t table, const float* expected) {
  weir_session_t* session = NULL;
  check_built(b);
  check_ok(weir_session_create(b->graph, NULL, &session));
  for (int i = 0; i < table.count; ++i) {
    weir_tensor_t* part = NULL;
    weir_step_spec_t spec = {WEIR_FETCHES(weir_scope_variable_at(b->s, i).initial)};
    check_ok(weir_session_run(session, &spec, &part));
    for (int64_t j = 0; j < weir_tensor_count(part); ++j)
      assert_float_equal(((float*)weir_tensor_data(part))[j], *expected++, 0);
    weir_tensor_release(part);
  }
  weir_session_destroy(session);
}

static void test_parts_of_a_value(void** state) {
  bench_t* b = *state;
  float values[20];
  for (int i = 0; i < 20; ++i) values[i] = (float)i;
  weir_edge_t value = weir_const_floats(b->s, WEIR_DIMS(5, 4), values);
  check_rows(b, make(b, weir_init_value(value), 5, weir_partition_fixed(2)), values);
}

static void test_parts_of_the_identity(void** state) {
  bench_t* b = *state;
  float values[16] = {0};
  for (int i = 0; i < 4; ++i) values[i * 5] = 2;
  check_rows(b, make(b, weir_init_identity(2), 4, weir_partition_fixed(3)), values);
}

// ---- places ----

static const char* device_of(weir_edge_t edge) { return weir_node_device(edge.node); }

static void test_devices_in_turn(void** state) {
  bench_t* b = *state;
  const char* devices[] = {"/job:ps/task:0", "/job:ps/task:1"};
  weir_scope_t* s = weir_scope_on(b->s, "/job:worker/task:0");
  weir_tables_t t =
      weir_partitioned_variable(s, "t", weir_init_zeros(), WEIR_SHAPE(6, 4),
                                weir_partition_fixed(3), .devices = devices, .device_count = 2);
  for (int i = 0; i < 3; ++i)
    assert_string_equal(device_of(weir_variable_handle(t.items[i])), devices[i % 2]);
  assert_string_equal(device_of(weir_scope_variable_at(s, 1).initial), devices[1]);
}

static int count_nodes(bench_t* b, const char* op, const char* device) {
  int count = 0;
  for (size_t i = 0; i < weir_graph_node_count(b->graph); ++i) {
    const weir_node_t* node = weir_graph_node_at(b->graph, i);
    count += !strcmp(weir_node_op(node), op) && !strcmp(weir_node_device(node), device);
  }
  return count;
}

static void test_work_beside_the_parts(void** state) {
  bench_t* b = *state;
  weir_scope_t* s = weir_scope_replica(b->s, 2, 0);
  weir_edge_t ids = FED(b, INT64, 6);
  weir_tables_t table = weir_partitioned_variable(s, "t", weir_init_normal(0, 1, 1),
                                                  WEIR_SHAPE(20, 4), weir_partition_fixed(2));
  weir_tables_t bias =
      weir_partitioned_variable(s, "b", weir_init_zeros(), WEIR_SHAPE(20), weir_partition_fixed(2));
  weir_edge_t x = weir_embedding_lookup(s, table, ids, .partition = WEIR_PARTITION_DIV);
  weir_edge_t loss = weir_partitioned_softmax_loss(s, table, bias, ids, x, WEIR_PARTITION_DIV);
  weir_optimizer_t sgd = weir_sgd(0.1f);
  weir_minimize(s, &sgd, weir_sum(s, loss, weir_const_int(s, 0)));
  check_built(b);
  assert_int_equal(count_nodes(b, "ResourceGather", "/job:worker/task:0"), 0);
  assert_int_equal(count_nodes(b, "MatMul", "/job:worker/task:0"), 0);
  for (int i = 0; i < 2; ++i) {
    const char* ps = i ? "/job:ps/task:1" : "/job:ps/task:0";
    assert_int_equal(count_nodes(b, "ResourceGather", ps), 1);
    assert_int_equal(count_nodes(b, "MatMul", ps), 3);  // of logits, and two of their gradients
  }
}

// ---- errors ----

static void test_no_parts(void** state) {
  bench_t* b = *state;
  assert_int_equal(make(b, weir_init_zeros(), 5, weir_partition_fixed(0)).count, 0);
  check_fails(b, (weir_edge_t){0}, "variable 'table': neither 0 parts nor parts of 0 bytes");
}

static void test_no_rows(void** state) {
  bench_t* b = *state;
  assert_int_equal(make(b, weir_init_zeros(), 0, weir_partition_fixed(2)).count, 0);
  check_fails(b, (weir_edge_t){0}, "variable 'table': dimension 0 is 0");
}

static void test_no_dimensions(void** state) {
  bench_t* b = *state;
  weir_partitioned_variable(b->s, "x", weir_init_zeros(), WEIR_SCALAR_SHAPE,
                            weir_partition_fixed(2));
  check_fails(b, (weir_edge_t){0}, "variable 'x': what has no dimensions has no parts");
}

static void test_wrong_slice(void** state) {
  bench_t* b = *state;
  weir_edge_t zeros = weir_const_floats(b->s, WEIR_DIMS(2), (const float[]){0, 0});
  const weir_variable_part_t part = {"v", "5 1,3"};
  check_fails(b, weir_part_variable(b->s, "x", zeros, &part, true),
              "variable 'x' of shape [2] is not the slice 5 1,3 of 'v'");
}

static void test_bad_slice(void** state) {
  bench_t* b = *state;
  weir_edge_t zeros = weir_const_floats(b->s, WEIR_DIMS(2), (const float[]){0, 0});
  const weir_variable_part_t part = {"v", "5 4,2"};
  check_fails(b, weir_part_variable(b->s, "x", zeros, &part, true),
              "variable 'x': '5 4,2' is no slice of 'v'");
}

static void test_slices_of_one_name(void** state) {
  bench_t* b = *state;
  const weir_variable_part_t part = {"v", "4 0,2"};
  weir_edge_t zeros = weir_const_floats(b->s, WEIR_DIMS(2), (const float[]){0, 0});
  weir_part_variable(b->s, "x", zeros, &part, true);
  weir_part_variable(b->s, "y", zeros, &part, true);
  assert_null(weir_saver_create(b->s, .max_to_keep = 1));
  check_fails(b, (weir_edge_t){0}, "two variables are called 'v'");
}

static void test_other_biases(void** state) {
  bench_t* b = *state;
  weir_tables_t table = make(b, weir_init_zeros(), 8, weir_partition_fixed(2));
  weir_edge_t labels = FED(b, INT64, 3), x = FED(b, FLOAT, 3, 4);
  weir_edge_t biases = weir_weight(b->s, "b", weir_init_zeros(), WEIR_SHAPE(8));
  check_fails(b,
              weir_partitioned_softmax_loss(b->s, table, WEIR_TABLES(biases), labels, x,
                                            WEIR_PARTITION_DIV),
              "needs as many biases as weights, got 1 and 2");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_fixed),
      TEST(test_by_size),
      TEST(test_parts_of_a_value),
      TEST(test_parts_of_the_identity),
      TEST(test_devices_in_turn),
      TEST(test_work_beside_the_parts),
      TEST(test_no_parts),
      TEST(test_no_rows),
      TEST(test_no_dimensions),
      TEST(test_wrong_slice),
      TEST(test_bad_slice),
      TEST(test_slices_of_one_name),
      TEST(test_other_biases),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
