// recorded_test.c — Steps that a GPU repeats, on a driver that is a fake, with kernels that
// compute.
#include "exec/recorded.h"

#include <pthread.h>

#include "base/outcome.h"
#include "device/cuda/cuda.h"
#include "device/cuda/cuda_compiler.h"
#include "op/shape_ctx.h"
#include "ops/builtin_ops.h"
#include "session/session.h"
#include "testing/cuda_fake.h"
#include "testing/world.h"

// ---- ops of the tests: sums, and variables that are added to ----

static void run_add(void** args) {
  const float* a = (const float*)cuda_fake_at(*(void**)args[0]);
  const float* b = (const float*)cuda_fake_at(*(void**)args[1]);
  float* y = (float*)cuda_fake_at(*(void**)args[2]);
  int64_t count = *(int64_t*)args[3];
  if (!a || !b || !y) abort();  // memory that the driver has back
  for (int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

static cuda_fake_function_t add_function = {
    .run = run_add,
    .arg_count = 4,
    .arg_sizes = {sizeof(void*), sizeof(void*), sizeof(void*), sizeof(int64_t)}};

// A source is the address of its function.
static weir_status_t* compile(const char* name, const char* source, int architecture,
                              char** out_code, size_t* out_size) {
  (void)name, (void)architecture;
  void* function = NULL;
  cuda_fake_code_t* code = weir_calloc(1, sizeof(*code));
  if (!code) return weir_out_of_memory();
  assert_int_equal(sscanf(source, "%p", &function), 1);
  memcpy(code->magic, cuda_fake_magic, sizeof(code->magic));
  code->function = *(const cuda_fake_function_t*)function;
  *out_code = (char*)code;
  *out_size = sizeof(*code);
  return NULL;
}

static weir_cuda_function_t function_of(weir_device_t* device, cuda_fake_function_t* function) {
  weir_cuda_function_t found;
  char source[32];
  snprintf(source, sizeof(source), "%p", (void*)function);
  check_ok(weir_cuda_function(device, source, "run", &found));
  return found;
}

static weir_status_t* launch_add(weir_device_t* device, const weir_tensor_t* a,
                                 const weir_tensor_t* b, weir_tensor_t* y) {
  weir_cuda_size_t size = weir_cuda_size_for(device, y->count);
  int64_t count = y->count;
  void *a_data = a->data, *b_data = b->data, *y_data = y->data;
  return weir_cuda_launch(device, function_of(device, &add_function), &size,
                          WEIR_CUDA_ARGS(&a_data, &b_data, &y_data, &count));
}

static weir_status_t* add_gpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *a = weir_kernel_input(ctx, 0), *b = weir_kernel_input(ctx, 1);
  weir_tensor_t* y = NULL;
  if (a->count != b->count) return WEIR_STATUS(INVALID_ARGUMENT, "shapes differ");
  WEIR_TRY(weir_kernel_output(ctx, 0, a->rank, a->dims, &y));
  return launch_add(ctx->device, a, b, y);
}

static void run_add_int(void** args) {
  const float* a = (const float*)cuda_fake_at(*(void**)args[0]);
  const int32_t* b = (const int32_t*)cuda_fake_at(*(void**)args[1]);
  float* y = (float*)cuda_fake_at(*(void**)args[2]);
  if (!a || !b || !y) abort();
  for (int64_t i = 0; i < *(int64_t*)args[3]; ++i) y[i] = a[i] + (float)b[i];
}

static cuda_fake_function_t add_int_function = {
    .run = run_add_int,
    .arg_count = 4,
    .arg_sizes = {sizeof(void*), sizeof(void*), sizeof(void*), sizeof(int64_t)}};

static weir_status_t* add_int_gpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *a = weir_kernel_input(ctx, 0), *b = weir_kernel_input(ctx, 1);
  weir_tensor_t* y = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, a->rank, a->dims, &y));
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, y->count);
  int64_t elements = y->count;
  void *a_data = a->data, *b_data = b->data, *y_data = y->data;
  return weir_cuda_launch(ctx->device, function_of(ctx->device, &add_int_function), &size,
                          WEIR_CUDA_ARGS(&a_data, &b_data, &y_data, &elements));
}

static weir_status_t* update_gpu(weir_kernel_ctx_t* ctx) {
  weir_variable_t* variable = NULL;
  WEIR_TRY(weir_kernel_variable(ctx, 0, &variable));
  weir_mutex_lock(&variable->mu);
  weir_status_t* status = weir_variable_make_sole_locked(variable, ctx->node->name);
  if (!status)
    status = launch_add(ctx->device, variable->tensor, weir_kernel_input(ctx, 1), variable->tensor);
  weir_mutex_unlock(&variable->mu);
  weir_resource_release(&variable->base);
  return status;
}

