// reshape.c — Reshape, QuantizedReshape, ExpandDims, Squeeze: other shapes for the same memory.
#include "ops/array/common.h"

static weir_status_t* set_view(weir_kernel_ctx_t* ctx, int rank, const int64_t* dims) {
  weir_tensor_t* view = NULL;
  WEIR_TRY(weir_tensor_reshape(ctx->inputs[0].tensor, rank, dims, &view));
  weir_kernel_set(ctx, 0, view);
  return NULL;
}

// ---- Reshape ----

// Product of the known dimensions of |shape|; |out_unknown|: how many are not, and the last of
// them.
static int64_t known_product(const weir_shape_t* shape, int* out_unknown, int* out_last) {
  int64_t product = 1;
  *out_unknown = 0;
  for (int i = 0; i < shape->rank; ++i) {
    if (shape->dims[i] < 0) {
      ++*out_unknown;
      *out_last = i;
    } else if (__builtin_mul_overflow(product, shape->dims[i], &product)) {
      return -1;
    }
  }
  return product;
}

static weir_status_t* reshape_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  const weir_shape_t* out = NULL;
  WEIR_TRY(weir_shape_from_value(ctx, 1, &out));
  if (ctx->output_handles) ctx->output_handles[0] = ctx->input_handles[0];
  if (out->rank < 0) return weir_shape_set(ctx, 0, out);
  int in_unknown = 0, out_unknown = 0, last = 0, in_last = 0;
  int64_t out_product = known_product(out, &out_unknown, &last);
  if (in->rank < 0 || out_product < 0) return weir_shape_set(ctx, 0, out);
  int64_t in_product = known_product(in, &in_unknown, &in_last);
  if (in_product < 0 || in_unknown > 0 || out_unknown > 1) return weir_shape_set(ctx, 0, out);
  if (out_unknown == 0 || out_product == 0) {
    if (in_product != out_product) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Cannot reshape a tensor with %lld elements to a shape with %lld elements",
                         (long long)in_product, (long long)out_product);
    }
    return weir_shape_set(ctx, 0, out);
  }
  if (in_product % out_product != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Dimension size must be evenly divisible by %lld but is %lld",
                       (long long)out_product, (long long)in_product);
  }
  int64_t dims[WEIR_MAX_RANK];
  for (int i = 0; i < out->rank; ++i) dims[i] = i == last ? in_product / out_product : out->dims[i];
  return weir_shape_set_dims(ctx, 0, out->rank, dims);
}

typedef struct sizes_t {
  int rank;
  int unknown;  // the place of -1; -1: none
  bool has_zero;
  int64_t product;  // of the sizes that are neither -1 nor 0
  int64_t dims[WEIR_MAX_RANK];
} sizes_t;

static weir_status_t* read_sizes(const weir_tensor_t* sizes, sizes_t* out) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (sizes->rank > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "sizes input must be 1-D, not %s",
                       weir_tensor_shape_text(sizes, text));
  }
  if (sizes->count > WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT, "too many dimensions: must be < %d, but received %lld",
                       WEIR_MAX_RANK, (long long)sizes->count);
  }
  *out = (sizes_t){.rank = (int)sizes->count, .unknown = -1, .product = 1};
  for (int i = 0; i < out->rank; ++i) {
    int64_t size = weir_tensor_int_at(sizes, i);
    out->dims[i] = size;
    if (size == -1) {
      if (out->unknown >= 0) {
        return WEIR_STATUS(INVALID_ARGUMENT, "Only one input size may be -1, not both %d and %d",
                           out->unknown, i);
      }
      out->unknown = i;
    } else if (size < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Size %d must be non-negative, not %lld", i,
                         (long long)size);
    } else if (size == 0) {
      out->has_zero = true;
    } else if (__builtin_mul_overflow(out->product, size, &out->product)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Shape %s is too large",
                         weir_shape_text(i + 1, out->dims, text));
    }
  }
  return NULL;
}

