// custom_op.c — Ops and kernels of a program's own: defined, given shapes, computed in sessions and
// eagerly. Compiled as C against our headers, and as C++ against TensorFlow's, whose ops.h is none
// of C.
#include <pthread.h>

#include "check.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"

static int made;  // instances of kernels alive

static const char* text_of(TF_StringView view) {
  static char text[256];
  snprintf(text, sizeof(text), "%.*s", (int)view.len, view.data);
  return text;
}

// TensorFlow's graphs take no op without a shape function.
static void any_shape(TF_ShapeInferenceContext* ctx, TF_Status* status) {
  TF_ShapeInferenceContextSetUnknownShape(ctx, status);
}

static void define(const char* what, TF_OpDefinitionBuilder* builder, TF_Status* s) {
  TF_RegisterOpDefinition(builder, s);
  say(what, s, 1);
}

static void provide(const char* what, TF_KernelBuilder* builder, TF_Status* s) {
  TF_RegisterKernelBuilder(what, builder, s);
  say(what, s, 0);
}

// ---- Scale: one input, attributes, a kernel for each type ----

typedef struct scale_t {
  float factor;
} scale_t;

static void same_shape(TF_ShapeInferenceContext* ctx, TF_Status* status) {
  TF_ShapeHandle* shape = TF_NewShapeHandle();
  TF_ShapeInferenceContextGetInput(ctx, 0, shape, status);
  if (TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextSetOutput(ctx, 0, shape, status);
  TF_DeleteShapeHandle(shape);
}

static void* scale_create(TF_OpKernelConstruction* ctx) {
  TF_Status* s = TF_NewStatus();
  scale_t* scale = (scale_t*)malloc(sizeof(*scale));
  ++made;
  TF_OpKernelConstruction_GetAttrFloat(ctx, "factor", &scale->factor, s);
  if (TF_GetCode(s) == TF_OK && scale->factor == 0)
    TF_SetStatus(s, TF_INVALID_ARGUMENT, "a factor of zero");
  if (TF_GetCode(s) != TF_OK) TF_OpKernelConstruction_Failure(ctx, s);
  TF_DeleteStatus(s);
  return scale;
}

static void scale_delete(void* kernel) {
  --made;
  free(kernel);
}

static void scale_compute(void* kernel, TF_OpKernelContext* ctx) {
  const scale_t* scale = (const scale_t*)kernel;
  TF_Status* s = TF_NewStatus();
  TF_Tensor* x = NULL;
  TF_GetInput(ctx, 0, &x, s);
  OK(s);
  int64_t dims[8];
  for (int i = 0; i < TF_NumDims(x); ++i) dims[i] = TF_Dim(x, i);
  const int first[] = {0};
  TF_Tensor* y = TF_ForwardInputOrAllocateOutput(ctx, first, 1, 0, dims, TF_NumDims(x), NULL, s);
  OK(s);
  for (int64_t i = 0; i < TF_TensorElementCount(x); ++i) {
    if (TF_InputDatatype(ctx, 0) == TF_FLOAT)
      ((float*)TF_TensorData(y))[i] = ((const float*)TF_TensorData(x))[i] * scale->factor;
    else ((double*)TF_TensorData(y))[i] = ((const double*)TF_TensorData(x))[i] * scale->factor;
  }
  TF_DeleteTensor(x);
  TF_DeleteTensor(y);
  TF_DeleteStatus(s);
}

static void register_scale(TF_Status* s) {
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("WeirTestScale");
  TF_OpDefinitionBuilderAddAttr(op, "T: {float, double, int32}");
  TF_OpDefinitionBuilderAddAttr(op, "factor: float = 2.0");
  TF_OpDefinitionBuilderAddInput(op, "x: T");
  TF_OpDefinitionBuilderAddOutput(op, "y: T");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, same_shape);
  define("define Scale", op, s);
  const TF_DataType types[] = {TF_FLOAT, TF_DOUBLE};
  for (int i = 0; i < 2; ++i) {
    TF_KernelBuilder* kernel =
        TF_NewKernelBuilder("WeirTestScale", "CPU", scale_create, scale_compute, scale_delete);
    TF_KernelBuilder_TypeConstraint(kernel, "T", types[i], s);
    say("constraint", s, 0);
    provide("kernel of Scale", kernel, s);
  }
  TF_KernelBuilder* unused = TF_NewKernelBuilder("WeirTestScale", "CPU", NULL, NULL, NULL);
  TF_KernelBuilder_TypeConstraint(unused, "T", (TF_DataType)77, s);
  say("constraint to no type", s, 0);
  TF_DeleteKernelBuilder(unused);
  TF_DeleteOpDefinitionBuilder(TF_NewOpDefinitionBuilder("WeirTestNever"));
}

