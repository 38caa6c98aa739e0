// mirror_pad.c — MirrorPad and MirrorPadGrad: a border that mirrors the tensor.
#include "kernel/cuda/source.h"
#include "kernel/elementwise/element_add.h"
#include "ops/array/common.h"

// What the paddings and the mode mean for one pair of shapes: |inner| lies within |outer|.
typedef struct mirror_t {
  int rank;
  int64_t offset;  // 0: the edge is repeated (SYMMETRIC), 1: it is not (REFLECT)
  int64_t before[WEIR_MAX_RANK];
  int64_t after[WEIR_MAX_RANK];
  int64_t inner[WEIR_MAX_RANK];
  int64_t outer[WEIR_MAX_RANK];
  int64_t strides[WEIR_MAX_RANK];  // of outer
} mirror_t;

static int64_t mode_offset(weir_attrs_t attrs) {
  return weir_view_is(weir_attrs_string(attrs, "mode"), "REFLECT") ? 1 : 0;
}

// ---- shapes ----

static weir_status_t* mirror_shape(weir_shape_ctx_t* ctx, int sign) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  const weir_shape_t* paddings = NULL;
  const weir_tensor_t* value = weir_shape_value(ctx, 1);
  int64_t dims[WEIR_MAX_RANK];
  int64_t two = 0;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 2, &paddings));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(paddings, 1), 2, &two));
  int64_t rank = weir_shape_dim(paddings, 0);
  if (in->rank >= 0) {
    if (rank >= 0) WEIR_TRY(weir_shape_with_rank(ctx, in, (int)rank, NULL));
    rank = in->rank;
  }
  if (rank < 0 || rank > WEIR_MAX_RANK) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  for (int64_t i = 0; value && i < value->count; ++i) {
    if (weir_tensor_int_at(value, i) >= 0) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Paddings must be non-negative");
  }
  for (int i = 0; i < rank; ++i) {
    dims[i] = -1;
    if (!value || value->count != 2 * rank || in->rank < 0 || in->dims[i] < 0) continue;
    int64_t both = weir_tensor_int_at(value, 2 * i) + weir_tensor_int_at(value, 2 * i + 1);
    dims[i] = in->dims[i] + sign * both;
    if (dims[i] < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Negative dimension size caused by subtracting %lld from %lld",
                         (long long)both, (long long)in->dims[i]);
    }
  }
  return weir_shape_set_dims(ctx, 0, (int)rank, dims);
}

static weir_status_t* mirror_pad_shape(weir_shape_ctx_t* ctx) { return mirror_shape(ctx, 1); }
static weir_status_t* mirror_pad_grad_shape(weir_shape_ctx_t* ctx) { return mirror_shape(ctx, -1); }

// ---- kernels ----

// |sign| 1: the input is the inner shape; -1: the outer one.
static weir_status_t* read_mirror(const weir_kernel_ctx_t* ctx, int sign, mirror_t* m) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_tensor_t* paddings = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE], own[WEIR_SHAPE_TEXT_SIZE];
  m->rank = in->rank;
  m->offset = mode_offset(weir_kernel_attrs(ctx));
  if (paddings->rank != 2 || paddings->dims[1] != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "paddings must be a matrix with 2 columns: %s",
                       weir_tensor_shape_text(paddings, text));
  }
  if (paddings->dims[0] != in->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The first dimension of paddings must be the rank of inputs: %s %s",
                       weir_tensor_shape_text(paddings, text), weir_tensor_shape_text(in, own));
  }
  for (int i = 0; i < in->rank; ++i) {
    int64_t before = weir_tensor_int_at(paddings, 2 * i),
            after = weir_tensor_int_at(paddings, 2 * i + 1);
    m->before[i] = before;
    m->after[i] = after;
    if (before < 0 || after < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Paddings must be non-negative: %lld, %lld",
                         (long long)before, (long long)after);
    }
    m->inner[i] = sign > 0 ? in->dims[i] : in->dims[i] - before - after;
    m->outer[i] = sign > 0 ? in->dims[i] + before + after : in->dims[i];
    if (m->inner[i] < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Total paddings must be less than the input dimension size: %lld was not "
                         "less than %lld",
                         (long long)(before + after), (long long)in->dims[i]);
    }
    int64_t limit = m->inner[i] - m->offset;
    if (before > limit || after > limit) {
      return WEIR_STATUS(
          INVALID_ARGUMENT, "paddings must be %s the %sdimension size: %lld, %lld not %s %lld",
          m->offset ? "less than" : "no greater than", sign > 0 ? "" : "output ", (long long)before,
          (long long)after, m->offset ? "less than" : "no greater than", (long long)m->inner[i]);
    }
  }
  int64_t stride = 1;
  for (int i = in->rank - 1; i >= 0; --i) {
    m->strides[i] = stride;
    stride *= m->outer[i];
  }
  return NULL;
}