// The size that -1 stands for. Beside a size of zero it is found from the input's dimensions that
// are not zero.
static weir_status_t* infer_size(const weir_tensor_t* in, sizes_t* sizes) {
  int64_t count = 1;
  bool ignored_zero = false;
  for (int i = 0; i < in->rank; ++i) {
    if (in->dims[i] > 0 || !sizes->has_zero) {
      count *= in->dims[i];
    } else {
      ignored_zero = true;
    }
  }
  int64_t missing = count / sizes->product;
  if (!ignored_zero && missing * sizes->product != count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input to reshape is a tensor with %lld values, but the requested shape "
                       "requires a multiple of "
                       "%lld",
                       (long long)count, (long long)sizes->product);
  }
  sizes->dims[sizes->unknown] = missing;
  return NULL;
}

static weir_status_t* reshape_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  sizes_t sizes;
  WEIR_TRY(read_sizes(weir_kernel_input(ctx, 1), &sizes));
  if (sizes.unknown >= 0) WEIR_TRY(infer_size(in, &sizes));
  int64_t count = 0;
  WEIR_TRY(weir_shape_count(weir_tensor_type(in), sizes.rank, sizes.dims, &count));
  if (count != in->count) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Input to reshape is a tensor with %lld values, but the requested shape has %lld",
        (long long)in->count, (long long)count);
  }
  return set_view(ctx, sizes.rank, sizes.dims);
}

// ---- QuantizedReshape: the same, and the bounds of the range passed on ----

static weir_status_t* quantized_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(reshape_shape(ctx));
  for (int i = 2; i < 4; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  WEIR_TRY(weir_shape_set_scalar(ctx, 1));
  return weir_shape_set_scalar(ctx, 2);
}

static weir_status_t* quantized_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(reshape_cpu(ctx));
  for (int i = 2; i < 4; ++i) {
    const weir_tensor_t* bound = weir_kernel_input(ctx, i);
    weir_tensor_t* out = NULL;
    if (bound->rank > 1 || bound->count != 1) {
      return WEIR_STATUS(INVALID_ARGUMENT, "input_%s must be a scalar or a vector of 1 element",
                         i == 2 ? "min" : "max");
    }
    WEIR_TRY(weir_kernel_output(ctx, i - 1, 0, NULL, &out));
    *WEIR_TENSOR_DATA(out, float) = *WEIR_TENSOR_DATA(bound, float);
  }
  return NULL;
}

// ---- ExpandDims ----

static weir_status_t* expand_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  const weir_shape_t* dim_shape = weir_shape_input(ctx, 1);
  if (weir_shape_is_full(dim_shape)) {
    int64_t count = 1;
    for (int i = 0; i < dim_shape->rank; ++i) count *= dim_shape->dims[i];
    if (count != 1) {
      return WEIR_STATUS(INVALID_ARGUMENT, "'dim' input must be a tensor with a single value");
    }
  }
  array_ints_t dim;
  array_input_ints(ctx, 1, &dim);
  if (!dim.is_exact || dim.count != 1 || in->rank < 0)
    return weir_shape_set(ctx, 0, &weir_shape_unknown);
  int64_t axis = dim.values[0];
  if (axis < -1 - in->rank || axis > in->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "dim %lld not in the interval [%d, %d].", (long long)axis,
                       -1 - in->rank, in->rank);
  }
  if (axis < 0) axis += in->rank + 1;
  int64_t dims[WEIR_MAX_RANK + 1];
  for (int i = 0; i <= in->rank; ++i)
    dims[i] = i < axis ? in->dims[i] : i == axis ? 1 : in->dims[i - 1];
  WEIR_TRY(weir_shape_set_dims(ctx, 0, in->rank + 1, dims));
  return in->rank == 0 ? array_pass_value(ctx, 0, 0) : NULL;
}

static weir_status_t* expand_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_tensor_t* dim = weir_kernel_input(ctx, 1);
  if (dim->count != 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "'dim' must be a tensor with a single value");
  int64_t axis = weir_tensor_int_at(dim, 0);
  if (axis < -1 - in->rank || axis > in->rank || in->rank == WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Tried to expand dim index %lld for tensor with %d dimensions.",
                       (long long)axis, in->rank);
  }
  if (axis < 0) axis += in->rank + 1;
  int64_t dims[WEIR_MAX_RANK];
  for (int i = 0; i <= in->rank; ++i)
    dims[i] = i < axis ? in->dims[i] : i == axis ? 1 : in->dims[i - 1];
  return set_view(ctx, in->rank + 1, dims);
}

// ---- Squeeze ----

