// cudnn.c — cuDNN's graph interface, as far as a single convolution needs it.
//
// A convolution is a graph of one operation. cuDNN proposes configurations of engines for it, best
// first as it thinks; the first few that work are run, and the fastest is kept for this shape.
#include "kernel/conv/cudnn.h"

#include <string.h>

#include "base/map.h"

// ---- the library: names, numbers and signatures are its stable interface ----

typedef void* dnn_t;  // a descriptor
typedef void* dnn_handle_t;

enum {
  // Kinds of descriptors.
  DNN_CONVOLUTION = 1,
  DNN_ENGINE = 2,
  DNN_CONFIG = 3,
  DNN_HEURISTIC = 4,
  DNN_PLAN = 5,
  DNN_FORWARD = 10,
  DNN_BY_FILTER = 11,
  DNN_BY_INPUT = 12,
  DNN_GRAPH = 15,
  DNN_PACK = 16,
  DNN_TENSOR = 17,
  // Types of attributes.
  DNN_TYPE_HANDLE = 0,
  DNN_TYPE_DATA_TYPE = 1,
  DNN_TYPE_INT64 = 3,
  DNN_TYPE_FLOAT = 4,
  DNN_TYPE_DOUBLE = 5,
  DNN_TYPE_POINTER = 6,
  DNN_TYPE_MODE = 7,
  DNN_TYPE_HEURISTIC = 8,
  DNN_TYPE_NUMERICAL_NOTE = 11,
  DNN_TYPE_DESCRIPTOR = 15,
  DNN_TYPE_BEHAVIOR_NOTE = 19,
  // Attributes.
  DNN_CONVOLUTION_TYPE = 100,
  DNN_CONVOLUTION_MODE = 101,
  DNN_CONVOLUTION_DILATIONS = 102,
  DNN_CONVOLUTION_STRIDES = 103,
  DNN_CONVOLUTION_PADS_AFTER = 104,
  DNN_CONVOLUTION_PADS_BEFORE = 105,
  DNN_CONVOLUTION_AXES = 106,
  DNN_HEURISTIC_MODE = 200,
  DNN_HEURISTIC_GRAPH = 201,
  DNN_HEURISTIC_RESULTS = 202,
  DNN_CONFIG_ENGINE = 300,
  DNN_PLAN_HANDLE = 400,
  DNN_PLAN_CONFIG = 401,
  DNN_PLAN_WORKSPACE = 402,
  DNN_FORWARD_FIRST = 700,    // alpha, beta, convolution, w, x, y
  DNN_BY_INPUT_FIRST = 706,   // alpha, beta, convolution, w, dx, dy
  DNN_BY_FILTER_FIRST = 712,  // alpha, beta, convolution, dw, x, dy
  DNN_GRAPH_HANDLE = 800,
  DNN_GRAPH_OPERATIONS = 801,
  DNN_TENSOR_ALIGNMENT = 900,
  DNN_TENSOR_TYPE = 901,
  DNN_TENSOR_DIMS = 902,
  DNN_TENSOR_STRIDES = 903,
  DNN_TENSOR_ID = 906,
  DNN_PACK_IDS = 1000,
  DNN_PACK_POINTERS = 1001,
  DNN_PACK_WORKSPACE = 1003,
  DNN_ENGINE_NUMERICAL_NOTE = 1303,
  DNN_ENGINE_BEHAVIOR_NOTE = 1305,
  // Values.
  DNN_CROSS_CORRELATION = 1,
  DNN_HEURISTIC_FALLBACK = 2,
  DNN_HEURISTIC_A = 3,
  DNN_NOTE_TENSOR_CORE = 0,
  DNN_NOTE_DOWN_CONVERT = 1,
  DNN_NOTE_COMPILES = 0,
};