// The slab of one side of the border along |axis|: dimensions before it span the inner tensor,
// those after it all of outer. The border's place j runs outwards (dst), its mirror image inwards
// (src). Returns false when there is no border.
static bool border(const mirror_t* m, int axis, bool is_after, weir_move_dim_t* dims,
                   int64_t* out_src, int64_t* out_dst) {
  int64_t size = is_after ? m->after[axis] : m->before[axis];
  int64_t start = 0;
  for (int i = 0; i < m->rank; ++i) {
    dims[i].size = i < axis ? m->inner[i] : m->outer[i];
    dims[i].src_stride = m->strides[i];
    dims[i].dst_stride = m->strides[i];
    if (i < axis) start += m->before[i] * m->strides[i];
  }
  int64_t stride = m->strides[axis], first = m->before[axis], last = first + m->inner[axis] - 1;
  dims[axis].size = size;
  dims[axis].src_stride = is_after ? -stride : stride;
  dims[axis].dst_stride = is_after ? stride : -stride;
  *out_src = start + (is_after ? last - m->offset : first + m->offset) * stride;
  *out_dst = start + (is_after ? last + 1 : first - 1) * stride;
  return size > 0;
}

// The inner tensor within outer: strides of outer in src_stride, packed ones in dst_stride.
static int64_t inner_box(const mirror_t* m, weir_move_dim_t* dims) {
  int64_t offset = 0;
  for (int i = 0; i < m->rank; ++i) {
    dims[i].size = m->inner[i];
    dims[i].src_stride = m->strides[i];
    offset += m->before[i] * m->strides[i];
  }
  weir_move_contiguous_dst(m->rank, dims);
  return offset;
}

static weir_status_t* mirror_pad(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_tensor_type(in);
  const int64_t size = (int64_t)weir_dtype_size(dtype);
  mirror_t m;
  weir_move_dim_t dims[WEIR_MAX_RANK];
  weir_tensor_t* out = NULL;
  WEIR_TRY(read_mirror(ctx, 1, &m));
  WEIR_TRY(weir_kernel_output(ctx, 0, m.rank, m.outer, &out));
  if (out->count == 0) return NULL;
  if (weir_move_gpu(ctx)) {
    weir_move_border_t border = {.offset = m.offset};
    memcpy(border.before, m.before, (size_t)m.rank * sizeof(*m.before));
    return weir_gpu_move_border(ctx, in, &border, out);
  }
  char* data = out->data;
  int64_t offset = inner_box(&m, dims);
  for (int i = 0; i < m.rank; ++i) {
    int64_t stride = dims[i].src_stride;
    dims[i].src_stride = dims[i].dst_stride;
    dims[i].dst_stride = stride;
  }
  WEIR_TRY(weir_kernel_move_box(ctx, dtype, m.rank, dims, in->data, data + offset * size));
  for (int axis = m.rank - 1; axis >= 0; --axis) {
    for (int side = 0; side < 2; ++side) {
      int64_t src = 0, dst = 0;
      if (!border(&m, axis, side == 1, dims, &src, &dst)) continue;
      WEIR_TRY(
          weir_kernel_move_box(ctx, dtype, m.rank, dims, data + src * size, data + dst * size));
    }
  }
  return NULL;
}

