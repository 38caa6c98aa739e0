// interrupt_test.c — Kernels that are interrupted at every place where they look: what was left
// undone may not lead what follows astray, nor stay for later steps.
//
// A kernel that works in phases may take what an earlier phase did not write, or did not check, as
// an index. So memory is filled with what is none, some inputs have such, and the step is cancelled
// at the first look at the interrupt, at the second and so on. WEIR_STRESS_LOOKS says at how many
// of them (2 if unset). The sanitizer fills all of a block with
// ASAN_OPTIONS=max_malloc_fill_size=1000000000 only.
#include "base/interrupt.h"

#include <malloc.h>
#include <stdatomic.h>

#include "base/perturb.h"
#include "testing/world.h"

#ifdef WEIR_TEST_LIMIT  // sanitizers take their time
enum { N = 1 << 15, SIDE = 48 };
#else
enum { N = 1 << 17, SIDE = 128 };
#endif
enum {
  ROWS = 256,
  COLUMNS = N / ROWS,
  IMAGES = N >> 14,
  KINDS = 500,
  MAX_CASES = 128,
  GARBAGE = 0xbe
};

#if WEIR_HAVE_PERTURB
// ---- the inputs, fed so that nothing is folded ----

enum { VECTOR, MATRIX, SQUARE, IMAGE, FILTER, SORTED, INDICES, DISTINCT, PAIRS, MASK, INPUT_COUNT };

typedef struct inputs_t {
  weir_edge_t edges[INPUT_COUNT];
  weir_feed_t feeds[INPUT_COUNT];
} inputs_t;

static void add_input(world_t* w, inputs_t* inputs, int i, weir_dtype_t dtype, int rank,
                      const int64_t* dims, const void* data) {
  inputs->edges[i] = placeholder(w, "input", dtype);
  inputs->feeds[i] = (weir_feed_t){inputs->edges[i], make_tensor(dtype, rank, dims, data)};
}

// Feeds the same with the last element of all indices out of every range.
static void spoil(const inputs_t* inputs, inputs_t* bad, int32_t index) {
  *bad = *inputs;
  for (int i = 0; i < INPUT_COUNT; ++i) {
    weir_tensor_t* tensor = inputs->feeds[i].tensor;
    if (weir_tensor_dtype(tensor) != WEIR_DTYPE_INT32) continue;
    int64_t dims[] = {N / 2, 2};
    bool is_pairs = weir_tensor_rank(tensor) == 2;
    if (!is_pairs) dims[0] = N;
    bad->feeds[i].tensor =
        make_tensor(WEIR_DTYPE_INT32, is_pairs ? 2 : 1, dims, weir_tensor_data(tensor));
    ((int32_t*)weir_tensor_data(bad->feeds[i].tensor))[N - 1] = index;
  }
}

static void release_spoilt(const inputs_t* inputs, inputs_t* bad) {
  for (int i = 0; i < INPUT_COUNT; ++i)
    if (bad->feeds[i].tensor != inputs->feeds[i].tensor) weir_tensor_release(bad->feeds[i].tensor);
}

