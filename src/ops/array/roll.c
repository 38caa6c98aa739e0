// roll.c — Roll: rotates elements along axes.
#include "ops/array/common.h"

static weir_status_t* roll_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_at_least(ctx, weir_shape_input(ctx, 0), 1));
  WEIR_TRY(weir_shape_at_most(ctx, weir_shape_input(ctx, 1), 1));
  WEIR_TRY(weir_shape_at_most(ctx, weir_shape_input(ctx, 2), 1));
  const weir_shape_t* joined = NULL;
  WEIR_TRY(weir_shape_join(ctx, weir_shape_input(ctx, 1), weir_shape_input(ctx, 2), &joined));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

// The shift of each dimension, in [0, size).
static weir_status_t* read_shifts(const weir_kernel_ctx_t* ctx, int64_t* shifts) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_tensor_t* shift = weir_kernel_input(ctx, 1);
  const weir_tensor_t* axis = weir_kernel_input(ctx, 2);
  if (in->rank < 1) return WEIR_STATUS(INVALID_ARGUMENT, "input must be 1-D or higher");
  if (shift->rank > 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "shift must be a scalar or a 1-D vector. Found rank %d",
                       shift->rank);
  if (axis->rank > 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "axis must be a scalar or a 1-D vector. Found rank %d",
                       axis->rank);
  if (shift->rank != axis->rank || shift->count != axis->count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "shift and axis must have the same size");
  }
  memset(shifts, 0, (size_t)in->rank * sizeof(*shifts));
  for (int64_t i = 0; i < axis->count; ++i) {
    const int32_t value = (int32_t)weir_tensor_int_at(axis, i);  // as TensorFlow takes both
    int64_t at = value < 0 ? value + in->rank : value;
    if (at < 0 || at >= in->rank) {
      return WEIR_STATUS(INVALID_ARGUMENT, "axis %d is out of range", (int)at);
    }
    int64_t size = WEIR_MAX(in->dims[at], 1);
    int64_t step = (int32_t)weir_tensor_int_at(shift, i) % size;
    shifts[at] = (shifts[at] + step + size) % size;
  }
  return NULL;
}

// Each rolled dimension falls into two parts that change places: a box for every choice of parts.
// |part|: one bit a rolled dimension, 0 the part that moves up.
static weir_status_t* move_part(weir_kernel_ctx_t* ctx, const weir_tensor_t* in,
                                const int64_t* shifts, uint64_t part, weir_tensor_t* out) {
  const weir_dtype_t dtype = weir_tensor_type(in);
  const size_t size = weir_dtype_size(dtype);
  weir_move_dim_t box[WEIR_MAX_RANK];
  int64_t src = 0, dst = 0;
  int rolled = 0;
  for (int i = 0; i < in->rank; ++i) box[i].size = in->dims[i];
  weir_move_contiguous_src(in->rank, box);
  weir_move_contiguous_dst(in->rank, box);
  for (int i = 0; i < in->rank; ++i) {
    if (shifts[i] == 0) continue;
    int64_t rest = in->dims[i] - shifts[i];
    if (part >> rolled++ & 1) {
      box[i].size = shifts[i];
      src += rest * box[i].src_stride;
    } else {
      box[i].size = rest;
      dst += shifts[i] * box[i].dst_stride;
    }
  }
  return weir_kernel_move_box(ctx, dtype, in->rank, box, (const char*)in->data + (size_t)src * size,
                              (char*)out->data + (size_t)dst * size);
}

static weir_status_t* roll(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  int64_t shifts[WEIR_MAX_RANK];
  WEIR_TRY(read_shifts(ctx, shifts));
  int rolled =
      0;  // each has two elements at least, so that 2^rolled does not exceed the element count
  for (int i = 0; i < in->rank; ++i) rolled += shifts[i] != 0;
  if ((rolled == 0 && !weir_tensor_is_variable(in)) || in->count == 0) {
    weir_kernel_pass(ctx, 0, 0);
    return NULL;
  }
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  for (uint64_t part = 0; part < (uint64_t)1 << rolled; ++part)
    WEIR_TRY(move_part(ctx, in, shifts, part, out));
  return NULL;
}

static weir_status_t* roll_grad(weir_grad_ctx_t* g) {  // dx = Roll(dy, -shift, axis)
  weir_edge_t back = weir_grad_neg(g, weir_grad_input(g, 1));
  return weir_grad_set(
      g, 0, weir_grad_node(g, "Roll", WEIR_EDGES(weir_grad_dy(g, 0), back, weir_grad_input(g, 2))));
}

const weir_op_module_t weir_ops_array_roll = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Roll",
         .attrs = "T: type; Tshift: {int32, int64}; Taxis: {int32, int64}",
         .inputs = "input: T; shift: Tshift; axis: Taxis",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW,
         .summary = "Rotates a tensor along axes.",
         .infer_shape = roll_shape,
         .build_grad = roll_grad,
         .kernels = WEIR_MOVE_KERNELS("T", .compute = roll, .host_inputs = "shift, axis")},
        {0}}};
