// spectrogram.c — AudioSpectrogram: how loud each frequency is, frame by frame.
#include <math.h>

#include "base/alloc.h"
#include "kernel/fft/fft.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

enum { BLOCK = 1 << 15 };  // elements of frames that are transformed together, roughly

typedef struct spectrogram_t {
  int64_t window_size;
  int64_t stride;
  bool is_squared;
} spectrogram_t;

// Frames are transformed with zeros behind them, up to a power of two.
static int64_t padded_size(int64_t window_size) {
  int64_t size = 1;
  while (size < window_size) size *= 2;
  return size;
}

static int64_t frame_count(int64_t samples, int64_t window_size, int64_t stride) {
  return samples < window_size ? 0 : 1 + (samples - window_size) / stride;
}

static weir_status_t* spectrogram_init(const weir_kernel_init_t* init, void* state) {
  spectrogram_t* self = state;
  self->window_size = weir_attrs_int(init->node->attrs, "window_size");
  self->stride = weir_attrs_int(init->node->attrs, "stride");
  self->is_squared = weir_attrs_bool(init->node->attrs, "magnitude_squared");
  if (self->window_size > INT32_MAX / 2 || self->stride > INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Attr window_size or stride has value %lld out of range",
                       (long long)WEIR_MAX(self->window_size, self->stride));
  }
  return NULL;
}

typedef struct job_t {
  const spectrogram_t* self;
  const weir_tensor_t* input;  // [samples, channels]
  const double* window;
  const weir_fft_plan_t* plan;
  int64_t padded;
  int64_t frames;
  float* out;  // [channels, frames, padded / 2 + 1]
  weir_first_error_t error;
} job_t;

// Frame |index| of all frames of all channels.
static void cut_frame(const job_t* job, int64_t index, double* out) {
  const int64_t channels = job->input->dims[1], channel = index / job->frames;
  const float* samples =
      (const float*)job->input->data + index % job->frames * job->self->stride * channels + channel;
  const int64_t size = job->self->window_size;
  for (int64_t i = 0; i < size; ++i) out[i] = (double)samples[i * channels] * job->window[i];
  memset(out + size, 0, (size_t)(job->padded - size) * sizeof(*out));
}

static weir_status_t* transform(const job_t* job, int64_t count, double* frames,
                                weir_complex128_t* spectra) {
  const int64_t bins = job->padded / 2 + 1;
  const weir_fft_pass_t pass = {.plan = job->plan,
                                .scale = 1,
                                .dims = {count, 1, 1},
                                .in = {.data = frames, .strides = {job->padded, 0, 0}, .step = 1},
                                .out = {.data = spectra, .strides = {bins, 0, 0}, .step = 1}};
  return weir_fft_run(NULL, &pass);
}

static void write_magnitudes(const job_t* job, const weir_complex128_t* spectra, int64_t count,
                             float* out) {
  for (int64_t i = 0; i < count; ++i) {
    const double re = creal(spectra[i]), im = cimag(spectra[i]);
    const float square = (float)(re * re + im * im);
    out[i] = job->self->is_squared ? square : sqrtf(square);
  }
}

static void spectrogram_range(void* arg, int64_t begin, int64_t end) {
  job_t* job = arg;
  const int64_t bins = job->padded / 2 + 1;
  const int64_t block = WEIR_MIN(WEIR_MAX(1, BLOCK / job->padded), end - begin);
  double* frames = weir_alloc_array((size_t)(block * job->padded), sizeof(*frames));
  weir_complex128_t* spectra = weir_alloc_array((size_t)(block * bins), sizeof(*spectra));
  weir_status_t* status = frames && spectra ? NULL : weir_out_of_memory();
  for (int64_t at = begin; !status && at < end; at += block) {
    const int64_t count = WEIR_MIN(block, end - at);
    for (int64_t i = 0; i < count; ++i) cut_frame(job, at + i, frames + i * job->padded);
    status = transform(job, count, frames, spectra);
    if (!status) write_magnitudes(job, spectra, count * bins, job->out + at * bins);
  }
  weir_free(spectra);
  weir_free(frames);
  weir_first_error_set(&job->error, status);
}

static weir_status_t* run(weir_kernel_ctx_t* ctx, job_t* job) {
  const int64_t size = job->self->window_size;
  double* window = weir_alloc_array((size_t)size, sizeof(*window));
  weir_fft_plan_t* plan = NULL;
  weir_status_t* status =
      window ? weir_fft_plan_create(job->padded, true, true, &plan) : weir_out_of_memory();
  if (!status) {
    for (int64_t i = 0; i < size; ++i) {  // Hann's, of which the first value comes again after it
      window[i] = 0.5 - 0.5 * cos(2 * M_PI * (double)i / (double)size);
    }
    job->window = window;
    job->plan = plan;
    weir_pool_for(weir_kernel_pool(ctx), job->input->dims[1] * job->frames,
                  20.0 * (double)job->padded, spectrogram_range, job);
    status = job->error.status;
  }
  weir_fft_plan_release(plan);
  weir_free(window);
  return status;
}

static weir_status_t* spectrogram_cpu(weir_kernel_ctx_t* ctx) {
  const spectrogram_t* self = ctx->state;
  const weir_tensor_t* input = weir_kernel_input(ctx, 0);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (input->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be 2-dimensional%s",
                       weir_tensor_shape_text(input, text));
  }
  if (self->window_size < 2 || self->stride < 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Spectrogram initialization failed for window size %lld and stride %lld",
                       (long long)self->window_size, (long long)self->stride);
  }
  job_t job = {.self = self,
               .input = input,
               .padded = padded_size(self->window_size),
               .frames = frame_count(input->dims[0], self->window_size, self->stride)};
  const int64_t dims[] = {input->dims[1], job.frames, job.padded / 2 + 1};
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 3, dims, &out));
  job.out = out->data;
  return out->count == 0 ? NULL : run(ctx, &job);
}

static weir_status_t* spectrogram_shape(weir_shape_ctx_t* ctx) {
  const weir_attrs_t attrs = weir_shape_attrs(ctx);
  const int64_t size = weir_attrs_int(attrs, "window_size");
  const int64_t stride = weir_attrs_int(attrs, "stride");
  const weir_shape_t* input = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &input));
  if (size <= 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "window size must be > 1, got %lld", (long long)size);
  }
  if (stride <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "stride must be strictly positive, got %lld",
                       (long long)stride);
  }
  const int64_t samples = weir_shape_dim(input, 0), channels = weir_shape_dim(input, 1);
  const int64_t frames = samples >= 0 ? frame_count(samples, size, stride) : -1;
  const int64_t bins = size <= INT32_MAX / 2 ? padded_size(size) / 2 + 1 : -1;
  return weir_shape_set_dims(ctx, 0, 3, (const int64_t[]){channels, frames, bins});
}

const weir_op_module_t weir_ops_audio_spectrogram = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "AudioSpectrogram",
         .attrs = "window_size: int; stride: int; magnitude_squared: bool = false",
         .inputs = "input: float",
         .outputs = "spectrogram: float",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "The magnitudes of frequencies, frame by frame",
         .infer_shape = spectrogram_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = spectrogram_cpu, .init = spectrogram_init,
                                    .state_size = sizeof(spectrogram_t))},
        {0}}};