// Marks the dimensions the attribute names.
static weir_status_t* squeeze_marks(weir_attrs_t attrs, int rank, bool* marks, bool* out_any) {
  const weir_attr_t* list = weir_attrs_list(attrs, "squeeze_dims");
  memset(marks, 0, (size_t)rank * sizeof(bool));
  *out_any = list->count > 0;
  for (size_t i = 0; i < list->count; ++i) {
    int64_t dim = list->u.ints[i];
    if (dim < -rank || dim >= rank) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Tried to squeeze dim index %lld for tensor with %d dimensions: "
                         "squeeze_dims[%zu] not in [%d,%d).",
                         (long long)dim, rank, i, -rank, rank);
    }
    marks[dim < 0 ? dim + rank : dim] = true;
  }
  return NULL;
}

// -1 when a dimension that decides the rank is not known. Unknown dimensions that are named are
// taken to be 1.
static weir_status_t* squeeze_dims(weir_attrs_t attrs, int rank, const int64_t* dims,
                                   int64_t* out_dims, int* out_rank) {
  bool marks[WEIR_MAX_RANK];
  bool any = false;
  WEIR_TRY(squeeze_marks(attrs, rank, marks, &any));
  int n = 0;
  for (int i = 0; i < rank; ++i) {
    if (marks[i]) {
      if (dims[i] != 1 && dims[i] != -1) {
        return WEIR_STATUS(INVALID_ARGUMENT,
                           "Can not squeeze dim[%d], expected a dimension of 1, got %lld", i,
                           (long long)dims[i]);
      }
    } else if (!any && dims[i] < 0) {
      *out_rank = -1;
      return NULL;
    } else if (any || dims[i] != 1) {
      out_dims[n++] = dims[i];
    }
  }
  *out_rank = n;
  return NULL;
}

static weir_status_t* squeeze_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK];
  int rank = -1;
  if (in->rank >= 0) WEIR_TRY(squeeze_dims(weir_shape_attrs(ctx), in->rank, in->dims, dims, &rank));
  if (rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  WEIR_TRY(weir_shape_set_dims(ctx, 0, rank, dims));
  return in->rank <= 1 ? array_pass_value(ctx, 0, 0) : NULL;
}

static weir_status_t* squeeze_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  WEIR_TRY(squeeze_dims(weir_kernel_attrs(ctx), in->rank, in->dims, dims, &rank));
  return set_view(ctx, rank, dims);
}

const weir_op_module_t weir_ops_array_reshape = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Reshape",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type; Tshape: {int32, int64} = DT_INT32",
         .inputs = "tensor: T; shape: Tshape",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW | WEIR_OP_CHEAP,
         .summary = "Gives a tensor another shape of as many elements; one size may be -1.",
         .infer_shape = reshape_shape,
         .build_grad = array_grad_reshape,
         .simplify = array_simplify_same,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = reshape_cpu, .host_inputs = "shape")},
        {.name = "QuantizedReshape",
         .attrs = "T: type; Tshape: {int32, int64} = DT_INT32",
         .inputs = "tensor: T; shape: Tshape; input_min: float; input_max: float",
         .outputs = "output: T; output_min: float; output_max: float",
         .flags = WEIR_OP_VIEW | WEIR_OP_CHEAP,
         .summary = "Gives a quantised tensor another shape",
         .infer_shape = quantized_shape,
         .kernels = WEIR_CPU_KERNEL(.types = "T: quint8, qint32", .compute = quantized_cpu,
                                    .host_inputs = "shape")},
        {.name = "ExpandDims",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type; Tdim: {int32, int64} = DT_INT32",
         .inputs = "input: T; dim: Tdim",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW | WEIR_OP_CHEAP,
         .summary = "Inserts a dimension of size 1.",
         .infer_shape = expand_shape,
         .build_grad = array_grad_reshape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = expand_cpu, .host_inputs = "dim")},
        {.name = "Squeeze",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type; squeeze_dims: list(int) >= 0 = []",
         .inputs = "input: T",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW | WEIR_OP_CHEAP,
         .summary = "Removes dimensions of size 1.",
         .infer_shape = squeeze_shape,
         .build_grad = array_grad_reshape,
         .simplify = array_simplify_same,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = squeeze_cpu)},
        {0}}};
