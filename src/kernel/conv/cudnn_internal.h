// cudnn_internal.h — cuDNN's interface, and what a device keeps of it, for the files of cuDNN
// alone.
#ifndef WEIR_KERNEL_CONV_CUDNN_INTERNAL_H_
#define WEIR_KERNEL_CONV_CUDNN_INTERNAL_H_

#include "base/map.h"
#include "kernel/conv/cuda_by_filter.h"
#include "kernel/conv/cudnn.h"
#include "kernel/gemm/cuda_gemm.h"

// ---- the library: names, numbers and signatures are its stable interface ----

typedef void* dnn_t;  // a descriptor
typedef void* dnn_handle_t;

enum {
  // Kinds of descriptors.
  DNN_POINTWISE = 0,
  DNN_CONVOLUTION = 1,
  DNN_ENGINE = 2,
  DNN_CONFIG = 3,
  DNN_HEURISTIC = 4,
  DNN_PLAN = 5,
  DNN_KNOB = 7,
  DNN_KNOB_INFO = 8,
  DNN_FORWARD = 10,
  DNN_BY_FILTER = 11,
  DNN_BY_INPUT = 12,
  DNN_POINTWISE_OPERATION = 13,
  DNN_GRAPH = 15,
  DNN_PACK = 16,
  DNN_TENSOR = 17,
  // Types of attributes.
  DNN_TYPE_HANDLE = 0,
  DNN_TYPE_DATA_TYPE = 1,
  DNN_TYPE_BOOLEAN = 2,
  DNN_TYPE_INT64 = 3,
  DNN_TYPE_FLOAT = 4,
  DNN_TYPE_DOUBLE = 5,
  DNN_TYPE_POINTER = 6,
  DNN_TYPE_MODE = 7,
  DNN_TYPE_HEURISTIC = 8,
  DNN_TYPE_KNOB = 9,
  DNN_TYPE_NAN_MODE = 10,
  DNN_TYPE_NUMERICAL_NOTE = 11,
  DNN_TYPE_POINTWISE_MODE = 14,
  DNN_TYPE_DESCRIPTOR = 15,
  DNN_TYPE_BEHAVIOR_NOTE = 19,
  // Attributes.
  DNN_POINTWISE_MODE = 0,
  DNN_POINTWISE_TYPE = 1,
  DNN_POINTWISE_NAN_MODE = 2,
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
  DNN_CONFIG_KNOBS = 302,
  DNN_PLAN_HANDLE = 400,
  DNN_PLAN_CONFIG = 401,
  DNN_PLAN_WORKSPACE = 402,
  DNN_KNOB_KIND = 600,
  DNN_KNOB_VALUE = 601,
  DNN_FORWARD_FIRST = 700,           // alpha, beta, convolution, w, x, y
  DNN_BY_INPUT_FIRST = 706,          // alpha, beta, convolution, w, dx, dy
  DNN_BY_FILTER_FIRST = 712,         // alpha, beta, convolution, dw, x, dy
  DNN_POINTWISE_OPERATION_OF = 750,  // and x, b, y
  DNN_GRAPH_HANDLE = 800,
  DNN_GRAPH_OPERATIONS = 801,
  DNN_TENSOR_ALIGNMENT = 900,
  DNN_TENSOR_TYPE = 901,
  DNN_TENSOR_DIMS = 902,
  DNN_TENSOR_STRIDES = 903,
  DNN_TENSOR_ID = 906,
  DNN_TENSOR_IS_VIRTUAL = 907,
  DNN_PACK_IDS = 1000,
  DNN_PACK_POINTERS = 1001,
  DNN_PACK_WORKSPACE = 1003,
  DNN_KNOB_INFO_KIND = 1200,
  DNN_KNOB_INFO_MOST = 1201,
  DNN_KNOB_INFO_LEAST = 1202,
  DNN_KNOB_INFO_STEP = 1203,
  DNN_ENGINE_GRAPH = 1300,
  DNN_ENGINE_INDEX = 1301,
  DNN_ENGINE_KNOBS = 1302,
  DNN_ENGINE_NUMERICAL_NOTE = 1303,
  DNN_ENGINE_BEHAVIOR_NOTE = 1305,
  // Values.
  DNN_POINTWISE_ADD = 0,
  DNN_POINTWISE_RELU = 100,
  DNN_PROPAGATE_NAN = 1,
  DNN_CROSS_CORRELATION = 1,
  DNN_HEURISTIC_FALLBACK = 2,
  DNN_HEURISTIC_A = 3,
  DNN_NOTE_TENSOR_CORE = 0,
  DNN_NOTE_DOWN_CONVERT = 1,
  DNN_NOTE_FFT = 3,
  DNN_NOTE_NONDETERMINISTIC = 4,
  DNN_NOTE_WINOGRAD = 5,
  DNN_NOTE_COMPILES = 0,  // of behaviour
  DNN_KNOB_CLUSTER_M = 27,
  DNN_KNOB_CLUSTER_N = 28,
};