// ---- Shapes: what shape functions can ask, told by printing ----

static void print_shape(const char* what, TF_ShapeInferenceContext* ctx, TF_ShapeHandle* shape,
                        TF_Status* s) {
  printf("%s: %d", what, TF_GetCode(s));
  if (TF_GetCode(s) == TF_OK) {
    TF_DimensionHandle* dim = TF_NewDimensionHandle();
    const int64_t rank = TF_ShapeInferenceContextRank(ctx, shape);
    printf(" known %d rank %d:", TF_ShapeInferenceContextRankKnown(ctx, shape), (int)rank);
    for (int64_t i = 0; i < rank; ++i) {
      TF_ShapeInferenceContextDim(ctx, shape, i, dim);
      if (TF_DimensionHandleValueKnown(dim)) printf(" %d", (int)TF_DimensionHandleValue(dim));
      else printf(" ?");
    }
    TF_DeleteDimensionHandle(dim);
  }
  printf("\n");
  TF_SetStatus(s, TF_OK, "");
}

static void ask_of_ranks(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* x, TF_ShapeHandle* result,
                         TF_Status* s) {
  for (int rank = 1; rank <= 3; ++rank) {
    TF_ShapeInferenceContextWithRank(ctx, x, rank, result, s);
    print_shape("with rank", ctx, result, s);
    TF_ShapeInferenceContextWithRankAtLeast(ctx, x, rank, result, s);
    print_shape("at least", ctx, result, s);
    TF_ShapeInferenceContextWithRankAtMost(ctx, x, rank, result, s);
    print_shape("at most", ctx, result, s);
  }
}

static void ask_of_parts(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* x, TF_ShapeHandle* result,
                         TF_Status* s) {
  const int64_t ends[][2] = {{0, 1}, {-1, 9}, {1, -1}, {0, 7}, {2, 1}, {-7, 1}, {0, -7}};
  for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); ++i) {
    TF_ShapeInferenceContextSubshape(ctx, x, ends[i][0], ends[i][1], result, s);
    print_shape("subshape", ctx, result, s);
  }
  TF_ShapeHandle* vector = TF_ShapeInferenceContextVectorFromSize(ctx, 5);
  print_shape("vector", ctx, vector, s);
  TF_ShapeInferenceContextConcatenateShapes(ctx, vector, x, result, s);
  print_shape("concatenated", ctx, result, s);
  TF_DeleteShapeHandle(vector);
  TF_ShapeHandle* scalar = TF_ShapeInferenceContextScalar(ctx);
  print_shape("scalar", ctx, scalar, s);
  TF_DeleteShapeHandle(scalar);
}

static int is_telling;  // so that each line is printed once, whoever infers shapes besides

