// gemm_bench.c — Float products: Weir's to OpenBLAS's, one thread, interleaved, the best of seven.
//
//   cmake --build build/release --target gemm_bench && build/release/gemm_bench
#include <stdio.h>
#include <time.h>

#include "base/alloc.h"
#include "kernel/gemm/blas.h"
#include "kernel/gemm/gemm.h"

typedef struct product_t {
  int64_t m, n, k;
  bool ta, tb;
  float* a;
  float* b;
  float* c;
} product_t;

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run_weir(const product_t* p) {
  weir_gemm(NULL, p->ta ? WEIR_TRANS : WEIR_NO_TRANS, p->tb ? WEIR_TRANS : WEIR_NO_TRANS, p->m,
            p->n, p->k, 1, p->a, p->ta ? p->m : p->k, p->b, p->tb ? p->k : p->n, 0, p->c, p->n);
}

static void run_blas(const product_t* p) {
  weir_blas()->sgemm(WEIR_BLAS_ROW_MAJOR, p->ta ? WEIR_BLAS_TRANS : WEIR_BLAS_NO_TRANS,
                     p->tb ? WEIR_BLAS_TRANS : WEIR_BLAS_NO_TRANS, (int)p->m, (int)p->n, (int)p->k,
                     1, p->a, (int)(p->ta ? p->m : p->k), p->b, (int)(p->tb ? p->k : p->n), 0, p->c,
                     (int)p->n);
}

static float* numbers(int64_t count) {
  float* x = weir_alloc_array((size_t)count, sizeof(float));
  for (int64_t i = 0; x && i < count; ++i) x[i] = (float)(i * 7919 % 1013) * 0.01f - 5;
  return x;
}

// GFLOP/s of OpenBLAS and Weir, and their ratio.
static bool compare(product_t p) {
  void (*const run[2])(const product_t*) = {run_blas, run_weir};
  double best[2] = {1e9, 1e9};
  double work = 2e-9 * (double)p.m * (double)p.n * (double)p.k;
  int repeats = 1 + (int)(0.4 / work);
  p.a = numbers(p.m * p.k);
  p.b = numbers(p.k * p.n);
  p.c = numbers(p.m * p.n);
  bool ok = p.a && p.b && p.c;
  for (int round = 0; ok && round < 7; ++round) {
    for (int which = 0; which < 2; ++which) {
      double start = cpu_seconds();
      for (int i = 0; i < repeats; ++i) run[which](&p);
      best[which] = WEIR_MIN(best[which], (cpu_seconds() - start) / repeats);
    }
  }
  if (ok)
    printf("%c%c %5d x %5d x %5d %8.1f %8.1f %6.2f\n", p.ta ? 'T' : 'N', p.tb ? 'T' : 'N', (int)p.m,
           (int)p.k, (int)p.n, work / best[0], work / best[1], best[0] / best[1]);
  weir_free(p.a);
  weir_free(p.b);
  weir_free(p.c);
  return ok;
}

int main(void) {
  // m, k, n of mlp_b128, lenet_b128, the LSTMs, and plain ones.
  static const int64_t sizes[][3] = {
      {128, 784, 512},  {784, 128, 512},   {128, 512, 10},    {6272, 75, 32},   {75, 6272, 32},
      {1568, 800, 64},  {128, 3136, 1024}, {3136, 128, 1024}, {20, 1300, 2600}, {400, 200, 5000},
      {700, 650, 2500}, {64, 64, 64},      {1024, 1024, 1024}};
  if (!weir_blas()) {
    fprintf(stderr, "gemm_bench: no OpenBLAS to compare with\n");
    return 1;
  }
  printf("op     m x     k x     n  OpenBLAS     Weir  ratio   (GFLOP/s)\n");
  for (int t = 0; t < 4; ++t) {
    for (size_t s = 0; s < WEIR_COUNT_OF(sizes); ++s) {
      product_t p = {
          .m = sizes[s][0], .k = sizes[s][1], .n = sizes[s][2], .ta = t & 1, .tb = t & 2};
      if (!compare(p)) return 1;
    }
  }
  return 0;
}
