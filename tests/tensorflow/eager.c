// eager.c — Contexts, handles, ops, functions: what runs at once.
#include <pthread.h>

#include "check.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/c_api_experimental.h"

// Consumes |t|.
static TFE_TensorHandle* handle_of(TF_Tensor* t, TF_Status* s) {
  TFE_TensorHandle* h = TFE_NewTensorHandle(t, s);
  OK(s);
  TF_DeleteTensor(t);
  return h;
}
static TFE_TensorHandle* matrix(TF_Status* s, float a, float b, float c, float d) {
  const int64_t dims[] = {2, 2};
  const float values[] = {a, b, c, d};
  return handle_of(tensor_of(TF_FLOAT, dims, 2, values, sizeof(values)), s);
}

static void show(const char* what, TFE_TensorHandle* h, TF_Status* s) {
  TF_Tensor* t = TFE_TensorHandleResolve(h, s);
  OK(s);
  printf("%s: type %d rank %d elements %lld on %s\n", what, TFE_TensorHandleDataType(h),
         TFE_TensorHandleNumDims(h, s), (long long)TFE_TensorHandleNumElements(h, s),
         TFE_TensorHandleDeviceName(h, s));
  if (TF_TensorType(t) == TF_FLOAT) print_floats(what, t);
  if (TF_TensorType(t) == TF_INT32) printf("%s: %d\n", what, *(const int*)TF_TensorData(t));
  TF_DeleteTensor(t);
}

// Runs |op|, says how it went, and deletes it. Returns the first result.
static TFE_TensorHandle* run(const char* what, TFE_Op* op, TF_Status* s) {
  TFE_TensorHandle* results[8] = {NULL};
  int count = 8;
  TFE_Execute(op, results, &count, s);
  say(what, s, 0);
  if (TF_GetCode(s) == TF_OK) printf("%s: %d results\n", what, count);
  else results[0] = NULL;
  for (int i = 1; i < count && TF_GetCode(s) == TF_OK; ++i) TFE_DeleteTensorHandle(results[i]);
  TFE_DeleteOp(op);
  return results[0];
}

static TFE_Op* op_of(TFE_Context* ctx, const char* name, TFE_TensorHandle* a, TFE_TensorHandle* b,
                     TF_Status* s) {
  TFE_Op* op = TFE_NewOp(ctx, name, s);
  OK(s);
  if (a) TFE_OpAddInput(op, a, s);
  OK(s);
  if (b) TFE_OpAddInput(op, b, s);
  OK(s);
  return op;
}

static void handles(TFE_Context* ctx, TF_Status* s) {
  TFE_TensorHandle* h = matrix(s, 1, 2, 3, 4);
  printf("dim %lld backing %s\n", (long long)TFE_TensorHandleDim(h, 1, s),
         TFE_TensorHandleBackingDeviceName(h, s));
  printf("type %s id %d\n", TFE_TensorHandleDeviceType(h, s), TFE_TensorHandleDeviceID(h, s));
  TFE_TensorHandle* shared = TFE_TensorHandleCopySharingTensor(h, s);
  printf("shares %d\n",
         TFE_TensorHandleDevicePointer(h, s) == TFE_TensorHandleDevicePointer(shared, s));
  TFE_DeleteTensorHandle(h);
  show("shared", shared, s);
  TFE_TensorHandle* copy = TFE_TensorHandleCopyToDevice(shared, ctx, "CPU:0", s);
  say("copy", s, 0);
  show("copied", copy, s);
  TFE_TensorHandle* none = TFE_TensorHandleCopyToDevice(shared, ctx, "/device:TPU:5", s);
  say("no device", s, 0);
  printf("none %d\n", none == NULL);
  TFE_TensorDebugInfo* info = TFE_TensorHandleTensorDebugInfo(shared, s);
  printf("debug %d %lld\n", TFE_TensorDebugInfoOnDeviceNumDims(info),
         (long long)TFE_TensorDebugInfoOnDeviceDim(info, 0));
  TFE_DeleteTensorDebugInfo(info);
  TFE_DeleteTensorHandle(copy);
  TFE_DeleteTensorHandle(shared);
  TFE_DeleteTensorHandle(NULL);
}