static void tell_shapes(TF_ShapeInferenceContext* ctx, TF_Status* status) {
  TF_ShapeHandle* x = TF_NewShapeHandle();
  TF_ShapeHandle* result = TF_NewShapeHandle();
  TF_DataType type = TF_INT8;
  TF_ShapeInferenceContextGetInput(ctx, 0, x, status);
  if (is_telling) {
    is_telling = 0;
    printf("inputs %d\n", (int)TF_ShapeInferenceContextNumInputs(ctx));
    print_shape("input", ctx, x, status);
    TF_ShapeInferenceContextGetInput(ctx, 4, result, status);
    say("input of no number", status, 0);
    TF_ShapeInferenceContextSetOutput(ctx, -1, x, status);
    say("output of no number", status, 0);
    TF_ShapeInferenceContext_GetAttrType(ctx, "T", &type, status);
    printf("type %d\n", type);
    TF_ShapeInferenceContext_GetAttrType(ctx, "nothing", &type, status);
    say("no attribute", status, 0);
    ask_of_ranks(ctx, x, result, status);
    ask_of_parts(ctx, x, result, status);
  }
  TF_ShapeInferenceContextSetUnknownShape(ctx, status);
  TF_ShapeInferenceContextWithRankAtMost(ctx, x, 2, result, status);
  if (TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextSetOutput(ctx, 0, result, status);
  TF_DeleteShapeHandle(x);
  TF_DeleteShapeHandle(result);
}

static void infer(TF_Graph* g, TF_Status* s, const char* name, const int64_t* dims, int rank) {
  char input[64];
  snprintf(input, sizeof(input), "%s_in", name);
  TF_Operation* x = placeholder(g, s, input, TF_FLOAT);
  OK(s);
  TF_GraphSetTensorShape(g, out(x, 0), dims, rank, s);
  OK(s);
  is_telling = 1;
  TF_Operation* op = unary(g, s, "WeirTestShapes", name, out(x, 0));
  is_telling = 0;
  say(name, s, 0);
  if (!op) return;
  int64_t found[8] = {0};
  const int found_rank = TF_GraphGetTensorNumDims(g, out(op, 0), s);
  if (found_rank > 0) TF_GraphGetTensorShape(g, out(op, 0), found, found_rank, s);
  printf("rank %d dims %d %d\n", found_rank, (int)found[0], (int)found[1]);
}

static void shapes(TF_Status* s) {
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("WeirTestShapes");
  TF_OpDefinitionBuilderAddAttr(op, "T: type");
  TF_OpDefinitionBuilderAddInput(op, "x: T");
  TF_OpDefinitionBuilderAddOutput(op, "y: T");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, tell_shapes);
  define("define Shapes", op, s);
  TF_Graph* g = TF_NewGraph();
  const int64_t dims[] = {3, -1, 4};
  infer(g, s, "matrix", dims, 2);
  infer(g, s, "unknown", NULL, -1);
  infer(g, s, "cube", dims, 3);
  TF_DeleteGraph(g);
}

// ---- Attributes: what an instance can ask of its node ----

static void print_sizes(TF_OpKernelConstruction* ctx, const char* name, TF_Status* s) {
  int32_t list = 7;
  int32_t total = 7;
  TF_OpKernelConstruction_GetAttrSize(ctx, name, &list, &total, s);
  printf("%s: %d list %d total %d ", name, TF_GetCode(s), list, total);
  printf("has %d", TF_OpKernelConstruction_HasAttr(ctx, name, s));
  say("", s, 0);
}

static void ask_single(TF_OpKernelConstruction* ctx, TF_Status* s) {
  TF_DataType type = TF_INT8;
  int32_t narrow = 0;
  int64_t wide = 0;
  float number = 0;
  TF_Bool truth = 0;
  char text[8] = "";
  TF_Tensor* tensor = NULL;
  TF_OpKernelConstruction_GetAttrType(ctx, "T", &type, s);
  TF_OpKernelConstruction_GetAttrInt64(ctx, "i", &wide, s);
  TF_OpKernelConstruction_GetAttrFloat(ctx, "f", &number, s);
  TF_OpKernelConstruction_GetAttrBool(ctx, "b", &truth, s);
  TF_OpKernelConstruction_GetAttrString(ctx, "s", text, sizeof(text), s);
  say("single", s, 0);
  printf("%d %lld %g %d %.7s\n", type, (long long)wide, number, truth, text);
  TF_OpKernelConstruction_GetAttrInt32(ctx, "i", &narrow, s);
  say("too wide", s, 0);
  TF_OpKernelConstruction_GetAttrFloat(ctx, "i", &number, s);
  say("of another kind", s, 0);
  TF_OpKernelConstruction_GetAttrInt64(ctx, "nothing", &wide, s);
  say("none", s, 0);
  TF_OpKernelConstruction_GetAttrTensor(ctx, "value", &tensor, s);
  say("tensor", s, 0);
  print_floats("tensor", tensor);
  TF_DeleteTensor(tensor);
}