static void add_inputs(world_t* w, inputs_t* inputs) {
  static float x[N];
  static int32_t sorted[N], indices[N], distinct[N], pairs[N];
  static bool mask[N];
  for (int i = 0; i < N; ++i) {
    x[i] = (float)(i * 37 % 1009) / 1009 + (i % (SIDE + 1) == 0 ? SIDE : 0);
    sorted[i] = i / 64;
    indices[i] = (int32_t)((int64_t)i * 7919 % KINDS);
    distinct[i] = (int32_t)((int64_t)i * 12345 % N);  // odd: a permutation
    pairs[i] = i % 2 ? i * 31 % COLUMNS : i * 17 % ROWS;
    mask[i] = i % 3 != 0;
  }
  add_input(w, inputs, VECTOR, WEIR_DTYPE_FLOAT, 1, (int64_t[]){N}, x);
  add_input(w, inputs, MATRIX, WEIR_DTYPE_FLOAT, 2, (int64_t[]){ROWS, COLUMNS}, x);
  add_input(w, inputs, SQUARE, WEIR_DTYPE_FLOAT, 3, (int64_t[]){2, SIDE, SIDE}, x);
  add_input(w, inputs, IMAGE, WEIR_DTYPE_FLOAT, 4, (int64_t[]){IMAGES, 32, 32, 16}, x);
  add_input(w, inputs, FILTER, WEIR_DTYPE_FLOAT, 4, (int64_t[]){3, 3, 16, 16}, x);
  add_input(w, inputs, SORTED, WEIR_DTYPE_INT32, 1, (int64_t[]){N}, sorted);
  add_input(w, inputs, INDICES, WEIR_DTYPE_INT32, 1, (int64_t[]){N}, indices);
  add_input(w, inputs, DISTINCT, WEIR_DTYPE_INT32, 1, (int64_t[]){N}, distinct);
  add_input(w, inputs, PAIRS, WEIR_DTYPE_INT32, 2, (int64_t[]){N / 2, 2}, pairs);
  add_input(w, inputs, MASK, WEIR_DTYPE_BOOL, 1, (int64_t[]){N}, mask);
}

// ---- the kernels: one node each, all its outputs are fetched ----

typedef struct cases_t {
  world_t* w;
  weir_node_t* nodes[MAX_CASES];
  int count;
} cases_t;

static weir_edge_t keep(cases_t* cases, weir_node_t* node) {
  assert_in_range(cases->count, 0, MAX_CASES - 1);
  cases->nodes[cases->count++] = node;
  return output(node, 0);
}

static weir_edge_t add_case(cases_t* cases, const char* op, weir_edges_t inputs,
                            weir_attrs_t attrs) {
  return keep(cases, add(cases->w, op, NULL, inputs, attrs));
}
#define CASE(op, ...) add_case(cases, op, WEIR_EDGES(__VA_ARGS__), WEIR_NO_ATTRS)
#define CASE_WITH(op, attrs, ...) add_case(cases, op, WEIR_EDGES(__VA_ARGS__), attrs)
#define INT(value) weir_const_int(cases->w->scope, value)
#define INTS(...) \
  weir_const_ints(cases->w->scope, (int[]){__VA_ARGS__}, WEIR_COUNT_OF(((int[]){__VA_ARGS__})))

static void add_indexing(cases_t* cases, const weir_edge_t* in) {
  weir_edge_t vector = in[VECTOR], matrix = in[MATRIX], indices = in[INDICES];
  CASE("Unique", indices);
  CASE("UniqueWithCounts", indices);
  CASE("UniqueV2", matrix, INTS(0));
  CASE("ListDiff", in[DISTINCT], indices);
  CASE("InvertPermutation", in[DISTINCT]);
  CASE("Where", in[MASK]);
  CASE("TopKV2", matrix, INT(17));
  CASE("TopKV2", vector, INT(N / 2));
  CASE("InTopKV2", matrix, OP(cases->w, "Slice", in[INDICES], INTS(0), INTS(ROWS)), INT(3));
  CASE("GatherV2", vector, in[DISTINCT], INT(0));
  weir_edge_t few = OP(cases->w, "Slice", indices, INTS(N - COLUMNS), INTS(COLUMNS));
  CASE("GatherV2", matrix, OP(cases->w, "Mod", few, INT(COLUMNS)), INT(1));
  CASE("GatherNd", matrix, in[PAIRS]);
  CASE("ScatterNd", in[PAIRS], OP(cases->w, "Slice", vector, INTS(0), INTS(N / 2)),
       INTS(ROWS, COLUMNS));
  weir_edge_t updates = OP(cases->w, "Slice", vector, INTS(0), INTS(N / 2));
  CASE("TensorScatterAdd", matrix, in[PAIRS], updates);
  CASE("TensorScatterUpdate", matrix, in[PAIRS], updates);
  CASE("OneHot", indices, INT(8), weir_const_float(cases->w->scope, 1),
       weir_const_float(cases->w->scope, 0));
  CASE_WITH("ReverseSequence", WEIR_ATTRS(weir_attr_int("seq_dim", 1)), matrix,
            OP(cases->w, "Slice", in[SORTED], INTS(0), INTS(ROWS)));
  CASE_WITH("SparseToDense", WEIR_ATTRS(weir_attr_bool("validate_indices", false)), in[DISTINCT],
            INTS(N), vector, weir_const_float(cases->w->scope, 0));
}

