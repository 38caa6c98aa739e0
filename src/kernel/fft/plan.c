// plan.c — Factors lengths and computes roots of unity.
#include "kernel/fft/plan.h"

#include <math.h>

#include "base/alloc.h"

#define TAU 6.28318530717958647692

// exp(-2 pi i k / n) into element |at| of |table|, with the angle within an eighth of a turn.
static void put_root(bool is_double, void* table, int64_t at, int64_t k, int64_t n) {
  k %= n;
  const int64_t eighths = 8 * k / n;        // n is far below 2^60
  const int64_t turns = (eighths + 1) / 2;  // quarters
  const double angle = TAU * (double)(4 * k - turns * n) / (4.0 * (double)n);
  const double c = cos(angle), s = -sin(angle);
  const double re[] = {c, s, -c, -s}, im[] = {s, -c, -s, c};
  if (is_double) {
    ((double*)table)[2 * at] = re[turns & 3];
    ((double*)table)[2 * at + 1] = im[turns & 3];
  } else {
    ((float*)table)[2 * at] = (float)re[turns & 3];
    ((float*)table)[2 * at + 1] = (float)im[turns & 3];
  }
}

static void* make_table(bool is_double, int64_t count) {
  return weir_alloc_array((size_t)WEIR_MAX(count, 1), is_double ? 16 : 8);
}

static bool find_stages(weir_fft_plan_t* plan) {
  int64_t rest = plan->inner;
  static const int first[] = {4, 2, 3, 5};
  for (size_t i = 0; i < WEIR_COUNT_OF(first); ++i) {
    for (; rest % first[i] == 0; rest /= first[i]) plan->radices[plan->stage_count++] = first[i];
  }
  for (int radix = 7; rest > 1 && radix <= WEIR_FFT_LARGEST_RADIX; radix += 2) {
    for (; rest % radix == 0; rest /= radix) plan->radices[plan->stage_count++] = radix;
  }
  return rest == 1;
}

static weir_status_t* make_roots(weir_fft_plan_t* plan) {
  int64_t total = 0, radix_total = 0, n = plan->inner;
  for (int i = 0; i < plan->stage_count; ++i) {
    const int64_t m = n / plan->radices[i];
    total += m * (plan->radices[i] - 1);
    radix_total += plan->radices[i];
    n = m;
  }
  plan->stage_roots = make_table(plan->is_double, total);
  plan->radix_roots = make_table(plan->is_double, radix_total);
  if (!plan->stage_roots || !plan->radix_roots) return weir_out_of_memory();
  int64_t at = 0, radix_at = 0;
  n = plan->inner;
  for (int i = 0; i < plan->stage_count; ++i) {
    const int64_t radix = plan->radices[i], m = n / radix;
    for (int64_t p = 0; p < m; ++p) {
      for (int64_t k = 1; k < radix; ++k) {
        put_root(plan->is_double, plan->stage_roots, at++, p * k, n);
      }
    }
    for (int64_t k = 0; k < radix; ++k) {
      put_root(plan->is_double, plan->radix_roots, radix_at++, k, radix);
    }
    n = m;
  }
  return NULL;
}

static void put_conjugate(bool is_double, const void* from, int64_t k, void* to, int64_t at) {
  if (is_double) {
    ((double*)to)[2 * at] = ((const double*)from)[2 * k];
    ((double*)to)[2 * at + 1] = -((const double*)from)[2 * k + 1];
  } else {
    ((float*)to)[2 * at] = ((const float*)from)[2 * k];
    ((float*)to)[2 * at + 1] = -((const float*)from)[2 * k + 1];
  }
}

static weir_status_t* make_chirp(weir_fft_plan_t* plan) {
  const int64_t n = plan->inner;
  int64_t longer = 1;
  while (longer < 2 * n - 1) longer *= 2;
  WEIR_TRY(weir_fft_plan_create(longer, false, plan->is_double, &plan->longer));
  plan->chirp = make_table(plan->is_double, n);
  plan->chirp_transform = make_table(plan->is_double, longer);
  if (!plan->chirp || !plan->chirp_transform) return weir_out_of_memory();
  // k^2 modulo 2 n, by differences: its square may not fit.
  int64_t square = 0;
  for (int64_t k = 0; k < n; ++k) {
    put_root(plan->is_double, plan->chirp, k, square, 2 * n);
    square = (square + 2 * k + 1) % (2 * n);
  }
  memset(plan->chirp_transform, 0, (size_t)longer * (plan->is_double ? 16 : 8));
  for (int64_t k = 0; k < n; ++k) {
    put_conjugate(plan->is_double, plan->chirp, k, plan->chirp_transform, k);
    if (k > 0) put_conjugate(plan->is_double, plan->chirp, k, plan->chirp_transform, longer - k);
  }
  const weir_fft_side_t side = {.data = plan->chirp_transform, .step = 1};
  const weir_fft_pass_t pass = {
      .plan = plan->longer, .scale = 1, .dims = {1, 1, 1}, .in = side, .out = side};
  return weir_fft_run(NULL, &pass);
}

static weir_status_t* make_plan(weir_fft_plan_t* plan) {
  if (plan->is_real) {
    plan->real_roots = make_table(plan->is_double, plan->n / 2 + 1);
    if (!plan->real_roots) return weir_out_of_memory();
    for (int64_t k = 0; k <= plan->n / 2; ++k) {
      put_root(plan->is_double, plan->real_roots, k, k, plan->n);
    }
  }
  if (find_stages(plan)) return make_roots(plan);
  plan->stage_count = 0;
  return make_chirp(plan);
}

weir_status_t* weir_fft_plan_create(int64_t n, bool is_real, bool is_double,
                                    weir_fft_plan_t** out_plan) {
  weir_fft_plan_t* plan = weir_alloc_array(1, sizeof(*plan));
  if (!plan) return weir_out_of_memory();
  memset(plan, 0, sizeof(*plan));
  atomic_init(&plan->references, 1);
  plan->n = n;
  plan->is_real = is_real;
  plan->is_double = is_double;
  plan->inner = is_real && n % 2 == 0 ? n / 2 : n;
  weir_status_t* status = make_plan(plan);
  if (status) {
    weir_fft_plan_release(plan);
    return status;
  }
  *out_plan = plan;
  return NULL;
}

void weir_fft_plan_retain(weir_fft_plan_t* plan) {
  atomic_fetch_add_explicit(&plan->references, 1, memory_order_relaxed);  // who calls holds one
}

void weir_fft_plan_release(weir_fft_plan_t* plan) {
  if (!plan || atomic_fetch_sub(&plan->references, 1) != 1) return;
  weir_fft_plan_release(plan->longer);
  weir_free(plan->stage_roots);
  weir_free(plan->radix_roots);
  weir_free(plan->real_roots);
  weir_free(plan->chirp);
  weir_free(plan->chirp_transform);
  weir_free(plan);
}

bool weir_fft_plan_is(const weir_fft_plan_t* plan, int64_t n, bool is_real, bool is_double) {
  return plan->n == n && plan->is_real == is_real && plan->is_double == is_double;
}