#define DNN_FUNCTIONS(FUNCTION)                                                                    \
  FUNCTION(create, cudnnCreate, (dnn_handle_t * out_handle))                                       \
  FUNCTION(destroy, cudnnDestroy, (dnn_handle_t handle))                                           \
  FUNCTION(property, cudnnGetProperty, (int which, int* out_value))                                \
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

// How a convolution is computed: cuDNN is asked for it in ways that are bits, or it is not cuDNN's.
enum {
  WAY_TAIL = 1,  // with its tail; otherwise a kernel of ours follows
  WAY_WIDE = 2,  // of more input channels than there are, the added ones 0: a multiple of 16 bytes
  WAY_FOLDED = 4,  // of the pixels that a stride steps over as channels of one, and without strides
  WAY_PRODUCT = 8,  // as a product of matrices, where windows are single pixels
  WAY_DIRECT = 16,  // by a kernel of ours instead of cuDNN's: some gradients of filters
  WAYS = 21,
};

typedef struct plan_t {
  dnn_t plan;  // NULL: it is not cuDNN's
  int64_t workspace_size;
  int way;
  bool repeats;             // in recordings (device.h) it gives what it gives else
  weir_by_filter_t direct;  // of WAY_DIRECT
} plan_t;

typedef struct cudnn_t {
  dnn_functions_t call;
  dnn_handle_t handle;
  weir_device_t* device;  // borrowed: the one it is attached to
  char identity[160];     // the GPU's name and cuDNN's version: what choices depend on
  bool is_told;           // WEIR_CUDNN_LOG: what is tried, and what is chosen
  bool is_checked;        // and how far results are apart
  // weir_clock_ns and weir_cuda_gemm; a test's own.
  int64_t (*clock_ns)(void);
  weir_status_t* (*multiply)(weir_device_t* device, const weir_gemm_args_t* args,
                             weir_gemm_batch_t batch);
  weir_mutex_t mu;      // the handle is one thread's at a time; guards all below
  cu_stream_t stream;   // that the handle launches in; NULL: not known
  weir_map_t plans;     // by convolution
  weir_map_t hopeless;  // engines that are not worth another try
} cudnn_t;

// NULL-safe.
WEIR_INLINE void weir_cudnn_drop(const cudnn_t* dnn, dnn_t descriptor) {
  if (descriptor) dnn->call.drop(descriptor);
}

// A convolution of tensors that are there.
typedef struct cudnn_task_t {
  cudnn_t* dnn;
  const weir_cudnn_conv_t* conv;
  const weir_conv_kernels_t* kernels;
  const weir_cudnn_operands_t* operands;
} cudnn_task_t;

// ---- graphs of operations (cudnn_graph.c) ----

// The tensors of a graph.
enum { X_ID = 1, W_ID = 2, Y_ID = 3, BIAS_ID = 4 };

// What a graph is made of, itself among it; dropped together.
typedef struct cudnn_graph_t {
  dnn_t parts[16];
  int part_count;
  dnn_t graph;
} cudnn_graph_t;

