// fft.c — FFT, IFFT, RFFT, IRFFT and those of two and three dimensions: Fourier transforms along
// the last dimensions.
#include "kernel/fft/fft.h"

#include "ops/signal/fft_grad.h"

enum { MOST_AXES = 3 };

typedef struct fft_state_t {
  int axes;  // transformed: the last ones
  bool is_real, is_inverse, is_double;
  weir_mutex_t mu;
  weir_fft_plan_t* plans[MOST_AXES];  // guarded by mu; of the step before
} fft_state_t;

// What the op's name says: [I][R]FFT[2D|3D].
static weir_status_t* fft_init(const weir_kernel_init_t* init, void* state) {
  fft_state_t* s = state;
  const char* name = init->node->op->name;
  weir_mutex_init(&s->mu);
  s->is_inverse = *name == 'I';
  name += s->is_inverse;
  s->is_real = *name == 'R';
  name += s->is_real + 3;
  s->axes = *name ? *name - '0' : 1;
  const weir_attrs_t attrs = init->node->attrs;
  const weir_dtype_t complex_type = weir_attrs_type(attrs, "Tcomplex");
  s->is_double = complex_type == WEIR_DTYPE_COMPLEX128;
  if (!s->is_real) return NULL;
  const weir_dtype_t real_type = weir_attrs_type(attrs, "Treal");
  if (real_type == (s->is_double ? WEIR_DTYPE_DOUBLE : WEIR_DTYPE_FLOAT)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Wrong types for %s real FFT: in=%d out=%d",
                     s->is_inverse ? "backward" : "forward",
                     (int)(s->is_inverse ? complex_type : real_type),
                     (int)(s->is_inverse ? real_type : complex_type));
}

static void fft_deinit(void* state) {
  fft_state_t* s = state;
  for (int i = 0; i < MOST_AXES; ++i) weir_fft_plan_release(s->plans[i]);
  weir_mutex_destroy(&s->mu);
}

// The plan for |axis|, retained: the one of the step before where the length is the same.
static weir_status_t* find_plan(fft_state_t* s, int axis, int64_t n, weir_fft_plan_t** out_plan) {
  const bool is_real = s->is_real && axis == s->axes - 1;
  weir_mutex_lock(&s->mu);
  weir_fft_plan_t* plan = s->plans[axis];
  if (plan && weir_fft_plan_is(plan, n, is_real, s->is_double)) weir_fft_plan_retain(plan);
  else plan = NULL;
  weir_mutex_unlock(&s->mu);
  if (!plan) {
    WEIR_TRY(weir_fft_plan_create(n, is_real, s->is_double, &plan));
    weir_fft_plan_retain(plan);
    weir_mutex_lock(&s->mu);
    weir_fft_plan_t* old = s->plans[axis];
    s->plans[axis] = plan;
    weir_mutex_unlock(&s->mu);
    weir_fft_plan_release(old);
  }
  *out_plan = plan;
  return NULL;
}

// ---- shapes ----

static weir_status_t* read_lengths(const weir_kernel_ctx_t* ctx, const fft_state_t* s,
                                   int64_t* lengths) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  if (!s->is_real) {
    for (int i = 0; i < s->axes; ++i) lengths[i] = in->dims[in->rank - s->axes + i];
    return NULL;
  }
  const weir_tensor_t* t = weir_kernel_input(ctx, 1);
  if (t->rank != 1 || t->count != s->axes) {
    return WEIR_STATUS(INVALID_ARGUMENT, "fft_length must have shape [%d]", s->axes);
  }
  for (int i = 0; i < s->axes; ++i) {
    const int axis = in->rank - s->axes + i;
    lengths[i] = weir_tensor_int_at(t, i);
    if (lengths[i] < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "fft_length[%d] must >= 0, but got: %lld", i,
                         (long long)lengths[i]);
    }
    const bool is_half = s->is_inverse && i == s->axes - 1;
    const int64_t least = is_half ? lengths[i] / 2 + 1 : lengths[i];
    if (in->dims[axis] == 0 || in->dims[axis] >= least) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input dimension %d must have length of at least %lld but got: %lld", axis,
                       (long long)least, (long long)in->dims[axis]);
  }
  return NULL;
}

static int64_t half_length(int64_t n) { return n == 0 ? 0 : n / 2 + 1; }

