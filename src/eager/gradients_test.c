// gradients_test.c — The same C function builds a graph and runs eagerly: values, gradients and
// gradients of gradients are the same numbers.
#include "api/scope.h"
#include "testing/tensors.h"
#include "weir/weir.h"

enum { INPUTS = 3, RESULTS = 1 + 2 * INPUTS };

typedef weir_edge_t (*build_fn_t)(weir_scope_t* s, const weir_edge_t* x);
typedef struct case_t {
  const char* name;
  build_fn_t build;
} case_t;

// x[0] and x[1] are 4x6, x[2] is 6x4; all between 0 and 1.
#define AXIS(i) weir_const_int(s, i)
#define INTS(...)                                \
  weir_const_ints(s, (const int[]){__VA_ARGS__}, \
                  (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))
#define CASES(X)                                                                                   \
  X(Abs, weir_abs(s, x[0]))                                                                        \
  X(Acos, weir_acos(s, x[0]))                                                                      \
  X(Asinh, weir_asinh(s, x[0]))                                                                    \
  X(Atan2, weir_atan2(s, x[0], x[1]))                                                              \
  X(AddN, weir_add_n(s, x, 2))                                                                     \
  X(BiasAdd, weir_bias_add(s, x[0], weir_sum(s, x[1], AXIS(0))))                                   \
  X(Cos, weir_cos(s, x[0]))                                                                        \
  X(Digamma, weir_digamma(s, x[0]))                                                                \
  X(Div, weir_real_div(s, x[0], x[1]))                                                             \
  X(Elu, weir_elu(s, weir_neg(s, x[0])))                                                           \
  X(Erf, weir_erf(s, x[0]))                                                                        \
  X(Exp, weir_exp(s, x[0]))                                                                        \
  X(Expm1, weir_expm1(s, x[0]))                                                                    \
  X(Inv, weir_reciprocal(s, x[0]))                                                                 \
  X(Lgamma, weir_lgamma(s, x[0]))                                                                  \
  X(Log, weir_log(s, x[0]))                                                                        \
  X(Log1p, weir_log1p(s, x[0]))                                                                    \
  X(Maximum, weir_maximum(s, x[0], x[1]))                                                          \
  X(Minimum, weir_minimum(s, x[0], x[1]))                                                          \
  X(Mul, weir_mul(s, x[0], x[1]))                                                                  \
  X(Pow, weir_pow(s, x[0], x[1]))                                                                  \
  X(Relu, weir_relu(s, weir_sub(s, x[0], x[1])))                                                   \
  X(Rsqrt, weir_rsqrt(s, x[0]))                                                                    \
  X(Selu, weir_selu(s, x[0]))                                                                      \
  X(Sigmoid, weir_sigmoid(s, x[0]))                                                                \
  X(Sinh, weir_sinh(s, x[0]))                                                                      \
  X(Softplus, weir_softplus(s, x[0]))                                                              \
  X(Softsign, weir_softsign(s, x[0]))                                                              \
  X(Sqrt, weir_sqrt(s, x[0]))                                                                      \
  X(SquaredDifference, weir_squared_difference(s, x[0], x[1]))                                     \
  X(Tan, weir_tan(s, x[0]))                                                                        \
  X(Tanh, weir_tanh(s, x[0]))                                                                      \
  X(Xlogy, weir_xlogy(s, x[0], x[1]))                                                              \
  X(Broadcast, weir_mul(s, x[0], weir_slice(s, x[1], INTS(0, 0), INTS(1, 6))))                     \
  X(MatMul, weir_mat_mul(s, x[0], x[2]))                                                           \
  X(MatMulTransposed, weir_mat_mul(s, x[0], x[1], .transpose_b = true))                            \
  X(BatchMatMul, weir_batch_mat_mul_v2(s, weir_reshape(s, x[0], INTS(2, 2, 6)),                    \
                                       weir_reshape(s, x[2], INTS(2, 6, 2))))                      \
  X(Sum, weir_sum(s, x[0], AXIS(1)))                                                               \
  X(Mean, weir_mean(s, x[0], AXIS(0), .keep_dims = true))                                          \
  X(Max, weir_max(s, x[0], AXIS(1)))                                                               \
  X(Prod, weir_prod(s, x[0], AXIS(1)))                                                             \
  X(Cumsum, weir_cumsum(s, x[0], AXIS(1)))                                                         \
  X(Cumprod, weir_cumprod(s, x[0], AXIS(1)))                                                       \
  X(Softmax, weir_softmax(s, x[0]))                                                                \
  X(LogSoftmax, weir_log_softmax(s, x[0]))                                                         \
  X(CrossEntropy, weir_softmax_cross_entropy_with_logits(s, x[0], x[1]).loss)                      \
  X(L2Loss, weir_l2_loss(s, x[0]))                                                                 \
  X(Concat, weir_concat_v2(s, x, 2, AXIS(1)))                                                      \
  X(Pack, weir_pack(s, x, 2, .axis = 1))                                                           \
  X(Unpack, weir_mul(s, nth(weir_unpack(s, x[0], 4), 1), nth(weir_unpack(s, x[1], 4), 2)))         \
  X(Split, weir_square(s, nth(weir_split(s, AXIS(1), x[0], 3), 1)))                                \
  X(Transpose, weir_transpose(s, weir_square(s, x[0]), INTS(1, 0)))                                \
  X(Pad, weir_pad(s, weir_square(s, x[0]), weir_reshape(s, INTS(1, 0, 0, 2), INTS(2, 2))))         \
  X(Tile, weir_tile(s, weir_square(s, x[0]), INTS(2, 1)))                                          \
  X(Slice, weir_slice(s, weir_square(s, x[0]), INTS(1, 2), INTS(2, 3)))                            \
  X(StridedSlice, weir_strided_slice(s, weir_square(s, x[0]), INTS(0, 1), INTS(4, 6), INTS(2, 2))) \
  X(Gather, weir_gather_v2(s, weir_square(s, x[0]), INTS(1, 1, 3), AXIS(0)))                       \
  X(GatherNd,                                                                                      \
    weir_gather_nd(s, weir_square(s, x[0]), weir_reshape(s, INTS(1, 2, 3, 0), INTS(2, 2))))        \
  X(Reverse, weir_reverse_v2(s, weir_square(s, x[0]), INTS(0)))                                    \
  X(ExpandSqueeze, weir_squeeze(s, weir_square(s, weir_expand_dims(s, x[0], AXIS(0)))))            \
  X(Select, weir_select_v2(s, weir_less(s, x[0], x[1]), x[0], weir_square(s, x[1])))               \
  X(SegmentSum, weir_unsorted_segment_sum(s, weir_square(s, x[0]), INTS(0, 1, 0, 1), AXIS(2)))     \
  X(TopK, weir_square(s, weir_top_kv2(s, x[0], AXIS(2)).values))                                   \
  X(Cast, weir_cast(s, weir_square(s, weir_cast(s, x[0], WEIR_DTYPE_DOUBLE)), WEIR_DTYPE_FLOAT))   \
  X(StopGradient, weir_mul(s, weir_stop_gradient(s, x[0]), x[1]))                                  \
  X(Conv2D,                                                                                        \
    weir_conv2d(s, weir_reshape(s, x[0], INTS(1, 4, 6, 1)),                                        \
                weir_reshape(s, weir_slice(s, x[2], INTS(0, 0), INTS(2, 4)), INTS(2, 2, 1, 2)),    \
                WEIR_INTS(1, 1, 1, 1), "SAME"))                                                    \
  X(MaxPool, weir_max_pool(s, weir_reshape(s, weir_square(s, x[0]), INTS(1, 4, 6, 1)),             \
                           WEIR_INTS(1, 2, 2, 1), WEIR_INTS(1, 2, 2, 1), "VALID"))                 \
  X(AvgPool, weir_avg_pool(s, weir_reshape(s, weir_square(s, x[0]), INTS(1, 4, 6, 1)),             \
                           WEIR_INTS(1, 2, 2, 1), WEIR_INTS(1, 2, 2, 1), "VALID"))                 \
  X(Einsum, weir_einsum(s, x, 2, "ij,kj->ik"))                                                     \
  X(Inverse, weir_matrix_inverse(                                                                  \
                 s, weir_add_v2(s, weir_mat_mul(s, x[0], x[2]),                                    \
                                weir_diag(s, weir_fill(s, INTS(4), weir_const_float(s, 9))))))