static void ask_lists(TF_OpKernelConstruction* ctx, TF_Status* s) {
  TF_DataType types[4] = {TF_INT8};
  int32_t narrow[4] = {0};
  int64_t wide[4] = {0};
  float numbers[4] = {0};
  TF_Bool truths[4] = {0};
  char* texts[4] = {NULL};
  size_t lengths[4] = {0};
  char storage[16] = "";
  TF_OpKernelConstruction_GetAttrTypeList(ctx, "types", types, 4, s);
  TF_OpKernelConstruction_GetAttrInt32List(ctx, "is", narrow, 4, s);
  TF_OpKernelConstruction_GetAttrInt64List(ctx, "is", wide, 2, s);
  TF_OpKernelConstruction_GetAttrFloatList(ctx, "fs", numbers, 4, s);
  TF_OpKernelConstruction_GetAttrBoolList(ctx, "bs", truths, 4, s);
  TF_OpKernelConstruction_GetAttrStringList(ctx, "ss", texts, lengths, 4, storage, sizeof(storage),
                                            s);
  say("lists", s, 0);
  printf("%d %d, %d %d %d, %d %d %d, %g %g, %d %d, %.*s %.*s\n", types[0], types[1], narrow[0],
         narrow[1], narrow[2], (int)wide[0], (int)wide[1], (int)wide[2], numbers[0], numbers[1],
         truths[0], truths[1], (int)lengths[0], texts[0], (int)lengths[1], texts[1]);
  TF_OpKernelConstruction_GetAttrStringList(ctx, "ss", texts, lengths, 4, storage, 3, s);
  say("too little storage", s, 0);
  TF_OpKernelConstruction_GetAttrInt64List(ctx, "i", wide, 4, s);
  say("no list", s, 0);
}

static void* attributes_create(TF_OpKernelConstruction* ctx) {
  static int is_told;
  TF_Status* s = TF_NewStatus();
  if (!is_told++) {
    printf("instance of %s\n", text_of(TF_OpKernelConstruction_GetName(ctx)));
    const char* names[] = {"T", "i", "s", "shape", "types", "is", "ss", "bs", "nothing"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); ++i) print_sizes(ctx, names[i], s);
    ask_single(ctx, s);
    ask_lists(ctx, s);
  }
  TF_DeleteStatus(s);
  return NULL;
}

static void pass_on(void* kernel, TF_OpKernelContext* ctx) {
  TF_Status* s = TF_NewStatus();
  TF_Tensor* x = NULL;
  printf("instance %s\n", kernel ? "made" : "NULL");
  TF_GetInput(ctx, 0, &x, s);
  OK(s);
  TF_SetOutput(ctx, 0, x, s);
  OK(s);
  TF_DeleteTensor(x);
  TF_DeleteStatus(s);
}

static TF_Tensor* run_one(TF_Graph* g, TF_Status* s, TF_Output from, TF_Output in, TF_Tensor* fed) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(g, options, s);
  OK(s);
  TF_Tensor* result = NULL;
  TF_SessionRun(session, NULL, &in, &fed, fed ? 1 : 0, &from, &result, 1, NULL, 0, NULL, s);
  TF_Status* ignored = TF_NewStatus();
  TF_DeleteSession(session, ignored);
  TF_DeleteStatus(ignored);
  TF_DeleteSessionOptions(options);
  return TF_GetCode(s) == TF_OK ? result : NULL;
}

