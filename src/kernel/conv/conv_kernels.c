// conv_kernels.c — Finding the kernels around convolutions, once a device and type.
#include "kernel/conv/conv_kernels.h"

#include "base/thread.h"
#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(conv_layout);
WEIR_CUDA_SOURCE(bias);

typedef struct table_t {
  weir_mutex_t mu;
  weir_conv_kernels_t* of[WEIR_DTYPE_COUNT];  // guarded by mu; what they point to is immutable
} table_t;

static void table_destroy(void* object) {
  table_t* table = object;
  for (int i = 0; i < WEIR_DTYPE_COUNT; ++i) weir_free(table->of[i]);
  weir_mutex_destroy(&table->mu);
  weir_free(table);
}

static weir_status_t* table_create(weir_device_t* device, void** out_object) {
  (void)device;
  table_t* table = weir_calloc(1, sizeof(*table));
  if (!table) return weir_out_of_memory();
  weir_mutex_init(&table->mu);
  *out_object = table;
  return NULL;
}

static weir_status_t* find_layouts(weir_device_t* device, weir_dtype_t dtype,
                                   weir_conv_kernels_t* kernels) {
  const struct {
    const char* name;
    weir_cuda_function_t* function;
  } all[] = {
      {"transpose", &kernels->transpose}, {"turn", &kernels->turn},   {"pad", &kernels->pad},
      {"crop", &kernels->crop},           {"widen", &kernels->widen}, {"narrow", &kernels->narrow}};
  for (size_t i = 0; i < WEIR_COUNT_OF(all); ++i) {
    weir_strbuf_t definitions = {0};
    weir_strbuf_printf(&definitions, "#define T uint%zu_t\n", 8 * weir_dtype_size(dtype));
    WEIR_TRY(weir_cuda_build(device, &definitions, weir_cuda_source_conv_layout, all[i].name,
                             all[i].function));
  }
  return NULL;
}

// BiasAdd's own kernel; Relu is as the op's (cuda_activation.c), so that NaN stays NaN.
static weir_status_t* find_tail(weir_device_t* device, weir_dtype_t dtype, const char* after,
                                weir_cuda_function_t* out_function) {
  weir_strbuf_t definitions = {0};
  weir_strbuf_printf(&definitions, "#define T %s\n%s", weir_cuda_type_name(dtype), after);
  return weir_cuda_build(device, &definitions, weir_cuda_source_bias, "bias_add", out_function);
}

static weir_status_t* find_all(weir_device_t* device, weir_dtype_t dtype,
                               weir_conv_kernels_t* kernels) {
  WEIR_TRY(find_layouts(device, dtype, kernels));
  WEIR_TRY(find_tail(device, dtype, "", &kernels->bias));
  return find_tail(device, dtype, "#define AFTER(a) ((a) <= 0 ? 0 : (a))\n", &kernels->bias_relu);
}

static weir_status_t* add_locked(table_t* table, weir_device_t* device, weir_dtype_t dtype)
    WEIR_REQUIRES(table->mu) {
  weir_conv_kernels_t* kernels = weir_calloc(1, sizeof(*kernels));
  if (!kernels) return weir_out_of_memory();
  weir_status_t* status = find_all(device, dtype, kernels);
  if (status) weir_free(kernels);
  else table->of[dtype] = kernels;
  return status;
}

weir_status_t* weir_conv_kernels_find(weir_device_t* device, weir_dtype_t dtype,
                                      const weir_conv_kernels_t** out_kernels) {
  static const char key;
  void* object = NULL;
  WEIR_TRY(weir_cuda_attachment(device, &key, table_create, table_destroy, &object));
  table_t* table = object;
  weir_mutex_lock(&table->mu);
  weir_status_t* status = table->of[dtype] ? NULL : add_locked(table, device, dtype);
  *out_kernels = table->of[dtype];
  weir_mutex_unlock(&table->mu);
  return status;
}

weir_status_t* weir_conv_kernels_tail(weir_device_t* device, const weir_conv_kernels_t* kernels,
                                      const weir_conv_tail_run_t* run) {
  const weir_conv_t* v = run->conv;
  void *y = run->y, *bias = (void*)run->bias;
  int64_t pixels = v->out[0] * v->out[1] * v->out[2], channels = v->out_c;
  int64_t inner = run->is_nchw ? pixels : 1, count = v->batch * channels * pixels;
  int64_t width = 16 / (int64_t)weir_dtype_size(run->dtype);
  bool is_aligned = (((uintptr_t)y | (uintptr_t)bias) & 15) == 0;
  int is_packed = is_aligned && (inner == 1 ? channels : inner) % width == 0;
  weir_cuda_size_t size = weir_cuda_size_for(device, is_packed ? count / width : count);
  return weir_cuda_launch(
      device, run->tail == WEIR_CONV_BIAS_RELU ? kernels->bias_relu : kernels->bias, &size,
      WEIR_CUDA_ARGS(&y, &bias, &y, &count, &channels, &inner, &is_packed));
}