static weir_edge_t nth(weir_edge_t first, int i) { return (weir_edge_t){first.node, i}; }

#define X(name, expression) \
  static weir_edge_t build_##name(weir_scope_t* s, const weir_edge_t* x) { return expression; }
CASES(X)
#undef X

// ---- control flow, by C functions and by functions of the library ----

typedef struct both_t {
  const weir_edge_t* x;
} both_t;
static weir_edge_t goes_on(weir_scope_t* s, const weir_edge_t* loop, void* user) {
  (void)user;
  return weir_less(s, loop[0], weir_const_int(s, 3));
}
static void turn(weir_scope_t* s, weir_edge_t* loop, void* user) {
  const both_t* both = user;
  loop[0] = weir_add_v2(s, loop[0], weir_const_int(s, 1));
  loop[1] = weir_mul(s, loop[1], weir_sin(s, weir_add_v2(s, loop[1], both->x[1])));
}
static weir_edge_t build_while_loop(weir_scope_t* s, const weir_edge_t* x) {
  both_t both = {x};
  weir_edge_t state[] = {weir_const_int(s, 0), x[0]}, end[2];
  weir_while_loop(s, state, 2, goes_on, turn, &both, end);
  return end[1];
}

static void square_branch(weir_scope_t* s, weir_edge_t* outs, void* user) {
  outs[0] = weir_square(s, ((const both_t*)user)->x[0]);
}
static void product_branch(weir_scope_t* s, weir_edge_t* outs, void* user) {
  outs[0] = weir_mul(s, ((const both_t*)user)->x[0], ((const both_t*)user)->x[1]);
}
static weir_edge_t build_cond(weir_scope_t* s, const weir_edge_t* x) {
  both_t both = {x};
  weir_edge_t out, pred = weir_less(s, weir_sum(s, x[0], INTS(0, 1)), weir_const_float(s, 1));
  weir_cond(s, pred, square_branch, product_branch, &both, &out, 1);
  return out;
}

