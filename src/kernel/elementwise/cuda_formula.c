// cuda_formula.c — The formulas of the rows, and of casts, as text.
#include "kernel/elementwise/cuda_formula.h"

#include <string.h>

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(formula);
WEIR_CUDA_SOURCE(gamma);

void weir_cuda_put_words(weir_strbuf_t* out) {
  weir_strbuf_puts(out, weir_cuda_source_formula);
  weir_strbuf_puts(out, weir_cuda_source_gamma);
}

typedef struct formula_t {
  const char* real;
  const char* integer;
  const char* complex;
} formula_t;

static const formula_t unary_formulas[] = {
#define FUNCTION(NAME, name_, loops, form, result, ns, real_, integer_, complex_) \
  [WEIR_UNARY_##NAME] = {#real_, #integer_, #complex_},
#include "kernel/elementwise/unary_ops.inc"
};

static const formula_t binary_formulas[] = {
#define FUNCTION(NAME, name_, loops, result, ns, real_, integer_, complex_) \
  [WEIR_BINARY_##NAME] = {#real_, #integer_, #complex_},
#include "kernel/elementwise/binary_ops.inc"
};

static const char* formula_for(const formula_t* formula, weir_dtype_t dtype) {
  const char* text = weir_dtype_is_floating(dtype)  ? formula->real
                     : weir_dtype_is_complex(dtype) ? formula->complex
                                                    : formula->integer;
  return strcmp(text, "NONE") == 0 || !weir_cuda_type_name(dtype) ? NULL : text;
}

const char* weir_cuda_unary_formula(weir_unary_op_t op, weir_dtype_t dtype) {
  return formula_for(&unary_formulas[op], dtype);
}

const char* weir_cuda_binary_formula(weir_binary_op_t op, weir_dtype_t dtype) {
  return formula_for(&binary_formulas[op], dtype);
}

// As weir_cast_elements has it: what does not fit is brought into the range of the integer, one of
// at least 32 bits, NaN becomes 0.
static const char* to_integer(weir_dtype_t to) {
  switch (to) {
    case WEIR_DTYPE_INT64: return "a == a ? (int64_t)a : 0";
    case WEIR_DTYPE_UINT64: return "a == a ? (uint64_t)a : 0";
    case WEIR_DTYPE_UINT32: return "a == a ? (uint32_t)a : 0";
    default: return "a == a ? (int32_t)a : 0";
  }
}

const char* weir_cuda_cast_formula(weir_dtype_t from, weir_dtype_t to) {
  if (!weir_cuda_type_name(from) || !weir_cuda_type_name(to)) return NULL;
  if (weir_dtype_is_complex(from) || weir_dtype_is_complex(to)) return NULL;
  bool is_to_integer =
      weir_dtype_is_floating(from) && !weir_dtype_is_floating(to) && to != WEIR_DTYPE_BOOL;
  return is_to_integer ? to_integer(to) : "a";
}

const char* weir_cuda_wrapping_name(weir_dtype_t dtype) {
  return weir_dtype_size(dtype) == 8 ? "uint64_t" : "uint32_t";
}