static weir_status_t* fft_shape(weir_shape_ctx_t* ctx, int axes) {
  WEIR_TRY(weir_shape_at_least(ctx, weir_shape_input(ctx, 0), axes));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

static weir_status_t* rfft_shape(weir_shape_ctx_t* ctx, int axes, bool is_inverse) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  const weir_shape_t* length = weir_shape_input(ctx, 1);
  const weir_tensor_t* value = weir_shape_value(ctx, 1);
  int64_t joined = axes, dims[WEIR_MAX_RANK];
  WEIR_TRY(weir_shape_at_least(ctx, in, axes));
  WEIR_TRY(weir_shape_with_rank(ctx, length, 1, NULL));
  if (length->rank == 1) WEIR_TRY(weir_dim_join(ctx, length->dims[0], axes, &joined));
  if (in->rank < 0) return NULL;
  for (int i = 0; i < in->rank; ++i) {
    const int axis = i - (in->rank - axes);
    dims[i] = axis < 0 ? in->dims[i] : -1;
    if (axis < 0 || !value) continue;
    const int64_t n = weir_tensor_int_at(value, axis);
    dims[i] = axis == axes - 1 && !is_inverse ? half_length(n) : WEIR_MAX(n, -1);
  }
  return weir_shape_set_dims(ctx, 0, in->rank, dims);
}

static weir_status_t* fft1_shape(weir_shape_ctx_t* ctx) { return fft_shape(ctx, 1); }
static weir_status_t* fft2_shape(weir_shape_ctx_t* ctx) { return fft_shape(ctx, 2); }
static weir_status_t* fft3_shape(weir_shape_ctx_t* ctx) { return fft_shape(ctx, 3); }
static weir_status_t* rfft1_shape(weir_shape_ctx_t* ctx) { return rfft_shape(ctx, 1, false); }
static weir_status_t* rfft2_shape(weir_shape_ctx_t* ctx) { return rfft_shape(ctx, 2, false); }
static weir_status_t* rfft3_shape(weir_shape_ctx_t* ctx) { return rfft_shape(ctx, 3, false); }
static weir_status_t* irfft1_shape(weir_shape_ctx_t* ctx) { return rfft_shape(ctx, 1, true); }
static weir_status_t* irfft2_shape(weir_shape_ctx_t* ctx) { return rfft_shape(ctx, 2, true); }
static weir_status_t* irfft3_shape(weir_shape_ctx_t* ctx) { return rfft_shape(ctx, 3, true); }

// ---- kernel ----

// An array in three dimensions at least, whose last |axes| ones are |dims|; the first is the batch.
typedef struct array_t {
  void* data;
  int64_t dims[MOST_AXES];
} array_t;

typedef struct fft_job_t {
  weir_kernel_ctx_t* ctx;
  fft_state_t* state;
  int64_t batch;
  double scale;  // for the last pass
} fft_job_t;

static int64_t volume(const array_t* a, int axes, int from) {
  int64_t count = 1;
  for (int i = from; i < axes; ++i) count *= a->dims[i];
  return count;
}

// Transforms |length| elements along |axis| from |in| to |out|, of which |in| may be the larger in
// every dimension.
static weir_status_t* run_axis(const fft_job_t* job, int axis, int64_t length, const array_t* in,
                               const array_t* out, double scale) {
  fft_state_t* s = job->state;
  const int axes = s->axes;
  weir_fft_plan_t* plan = NULL;
  WEIR_TRY(find_plan(s, axis, length, &plan));
  weir_fft_pass_t pass = {.plan = plan,
                          .is_inverse = s->is_inverse,
                          .scale = scale,
                          .dims = {job->batch, 1, 1},
                          .in = {.data = in->data, .step = volume(in, axes, axis + 1)},
                          .out = {.data = out->data, .step = volume(out, axes, axis + 1)}};
  pass.in.strides[0] = volume(in, axes, 0);
  pass.out.strides[0] = volume(out, axes, 0);
  for (int i = 0, at = 3 - (axes - 1); i < axes; ++i) {  // the other axes, the last of them last
    if (i == axis) continue;
    pass.dims[at] = WEIR_MIN(in->dims[i], out->dims[i]);
    pass.in.strides[at] = volume(in, axes, i + 1);
    pass.out.strides[at] = volume(out, axes, i + 1);
    ++at;
  }
  weir_status_t* status = weir_fft_run(weir_kernel_pool(job->ctx), &pass);
  weir_fft_plan_release(plan);
  return status;
}

static weir_status_t* run_forward(const fft_job_t* job, const int64_t* lengths, const array_t* in,
                                  const array_t* out) {
  const int axes = job->state->axes;
  for (int axis = axes - 1; axis >= 0; --axis) {
    const array_t* from = axis == axes - 1 ? in : out;
    WEIR_TRY(run_axis(job, axis, lengths[axis], from, out, axis == 0 ? job->scale : 1));
  }
  return NULL;
}

// To real numbers the last axis comes last: until then complex ones of the cropped size are kept
// beside.
static weir_status_t* run_to_real(const fft_job_t* job, const int64_t* lengths, const array_t* in,
                                  const array_t* out) {
  const int axes = job->state->axes, last = axes - 1;
  if (axes == 1) return run_axis(job, 0, lengths[0], in, out, job->scale);
  array_t middle = *out;
  middle.dims[last] = half_length(lengths[last]);
  weir_tensor_t* scratch = NULL;
  WEIR_TRY(weir_kernel_scratch(job->ctx,
                               job->state->is_double ? WEIR_DTYPE_COMPLEX128 : WEIR_DTYPE_COMPLEX64,
                               job->batch * volume(&middle, axes, 0), &scratch));
  middle.data = scratch->data;
  weir_status_t* status = NULL;
  for (int axis = last - 1; !status && axis >= 0; --axis) {
    status = run_axis(job, axis, lengths[axis], axis == last - 1 ? in : &middle, &middle, 1);
  }
  if (!status) status = run_axis(job, last, lengths[last], &middle, out, job->scale);
  weir_tensor_release(scratch);
  return status;
}

