// uniform_add.c — UniformQuantizedAdd: sums of uniformly quantised tensors, with broadcasting.
#include "ops/quantized/uniform.h"

typedef struct state_t {
  int32_t axes[3];  // of lhs, rhs and output; -1: one scale for all
  int32_t low, high;
} state_t;

static weir_status_t* add_init(const weir_kernel_init_t* init, void* state) {
  state_t* self = state;
  const weir_attrs_t attrs = init->node->attrs;
  WEIR_TRY(uniform_attr(attrs, "output_quantization_min_val", &self->low));
  WEIR_TRY(uniform_attr(attrs, "output_quantization_max_val", &self->high));
  WEIR_TRY(uniform_attr(attrs, "lhs_quantization_axis", &self->axes[0]));
  WEIR_TRY(uniform_attr(attrs, "rhs_quantization_axis", &self->axes[1]));
  WEIR_TRY(uniform_attr(attrs, "output_quantization_axis", &self->axes[2]));
  if (self->axes[0] >= -1 && self->axes[1] >= -1 && self->axes[2] >= -1) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "lhs, rhs and output quantization_axis must be -1 or within [0, dims)");
}

static weir_status_t* find_dims(const weir_tensor_t* x, const weir_tensor_t* y, int* out_rank,
                                int64_t* dims) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  const int rank = WEIR_MAX(x->rank, y->rank);
  for (int i = 0; i < rank; ++i) {
    const int in_x = i - (rank - x->rank), in_y = i - (rank - y->rank);
    const int64_t p = in_x < 0 ? 1 : x->dims[in_x], q = in_y < 0 ? 1 : y->dims[in_y];
    if (p != q && p != 1 && q != 1) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Cannot Add tensors of shapes: %s%s",
                         weir_tensor_shape_text(x, a), weir_tensor_shape_text(y, b));
    }
    dims[i] = p == 1 ? q : p;
  }
  *out_rank = rank;
  return NULL;
}

// A tensor that is added: where its elements are, and its scale over that of the sum.
typedef struct operand_t {
  const weir_tensor_t *t, *scales, *zeros;
  int64_t strides[WEIR_MAX_RANK];  // along the sum's dimensions; 0: repeated
  int channel;                     // the sum's dimension by which factors differ; -1: none
  int64_t factor_count;
  uniform_factor_t* factors;
  bool has_channels;  // zero points differ along |channel|, too
} operand_t;

static void set_strides(operand_t* o, int rank, const int64_t* dims) {
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    const int in_t = i - (rank - o->t->rank);
    const int64_t size = in_t < 0 ? 1 : o->t->dims[in_t];
    o->strides[i] = size == 1 && dims[i] != 1 ? 0 : in_t < 0 ? 0 : stride;
    stride *= size;
  }
}

static weir_status_t* set_factors(operand_t* o, const weir_tensor_t* out_scales, int axis,
                                  int out_axis, int rank, const int64_t* dims) {
  o->channel = axis >= 0 ? axis + rank - o->t->rank : out_axis;
  o->factor_count = o->channel < 0 ? 1 : dims[o->channel];
  o->has_channels = axis >= 0 && o->scales->count > 1;
  o->factors = weir_alloc_array((size_t)WEIR_MAX(o->factor_count, 1), sizeof(*o->factors));
  if (!o->factors) return weir_out_of_memory();
  for (int64_t i = 0; i < o->factor_count; ++i) {
    const float scale = WEIR_TENSOR_DATA(o->scales, float)[o->scales->count > 1 ? i : 0];
    const float out_scale = WEIR_TENSOR_DATA(out_scales, float)[out_scales->count > 1 ? i : 0];
    WEIR_TRY(uniform_find_factor((double)scale / (double)out_scale, &o->factors[i]));
  }
  return NULL;
}

typedef struct job_t {
  operand_t operands[2];
  const weir_tensor_t* zeros;
  const state_t* self;
  int rank;
  const int64_t* dims;
  int32_t* out;
} job_t;

WEIR_INLINE int32_t operand_at(const operand_t* o, int64_t at, const int64_t* place) {
  const int64_t c = o->channel < 0 ? 0 : place[o->channel];
  const int32_t zero = WEIR_TENSOR_DATA(o->zeros, int32_t)[o->has_channels ? c : 0];
  const int32_t value = uniform_through_float(WEIR_TENSOR_DATA(o->t, int32_t)[at]);
  const int32_t moved = uniform_wrap((int64_t)value - zero);
  return uniform_through_float(uniform_apply(o->factors[c], moved, 0, INT32_MIN, INT32_MAX));
}

