// conv_bench.c — Convolutions with their gradients, and gradients of max-pooling: the best of many
// times, by the clock on the wall and by that of the CPU, which others' work disturbs less.
//
//   cmake --build build/release --target conv_bench && build/release/conv_bench [threads] [seconds]
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "kernel/conv/conv.h"
#include "kernel/pool/pool2d.h"

static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double wall_ms(void) { return (double)weir_clock_ns() * 1e-6; }

static float* numbers(int64_t count) {
  float* x = weir_alloc_array((size_t)count, sizeof(float));
  for (int64_t i = 0; x && i < count; ++i) x[i] = (float)(i * 7919 % 1013) * 0.001f - 0.5f;
  return x;
}

// ---- one measurement ----

typedef struct work_t {
  const char* name;
  weir_conv_t conv;
  weir_conv_fn_t run;  // NULL: the gradient of max-pooling
  weir_pool2d_t pool;
  const float* a;
  const float* b;
  float* out;
} work_t;

static weir_status_t* run_work(weir_pool_t* threads, const work_t* w) {
  return w->run ? w->run(threads, WEIR_DTYPE_FLOAT, &w->conv, w->a, w->b, w->out)
                : weir_max_pool2d_grad(threads, WEIR_DTYPE_FLOAT, &w->pool, w->a, w->b, w->out);
}

static bool measure(weir_pool_t* threads, const work_t* w, double seconds, const char* kind,
                    double gflop) {
  double best_wall = 1e9, best_cpu = 1e9;
  double end = wall_ms() + seconds * 1e3;
  for (int i = 0; i < 3 || wall_ms() < end; ++i) {
    double cpu = cpu_ms(), wall = wall_ms();
    weir_status_t* status = run_work(threads, w);
    best_wall = WEIR_MIN(best_wall, wall_ms() - wall);
    best_cpu = WEIR_MIN(best_cpu, cpu_ms() - cpu);
    if (status) {
      fprintf(stderr, "conv_bench: %s\n", weir_status_message(status));
      weir_status_destroy(status);
      return false;
    }
  }
  printf("%-24s %-7s %9.3f %9.3f %8.1f\n", w->name, kind, best_wall, best_cpu,
         gflop * 1e3 / best_wall);
  return true;
}

// ---- cases ----

typedef struct case_t {
  const char* name;
  int64_t batch, size, in_c, out_c, kernel, stride;
} case_t;

// Padded as SAME is.
static weir_conv_t conv_of(const case_t* c) {
  int64_t out = (c->size + c->stride - 1) / c->stride;
  int64_t pad = WEIR_MAX((out - 1) * c->stride + c->kernel - c->size, 0) / 2;
  return (weir_conv_t){.batch = c->batch,
                       .in_c = c->in_c,
                       .out_c = c->out_c,
                       .groups = 1,
                       .group_in = c->in_c,
                       .group_out = c->out_c,
                       .in = {1, c->size, c->size},
                       .filter = {1, c->kernel, c->kernel},
                       .out = {1, out, out},
                       .stride = {1, c->stride, c->stride},
                       .dilation = {1, 1, 1},
                       .pad = {0, pad, pad}};
}

static bool bench_conv(weir_pool_t* threads, const case_t* c, double seconds) {
  weir_conv_t conv = conv_of(c);
  int64_t in = conv.batch * conv.in[1] * conv.in[2] * conv.in_c;
  int64_t out = conv.batch * conv.out[1] * conv.out[2] * conv.out_c;
  int64_t filter = conv.filter[1] * conv.filter[2] * conv.in_c * conv.out_c;
  float *x = numbers(in), *w = numbers(filter), *y = numbers(out);
  float* to = numbers(WEIR_MAX(WEIR_MAX(in, out), filter));
  double gflop = 2e-9 * (double)(out / conv.out_c) * (double)filter;
  work_t work[3] = {{c->name, conv, weir_conv_forward, .a = x, .b = w, .out = to},
                    {c->name, conv, weir_conv_backprop_input, .a = w, .b = y, .out = to},
                    {c->name, conv, weir_conv_backprop_filter, .a = x, .b = y, .out = to}};
  static const char* const kinds[3] = {"forward", "input", "filter"};
  bool ok = x && w && y && to;
  for (int i = 0; ok && i < 3; ++i) ok = measure(threads, &work[i], seconds, kinds[i], gflop);
  weir_free(x);
  weir_free(w);
  weir_free(y);
  weir_free(to);
  return ok;
}

static bool bench_pool(weir_pool_t* threads, const case_t* c, double seconds) {
  int64_t out = c->size / c->stride;
  int64_t pad = WEIR_MAX((out - 1) * c->stride + c->kernel - c->size, 0) / 2;
  work_t work = {.name = c->name,
                 .pool = {c->batch, c->size, c->size, c->in_c, out, out, c->kernel, c->kernel,
                          c->stride, c->stride, pad, pad}};
  float* x = numbers(c->batch * c->size * c->size * c->in_c);
  float* to = numbers(c->batch * c->size * c->size * c->in_c);
  float* y = numbers(c->batch * out * out * c->in_c);
  work.a = x, work.b = y, work.out = to;
  bool ok = x && y && to && measure(threads, &work, seconds, "grad", 0);
  weir_free(x);
  weir_free(to);
  weir_free(y);
  return ok;
}

int main(int argc, char** argv) {
  static const case_t convs[] = {
      {"lenet conv1", 128, 28, 1, 32, 5, 1},       {"lenet conv2", 128, 14, 32, 64, 5, 1},
      {"56x56x64 3x3", 8, 56, 64, 64, 3, 1},       {"28x28x128 3x3 /2", 8, 56, 128, 128, 3, 2},
      {"14x14x256 3x3", 8, 14, 256, 256, 3, 1},    {"7x7x512 3x3", 8, 7, 512, 512, 3, 1},
      {"14x14x256 3x3 b1", 1, 14, 256, 256, 3, 1}, {"224x224x3 7x7 /2", 4, 224, 3, 64, 7, 2},
      {"56x56x64 1x1 /2", 8, 56, 64, 128, 1, 2}};
  static const case_t pools[] = {{"lenet maxpool1 2x2", 128, 28, 32, 0, 2, 2},
                                 {"lenet maxpool2 2x2", 128, 14, 64, 0, 2, 2},
                                 {"112x112x64 3x3 /2", 4, 112, 64, 0, 3, 2}};
  weir_pool_t* threads = NULL;
  double seconds = argc > 2 ? atof(argv[2]) : 1;
  weir_status_t* status = weir_pool_create(argc > 1 ? atoi(argv[1]) : 1, &threads);
  if (status) {
    fprintf(stderr, "conv_bench: %s\n", weir_status_message(status));
    weir_status_destroy(status);
    return 1;
  }
  bool ok = true;
  printf("%-24s %-7s %9s %9s %8s\n", "", "", "wall ms", "CPU ms", "GFLOP/s");
  for (size_t i = 0; ok && i < WEIR_COUNT_OF(convs); ++i) {
    ok = bench_conv(threads, &convs[i], seconds);
  }
  for (size_t i = 0; ok && i < WEIR_COUNT_OF(pools); ++i) {
    ok = bench_pool(threads, &pools[i], seconds);
  }
  weir_pool_destroy(threads);
  return ok ? 0 : 1;
}
