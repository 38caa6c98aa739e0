// bundle.c — Bundles of tensors: lifetime and copies.
#include "tensor/bundle.h"

#include "base/alloc.h"

const weir_variant_type_t weir_tensor_variant_type = {
    .type_name = "tensorflow::Tensor", .destroy = weir_bundle_destroy, .map = weir_bundle_map};

void weir_bundle_destroy(void* object) {
  weir_bundle_t* bundle = object;
  for (int i = 0; i < bundle->count; ++i) weir_tensor_release(bundle->items[i]);
  weir_free(bundle);
}

weir_status_t* weir_bundle_create(const weir_variant_type_t* type, int count,
                                  weir_bundle_t** out_bundle) {
  weir_bundle_t* bundle =
      weir_calloc(1, sizeof(*bundle) + (size_t)count * sizeof(bundle->items[0]));
  if (!bundle) return weir_out_of_memory();
  bundle->base.type = type;
  weir_ref_init(&bundle->base.ref);
  bundle->count = count;
  *out_bundle = bundle;
  return NULL;
}

weir_status_t* weir_bundle_map(const void* object, weir_tensor_map_t map, void** out_object) {
  const weir_bundle_t* from = object;
  weir_bundle_t* copy = NULL;
  weir_status_t* status = weir_bundle_create(from->base.type, from->count, &copy);
  for (int i = 0; i < from->count && !status; ++i)
    status = map.fn(map.arg, from->items[i], &copy->items[i]);
  if (status) {
    if (copy) weir_variant_release(&copy->base);
    return status;
  }
  *out_object = copy;
  return NULL;
}

const weir_bundle_t* weir_bundle_at(const weir_tensor_t* variants, int64_t i,
                                    const weir_variant_type_t* type) {
  const weir_variant_object_t* object = WEIR_TENSOR_DATA(variants, const weir_variant_t)[i].object;
  return object && object->type == type ? (const weir_bundle_t*)object : NULL;
}

const char* weir_variant_name_at(const weir_tensor_t* variants, int64_t i) {
  const weir_variant_object_t* object = WEIR_TENSOR_DATA(variants, const weir_variant_t)[i].object;
  return object ? object->type->type_name : "<empty>";
}
