// cudnn_check.c — How far results of candidates are apart, and whether NaN stays NaN, for
// WEIR_CUDNN_LOG=2.
#include <math.h>

#include "kernel/conv/cudnn_internal.h"
#include "tensor/numeric.h"

enum { END = 1 << 17 };  // elements at either end of a result that are looked at

static int64_t volume(const int64_t sizes[3]) { return sizes[0] * sizes[1] * sizes[2]; }

static int64_t result_count(const weir_cudnn_conv_t* c) {
  const weir_conv_t* v = &c->conv;
  switch (c->kind) {
    case WEIR_CONV_BY_INPUT: return v->batch * volume(v->in) * v->in_c;
    case WEIR_CONV_BY_FILTER: return volume(v->filter) * v->group_in * v->out_c;
    default: return v->batch * volume(v->out) * v->out_c;
  }
}

static double element(weir_dtype_t dtype, const void* data, int64_t i) {
  switch (dtype) {
    case WEIR_DTYPE_HALF: return (double)weir_half_to_float(((const weir_half_t*)data)[i]);
    case WEIR_DTYPE_BFLOAT16:
      return (double)weir_bfloat16_to_float(((const weir_bfloat16_t*)data)[i]);
    case WEIR_DTYPE_DOUBLE: return ((const double*)data)[i];
    default: return (double)((const float*)data)[i];
  }
}

// |count| elements from |first| on; false: they cannot be had.
static bool download(const cudnn_task_t* task, int64_t first, int64_t count, double* values) {
  const cuda_core_t* core = weir_cuda_core(task->dnn->device);
  weir_dtype_t dtype = task->conv->dtype;
  size_t size = weir_dtype_size(dtype);
  weir_tensor_t* data = NULL;
  weir_status_t* status = weir_tensor_create_in(
      weir_device_allocator(task->dnn->device, WEIR_MEMORY_PINNED), dtype, 1, &count, &data);
  weir_status_destroy(status);
  if (!data) return false;
  uintptr_t from = (uintptr_t)task->operands->out + (size_t)first * size;
  cu_stream_t stream = weir_cuda_stream(task->dnn->device);
  bool is_there = core->driver->download(data->data, from, (size_t)count * size, stream) == 0 &&
                  core->driver->stream_synchronize(stream) == 0;
  for (int64_t i = 0; i < count && is_there; ++i) values[i] = element(dtype, data->data, i);
  weir_tensor_release(data);
  return is_there;
}

void weir_cudnn_spoil(const cudnn_task_t* task) {
  size_t size = (size_t)result_count(task->conv) * weir_dtype_size(task->conv->dtype);
  weir_status_destroy(weir_cuda_set(task->dnn->device, task->operands->out, 0xff, size));
}

// Relative to the largest of |want|.
static double distance(const double* want, const double* got, int64_t count) {
  double largest = 0, furthest = 0;
  for (int64_t i = 0; i < count; ++i) {
    bool is_alike = want[i] == got[i] || (isnan(want[i]) && isnan(got[i]));
    if (!is_alike && !(fabs(want[i] - got[i]) <= furthest)) furthest = fabs(want[i] - got[i]);
    if (fabs(want[i]) > largest) largest = fabs(want[i]);
    if (isnan(furthest)) return NAN;  // only one of the two is a number
  }
  return largest > 0 ? furthest / largest : furthest;
}

double weir_cudnn_difference(const cudnn_task_t* task, double** reference) {
  int64_t count = result_count(task->conv), part = WEIR_MIN(count, (int64_t)END);
  double difference = -1;
  double* values = weir_alloc_array((size_t)(2 * part), sizeof(*values));
  if (!values || !download(task, 0, part, values) ||
      !download(task, count - part, part, values + part)) {
    weir_free(values);
    return difference;
  }
  if (!*reference) {
    *reference = values;
    return 0;
  }
  difference = distance(*reference, values, 2 * part);
  weir_free(values);
  return difference;
}

// The result where all of the bias is NaN: its first element tells.
static bool has_nan(const cudnn_task_t* task, const plan_t* plan, const weir_tensor_t* bias) {
  double value = 0;
  weir_cudnn_operands_t operands = *task->operands;
  cudnn_task_t spoilt = *task;
  operands.bias = bias->data;
  spoilt.operands = &operands;
  weir_status_t* status =
      weir_cuda_set(task->dnn->device, bias->data, 0xff, weir_tensor_byte_size(bias));
  if (!status) status = weir_cudnn_execute(&spoilt, plan);
  bool is_kept = !status && download(task, 0, 1, &value) && isnan(value);
  weir_status_destroy(status);
  return is_kept;
}

bool weir_cudnn_keeps_nan(const cudnn_task_t* task, const plan_t* plan) {
  weir_tensor_t* bias = NULL;
  weir_status_t* status =
      weir_tensor_create_in(weir_device_allocator(task->dnn->device, WEIR_MEMORY_DEVICE),
                            task->conv->dtype, 1, &task->conv->conv.out_c, &bias);
  bool is_kept = !status && has_nan(task, plan, bias);
  weir_status_destroy(status);
  weir_tensor_release(bias);
  return is_kept;
}
