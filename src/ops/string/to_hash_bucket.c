// to_hash_bucket.c — StringToHashBucketFast: strings as numbers below a limit;
// _TensorToHashBucketFast: the same of numbers as AsString writes them.
#include <inttypes.h>
#include <stdio.h>

#include "base/fingerprint.h"
#include "base/interrupt.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

static weir_status_t* fast_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* input = weir_kernel_input(ctx, 0);
  const uint64_t buckets = (uint64_t)weir_attrs_int(weir_kernel_attrs(ctx), "num_buckets");
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, input->rank, input->dims, &out));
  for (int64_t i = 0; i < input->count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    weir_view_t text = weir_string_view(WEIR_TENSOR_DATA(input, weir_string_t) + i);
    WEIR_TENSOR_DATA(out, int64_t)
    [i] = (int64_t)(weir_fingerprint64(text.data, text.size) % buckets);
  }
  return NULL;
}

static int write_number(const weir_tensor_t* t, int64_t i, char* text, size_t size) {
  switch (weir_tensor_type(t)) {
    case WEIR_DTYPE_INT8: return snprintf(text, size, "%d", WEIR_TENSOR_DATA(t, int8_t)[i]);
    case WEIR_DTYPE_UINT8: return snprintf(text, size, "%u", WEIR_TENSOR_DATA(t, uint8_t)[i]);
    case WEIR_DTYPE_INT16: return snprintf(text, size, "%d", WEIR_TENSOR_DATA(t, int16_t)[i]);
    case WEIR_DTYPE_UINT16: return snprintf(text, size, "%u", WEIR_TENSOR_DATA(t, uint16_t)[i]);
    case WEIR_DTYPE_INT32: return snprintf(text, size, "%" PRId32, WEIR_TENSOR_DATA(t, int32_t)[i]);
    case WEIR_DTYPE_UINT32:
      return snprintf(text, size, "%" PRIu32, WEIR_TENSOR_DATA(t, uint32_t)[i]);
    case WEIR_DTYPE_UINT64:
      return snprintf(text, size, "%" PRIu64, WEIR_TENSOR_DATA(t, uint64_t)[i]);
    default: return snprintf(text, size, "%" PRId64, WEIR_TENSOR_DATA(t, int64_t)[i]);
  }
}

static weir_status_t* number_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* input = weir_kernel_input(ctx, 0);
  const uint64_t buckets = (uint64_t)weir_attrs_int(weir_kernel_attrs(ctx), "num_buckets");
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, input->rank, input->dims, &out));
  for (int64_t i = 0; i < input->count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    char text[32];
    int size = write_number(input, i, text, sizeof(text));
    uint64_t hash = weir_fingerprint64(text, (size_t)size);
    WEIR_TENSOR_DATA(out, int64_t)[i] = (int64_t)(hash % buckets);
  }
  return NULL;
}

const weir_op_module_t weir_ops_string_to_hash_bucket = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "StringToHashBucketFast",
         .attrs = "num_buckets: int >= 1",
         .inputs = "input: string",
         .outputs = "output: int64",
         .summary = "Buckets of strings by their fingerprint, the same in every run",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = fast_cpu)},
        {.name = "_TensorToHashBucketFast",
         .attrs = "T: {int8, uint8, int16, uint16, int32, uint32, int64, uint64}; num_buckets: int "
                  ">= 1",
         .inputs = "input: T",
         .outputs = "output: int64",
         .summary = "Buckets of numbers by the fingerprint of their decimal digits",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = number_cpu)},
        {0}}};