static void ops(TFE_Context* ctx, TF_Status* s) {
  TFE_TensorHandle *a = matrix(s, 1, 2, 3, 4), *b = matrix(s, 5, 6, 7, 8);
  TFE_Op* op = op_of(ctx, "MatMul", a, b, s);
  TFE_OpSetAttrBool(op, "transpose_b", 1);
  printf("name %s inputs %d same %d device '%s'\n", TFE_OpGetName(op, s),
         TFE_OpGetFlatInputCount(op, s), TFE_OpGetContext(op, s) == ctx, TFE_OpGetDevice(op, s));
  unsigned char is_list = 9;
  printf("attr %d", TFE_OpGetAttrType(op, "transpose_b", &is_list, s));
  printf(" list %d\n", is_list);
  TFE_OpGetAttrType(op, "nothing", &is_list, s);
  say("no attr", s, 0);
  TFE_TensorHandle* product = run("matmul", op, s);
  show("product", product, s);
  printf("attr %d", TFE_OpNameGetAttrType(ctx, "ConcatV2", "N", &is_list, s));
  printf(" list %d\n", is_list);
  // Lists.
  TFE_TensorHandle* axis = handle_of(int_scalar(0), s);
  TFE_TensorHandle* pair[] = {a, b};
  op = TFE_NewOp(ctx, "ConcatV2", s);
  TFE_OpAddInputList(op, pair, 2, s);
  TFE_OpAddInput(op, axis, s);
  printf("lengths %d %d", TFE_OpGetInputLength(op, "values", s),
         TFE_OpGetInputLength(op, "axis", s));
  printf(" %d\n", TFE_OpGetOutputLength(op, "output", s));
  TFE_TensorHandle* both = run("concat", op, s);
  show("both", both, s);
  op = op_of(ctx, "Split", axis, both, s);
  TFE_OpSetAttrInt(op, "num_split", 4);
  printf("outputs %d\n", TFE_OpGetOutputLength(op, "output", s));
  TFE_TensorHandle* row = run("split", op, s);
  show("row", row, s);
  // Attributes with lists and shapes.
  const TF_DataType out_type = TF_INT32;
  op = op_of(ctx, "Shape", both, NULL, s);
  TFE_OpSetAttrType(op, "out_type", out_type);
  TFE_TensorHandle* shape = run("shape", op, s);
  show("shape", shape, s);
  TFE_DeleteTensorHandle(shape);
  op = op_of(ctx, "Squeeze", row, NULL, s);
  const int64_t dims[] = {0};
  TFE_OpSetAttrIntList(op, "squeeze_dims", dims, 1);
  TFE_TensorHandle* squeezed = run("squeeze", op, s);
  show("squeezed", squeezed, s);
  TFE_DeleteTensorHandle(squeezed);
  op = TFE_NewOp(ctx, "Const", s);
  TF_Tensor* seven = int_scalar(7);
  TFE_OpSetAttrTensor(op, "value", seven, s);
  TF_DeleteTensor(seven);
  TFE_OpSetAttrType(op, "dtype", TF_INT32);
  TFE_TensorHandle* constant = run("const", op, s);
  show("constant", constant, s);
  TFE_DeleteTensorHandle(constant);
  TFE_DeleteTensorHandle(row);
  TFE_DeleteTensorHandle(both);
  TFE_DeleteTensorHandle(axis);
  TFE_DeleteTensorHandle(product);
  TFE_DeleteTensorHandle(a);
  TFE_DeleteTensorHandle(b);
}

static void errors(TFE_Context* ctx, TF_Status* s) {
  printf("unknown op %d\n", TFE_NewOp(ctx, "NoSuchOp", s) == NULL);
  say("unknown op", s, 0);
  TFE_TensorHandle *a = matrix(s, 1, 2, 3, 4), *one = handle_of(int_scalar(1), s);
  run("types", op_of(ctx, "AddV2", a, one, s), s);
  run("too few", op_of(ctx, "AddV2", a, NULL, s), s);
  const int64_t dims[] = {3};
  const float values[] = {1, 2, 3};
  TFE_TensorHandle* v = handle_of(tensor_of(TF_FLOAT, dims, 1, values, sizeof(values)), s);
  run("shapes", op_of(ctx, "AddV2", a, v, s), s);
  run("ranks", op_of(ctx, "MatMul", a, v, s), s);
  TFE_Op* op = op_of(ctx, "AddV2", a, a, s);
  TFE_TensorHandle* result = NULL;
  int none = 0;
  TFE_Execute(op, &result, &none, s);
  say("no room", s, 1);
  int count = 1;
  TFE_Execute(op, &result, &count, s);
  say("room", s, 0);
  TFE_DeleteTensorHandle(result);
  TFE_OpReset(op, "Neg", NULL, s);
  say("reset", s, 0);
  TFE_OpAddInput(op, a, s);
  result = run("neg", op, s);
  show("neg", result, s);
  TFE_DeleteTensorHandle(result);
  op = op_of(ctx, "Neg", a, NULL, s);
  TFE_OpSetDevice(op, "/job:localhost/replica:0/task:0/device:CPU:0", s);
  say("device", s, 0);
  printf("device %s\n", TFE_OpGetDevice(op, s));
  result = run("on cpu", op, s);
  TFE_DeleteTensorHandle(result);
  TFE_DeleteTensorHandle(v);
  TFE_DeleteTensorHandle(a);
  TFE_DeleteTensorHandle(one);
}

