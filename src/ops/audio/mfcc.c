// mfcc.c — Mfcc: mel-frequency cepstral coefficients of spectrograms.
#include <math.h>

#include "base/alloc.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

typedef struct mfcc_t {
  double upper_limit;  // Hz
  double lower_limit;
  int64_t channel_count;
  int64_t coefficient_count;
} mfcc_t;

// Bands that overlap: a bin belongs to the falling side of one, by |weights|, and with the rest to
// the rising side of the next.
typedef struct bank_t {
  int64_t bin_count;
  int64_t first;
  int64_t last;       // bins outside are not used; beyond the bins: the spectrum is too short
  int64_t* channels;  // the falling band of each bin; -1: before the first
  double* weights;
  double* cosines;  // [coefficient_count, channel_count]
} bank_t;

static void bank_free(bank_t* bank) {
  weir_free(bank->channels);
  weir_free(bank->weights);
  weir_free(bank->cosines);
}

static double to_mel(double hertz) { return 1127.0 * log1p(hertz / 700.0); }

static weir_status_t* mfcc_init(const weir_kernel_init_t* init, void* state) {
  mfcc_t* self = state;
  const weir_attrs_t attrs = init->node->attrs;
  self->upper_limit = (double)weir_attrs_float(attrs, "upper_frequency_limit");
  self->lower_limit = (double)weir_attrs_float(attrs, "lower_frequency_limit");
  self->channel_count = weir_attrs_int(attrs, "filterbank_channel_count");
  self->coefficient_count = weir_attrs_int(attrs, "dct_coefficient_count");
  return NULL;
}

static bool is_valid(const mfcc_t* self, int64_t bins, int64_t rate) {
  return self->channel_count >= 1 && self->channel_count < INT32_MAX && rate > 0 && bins >= 2 &&
         self->lower_limit >= 0 && self->upper_limit > self->lower_limit &&
         self->coefficient_count >= 1 && self->coefficient_count <= self->channel_count;
}

// The bin at |place|, which may be beyond all of them.
static int64_t bin_at(double place) { return place < INT32_MAX ? (int64_t)place : INT32_MAX; }

static void make_bands(const mfcc_t* self, double bin_width, bank_t* bank) {
  const double low = to_mel(self->lower_limit);
  const double spacing = (to_mel(self->upper_limit) - low) / (double)(self->channel_count + 1);
  int64_t channel = 0;
  for (int64_t i = bank->first; i < bank->bin_count && i <= bank->last; ++i) {
    const double mel = to_mel((double)i * bin_width);
    while (channel < self->channel_count && low + spacing * (double)(channel + 1) < mel) ++channel;
    const double left = low + spacing * (double)channel;
    const double right = low + spacing * (double)(channel + 1);
    bank->channels[i] = channel - 1;
    bank->weights[i] = (right - mel) / (right - left);
  }
}

static void make_cosines(const mfcc_t* self, double* cosines) {
  const int64_t n = self->channel_count;
  const double norm = sqrt(2.0 / (double)n), angle = M_PI / (double)n;
  for (int64_t i = 0; i < self->coefficient_count; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      cosines[i * n + j] = norm * cos((double)i * angle * ((double)j + 0.5));
    }
  }
}

static weir_status_t* bank_make(const mfcc_t* self, int64_t bins, int64_t rate, bank_t* bank) {
  const double bin_width = 0.5 * (double)rate / (double)(bins - 1);
  const size_t rows = (size_t)self->coefficient_count, columns = (size_t)self->channel_count;
  if (columns > SIZE_MAX / rows) return weir_out_of_memory();
  bank->bin_count = bins;
  bank->first = bin_at(1.5 + self->lower_limit / bin_width);  // never the one of the mean
  bank->last = bin_at(self->upper_limit / bin_width);
  bank->channels = weir_alloc_array((size_t)bins, sizeof(*bank->channels));
  bank->weights = weir_alloc_array((size_t)bins, sizeof(*bank->weights));
  bank->cosines = weir_alloc_array(rows * columns, sizeof(*bank->cosines));
  if (!bank->channels || !bank->weights || !bank->cosines) return weir_out_of_memory();
  make_bands(self, bin_width, bank);
  make_cosines(self, bank->cosines);
  return NULL;
}

typedef struct job_t {
  const mfcc_t* self;
  const bank_t* bank;
  const float* spectra;
  float* out;
  weir_first_error_t error;
} job_t;