static void run_draw(void** args) {
  const float* x = (const float*)cuda_fake_at(*(void**)args[0]);
  const void* anew = *(void**)args[2];
  float* y = (float*)cuda_fake_at(*(void**)args[1]);
  float value = 0;
  memcpy(&value, anew ? (void*)cuda_fake_at(anew) : args[3], sizeof(value));
  for (int i = 0; i < 3; ++i) y[i] = x[i] + value;
}

static cuda_fake_function_t draw_function = {
    .run = run_draw,
    .arg_count = 4,
    .arg_sizes = {sizeof(void*), sizeof(void*), sizeof(void*), sizeof(float)}};

static float drawn;  // by FakeDraw

static void draw(const void* arg, void* bytes) {
  drawn += *(const float*)arg;
  memcpy(bytes, &drawn, sizeof(drawn));
}

// Adds a number that is one more each time.
static weir_status_t* draw_gpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  weir_tensor_t* y = NULL;
  const float one = 1;
  float value = 0;
  void* anew = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, x->rank, x->dims, &y));
  if (weir_cuda_is_recording(ctx->device))
    WEIR_TRY(weir_cuda_anew(ctx->device, draw, &one, sizeof(one), &anew));
  else draw(&one, &value);
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, y->count);
  void *x_data = x->data, *y_data = y->data;
  return weir_cuda_launch(ctx->device, function_of(ctx->device, &draw_function), &size,
                          WEIR_CUDA_ARGS(&x_data, &y_data, &anew, &value));
}

static int count;  // of calls of FakeCount

static weir_status_t* count_gpu(weir_kernel_ctx_t* ctx) {
  ++count;
  weir_kernel_pass(ctx, 0, 0);
  return NULL;
}

#define GPU_KERNEL(...) ((const weir_kernel_def_t[]){{WEIR_DEVICE_GPU, __VA_ARGS__}, {0}})
static const weir_op_module_t module = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "FakeAdd",
         .inputs = "a: float; b: float",
         .outputs = "y: float",
         .infer_shape = weir_shape_fn_unknown,
         .kernels = GPU_KERNEL(.compute = add_gpu)},
        {.name = "FakeUpdate",
         .inputs = "resource: resource; value: float",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_shape_fn_none,
         .kernels = GPU_KERNEL(.compute = update_gpu, .host_inputs = "resource")},
        {.name = "FakeAddInt",
         .inputs = "a: float; b: int32",
         .outputs = "y: float",
         .infer_shape = weir_shape_fn_unknown,
         .kernels = GPU_KERNEL(.compute = add_int_gpu)},
        {.name = "FakeUpdateRef",
         .inputs = "ref: Ref(float); value: float",
         .flags = WEIR_OP_NO_FOLD,
         .infer_shape = weir_shape_fn_none,
         .kernels = GPU_KERNEL(.compute = update_gpu)},
        {.name = "FakeDraw",
         .inputs = "x: float",
         .outputs = "y: float",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_shape_fn_unknown,
         .kernels = GPU_KERNEL(.compute = draw_gpu, .is_recordable = true)},
        {.name = "FakeCount",
         .inputs = "x: float",
         .outputs = "y: float",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_shape_fn_unknown,
         .kernels = GPU_KERNEL(.compute = count_gpu)},
        {0}}};

// ---- a graph: v is added to, x is fed ----

static int setup(void** state) {
  static bool is_added;
  const weir_op_module_t* modules[] = {&module, NULL};
  if (!is_added) check_ok(weir_registry_builtin_add(modules));
  is_added = true;
  weir_cuda_driver_replace(&cuda_fake_driver);
  weir_cuda_compiler_replace(compile);
  cuda_fake_graph_launches = 0;
  return world_setup(state);
}

static int teardown(void** state) {
  world_teardown(state);
  weir_cuda_compiler_replace(NULL);
  weir_cuda_driver_replace(NULL);
  assert_int_equal(cuda_fake_graphs, 0);
  return 0;
}

static weir_session_t* open_gpu(world_t* w) {
  weir_session_options_t options = {.threads = 3, .devices = "cpu,cuda"};
  weir_session_t* session = NULL;
  check_ok(weir_session_create(w->graph, &options, &session));
  return session;
}

