// accumulator_test.c — Accumulators and barriers through their kernels, by Ref(string) and by
// resource.

#include <stdio.h>

#include "op/kernel.h"
#include "testing/cmocka.h"

extern const weir_op_module_t weir_ops_queue_accumulator;
extern const weir_op_module_t weir_ops_queue_sparse_accumulator;
extern const weir_op_module_t weir_ops_queue_barrier;

static const weir_op_module_t* const modules[] = {
    &weir_ops_queue_accumulator, &weir_ops_queue_sparse_accumulator, &weir_ops_queue_barrier};

typedef struct world_t {
  weir_pool_t* pool;
  weir_device_t* device;
  weir_step_t step;
} world_t;

static int set_up(void** state) {
  world_t* w = weir_calloc(1, sizeof(*w));
  assert_null(weir_pool_create(1, &w->pool));
  assert_null(weir_cpu_device_create("", 0, w->pool, &w->device));
  assert_null(weir_resources_create("localhost", &w->step.session_resources));
  assert_null(weir_cancel_create(NULL, &w->step.cancel));
  *state = w;
  return 0;
}

static int tear_down(void** state) {
  world_t* w = *state;
  weir_resources_destroy(w->step.session_resources);
  weir_cancel_destroy(w->step.cancel);
  weir_device_release(w->device);
  weir_pool_destroy(w->pool);
  weir_free(w);
  return 0;
}

// One call of a kernel; |done_count| is 0 while it waits.
typedef struct call_t {
  weir_kernel_ctx_t ctx;
  weir_node_def_t node;
  weir_value_t inputs[5];
  weir_value_t outputs[4];
  weir_dtype_t types[4];
  void* state;
  int done_count;
  weir_status_t* status;
} call_t;

static void on_done(void* arg, weir_status_t* take_status) {
  call_t* call = arg;
  call->status = take_status;
  ++call->done_count;
}

static const weir_kernel_def_t* find_kernel(const char* name) {
  for (size_t m = 0; m < WEIR_COUNT_OF(modules); ++m) {
    for (const weir_op_def_t* op = modules[m]->ops; op->name; ++op) {
      if (strcmp(op->name, name) == 0) return op->kernels;
    }
  }
  fail_msg("no op %s", name);
  return NULL;
}

static void prepare(call_t* call, const weir_dtype_t* types, int outputs) {
  memset(call, 0, sizeof(*call));
  for (int i = 0; i < outputs; ++i) call->types[i] = types[i];
  call->ctx.output_count = outputs;
}

static void run(world_t* w, call_t* call, const char* op, weir_attrs_t attrs, int inputs) {
  const weir_kernel_def_t* kernel = find_kernel(op);
  call->node = (weir_node_def_t){.name = "node",
                                 .op_name = op,
                                 .attrs = attrs,
                                 .output_types = call->types,
                                 .output_count = call->ctx.output_count,
                                 .input_count = inputs};
  call->state = weir_calloc(1, kernel->state_size + 1);
  weir_kernel_init_t init = {.node = &call->node, .device = w->device};
  if (kernel->init) assert_null(kernel->init(&init, call->state));
  call->ctx = (weir_kernel_ctx_t){.node = &call->node,
                                  .kernel = kernel,
                                  .state = call->state,
                                  .inputs = call->inputs,
                                  .outputs = call->outputs,
                                  .device = w->device,
                                  .step = &w->step,
                                  .input_count = inputs,
                                  .output_count = call->node.output_count};
  if (kernel->compute) {
    on_done(call, kernel->compute(&call->ctx));
  } else {
    kernel->compute_async(&call->ctx, (weir_done_t){.fn = on_done, .arg = call});
  }
}

static void finish(call_t* call) {
  if (call->ctx.kernel->deinit) call->ctx.kernel->deinit(call->state);
  weir_free(call->state);
  for (int i = 0; i < 5; ++i) weir_value_release(&call->inputs[i]);
  for (int i = 0; i < 4; ++i) weir_value_release(&call->outputs[i]);
  weir_status_destroy(call->status);
}

static void assert_ok(const call_t* call) {
  assert_int_equal(call->done_count, 1);
  if (call->status) fail_msg("%s", weir_status_message(call->status));
}

static void assert_code(const call_t* call, weir_code_t code) {
  assert_int_equal(call->done_count, 1);
  assert_int_equal(weir_status_code(call->status), code);
}

static weir_value_t tensor(weir_dtype_t dtype, int rank, const int64_t* dims, const void* data) {
  weir_value_t value = {0};
  assert_null(weir_tensor_create_from(dtype, rank, dims, data, &value.tensor));
  return value;
}