static void sum_bands(const job_t* job, const float* spectrum, double* bands) {
  const bank_t* bank = job->bank;
  const int64_t n = job->self->channel_count;
  memset(bands, 0, (size_t)n * sizeof(*bands));
  for (int64_t i = bank->first; i <= bank->last; ++i) {
    const double value = sqrt((double)spectrum[i]), falling = value * bank->weights[i];
    const int64_t channel = bank->channels[i];
    if (channel >= 0) bands[channel] += falling;
    if (channel + 1 < n) bands[channel + 1] += value - falling;
  }
  for (int64_t i = 0; i < n; ++i) bands[i] = log(bands[i] < 1e-12 ? 1e-12 : bands[i]);
}

static void mfcc_range(void* arg, int64_t begin, int64_t end) {
  job_t* job = arg;
  const int64_t n = job->self->channel_count, count = job->self->coefficient_count;
  double* bands = weir_alloc_array((size_t)n, sizeof(*bands));
  for (int64_t row = begin; bands && row < end; ++row) {
    sum_bands(job, job->spectra + row * job->bank->bin_count, bands);
    for (int64_t i = 0; i < count; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < n; ++j) sum += job->bank->cosines[i * n + j] * bands[j];
      job->out[row * count + i] = (float)sum;
    }
  }
  if (!bands) weir_first_error_set(&job->error, weir_out_of_memory());
  weir_free(bands);
}

static weir_status_t* run(weir_kernel_ctx_t* ctx, const weir_tensor_t* spectra, int64_t rate,
                          weir_tensor_t* out) {
  const mfcc_t* self = ctx->state;
  bank_t bank = {0};
  weir_status_t* status = bank_make(self, spectra->dims[2], rate, &bank);
  if (!status && bank.last >= bank.bin_count) {
    memset(out->data, 0, (size_t)out->count * sizeof(float));  // as TensorFlow does
  } else if (!status) {
    job_t job = {.self = self, .bank = &bank, .spectra = spectra->data, .out = out->data};
    const double cost = 5.0 * (double)bank.bin_count +
                        (double)(self->channel_count * (self->coefficient_count + 10));
    weir_pool_for(weir_kernel_pool(ctx), spectra->dims[0] * spectra->dims[1], cost, mfcc_range,
                  &job);
    status = job.error.status;
  }
  bank_free(&bank);
  return status;
}

static weir_status_t* mfcc_cpu(weir_kernel_ctx_t* ctx) {
  const mfcc_t* self = ctx->state;
  const weir_tensor_t *spectra = weir_kernel_input(ctx, 0), *rate = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (spectra->rank != 3) {
    return WEIR_STATUS(INVALID_ARGUMENT, "spectrogram must be 3-dimensional%s",
                       weir_tensor_shape_text(spectra, text));
  }
  if (rate->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input sample_rate should be a scalar tensor, got %s instead.",
                       weir_tensor_shape_text(rate, text));
  }
  const int64_t rate_value = weir_tensor_int_at(rate, 0), bins = spectra->dims[2];
  if (!is_valid(self, bins, rate_value)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Mfcc initialization failed for channel count %lld, sample rate %lld and "
                       "filterbank_channel_count %lld",
                       (long long)bins, (long long)rate_value, (long long)self->channel_count);
  }
  const int64_t dims[] = {spectra->dims[0], spectra->dims[1], self->coefficient_count};
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 3, dims, &out));
  return out->count == 0 ? NULL : run(ctx, spectra, rate_value, out);
}

static weir_status_t* mfcc_shape(weir_shape_ctx_t* ctx) {
  const int64_t count = weir_attrs_int(weir_shape_attrs(ctx), "dct_coefficient_count");
  const weir_shape_t* spectra = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 3, &spectra));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  const int64_t dims[] = {weir_shape_dim(spectra, 0), weir_shape_dim(spectra, 1),
                          count < 0 ? -1 : count};
  return weir_shape_set_dims(ctx, 0, 3, dims);
}

const weir_op_module_t weir_ops_audio_mfcc = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Mfcc",
         .attrs = "upper_frequency_limit: float = 4000.0; lower_frequency_limit: float = 20.0; "
                  "filterbank_channel_count: int = 40; dct_coefficient_count: int = 13",
         .inputs = "spectrogram: float; sample_rate: int32",
         .outputs = "output: float",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Mel-frequency cepstral coefficients of spectrograms",
         .infer_shape = mfcc_shape,
         .kernels =
             WEIR_CPU_KERNEL(.compute = mfcc_cpu, .init = mfcc_init, .state_size = sizeof(mfcc_t))},
        {0}}};
