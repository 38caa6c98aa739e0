// plugin_kernel_test.c — What kernels of plug-ins can do: keep state, end later, be cancelled, take
// and give lists, read inputs in the host's memory, and compute with shapes.
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "testing/tensors.h"
#include "weir/weir.h"

// ---- Counter: state ----

typedef struct counter_t {
  atomic_llong next;
} counter_t;
static atomic_int live_count;  // states that were made and not yet ended

static weir_status_t* counter_init(const weir_kernel_init_t* init, void* state) {
  int64_t from = 0;
  atomic_fetch_add(&live_count, 1);
  WEIR_TRY(weir_plugin_attr_int(weir_plugin_init_attrs(init), "from", &from));
  if (from < 0) return WEIR_STATUS(INVALID_ARGUMENT, "counting from %lld", (long long)from);
  atomic_init(&((counter_t*)state)->next, from);
  return NULL;
}

static void counter_deinit(void* state) {
  (void)state;
  atomic_fetch_sub(&live_count, 1);
}

static weir_status_t* counter_compute(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_plugin_output(ctx, 0, 0, NULL, &out));
  *(int64_t*)weir_tensor_data(out) =
      atomic_fetch_add(&((counter_t*)weir_plugin_state(ctx))->next, 1);
  return NULL;
}

// ---- Later: an asynchronous kernel. Forever: two that end only when they are cancelled ----

typedef struct later_t {
  weir_kernel_ctx_t* ctx;
  weir_done_t done;
} later_t;

static void later_run(void* arg) {
  later_t later = *(later_t*)arg;
  free(arg);
  const weir_tensor_t* x = weir_plugin_input(later.ctx, 0);
  const float* from = weir_tensor_data(x);
  weir_tensor_t* y = NULL;
  weir_status_t* status =
      weir_plugin_forward(later.ctx, 0, 0, weir_tensor_rank(x), weir_tensor_dims(x), &y);
  for (int64_t i = 0; !status && i < weir_tensor_count(y); ++i)
    ((float*)weir_tensor_data(y))[i] = -from[i];
  weir_plugin_done(later.done, status);
}

static void later_start(weir_kernel_ctx_t* ctx, weir_done_t done) {
  later_t* later = malloc(sizeof(*later));
  assert_non_null(later);
  *later = (later_t){.ctx = ctx, .done = done};
  weir_plugin_submit(ctx, later_run, later);
}

typedef struct forever_t {
  later_t later;
  pthread_mutex_t mu;
  pthread_cond_t changed;
  bool is_cancelled;  // guarded by mu
} forever_t;

static void forever_cancel(void* arg) {
  forever_t* forever = arg;
  pthread_mutex_lock(&forever->mu);
  forever->is_cancelled = true;
  pthread_cond_signal(&forever->changed);
  pthread_mutex_unlock(&forever->mu);
}

static void* forever_wait(void* arg) {
  forever_t* forever = arg;
  const weir_done_t done = forever->later.done;
  uint64_t token = weir_plugin_on_cancel(forever->later.ctx, forever_cancel, forever);
  pthread_mutex_lock(&forever->mu);
  while (token && !forever->is_cancelled) pthread_cond_wait(&forever->changed, &forever->mu);
  pthread_mutex_unlock(&forever->mu);
  if (token && weir_plugin_off_cancel(forever->later.ctx, token)) abort();  // it has been called
  pthread_cond_destroy(&forever->changed);
  pthread_mutex_destroy(&forever->mu);
  free(forever);
  weir_plugin_done(done, WEIR_STATUS(CANCELLED, "no longer forever"));
  return NULL;
}

static void forever_start(weir_kernel_ctx_t* ctx, weir_done_t done) {
  pthread_t thread;
  forever_t* forever = calloc(1, sizeof(*forever));
  assert_non_null(forever);
  forever->later = (later_t){.ctx = ctx, .done = done};
  pthread_mutex_init(&forever->mu, NULL);
  pthread_cond_init(&forever->changed, NULL);
  assert_int_equal(pthread_create(&thread, NULL, forever_wait, forever), 0);
  pthread_detach(thread);
}