// |out_graph| is to be dropped after an error, too.
WEIR_MUST_USE weir_status_t* weir_cudnn_describe(const cudnn_t* dnn, const weir_cudnn_conv_t* conv,
                                                 int way, cudnn_graph_t* out_graph);
void weir_cudnn_graph_drop(const cudnn_t* dnn, cudnn_graph_t* graph);

// What the convolution is in the graph of |way|. False: it has no such graph.
bool weir_cudnn_shape(const weir_device_t* device, const weir_cudnn_conv_t* conv, int way,
                      weir_conv_t* out_shape);

// ---- running (cudnn_run.c) ----
// Whether it is a product of matrices.
bool weir_cudnn_is_product(const weir_cudnn_conv_t* conv);
WEIR_MUST_USE weir_status_t* weir_cudnn_execute(const cudnn_task_t* task, const plan_t* plan);

// ---- configurations of engines as numbers (cudnn_choice.c) ----
enum { MOST_KNOBS = 48 };

typedef struct knob_t {
  int64_t kind, value;
} knob_t;

// All of it is compared, and written to disk: no padding between the members.
typedef struct choice_t {
  int64_t way;
  int64_t engine;
  int64_t knob_count;
  knob_t knobs[MOST_KNOBS];
} choice_t;

// The engine of a configuration; the caller drops it.
dnn_t weir_cudnn_engine_of(const cudnn_t* dnn, dnn_t config);
// False: cuDNN does not tell. It can be run then, but not be remembered.
bool weir_cudnn_read_choice(const cudnn_t* dnn, int way, dnn_t config, choice_t* out_choice);
// NULL: cuDNN has none like it. The caller drops it.
dnn_t weir_cudnn_config_of(const cudnn_t* dnn, dnn_t graph, const choice_t* choice);

// Another value of one knob.
typedef struct variant_t {
  int knob;  // of the choice
  int64_t value;
} variant_t;
// Those of |choice|, at most |most|: all values of knobs that have few, halves and doubles and what
// is between of others.
int weir_cudnn_variants(const cudnn_t* dnn, dnn_t graph, const choice_t* choice,
                        variant_t* variants, int most);

// ---- WEIR_CUDNN_LOG (cudnn_log.c) ----
extern const char* const weir_cudnn_way_names[WAYS];
// A line of the task's convolution.
void weir_cudnn_tell(const cudnn_task_t* task, const char* what, const char* text);
// And of one of its choices; |choice| is NULL where cuDNN does not tell.
void weir_cudnn_tell_choice(const cudnn_task_t* task, const char* what, const choice_t* choice,
                            const char* more);

// ---- results of candidates (cudnn_check.c) ----
// Fills the task's result with NaN, so that what is not written shows.
void weir_cudnn_spoil(const cudnn_task_t* task);
// How far the task's result is from |reference|, relative to its largest element; NaN where only
// one is a number; below 0: unknown. The first result becomes |reference|, which the caller frees.
double weir_cudnn_difference(const cudnn_task_t* task, double** reference);
// Whether a tail leaves NaN as it is. The result is spoilt.
bool weir_cudnn_keeps_nan(const cudnn_task_t* task, const plan_t* plan);

// ---- the search for the fastest plan (cudnn_choose.c) ----
// A turn each time that a convolution runs; cudnn_t.mu is held.
typedef struct search_t search_t;
// |out_plan| is the one that was the fastest before, if that is remembered, and |out_search| NULL
// then.
WEIR_MUST_USE weir_status_t* weir_cudnn_search_begin(const cudnn_task_t* task, plan_t* out_plan,
                                                     search_t** out_search);
// |plan| becomes the best so far, |search| NULL when it is over. UNIMPLEMENTED: there is none.
WEIR_MUST_USE weir_status_t* weir_cudnn_search_on(const cudnn_task_t* task, plan_t* plan,
                                                  search_t** search);
void weir_cudnn_search_free(const cudnn_t* dnn, search_t* search);  // NULL-safe

#endif  // WEIR_KERNEL_CONV_CUDNN_INTERNAL_H_