static void attributes(TF_Status* s) {
  TF_OpDefinitionBuilder* def = TF_NewOpDefinitionBuilder("WeirTestAttributes");
  const char* specs[] = {"T: type",
                         "i: int = 5000000000",
                         "f: float = 1.5",
                         "b: bool = true",
                         "s: string = 'abc'",
                         "shape: shape = {dim: {size: 2} dim: {size: 3}}",
                         "value: tensor = {dtype: DT_FLOAT tensor_shape: {} float_val: 4}",
                         "types: list(type) = [DT_INT32, DT_BOOL]",
                         "is: list(int) = [3, 1, 2]",
                         "fs: list(float) = [0.5, 0.25]",
                         "bs: list(bool) = [true, false]",
                         "ss: list(string) = ['one', 'three']"};
  for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); ++i)
    TF_OpDefinitionBuilderAddAttr(def, specs[i]);
  TF_OpDefinitionBuilderAddInput(def, "x: T");
  TF_OpDefinitionBuilderAddOutput(def, "y: T");
  TF_OpDefinitionBuilderSetIsStateful(def, true);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(def, any_shape);
  define("define Attributes", def, s);
  provide("kernel of Attributes",
          TF_NewKernelBuilder("WeirTestAttributes", "CPU", attributes_create, pass_on, NULL), s);
  TF_Graph* g = TF_NewGraph();
  TF_Operation* x = placeholder(g, s, "x", TF_FLOAT);
  TF_Operation* op = unary(g, s, "WeirTestAttributes", "asked", out(x, 0));
  OK(s);
  TF_Tensor* fed = float_scalar(7);
  TF_Tensor* y = run_one(g, s, out(op, 0), out(x, 0), fed);
  OK(s);
  print_floats("passed on", y);
  TF_DeleteTensor(y);
  TF_DeleteTensor(fed);
  TF_DeleteGraph(g);
}

// ---- Join: a list of strings, a range of inputs ----

static void join_compute(void* kernel, TF_OpKernelContext* ctx) {
  (void)kernel;
  TF_Status* s = TF_NewStatus();
  TF_InputRange_Args range = {TF_InputRange_Args_STRUCT_SIZE, NULL, 0, 0, s};
  char text[64] = "";
  TF_InputRange(ctx, "parts", &range);
  say("range", s, 0);
  printf("inputs %d outputs %d parts [%d, %d)\n", TF_NumInputs(ctx), TF_NumOutputs(ctx),
         range.start, range.stop);
  for (int i = range.start; i < range.stop; ++i) {
    TF_Tensor* part = NULL;
    TF_GetInput(ctx, i, &part, s);
    OK(s);
    const TF_TString* string = (const TF_TString*)TF_TensorData(part);
    strncat(text, TF_StringGetDataPointer(string), TF_StringGetSize(string));
    TF_DeleteTensor(part);
  }
  TF_Tensor* joined = TF_AllocateOutput(ctx, 0, TF_STRING, NULL, 0, sizeof(TF_TString), s);
  OK(s);
  TF_StringCopy((TF_TString*)TF_TensorData(joined), text, strlen(text));
  TF_DeleteTensor(joined);
  printf("in host memory: %d %d %d\n", TF_IsHostMemoryInput(ctx, 0, s),
         TF_IsHostMemoryInput(ctx, 1, s), TF_IsHostMemoryOutput(ctx, 0, s));
  TF_Tensor* none = NULL;
  TF_GetInput(ctx, 9, &none, s);
  say("no such input", s, 0);
  TF_SetOutput(ctx, 9, none, s);
  say("no such output", s, 0);
  TF_DeleteStatus(s);
}

static TF_Output text_constant(TF_Graph* g, TF_Status* s, const char* name, const char* text) {
  TF_Tensor* tensor = TF_AllocateTensor(TF_STRING, NULL, 0, sizeof(TF_TString));
  TF_StringInit((TF_TString*)TF_TensorData(tensor));
  TF_StringCopy((TF_TString*)TF_TensorData(tensor), text, strlen(text));
  return out(constant(g, s, name, tensor), 0);
}