static void cond_body(weir_scope_t* s, const weir_edge_t* args, weir_edge_t* results, void* user) {
  (void)user;
  results[0] = weir_less(s, args[0], weir_const_int(s, 3));
}
static void loop_body(weir_scope_t* s, const weir_edge_t* args, weir_edge_t* results, void* user) {
  (void)user;
  results[0] = weir_add_v2(s, args[0], weir_const_int(s, 1));
  results[1] = weir_mul(s, args[1], weir_tanh(s, weir_add_v2(s, args[1], args[2])));
  results[2] = args[2];
}
static weir_edge_t build_while_function(weir_scope_t* s, const weir_edge_t* x) {
  weir_types_t types = WEIR_TYPES(WEIR_DTYPE_INT32, WEIR_DTYPE_FLOAT, WEIR_DTYPE_FLOAT);
  weir_spec_t spec = {.types = types};
  weir_defined_t cond = weir_define_function(s, "go", spec, cond_body, NULL, 1);
  weir_defined_t body = weir_define_function(s, "turn", spec, loop_body, NULL, 3);
  weir_edge_t state[] = {weir_const_int(s, 0), x[0], x[1]};
  return nth(weir_while(s, state, 3, cond.name, body.name), 1);
}

static void log_body(weir_scope_t* s, const weir_edge_t* args, weir_edge_t* results, void* user) {
  (void)user;
  results[0] = weir_log(s, args[0]);
}
static void mixed_body(weir_scope_t* s, const weir_edge_t* args, weir_edge_t* results, void* user) {
  (void)user;
  results[0] = weir_mul(s, weir_exp(s, args[0]), args[1]);
}

