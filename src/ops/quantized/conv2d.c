// conv2d.c — QuantizedConv2D: convolutions of quantised images.
#include "kernel/conv/conv_op.h"
#include "kernel/conv/window.h"
#include "kernel/quantized/product.h"
#include "kernel/quantized/range.h"
#include "ops/quantized/common.h"

typedef struct state_t {
  int64_t stride;
  bool is_same;  // padding
} state_t;

static weir_status_t* check_rates(weir_attrs_t attrs) {
  const weir_attr_t* strides = weir_attrs_list(attrs, "strides");
  const weir_attr_t* dilations = weir_attrs_list(attrs, "dilations");
  const int64_t *s = strides->u.ints, *d = dilations->u.ints;
  const char* problem =
      strides->count != 4 ? "Sliding window strides field must specify 4 dimensions"
      : s[1] != s[2]
          ? "Current implementation only supports equal length strides in the row and column "
            "dimensions."
      : s[0] != 1 || s[3] != 1
          ? "Current implementation does not yet support strides in the batch and depth dimensions."
      : dilations->count != 4 ? "Dilations field must specify 4 dimensions"
      : d[1] != 1 || d[2] != 1
          ? "Current implementation only supports dilated rate as 1 in the row and column "
            "dimensions."
      : d[0] != 1 || d[3] != 1
          ? "Current implementation does not yet support dilations in the batch and depth "
            "dimensions."
          : NULL;
  return problem ? WEIR_STATUS(INVALID_ARGUMENT, "%s", problem) : NULL;
}

static weir_status_t* conv_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_conv_op_shape(ctx));
  WEIR_TRY(check_rates(weir_shape_attrs(ctx)));
  return quantized_bounds_shape(ctx, 2, 5);
}

static weir_status_t* conv_init(const weir_kernel_init_t* init, void* state) {
  state_t* self = state;
  const weir_attrs_t attrs = init->node->attrs;
  WEIR_TRY(check_rates(attrs));
  self->stride = weir_attrs_list(attrs, "strides")->u.ints[1];
  self->is_same = weir_view_is(weir_attrs_string(attrs, "padding"), "SAME");
  return NULL;
}

static weir_status_t* check_rank(const weir_kernel_ctx_t* ctx, int i, const char* name, int rank) {
  const int actual = weir_kernel_input(ctx, i)->rank;
  if (actual == rank) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s must be rank %d but is rank %d", name, rank, actual);
}

static weir_status_t* check_inputs(const weir_kernel_ctx_t* ctx, int64_t stride) {
  static const char* const names[] = {"input",     "filter",     "min_input",
                                      "max_input", "min_filter", "max_filter"};
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *filter = weir_kernel_input(ctx, 1);
  if (in->count == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid input: Shapes dimension cannot be 0.");
  for (int i = 0; i < 6; ++i) WEIR_TRY(check_rank(ctx, i, names[i], i < 2 ? 4 : 0));
  if (in->dims[3] != filter->dims[2]) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input and filter must have the same depth: %lld vs %lld",
                       (long long)in->dims[3], (long long)filter->dims[2]);
  }
  if (filter->count == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "filter patch must contain at least one element");
  if (stride > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Stride must be > 0, but got %lld", (long long)stride);
}

// How many windows there are along an axis, and how far the first begins before the image. What
// does not divide is shared among both ends, with VALID padding too.
static weir_status_t* place_windows(const state_t* self, int64_t in, int64_t filter,
                                    int64_t* out_size, int64_t* out_before) {
  const int64_t s = self->stride;
  const int64_t size = self->is_same ? in / s + (in % s != 0)
                       : in < filter ? 0
                                     : (in - filter) / s + 1;
  if (size <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Computed output size would be negative: a filter of size %lld is larger "
                       "than the input of size %lld",
                       (long long)filter, (long long)in);
  }
  *out_size = size;
  *out_before = ((size - 1) * s + filter - in + (self->is_same ? 0 : 1)) / 2;
  return NULL;
}

static weir_status_t* find_geometry(const weir_kernel_ctx_t* ctx, weir_quantized_conv_t* c) {
  const state_t* self = ctx->state;
  const weir_tensor_t *in = weir_kernel_input(ctx, 0), *filter = weir_kernel_input(ctx, 1);
  WEIR_TRY(check_inputs(ctx, self->stride));
  *c = (weir_quantized_conv_t){.input = {.data = in->data},
                               .filter = {.data = filter->data},
                               .batch = in->dims[0],
                               .in_h = in->dims[1],
                               .in_w = in->dims[2],
                               .in_depth = in->dims[3],
                               .filter_h = filter->dims[0],
                               .filter_w = filter->dims[1],
                               .out_depth = filter->dims[3],
                               .stride = self->stride};
  WEIR_TRY(place_windows(self, c->in_h, c->filter_h, &c->out_h, &c->top));
  return place_windows(self, c->in_w, c->filter_w, &c->out_w, &c->left);
}

static weir_status_t* conv_cpu(weir_kernel_ctx_t* ctx) {
  weir_quantized_conv_t c;
  weir_tensor_t* out = NULL;
  float b[4], min = 0, max = 0;
  WEIR_TRY(find_geometry(ctx, &c));
  for (int i = 0; i < 4; ++i) b[i] = *WEIR_TENSOR_DATA(weir_kernel_input(ctx, i + 2), float);
  c.input.offset = (int32_t)weir_float_to_quantized_free(WEIR_DTYPE_QUINT8, 0, b[0], b[1]);
  c.filter.offset = (int32_t)weir_float_to_quantized_free(WEIR_DTYPE_QUINT8, 0, b[2], b[3]);
  const int64_t dims[4] = {c.batch, c.out_h, c.out_w, c.out_depth};
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  WEIR_TRY(weir_quantized_conv(weir_kernel_pool(ctx), &c, out->data));
  weir_quantized_product_range(WEIR_DTYPE_QUINT8, b[0], b[1], WEIR_DTYPE_QUINT8, b[2], b[3],
                               WEIR_DTYPE_QINT32, &min, &max);
  return quantized_set_bounds(ctx, min, max);
}

const weir_op_module_t weir_ops_quantized_conv2d = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "QuantizedConv2D",
         .summary = "Convolution of quantised images by a quantised filter",
         .attrs = "Tinput: quantizedtype; Tfilter: quantizedtype; out_type: quantizedtype = "
                  "DT_QINT32; strides: list(int); padding: {'SAME','VALID'}; dilations: list(int) "
                  "= [1, 1, 1, 1]",
         .inputs = "input: Tinput; filter: Tfilter; min_input: float; max_input: float; "
                   "min_filter: float; max_filter: float",
         .outputs = "output: out_type; min_output: float; max_output: float",
         .infer_shape = conv_shape,
         .kernels = WEIR_CPU_KERNEL(.types = "Tinput: quint8; Tfilter: quint8; out_type: qint32",
                                    .compute = conv_cpu, .init = conv_init,
                                    .state_size = sizeof(state_t))},
        {0}}};
