// elements.c — Lifetime of tensor elements that are more than bytes: strings, handles, variants.
#include "tensor/handle.h"
#include "tensor/tensor.h"

// All three kinds are empty when their bytes are zero.
void weir_elements_init(weir_dtype_t dtype, void* data, int64_t count) {
  if (weir_dtype_is_plain(dtype) || count == 0) return;
  memset(data, 0, (size_t)count * weir_dtype_size(dtype));
}

static void destroy_strings(weir_string_t* strings, int64_t count) {
  for (int64_t i = 0; i < count; ++i) weir_string_free(&strings[i]);
}

static void destroy_handles(weir_handle_t** handles, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    weir_handle_release(handles[i]);
    handles[i] = NULL;
  }
}

static void destroy_variants(weir_variant_t* variants, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    weir_variant_release(variants[i].object);
    variants[i].object = NULL;
  }
}

void weir_elements_destroy(weir_dtype_t dtype, void* data, int64_t count) {
  if (dtype == WEIR_DTYPE_STRING) destroy_strings(data, count);
  if (dtype == WEIR_DTYPE_RESOURCE) destroy_handles(data, count);
  if (dtype == WEIR_DTYPE_VARIANT) destroy_variants(data, count);
}

static weir_status_t* copy_strings(weir_string_t* dst, const weir_string_t* src, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    weir_view_t text = weir_string_view(&src[i]);
    WEIR_TRY(weir_string_set(&dst[i], text.data, text.size));
  }
  return NULL;
}

// Retaining before releasing keeps a copy onto itself safe.
static void copy_handles(weir_handle_t** dst, weir_handle_t* const* src, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    weir_handle_t* old = dst[i];
    dst[i] = weir_handle_retain(src[i]);
    weir_handle_release(old);
  }
}

static void copy_variants(weir_variant_t* dst, const weir_variant_t* src, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    weir_variant_object_t* old = dst[i].object;
    dst[i].object = weir_variant_retain(src[i].object);
    weir_variant_release(old);
  }
}

weir_status_t* weir_elements_copy(weir_dtype_t dtype, void* dst, const void* src, int64_t count) {
  if (count == 0) return NULL;
  switch (dtype) {
    case WEIR_DTYPE_STRING: return copy_strings(dst, src, count);
    case WEIR_DTYPE_RESOURCE: copy_handles(dst, src, count); return NULL;
    case WEIR_DTYPE_VARIANT: copy_variants(dst, src, count); return NULL;
    default: memmove(dst, src, (size_t)count * weir_dtype_size(dtype)); return NULL;
  }
}