#define DNN_FUNCTIONS(FUNCTION)                                                                    \
  FUNCTION(create, cudnnCreate, (dnn_handle_t * out_handle))                                       \
  FUNCTION(destroy, cudnnDestroy, (dnn_handle_t handle))                                           \
  FUNCTION(set_stream, cudnnSetStream, (dnn_handle_t handle, cu_stream_t stream))                  \
  FUNCTION(make, cudnnBackendCreateDescriptor, (int kind, dnn_t* out_descriptor))                  \
  FUNCTION(drop, cudnnBackendDestroyDescriptor, (dnn_t descriptor))                                \
  FUNCTION(finish, cudnnBackendFinalize, (dnn_t descriptor))                                       \
  FUNCTION(set, cudnnBackendSetAttribute,                                                          \
           (dnn_t descriptor, int name, int type, int64_t count, const void* values))              \
  FUNCTION(get, cudnnBackendGetAttribute,                                                          \
           (dnn_t descriptor, int name, int type, int64_t most, int64_t* out_count, void* values)) \
  FUNCTION(execute, cudnnBackendExecute, (dnn_handle_t handle, dnn_t plan, dnn_t pack))

typedef struct dnn_functions_t {
#define DNN_FIELD(name, symbol, arguments) int(*name) arguments;
  DNN_FUNCTIONS(DNN_FIELD)
#undef DNN_FIELD
} dnn_functions_t;

// ---- what a device keeps ----

typedef struct plan_t {
  dnn_t plan;
  int64_t workspace_size;
} plan_t;

typedef struct cudnn_t {
  dnn_functions_t call;
  dnn_handle_t handle;
  weir_device_t* device;  // borrowed: the one it is attached to
  weir_mutex_t mu;        // the handle is one thread's at a time; guards all below
  weir_map_t plans;       // by convolution
} cudnn_t;

static weir_status_t* check(int result, const char* doing) {
  return result == 0 ? NULL : WEIR_STATUS(INTERNAL, "cuDNN: %s: error %d", doing, result);
}

static void drop(const cudnn_t* dnn, dnn_t descriptor) {
  if (descriptor) dnn->call.drop(descriptor);
}

static void plan_free(const cudnn_t* dnn, plan_t* plan) {
  drop(dnn, plan->plan);
  weir_free(plan);
}

static void cudnn_destroy(void* object) {
  cudnn_t* dnn = object;
  weir_map_entry_t* entry = NULL;
  for (size_t i = 0; (entry = weir_map_next(&dnn->plans, &i));) plan_free(dnn, entry->value);
  weir_map_free(&dnn->plans);
  if (dnn->handle) dnn->call.destroy(dnn->handle);
  weir_mutex_destroy(&dnn->mu);
  weir_free(dnn);
}

static weir_status_t* cudnn_create(weir_device_t* device, void** out_object) {
  static const char* const sonames[] = {"libcudnn.so.9", NULL};
#define DNN_SYMBOL(name, symbol, arguments) #symbol,
  static const char* const symbols[] = {DNN_FUNCTIONS(DNN_SYMBOL)};
#undef DNN_SYMBOL
  cudnn_t* dnn = weir_calloc(1, sizeof(*dnn));
  if (!dnn) return weir_out_of_memory();
  weir_mutex_init(&dnn->mu);
  dnn->device = device;
  dnn->plans.owns_keys = true;
  weir_status_t* status = weir_cuda_open(sonames, symbols, WEIR_COUNT_OF(symbols), &dnn->call);
  if (!status) status = check(dnn->call.create(&dnn->handle), "starting");
  if (!status)
    status = check(dnn->call.set_stream(dnn->handle, weir_cuda_stream(device)), "starting");
  if (status) cudnn_destroy(dnn);
  else *out_object = dnn;
  return status;
}

// ---- descriptions ----

enum { X_ID = 1, W_ID = 2, Y_ID = 3, MOST_DIMS = 5 };

static int type_of(weir_dtype_t dtype) {
  return dtype == WEIR_DTYPE_DOUBLE     ? 1
         : dtype == WEIR_DTYPE_HALF     ? 2
         : dtype == WEIR_DTYPE_BFLOAT16 ? 9
                                        : 0;
}

// Axes of an image are two; a volume has all three.
static int first_axis(const weir_conv_t* conv) {
  return conv->in[0] == 1 && conv->filter[0] == 1 && conv->out[0] == 1 ? 1 : 0;
}

