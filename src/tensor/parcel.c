// parcel.c — Parcels of tensors: lifetime and copies.
#include "tensor/parcel.h"

#include "base/alloc.h"

const weir_variant_type_t weir_tensor_variant_type = {
    .type_name = "tensorflow::Tensor", .destroy = weir_parcel_destroy, .map = weir_parcel_map};

void weir_parcel_destroy(void* object) {
  weir_parcel_t* parcel = object;
  for (int i = 0; i < parcel->count; ++i) weir_tensor_release(parcel->items[i]);
  weir_free(parcel);
}

weir_status_t* weir_parcel_create(const weir_variant_type_t* type, int count,
                                  weir_parcel_t** out_parcel) {
  weir_parcel_t* parcel =
      weir_calloc(1, sizeof(*parcel) + (size_t)count * sizeof(parcel->items[0]));
  if (!parcel) return weir_out_of_memory();
  parcel->base.type = type;
  weir_ref_init(&parcel->base.ref);
  parcel->count = count;
  *out_parcel = parcel;
  return NULL;
}

weir_status_t* weir_parcel_map(const void* object, weir_tensor_map_t map, void** out_object) {
  const weir_parcel_t* from = object;
  weir_parcel_t* copy = NULL;
  weir_status_t* status = weir_parcel_create(from->base.type, from->count, &copy);
  for (int i = 0; i < from->count && !status; ++i)
    status = map.fn(map.arg, from->items[i], &copy->items[i]);
  if (status) {
    if (copy) weir_variant_release(&copy->base);
    return status;
  }
  *out_object = copy;
  return NULL;
}

const weir_parcel_t* weir_parcel_at(const weir_tensor_t* variants, int64_t i,
                                    const weir_variant_type_t* type) {
  const weir_variant_object_t* object = WEIR_TENSOR_DATA(variants, const weir_variant_t)[i].object;
  return object && object->type == type ? (const weir_parcel_t*)object : NULL;
}

const char* weir_variant_name_at(const weir_tensor_t* variants, int64_t i) {
  const weir_variant_object_t* object = WEIR_TENSOR_DATA(variants, const weir_variant_t)[i].object;
  return object ? object->type->type_name : "<empty>";
}