static void strings(TF_Status* s) {
  TF_OpDefinitionBuilder* def = TF_NewOpDefinitionBuilder("WeirTestJoin");
  TF_OpDefinitionBuilderAddAttr(def, "N: int");
  TF_OpDefinitionBuilderAddInput(def, "count: int32");
  TF_OpDefinitionBuilderAddInput(def, "parts: N * string");
  TF_OpDefinitionBuilderAddOutput(def, "joined: string");
  TF_OpDefinitionBuilderSetIsStateful(def, true);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(def, any_shape);
  define("define Join", def, s);
  TF_KernelBuilder* kernel = TF_NewKernelBuilder("WeirTestJoin", "CPU", NULL, join_compute, NULL);
  TF_KernelBuilder_HostMemory(kernel, "count");
  provide("kernel of Join", kernel, s);
  TF_Graph* g = TF_NewGraph();
  TF_Operation* count = constant(g, s, "count", int_scalar(2));
  const TF_Output parts[] = {text_constant(g, s, "a", "one text and "),
                             text_constant(g, s, "b", "another that is long")};
  TF_OperationDescription* desc = TF_NewOperation(g, "WeirTestJoin", "join");
  TF_AddInput(desc, out(count, 0));
  TF_AddInputList(desc, parts, 2);
  TF_Operation* join = TF_FinishOperation(desc, s);
  OK(s);
  TF_Tensor* y = run_one(g, s, out(join, 0), out(join, 0), NULL);
  OK(s);
  const TF_TString* joined = (const TF_TString*)TF_TensorData(y);
  printf("joined: %.*s\n", (int)TF_StringGetSize(joined), TF_StringGetDataPointer(joined));
  TF_DeleteTensor(y);
  TF_DeleteGraph(g);
}

// ---- Later: a kernel that ends on a thread of its own. It waits for that, as the callback that
// TensorFlow gives is gone when the function returns; ours/later.c does not ----

typedef struct later_t {
  TF_OpKernelContext* ctx;
  TF_AsyncOpKernelDoneCallback* done;
} later_t;

static void* work(void* arg) {
  later_t later = *(later_t*)arg;
  free(arg);
  TF_Status* s = TF_NewStatus();
  TF_Tensor* x = NULL;
  TF_GetInput(later.ctx, 0, &x, s);
  TF_AllocatorAttributes on_host = {TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE, 1};
  TF_Tensor* scratch = TF_AllocateTemp(later.ctx, TF_FLOAT, NULL, 0, &on_host, s);
  float* value = (float*)TF_TensorData(scratch);
  *value = *(const float*)TF_TensorData(x) + 1;
  TF_SetOutput(later.ctx, 0, scratch, s);
  if (*value < 0) {
    TF_SetStatus(s, TF_ABORTED, "less than nothing");
    TF_OpKernelContext_Failure(later.ctx, s);
  }
  TF_DeleteTensor(scratch);
  TF_DeleteTensor(x);
  TF_DeleteStatus(s);
  TF_RunAsyncOpKernelDoneCallback(later.done);
  return NULL;
}

static void later_compute(void* kernel, TF_OpKernelContext* ctx,
                          TF_AsyncOpKernelDoneCallback* done) {
  (void)kernel;
  later_t* later = (later_t*)malloc(sizeof(*later));
  later->ctx = ctx;
  later->done = done;
  pthread_t thread;
  pthread_create(&thread, NULL, work, later);
  pthread_join(thread, NULL);
}

