// inplace.c — InplaceUpdate, InplaceAdd, InplaceSub: rows of a tensor replaced or added to.
#include "kernel/elementwise/update.h"
#include "kernel/move/scatter_op.h"
#include "ops/array/common.h"

typedef enum inplace_t { INPLACE_UPDATE, INPLACE_ADD, INPLACE_SUB } inplace_t;

static weir_status_t* check_inputs(const weir_tensor_t* x, const weir_tensor_t* i,
                                   const weir_tensor_t* v) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (i->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "i must be a vector. %s", weir_tensor_shape_text(i, a));
  }
  if (x->rank != v->rank || x->rank < 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "x and v shape doesn't match (ranks differ): %s vs. %s",
                       weir_tensor_shape_text(x, a), weir_tensor_shape_text(v, b));
  }
  for (int k = 1; k < x->rank; ++k) {
    if (x->dims[k] == v->dims[k]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "x and v shape doesn't match at index %d : %s vs. %s", k,
                       weir_tensor_shape_text(x, a), weir_tensor_shape_text(v, b));
  }
  if (i->dims[0] != v->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT, "i and x shape doesn't match at index 0: %s vs. %s",
                       weir_tensor_shape_text(i, a), weir_tensor_shape_text(v, b));
  }
  return NULL;
}

// Row numbers wrap around: -1 is the last row, and so is 2 * rows - 1.
static weir_status_t* put_rows(inplace_t mode, const weir_tensor_t* i, const weir_tensor_t* v,
                               weir_tensor_t* out) {
  const weir_dtype_t dtype = weir_tensor_type(out);
  weir_update_fn_t fn = NULL;
  if (mode != INPLACE_UPDATE) {
    fn = weir_update_find(mode == INPLACE_ADD ? WEIR_UPDATE_ADD : WEIR_UPDATE_SUB, dtype);
    if (!fn) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Unsupported data type: %s", weir_dtype_name(dtype));
    }
  }
  const int64_t rows = out->dims[0], columns = out->count / rows;
  const size_t step = (size_t)columns * weir_dtype_size(dtype);
  for (int64_t k = 0; k < i->count; ++k) {
    int64_t row = weir_move_int_at(i, k) % rows;
    char* dst = (char*)out->data + (size_t)(row < 0 ? row + rows : row) * step;
    const char* src = (const char*)v->data + (size_t)k * step;
    if (fn) {
      fn(dst, src, columns, false);
    } else {
      WEIR_TRY(weir_elements_copy(dtype, dst, src, columns));
    }
  }
  return NULL;
}

// The same on a GPU, whose rows alone have a state.
static weir_status_t* put_rows_on_gpu(weir_kernel_ctx_t* ctx, weir_tensor_t* out) {
  const weir_tensor_t* i = weir_kernel_input(ctx, 1);
  weir_move_places_t places = {.indices = i,
                               .count = i->count,
                               .depth = 1,
                               .dims = out->dims,
                               .inner = out->count / out->dims[0]};
  return weir_gpu_scatter(ctx, ctx->state, &places, weir_kernel_input(ctx, 2), false, out);
}

// The output takes x's memory only where nobody else reads it: other readers keep their values.
static weir_status_t* inplace(weir_kernel_ctx_t* ctx, inplace_t mode) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_tensor_t* i = weir_kernel_input(ctx, 1);
  const weir_tensor_t* v = weir_kernel_input(ctx, 2);
  WEIR_TRY(check_inputs(x, i, v));
  const void* data = x->data;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, x->rank, x->dims, &out));
  if (out->data != data) {
    WEIR_TRY(weir_kernel_move_copy(ctx, weir_tensor_type(out), data, out->data, out->count));
  }
  if (out->count == 0 || v->count == 0) return NULL;
  return ctx->state ? put_rows_on_gpu(ctx, out) : put_rows(mode, i, v, out);
}

static weir_status_t* update(weir_kernel_ctx_t* ctx) { return inplace(ctx, INPLACE_UPDATE); }
static weir_status_t* add(weir_kernel_ctx_t* ctx) { return inplace(ctx, INPLACE_ADD); }
static weir_status_t* sub(weir_kernel_ctx_t* ctx) { return inplace(ctx, INPLACE_SUB); }

#define INPLACE_GPU_INIT(name, MODE)                                           \
  static weir_status_t* name(const weir_kernel_init_t* init, void* state) {    \
    return weir_scatter_find_wrapping(init, WEIR_SCATTER_##MODE, 2, 1, state); \
  }
INPLACE_GPU_INIT(update_gpu, ASSIGN)
INPLACE_GPU_INIT(add_gpu, ADD)
INPLACE_GPU_INIT(sub_gpu, SUB)

// Rows of the table below. int32 is in host memory, as in TensorFlow.
#define INPLACE(op, fn, gpu_types, text)                                                  \
  {                                                                                       \
    .name = op, .attrs = "T: type", .inputs = "x: T; i: int32; v: T", .outputs = "y: T",  \
    .summary = text, .infer_shape = weir_shape_fn_unchanged,                              \
    .kernels = (const weir_kernel_def_t[]) {                                              \
      {WEIR_DEVICE_CPU, .compute = fn},                                                   \
          {WEIR_DEVICE_GPU, .types = "T: " gpu_types, .compute = fn, .init = fn##_gpu,    \
           .state_size = sizeof(weir_scatter_state_t)},                                   \
          {WEIR_DEVICE_GPU, .types = "T: int32", .compute = fn, .host_inputs = "x, i, v", \
           .host_outputs = "y"},                                                          \
      {                                                                                   \
        0                                                                                 \
      }                                                                                   \
    }                                                                                     \
  }

const weir_op_module_t weir_ops_array_inplace = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        INPLACE("InplaceUpdate", update, WEIR_MOVED_TYPES, "Replaces rows of a tensor."),
        INPLACE("InplaceAdd", add, WEIR_SCATTERED_NUMBERS, "Adds to rows of a tensor."),
        INPLACE("InplaceSub", sub, WEIR_SCATTERED_NUMBERS, "Subtracts from rows of a tensor."),
        {0}}};