static void add_partitions(cases_t* cases, const weir_edge_t* in) {
  world_t* w = cases->w;
  weir_edge_t vector = in[VECTOR], indices = in[INDICES];
  weir_edge_t two = OP(w, "Mod", indices, INT(2));
  weir_attrs_t parts = WEIR_ATTRS(weir_attr_int("num_partitions", 2));
  weir_node_t* values = add(w, "DynamicPartition", NULL, WEIR_EDGES(vector, two), parts);
  weir_node_t* places = add(w, "DynamicPartition", NULL, WEIR_EDGES(in[DISTINCT], two), parts);
  keep(cases, values);
  CASE("DynamicStitch", output(places, 0), output(places, 1), output(values, 0), output(values, 1));
  CASE("ParallelDynamicStitch", output(places, 0), output(places, 1), output(values, 0),
       output(values, 1));
  CASE("Bincount", indices, INT(KINDS), vector);
  CASE("DenseBincount", indices, INT(KINDS), vector);
  CASE("RandomShuffle", in[MATRIX]);
  weir_edge_t text = CASE("AsString", indices);
  CASE("StringJoin", text, text);
  CASE("Substr", text, INT(0), INT(1));
  CASE_WITH("UniformCandidateSampler",
            WEIR_ATTRS(weir_attr_int("num_true", 1), weir_attr_int("num_sampled", 400),
                       weir_attr_bool("unique", true), weir_attr_int("range_max", 500)),
            OP(w, "Reshape",
               output(add(w, "Cast", NULL, WEIR_EDGES(indices),
                          WEIR_ATTRS(weir_attr_type("DstT", WEIR_DTYPE_INT64))),
                      0),
               INTS(N, 1)));
  CASE("Multinomial", in[MATRIX], INT(64));
}

static void add_segments(cases_t* cases, const weir_edge_t* in) {
  world_t* w = cases->w;
  weir_edge_t matrix = in[MATRIX];
  weir_edge_t table = OP(w, "Reshape", in[VECTOR], INTS(N / 64, 64));
  weir_edge_t rows = OP(w, "Mod", in[INDICES], INT(N / 64));
  weir_edge_t ids = OP(w, "Slice", in[SORTED], INTS(0), INTS(ROWS));
  const char* sorted[] = {"SegmentSum", "SegmentMean", "SegmentMax"};
  for (size_t i = 0; i < WEIR_COUNT_OF(sorted); ++i) {
    CASE(sorted[i], in[VECTOR], in[SORTED]);
    CASE(sorted[i], matrix, ids);
  }
  CASE("UnsortedSegmentSum", in[VECTOR], in[INDICES], INT(KINDS));
  CASE("UnsortedSegmentMax", matrix, OP(w, "Slice", in[INDICES], INTS(0), INTS(ROWS)), INT(KINDS));
  const char* sparse[] = {"SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"};
  const char* grads[] = {"SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad"};
  for (size_t i = 0; i < WEIR_COUNT_OF(sparse); ++i) {
    CASE(sparse[i], table, rows, in[SORTED]);
    CASE(grads[i], table, rows, in[SORTED], INT(N / 64));
  }
  CASE_WITH("SparseSegmentSumGradV2", WEIR_NO_ATTRS, table, rows, in[SORTED], INT(N / 64));
}

