// accumulate.c — Sums of tensors outside of graphs.
#include "tensor/accumulate.h"

#include "tensor/handle.h"
#include "tensor/numeric.h"

// ---- one loop a type; integers wrap, so they are added without a sign ----
#define PLUS(a, b) ((a) + (b))
#define PLUS_8(a, b) ((uint8_t)((a) + (b)))
#define PLUS_16(a, b) ((uint16_t)((a) + (b)))
#define PLUS_HALF(a, b) weir_half_from_float(weir_half_to_float(a) + weir_half_to_float(b))
#define PLUS_BFLOAT16(a, b) \
  weir_bfloat16_from_float(weir_bfloat16_to_float(a) + weir_bfloat16_to_float(b))

#define NAME add_float
#define T float
#define ADD PLUS
#include "tensor/accumulate_type.inc"
#define NAME add_double
#define T double
#define ADD PLUS
#include "tensor/accumulate_type.inc"
#define NAME add_complex64
#define T weir_complex64_t
#define ADD PLUS
#include "tensor/accumulate_type.inc"
#define NAME add_complex128
#define T weir_complex128_t
#define ADD PLUS
#include "tensor/accumulate_type.inc"
#define NAME add_8
#define T uint8_t
#define ADD PLUS_8
#include "tensor/accumulate_type.inc"
#define NAME add_16
#define T uint16_t
#define ADD PLUS_16
#include "tensor/accumulate_type.inc"
#define NAME add_32
#define T uint32_t
#define ADD PLUS
#include "tensor/accumulate_type.inc"
#define NAME add_64
#define T uint64_t
#define ADD PLUS
#include "tensor/accumulate_type.inc"
#define NAME add_half
#define T weir_half_t
#define ADD PLUS_HALF
#include "tensor/accumulate_type.inc"
#define NAME add_bfloat16
#define T weir_bfloat16_t
#define ADD PLUS_BFLOAT16
#include "tensor/accumulate_type.inc"

typedef void (*add_fn_t)(void* dst, const void* a, const void* b, int64_t n);
static const add_fn_t add_table[WEIR_DTYPE_COUNT] = {[WEIR_DTYPE_FLOAT] = add_float,
                                                     [WEIR_DTYPE_DOUBLE] = add_double,
                                                     [WEIR_DTYPE_COMPLEX64] = add_complex64,
                                                     [WEIR_DTYPE_COMPLEX128] = add_complex128,
                                                     [WEIR_DTYPE_INT8] = add_8,
                                                     [WEIR_DTYPE_UINT8] = add_8,
                                                     [WEIR_DTYPE_INT16] = add_16,
                                                     [WEIR_DTYPE_UINT16] = add_16,
                                                     [WEIR_DTYPE_INT32] = add_32,
                                                     [WEIR_DTYPE_UINT32] = add_32,
                                                     [WEIR_DTYPE_INT64] = add_64,
                                                     [WEIR_DTYPE_UINT64] = add_64,
                                                     [WEIR_DTYPE_HALF] = add_half,
                                                     [WEIR_DTYPE_BFLOAT16] = add_bfloat16};

// ---- variants ----

static weir_status_t* add_objects(const weir_variant_object_t* a, const weir_variant_object_t* b,
                                  void** out_sum) {
  if (!a || !b || a->type != b->type) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Cannot add variants of different types: %s and %s",
                       a ? a->type->type_name : "empty", b ? b->type->type_name : "empty");
  }
  if (!a->type->add)
    return WEIR_STATUS(UNIMPLEMENTED, "No sum of variants of type %s", a->type->type_name);
  return a->type->add(a, b, out_sum);
}

static weir_status_t* add_variants(const weir_tensor_t* a, const weir_tensor_t* b,
                                   weir_tensor_t** out_sum) {
  weir_tensor_t* sum = NULL;
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_VARIANT, a->rank, a->dims, &sum));
  const weir_variant_t* x = WEIR_TENSOR_DATA(a, const weir_variant_t);
  const weir_variant_t* y = WEIR_TENSOR_DATA(b, const weir_variant_t);
  for (int64_t i = 0; i < a->count; ++i) {
    void* object = NULL;
    weir_status_t* status = add_objects(x[i].object, y[i].object, &object);
    if (status) {
      weir_tensor_release(sum);
      return status;
    }
    WEIR_TENSOR_DATA(sum, weir_variant_t)[i].object = object;
  }
  *out_sum = sum;
  return NULL;
}

// ---- public functions ----

weir_status_t* weir_tensor_accumulate(weir_tensor_t** take_sum, const weir_tensor_t* value) {
  weir_tensor_t* old = *take_sum;
  weir_dtype_t dtype = weir_tensor_type(old);
  weir_tensor_t* sum = NULL;
  if (dtype == WEIR_DTYPE_VARIANT) {
    WEIR_TRY(add_variants(old, value, &sum));
  } else {
    add_fn_t add = add_table[dtype];
    if (!add)
      return WEIR_STATUS(INVALID_ARGUMENT, "tensors of type %s cannot be added",
                         weir_dtype_name(dtype));
    if (weir_tensor_is_sole(old)) {
      add(old->data, old->data, value->data, old->count);
      return NULL;
    }
    WEIR_TRY(weir_tensor_create(dtype, old->rank, old->dims, &sum));
    add(sum->data, old->data, value->data, old->count);
  }
  weir_tensor_release(old);
  *take_sum = sum;
  return NULL;
}

weir_status_t* weir_tensor_create_zeros(weir_dtype_t dtype, int rank, const int64_t* dims,
                                        weir_tensor_t** out_tensor) {
  WEIR_TRY(weir_tensor_create(dtype, rank, dims, out_tensor));
  size_t size = weir_tensor_byte_size(*out_tensor);
  if (size > 0 && weir_dtype_is_plain(dtype)) memset((*out_tensor)->data, 0, size);
  return NULL;
}