static weir_edge_t build_if_function(weir_scope_t* s, const weir_edge_t* x) {
  weir_types_t types = WEIR_TYPES(WEIR_DTYPE_FLOAT, WEIR_DTYPE_FLOAT);
  weir_defined_t then =
      weir_define_function(s, "log", (weir_spec_t){.types = types}, log_body, NULL, 1);
  weir_defined_t other =
      weir_define_function(s, "mixed", (weir_spec_t){.types = types}, mixed_body, NULL, 1);
  weir_edge_t pred = weir_less(s, weir_sum(s, x[0], INTS(0, 1)), weir_const_float(s, 1));
  return weir_if(s, pred, x, 2, WEIR_TYPES(WEIR_DTYPE_FLOAT), then.name, other.name);
}

static weir_edge_t build_call(weir_scope_t* s, const weir_edge_t* x) {
  weir_types_t types = WEIR_TYPES(WEIR_DTYPE_FLOAT, WEIR_DTYPE_FLOAT);
  weir_defined_t f =
      weir_define_function(s, "mixed", (weir_spec_t){.types = types}, mixed_body, NULL, 1);
  return weir_partitioned_call(s, x, 2, WEIR_TYPES(WEIR_DTYPE_FLOAT), f.name);
}

// Sparse gradients, summed up.
static weir_edge_t build_sparse(weir_scope_t* s, const weir_edge_t* x) {
  weir_edge_t a = weir_gather_v2(s, x[0], INTS(0, 2, 2), AXIS(0));
  weir_edge_t b = weir_gather_v2(s, x[0], INTS(3, 2, 0), AXIS(0));
  return weir_mul(s, a, b);
}

#define X(name, expression) {#name, build_##name},
static const case_t cases[] = {CASES(X){"while_loop", build_while_loop},
                               {"cond", build_cond},
                               {"while_function", build_while_function},
                               {"if_function", build_if_function},
                               {"call", build_call},
                               {"sparse", build_sparse}};
#undef X

// ---- both ways ----

static void make_inputs(weir_tensor_t** tensors) {
  for (int i = 0; i < INPUTS; ++i) {
    float values[24];
    for (int k = 0; k < 24; ++k) values[k] = (float)((k * 37 + i * 11) % 97 + 1) / 100;
    const int64_t dims[2] = {i == 2 ? 6 : 4, i == 2 ? 4 : 6};
    tensors[i] = make_tensor(WEIR_DTYPE_FLOAT, 2, dims, values);
  }
}

// The value, the gradients by each input, and those of their sum.
static void differentiate(weir_scope_t* s, build_fn_t build, const weir_edge_t* x,
                          weir_edge_t* results) {
  results[0] = build(s, x);
  weir_status_t* status =
      results[0].node ? weir_gradients(s, results, 1, x, INPUTS, NULL, results + 1) : NULL;
  weir_edge_t first[INPUTS];
  int count = 0;
  for (int i = 0; i < INPUTS && !status; ++i) {
    if (results[1 + i].node) first[count++] = weir_square(s, results[1 + i]);
  }
  if (!status && count && !weir_scope_status(s))
    status = weir_gradients(s, first, count, x, INPUTS, NULL, results + 1 + INPUTS);
  if (status) weir_scope_fail(s, status);
}

