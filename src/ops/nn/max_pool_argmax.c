// max_pool_argmax.c — MaxPoolWithArgmax and its gradients.
#include "kernel/conv/window.h"
#include "kernel/move/staging.h"
#include "op/grad_ctx.h"

#define REAL_TYPES \
  "float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64"
#define POOL_ATTRS "ksize: list(int) >= 4; strides: list(int) >= 4; "
#define GRAD_ATTRS                                                    \
  POOL_ATTRS                                                          \
  "padding: {'SAME','VALID'}; include_batch_in_index: bool = false; " \
  "Targmax: {int32, int64}; T: {" REAL_TYPES "}"

// As the shape functions read it, which take positive sizes alone.
static weir_status_t* read_shape_window(weir_shape_ctx_t* ctx, weir_window_t* out_window) {
  const weir_attr_t* ksize = weir_attrs_list(weir_shape_attrs(ctx), "ksize");
  WEIR_TRY(weir_window_read_pool_shape(weir_shape_attrs(ctx), "MaxPool", out_window));
  for (size_t i = 0; i < ksize->count; ++i) {
    if (ksize->u.ints[i] > 0) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "ksize must be a positive int32 value, got:%lld",
                       (long long)ksize->u.ints[i]);
  }
  return NULL;
}

static weir_status_t* argmax_shape(weir_shape_ctx_t* ctx) {
  weir_window_t w;
  WEIR_TRY(read_shape_window(ctx, &w));
  WEIR_TRY(weir_window_pool_shape(ctx, &w));
  return weir_shape_set(ctx, 1, ctx->output_shapes[0]);
}

static weir_status_t* grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &in));
  return weir_shape_set(ctx, 0, in);
}

static weir_status_t* grad_grad_shape(weir_shape_ctx_t* ctx) {
  weir_window_t w;
  WEIR_TRY(read_shape_window(ctx, &w));
  return weir_window_pool_shape(ctx, &w);
}

static weir_status_t* argmax_grad(weir_grad_ctx_t* g) {
  weir_edges_t inputs =
      WEIR_EDGES(weir_grad_input(g, 0), weir_grad_dy(g, 0), weir_grad_output(g, 1));
  return weir_grad_set(
      g, 0,
      weir_grad_node_like(g, "MaxPoolGradWithArgmax", inputs,
                          WEIR_NAMES("ksize", "strides", "padding", "include_batch_in_index")));
}

static weir_status_t* pool_init(const weir_kernel_init_t* init, void* state) {
  weir_window_t* w = state;
  WEIR_TRY(weir_window_read_pool_attrs(init->node->attrs, w));
  WEIR_TRY(weir_window_check_pool_sizes(w));
  return weir_window_check_pool_batch(w);
}

// Of images, along height and width alone.
static weir_status_t* find_pool(const weir_window_t* w, const weir_tensor_t* in,
                                weir_pool2d_t* out_pool) {
  WEIR_TRY(weir_window_check_pool_input(in));
  WEIR_TRY(weir_window_check_pool_depth(w, in->dims[3]));
  if (w->depth_size != 1) {
    return WEIR_STATUS(UNIMPLEMENTED, "Depthwise max pooling with argmax is not supported");
  }
  return weir_window_pool2d(w, in->dims, out_pool);
}

// Image offsets become offsets into the batch, in the type asked for.
static void write_argmax(const int64_t* from, const weir_pool2d_t* p, bool has_batch,
                         weir_tensor_t* to) {
  int64_t image_out = p->out_h * p->out_w * p->channels, image_in = p->in_h * p->in_w * p->channels;
  for (int64_t i = 0; i < to->count; ++i) {
    int64_t value = from[i] + (has_batch ? i / image_out * image_in : 0);
    if (to->dtype == WEIR_DTYPE_INT32) {
      WEIR_TENSOR_DATA(to, int32_t)[i] = (int32_t)value;
    } else {
      WEIR_TENSOR_DATA(to, int64_t)[i] = value;
    }
  }
}

static weir_status_t* argmax_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_staged_t x = {0}, y = {0};
  weir_tensor_t *out, *argmax, *offsets = NULL;
  weir_pool2d_t p;
  WEIR_TRY(weir_window_check_pool_stride(ctx->state));
  if (in->rank != 4) return WEIR_STATUS(INVALID_ARGUMENT, "tensor_in must be 4-dimensional (2)");
  if (in->count == 0) return WEIR_STATUS(INVALID_ARGUMENT, "tensor_in must not be empty (2)");
  WEIR_TRY(find_pool(ctx->state, in, &p));
  const int64_t dims[4] = {p.batch, p.out_h, p.out_w, p.channels};
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  WEIR_TRY(weir_kernel_output(ctx, 1, 4, dims, &argmax));
  weir_status_t* status = weir_stage_input(ctx, in, false, &x);
  if (!status) status = weir_stage_output(ctx, out, false, &y);
  if (!status) status = weir_kernel_scratch(ctx, WEIR_DTYPE_INT64, out->count, &offsets);
  if (status) goto done;
  status = weir_max_pool2d_argmax(weir_kernel_pool(ctx), weir_compute_type(weir_tensor_type(in)),
                                  &p, x.data, y.data, offsets->data);
  if (status) goto done;
  write_argmax(offsets->data, &p, weir_attrs_bool(weir_kernel_attrs(ctx), "include_batch_in_index"),
               argmax);
  status = weir_stage_finish(ctx, out, false, &y);
