// multinomial.c — Multinomial, StatelessMultinomial: draws classes by unnormalised
// log-probabilities.
#include <math.h>

#include "kernel/cuda/source.h"
#include "kernel/random/random_op.h"
#include "op/shape_ctx.h"
#include "tensor/cast.h"

typedef struct multinomial_t {
  weir_random_state_t generator;        // of Multinomial
  weir_cuda_function_t cumulate, draw;  // of a GPU
} multinomial_t;

typedef struct draw_t {
  const weir_tensor_t* logits;
  weir_tensor_t* out;
  weir_philox_t philox;
  int64_t classes;
  int64_t samples;
  double* scratch;  // |classes| a row
} draw_t;

// Running sums of exp(logit - max) over the finite logits; returns the total.
static double cumulate(const draw_t* d, int64_t row, double* sums) {
  const size_t size = weir_dtype_size(weir_tensor_type(d->logits));
  const char* src = (const char*)d->logits->data + (size_t)(row * d->classes) * size;
  double max = -INFINITY, total = 0;
  for (int64_t j = 0; j < d->classes; ++j) {
    weir_element_to_double(weir_tensor_type(d->logits), src + (size_t)j * size, &sums[j]);
    if (isfinite(sums[j]) && sums[j] > max) max = sums[j];
  }
  for (int64_t j = 0; j < d->classes; ++j) {
    if (isfinite(sums[j])) total += exp(sums[j] - max);
    sums[j] = total;
  }
  return total;
}

static int64_t upper_bound(const double* sums, int64_t count, double value) {
  int64_t begin = 0, end = count;
  while (begin < end) {
    int64_t middle = begin + (end - begin) / 2;
    if (value < sums[middle]) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return begin;
}

static void draw_rows(void* arg, int64_t begin, int64_t end) {
  const draw_t* d = arg;
  weir_random_words_t words = weir_random_words(d->philox);
  weir_random_skip_words(&words, (uint64_t)(2 * begin * d->samples));
  for (int64_t row = begin; row < end; ++row) {
    double* sums = d->scratch + row * d->classes;
    double total = cumulate(d, row, sums);
    for (int64_t j = 0; j < d->samples; ++j) {
      int64_t found = upper_bound(sums, d->classes, weir_random_double(&words) * total);
      int64_t at = row * d->samples + j;
      if (d->out->dtype == WEIR_DTYPE_INT64) {
        WEIR_TENSOR_DATA(d->out, int64_t)[at] = found;
      } else {
        WEIR_TENSOR_DATA(d->out, int32_t)[at] = (int32_t)found;
      }
    }
  }
}

static weir_status_t* check_inputs(weir_kernel_ctx_t* ctx, int64_t* out_samples) {
  const weir_tensor_t* logits = weir_kernel_input(ctx, 0);
  const weir_tensor_t* samples = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (logits->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "logits should be a matrix, got shape %s",
                       weir_tensor_shape_text(logits, text));
  }
  if (samples->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "num_samples should be a scalar, got shape %s",
                       weir_tensor_shape_text(samples, text));
  }
  *out_samples = weir_tensor_int_at(samples, 0);
  if (*out_samples < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "num_samples should be non-negative, got %lld",
                       (long long)*out_samples);
  }
  if (logits->dims[1] <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "num_classes should be positive, got %lld",
                       (long long)logits->dims[1]);
  }
  return NULL;
}

static weir_status_t* draw_on_gpu(weir_kernel_ctx_t* ctx, const draw_t* d, void* anew) {
  const multinomial_t* s = ctx->state;
  const void* logits = d->logits->data;
  void *sums = d->scratch, *out = d->out->data;
  int64_t rows = d->logits->dims[0], classes = d->classes, samples = d->samples;
  weir_philox_t philox = d->philox;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, rows * 256);
  WEIR_TRY(weir_cuda_launch(ctx->device, s->cumulate, &size,
                            WEIR_CUDA_ARGS(&logits, &sums, &rows, &classes)));
  size = weir_cuda_size_for(ctx->device, rows * samples);
  return weir_cuda_launch(ctx->device, s->draw, &size,
                          WEIR_CUDA_ARGS(&sums, &out, &rows, &classes, &samples, &philox, &anew));
}

// |generator| NULL: |d| has the numbers.
static weir_status_t* draw_all(weir_kernel_ctx_t* ctx, weir_random_state_t* generator, draw_t* d) {
  const int64_t rows = d->logits->dims[0];
  void* anew = NULL;
  if (generator) {
    uint64_t words = (uint64_t)rows * (uint64_t)((d->samples + 3) / 4 * 4) * 2;
    WEIR_TRY(weir_kernel_random_reserve(ctx, generator, words * WEIR_RANDOM_GROUPS_PER_OUTPUT,
                                        &d->philox, &anew));
  }
  if (weir_device_is_cuda(ctx->device)) return draw_on_gpu(ctx, d, anew);
  weir_pool_for(weir_kernel_pool(ctx), rows, 10.0 * (double)d->classes + 30.0 * (double)d->samples,
                draw_rows, d);
  return NULL;
}