static void open_gpu_session(world_t* w) {
  w->session = open_gpu(w);
  check_ok(weir_session_run_target(w->session, weir_initializer(w->scope)));
}

typedef struct nodes_t {
  weir_edge_t v, x, y;
  weir_node_t* update;
} nodes_t;

// v += x, and then y = v + x.
static nodes_t add_update(world_t* w) {
  nodes_t n;
  weir_tensor_t* start = FLOATS(1, 2, 3);
  n.v = weir_state_variable(w->scope, "v", weir_const(w->scope, start));
  weir_tensor_release(start);
  n.x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  n.update =
      add(w, "FakeUpdate", "update", WEIR_EDGES(weir_variable_handle(n.v), n.x), WEIR_NO_ATTRS);
  weir_node_t* read = add(w, "ReadVariableOp", "after", WEIR_EDGES(weir_variable_handle(n.v)),
                          WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT)));
  check_ok(weir_graph_add_control(read, n.update));
  n.y = OP(w, "FakeAdd", output(read, 0), n.x);
  return n;
}

static weir_tensor_t* step(weir_session_t* session, weir_edge_t x, weir_tensor_t* take_fed,
                           weir_edge_t fetch) {
  weir_tensor_t* result = NULL;
  check_ok(weir_session_run(
      session, &(weir_step_spec_t){WEIR_FEEDS({x, take_fed}), WEIR_FETCHES(fetch)}, &result));
  weir_tensor_release(take_fed);
  return result;
}

static void check_and_release(weir_tensor_t* result, float a, float b, float c) {
  check_floats(result, 0, a, b, c);
  weir_tensor_release(result);
}

// ---- tests ----

static void test_variables_are_updated_in_place(void** state) {
  world_t* w = *state;
  nodes_t n = add_update(w);
  open_gpu_session(w);
  float v[] = {1, 2, 3};
  for (int i = 0; i < 20; ++i) {
    float x[] = {(float)i, (float)(2 * i), 1};
    for (int k = 0; k < 3; ++k) v[k] += x[k];
    check_and_release(step(w->session, n.x, make_floats(3, x), n.y), v[0] + x[0], v[1] + x[1],
                      v[2] + x[2]);
  }
  assert_true(cuda_fake_graph_launches >= 15);
  assert_int_equal(cuda_fake_graphs, 1);
}

// Others assign to the variable, or write it in place, between steps.
// Steps that nobody waits for, as servers start them, are recorded, too.
static void test_started_steps(void** state) {
  world_t* w = *state;
  nodes_t n = add_update(w);
  open_gpu_session(w);
  weir_plan_t* plan = NULL;
  weir_cancel_t* cancel = NULL;
  float v[] = {1, 2, 3};
  weir_tensor_t* fed = FLOATS(1, 1, 1);
  check_ok(weir_session_plan(
      w->session, &(weir_step_spec_t){WEIR_FEEDS({n.x, fed}), WEIR_FETCHES(n.y)}, &plan));
  check_ok(weir_cancel_create(NULL, &cancel));
  for (int i = 0; i < 20; ++i) {
    weir_tensor_t* result = NULL;
    weir_outcome_t outcome;
    weir_run_params_t params = weir_program_step(w->session->program, plan);
    params.args = &fed;
    params.rets = &result;
    params.cancel = cancel;
    params.is_brief = true;
    weir_outcome_init(&outcome);
    weir_run_start(&params, (weir_done_t){.fn = weir_outcome_set, .arg = &outcome});
    check_ok(weir_outcome_wait(&outcome));
    for (int k = 0; k < 3; ++k) v[k] += 1;
    check_and_release(result, v[0] + 1, v[1] + 1, v[2] + 1);
  }
  assert_true(cuda_fake_graph_launches >= 15);
  weir_tensor_release(fed);
  weir_cancel_destroy(cancel);
  weir_plan_release(plan);
}