// Sums wrap.
static void add_at(const job_t* job, int64_t i, const int64_t* place) {
  const state_t* self = job->self;
  int64_t sum = uniform_zero(job->zeros, self->axes[2] < 0 ? 0 : place[self->axes[2]]);
  for (int k = 0; k < 2; ++k) {
    const operand_t* o = &job->operands[k];
    int64_t at = 0;
    for (int d = 0; d < job->rank; ++d) at += place[d] * o->strides[d];
    sum += operand_at(o, at, place);
  }
  const int32_t v = uniform_wrap(sum);
  job->out[i] = v < self->low ? self->low : self->high < v ? self->high : v;
}

static void add_range(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  int64_t place[WEIR_MAX_RANK], rest = begin;
  for (int d = job->rank - 1; d >= 0; --d) {
    place[d] = rest % job->dims[d];
    rest /= job->dims[d];
  }
  for (int64_t i = begin; i < end; ++i) {
    add_at(job, i, place);
    for (int d = job->rank - 1; d >= 0; --d) {
      if (++place[d] < job->dims[d]) break;
      place[d] = 0;
    }
  }
}

static weir_status_t* check(const weir_kernel_ctx_t* ctx, int rank, const int64_t* dims) {
  const state_t* self = ctx->state;
  const weir_tensor_t* out_scales = weir_kernel_input(ctx, 6);
  bool are_positive = uniform_are_positive(out_scales);
  for (int k = 0; k < 2; ++k) {
    const weir_tensor_t *t = weir_kernel_input(ctx, k), *scales = weir_kernel_input(ctx, 2 + 2 * k);
    WEIR_TRY(
        uniform_check(t->rank, t->dims, scales, weir_kernel_input(ctx, 3 + 2 * k), self->axes[k]));
    are_positive &= uniform_are_positive(scales);
  }
  WEIR_TRY(uniform_check(rank, dims, out_scales, weir_kernel_input(ctx, 7), self->axes[2]));
  for (int k = 0; k < 2; ++k) {
    if (self->axes[k] < 0 || self->axes[2] < 0 ||
        weir_kernel_input(ctx, k)->rank - self->axes[k] == rank - self->axes[2])
      continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "If %s and output is both per-axis quantized, the quantization axis must "
                       "match.",
                       k ? "rhs" : "lhs");
  }
  if (are_positive) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "lhs/rhs/output scales elements must be all positive.");
}

static weir_status_t* add_cpu(weir_kernel_ctx_t* ctx) {
  const state_t* self = ctx->state;
  int64_t dims[WEIR_MAX_RANK];
  job_t job = {.self = self, .zeros = weir_kernel_input(ctx, 7), .dims = dims};
  weir_tensor_t* out = NULL;
  weir_status_t* status = NULL;
  WEIR_TRY(find_dims(weir_kernel_input(ctx, 0), weir_kernel_input(ctx, 1), &job.rank, dims));
  WEIR_TRY(check(ctx, job.rank, dims));
  WEIR_TRY(weir_kernel_output(ctx, 0, job.rank, dims, &out));
  job.out = out->data;
  for (int k = 0; k < 2 && !status; ++k) {
    operand_t* o = &job.operands[k];
    o->t = weir_kernel_input(ctx, k);
    o->scales = weir_kernel_input(ctx, 2 + 2 * k);
    o->zeros = weir_kernel_input(ctx, 3 + 2 * k);
    set_strides(o, job.rank, dims);
    status =
        set_factors(o, weir_kernel_input(ctx, 6), self->axes[k], self->axes[2], job.rank, dims);
  }
  if (!status) weir_pool_for(weir_kernel_pool(ctx), out->count, 10, add_range, &job);
  for (int k = 0; k < 2; ++k) weir_free(job.operands[k].factors);
  return status;
}

#define RANGE(PREFIX)                                                                  \
  PREFIX "_quantization_axis: int = -1; " PREFIX "_quantization_min_val: int; " PREFIX \
         "_quantization_max_val: int; "

const weir_op_module_t weir_ops_quantized_uniform_add = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "UniformQuantizedAdd",
         .summary = "Sums of uniformly quantised elements, with broadcasting",
         .attrs = RANGE("lhs") RANGE("rhs") RANGE("output") "T: {qint32}",
         .inputs = "lhs: T; rhs: T; lhs_scales: float; lhs_zero_points: int32; rhs_scales: float; "
                   "rhs_zero_points: int32; output_scales: float; output_zero_points: int32",
         .outputs = "output: T",
         .infer_shape = weir_shape_fn_broadcast,
         .kernels =
             WEIR_CPU_KERNEL(.compute = add_cpu, .init = add_init, .state_size = sizeof(state_t))},
        {0}}};