static weir_value_t share(weir_value_t value) {
  if (value.tensor) weir_tensor_retain(value.tensor);
  if (value.ref) weir_resource_retain(&value.ref->base);
  return value;
}

// The handle of a new accumulator: a reference or a resource.
static weir_value_t make(world_t* w, const char* op, weir_attrs_t attrs, weir_dtype_t type) {
  call_t call;
  prepare(&call, &type, 1);
  run(w, &call, op, attrs, 0);
  assert_ok(&call);
  weir_value_t handle = share(call.outputs[0]);
  finish(&call);
  return handle;
}

static void apply(world_t* w, weir_value_t handle, const char* op, int64_t local_step, float x,
                  float y) {
  call_t call;
  prepare(&call, NULL, 0);
  call.inputs[0] = share(handle);
  call.inputs[1] = tensor(WEIR_DTYPE_INT64, 0, NULL, &local_step);
  call.inputs[2] = tensor(WEIR_DTYPE_FLOAT, 1, (const int64_t[]){2}, (const float[]){x, y});
  run(w, &call, op, WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT)), 3);
  assert_ok(&call);
  finish(&call);
}

static void take(world_t* w, call_t* call, weir_value_t handle, const char* op, int32_t required) {
  static const weir_dtype_t type = WEIR_DTYPE_FLOAT;
  static weir_named_attr_t attr;
  attr = weir_attr_type("dtype", WEIR_DTYPE_FLOAT);
  prepare(call, &type, 1);
  call->inputs[0] = share(handle);
  call->inputs[1] = tensor(WEIR_DTYPE_INT32, 0, NULL, &required);
  run(w, call, op, (weir_attrs_t){&attr, 1}, 2);
}

static int64_t count_of(world_t* w, weir_value_t handle, const char* op) {
  static const weir_dtype_t type = WEIR_DTYPE_INT32;
  call_t call;
  prepare(&call, &type, 1);
  call.inputs[0] = share(handle);
  run(w, &call, op, WEIR_NO_ATTRS, 1);
  assert_ok(&call);
  int64_t count = weir_tensor_int_at(call.outputs[0].tensor, 0);
  finish(&call);
  return count;
}

static void check_dense(world_t* w, const char* prefix, weir_dtype_t handle_type,
                        const char* reduction) {
  char name[64], apply_op[64], take_op[64], count_op[64];
  const bool is_mean = strcmp(reduction, "MEAN") == 0;
  snprintf(name, sizeof(name), "%sConditionalAccumulator", prefix);
  snprintf(apply_op, sizeof(apply_op), "%sAccumulatorApplyGradient", prefix);
  snprintf(take_op, sizeof(take_op), "%sAccumulatorTakeGradient", prefix);
  snprintf(count_op, sizeof(count_op), "%sAccumulatorNumAccumulated", prefix);
  weir_value_t handle =
      make(w, name,
           WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                      weir_attr_shape("shape", &weir_shape_unknown),
                      weir_attr_string("container", ""), weir_attr_string("shared_name", reduction),
                      weir_attr_string("reduction_type", reduction)),
           handle_type);
  call_t first, second;
  apply(w, handle, apply_op, 0, 1, 2);
  take(w, &first, handle, take_op, 2);
  assert_int_equal(first.done_count, 0);  // one of two
  assert_int_equal(count_of(w, handle, count_op), 1);
  apply(w, handle, apply_op, 0, 3, 6);
  assert_ok(&first);
  const float* got = WEIR_TENSOR_DATA(first.outputs[0].tensor, float);
  assert_true(got[0] == (is_mean ? 2.0f : 4.0f) && got[1] == (is_mean ? 4.0f : 8.0f));
  apply(w, handle, apply_op, 0, 9, 9);  // stale: the step is 1 now
  assert_int_equal(count_of(w, handle, count_op), 0);
  apply(w, handle, apply_op, 1, 5, 6);
  take(w, &second, handle, take_op, 1);
  assert_ok(&second);
  assert_true(WEIR_TENSOR_DATA(second.outputs[0].tensor, float)[1] == 6.0f);
  finish(&first);
  finish(&second);
  take(w, &first, handle, take_op, 0);
  assert_code(&first, WEIR_INVALID_ARGUMENT);
  finish(&first);
  weir_value_release(&handle);
}

static void test_dense(void** state) {
  check_dense(*state, "", weir_dtype_ref(WEIR_DTYPE_STRING), "MEAN");
  check_dense(*state, "", weir_dtype_ref(WEIR_DTYPE_STRING), "SUM");
}

static void test_dense_resource(void** state) {
  check_dense(*state, "Resource", WEIR_DTYPE_RESOURCE, "MEAN");
}

