// cudnn.c — What a device keeps of cuDNN: the library, and of each convolution that ran the plan
// that was chosen for it (cudnn_choose.c).
#include "kernel/conv/cudnn.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernel/conv/cudnn_internal.h"

static weir_status_t* check(int result, const char* doing) {
  return result == 0 ? NULL : WEIR_STATUS(INTERNAL, "cuDNN: %s: error %d", doing, result);
}

// A convolution that ran: the plan that it runs with, and the search for a better one.
typedef struct known_t {
  plan_t plan;
  search_t* search;
} known_t;

static void known_free(const cudnn_t* dnn, known_t* known) {
  weir_cudnn_search_free(dnn, known->search);
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
  dnn->clock_ns = weir_clock_ns;
  dnn->multiply = weir_cuda_gemm;
  const char* log = getenv("WEIR_CUDNN_LOG");
  dnn->is_told = log && *log && *log != '0';
  dnn->is_checked = log && *log == '2';
  dnn->plans.owns_keys = true;
  dnn->hopeless.owns_keys = true;
  weir_status_t* status = weir_cuda_open(sonames, symbols, WEIR_COUNT_OF(symbols), &dnn->call);
  if (!status) status = check(dnn->call.create(&dnn->handle), "starting");
  if (!status) identify(dnn);
  if (status) cudnn_destroy(dnn);
  else *out_object = dnn;
  return status;
}

// ---- running ----

// A thread that records launches in a stream of its own.
static weir_status_t* use_stream(cudnn_t* dnn, cu_stream_t stream) WEIR_REQUIRES(dnn->mu) {
  if (WEIR_LIKELY(dnn->stream == stream)) return NULL;
  dnn->stream = NULL;
  WEIR_TRY(check(dnn->call.set_stream(dnn->handle, stream), "changing its stream"));
  dnn->stream = stream;
  return NULL;
}

static weir_status_t* find_known(cudnn_t* dnn, const cudnn_task_t* task, known_t** out_known)
    WEIR_REQUIRES(dnn->mu) {
  weir_view_t key = weir_view((const char*)task->conv, sizeof(*task->conv));
  *out_known = weir_map_find(&dnn->plans, key);
  if (*out_known) return NULL;
  known_t* known = weir_calloc(1, sizeof(*known));
  if (!known) return weir_out_of_memory();
  weir_status_t* status = weir_cudnn_search_begin(task, &known->plan, &known->search);
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
  bool is_recording = weir_cuda_is_recording(dnn->device);
  if (is_recording) known = weir_map_find(&dnn->plans, key);
  if (is_recording && (!known || known->search))
    return WEIR_STATUS(UNAVAILABLE, "cuDNN's engine is still to be chosen");
  if (is_recording && !known->plan.repeats)
    return WEIR_STATUS(UNIMPLEMENTED, "cuDNN's engine is not one that is repeated");
  WEIR_TRY(find_known(dnn, task, &known));
  weir_status_t* status = NULL;
  if (known->search) status = weir_cudnn_search_on(task, &known->plan, &known->search);
  if (status) {
    weir_map_remove(&dnn->plans, key);
    known_free(dnn, known);
    return status;
  }
  *out_plan = &known->plan;
  return NULL;
}

weir_status_t* weir_cudnn_run(weir_device_t* device, const weir_cudnn_conv_t* conv,
                              const weir_conv_kernels_t* kernels,
                              const weir_cudnn_operands_t* operands) {
  static const char key;
  void* object = NULL;
  WEIR_TRY(weir_cuda_attachment(device, &key, cudnn_create, cudnn_destroy, &object));
  cudnn_t* dnn = object;
  cudnn_task_t task = {.dnn = dnn, .conv = conv, .kernels = kernels, .operands = operands};
  const plan_t* plan = NULL;
  cu_stream_t stream = weir_cuda_stream(device);  // the thread is the device's from here
  weir_mutex_lock(&dnn->mu);
  weir_status_t* status = use_stream(dnn, stream);
  if (!status) status = find_plan(dnn, &task, &plan);
  if (!status) status = weir_cudnn_execute(&task, plan);
  weir_mutex_unlock(&dnn->mu);
  return status ? status : weir_cuda_launched(device);
}
