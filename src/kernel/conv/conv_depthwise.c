// conv_depthwise.c — Depthwise convolution: vector loops over the channels of each tap.
#include "base/alloc.h"
#include "kernel/conv/conv.h"

enum {
  FILTER_BLOCKS = 16
};  // partial sums of the filter gradient; fixed, so that threads do not change the result

typedef struct job_t {
  const weir_conv_t* conv;
  const void* in;
  const void* filter;
  const void* dy;
  void* out;
  void* partial;
  int64_t blocks;
} job_t;

#define T float
#define NAME(x) x##_float
#include "kernel/conv/conv_depthwise.inc"
#define T double
#define NAME(x) x##_double
#include "kernel/conv/conv_depthwise.inc"

static double row_cost_ns(const weir_conv_t* c) {
  return 0.3 * (double)(c->out[2] * c->out_c) * (double)(c->filter[1] * c->filter[2]);
}

weir_status_t* weir_depthwise_forward(weir_pool_t* pool, weir_dtype_t dtype,
                                      const weir_conv_t* conv, const void* in, const void* filter,
                                      void* out) {
  job_t job = {.conv = conv, .in = in, .filter = filter, .out = out};
  if (conv->batch * conv->out[1] * conv->out[2] * conv->out_c == 0) return NULL;
  weir_pool_for(pool, conv->batch * conv->out[1], row_cost_ns(conv),
                dtype == WEIR_DTYPE_DOUBLE ? depthwise_rows_double : depthwise_rows_float, &job);
  return NULL;
}

weir_status_t* weir_depthwise_backprop_input(weir_pool_t* pool, weir_dtype_t dtype,
                                             const weir_conv_t* conv, const void* filter,
                                             const void* dy, void* dx) {
  job_t job = {.conv = conv, .filter = filter, .dy = dy, .out = dx};
  if (conv->batch * conv->in[1] * conv->in[2] * conv->in_c == 0) return NULL;
  weir_pool_for(
      pool, conv->batch, row_cost_ns(conv) * (double)conv->out[1],
      dtype == WEIR_DTYPE_DOUBLE ? depthwise_input_images_double : depthwise_input_images_float,
      &job);
  return NULL;
}

weir_status_t* weir_depthwise_backprop_filter(weir_pool_t* pool, weir_dtype_t dtype,
                                              const weir_conv_t* conv, const void* in,
                                              const void* dy, void* dw) {
  bool is_double = dtype == WEIR_DTYPE_DOUBLE;
  job_t job = {
      .conv = conv, .in = in, .dy = dy, .out = dw, .blocks = WEIR_MIN(conv->batch, FILTER_BLOCKS)};
  size_t size = (size_t)(conv->filter[1] * conv->filter[2] * conv->out_c) *
                (is_double ? sizeof(double) : sizeof(float));
  if (size == 0) return NULL;
  job.partial = weir_alloc_array((size_t)job.blocks, size);
  if (!job.partial) return weir_out_of_memory();
  if (job.blocks > 0) {
    double cost_ns = row_cost_ns(conv) * (double)(conv->out[1] * conv->batch) / (double)job.blocks;
    weir_pool_for(pool, job.blocks, cost_ns,
                  is_double ? depthwise_filter_blocks_double : depthwise_filter_blocks_float, &job);
  }
  if (is_double) {
    depthwise_sum_double(&job);
  } else {
    depthwise_sum_float(&job);
  }
  weir_free(job.partial);
  return NULL;
}