static weir_status_t* draw(weir_kernel_ctx_t* ctx, weir_random_state_t* generator,
                           weir_philox_t philox) {
  draw_t d = {.logits = weir_kernel_input(ctx, 0), .philox = philox};
  weir_tensor_t* scratch = NULL;
  WEIR_TRY(check_inputs(ctx, &d.samples));
  d.classes = d.logits->dims[1];
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, (const int64_t[]){d.logits->dims[0], d.samples}, &d.out));
  if (d.out->count == 0) return NULL;
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_DOUBLE, d.logits->count, &scratch));
  d.scratch = WEIR_TENSOR_DATA(scratch, double);
  weir_status_t* status = draw_all(ctx, generator, &d);
  weir_tensor_release(scratch);
  return status;
}

static weir_status_t* multinomial(weir_kernel_ctx_t* ctx) {
  return draw(ctx, &((multinomial_t*)ctx->state)->generator, (weir_philox_t){{0}, {0}});
}

static weir_status_t* stateless(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* seed = weir_kernel_input(ctx, 2);
  if (seed->rank != 1 || seed->dims[0] != 2) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "seed must have shape [2], not %s",
                       weir_tensor_shape_text(seed, text));
  }
  return draw(ctx, NULL,
              weir_random_scramble((uint64_t)weir_tensor_int_at(seed, 0),
                                   (uint64_t)weir_tensor_int_at(seed, 1)));
}

WEIR_CUDA_SOURCE(philox);
WEIR_CUDA_SOURCE(multinomial);

static weir_status_t* find(const weir_kernel_init_t* init, const char* name,
                           weir_cuda_function_t* out_function) {
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text, "#define T %s\n#define OUT %s\n%s",
                     weir_cuda_type_name(init->node->input_types[0]),
                     weir_cuda_type_name(init->node->output_types[0]), weir_cuda_source_philox);
  return weir_cuda_build(init->device, &text, weir_cuda_source_multinomial, name, out_function);
}

static weir_status_t* stateless_init(const weir_kernel_init_t* init, void* state) {
  multinomial_t* s = state;
  if (!weir_device_is_cuda(init->device)) return NULL;
  WEIR_TRY(find(init, "cumulate", &s->cumulate));
  return find(init, "draw", &s->draw);
}

static weir_status_t* multinomial_init(const weir_kernel_init_t* init, void* state) {
  weir_random_state_init(&((multinomial_t*)state)->generator,
                         weir_attrs_int(init->node->attrs, "seed"),
                         weir_attrs_int(init->node->attrs, "seed2"));
  return stateless_init(init, state);
}

static void multinomial_deinit(void* state) {
  weir_random_state_deinit(&((multinomial_t*)state)->generator);
}

static weir_status_t* multinomial_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* logits = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &logits));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  if (ctx->node->input_count > 2) {  // the seed of StatelessMultinomial
    const weir_shape_t* seed = NULL;
    int64_t two = 0;
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, &seed));
    WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(seed, 0), 2, &two));
  }
  const weir_tensor_t* samples = weir_shape_value(ctx, 1);
  int64_t dims[2] = {weir_shape_dim(logits, 0),
                     samples && samples->count == 1 ? weir_tensor_int_at(samples, 0) : -1};
  if (samples && dims[1] < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Dimension size, given by scalar input 1, must be non-negative but is %lld",
                       (long long)dims[1]);
  }
  return weir_shape_set_dims(ctx, 0, 2, dims);
}

#define LOGIT_TYPES \
  "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
#define ROW(device_, fn, host, ...)                                                         \
  {                                                                                         \
    device_, .types = "T: double, float, bfloat16, half", .compute = fn, .init = fn##_init, \
             .state_size = sizeof(multinomial_t), .host_inputs = host, __VA_ARGS__          \
  }

const weir_op_module_t weir_ops_random_multinomial = {
    .file = __FILE__,
    .ops =
        (const weir_op_def_t[]){
            {.name = "Multinomial",
             .summary = "Draws classes by unnormalised log probabilities, row by row",
             .attrs = "seed: int = 0; seed2: int = 0; T: " LOGIT_TYPES
                      "; output_dtype: {int32, int64} = DT_INT64",
             .inputs = "logits: T; num_samples: int32",
             .outputs = "output: output_dtype",
             .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT,
             .infer_shape = multinomial_shape,
             .kernels =
                 (const weir_kernel_def_t[]){
                     ROW(WEIR_DEVICE_CPU, multinomial, "num_samples", .deinit = multinomial_deinit),
                     ROW(WEIR_DEVICE_GPU, multinomial, "num_samples", .deinit = multinomial_deinit,
                         .is_recordable = true),
                     {0}}},
            {.name = "StatelessMultinomial",
             .summary = "Draws classes by unnormalised log probabilities, as a seed says",
             .attrs = "T: " LOGIT_TYPES
                      "; Tseed: {int32, int64} = DT_INT64; output_dtype: {int32, int64} = DT_INT64",
             .inputs = "logits: T; num_samples: int32; seed: Tseed",
             .outputs = "output: output_dtype",
             .flags = WEIR_OP_NO_GRADIENT,
             .infer_shape = multinomial_shape,
             .kernels =
                 (const weir_kernel_def_t[]){
                     ROW(WEIR_DEVICE_CPU, stateless, "num_samples, seed", .deinit = NULL),
                     ROW(WEIR_DEVICE_GPU, stateless, "num_samples, seed", .deinit = NULL),
                     {0}}},
            {0}}};