static void asynchronous(TF_Status* s) {
  // The kernel comes first: who registers what when is up to libraries.
  provide("kernel of Later",
          TF_NewAsyncKernelBuilder("WeirTestLater", "CPU", NULL, later_compute, NULL), s);
  TF_OpDefinitionBuilder* def = TF_NewOpDefinitionBuilder("WeirTestLater");
  TF_OpDefinitionBuilderAddInput(def, "x: float");
  TF_OpDefinitionBuilderAddOutput(def, "y: float");
  TF_OpDefinitionBuilderSetIsStateful(def, true);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(def, any_shape);
  define("define Later", def, s);
  TF_Graph* g = TF_NewGraph();
  TF_Operation* x = placeholder(g, s, "x", TF_FLOAT);
  TF_Operation* op = unary(g, s, "WeirTestLater", "later", out(x, 0));
  OK(s);
  const float values[] = {41, -3};
  for (int i = 0; i < 2; ++i) {
    TF_Tensor* fed = float_scalar(values[i]);
    TF_Tensor* y = run_one(g, s, out(op, 0), out(x, 0), fed);
    say("later", s, 0);
    if (y) print_floats("later", y);
    else printf("its text: %d\n", strstr(TF_Message(s), "less than nothing") != NULL);
    TF_DeleteTensor(y);
    TF_DeleteTensor(fed);
  }
  TF_DeleteGraph(g);
}

// ---- Which: kernels chosen by priority and label; kernels that do not do what they should ----

static void give(TF_OpKernelContext* ctx, int32_t value) {
  TF_Status* s = TF_NewStatus();
  TF_Tensor* y = TF_AllocateOutput(ctx, 0, TF_INT32, NULL, 0, sizeof(value), s);
  *(int32_t*)TF_TensorData(y) = value;
  TF_DeleteTensor(y);
  TF_DeleteStatus(s);
}
static void give_1(void* kernel, TF_OpKernelContext* ctx) {
  (void)kernel;
  give(ctx, 1);
}
static void give_2(void* kernel, TF_OpKernelContext* ctx) {
  (void)kernel;
  give(ctx, 2);
}
static void give_3(void* kernel, TF_OpKernelContext* ctx) {
  (void)kernel;
  TF_Status* s = TF_NewStatus();
  printf("%s on ", text_of(TF_GetOpKernelName(ctx)));
  printf("%s, ", strstr(text_of(TF_GetDeviceName(ctx)), "/device:CPU:0") ? "CPU:0" : "another");
  printf("device %d, type %d, ", TF_GetDeviceId(ctx), TF_ExpectedOutputDataType(ctx, 0));
  printf("container %s\n", text_of(TF_GetResourceMgrDefaultContainerName(ctx)));
  printf("frame %d iteration %d same step %d\n", (int)TF_GetFrameId(ctx), (int)TF_GetIterId(ctx),
         TF_StepId(ctx) == TF_GetStepId(ctx));
  printf("stream %d", TF_GetStream(ctx, s) != NULL);
  say("", s, 0);
  give(ctx, 3);
  TF_Tensor* y = TF_GetMutableOutput(ctx, 0, s);
  printf("output: %d\n", *(const int32_t*)TF_TensorData(y));
  TF_DeleteTensor(y);
  TF_DeleteStatus(s);
}
static void give_nothing(void* kernel, TF_OpKernelContext* ctx) {
  (void)kernel;
  (void)ctx;
}

static void run_which(TF_Status* s, const char* label) {
  TF_Graph* g = TF_NewGraph();
  TF_OperationDescription* desc = TF_NewOperation(g, "WeirTestWhich", "which");
  if (label) TF_SetAttrString(desc, "_kernel", label, strlen(label));
  TF_Operation* op = TF_FinishOperation(desc, s);
  OK(s);
  TF_Tensor* y = run_one(g, s, out(op, 0), out(op, 0), NULL);
  say(label ? label : "no label", s, 0);
  if (y) printf("which %d\n", *(const int32_t*)TF_TensorData(y));
  TF_DeleteTensor(y);
  TF_DeleteGraph(g);
}