// Of a tensor [outer, inner, sizes…], whose memory has |inner| before or after the sizes.
static weir_status_t* describe_tensor(const cudnn_t* dnn, const weir_cudnn_conv_t* c, int64_t id,
                                      int64_t outer, int64_t inner, const int64_t* sizes,
                                      dnn_t* out_tensor) {
  int64_t dims[MOST_DIMS] = {outer, inner}, strides[MOST_DIMS], alignment = 16;
  int first = first_axis(&c->conv), axes = 3 - first, type = type_of(c->dtype);
  for (int i = 0; i < axes; ++i) dims[2 + i] = sizes[first + i];
  int64_t stride = c->is_nchw ? 1 : inner;
  for (int i = axes; i-- > 0; stride *= dims[2 + i]) strides[2 + i] = stride;
  strides[1] = c->is_nchw ? stride : 1;
  strides[0] = c->is_nchw ? stride * inner : stride;
  const dnn_functions_t* call = &dnn->call;
  int result = call->make(DNN_TENSOR, out_tensor);
  if (!result) result = call->set(*out_tensor, DNN_TENSOR_TYPE, DNN_TYPE_DATA_TYPE, 1, &type);
  if (!result) result = call->set(*out_tensor, DNN_TENSOR_DIMS, DNN_TYPE_INT64, 2 + axes, dims);
  if (!result)
    result = call->set(*out_tensor, DNN_TENSOR_STRIDES, DNN_TYPE_INT64, 2 + axes, strides);
  if (!result) result = call->set(*out_tensor, DNN_TENSOR_ID, DNN_TYPE_INT64, 1, &id);
  if (!result) result = call->set(*out_tensor, DNN_TENSOR_ALIGNMENT, DNN_TYPE_INT64, 1, &alignment);
  if (!result) result = call->finish(*out_tensor);
  return check(result, "describing a tensor");
}

static weir_status_t* describe_convolution(const cudnn_t* dnn, const weir_cudnn_conv_t* c,
                                           dnn_t* out_convolution) {
  const weir_conv_t* v = &c->conv;
  const dnn_functions_t* call = &dnn->call;
  int first = first_axis(v), mode = DNN_CROSS_CORRELATION;
  int type = c->dtype == WEIR_DTYPE_DOUBLE ? 1 : 0;
  int64_t axes = 3 - first;
  int result = call->make(DNN_CONVOLUTION, out_convolution);
  dnn_t made = *out_convolution;
  if (!result) result = call->set(made, DNN_CONVOLUTION_TYPE, DNN_TYPE_DATA_TYPE, 1, &type);
  if (!result) result = call->set(made, DNN_CONVOLUTION_MODE, DNN_TYPE_MODE, 1, &mode);
  if (!result) result = call->set(made, DNN_CONVOLUTION_AXES, DNN_TYPE_INT64, 1, &axes);
  const struct {
    int name;
    const int64_t* values;
  } lists[] = {{DNN_CONVOLUTION_DILATIONS, v->dilation},
               {DNN_CONVOLUTION_STRIDES, v->stride},
               {DNN_CONVOLUTION_PADS_BEFORE, v->pad},
               {DNN_CONVOLUTION_PADS_AFTER, v->pad}};
  for (size_t i = 0; i < WEIR_COUNT_OF(lists) && !result; ++i)
    result = call->set(made, lists[i].name, DNN_TYPE_INT64, axes, lists[i].values + first);
  if (!result) result = call->finish(made);
  return check(result, "describing a convolution");
}

// What a graph is made of; all dropped together.
typedef struct parts_t {
  dnn_t x, w, y, convolution, operation, graph;
} parts_t;

static void parts_drop(const cudnn_t* dnn, const parts_t* parts) {
  drop(dnn, parts->graph);
  drop(dnn, parts->operation);
  drop(dnn, parts->convolution);
  drop(dnn, parts->y);
  drop(dnn, parts->w);
  drop(dnn, parts->x);
}