// Adds the border (dst of the slab) onto its mirror image, a run of the last dimension at a time
// where that is whole.
static void fold(const mirror_t* m, weir_element_add_fn_t add, int64_t size,
                 const weir_move_dim_t* dims, char* image, const char* edge) {
  int64_t index[WEIR_MAX_RANK] = {0};
  int last = m->rank - 1;
  bool by_row = dims[last].src_stride == 1 && dims[last].dst_stride == 1;
  int64_t run = by_row ? dims[last].size : 1;
  for (;;) {
    int64_t src = 0, dst = 0;
    for (int i = 0; i < m->rank; ++i) {
      src += index[i] * dims[i].src_stride;
      dst += index[i] * dims[i].dst_stride;
    }
    add(image + src * size, edge + dst * size, run);
    int i = by_row ? last - 1 : last;
    for (; i >= 0; --i) {
      if (++index[i] < dims[i].size) break;
      index[i] = 0;
    }
    if (i < 0) return;
  }
}

static bool is_empty(const mirror_t* m, const weir_move_dim_t* dims) {
  for (int i = 0; i < m->rank; ++i) {
    if (dims[i].size == 0) return true;
  }
  return false;
}

static weir_status_t* fold_all(weir_kernel_ctx_t* ctx, const mirror_t* m, weir_tensor_t* work,
                               weir_tensor_t* out) {
  const weir_dtype_t dtype = weir_tensor_type(work);
  const int64_t size = (int64_t)weir_dtype_size(dtype);
  weir_element_add_fn_t add = weir_element_add_fn(dtype);
  weir_move_dim_t dims[WEIR_MAX_RANK];
  char* data = work->data;
  if (!add)
    return WEIR_STATUS(INVALID_ARGUMENT, "elements of type %s cannot be added",
                       weir_dtype_name(dtype));
  for (int axis = 0; axis < m->rank; ++axis) {
    for (int side = 0; side < 2; ++side) {
      int64_t src = 0, dst = 0;
      if (!border(m, axis, side == 1, dims, &src, &dst) || is_empty(m, dims)) continue;
      fold(m, add, size, dims, data + src * size, data + dst * size);
    }
  }
  int64_t offset = inner_box(m, dims);
  return weir_kernel_move_box(ctx, dtype, m->rank, dims, data + offset * size, out->data);
}

static weir_status_t* mirror_pad_grad_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  mirror_t m;
  weir_tensor_t* out = NULL;
  weir_tensor_t* work = NULL;
  WEIR_TRY(read_mirror(ctx, -1, &m));
  WEIR_TRY(weir_kernel_output(ctx, 0, m.rank, m.inner, &out));
  if (out->count == 0) return NULL;
  WEIR_TRY(weir_tensor_copy(in, &work));
  weir_status_t* status = fold_all(ctx, &m, work, out);
  weir_tensor_release(work);
  return status;
}

// ---- GPU ----

WEIR_CUDA_SOURCE(fold);
static weir_status_t* mirror_pad_grad_gpu_init(const weir_kernel_init_t* init, void* state) {
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text, "#define T %s\n",
                     weir_cuda_type_name(weir_dtype_base(init->node->output_types[0])));
  return weir_cuda_build(init->device, &text, weir_cuda_source_fold, "fold_border", state);
}

// fold_t of fold.cu.
enum { MAX_FOLD_RANK = 16 };
typedef struct fold_t {
  int rank;
  int64_t offset;
  int64_t count;
  int64_t inner[MAX_FOLD_RANK], before[MAX_FOLD_RANK], after[MAX_FOLD_RANK], strides[MAX_FOLD_RANK];
} fold_t;

