// conv_kernels.c — Finding the kernels around convolutions, once a device and type.
#include "kernel/conv/conv_kernels.h"

#include "base/thread.h"
#include "kernel/cuda/source.h"
#include "kernel/nn/cuda_bias.h"

WEIR_CUDA_SOURCE(conv_layout);

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
      {"transpose", &kernels->transpose}, {"turn", &kernels->turn}, {"pad", &kernels->pad},
      {"crop", &kernels->crop},           {"fold", &kernels->fold}, {"unfold", &kernels->unfold}};
  for (size_t i = 0; i < WEIR_COUNT_OF(all); ++i) {
    weir_strbuf_t definitions = {0};
    weir_strbuf_printf(&definitions, "#define T uint%zu_t\n", 8 * weir_dtype_size(dtype));
    WEIR_TRY(weir_cuda_build(device, &definitions, weir_cuda_source_conv_layout, all[i].name,
                             all[i].function));
  }
  return NULL;
}

static weir_status_t* find_all(weir_device_t* device, weir_dtype_t dtype,
                               weir_conv_kernels_t* kernels) {
  WEIR_TRY(find_layouts(device, dtype, kernels));
  WEIR_TRY(weir_cuda_bias_find(device, dtype, false, &kernels->bias));
  return weir_cuda_bias_find(device, dtype, true, &kernels->bias_relu);
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
  int64_t pixels = v->out[0] * v->out[1] * v->out[2];
  weir_bias_t shape = {.outer = run->is_nchw ? v->batch : v->batch * pixels,
                       .channels = v->out_c,
                       .inner = run->is_nchw ? pixels : 1};
  bool has_relu = run->tail == WEIR_CONV_BIAS_RELU;
  return weir_cuda_bias_add(device, has_relu ? kernels->bias_relu : kernels->bias, run->dtype,
                            &shape, run->y, run->bias, run->y);
}