static weir_status_t* describe_operation(const cudnn_t* dnn, const weir_cudnn_conv_t* c,
                                         parts_t* parts) {
  static const int kinds[] = {DNN_FORWARD, DNN_BY_INPUT, DNN_BY_FILTER};
  static const int firsts[] = {DNN_FORWARD_FIRST, DNN_BY_INPUT_FIRST, DNN_BY_FILTER_FIRST};
  const dnn_functions_t* call = &dnn->call;
  bool is_double = c->dtype == WEIR_DTYPE_DOUBLE;
  int first = firsts[c->kind], scale_type = is_double ? DNN_TYPE_DOUBLE : DNN_TYPE_FLOAT;
  double one = 1, zero = 0;
  float one_float = 1, zero_float = 0;
  const void* alpha = is_double ? (const void*)&one : &one_float;
  const void* beta = is_double ? (const void*)&zero : &zero_float;
  int result = call->make(kinds[c->kind], &parts->operation);
  dnn_t made = parts->operation;
  if (!result) result = call->set(made, first, scale_type, 1, alpha);
  if (!result) result = call->set(made, first + 1, scale_type, 1, beta);
  const dnn_t tensors[] = {parts->convolution, parts->w, parts->x, parts->y};
  for (int i = 0; i < 4 && !result; ++i)
    result = call->set(made, first + 2 + i, DNN_TYPE_DESCRIPTOR, 1, &tensors[i]);
  if (!result) result = call->finish(made);
  return check(result, "describing an operation");
}

static weir_status_t* describe(const cudnn_t* dnn, const weir_cudnn_conv_t* c, parts_t* parts) {
  const weir_conv_t* v = &c->conv;
  const dnn_functions_t* call = &dnn->call;
  WEIR_TRY(describe_tensor(dnn, c, X_ID, v->batch, v->in_c, v->in, &parts->x));
  WEIR_TRY(describe_tensor(dnn, c, W_ID, v->out_c, v->group_in, v->filter, &parts->w));
  WEIR_TRY(describe_tensor(dnn, c, Y_ID, v->batch, v->out_c, v->out, &parts->y));
  WEIR_TRY(describe_convolution(dnn, c, &parts->convolution));
  WEIR_TRY(describe_operation(dnn, c, parts));
  int result = call->make(DNN_GRAPH, &parts->graph);
  dnn_t made = parts->graph;
  if (!result)
    result = call->set(made, DNN_GRAPH_OPERATIONS, DNN_TYPE_DESCRIPTOR, 1, &parts->operation);
  if (!result) result = call->set(made, DNN_GRAPH_HANDLE, DNN_TYPE_HANDLE, 1, &dnn->handle);
  if (!result) result = call->finish(made);
  return check(result, "describing a graph");
}

// ---- running ----

static weir_status_t* execute(const cudnn_t* dnn, const weir_cudnn_conv_t* c, const plan_t* plan,
                              const void* a, const void* b, void* out) {
  // x, w and y, of which the kind says which are given.
  const void* pointers[] = {c->kind == WEIR_CONV_BY_INPUT ? out : a,
                            c->kind == WEIR_CONV_BY_FILTER ? out
                            : c->kind == WEIR_CONV_FORWARD ? b
                                                           : a,
                            c->kind == WEIR_CONV_FORWARD ? out : b};
  const int64_t ids[] = {X_ID, W_ID, Y_ID};
  weir_tensor_t* workspace = NULL;
  void* memory = NULL;
  if (plan->workspace_size > 0) {
    WEIR_TRY(weir_tensor_create_in(weir_device_allocator(dnn->device, WEIR_MEMORY_DEVICE),
                                   WEIR_DTYPE_UINT8, 1, &plan->workspace_size, &workspace));
    memory = workspace->data;
  }
  dnn_t pack = NULL;
  const dnn_functions_t* call = &dnn->call;
  int result = call->make(DNN_PACK, &pack);
  if (!result) result = call->set(pack, DNN_PACK_POINTERS, DNN_TYPE_POINTER, 3, pointers);
  if (!result) result = call->set(pack, DNN_PACK_IDS, DNN_TYPE_INT64, 3, ids);
  if (!result) result = call->set(pack, DNN_PACK_WORKSPACE, DNN_TYPE_POINTER, 1, &memory);
  if (!result) result = call->finish(pack);
  if (!result) result = call->execute(dnn->handle, plan->plan, pack);
  drop(dnn, pack);
  weir_tensor_release(workspace);  // whoever gets it comes after, in the order of the stream
  return check(result, "running a convolution");
}