static weir_status_t* run_graph(build_fn_t build, weir_tensor_t** inputs, weir_tensor_t** values) {
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  check_ok(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  weir_edge_t x[INPUTS], results[RESULTS] = {{0}}, fetches[RESULTS];
  weir_feed_t feeds[INPUTS];
  for (int i = 0; i < INPUTS; ++i) {
    const int64_t* dims = weir_tensor_dims(inputs[i]);
    x[i] = weir_placeholder(s, WEIR_DTYPE_FLOAT, .shape = WEIR_SHAPE(dims[0], dims[1]));
    feeds[i] = (weir_feed_t){x[i], inputs[i]};
  }
  differentiate(s, build, x, results);
  weir_tensor_t* got[RESULTS] = {NULL};
  int count = 0;
  for (int i = 0; i < RESULTS; ++i) {
    if (results[i].node) fetches[count++] = results[i];
  }
  weir_status_t* status = weir_scope_finish(s);
  check_ok(weir_session_create(graph, &(weir_session_options_t){.threads = 1}, &session));
  weir_step_spec_t spec = {
      .feeds = feeds, .feed_count = INPUTS, .fetches = fetches, .fetch_count = count};
  if (!status) status = weir_session_run(session, &spec, got);
  for (int i = 0, at = 0; i < RESULTS; ++i) values[i] = results[i].node ? got[at++] : NULL;
  weir_session_destroy(session);
  weir_graph_release(graph);
  return status;
}

static weir_status_t* run_eager(weir_eager_t* eager, const char* device, build_fn_t build,
                                weir_tensor_t** inputs, weir_tensor_t** values) {
  weir_scope_t* root = weir_eager_scope(eager);
  weir_scope_t* s = device ? weir_scope_on(root, device) : root;
  weir_edge_t x[INPUTS], results[RESULTS] = {{0}};
  for (int i = 0; i < INPUTS; ++i) x[i] = weir_const(s, inputs[i]);
  differentiate(s, build, x, results);
  for (int i = 0; i < RESULTS; ++i) {
    values[i] = NULL;
    bool is_there = results[i].node && !weir_scope_status(s);
    weir_status_t* status = is_there ? weir_eager_value(s, results[i], &values[i]) : NULL;
    if (status) weir_scope_fail(s, status);
  }
  return weir_scope_finish(root);
}

static bool is_close(const weir_tensor_t* a, const weir_tensor_t* b) {
  if (!a || !b) return a == b;
  if (weir_tensor_count(a) != weir_tensor_count(b)) return false;
  const float *x = weir_tensor_data(a), *y = weir_tensor_data(b);
  for (int64_t i = 0; i < weir_tensor_count(a); ++i) {
    float scale = 1 + (x[i] < 0 ? -x[i] : x[i]), gap = x[i] - y[i];
    if (!((gap < 0 ? -gap : gap) <= 2e-5f * scale)) return false;
  }
  return true;
}

// True when both agree, or both have no such gradient.
static bool check_case(weir_eager_t* eager, const char* device, const case_t* c) {
  weir_tensor_t *inputs[INPUTS], *graph[RESULTS] = {NULL}, *now[RESULTS] = {NULL};
  make_inputs(inputs);
  weir_status_t* want = run_graph(c->build, inputs, graph);
  weir_status_t* got = run_eager(eager, device, c->build, inputs, now);
  bool is_good = weir_status_code(want) == weir_status_code(got);
  if (!is_good)
    print_error("%s: graph %s, eager %s\n", c->name, weir_status_message(want),
                weir_status_message(got));
  for (int i = 0; i < RESULTS && is_good && !want; ++i) {
    is_good = is_close(graph[i], now[i]);
    if (!is_good) print_error("%s: result %d differs\n", c->name, i);
  }
  for (int i = 0; i < RESULTS; ++i) {
    weir_tensor_release(graph[i]);
    weir_tensor_release(now[i]);
  }
  for (int i = 0; i < INPUTS; ++i) weir_tensor_release(inputs[i]);
  weir_status_destroy(want);
  weir_status_destroy(got);
  return is_good;
}

static void check_all(const char* devices, const char* device) {
  weir_eager_t* eager = NULL;
  int bad = 0;
  check_ok(weir_eager_create(&(weir_eager_options_t){.threads = 1, .devices = devices}, &eager));
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    bad += !check_case(eager, device, &cases[i]);
  weir_eager_destroy(eager);
  assert_int_equal(bad, 0);
}

static void test_on_the_cpu(void** state) {
  (void)state;
  check_all(NULL, NULL);
}

static void test_on_a_device(void** state) {
  (void)state;
  check_all("cpu,guard:1", "/device:GUARD:0");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_on_the_cpu),
                                     cmocka_unit_test(test_on_a_device)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