static weir_status_t* look_compute(weir_kernel_ctx_t* ctx) {
  const struct timespec pause = {.tv_nsec = 1000000};
  while (!weir_plugin_is_cancelled(ctx)) nanosleep(&pause, NULL);
  return WEIR_STATUS(CANCELLED, "it looked");
}

// ---- Turn: lists, and what is refused of them ----

static weir_status_t* expect_refused(weir_status_t* status, const char* text) {
  bool is_right = weir_status_code(status) == WEIR_INVALID_ARGUMENT &&
                  strstr(weir_status_message(status), text);
  if (!is_right) return status ? status : WEIR_STATUS(INTERNAL, "'%s' was not refused", text);
  weir_status_destroy(status);
  return NULL;
}

static weir_status_t* turn_compute(weir_kernel_ctx_t* ctx) {
  const weir_plugin_attrs_t* attrs = weir_plugin_kernel_attrs(ctx);
  int first = 0, count = 0, out_first = 0, out_count = 0;
  int64_t number = 0;
  weir_types_t types = {0};
  WEIR_TRY(weir_plugin_input_range(attrs, "xs", &first, &count));
  WEIR_TRY(weir_plugin_output_range(attrs, "ys", &out_first, &out_count));
  WEIR_TRY(weir_plugin_attr_types(attrs, "T", &types));
  if (first != 1 || out_first != 0 || count != out_count || types.count != count)
    return WEIR_STATUS(INTERNAL, "lists: %d %d %d %d", first, out_first, count, out_count);
  WEIR_TRY(expect_refused(weir_plugin_input_range(attrs, "ys", &first, &count), "'ys'"));
  WEIR_TRY(expect_refused(weir_plugin_pass(ctx, 0, 0), "is float, not int32"));
  WEIR_TRY(expect_refused(weir_plugin_pass(ctx, 99, 0), "99"));
  WEIR_TRY(expect_refused(weir_plugin_int(ctx, 1, &number), "int"));  // a float
  WEIR_TRY(weir_plugin_int(ctx, 0, &number));
  for (int i = 0; i < count; ++i)
    WEIR_TRY(weir_plugin_pass(ctx, 1 + (int)((i + number) % count), out_first + i));
  return NULL;
}

// ---- Shaped: shape functions ----

// y: a and b broadcast; z: as the attribute where that and a agree; w: as size says, a row of a
// each.
static weir_status_t* shaped_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *a = weir_plugin_shape_at(ctx, 0), *b = weir_plugin_shape_at(ctx, 1);
  const weir_shape_t *shape = NULL, *row = NULL;
  weir_dims_t given = {0};
  WEIR_TRY(weir_plugin_shape_join_broadcast(ctx, a, b, &shape));
  WEIR_TRY(weir_plugin_shape_give(ctx, 0, shape));
  WEIR_TRY(weir_plugin_attr_shape(weir_plugin_shape_attrs(ctx), "shape", &given));
  WEIR_TRY(weir_plugin_shape_make(ctx, given.rank, given.dims, &shape));
  WEIR_TRY(weir_plugin_shape_join(ctx, shape, a, &shape));
  WEIR_TRY(weir_plugin_shape_give(ctx, 1, shape));
  WEIR_TRY(weir_plugin_shape_from_value(ctx, 2, &shape));
  WEIR_TRY(weir_plugin_shape_sub(ctx, a, 1, weir_plugin_shape_rank(a), &row));
  WEIR_TRY(expect_refused(weir_plugin_shape_sub(ctx, a, 1, 9, &row), "[1, 9)"));
  WEIR_TRY(weir_plugin_shape_concat(ctx, shape, row, &shape));
  WEIR_TRY(expect_refused(weir_plugin_shape_give(ctx, 3, shape), "3 outputs"));
  return weir_plugin_shape_give(ctx, 2, shape);
}

// ---- Pick: an input in the host's memory ----