// ---- choosing ----

// Whether an engine compiles kernels first, which takes long, or rounds floats to TF32 where that
// is not allowed.
static bool is_unwanted(const cudnn_t* dnn, const weir_cudnn_conv_t* c, dnn_t config) {
  enum { MOST = 16 };
  int notes[MOST];
  int64_t count = 0, unused = 0;
  dnn_t engine = NULL;
  const dnn_functions_t* call = &dnn->call;
  bool is_ieee = c->dtype == WEIR_DTYPE_FLOAT && !weir_cuda_allows_tf32(dnn->device);
  bool is_bad = call->make(DNN_ENGINE, &engine) != 0 ||
                call->get(config, DNN_CONFIG_ENGINE, DNN_TYPE_DESCRIPTOR, 1, &unused, &engine) != 0;
  if (!is_bad && call->get(engine, DNN_ENGINE_BEHAVIOR_NOTE, DNN_TYPE_BEHAVIOR_NOTE, MOST, &count,
                           notes) == 0) {
    for (int64_t i = 0; i < count; ++i) is_bad |= notes[i] == DNN_NOTE_COMPILES;
  }
  if (!is_bad && is_ieee &&
      call->get(engine, DNN_ENGINE_NUMERICAL_NOTE, DNN_TYPE_NUMERICAL_NOTE, MOST, &count, notes) ==
          0) {
    for (int64_t i = 0; i < count; ++i)
      is_bad |= notes[i] == DNN_NOTE_TENSOR_CORE || notes[i] == DNN_NOTE_DOWN_CONVERT;
  }
  drop(dnn, engine);
  return is_bad;
}

static bool make_plan(const cudnn_t* dnn, dnn_t config, plan_t* out_plan) {
  static const int64_t kMost = (int64_t)1 << 30;  // bytes of workspace
  const dnn_functions_t* call = &dnn->call;
  int64_t count = 0;
  *out_plan = (plan_t){.plan = NULL};
  int result = call->make(DNN_PLAN, &out_plan->plan);
  dnn_t plan = out_plan->plan;
  if (!result) result = call->set(plan, DNN_PLAN_HANDLE, DNN_TYPE_HANDLE, 1, &dnn->handle);
  if (!result) result = call->set(plan, DNN_PLAN_CONFIG, DNN_TYPE_DESCRIPTOR, 1, &config);
  if (!result) result = call->finish(plan);
  if (!result)
    result =
        call->get(plan, DNN_PLAN_WORKSPACE, DNN_TYPE_INT64, 1, &count, &out_plan->workspace_size);
  if (!result && out_plan->workspace_size <= kMost) return true;
  drop(dnn, plan);
  out_plan->plan = NULL;
  return false;
}

// How long it takes, the better of two after one to warm up; INT64_MAX: it does not work.
static int64_t measure(const cudnn_t* dnn, const weir_cudnn_conv_t* c, const plan_t* plan,
                       const void* a, const void* b, void* out) {
  enum { TIMES = 3 };
  int64_t best = INT64_MAX;
  for (int i = 0; i < TIMES; ++i) {
    weir_status_t* status = weir_cuda_synchronize(dnn->device);
    int64_t start = weir_clock_ns();
    if (!status) status = execute(dnn, c, plan, a, b, out);
    if (!status) status = weir_cuda_synchronize(dnn->device);
    if (status) {
      weir_status_destroy(status);
      return INT64_MAX;
    }
    if (i > 0) best = WEIR_MIN(best, weir_clock_ns() - start);
  }
  return best;
}

enum { MOST_CONFIGS = 12 };