static void variables(TFE_Context* ctx, TF_Status* s) {
  TFE_Op* op = TFE_NewOp(ctx, "VarHandleOp", s);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_OpSetAttrShape(op, "shape", NULL, 0, s);
  TFE_OpSetAttrString(op, "shared_name", "v", 1);
  TFE_TensorHandle* v = run("handle", op, s);
  printf("type %d\n", TFE_TensorHandleDataType(v));
  op = op_of(ctx, "ReadVariableOp", v, NULL, s);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  run("read too early", op, s);
  TFE_TensorHandle* two = handle_of(float_scalar(2), s);
  run("assign", op_of(ctx, "AssignVariableOp", v, two, s), s);
  run("add", op_of(ctx, "AssignAddVariableOp", v, two, s), s);
  op = op_of(ctx, "ReadVariableOp", v, NULL, s);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_TensorHandle* value = run("read", op, s);
  show("variable", value, s);
  TFE_DeleteTensorHandle(value);
  run("destroy", op_of(ctx, "DestroyResourceOp", v, NULL, s), s);
  TFE_DeleteTensorHandle(two);
  TFE_DeleteTensorHandle(v);
}

// twice(x) = x + x, by a graph.
static TF_Function* make_twice(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation* x = placeholder(g, s, "x", TF_FLOAT);
  TF_Operation* sum = binary(g, s, "AddV2", "sum", out(x, 0), out(x, 0));
  const TF_Output in = out(x, 0), result = out(sum, 0);
  TF_Function* f =
      TF_GraphToFunction(g, "twice", 0, -1, NULL, 1, &in, 1, &result, NULL, NULL, NULL, s);
  OK(s);
  TF_DeleteGraph(g);
  return f;
}

static void functions(TFE_Context* ctx, TF_Status* s) {
  TF_Function* twice = make_twice(s);
  printf("before %d\n", TFE_ContextHasFunction(ctx, "twice"));
  TFE_ContextAddFunction(ctx, twice, s);
  say("add", s, 0);
  TFE_ContextAddFunction(ctx, twice, s);
  say("again", s, 0);
  printf("after %d\n", TFE_ContextHasFunction(ctx, "twice"));
  TFE_TensorHandle* x = handle_of(float_scalar(21), s);
  TFE_TensorHandle* y = run("call", op_of(ctx, "twice", x, NULL, s), s);
  show("twice", y, s);
  TFE_DeleteTensorHandle(y);
  TFE_Op* op = op_of(ctx, "PartitionedCall", x, NULL, s);
  const TF_DataType types[] = {TF_FLOAT};
  TFE_OpSetAttrTypeList(op, "Tin", types, 1);
  TFE_OpSetAttrTypeList(op, "Tout", types, 1);
  TFE_OpSetAttrFunctionName(op, "f", "twice", 5);
  y = run("by name", op, s);
  show("called", y, s);
  TFE_DeleteTensorHandle(y);
  TFE_ContextAddFunctionDef(ctx, "\xff\xff nothing", 10, s);
  say("damaged", s, 0);
  TFE_ContextRemoveFunction(ctx, "twice", s);
  say("remove", s, 0);
  TFE_ContextRemoveFunction(ctx, "twice", s);
  say("remove again", s, 0);
  printf("gone %d\n", TFE_ContextHasFunction(ctx, "twice"));
  printf("no op %d\n", TFE_NewOp(ctx, "twice", s) == NULL);
  TF_DeleteFunction(twice);
  TFE_DeleteTensorHandle(x);
}

static void* cancel_it(void* manager) {
  TFE_CancellationManagerStartCancel(manager);
  return NULL;
}

static void cancellation(TFE_Context* ctx, TF_Status* s) {
  TFE_CancellationManager* manager = TFE_NewCancellationManager();
  printf("cancelled %d\n", TFE_CancellationManagerIsCancelled(manager));
  TFE_Op* op = TFE_NewOp(ctx, "FIFOQueueV2", s);
  const TF_DataType types[] = {TF_FLOAT};
  TFE_OpSetAttrTypeList(op, "component_types", types, 1);
  TFE_OpSetAttrString(op, "shared_name", "q", 1);
  TFE_TensorHandle* queue = run("queue", op, s);
  op = op_of(ctx, "QueueDequeueV2", queue, NULL, s);
  TFE_OpSetAttrTypeList(op, "component_types", types, 1);
  TFE_OpSetCancellationManager(op, manager, s);
  say("manager", s, 0);
  pthread_t thread;
  pthread_create(&thread, NULL, cancel_it, manager);
  run("dequeue", op, s);
  pthread_join(thread, NULL);
  printf("cancelled %d\n", TFE_CancellationManagerIsCancelled(manager));
  TFE_DeleteCancellationManager(manager);
  TFE_DeleteTensorHandle(queue);
}