static void test_variables_are_assigned_between_steps(void** state) {
  world_t* w = *state;
  nodes_t n = add_update(w);
  weir_node_t* assign = add(w, "AssignVariableOp", "assign",
                            WEIR_EDGES(weir_variable_handle(n.v), n.x), WEIR_NO_ATTRS);
  open_gpu_session(w);
  float v[] = {1, 2, 3};
  for (int i = 0; i < 200; ++i) {
    weir_tensor_t* fed = FLOATS((float)i, 5, 7);
    if (i % 9 == 8) {
      weir_node_t* other = i % 2 ? assign : n.update;
      check_ok(weir_session_run(
          w->session, &(weir_step_spec_t){WEIR_FEEDS({n.x, fed}), WEIR_TARGETS(other)}, NULL));
      for (int k = 0; k < 3; ++k)
        v[k] = (other == assign ? 0 : v[k]) + (k ? 2 * k + 3.f : (float)i);
    }
    weir_tensor_release(fed);
    for (int k = 0; k < 3; ++k) v[k] += 1;
    check_and_release(step(w->session, n.x, FLOATS(1, 1, 1), n.y), v[0] + 1, v[1] + 1, v[2] + 1);
  }
  assert_true(cuda_fake_graph_launches > 20);
}

// The step leaves new memory in the variable each time: v = v + x.
static void test_variables_are_replaced(void** state) {
  world_t* w = *state;
  nodes_t n = add_update(w);
  weir_edge_t sum = OP(w, "FakeAdd", n.v, n.x);
  weir_node_t* assign = add(w, "AssignVariableOp", "assign",
                            WEIR_EDGES(weir_variable_handle(n.v), sum), WEIR_NO_ATTRS);
  weir_edge_t z = OP(w, "FakeAdd", sum, n.x);
  check_ok(weir_graph_add_control(z.node, assign));
  open_gpu_session(w);
  float v[] = {1, 2, 3};
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k < 3; ++k) v[k] += (float)i;
    check_and_release(step(w->session, n.x, FLOATS((float)i, (float)i, (float)i), z),
                      v[0] + (float)i, v[1] + (float)i, v[2] + (float)i);
    if (i % 10 != 9) continue;  // in place, by another step
    check_and_release(step(w->session, n.x, FLOATS(1, 1, 1), n.y), v[0] + 2, v[1] + 2, v[2] + 2);
    for (int k = 0; k < 3; ++k) v[k] += 1;
  }
  assert_true(cuda_fake_graph_launches >= 30);
}

// What is fetched is what was read before the update, and stays so.
static void test_results_are_the_callers(void** state) {
  world_t* w = *state;
  nodes_t n = add_update(w);
  open_gpu_session(w);
  enum { STEPS = 12 };
  weir_tensor_t* kept[STEPS][2];
  for (int i = 0; i < STEPS; ++i) {
    weir_tensor_t* fed = FLOATS(1, 1, 1);
    check_ok(weir_session_run(
        w->session, &(weir_step_spec_t){WEIR_FEEDS({n.x, fed}), WEIR_FETCHES(n.y, n.x)}, kept[i]));
    weir_tensor_release(fed);
  }
  for (int i = 0; i < STEPS; ++i) {
    float added = (float)(i + 2);
    check_floats(kept[i][0], 0, 1 + added, 2 + added, 3 + added);
    check_and_release(kept[i][1], 1, 1, 1);
    weir_tensor_release(kept[i][0]);
  }
}

static void test_variables_are_fetched(void** state) {
  world_t* w = *state;
  nodes_t n = add_update(w);
  open_gpu_session(w);
  weir_tensor_t* kept[12];
  for (int i = 0; i < 12; ++i) {
    weir_tensor_t* fed = FLOATS(1, 1, 1);
    check_ok(weir_session_run(w->session,
                              &(weir_step_spec_t){WEIR_FEEDS({n.x, fed}),
                                                  WEIR_FETCHES(output(n.y.node->inputs[0].node, 0)),
                                                  WEIR_TARGETS(n.update)},
                              &kept[i]));
    weir_tensor_release(fed);
  }
  for (int i = 0; i < 12; ++i) {
    float added = (float)(i + 1);
    check_and_release(kept[i], 1 + added, 2 + added, 3 + added);
  }
  assert_true(cuda_fake_graph_launches >= 8);
}