static weir_status_t* pick_compute(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_plugin_input(ctx, 0);
  int64_t at = 0;
  weir_tensor_t* y = NULL;
  WEIR_TRY(weir_plugin_int(ctx, 1, &at));
  if (at < 0 || at >= weir_tensor_count(x))
    return WEIR_STATUS(INVALID_ARGUMENT, "%lld is not in x", (long long)at);
  WEIR_TRY(weir_plugin_output(ctx, 0, 0, NULL, &y));
  *(float*)weir_tensor_data(y) = ((const float*)weir_tensor_data(x))[at];
  return NULL;
}

// ---- the plug-in ----

#define ROW(...) ((const weir_plugin_kernel_t[]){{.device = "CPU", __VA_ARGS__}, {0}})
static const weir_plugin_op_t kOps[] = {
    {.name = "Counter",
     .attrs = "from: int = 0",
     .outputs = "n: int64",
     .flags = WEIR_PLUGIN_STATEFUL,
     .infer_shape = weir_plugin_shape_scalar,
     .kernels = ROW(.compute = counter_compute, .state_size = sizeof(counter_t),
                    .init = counter_init, .deinit = counter_deinit)},
    {.name = "Later",
     .inputs = "x: float",
     .outputs = "y: float",
     .infer_shape = weir_plugin_shape_unchanged,
     .kernels = ROW(.compute_async = later_start)},
    {.name = "Forever",
     .outputs = "y: float",
     .flags = WEIR_PLUGIN_STATEFUL,
     .kernels = ROW(.compute_async = forever_start)},
    {.name = "Look",
     .outputs = "y: float",
     .flags = WEIR_PLUGIN_STATEFUL,
     .kernels = ROW(.compute = look_compute)},
    {.name = "Turn",
     .attrs = "T: list(type) >= 1",
     .inputs = "by: int32; xs: T",
     .outputs = "ys: T",
     .kernels = ROW(.compute = turn_compute, .host_inputs = "by")},
    {.name = "Shaped",
     .attrs = "shape: shape = [2,?]",
     .inputs = "a: float; b: float; size: int32",
     .outputs = "y: float; z: float; w: float",
     .infer_shape = shaped_shape},
    {.name = "Pick",
     .inputs = "x: float; at: int32",
     .outputs = "y: float",
     .infer_shape = weir_plugin_shape_scalar,
     .kernels = ROW(.compute = pick_compute, .host_inputs = "at")},
    {0}};
static const weir_plugin_t kPlugin = {.abi = WEIR_PLUGIN_ABI, .name = "kernels", .ops = kOps};

// ---- tests ----

typedef struct world_t {
  weir_graph_t* graph;
  weir_scope_t* scope;
  weir_session_t* session;
} world_t;

static world_t world_begin(void) {
  world_t w = {.graph = NULL};
  check_ok(weir_plugin_register(&kPlugin));
  check_ok(weir_graph_create(&w.graph));
  w.scope = weir_scope_create(w.graph);
  return w;
}

static void world_start(world_t* w, const weir_session_options_t* options) {
  check_ok(weir_scope_finish(w->scope));
  check_ok(weir_session_create(w->graph, options, &w->session));
}

static void world_end(world_t* w) {
  weir_session_destroy(w->session);
  weir_graph_release(w->graph);
}

static int64_t fetch_int(world_t* w, weir_step_spec_t spec) {
  weir_tensor_t* results[2] = {NULL};
  check_ok(weir_session_run(w->session, &spec, results));
  int64_t value = *(const int64_t*)weir_tensor_data(results[0]);
  for (int i = 0; i < 2; ++i) weir_tensor_release(results[i]);
  return value;
}