static weir_status_t* fft_cpu(weir_kernel_ctx_t* ctx) {
  fft_state_t* s = ctx->state;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  int64_t lengths[MOST_AXES], dims[WEIR_MAX_RANK];
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (in->rank < s->axes) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input must have rank of at least %d but got: %s", s->axes,
                       weir_tensor_shape_text(in, text));
  }
  WEIR_TRY(read_lengths(ctx, s, lengths));
  fft_job_t job = {.ctx = ctx, .state = s, .batch = 1, .scale = 1};
  array_t from = {.data = in->data}, to = {0};
  for (int i = 0; i < in->rank; ++i) {
    const int axis = i - (in->rank - s->axes);
    dims[i] = in->dims[i];
    if (axis < 0) {
      job.batch *= dims[i];
      continue;
    }
    const bool is_half = s->is_real && !s->is_inverse && axis == s->axes - 1;
    dims[i] = is_half ? half_length(lengths[axis]) : lengths[axis];
    from.dims[axis] = in->dims[i];
    to.dims[axis] = dims[i];
    if (s->is_inverse) job.scale /= (double)lengths[axis];
  }
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, dims, &out));
  if (out->count == 0) return NULL;
  if (in->count == 0) {
    memset(out->data, 0, (size_t)out->count * weir_dtype_size(weir_tensor_type(out)));
    return NULL;
  }
  to.data = out->data;
  return s->is_real && s->is_inverse ? run_to_real(&job, lengths, &from, &to)
                                     : run_forward(&job, lengths, &from, &to);
}

#define FFT_KERNEL(hosts)                                                                  \
  WEIR_CPU_KERNEL(.compute = fft_cpu, .state_size = sizeof(fft_state_t), .init = fft_init, \
                  .deinit = fft_deinit, .host_inputs = hosts)
#define COMPLEX_OP(op_name, text, shape, grad)                                    \
  {                                                                               \
    .name = op_name, .attrs = "Tcomplex: {complex64, complex128} = DT_COMPLEX64", \
    .inputs = "input: Tcomplex", .outputs = "output: Tcomplex", .summary = text,  \
    .infer_shape = shape, .build_grad = grad, .kernels = FFT_KERNEL(NULL)         \
  }
#define REAL_OP(op_name, from, to, text, shape, grad)                                          \
  {                                                                                            \
    .name = op_name,                                                                           \
    .attrs =                                                                                   \
        "Treal: {float, double} = DT_FLOAT; Tcomplex: {complex64, complex128} = "              \
        "DT_COMPLEX64",                                                                        \
    .inputs = "input: " from "; fft_length: int32", .outputs = "output: " to, .summary = text, \
    .infer_shape = shape, .build_grad = grad, .kernels = FFT_KERNEL("fft_length")              \
  }

const weir_op_module_t weir_ops_signal_fft = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        COMPLEX_OP("FFT", "Fourier transforms along the last dimension", fft1_shape, fft1_grad),
        COMPLEX_OP("FFT2D", "Fourier transforms along two dimensions", fft2_shape, fft2_grad),
        COMPLEX_OP("FFT3D", "Fourier transforms along three dimensions", fft3_shape, fft3_grad),
        COMPLEX_OP("IFFT", "The inverse of FFT", fft1_shape, ifft1_grad),
        COMPLEX_OP("IFFT2D", "The inverse of FFT2D", fft2_shape, ifft2_grad),
        COMPLEX_OP("IFFT3D", "The inverse of FFT3D", fft3_shape, ifft3_grad),
        REAL_OP("RFFT", "Treal", "Tcomplex", "FFT of real numbers: the half that is determined",
                rfft1_shape, rfft1_grad),
        REAL_OP("RFFT2D", "Treal", "Tcomplex", "FFT2D of real numbers: the half that is determined",
                rfft2_shape, rfft2_grad),
        REAL_OP("RFFT3D", "Treal", "Tcomplex", "FFT3D of real numbers: the half that is determined",
                rfft3_shape, NULL),
        REAL_OP("IRFFT", "Tcomplex", "Treal", "The inverse of RFFT", irfft1_shape, irfft1_grad),
        REAL_OP("IRFFT2D", "Tcomplex", "Treal", "The inverse of RFFT2D", irfft2_shape, irfft2_grad),
        REAL_OP("IRFFT3D", "Tcomplex", "Treal", "The inverse of RFFT3D", irfft3_shape, NULL),
        {0}}};