// v and u change places in every step.
static void test_variables_are_swapped(void** state) {
  world_t* w = *state;
  nodes_t n = add_update(w);
  weir_tensor_t* start = FLOATS(10, 20, 30);
  weir_edge_t u = weir_state_variable(w->scope, "u", weir_const(w->scope, start));
  weir_tensor_release(start);
  weir_edge_t sum = OP(w, "FakeAdd", n.v, u);
  weir_node_t* to_v =
      add(w, "AssignVariableOp", NULL, WEIR_EDGES(weir_variable_handle(n.v), u), WEIR_NO_ATTRS);
  weir_node_t* to_u =
      add(w, "AssignVariableOp", NULL, WEIR_EDGES(weir_variable_handle(u), n.v), WEIR_NO_ATTRS);
  for (int i = 0; i < 2; ++i) {  // both are read first
    check_ok(weir_graph_add_control(i ? to_v : to_u, sum.node));
  }
  open_gpu_session(w);
  for (int i = 0; i < 31; ++i) {
    weir_tensor_t* fed = FLOATS(1, 0, 0);
    check_ok(weir_session_run(
        w->session, &(weir_step_spec_t){WEIR_FEEDS({n.x, fed}), WEIR_TARGETS(n.update)}, NULL));
    weir_tensor_release(fed);
    check_ok(weir_session_run(w->session, &(weir_step_spec_t){WEIR_TARGETS(to_v, to_u)}, NULL));
  }
  weir_tensor_t* results[2];
  check_ok(weir_session_run(w->session, &(weir_step_spec_t){WEIR_FETCHES(n.v, u)}, results));
  check_and_release(results[0], 25, 20, 30);  // every second turn had v's memory
  check_and_release(results[1], 17, 2, 3);
  assert_true(cuda_fake_graph_launches > 30);
}

// Reference variables: what was read of them follows their writes.
static void test_reference_variables(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_tensor_t* start = FLOATS(1, 2, 3);
  weir_edge_t v;
  import_text(w,
              "node {name: 'v' op: 'VariableV2' attr {key: 'dtype' value {type: DT_FLOAT}} "
              "attr {key: 'shape' value {shape {dim {size: 3}}}}}");
  check_ok(weir_graph_find_output(w->graph, "v", &v));
  weir_node_t* init =
      add(w, "Assign", NULL, WEIR_EDGES(v, weir_const(w->scope, start)), WEIR_NO_ATTRS);
  weir_tensor_release(start);
  weir_edge_t read = OP(w, "Identity", v);
  weir_node_t* update = add(w, "FakeUpdateRef", NULL, WEIR_EDGES(v, x), WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(update, read.node));
  weir_edge_t y = OP(w, "FakeAdd", read, x);  // of what was read before
  check_ok(weir_graph_add_control(y.node, update));
  w->session = open_gpu(w);
  check_ok(weir_session_run_target(w->session, init));
  for (int i = 1; i <= 20; ++i)
    check_and_release(step(w->session, x, FLOATS(1, 1, 1), y), (float)(2 + i), (float)(3 + i),
                      (float)(4 + i));
  assert_true(cuda_fake_graph_launches >= 10);
}

// Variables of int32 are in host memory: what they hold is copied to the device.
static void test_variables_in_host_memory(void** state) {
  world_t* w = *state;
  nodes_t n = add_update(w);
  weir_tensor_t* start =
      make_tensor(WEIR_DTYPE_INT32, 1, (const int64_t[]){3}, (int32_t[]){1, 2, 3});
  weir_edge_t labels = weir_state_variable(w->scope, "labels", weir_const(w->scope, start));
  weir_tensor_release(start);
  weir_edge_t fed = placeholder(w, "fed", WEIR_DTYPE_INT32);
  weir_node_t* assign = add(w, "AssignVariableOp", NULL,
                            WEIR_EDGES(weir_variable_handle(labels), fed), WEIR_NO_ATTRS);
  weir_edge_t y = OP(w, "FakeAddInt", n.x, labels);
  open_gpu_session(w);
  for (int i = 0; i < 30; ++i) {
    if (i % 7 == 6) {
      weir_tensor_t* next =
          make_tensor(WEIR_DTYPE_INT32, 1, (const int64_t[]){3}, (int32_t[]){i, 2, 3});
      check_ok(weir_session_run(
          w->session, &(weir_step_spec_t){WEIR_FEEDS({fed, next}), WEIR_TARGETS(assign)}, NULL));
      weir_tensor_release(next);
    }
    float first = (float)(i < 6 ? 1 : i - (i + 1) % 7);
    check_and_release(step(w->session, n.x, FLOATS((float)i, 5, 6), y), (float)i + first, 7, 9);
  }
  assert_true(cuda_fake_graph_launches >= 24);
}

static void test_loops(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  loop_nodes_t loop =
      open_loop(w, "loop", weir_const_int(w->scope, 0), x, weir_const_int(w->scope, 7), 10);
  close_loop(w, &loop, OP(w, "FakeAdd", loop.x, loop.x));
  open_gpu_session(w);
  for (int i = 0; i < 12; ++i) {
    float value = (float)i;
    check_and_release(step(w->session, x, FLOATS(value, 1, -value), loop.exit_x), 128 * value, 128,
                      -128 * value);
  }
  assert_true(cuda_fake_graph_launches >= 8);
}