// The ways in which TakeGradient fails.
static void test_take_errors(void** state) {
  world_t* w = *state;
  weir_value_t handles[2];
  const weir_dtype_t dtypes[] = {WEIR_DTYPE_FLOAT, WEIR_DTYPE_DOUBLE};
  for (int i = 0; i < 2; ++i) {
    handles[i] = make(
        w, "ConditionalAccumulator",
        WEIR_ATTRS(weir_attr_type("dtype", dtypes[i]),
                   weir_attr_shape("shape", &weir_shape_unknown), weir_attr_string("container", ""),
                   weir_attr_string("shared_name", weir_dtype_name(dtypes[i])),
                   weir_attr_string("reduction_type", "MEAN")),
        weir_dtype_ref(WEIR_DTYPE_STRING));
  }
  call_t call;
  for (int32_t required = -1; required <= 0; ++required) {
    take(w, &call, handles[0], "AccumulatorTakeGradient", required);
    assert_code(&call, WEIR_INVALID_ARGUMENT);
    finish(&call);
  }
  take(w, &call, handles[1], "AccumulatorTakeGradient", 1);  // as floats, of doubles
  assert_code(&call, WEIR_INVALID_ARGUMENT);
  finish(&call);
  take(w, &call, handles[0], "AccumulatorTakeGradient", 1);
  assert_int_equal(call.done_count, 0);
  weir_resources_clear_all(w->step.session_resources);
  assert_code(&call, WEIR_CANCELLED);
  finish(&call);
  take(w, &call, handles[0], "AccumulatorTakeGradient", 1);
  assert_code(&call, WEIR_NOT_FOUND);
  finish(&call);
  for (int i = 0; i < 2; ++i) weir_value_release(&handles[i]);
}

static void test_take_is_cancelled(void** state) {
  world_t* w = *state;
  weir_value_t handle = make(
      w, "ConditionalAccumulator",
      WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                 weir_attr_shape("shape", &weir_shape_unknown), weir_attr_string("container", ""),
                 weir_attr_string("shared_name", "a"), weir_attr_string("reduction_type", "MEAN")),
      weir_dtype_ref(WEIR_DTYPE_STRING));
  call_t served, waiting, late;
  take(w, &served, handle, "AccumulatorTakeGradient", 1);
  apply(w, handle, "AccumulatorApplyGradient", 0, 1, 2);
  assert_ok(&served);
  finish(&served);  // the cancellation below finds it gone
  take(w, &waiting, handle, "AccumulatorTakeGradient", 1);
  assert_int_equal(waiting.done_count, 0);
  weir_cancel_start(w->step.cancel);
  assert_code(&waiting, WEIR_CANCELLED);
  finish(&waiting);
  take(w, &late, handle, "AccumulatorTakeGradient", 1);
  assert_code(&late, WEIR_CANCELLED);
  finish(&late);
  weir_value_release(&handle);
}

static void sparse_apply(world_t* w, weir_value_t handle, const int64_t* indices,
                         const float* values, int64_t count) {
  call_t call;
  int64_t step = 0;
  prepare(&call, NULL, 0);
  call.inputs[0] = share(handle);
  call.inputs[1] = tensor(WEIR_DTYPE_INT64, 0, NULL, &step);
  call.inputs[2] = tensor(WEIR_DTYPE_INT64, 1, &count, indices);
  call.inputs[3] = tensor(WEIR_DTYPE_FLOAT, 2, (const int64_t[]){count, 1}, values);
  call.inputs[4] = tensor(WEIR_DTYPE_INT64, 1, (const int64_t[]){0}, &step);
  run(w, &call, "SparseAccumulatorApplyGradient",
      WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                 weir_attr_bool("has_known_shape", false)),
      5);
  assert_ok(&call);
  finish(&call);
}

static void check_sparse(world_t* w, const weir_shape_t* shape, const char* name) {
  weir_value_t handle =
      make(w, "SparseConditionalAccumulator",
           WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT), weir_attr_shape("shape", shape),
                      weir_attr_string("container", ""), weir_attr_string("shared_name", name),
                      weir_attr_string("reduction_type", "MEAN")),
           weir_dtype_ref(WEIR_DTYPE_STRING));
  sparse_apply(w, handle, (const int64_t[]){1, 4}, (const float[]){2, 4}, 2);
  sparse_apply(w, handle, (const int64_t[]){0, 4, 7}, (const float[]){1, 8, 3}, 3);
  call_t call;
  static const weir_dtype_t types[3] = {WEIR_DTYPE_INT64, WEIR_DTYPE_FLOAT, WEIR_DTYPE_INT64};
  int32_t required = 2;
  prepare(&call, types, 3);
  call.inputs[0] = share(handle);
  call.inputs[1] = tensor(WEIR_DTYPE_INT32, 0, NULL, &required);
  run(w, &call, "SparseAccumulatorTakeGradient",
      WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT)), 2);
  assert_ok(&call);
  static const int64_t indices[] = {0, 1, 4, 7};
  static const float values[] = {1, 2, 6, 3};
  assert_int_equal(call.outputs[0].tensor->count, 4);
  assert_memory_equal(call.outputs[0].tensor->data, indices, sizeof(indices));
  assert_memory_equal(call.outputs[1].tensor->data, values, sizeof(values));
  assert_int_equal(weir_tensor_int_at(call.outputs[2].tensor, 0), -1);
  finish(&call);
  weir_value_release(&handle);
}

