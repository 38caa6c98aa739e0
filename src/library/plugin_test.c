// plugin_test.c — Ops defined outside: registered, run, differentiated; bad ones refused.
#include <stdlib.h>

#include "testing/tensors.h"
#include "weir/weir.h"

// ---- Affine: y = scale * x + sum(offsets) ----

typedef struct affine_t {
  const float* x;
  float* y;
  float scale, offset;
} affine_t;

static void affine_range(void* arg, int64_t begin, int64_t end) {
  const affine_t* a = arg;
  for (int64_t i = begin; i < end; ++i) a->y[i] = a->scale * a->x[i] + a->offset;
}

static weir_status_t* affine_compute(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_plugin_input(ctx, 0);
  const weir_plugin_attrs_t* attrs = weir_plugin_kernel_attrs(ctx);
  weir_tensor_t* y = NULL;
  weir_ints_t offsets = {0};
  bool is_checked = false;
  const char* mode = NULL;
  size_t mode_size = 0;
  affine_t a = {.x = weir_tensor_data(x)};
  WEIR_TRY(weir_plugin_attr_float(attrs, "scale", &a.scale));
  WEIR_TRY(weir_plugin_attr_ints(attrs, "offsets", &offsets));
  WEIR_TRY(weir_plugin_attr_bool(attrs, "is_checked", &is_checked));
  WEIR_TRY(weir_plugin_attr_string(attrs, "mode", &mode, &mode_size));
  for (int i = 0; i < offsets.count; ++i) a.offset += (float)offsets.items[i];
  if (mode_size == 3 && !memcmp(mode, "neg", 3)) a.scale = -a.scale;
  if (is_checked && weir_tensor_count(x) == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Affine: x is empty");
  WEIR_TRY(weir_plugin_output(ctx, 0, weir_tensor_rank(x), weir_tensor_dims(x), &y));
  a.y = weir_tensor_data(y);
  weir_plugin_parallel_for(ctx, weir_tensor_count(x), 1, affine_range, &a);
  return NULL;
}

// dx = scale * dy, by the same op without offsets.
static weir_status_t* affine_grad(weir_grad_ctx_t* ctx) {
  float scale = 0;
  WEIR_TRY(weir_plugin_attr_float(weir_plugin_grad_attrs(ctx), "scale", &scale));
  weir_edge_t dy = weir_plugin_grad_dy(ctx, 0);
  const weir_attr_arg_t attrs[] = {{.name = "scale", .kind = WEIR_ARG_FLOAT, .value.f = scale}};
  return weir_plugin_grad_set(ctx, 0, weir_plugin_grad_node(ctx, "Affine", &dy, 1, attrs, 1));
}

// Misspells the attribute: Affine would do with what it has by default.
static weir_status_t* misspelt_grad(weir_grad_ctx_t* ctx) {
  weir_edge_t dy = weir_plugin_grad_dy(ctx, 0);
  const weir_attr_arg_t attrs[] = {{.name = "scael", .kind = WEIR_ARG_FLOAT, .value.f = 2}};
  return weir_plugin_grad_set(ctx, 0, weir_plugin_grad_node(ctx, "Affine", &dy, 1, attrs, 1));
}

// ---- Tally: counts its inputs; its shape function says so ----

static weir_status_t* tally_shape(weir_shape_ctx_t* ctx) {
  int64_t dims[4], n = 0;
  WEIR_TRY(weir_plugin_attr_int(weir_plugin_shape_attrs(ctx), "N", &n));
  const int rank = weir_plugin_shape_input(ctx, 0, dims, 4);
  if (rank < 0) return weir_plugin_shape_set(ctx, 0, -1, NULL);
  dims[0] = n;
  return weir_plugin_shape_set(ctx, 0, 1, dims);
}

static weir_status_t* tally_compute(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* out = NULL;
  weir_dtype_t dtype = WEIR_DTYPE_INVALID;
  int64_t missing = 0;
  const int64_t count = weir_plugin_input_count(ctx);
  WEIR_TRY(weir_plugin_attr_type(weir_plugin_kernel_attrs(ctx), "T", &dtype));
  weir_status_t* status = weir_plugin_attr_int(weir_plugin_kernel_attrs(ctx), "nope", &missing);
  if (weir_status_code(status) != WEIR_INVALID_ARGUMENT)
    return WEIR_STATUS(INTERNAL, "an attribute that is not there was found");
  weir_status_destroy(status);
  status = weir_plugin_output(ctx, weir_plugin_output_count(ctx), 0, NULL, &out);
  if (weir_status_code(status) != WEIR_INVALID_ARGUMENT)
    return WEIR_STATUS(INTERNAL, "an output that is not there was made");
  weir_status_destroy(status);
  WEIR_TRY(weir_plugin_output(ctx, 0, 1, &count, &out));
  for (int64_t i = 0; i < count; ++i) {
    ((int64_t*)weir_tensor_data(out))[i] =
        weir_tensor_count(weir_plugin_input(ctx, (int)i)) * (int64_t)dtype;
  }
  return NULL;
}

static const weir_plugin_op_t kOps[] = {
    {.name = "Affine",
     .attrs = "scale: float = 1.0; offsets: list(int) = []; is_checked: bool = false; "
              "mode: {'pos', 'neg'} = 'pos'",
     .inputs = "x: float",
     .outputs = "y: float",
     .summary = "Scales and shifts",
     .infer_shape = weir_plugin_shape_unchanged,
     .build_grad = affine_grad,
     .kernels = (const weir_plugin_kernel_t[]){{.device = "CPU", .compute = affine_compute}, {0}}},
    {.name = "Misspelt",
     .inputs = "x: float",
     .outputs = "y: float",
     .infer_shape = weir_plugin_shape_unchanged,
     .build_grad = misspelt_grad},
    {.name = "Tally",
     .attrs = "T: {float, int32}; N: int >= 1",
     .inputs = "xs: N * T",
     .outputs = "counts: int64",
     .flags = WEIR_PLUGIN_NO_GRADIENT,
     .infer_shape = tally_shape,
     .kernels = (const weir_plugin_kernel_t[]){{.device = "CPU", .compute = tally_compute}, {0}}},
    {0}};
static const weir_plugin_t kPlugin = {.abi = WEIR_PLUGIN_ABI, .name = "test", .ops = kOps};

static weir_edge_t affine(weir_scope_t* s, weir_edge_t x, const weir_attr_arg_t* attrs, int count) {
  return (weir_edge_t){weir_scope_node(s, "Affine", &x, 1, attrs, count), 0};
}

static void test_runs_and_differentiates(void** state) {
  (void)state;
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  check_ok(weir_plugin_register(&kPlugin));
  check_ok(weir_plugin_register(&kPlugin));  // again: nothing happens
  check_ok(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  weir_edge_t x = weir_const_floats(s, WEIR_DIMS(3), (const float[]){1, 2, 3});
  weir_edge_t y =
      affine(s, x,
             (const weir_attr_arg_t[]){
                 {.name = "scale", .kind = WEIR_ARG_FLOAT, .value.f = 2.5f},
                 {.name = "offsets", .kind = WEIR_ARG_INTS, .value.ints = WEIR_INTS(1, 2)},
                 {.name = "is_checked", .kind = WEIR_ARG_BOOL, .value.b = true},
                 {.name = "mode", .kind = WEIR_ARG_STRING, .value.s = "pos"}},
             4);
  weir_edge_t xs[] = {x, y}, dx = {NULL, 0};
  weir_edge_t counts = {weir_scope_node(s, "Tally", xs, 2, NULL, 0), 0};
  check_ok(weir_gradients(s, &y, 1, &x, 1, NULL, &dx));
  check_ok(weir_scope_finish(s));
  int64_t dim = 0;
  assert_int_equal(weir_edge_dims(y, &dim, 1), 1);
  assert_int_equal(dim, 3);
  assert_int_equal(weir_edge_dims(counts, &dim, 1), 1);
  assert_int_equal(dim, 2);
  check_ok(weir_session_create(graph, NULL, &session));
  weir_step_spec_t spec = {WEIR_FETCHES(y, dx, counts)};
  weir_tensor_t* r[3] = {NULL};
  check_ok(weir_session_run(session, &spec, r));
  check_floats(r[0], 0, 5.5f, 8, 10.5f);
  check_floats(r[1], 0, 2.5f, 2.5f, 2.5f);
  assert_int_equal(((int64_t*)weir_tensor_data(r[2]))[1], 3 * WEIR_DTYPE_FLOAT);
  for (int i = 0; i < 3; ++i) weir_tensor_release(r[i]);
  weir_session_destroy(session);
  weir_graph_release(graph);
  char* text = NULL;
  check_ok(weir_describe_ops("Affine", false, &text));
  assert_non_null(strstr(text, "Affine"));
  weir_buffer_free(text);
}

static void test_kernel_errors(void** state) {
  (void)state;
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  weir_tensor_t* result = NULL;
  check_ok(weir_plugin_register(&kPlugin));
  check_ok(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  weir_edge_t empty = weir_const_floats(s, WEIR_DIMS(0), NULL);
  weir_edge_t y = affine(
      s, empty,
      (const weir_attr_arg_t[]){{.name = "is_checked", .kind = WEIR_ARG_BOOL, .value.b = true}}, 1);
  check_ok(weir_scope_finish(s));
  check_ok(weir_session_create(graph, NULL, &session));
  weir_step_spec_t spec = {WEIR_FETCHES(y)};
  check_error(weir_session_run(session, &spec, &result), WEIR_INVALID_ARGUMENT, "x is empty");
  weir_session_destroy(session);
  weir_graph_release(graph);
}

static void test_nodes_refused(void** state) {
  (void)state;
  const char* expected[] = {
      "neither", "no node", "more than any op", "NoSuchOp",
      "NodeDef mentions attr 'scael' not in Op<name=Affine; signature=x:DT_FLOAT -> y:DT_FLOAT"};
  check_ok(weir_plugin_register(&kPlugin));
  for (int kind = 0; kind < 5; ++kind) {
    weir_graph_t* graph = NULL;
    check_ok(weir_graph_create(&graph));
    weir_scope_t* s = weir_scope_create(graph);
    weir_edge_t x = weir_const_float(s, 1), none = {NULL, 0};
    weir_attr_arg_t attrs[30] = {{.name = "mode", .kind = WEIR_ARG_STRING, .value.s = "neither"}};
    if (kind == 0) affine(s, x, attrs, 1);
    if (kind == 1) affine(s, none, NULL, 0);
    if (kind == 2) affine(s, x, attrs, 30);
    if (kind == 3) weir_scope_node(s, "NoSuchOp", &x, 1, NULL, 0);
    if (kind == 4) attrs[0] = (weir_attr_arg_t){.name = "scael", .kind = WEIR_ARG_FLOAT};
    if (kind == 4) affine(s, x, attrs, 1);
    weir_status_t* status = weir_scope_finish(s);
    if (!strstr(weir_status_message(status), expected[kind]))
      fail_msg("%d: '%s'", kind, weir_status_message(status));
    weir_status_destroy(status);
    weir_graph_release(graph);
  }
}

static void test_gradient_refused(void** state) {
  (void)state;
  weir_graph_t* graph = NULL;
  weir_edge_t dx;
  check_ok(weir_plugin_register(&kPlugin));
  check_ok(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  weir_edge_t x = weir_const_float(s, 1);
  weir_edge_t y = {weir_scope_node(s, "Misspelt", &x, 1, NULL, 0), 0};
  check_error(weir_gradients(s, &y, 1, &x, 1, NULL, &dx), WEIR_INVALID_ARGUMENT,
              "NodeDef mentions attr 'scael' not in Op<name=Affine");
  weir_status_destroy(weir_scope_finish(s));
  weir_graph_release(graph);
}

static void test_plugins_refused(void** state) {
  (void)state;
  static const weir_plugin_t old = {.abi = 0, .ops = kOps};
  static const weir_plugin_t empty = {.abi = WEIR_PLUGIN_ABI};
  static const weir_plugin_op_t taken_ops[] = {{.name = "Fresh"}, {.name = "MatMul"}, {0}};
  static const weir_plugin_t taken = {.abi = WEIR_PLUGIN_ABI, .name = "taken", .ops = taken_ops};
  static const weir_plugin_op_t bad_ops[] = {{.name = "Bad", .inputs = "x: Nothing"}, {0}};
  static const weir_plugin_t bad = {.abi = WEIR_PLUGIN_ABI, .name = "bad", .ops = bad_ops};
  check_error(weir_plugin_register(&old), WEIR_FAILED_PRECONDITION, "ABI 0");
  check_error(weir_plugin_register(&empty), WEIR_INVALID_ARGUMENT, "no op");
  check_error(weir_plugin_register(&taken), WEIR_INVALID_ARGUMENT, "MatMul");
  check_error(weir_plugin_register(&bad), WEIR_INVALID_ARGUMENT, "Bad");
  char* text = NULL;
  check_error(weir_describe_ops("Fresh", false, &text), WEIR_NOT_FOUND, "Fresh");  // all or none
  check_error(weir_plugin_load("/nonexistent/p.so"), WEIR_NOT_FOUND, "/nonexistent/p.so");
  check_error(weir_plugin_load("no_such_file.so"), WEIR_NOT_FOUND, "no_such_file.so");
  check_error(weir_plugin_load("libc.so.6"), WEIR_NOT_FOUND, "libc.so.6");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_runs_and_differentiates), cmocka_unit_test(test_kernel_errors),
      cmocka_unit_test(test_nodes_refused), cmocka_unit_test(test_gradient_refused),
      cmocka_unit_test(test_plugins_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