// A loop whose end is fed runs as ever.
static void test_loops_that_what_is_fed_ends(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t limit = placeholder(w, "limit", WEIR_DTYPE_INT32);
  loop_nodes_t loop = open_loop(w, "loop", weir_const_int(w->scope, 0), x, limit, 10);
  close_loop(w, &loop, OP(w, "FakeAdd", loop.x, loop.x));
  open_gpu_session(w);
  for (int i = 0; i < 12; ++i) {
    weir_tensor_t *fed = FLOATS(1, 2, 3), *turns = make_int(i % 3), *result = NULL;
    check_ok(weir_session_run(
        w->session,
        &(weir_step_spec_t){WEIR_FEEDS({x, fed}, {limit, turns}), WEIR_FETCHES(loop.exit_x)},
        &result));
    float times = (float)(1 << (i % 3));
    check_and_release(result, times, 2 * times, 3 * times);
    weir_tensor_release(fed);
    weir_tensor_release(turns);
  }
  assert_int_equal(cuda_fake_graph_launches, 0);
}

static void test_shapes_change(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t y = OP(w, "FakeAdd", x, x);
  open_gpu_session(w);
  for (int i = 0; i < 120; ++i) {
    enum { MOST = 9 };
    float values[MOST], doubled[MOST];
    int size = 1 + (i < 60 ? i % 3 : i % MOST);  // more than are kept
    for (int k = 0; k < size; ++k) doubled[k] = 2 * (values[k] = (float)(i + k));
    weir_tensor_t* result = step(w->session, x, make_floats(size, values), y);
    check_floats_at(result, size, doubled, 0, __FILE__, __LINE__);
    weir_tensor_release(result);
  }
  assert_true(cuda_fake_graph_launches > 45);
  assert_true(cuda_fake_graphs <= 4);
}

static void test_large_feeds(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t y = OP(w, "FakeAdd", x, x);
  open_gpu_session(w);
  const int64_t size = 700001;
  float* values = calloc((size_t)size, sizeof(*values));
  for (int i = 0; i < 8; ++i) {
    for (int64_t k = 0; k < size; ++k) values[k] = (float)(i * k % 1000);
    weir_tensor_t* result = step(w->session, x, make_floats(size, values), y);
    for (int64_t k = 0; k < size; ++k) values[k] *= 2;
    check_floats_at(result, size, values, 0, __FILE__, __LINE__);
    weir_tensor_release(result);
  }
  free(values);
  assert_true(cuda_fake_graph_launches >= 4);
}

// One tensor for two placeholders, and then two: which of them goes where is not known.
static void test_what_is_fed_twice(void** state) {
  world_t* w = *state;
  weir_edge_t a = placeholder(w, "a", WEIR_DTYPE_FLOAT), b = placeholder(w, "b", WEIR_DTYPE_FLOAT);
  weir_edge_t y = OP(w, "FakeAdd", OP(w, "FakeAdd", a, b), b);
  open_gpu_session(w);
  for (int i = 0; i < 40; ++i) {
    weir_tensor_t *one = FLOATS((float)i, 1, 2), *two = FLOATS(5, (float)i, 6), *result = NULL;
    weir_tensor_t* second = i < 20 ? one : two;
    check_ok(weir_session_run(
        w->session, &(weir_step_spec_t){WEIR_FEEDS({a, one}, {b, second}), WEIR_FETCHES(y)},
        &result));
    if (i < 20) check_and_release(result, 3 * (float)i, 3, 6);
    else check_and_release(result, (float)i + 10, 1 + 2 * (float)i, 14);
    weir_tensor_release(one);
    weir_tensor_release(two);
  }
}

static void test_failed_recordings_leave_nothing(void** state) {
  world_t* w = *state;
  nodes_t n = add_update(w);
  open_gpu_session(w);
  cuda_fake_failing_captures = 2;
  for (int i = 1; i <= 60; ++i)
    check_and_release(step(w->session, n.x, FLOATS(1, 1, 1), n.y), (float)(2 + i), (float)(3 + i),
                      (float)(4 + i));
  assert_int_equal(cuda_fake_failing_captures, 0);
  assert_true(cuda_fake_graph_launches > 20);
}

