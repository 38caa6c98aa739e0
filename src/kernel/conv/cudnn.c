// cudnn.c — cuDNN's graph interface, as far as a single convolution needs it: a graph of one
// operation, and the plan that is chosen for it (cudnn_choose.c), kept by shape.
#include "kernel/conv/cudnn.h"

#include <stdio.h>
#include <string.h>

#include "kernel/conv/cudnn_internal.h"

// ---- what a device keeps ----

static weir_status_t* check(int result, const char* doing) {
  return result == 0 ? NULL : WEIR_STATUS(INTERNAL, "cuDNN: %s: error %d", doing, result);
}

// What a graph is made of; all dropped together.
typedef struct parts_t {
  dnn_t x, w, y, convolution, operation, graph;
} parts_t;

static void parts_drop(const cudnn_t* dnn, const parts_t* parts) {
  weir_cudnn_drop(dnn, parts->graph);
  weir_cudnn_drop(dnn, parts->operation);
  weir_cudnn_drop(dnn, parts->convolution);
  weir_cudnn_drop(dnn, parts->y);
  weir_cudnn_drop(dnn, parts->w);
  weir_cudnn_drop(dnn, parts->x);
}

// A convolution that ran: the plan that it runs with, and the search for a better one. The parts
// are there as long as the search is.
typedef struct known_t {
  plan_t plan;
  search_t* search;
  parts_t parts;
} known_t;

static void end_search(const cudnn_t* dnn, known_t* known) {
  weir_cudnn_search_free(dnn, known->search);
  parts_drop(dnn, &known->parts);
  known->search = NULL;
  known->parts = (parts_t){NULL};
}

static void known_free(const cudnn_t* dnn, known_t* known) {
  end_search(dnn, known);
  weir_cudnn_drop(dnn, known->plan.plan);
  weir_free(known);
}

static void cudnn_destroy(void* object) {
  cudnn_t* dnn = object;
  weir_map_entry_t* entry = NULL;
  for (size_t i = 0; (entry = weir_map_next(&dnn->plans, &i));) known_free(dnn, entry->value);
  weir_map_free(&dnn->plans);
  weir_map_free(&dnn->hopeless);
  if (dnn->handle) dnn->call.destroy(dnn->handle);
  weir_mutex_destroy(&dnn->mu);
  weir_free(dnn);
}

// The GPU's name and cuDNN's version.
static void identify(cudnn_t* dnn) {
  char name[128] = "";
  int version[3] = {0};
  const cuda_core_t* core = weir_cuda_core(dnn->device);
  core->driver->device_name(name, sizeof(name), core->device);
  for (int i = 0; i < 3; ++i) dnn->call.property(i, &version[i]);
  snprintf(dnn->identity, sizeof(dnn->identity), "%s, cuDNN %d.%d.%d", name, version[0], version[1],
           version[2]);
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
  dnn->hopeless.owns_keys = true;
  weir_status_t* status = weir_cuda_open(sonames, symbols, WEIR_COUNT_OF(symbols), &dnn->call);
  if (!status) status = check(dnn->call.create(&dnn->handle), "starting");
  if (!status)
    status = check(dnn->call.set_stream(dnn->handle, weir_cuda_stream(device)), "starting");
  if (!status) identify(dnn);
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

weir_status_t* weir_cudnn_execute(const cudnn_task_t* task, const plan_t* plan) {
  const cudnn_t* dnn = task->dnn;
  weir_conv_kind_t kind = task->conv->kind;
  // x, w and y, of which the kind says which are given.
  const void* pointers[] = {kind == WEIR_CONV_BY_INPUT ? task->out : task->a,
                            kind == WEIR_CONV_BY_FILTER ? task->out
                            : kind == WEIR_CONV_FORWARD ? task->b
                                                        : task->a,
                            kind == WEIR_CONV_FORWARD ? task->out : task->b};
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
  weir_cudnn_drop(dnn, pack);
  weir_tensor_release(workspace);  // whoever gets it comes after, in the order of the stream
  return check(result, "running a convolution");
}

static weir_status_t* find_known(cudnn_t* dnn, const cudnn_task_t* task, known_t** out_known)
    WEIR_REQUIRES(dnn->mu) {
  weir_view_t key = weir_view((const char*)task->conv, sizeof(*task->conv));
  *out_known = weir_map_find(&dnn->plans, key);
  if (*out_known) return NULL;
  known_t* known = weir_calloc(1, sizeof(*known));
  if (!known) return weir_out_of_memory();
  weir_status_t* status = describe(dnn, task->conv, &known->parts);
  if (!status)
    status = weir_cudnn_search_begin(task, known->parts.graph, &known->plan, &known->search);
  if (!status) status = weir_map_put(&dnn->plans, key, known);
  if (status) known_free(dnn, known);
  else *out_known = known;
  return status;
}

// The plan to run with this time. What fails, perhaps for want of memory, is tried anew the next
// time.
static weir_status_t* find_plan(cudnn_t* dnn, const cudnn_task_t* task, const plan_t** out_plan)
    WEIR_REQUIRES(dnn->mu) {
  known_t* known = NULL;
  weir_view_t key = weir_view((const char*)task->conv, sizeof(*task->conv));
  WEIR_TRY(find_known(dnn, task, &known));
  weir_status_t* status = NULL;
  if (known->search) status = weir_cudnn_search_on(task, &known->plan, &known->search);
  if (status) {
    weir_map_remove(&dnn->plans, key);
    known_free(dnn, known);
    return status;
  }
  if (!known->search) end_search(dnn, known);
  *out_plan = &known->plan;
  return NULL;
}

weir_status_t* weir_cudnn_run(weir_device_t* device, const weir_cudnn_conv_t* conv, const void* a,
                              const void* b, void* out) {
  static const char key;
  void* object = NULL;
  WEIR_TRY(weir_cuda_attachment(device, &key, cudnn_create, cudnn_destroy, &object));
  cudnn_t* dnn = object;
  cudnn_task_t task = {.dnn = dnn, .conv = conv, .a = a, .b = b, .out = out};
  const plan_t* plan = NULL;
  weir_cuda_stream(device);  // the thread is the device's from here
  weir_mutex_lock(&dnn->mu);
  weir_status_t* status = find_plan(dnn, &task, &plan);
  if (!status) status = weir_cudnn_execute(&task, plan);
  weir_mutex_unlock(&dnn->mu);
  return status ? status : weir_cuda_launched(device);
}