static void add_numeric(cases_t* cases, const weir_edge_t* in) {
  weir_edge_t matrix = in[MATRIX], square = in[SQUARE];
  CASE("ArgMax", matrix, INT(0));
  CASE("ArgMax", matrix, INT(1));
  CASE("Cumsum", matrix, INT(0));
  CASE("Cumsum", in[VECTOR], INT(0));
  CASE("Sum", matrix, INTS(0));
  CASE("Sum", matrix, INTS(0, 1));
  CASE("Softmax", matrix);
  CASE("LogSoftmax", matrix);
  CASE("SparseSoftmaxCrossEntropyWithLogits", matrix,
       OP(cases->w, "Mod", OP(cases->w, "Slice", in[INDICES], INTS(0), INTS(ROWS)), INT(COLUMNS)));
  CASE("Transpose", matrix, INTS(1, 0));
  CASE("BatchMatMulV2", square, square);
  CASE_WITH("MatMul", WEIR_ATTRS(weir_attr_bool("transpose_b", true)), matrix, matrix);
  CASE("Cholesky",
       OP(cases->w, "BatchMatMulV2", square, OP(cases->w, "Transpose", square, INTS(0, 2, 1))));
  CASE("Qr", square);
  CASE("MatrixTriangularSolve", square, square);
  CASE_WITH("Einsum", WEIR_ATTRS(weir_attr_string("equation", "bij,bjk->bik")), square, square);
  CASE("Tile", matrix, INTS(2, 3));
  CASE("MatrixDiagPart", square);
  CASE("StridedSliceGrad", INTS(2 * ROWS, COLUMNS), INTS(0, 0), INTS(2 * ROWS, COLUMNS), INTS(2, 1),
       matrix);
}

static void add_images(cases_t* cases, const weir_edge_t* in) {
  weir_edge_t image = in[IMAGE];
  const int64_t ones[] = {1, 1, 1, 1}, twos[] = {1, 2, 2, 1};
  weir_attrs_t conv =
      WEIR_ATTRS(weir_attr_ints("strides", ones, 4), weir_attr_string("padding", "SAME"));
  weir_attrs_t pool =
      WEIR_ATTRS(weir_attr_ints("ksize", twos, 4), weir_attr_ints("strides", twos, 4),
                 weir_attr_string("padding", "SAME"));
  CASE_WITH("Conv2D", conv, image, in[FILTER]);
  CASE_WITH("Conv2DBackpropInput", conv, INTS(IMAGES, 32, 32, 16), in[FILTER], image);
  CASE_WITH("Conv2DBackpropFilter", conv, image, INTS(3, 3, 16, 16), image);
  weir_edge_t pooled = CASE_WITH("MaxPool", pool, image);
  CASE_WITH("MaxPoolGrad", pool, image, pooled, pooled);
  weir_edge_t chosen = CASE_WITH("MaxPoolWithArgmax", pool, image);
  CASE_WITH("MaxPoolGradWithArgmax", pool, image, chosen, output(chosen.node, 1));
  CASE_WITH("AvgPool", pool, image);
  CASE("ResizeBilinear", image, INTS(48, 40));
  CASE("LRN", image);
}

// ---- one step, cancelled at a look ----

typedef struct chance_t {
  weir_cancellation_t* cancellation;  // NULL: counts only
  int at;
  atomic_int looks;
} chance_t;

static void on_look(void* arg) {
  chance_t* chance = arg;
  if (atomic_fetch_add(&chance->looks, 1) + 1 == chance->at && chance->cancellation)
    weir_cancellation_cancel(chance->cancellation);
}

typedef struct step_t {
  weir_tensor_t* results[4];
  weir_status_t* status;
  int looks;
} step_t;

static step_t run(world_t* w, inputs_t* inputs, weir_node_t* node, int cancel_at) {
  step_t step = {.looks = 0};
  weir_edge_t fetches[WEIR_COUNT_OF(step.results)];
  chance_t chance = {.at = cancel_at};
  weir_run_options_t options = {.cancellation = NULL};
  weir_step_spec_t spec = {.feeds = inputs->feeds,
                           .feed_count = INPUT_COUNT,
                           .fetches = fetches,
                           .fetch_count = node->def.output_count};
  assert_in_range(spec.fetch_count, 1, WEIR_COUNT_OF(step.results));
  for (int i = 0; i < spec.fetch_count; ++i) fetches[i] = output(node, i);
  check_ok(weir_cancellation_create(&chance.cancellation));
  options.cancellation = chance.cancellation;
  weir_interrupt_watch(on_look, &chance);
  step.status = weir_session_run_with(w->session, &spec, &options, step.results, NULL, NULL);
  weir_interrupt_watch(NULL, NULL);
  step.looks = atomic_load(&chance.looks);
  weir_cancellation_destroy(chance.cancellation);
  return step;
}