// A step that fails does so when it would be recorded, too; others go on.
static void test_errors(void** state) {
  world_t* w = *state;
  weir_edge_t a = placeholder(w, "a", WEIR_DTYPE_FLOAT), b = placeholder(w, "b", WEIR_DTYPE_FLOAT);
  weir_edge_t y = OP(w, "FakeAdd", a, b);
  open_gpu_session(w);
  for (int i = 0; i < 30; ++i) {
    weir_tensor_t *three = FLOATS(1, 2, 3), *two = FLOATS(4, 5), *result = NULL;
    bool is_good = i % 3 == 0;
    weir_status_t* status = weir_session_run(
        w->session,
        &(weir_step_spec_t){WEIR_FEEDS({a, three}, {b, is_good ? three : two}), WEIR_FETCHES(y)},
        &result);
    if (is_good) check_ok(status);
    else check_error(status, WEIR_INVALID_ARGUMENT, "shapes differ");
    weir_tensor_release(three);
    weir_tensor_release(two);
    weir_tensor_release(result);
  }
}

static void test_state_is_not_skipped(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t y = OP(w, "FakeAdd", OP(w, "FakeCount", x), x);
  open_gpu_session(w);
  count = 0;
  for (int i = 0; i < 12; ++i) check_and_release(step(w->session, x, FLOATS(1, 2, 3), y), 2, 4, 6);
  assert_int_equal(count, 12);
  assert_int_equal(cuda_fake_graph_launches, 0);
}

// State that recordings take on: a step draws 1500 numbers in a loop, and none is left out where a
// recording fails.
static void test_state_that_is_taken_anew(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  loop_nodes_t loop =
      open_loop(w, "loop", weir_const_int(w->scope, 0), x, weir_const_int(w->scope, 1500), 10);
  weir_edge_t sum = OP(w, "FakeDraw", loop.x);
  close_loop(w, &loop, sum);
  open_gpu_session(w);
  drawn = -1500;
  cuda_fake_failing_captures = 1;
  for (int i = 0; i < 15; ++i) {
    drawn = -1500;  // of small numbers floats are exact
    check_and_release(step(w->session, x, FLOATS(0, (float)i, 2), loop.exit_x), -1124250,
                      -1124250 + (float)i, -1124248);
    assert_float_equal(drawn, 0, 0);
  }
  assert_int_equal(cuda_fake_failing_captures, 0);
  assert_true(cuda_fake_graph_launches >= 5);
}

static void test_traced_steps_run_as_ever(void** state) {
  world_t* w = *state;
  nodes_t n = add_update(w);
  open_gpu_session(w);
  for (int i = 1; i <= 20; ++i) {
    if (i % 2) {
      check_and_release(step(w->session, n.x, FLOATS(1, 1, 1), n.y), (float)(2 + i), (float)(3 + i),
                        (float)(4 + i));
      continue;
    }
    weir_tensor_t *fed = FLOATS(1, 1, 1), *result = NULL;
    char* json = NULL;
    check_ok(weir_session_run_traced(w->session,
                                     &(weir_step_spec_t){WEIR_FEEDS({n.x, fed}), WEIR_FETCHES(n.y)},
                                     &result, &json));
    assert_non_null(strstr(json, "FakeAdd"));
    weir_buffer_free(json);
    weir_tensor_release(fed);
    check_and_release(result, (float)(2 + i), (float)(3 + i), (float)(4 + i));
  }
}

static void test_state_is_dropped_and_made_anew(void** state) {
  world_t* w = *state;
  nodes_t n = add_update(w);
  open_gpu_session(w);
  for (int round = 0; round < 4; ++round) {
    for (int i = 1; i <= 30; ++i)
      check_and_release(step(w->session, n.x, FLOATS(1, 1, 1), n.y), (float)(2 + i), (float)(3 + i),
                        (float)(4 + i));
    weir_session_reset(w->session, NULL, 0);
    weir_tensor_t *fed = FLOATS(1, 1, 1), *result = NULL;
    check_error(
        weir_session_run(w->session, &(weir_step_spec_t){WEIR_FEEDS({n.x, fed}), WEIR_FETCHES(n.y)},
                         &result),
        WEIR_FAILED_PRECONDITION, "v");
    weir_tensor_release(fed);
    check_ok(weir_session_run_target(w->session, weir_initializer(w->scope)));
  }
}