static void test_state_lives_as_long_as_the_session(void** state) {
  (void)state;
  const weir_attr_arg_t from = {.name = "from", .kind = WEIR_ARG_INT, .value.i = 40};
  world_t w = world_begin();
  weir_edge_t n = {weir_scope_node(w.scope, "Counter", NULL, 0, &from, 1), 0};
  weir_edge_t one = weir_const_float(w.scope, 1);
  world_start(&w, NULL);
  assert_int_equal(fetch_int(&w, (weir_step_spec_t){WEIR_FETCHES(n)}), 40);
  assert_int_equal(fetch_int(&w, (weir_step_spec_t){WEIR_FETCHES(n)}), 41);
  assert_int_equal(fetch_int(&w, (weir_step_spec_t){WEIR_FETCHES(n, one)}), 42);  // another plan
  assert_int_equal(atomic_load(&live_count), 1);
  world_end(&w);
  assert_int_equal(atomic_load(&live_count), 0);
}

static void test_failed_init_is_ended(void** state) {
  (void)state;
  const weir_attr_arg_t from = {.name = "from", .kind = WEIR_ARG_INT, .value.i = -3};
  world_t w = world_begin();
  weir_tensor_t* result = NULL;
  weir_edge_t n = {weir_scope_node(w.scope, "Counter", NULL, 0, &from, 1), 0};
  world_start(&w, NULL);
  weir_step_spec_t spec = {WEIR_FETCHES(n)};
  check_error(weir_session_run(w.session, &spec, &result), WEIR_INVALID_ARGUMENT, "from -3");
  world_end(&w);
  assert_int_equal(atomic_load(&live_count), 0);
}

static void test_ends_later(void** state) {
  (void)state;
  for (int threads = 1; threads <= 3; ++threads) {
    world_t w = world_begin();
    weir_tensor_t* result = NULL;
    weir_edge_t x = weir_const_floats(w.scope, WEIR_DIMS(2), (const float[]){1, 2});
    for (int i = 0; i < 3; ++i)
      x = (weir_edge_t){weir_scope_node(w.scope, "Later", &x, 1, NULL, 0), 0};
    world_start(&w, &(weir_session_options_t){.threads = threads});
    weir_step_spec_t spec = {WEIR_FETCHES(x)};
    check_ok(weir_session_run(w.session, &spec, &result));
    check_floats(result, 0, -1, -2);
    weir_tensor_release(result);
    world_end(&w);
  }
}

static void test_cancelled(void** state) {
  (void)state;
  const char* const ops[] = {"Forever", "Look"};
  for (int i = 0; i < 2; ++i) {
    world_t w = world_begin();
    weir_tensor_t* result = NULL;
    weir_edge_t y = {weir_scope_node(w.scope, ops[i], NULL, 0, NULL, 0), 0};
    world_start(&w, NULL);
    weir_step_spec_t spec = {WEIR_FETCHES(y)};
    const weir_run_options_t options = {.timeout_ms = 50};
    check_error(weir_session_run_with(w.session, &spec, &options, &result, NULL, NULL),
                WEIR_DEADLINE_EXCEEDED, "");
    world_end(&w);
  }
}

static void test_lists(void** state) {
  (void)state;
  world_t w = world_begin();
  weir_edge_t inputs[] = {weir_const_int(w.scope, 1), weir_const_float(w.scope, 10),
                          weir_const_float(w.scope, 20), weir_const_float(w.scope, 30)};
  const weir_attr_arg_t types = {
      .name = "T",
      .kind = WEIR_ARG_TYPES,
      .value.types = WEIR_TYPES(WEIR_DTYPE_FLOAT, WEIR_DTYPE_FLOAT, WEIR_DTYPE_FLOAT)};
  weir_node_t* turn = weir_scope_node(w.scope, "Turn", inputs, 4, &types, 1);
  world_start(&w, NULL);
  weir_edge_t y0 = {turn, 0}, y2 = {turn, 2};
  weir_step_spec_t spec = {WEIR_FETCHES(y0, y2)};
  weir_tensor_t* results[2] = {NULL};
  check_ok(weir_session_run(w.session, &spec, results));
  check_floats(results[0], 0, 20);
  check_floats(results[1], 0, 10);
  for (int i = 0; i < 2; ++i) weir_tensor_release(results[i]);
  world_end(&w);
}

