// cuda_ternary.c — Launches of operations of three operands.
#include "kernel/elementwise/cuda_ternary.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(ternary);

static weir_status_t* find(weir_device_t* device, const char* x, const char* type,
                           const char* formula, weir_cuda_ternary_t* out) {
  const char* names[] = {"ternary", "ternary_spread"};
  weir_cuda_function_t* functions[] = {&out->flat, &out->spread};
  for (int i = 0; i < 2; ++i) {
    weir_strbuf_t text = {0};
    weir_strbuf_printf(&text, "#define X %s\n#define T %s\n#define FORMULA %s\n", x, type, formula);
    WEIR_TRY(weir_cuda_build(device, &text, weir_cuda_source_ternary, names[i], functions[i]));
  }
  return NULL;
}

weir_status_t* weir_cuda_select_find(weir_device_t* device, size_t size, weir_cuda_ternary_t* out) {
  const char* type = weir_cuda_bytes_name(size);
  if (!type) return WEIR_STATUS(UNIMPLEMENTED, "no GPU kernel for elements of %zu bytes", size);
  return find(device, "bool", type, "x ? a : b", out);
}

weir_status_t* weir_cuda_clamp_find(weir_device_t* device, weir_dtype_t dtype,
                                    weir_cuda_ternary_t* out) {
  const char* type = weir_cuda_type_name(dtype);
  if (!type) return WEIR_STATUS(UNIMPLEMENTED, "type %s has no GPU kernel", weir_dtype_name(dtype));
  return find(device, type, type, "clamped(x, a, b)", out);
}

// ---- launches ----

// As the kernel has it.
enum { MAX_DIMS = 8 };
typedef struct spread_t {
  int64_t dims[MAX_DIMS], strides[3][MAX_DIMS];
  int rank;
} spread_t;

// Whether dimension |d| of |of| goes on where dimension |last| of |by| ends, for all operands.
static bool joins(const spread_t* by, int last, const weir_ternary_t* of, int d) {
  for (int k = 0; k < 3; ++k) {
    if (by->strides[k][last] != of->strides[k][d] * of->dims[d]) return false;
  }
  return true;
}

// Dimensions of one element left out, neighbours that no operand tells apart merged. False: too
// many are left.
static bool merge(const weir_ternary_t* of, spread_t* out) {
  out->rank = 0;
  for (int d = 0; d < of->rank; ++d) {
    if (of->dims[d] == 1) continue;
    int last = out->rank - 1;
    bool is_joined = last >= 0 && joins(out, last, of, d);
    if (!is_joined && ++last == MAX_DIMS) return false;
    out->dims[last] = of->dims[d] * (is_joined ? out->dims[last] : 1);
    for (int k = 0; k < 3; ++k) out->strides[k][last] = of->strides[k][d];
    out->rank = last + 1;
  }
  return true;
}

static bool is_aligned(const void* pointer) { return ((uintptr_t)pointer & 15) == 0; }

static weir_status_t* run_flat(weir_device_t* device, const weir_cuda_ternary_t* functions,
                               const weir_ternary_t* of, const spread_t* by, int64_t n) {
  const void *x = of->x, *a = of->a, *b = of->b;
  void* y = of->y;
  int steps[3], aligned = is_aligned(y);
  for (int k = 0; k < 3; ++k) {
    steps[k] = by->rank == 0 || by->strides[k][0] != 0;
    aligned &= !steps[k] || is_aligned(k == 0 ? x : k == 1 ? a : b);
  }
  weir_cuda_size_t size = weir_cuda_size_for(device, n / 4 + 1);
  return weir_cuda_launch(
      device, functions->flat, &size,
      WEIR_CUDA_ARGS(&x, &a, &b, &y, &n, &steps[0], &steps[1], &steps[2], &aligned));
}

weir_status_t* weir_cuda_ternary_run(weir_device_t* device, const weir_cuda_ternary_t* functions,
                                     const weir_ternary_t* of) {
  int64_t n = 1;
  spread_t by;
  for (int d = 0; d < of->rank; ++d) n *= of->dims[d];
  if (n == 0) return NULL;
  if (!merge(of, &by))
    return WEIR_STATUS(UNIMPLEMENTED, "Broadcast between more than %d dimensions is not supported",
                       MAX_DIMS);
  if (by.rank <= 1) return run_flat(device, functions, of, &by, n);
  const void *x = of->x, *a = of->a, *b = of->b;
  void* y = of->y;
  weir_cuda_size_t size = weir_cuda_size_for(device, n);
  return weir_cuda_launch(device, functions->spread, &size,
                          WEIR_CUDA_ARGS(&x, &a, &b, &y, &n, &by));
}
