// composite.c — A composite tensor in a variant.
#include "tensor/composite.h"

const weir_variant_type_t weir_composite_variant_type = {
    .type_name = "CompositeTensorVariant", .destroy = weir_parcel_destroy, .map = weir_parcel_map};

weir_status_t* weir_composite_create(int count, weir_view_t metadata, weir_parcel_t** out_parcel) {
  weir_parcel_t* parcel = NULL;
  WEIR_TRY(weir_parcel_create(&weir_composite_variant_type, count + 1, &parcel));
  weir_status_t* status = weir_tensor_create(WEIR_DTYPE_STRING, 0, NULL, &parcel->items[count]);
  if (!status) {
    status = weir_tensor_set_string(parcel->items[count], 0, metadata.size ? metadata.data : "",
                                    metadata.size);
  }
  if (status) {
    weir_variant_release(&parcel->base);
    return status;
  }
  *out_parcel = parcel;
  return NULL;
}

weir_view_t weir_composite_metadata(const weir_parcel_t* parcel) {
  return weir_string_view(WEIR_TENSOR_DATA(parcel->items[parcel->count - 1], weir_string_t));
}