static void test_sparse(void** state) {
  const weir_shape_t scalar = {.rank = 0};  // what SyncReplicasOptimizer says, whatever the rows
  check_sparse(*state, &weir_shape_unknown, "sparse");
  check_sparse(*state, &scalar, "sparse prefix");
}

static void insert(world_t* w, weir_value_t handle, int component, const char* key, float value,
                   weir_code_t code) {
  call_t call;
  prepare(&call, NULL, 0);
  call.inputs[0] = share(handle);
  assert_null(
      weir_tensor_create_strings(1, (const int64_t[]){1}, &key, NULL, &call.inputs[1].tensor));
  call.inputs[2] = tensor(WEIR_DTYPE_FLOAT, 1, (const int64_t[]){1}, &value);
  run(w, &call, "BarrierInsertMany",
      WEIR_ATTRS(weir_attr_type("T", WEIR_DTYPE_FLOAT),
                 weir_attr_int("component_index", component)),
      3);
  assert_code(&call, code);
  finish(&call);
}

static void take_many(world_t* w, call_t* call, weir_value_t handle, int32_t count,
                      bool is_small_fine) {
  static const weir_dtype_t types[4] = {WEIR_DTYPE_INT64, WEIR_DTYPE_STRING, WEIR_DTYPE_FLOAT,
                                        WEIR_DTYPE_FLOAT};
  static weir_named_attr_t attr;
  attr = weir_attr_bool("allow_small_batch", is_small_fine);
  prepare(call, types, 4);
  call->inputs[0] = share(handle);
  call->inputs[1] = tensor(WEIR_DTYPE_INT32, 0, NULL, &count);
  run(w, call, "BarrierTakeMany", (weir_attrs_t){&attr, 1}, 2);
}

static void close_barrier(world_t* w, weir_value_t handle, weir_code_t code) {
  call_t call;
  prepare(&call, NULL, 0);
  call.inputs[0] = share(handle);
  run(w, &call, "BarrierClose", WEIR_ATTRS(weir_attr_bool("cancel_pending_enqueues", false)), 1);
  assert_code(&call, code);
  finish(&call);
}

static void test_barrier(void** state) {
  world_t* w = *state;
  static const weir_dtype_t types[2] = {WEIR_DTYPE_FLOAT, WEIR_DTYPE_FLOAT};
  const weir_shape_t* shapes[2] = {&weir_shape_scalar, &weir_shape_scalar};
  weir_value_t handle = make(
      w, "Barrier",
      WEIR_ATTRS(weir_attr_types("component_types", types, 2),
                 weir_attr_shapes("shapes", shapes, 2), weir_attr_int("capacity", -1),
                 weir_attr_string("container", ""), weir_attr_string("shared_name", "barrier")),
      weir_dtype_ref(WEIR_DTYPE_STRING));
  call_t call;
  insert(w, handle, 0, "a", 1, WEIR_OK);
  insert(w, handle, 0, "b", 2, WEIR_OK);
  insert(w, handle, 0, "a", 3, WEIR_INVALID_ARGUMENT);
  insert(w, handle, 1, "b", 20, WEIR_OK);
  assert_int_equal(count_of(w, handle, "BarrierReadySize"), 1);
  assert_int_equal(count_of(w, handle, "BarrierIncompleteSize"), 1);
  take_many(w, &call, handle, 2, false);
  assert_int_equal(call.done_count, 0);
  close_barrier(w, handle, WEIR_OK);  // the key that is open may still be completed
  insert(w, handle, 1, "c", 1, WEIR_CANCELLED);
  insert(w, handle, 1, "a", 10, WEIR_OK);
  assert_ok(&call);
  assert_int_equal(call.outputs[1].tensor->count, 2);
  finish(&call);
  take_many(w, &call, handle, 1, true);
  assert_code(&call, WEIR_OUT_OF_RANGE);
  finish(&call);
  close_barrier(w, handle, WEIR_CANCELLED);
  weir_value_release(&handle);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_dense, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_dense_resource, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_take_errors, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_take_is_cancelled, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_sparse, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_barrier, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