static int64_t propose(const cudnn_t* dnn, dnn_t graph, int mode, dnn_t* configs) {
  const dnn_functions_t* call = &dnn->call;
  dnn_t heuristic = NULL;
  int64_t count = 0;
  int result = call->make(DNN_HEURISTIC, &heuristic);
  if (!result) result = call->set(heuristic, DNN_HEURISTIC_GRAPH, DNN_TYPE_DESCRIPTOR, 1, &graph);
  if (!result) result = call->set(heuristic, DNN_HEURISTIC_MODE, DNN_TYPE_HEURISTIC, 1, &mode);
  if (!result) result = call->finish(heuristic);
  for (int i = 0; i < MOST_CONFIGS && !result; ++i) result = call->make(DNN_CONFIG, &configs[i]);
  if (!result)
    result = call->get(heuristic, DNN_HEURISTIC_RESULTS, DNN_TYPE_DESCRIPTOR, MOST_CONFIGS, &count,
                       configs);
  drop(dnn, heuristic);
  return result ? 0 : WEIR_MIN(count, MOST_CONFIGS);
}

// The fastest of what cuDNN proposes in |mode|; none where nothing of it works.
static void choose(const cudnn_t* dnn, const weir_cudnn_conv_t* c, dnn_t graph, int mode,
                   const void* a, const void* b, void* out, plan_t* best) {
  dnn_t configs[MOST_CONFIGS] = {NULL};
  int64_t best_ns = INT64_MAX;
  int64_t count = propose(dnn, graph, mode, configs);
  for (int64_t i = 0; i < count; ++i) {
    plan_t plan;
    if (is_unwanted(dnn, c, configs[i]) || !make_plan(dnn, configs[i], &plan)) continue;
    int64_t ns = measure(dnn, c, &plan, a, b, out);
    dnn_t worse = ns < best_ns ? best->plan : plan.plan;
    if (ns < best_ns) {
      *best = plan;
      best_ns = ns;
    }
    drop(dnn, worse);
  }
  for (int i = 0; i < MOST_CONFIGS; ++i) drop(dnn, configs[i]);
}

static weir_status_t* find_plan(cudnn_t* dnn, const weir_cudnn_conv_t* c, const void* a,
                                const void* b, void* out, plan_t** out_plan)
    WEIR_REQUIRES(dnn->mu) {
  weir_view_t key = weir_view((const char*)c, sizeof(*c));
  *out_plan = weir_map_find(&dnn->plans, key);
  if (*out_plan) return NULL;
  parts_t parts = {NULL};
  plan_t* plan = weir_calloc(1, sizeof(*plan));
  if (!plan) return weir_out_of_memory();
  weir_status_t* status = describe(dnn, c, &parts);
  if (!status) choose(dnn, c, parts.graph, DNN_HEURISTIC_A, a, b, out, plan);
  if (!status && !plan->plan) choose(dnn, c, parts.graph, DNN_HEURISTIC_FALLBACK, a, b, out, plan);
  if (!status && !plan->plan)
    status = WEIR_STATUS(UNIMPLEMENTED, "cuDNN has no engine for this convolution");
  if (!status) status = weir_map_put(&dnn->plans, key, plan);
  parts_drop(dnn, &parts);
  if (status) plan_free(dnn, plan);
  else *out_plan = plan;
  return status;
}

weir_status_t* weir_cudnn_run(weir_device_t* device, const weir_cudnn_conv_t* conv, const void* a,
                              const void* b, void* out) {
  static const char key;
  void* object = NULL;
  WEIR_TRY(weir_cuda_attachment(device, &key, cudnn_create, cudnn_destroy, &object));
  cudnn_t* dnn = object;
  plan_t* plan = NULL;
  weir_cuda_stream(device);  // the thread is the device's from here
  weir_mutex_lock(&dnn->mu);
  weir_status_t* status = find_plan(dnn, conv, a, b, out, &plan);
  if (!status) status = execute(dnn, conv, plan, a, b, out);
  weir_mutex_unlock(&dnn->mu);
  return status ? status : weir_cuda_launched(device);
}
