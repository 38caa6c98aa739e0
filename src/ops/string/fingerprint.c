// fingerprint.c — Fingerprint: eight bytes that stand for each row of a tensor.
#include "base/fingerprint.h"

#include "base/alloc.h"
#include "base/interrupt.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

#define METHOD "farmhash64"

static void put_fingerprint(const void* data, size_t size, uint8_t* out) {
  const uint64_t bits = weir_fingerprint64(data, size);
  for (int i = 0; i < 8; ++i) out[i] = (uint8_t)(bits >> 8 * i);
}

// A row of several strings: the fingerprint of their fingerprints.
static weir_status_t* fingerprint_strings(const weir_tensor_t* data, int64_t width, uint8_t* out) {
  const weir_string_t* strings = data->data;
  uint8_t* parts = weir_alloc_array((size_t)width, 8);
  if (!parts) return weir_out_of_memory();
  for (int64_t row = 0; row < data->dims[0]; ++row) {
    for (int64_t i = 0; i < width; ++i) {
      const weir_view_t text = weir_string_view(&strings[row * width + i]);
      put_fingerprint(text.data, text.size, parts + 8 * i);
    }
    if (width == 1) {
      memcpy(out + 8 * row, parts, 8);
    } else {
      put_fingerprint(parts, 8 * (size_t)width, out + 8 * row);
    }
  }
  weir_free(parts);
  return NULL;
}

static weir_status_t* fingerprint_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* data = weir_kernel_input(ctx, 0);
  const weir_tensor_t* method = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (method->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "`method` should be a scalar string: %s",
                       weir_tensor_shape_text(method, text));
  }
  const weir_view_t name = weir_string_view(method->data);
  if (!weir_view_is(name, METHOD)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Unsupported fingerprint method: %.*s",
                       WEIR_VIEW_ARG(name));
  }
  if (data->rank == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "`data` should have at least one dimension: []");
  }
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, (int64_t[]){data->dims[0], 8}, &out));
  if (data->dims[0] == 0) return NULL;
  const int64_t width = data->count / data->dims[0];
  uint8_t* next = out->data;
  if (data->dtype == WEIR_DTYPE_STRING) return fingerprint_strings(data, width, next);
  const size_t size = (size_t)width * weir_dtype_size(weir_tensor_type(data));
  for (int64_t row = 0; row < data->dims[0]; ++row) {
    WEIR_TRY(weir_interrupt_poll(row));
    put_fingerprint((const char*)data->data + (size_t)row * size, size, next + 8 * row);
  }
  return NULL;
}

static weir_status_t* fingerprint_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* data = weir_shape_input(ctx, 0);
  const weir_tensor_t* method = weir_shape_value(ctx, 1);
  WEIR_TRY(weir_shape_at_least(ctx, data, 1));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  int64_t width = -1;
  if (method) {
    const weir_view_t name = weir_string_view(method->data);
    if (!weir_view_is(name, METHOD)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "unsupported method: %.*s", WEIR_VIEW_ARG(name));
    }
    width = 8;
  }
  return weir_shape_set_dims(ctx, 0, 2, (int64_t[]){data->rank < 0 ? -1 : data->dims[0], width});
}

const weir_op_module_t weir_ops_string_fingerprint = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "Fingerprint",
                                    .attrs = "T: type",
                                    .inputs = "data: T; method: string",
                                    .outputs = "fingerprint: uint8",
                                    .summary = "Eight bytes that stand for each row",
                                    .infer_shape = fingerprint_shape,
                                    .kernels = WEIR_CPU_KERNEL(.compute = fingerprint_cpu)},
                                   {0}}};
