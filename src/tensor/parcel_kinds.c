// parcel_kinds.c — Rows of ragged tensors and maps as variants.
#include "tensor/parcel_kinds.h"

#include "tensor/accumulate.h"

// ---- rows of ragged tensors ----

static weir_status_t* ragged_zeros(const void* object, void** out_zeros) {
  const weir_parcel_t* from = object;
  weir_parcel_t* zeros = NULL;
  WEIR_TRY(weir_parcel_create(from->base.type, from->count, &zeros));
  const weir_tensor_t* values = from->items[from->count - 1];
  for (int i = 0; i + 1 < from->count; ++i) zeros->items[i] = weir_tensor_retain(from->items[i]);
  weir_status_t* status = weir_tensor_create_zeros(weir_tensor_type(values), values->rank,
                                                   values->dims, &zeros->items[from->count - 1]);
  if (status) weir_variant_release(&zeros->base);
  else *out_zeros = zeros;
  return status;
}

static weir_status_t* ragged_add(const void* a, const void* b, void** out_sum) {
  const weir_parcel_t* x = a;
  const weir_parcel_t* y = b;
  weir_parcel_t* sum = NULL;
  const int last = x->count - 1;
  if (x->count != y->count || x->items[last]->dtype != y->items[last]->dtype ||
      !weir_tensor_same_shape(x->items[last], y->items[last])) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Can't add RaggedTensorVariants of different dtypes or shapes");
  }
  WEIR_TRY(weir_parcel_create(x->base.type, x->count, &sum));
  for (int i = 0; i < x->count; ++i) sum->items[i] = weir_tensor_retain(x->items[i]);
  weir_status_t* status = weir_tensor_accumulate(&sum->items[last], y->items[last]);
  if (status) weir_variant_release(&sum->base);
  else *out_sum = sum;
  return status;
}

const weir_variant_type_t weir_ragged_variant_type = {.type_name = "RaggedTensorVariant",
                                                      .destroy = weir_parcel_destroy,
                                                      .map = weir_parcel_map,
                                                      .add = ragged_add,
                                                      .zeros_like = ragged_zeros};

// Whether |splits| cut |row_count| rows up.
static bool are_splits(const weir_tensor_t* splits, int64_t row_count) {
  const weir_dtype_t dtype = weir_tensor_type(splits);
  if (dtype != WEIR_DTYPE_INT32 && dtype != WEIR_DTYPE_INT64) return false;
  if (splits->rank != 1 || splits->count == 0 || weir_tensor_int_at(splits, 0) != 0) return false;
  for (int64_t i = 1; i < splits->count; ++i) {
    if (weir_tensor_int_at(splits, i) < weir_tensor_int_at(splits, i - 1)) return false;
  }
  return weir_tensor_int_at(splits, splits->count - 1) == row_count;
}

static bool is_ragged(const weir_parcel_t* parcel) {
  if (parcel->count == 0) return false;
  const weir_tensor_t* values = parcel->items[parcel->count - 1];
  if (parcel->count > 1 && values->rank == 0) return false;
  int64_t row_count = parcel->count > 1 ? values->dims[0] : 0;
  for (int i = parcel->count - 2; i >= 0; --i) {
    if (!are_splits(parcel->items[i], row_count)) return false;
    row_count = parcel->items[i]->count - 1;
  }
  return true;
}

// ---- maps ----

static weir_status_t* map_zeros(const void* object, void** out_zeros) {
  const weir_parcel_t* map = object;
  weir_parcel_t* zeros = NULL;
  WEIR_TRY(weir_parcel_create(map->base.type, 0, &zeros));
  *out_zeros = zeros;
  return NULL;
}

const weir_variant_type_t weir_map_variant_type = {.type_name = "tensorflow::TensorMap",
                                                   .destroy = weir_parcel_destroy,
                                                   .map = weir_parcel_map,
                                                   .zeros_like = map_zeros};

// ---- all of them ----

const weir_variant_type_t* weir_parcel_kind(weir_view_t type_name) {
  if (weir_view_is(type_name, weir_ragged_variant_type.type_name)) return &weir_ragged_variant_type;
  if (weir_view_is(type_name, weir_map_variant_type.type_name)) return &weir_map_variant_type;
  if (weir_view_is(type_name, weir_tensor_variant_type.type_name)) return &weir_tensor_variant_type;
  return NULL;
}

bool weir_parcel_is_valid(const weir_parcel_t* parcel) {
  if (parcel->base.type == &weir_tensor_variant_type) return parcel->count == 1;
  return parcel->base.type == &weir_map_variant_type ? parcel->count % 2 == 0 : is_ragged(parcel);
}