static void test_cancelled_and_late_steps(void** state) {
  world_t* w = *state;
  nodes_t n = add_update(w);
  open_gpu_session(w);
  for (int i = 1; i <= 12; ++i) {
    check_and_release(step(w->session, n.x, FLOATS(1, 1, 1), n.y), (float)(2 + i), (float)(3 + i),
                      (float)(4 + i));
    weir_cancellation_t* cancellation = NULL;
    weir_tensor_t *fed = FLOATS(1, 1, 1), *result = NULL;
    check_ok(weir_cancellation_create(&cancellation));
    weir_cancellation_cancel(cancellation);
    check_error(weir_session_run_with(
                    w->session, &(weir_step_spec_t){WEIR_FEEDS({n.x, fed}), WEIR_FETCHES(n.y)},
                    &(weir_run_options_t){.cancellation = cancellation}, &result, NULL, NULL),
                WEIR_CANCELLED, "");
    weir_cancellation_destroy(cancellation);
    weir_tensor_release(fed);
  }
}

static size_t driver_free(void) {
  size_t left = 0, all = 0;
  cuda_fake_driver.memory_info(&left, &all);
  return left;
}

static void test_memory_is_flat(void** state) {
  world_t* w = *state;
  nodes_t n = add_update(w);
  open_gpu_session(w);
  size_t before = 0;
  for (int i = 1; i <= 1000; ++i) {
    check_and_release(step(w->session, n.x, FLOATS(1, 1, 1), n.y), (float)(2 + i), (float)(3 + i),
                      (float)(4 + i));
    if (i == 20) before = driver_free();
  }
  assert_int_equal(driver_free(), before);
  assert_true(cuda_fake_graph_launches > 900);
}

// ---- threads ----

typedef struct worker_t {
  weir_session_t* session;
  const nodes_t* nodes;
  int steps;
} worker_t;

static void* work(void* arg) {
  const worker_t* worker = arg;
  for (int i = 0; i < worker->steps; ++i) {
    weir_tensor_t* result =
        step(worker->session, worker->nodes->x, FLOATS(1, 1, 1), worker->nodes->y);
    const float* y = weir_tensor_data(result);
    if (y[1] != y[0] + 1 || y[2] != y[0] + 2) abort();  // torn
    weir_tensor_release(result);
  }
  return NULL;
}

static void run_side_by_side(world_t* w, const nodes_t* n, weir_session_t* other) {
  enum { STEPS = 300 };
  worker_t workers[] = {{w->session, n, STEPS}, {other, n, STEPS}, {w->session, n, STEPS}};
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, work, &workers[i]);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  weir_tensor_t* result = NULL;
  check_ok(weir_session_run(w->session, &(weir_step_spec_t){WEIR_FETCHES(n->v)}, &result));
  check_and_release(result, 1 + 3 * STEPS, 2 + 3 * STEPS, 3 + 3 * STEPS);
}

static void test_steps_at_once(void** state) {
  world_t* w = *state;
  nodes_t n = add_update(w);
  open_gpu_session(w);
  run_side_by_side(w, &n, w->session);
}

// Sessions of one graph share its variables, each with a device of its own.
static void test_sessions_take_turns(void** state) {
  world_t* w = *state;
  nodes_t n = add_update(w);
  open_gpu_session(w);
  weir_session_t* other = open_gpu(w);
  for (int i = 1; i <= 40; ++i) {
    weir_session_t* session = i % 2 ? w->session : other;
    check_and_release(step(session, n.x, FLOATS(1, 1, 1), n.y), (float)(2 + i), (float)(3 + i),
                      (float)(4 + i));
  }
  weir_session_destroy(other);
  check_and_release(step(w->session, n.x, FLOATS(1, 1, 1), n.y), 43, 44, 45);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_variables_are_updated_in_place),
      TEST(test_variables_are_assigned_between_steps),
      TEST(test_variables_are_replaced),
      TEST(test_results_are_the_callers),
      TEST(test_variables_are_fetched),
      TEST(test_variables_are_swapped),
      TEST(test_reference_variables),
      TEST(test_variables_in_host_memory),
      TEST(test_loops),
      TEST(test_loops_that_what_is_fed_ends),
      TEST(test_shapes_change),
      TEST(test_large_feeds),
      TEST(test_what_is_fed_twice),
      TEST(test_failed_recordings_leave_nothing),
      TEST(test_errors),
      TEST(test_state_is_not_skipped),
      TEST(test_state_that_is_taken_anew),
      TEST(test_traced_steps_run_as_ever),
      TEST(test_state_is_dropped_and_made_anew),
      TEST(test_cancelled_and_late_steps),
      TEST(test_memory_is_flat),
      TEST(test_started_steps),
      TEST(test_steps_at_once),
      TEST(test_sessions_take_turns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
