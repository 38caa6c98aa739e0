// grad_ctx_test.c — Formulas that gradients share: what a broadcast repeated is summed up.
#include "testing/world.h"

enum { SHAPES = 1 + 3 + 9 };

// Shape |k| of all that have at most two dimensions of 1, 2 or 3. Returns its rank.
static int shape_at(int k, int64_t dims[2]) {
  if (k == 0) return 0;
  if (k < 4) {
    dims[0] = k;
    return 1;
  }
  dims[0] = 1 + (k - 4) / 3;
  dims[1] = 1 + (k - 4) % 3;
  return 2;
}

static weir_tensor_t* make_ones(int rank, const int64_t* dims) {
  weir_tensor_t* tensor = NULL;
  check_ok(weir_tensor_create(WEIR_DTYPE_FLOAT, rank, dims, &tensor));
  for (int64_t i = 0; i < tensor->count; ++i) WEIR_TENSOR_DATA(tensor, float)[i] = 1;
  return tensor;
}

static bool are_compatible(const weir_tensor_t* x, const weir_tensor_t* y) {
  for (int i = 1; i <= x->rank && i <= y->rank; ++i) {
    int64_t a = x->dims[x->rank - i], b = y->dims[y->rank - i];
    if (a != b && a != 1 && b != 1) return false;
  }
  return true;
}

static int64_t count_of_sum(const weir_tensor_t* x, const weir_tensor_t* y) {
  int64_t count = 1;
  for (int i = 1; i <= WEIR_MAX(x->rank, y->rank); ++i) {
    int64_t a = i <= x->rank ? x->dims[x->rank - i] : 1;
    int64_t b = i <= y->rank ? y->dims[y->rank - i] : 1;
    count *= WEIR_MAX(a, b);
  }
  return count;
}

// What is known of the shapes when the gradient is built.
typedef enum known_t { NOTHING, ALL, RANK_OF_X, RANK_OF_Y, KNOWN_COUNT } known_t;

static const weir_shape_t* known_shape(world_t* w, const weir_tensor_t* tensor, int i,
                                       known_t known) {
  static const int64_t kUnknown[] = {-1, -1};
  if (known == NOTHING) return &weir_shape_unknown;
  bool is_rank_alone = known == (i == 0 ? RANK_OF_X : RANK_OF_Y);
  return weir_shape_make(&w->graph->arena, tensor->rank, is_rank_alone ? kUnknown : tensor->dims);
}

// A gradient of x + y has the shape of what it is of, and counts how often each element was used.
static void check_sum(world_t* w, weir_tensor_t* x, weir_tensor_t* y, known_t known) {
  const float count = (float)count_of_sum(x, y);
  weir_edge_t inputs[2], dxs[2];
  weir_tensor_t* tensors[] = {x, y};
  weir_feed_t feeds[2];
  for (int i = 0; i < 2; ++i) {
    const weir_shape_t* shape = known_shape(w, tensors[i], i, known);
    inputs[i] = output(
        add(w, "Placeholder", NULL, WEIR_NO_EDGES,
            WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT), weir_attr_shape("shape", shape))),
        0);
    feeds[i] = (weir_feed_t){inputs[i], tensors[i]};
  }
  weir_edge_t sum = OP(w, "AddV2", inputs[0], inputs[1]);
  check_ok(weir_gradients(w->scope, &sum, 1, inputs, 2, NULL, dxs));
  weir_tensor_t* got[2] = {NULL, NULL};
  weir_step_spec_t spec = {.feeds = feeds, .feed_count = 2, .fetches = dxs, .fetch_count = 2};
  check_ok(weir_session_run(w->session, &spec, got));
  for (int i = 0; i < 2; ++i) {
    assert_true(weir_tensor_same_shape(got[i], tensors[i]));
    for (int64_t k = 0; k < got[i]->count; ++k)
      assert_float_equal(WEIR_TENSOR_DATA(got[i], float)[k], count / (float)got[i]->count, 0);
    weir_tensor_release(got[i]);
  }
}

static void test_broadcasts(void** state) {
  world_t* w = *state;
  open_session(w, 1);
  for (int a = 0; a < SHAPES; ++a) {
    for (int b = 0; b < SHAPES; ++b) {
      int64_t x_dims[2], y_dims[2];
      int x_rank = shape_at(a, x_dims), y_rank = shape_at(b, y_dims);
      weir_tensor_t *x = make_ones(x_rank, x_dims), *y = make_ones(y_rank, y_dims);
      for (int known = 0; known < KNOWN_COUNT && are_compatible(x, y); ++known)
        check_sum(w, x, y, (known_t)known);
      weir_tensor_release(x);
      weir_tensor_release(y);
    }
  }
}

// Where both are the same there is nothing to sum, and no node for it.
static void test_no_broadcast(void** state) {
  world_t* w = *state;
  for (int a = 0; a < SHAPES; ++a) {
    int64_t dims[2];
    int rank = shape_at(a, dims);
    weir_edge_t inputs[2], dxs[2];
    for (int i = 0; i < 2; ++i)
      inputs[i] = output(
          add(w, "Placeholder", NULL, WEIR_NO_EDGES,
              WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                         weir_attr_shape("shape", weir_shape_make(&w->graph->arena, rank, dims)))),
          0);
    weir_edge_t sum = OP(w, "AddV2", inputs[0], inputs[1]);
    check_ok(weir_gradients(w->scope, &sum, 1, inputs, 2, NULL, dxs));
    for (int i = 0; i < 2; ++i) assert_string_not_equal(dxs[i].node->def.op_name, "Sum");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_broadcasts, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_no_broadcast, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