static void step_free(step_t* step) {
  for (size_t i = 0; i < WEIR_COUNT_OF(step->results); ++i) weir_tensor_release(step->results[i]);
  weir_status_destroy(step->status);
}

static bool is_random(const weir_node_t* node) {
  const char* op = node->def.op->def->name;
  return strstr(op, "Random") || strstr(op, "Sampler") || strstr(op, "Multinomial");
}

// Cancelled, or as if nothing had happened: refused where it has to be.
static void check_step(const weir_node_t* node, step_t* step, const step_t* good) {
  const char* op = node->def.op->def->name;
  weir_code_t code = weir_status_code(step->status);
  bool is_cancelled = code == WEIR_CANCELLED;
  bool is_refused = good->status && code == weir_status_code(good->status);
  if (step->status && !is_cancelled && !is_refused)
    fail_msg("%s: %s", op, weir_status_message(step->status));
  for (int i = 0; i < node->def.output_count && !step->status && !is_random(node); ++i) {
    const weir_tensor_t *got = step->results[i], *want = good->results[i];
    size_t size = weir_tensor_byte_size(want);
    if (weir_tensor_byte_size(got) != size ||
        memcmp(weir_tensor_data(got), weir_tensor_data(want), size) != 0)
      fail_msg("%s: output %d differs after an interruption", op, i);
  }
  step_free(step);
}

static int check_case(world_t* w, inputs_t* inputs, bool is_spoilt, weir_node_t* node, int most) {
  step_t good = run(w, inputs, node, 0);
  weir_code_t code = weir_status_code(good.status);
  if (code != WEIR_OK && (!is_spoilt || code != WEIR_INVALID_ARGUMENT))
    fail_msg("%s", weir_status_message(good.status));
  int stride = WEIR_MAX(1, good.looks / most), cancelled = 0;
  for (int at = 1; at <= good.looks; at += stride) {
    step_t step = run(w, inputs, node, at);
    cancelled += step.status != NULL;
    check_step(node, &step, &good);
  }
  step_t again = run(w, inputs, node, 0);
  check_step(node, &again, &good);
  step_free(&good);
  return cancelled;
}

static void test_kernels_interrupted_anywhere(void** state) {
  world_t* w = *state;
  inputs_t inputs, bad;
  cases_t cases = {.w = w};
  add_inputs(w, &inputs);
  spoil(&inputs, &bad, INT32_MIN / 8);
  add_indexing(&cases, inputs.edges);
  add_partitions(&cases, inputs.edges);
  add_segments(&cases, inputs.edges);
  add_numeric(&cases, inputs.edges);
  add_images(&cases, inputs.edges);
  const char* looks = getenv("WEIR_STRESS_LOOKS");
  int most = looks ? atoi(looks) : 2, cancelled = 0;
  mallopt(M_PERTURB, 0xff ^ GARBAGE);
  open_session(w, 4);
  for (int i = 0; i < cases.count; i += WEIR_TEST_STRIDE) {
    cancelled += check_case(w, &inputs, false, cases.nodes[i], most);
    cancelled += check_case(w, &bad, true, cases.nodes[i], most);
  }
  release_spoilt(&inputs, &bad);
  mallopt(M_PERTURB, 0);
  printf("%d kernels, cancelled %d times\n", cases.count, cancelled);
  assert_true(cancelled > cases.count / WEIR_TEST_STRIDE);
  for (int i = 0; i < INPUT_COUNT; ++i) weir_tensor_release(inputs.feeds[i].tensor);
}
#else
static void test_kernels_interrupted_anywhere(void** state) {
  (void)state;
  skip();
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_kernels_interrupted_anywhere, world_setup,
                                      world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