static void check_dims(weir_node_t* node, int index, int64_t rows, int64_t columns) {
  int64_t dims[2] = {0};
  assert_int_equal(weir_edge_dims((weir_edge_t){node, index}, dims, 2), 2);
  assert_int_equal(dims[0], rows);
  assert_int_equal(dims[1], columns);
}

static void test_shapes(void** state) {
  (void)state;
  const float zeros[12] = {0};
  world_t w = world_begin();
  weir_edge_t a = weir_const_floats(w.scope, WEIR_DIMS(2, 1), zeros);
  weir_edge_t bad = weir_const_floats(w.scope, WEIR_DIMS(4, 3), zeros);
  weir_edge_t b = weir_const_floats(w.scope, WEIR_DIMS(3), zeros);
  weir_edge_t size = weir_const_ints(w.scope, (const int[]){7}, 1);
  weir_edge_t good_inputs[] = {a, b, size}, bad_inputs[] = {bad, b, size};
  weir_node_t* shaped = weir_scope_node(w.scope, "Shaped", good_inputs, 3, NULL, 0);
  assert_non_null(shaped);
  check_dims(shaped, 0, 2, 3);  // broadcast
  check_dims(shaped, 1, 2, 1);  // the attribute's, joined
  check_dims(shaped, 2, 7, 1);  // by value
  assert_null(weir_scope_node(w.scope, "Shaped", bad_inputs, 3, NULL, 0));
  check_error(weir_scope_finish(w.scope), WEIR_INVALID_ARGUMENT, "must be equal");
  weir_graph_release(w.graph);
}

static void test_host_inputs(void** state) {
  (void)state;
  const char* const places[] = {NULL, "/device:GUARD:0"};
  for (int i = 0; i < 2; ++i) {
    world_t w = world_begin();
    weir_tensor_t* result = NULL;
    weir_edge_t pair[] = {weir_const_floats(w.scope, WEIR_DIMS(3), (const float[]){5, 6, 7}),
                          weir_const_ints(w.scope, (const int[]){2}, 1)};
    weir_edge_t y = {weir_scope_node(w.scope, "Pick", pair, 2, NULL, 0), 0};
    world_start(&w, &(weir_session_options_t){
                        .devices = "cpu,guard", .place = places[i], .disabled_passes = "all"});
    weir_step_spec_t spec = {WEIR_FETCHES(y)};
    check_ok(weir_session_run(w.session, &spec, &result));
    check_floats(result, 0, 7);
    weir_tensor_release(result);
    world_end(&w);
  }
}

// At file scope: there, rows in place are static.
static const weir_plugin_op_t misspelt[] = {
    {.name = "Misspelt",
     .inputs = "x: float",
     .kernels = ROW(.compute = look_compute, .host_inputs = "y")},
    {0}};
static const weir_plugin_op_t both[] = {
    {.name = "Both", .kernels = ROW(.compute = look_compute, .compute_async = forever_start)}, {0}};
static const weir_plugin_op_t stateless[] = {
    {.name = "Stateless", .kernels = ROW(.compute = look_compute, .init = counter_init)}, {0}};

static void test_rows_refused(void** state) {
  (void)state;
  const weir_plugin_t plugins[] = {
      {.abi = WEIR_PLUGIN_ABI, .ops = misspelt},
      {.abi = WEIR_PLUGIN_ABI, .ops = both},
      {.abi = WEIR_PLUGIN_ABI, .ops = stateless},
  };
  const char* const expected[] = {"'y', which is no argument", "one of compute and", "state_size"};
  for (int i = 0; i < 3; ++i)
    check_error(weir_plugin_register(&plugins[i]), WEIR_INVALID_ARGUMENT, expected[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_state_lives_as_long_as_the_session),
      cmocka_unit_test(test_failed_init_is_ended),
      cmocka_unit_test(test_ends_later),
      cmocka_unit_test(test_cancelled),
      cmocka_unit_test(test_lists),
      cmocka_unit_test(test_shapes),
      cmocka_unit_test(test_host_inputs),
      cmocka_unit_test(test_rows_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