static void choices(TF_Status* s) {
  TF_OpDefinitionBuilder* def = TF_NewOpDefinitionBuilder("WeirTestWhich");
  TF_OpDefinitionBuilderAddOutput(def, "y: int32");
  TF_OpDefinitionBuilderSetIsStateful(def, true);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(def, any_shape);
  define("define Which", def, s);
  run_which(s, NULL);
  TF_KernelBuilder* kernel = TF_NewKernelBuilder("WeirTestWhich", "CPU", NULL, give_1, NULL);
  provide("the first", kernel, s);
  run_which(s, NULL);
  kernel = TF_NewKernelBuilder("WeirTestWhich", "CPU", NULL, give_2, NULL);
  TF_KernelBuilder_Priority(kernel, 1);
  provide("one before it", kernel, s);
  kernel = TF_NewKernelBuilder("WeirTestWhich", "CPU", NULL, give_3, NULL);
  TF_KernelBuilder_Label(kernel, "special");
  provide("one with a label", kernel, s);
  kernel = TF_NewKernelBuilder("WeirTestWhich", "CPU", NULL, give_nothing, NULL);
  TF_KernelBuilder_Label(kernel, "lazy");
  provide("one that does nothing", kernel, s);
  kernel = TF_NewKernelBuilder("WeirTestWhich", "NoDevice", NULL, give_1, NULL);
  provide("one for another device", kernel, s);
  TF_Buffer* kernels = TF_GetRegisteredKernelsForOp("WeirTestScale", s);
  say("kernels of Scale", s, 0);
  printf("%d bytes\n", (int)kernels->length);
  TF_DeleteBuffer(kernels);
  run_which(s, NULL);
  run_which(s, "special");
  run_which(s, "lazy");
  run_which(s, "none has this");
}

// ---- Scale in a session and eagerly ----

static void graph_scale(TF_Status* s, TF_DataType type, const char* name, float factor) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation* x = placeholder(g, s, "x", type);
  const int64_t dims[] = {2};
  TF_GraphSetTensorShape(g, out(x, 0), dims, 1, s);
  TF_OperationDescription* desc = TF_NewOperation(g, "WeirTestScale", name);
  TF_AddInput(desc, out(x, 0));
  if (factor != 2) TF_SetAttrFloat(desc, "factor", factor);
  TF_Operation* op = TF_FinishOperation(desc, s);
  OK(s);
  printf("rank %d\n", TF_GraphGetTensorNumDims(g, out(op, 0), s));
  const float values[] = {1.5f, -2};
  const int32_t integers[] = {1, 2};
  TF_Tensor* fed = type == TF_FLOAT ? tensor_of(type, dims, 1, values, sizeof(values))
                                    : tensor_of(type, dims, 1, integers, sizeof(integers));
  TF_Tensor* y = run_one(g, s, out(op, 0), out(x, 0), fed);
  say(name, s, 0);
  if (y) print_floats(name, y);
  TF_DeleteTensor(y);
  TF_DeleteTensor(fed);
  TF_DeleteGraph(g);
}

static void eager_scale(TF_Status* s) {
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TFE_Context* ctx = TFE_NewContext(options, s);
  OK(s);
  TFE_DeleteContextOptions(options);
  TF_Tensor* value = float_scalar(3);
  TFE_TensorHandle* x = TFE_NewTensorHandle(value, s);
  TF_DeleteTensor(value);
  TFE_Op* op = TFE_NewOp(ctx, "WeirTestScale", s);
  OK(s);
  TFE_OpAddInput(op, x, s);
  TFE_OpSetAttrFloat(op, "factor", 4);
  TFE_TensorHandle* y = NULL;
  int count = 1;
  TFE_Execute(op, &y, &count, s);
  say("eager", s, 0);
  TF_Tensor* result = TFE_TensorHandleResolve(y, s);
  OK(s);
  print_floats("eager", result);
  TF_DeleteTensor(result);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(y);
  TFE_DeleteOp(op);
  TFE_DeleteContext(ctx);
}

int main(void) {
  TF_Status* s = TF_NewStatus();
  register_scale(s);
  graph_scale(s, TF_FLOAT, "scaled", 2);
  graph_scale(s, TF_FLOAT, "by_ten", 10);
  graph_scale(s, TF_FLOAT, "by_zero", 0);
  graph_scale(s, TF_INT32, "no_kernel", 2);
  eager_scale(s);
  shapes(s);
  attributes(s);
  strings(s);
  asynchronous(s);
  choices(s);
  printf("instances left: %d\n", made);
  TF_DeleteStatus(s);
  return 0;
}