// Of an attribute the first word holds, be it a setter's or an input's.
static void first_words(TFE_Context* ctx, TF_Status* s) {
  const int64_t dim = 1, three = 3;
  const int32_t short_three = 3;
  TFE_TensorHandle* wide = handle_of(tensor_of(TF_INT64, &dim, 1, &three, sizeof(three)), s);
  TFE_TensorHandle* narrow =
      handle_of(tensor_of(TF_INT32, &dim, 1, &short_three, sizeof(short_three)), s);
  TFE_TensorHandle *value = handle_of(int_scalar(7), s), *axis = handle_of(int_scalar(0), s);
  for (int k = 0; k < 5; ++k) {
    TFE_Op* op = TFE_NewOp(ctx, "Fill", s);
    if (k == 1) TFE_OpSetAttrType(op, "index_type", TF_INT32);
    if (k >= 2) TFE_OpSetAttrType(op, "index_type", TF_INT64);
    if (k >= 2) TFE_OpSetAttrType(op, "index_type", TF_INT32);
    TFE_OpAddInput(op, k == 3 ? narrow : wide, s);
    TFE_OpAddInput(op, value, s);
    if (k == 0) TFE_OpSetAttrType(op, "index_type", TF_INT32);
    if (k == 4) TFE_OpReset(op, "Fill", NULL, s);
    if (k == 4) TFE_OpSetAttrType(op, "index_type", TF_INT32);
    if (k == 4) TFE_OpAddInput(op, narrow, s);
    if (k == 4) TFE_OpAddInput(op, value, s);
    TFE_TensorHandle* filled = run("fill", op, s);
    if (filled) show("filled", filled, s);
    TFE_DeleteTensorHandle(filled);
  }
  TFE_TensorHandle* pair[] = {wide, wide};
  for (int k = 0; k < 2; ++k) {
    TFE_Op* op = TFE_NewOp(ctx, "ConcatV2", s);
    if (k == 1) TFE_OpSetAttrInt(op, "N", 2);
    if (k == 0) TFE_OpAddInputList(op, pair, 2, s);
    for (int i = 0; i < 2 && k == 1; ++i) TFE_OpAddInput(op, wide, s);
    TFE_OpAddInput(op, axis, s);
    if (k == 0) TFE_OpSetAttrInt(op, "N", 5);
    TFE_OpSetAttrType(op, "T", k == 0 ? TF_FLOAT : TF_INT64);
    TFE_OpSetAttrType(op, "Tidx", k == 0 ? TF_INT64 : TF_INT32);
    TFE_TensorHandle* joined = run("joined", op, s);
    if (joined) show("joined", joined, s);
    TFE_DeleteTensorHandle(joined);
  }
  TFE_DeleteTensorHandle(axis);
  TFE_DeleteTensorHandle(value);
  TFE_DeleteTensorHandle(narrow);
  TFE_DeleteTensorHandle(wide);
}

int main(void) {
  TF_Status* s = TF_NewStatus();
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TFE_ContextOptionsSetConfig(options, "\xff\xff", 2, s);
  say("bad config", s, 0);
  TFE_ContextOptionsSetAsync(options, 0);
  TFE_ContextOptionsSetDevicePlacementPolicy(options, TFE_DEVICE_PLACEMENT_EXPLICIT);
  TFE_Context* ctx = TFE_NewContext(options, s);
  OK(s);
  TFE_DeleteContextOptions(options);
  printf("policy %d", TFE_ContextGetDevicePlacementPolicy(ctx));
  TFE_ContextSetThreadLocalDevicePlacementPolicy(ctx, TFE_DEVICE_PLACEMENT_SILENT);
  printf(" then %d\n", TFE_ContextGetDevicePlacementPolicy(ctx));
  TF_DeviceList* devices = TFE_ContextListDevices(ctx, s);
  printf("first %s\n", TF_DeviceListName(devices, 0, s));
  TF_DeleteDeviceList(devices);
  handles(ctx, s);
  ops(ctx, s);
  first_words(ctx, s);
  errors(ctx, s);
  variables(ctx, s);
  functions(ctx, s);
  cancellation(ctx, s);
  TFE_ContextClearCaches(ctx);
  TFE_DeleteContext(ctx);
  TF_DeleteStatus(s);
  return 0;
}
