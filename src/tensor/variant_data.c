// variant_data.c — Bytes and tensors in a variant.
#include "tensor/variant_data.h"

#include "base/alloc.h"

static void data_destroy(void* object) {
  weir_variant_data_t* self = object;
  for (size_t i = 0; i < self->count; ++i) weir_tensor_release(self->tensors[i]);
  weir_free(self->tensors);
  weir_strbuf_free(&self->bytes);
  weir_free(self);
}

const weir_variant_type_t weir_iterator_state_type = {.type_name = "tensorflow::Iterator",
                                                      .destroy = data_destroy};

weir_status_t* weir_variant_data_create(weir_variant_data_t** out_data) {
  weir_variant_data_t* self = weir_calloc(1, sizeof(*self));
  if (!self) return weir_out_of_memory();
  self->base.type = &weir_iterator_state_type;
  weir_ref_init(&self->base.ref);
  *out_data = self;
  return NULL;
}

void weir_variant_data_release(weir_variant_data_t* data) {
  if (data) weir_variant_release(&data->base);
}

weir_status_t* weir_variant_data_add(weir_variant_data_t* data, weir_tensor_t* take_tensor) {
  if (!WEIR_GROW(data->tensors, data->capacity, data->count + 1)) {
    weir_tensor_release(take_tensor);
    return weir_out_of_memory();
  }
  data->tensors[data->count++] = take_tensor;
  return NULL;
}
