// list_diff.c — ListDiff: the elements of one vector that are not in another.
#include "base/interrupt.h"
#include "ops/array/element_set.h"

static weir_status_t* list_diff_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  WEIR_TRY(weir_shape_set_vector(ctx, 0, -1));
  return weir_shape_set_vector(ctx, 1, -1);
}

static weir_status_t* write_diff(weir_kernel_ctx_t* ctx, const weir_tensor_t* x,
                                 const int64_t* kept, int64_t count) {
  const weir_dtype_t dtype = weir_tensor_type(x);
  const size_t size = weir_dtype_size(dtype);
  weir_tensor_t* out = NULL;
  weir_tensor_t* idx = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, &count, &out));
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &count, &idx));
  for (int64_t i = 0; i < count; ++i) {
    const char* src = (const char*)x->data + (size_t)kept[i] * size;
    WEIR_TRY(weir_elements_copy(dtype, (char*)out->data + (size_t)i * size, src, 1));
    weir_move_set_int(idx, i, kept[i]);
  }
  return NULL;
}

static weir_status_t* list_diff_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_tensor_t* y = weir_kernel_input(ctx, 1);
  if (x->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "x should be a 1D vector.");
  if (y->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "y should be a 1D vector.");
  element_set_t set = {0};
  int64_t* kept = weir_alloc_array((size_t)x->count, sizeof(*kept));
  weir_status_t* status = element_set_create(&set, weir_tensor_type(x), 1, y->count);
  if (!status && !kept) status = weir_out_of_memory();
  if (!status) {
    int64_t count = 0;
    for (int64_t i = 0; !status && i < y->count; ++i) {
      status = weir_interrupt_poll(i);
      (void)element_set_find(&set, (const char*)y->data + (size_t)i * set.size, true);
    }
    for (int64_t i = 0; !status && i < x->count; ++i) {
      status = weir_interrupt_poll(i);
      if (element_set_find(&set, (const char*)x->data + (size_t)i * set.size, false) < 0)
        kept[count++] = i;
    }
    if (!status) status = write_diff(ctx, x, kept, count);
  }
  element_set_free(&set);
  weir_free(kept);
  return status;
}

const weir_op_module_t weir_ops_array_list_diff = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ListDiff",
         .attrs = "T: type; out_idx: {int32, int64} = DT_INT32",
         .inputs = "x: T; y: T",
         .outputs = "out: T; idx: out_idx",
         .summary = "Returns the elements of x that are not in y, and where they are.",
         .infer_shape = list_diff_shape,
         .kernels = WEIR_CPU_KERNEL(
                 .types = "T: float, double, half, bfloat16, int8, int16, int32, int64, uint8, "
                          "uint16, uint32, uint64, string",
                 .compute = list_diff_cpu)},
        {0}}};