// Neighbours without a border are one dimension. False when too many are left.
static bool merge(const mirror_t* m, fold_t* f) {
  bool is_last_plain = false;
  for (int i = 0; i < m->rank; ++i) {
    bool is_plain = m->before[i] == 0 && m->after[i] == 0;
    if (is_plain && is_last_plain) {
      f->inner[f->rank - 1] *= m->inner[i];
      f->strides[f->rank - 1] = m->strides[i];
      continue;
    }
    if (f->rank == MAX_FOLD_RANK) return false;
    f->inner[f->rank] = m->inner[i];
    f->before[f->rank] = m->before[i];
    f->after[f->rank] = m->after[i];
    f->strides[f->rank++] = m->strides[i];
    is_last_plain = is_plain;
  }
  return true;
}

static weir_status_t* mirror_pad_grad_gpu(weir_kernel_ctx_t* ctx) {
  const void* x = weir_kernel_input(ctx, 0)->data;
  mirror_t m = {0};
  weir_tensor_t* out = NULL;
  WEIR_TRY(read_mirror(ctx, -1, &m));
  WEIR_TRY(weir_kernel_output(ctx, 0, m.rank, m.inner, &out));
  if (out->count == 0) return NULL;
  fold_t f = {.offset = m.offset, .count = out->count};
  if (!merge(&m, &f))
    return WEIR_STATUS(UNIMPLEMENTED, "Borders in more than %d dimensions", MAX_FOLD_RANK);
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, f.count);
  return weir_cuda_launch(ctx->device, *(const weir_cuda_function_t*)ctx->state, &size,
                          WEIR_CUDA_ARGS(&x, &out->data, &f));
}

// ---- gradients: each is the other's ----

static weir_status_t* other_grad(weir_grad_ctx_t* g, const char* op) {
  weir_view_t mode = weir_attrs_string(weir_grad_attrs(g), "mode");
  return weir_grad_set(
      g, 0,
      weir_grad_node_with(g, op, WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_input(g, 1)),
                          WEIR_ATTRS(weir_attr_view("mode", mode))));
}

static weir_status_t* mirror_pad_grad(weir_grad_ctx_t* g) { return other_grad(g, "MirrorPadGrad"); }
static weir_status_t* mirror_pad_grad_grad(weir_grad_ctx_t* g) {
  return other_grad(g, "MirrorPad");
}

const weir_op_module_t weir_ops_array_mirror_pad = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "MirrorPad",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type; Tpaddings: {int32, int64} = DT_INT32; mode: {'REFLECT', 'SYMMETRIC'}",
         .inputs = "input: T; paddings: Tpaddings",
         .outputs = "output: T",
         .summary = "Puts a border around a tensor that mirrors it.",
         .infer_shape = mirror_pad_shape,
         .build_grad = mirror_pad_grad,
         .kernels = WEIR_MOVE_KERNELS("T", .compute = mirror_pad, .host_inputs = "paddings")},
        {.name = "MirrorPadGrad",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type; Tpaddings: {int32, int64} = DT_INT32; mode: {'REFLECT', 'SYMMETRIC'}",
         .inputs = "input: T; paddings: Tpaddings",
         .outputs = "output: T",
         .summary = "Folds a mirrored border back into the tensor by addition.",
         .infer_shape = mirror_pad_grad_shape,
         .build_grad = mirror_pad_grad_grad,
         .kernels =
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU, .compute = mirror_pad_grad_cpu, .host_inputs = "paddings"},
                 {WEIR_DEVICE_GPU, .types = "T: bfloat16, half, float, double",
                  .compute = mirror_pad_grad_gpu, .init = mirror_pad_grad_gpu_init,
                  .state_size = sizeof(weir_cuda_function_t), .host_inputs = "paddings"},
                 {0}}},
        {0}}};