done:
  weir_tensor_release(offsets);
  weir_staged_release(&x);
  weir_staged_release(&y);
  return status;
}

// The element of the input that output element |i| took, or -1 when the index is none.
static int64_t source_of(const weir_tensor_t* argmax, const weir_pool2d_t* p, bool has_batch,
                         int64_t i, int64_t limit) {
  int64_t at = weir_tensor_int_at(argmax, i);
  if (!has_batch) at += i / (p->out_h * p->out_w * p->channels) * (p->in_h * p->in_w * p->channels);
  return at >= 0 && at < limit ? at : -1;
}

static void add_at(weir_dtype_t dtype, void* sum, int64_t to, const void* values, int64_t from) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: ((float*)sum)[to] += ((const float*)values)[from]; break;
    case WEIR_DTYPE_DOUBLE: ((double*)sum)[to] += ((const double*)values)[from]; break;
    case WEIR_DTYPE_INT8:
    case WEIR_DTYPE_UINT8: {
      uint8_t* s = (uint8_t*)sum + to;
      *s = (uint8_t)(*s + ((const uint8_t*)values)[from]);
      break;
    }
    case WEIR_DTYPE_INT16:
    case WEIR_DTYPE_UINT16: {
      uint16_t* s = (uint16_t*)sum + to;
      *s = (uint16_t)(*s + ((const uint16_t*)values)[from]);
      break;
    }
    case WEIR_DTYPE_INT32:
    case WEIR_DTYPE_UINT32: ((uint32_t*)sum)[to] += ((const uint32_t*)values)[from]; break;
    default: ((uint64_t*)sum)[to] += ((const uint64_t*)values)[from]; break;
  }
}

static weir_status_t* grad_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *grad = weir_kernel_input(ctx, 1);
  const weir_tensor_t* argmax = weir_kernel_input(ctx, 2);
  weir_staged_t dy = {0}, dx = {0};
  weir_tensor_t* out;
  weir_pool2d_t p;
  WEIR_TRY(find_pool(ctx->state, in, &p));
  const int64_t dims[4] = {p.batch, p.out_h, p.out_w, p.channels};
  WEIR_TRY(weir_window_expect_pooled(grad, dims, "grad"));
  WEIR_TRY(weir_window_expect_pooled(argmax, dims, "argmax"));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, in->dims, &out));
  weir_dtype_t compute = weir_compute_type(weir_tensor_type(grad));
  bool has_batch = weir_attrs_bool(weir_kernel_attrs(ctx), "include_batch_in_index");
  weir_status_t* status = weir_stage_input(ctx, grad, false, &dy);
  if (!status) status = weir_stage_output(ctx, out, false, &dx);
  if (status) goto done;
  if (out->count > 0) memset(dx.data, 0, (size_t)out->count * weir_dtype_size(compute));
  for (int64_t i = 0; i < grad->count; ++i) {
    int64_t at = source_of(argmax, &p, has_batch, i, out->count);
    if (at < 0) {
      status =
          WEIR_STATUS(INVALID_ARGUMENT, "Index %lld of argmax is out of the input's %lld elements",
                      (long long)weir_tensor_int_at(argmax, i), (long long)out->count);
      goto done;
    }
    add_at(compute, dx.data, at, dy.data, i);
  }
  status = weir_stage_finish(ctx, out, false, &dx);
done:
  weir_staged_release(&dy);
  weir_staged_release(&dx);
  return status;
}

const weir_op_module_t weir_ops_nn_max_pool_argmax = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "MaxPoolWithArgmax",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "Maxima of sliding windows and where they are",
         .attrs = POOL_ATTRS "Targmax: {int32, int64} = DT_INT64; padding: {'SAME','VALID'}; "
                             "include_batch_in_index: bool = false; T: {" REAL_TYPES "}",
         .inputs = "input: T",
         .outputs = "output: T; argmax: Targmax",
         .infer_shape = argmax_shape,
         .build_grad = argmax_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = argmax_cpu, .init = pool_init,
                                    .state_size = sizeof(weir_window_t))},
        {.name = "MaxPoolGradWithArgmax",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "Gradient of MaxPoolWithArgmax",
         .attrs = GRAD_ATTRS,
         .inputs = "input: T; grad: T; argmax: Targmax",
         .outputs = "output: T",
         .infer_shape = grad_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = grad_cpu, .init = pool_init,
                                    .state_size = sizeof(weir_window_t))},
        {.name = "MaxPoolGradGradWithArgmax",
         .summary = "Second-order gradient of MaxPoolWithArgmax",
         .attrs = GRAD_ATTRS,
         .inputs = "input: T; grad: T; argmax: Targmax",
         .outputs = "output: T",
         .infer_shape = grad_grad_shape},
        {0}}};
