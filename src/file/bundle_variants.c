// bundle_variants.c — Variant tensors in checkpoints.
//
// One element: its size as a varint, a VariantTensorDataProto, and the masked crc32c of all before
// it in the tensor, where a size counts as a uint64 and not as its varint.
#include "base/crc32c.h"
#include "file/bundle.h"
#include "file/coding.h"
#include "tensor/variant_proto.h"
#include "wire/wire.h"

static uint32_t extend(uint32_t crc, weir_view_t element) {
  uint8_t size[8];
  weir_encode64(size, element.size);
  crc = weir_crc32c_extend(crc, size, sizeof(size));
  return weir_crc32c_extend(crc, element.data, element.size);
}

static weir_status_t* write_element(weir_writer_t* out, const weir_variant_object_t* object,
                                    uint32_t* crc) {
  weir_strbuf_t size = {0}, element = {0};
  uint8_t check[4];
  weir_status_t* status = weir_variant_element_write(object, &element);
  if (!status) status = weir_strbuf_finish(&element);
  weir_wire_put_varint(&size, element.size);
  if (!status) status = weir_strbuf_finish(&size);
  if (!status) status = weir_writer_write(out, size.data, size.size);
  if (!status) status = weir_writer_write(out, element.data, element.size);
  if (!status) {
    *crc = extend(*crc, weir_strbuf_view(&element));
    weir_encode32(check, weir_crc32c_mask(*crc));
    *crc = weir_crc32c_extend(*crc, check, sizeof(check));
    status = weir_writer_write(out, check, sizeof(check));
  }
  weir_strbuf_free(&size);
  weir_strbuf_free(&element);
  return status;
}

weir_status_t* weir_bundle_write_variants(weir_writer_t* out, const weir_tensor_t* tensor,
                                          uint32_t* out_crc) {
  *out_crc = 0;
  for (int64_t i = 0; i < tensor->count; ++i)
    WEIR_TRY(write_element(out, WEIR_TENSOR_DATA(tensor, const weir_variant_t)[i].object, out_crc));
  return NULL;
}

weir_status_t* weir_bundle_parse_variants(weir_view_t bytes, weir_tensor_t* tensor,
                                          uint32_t* out_crc) {
  uint32_t crc = 0;
  for (int64_t i = 0; i < tensor->count; ++i) {
    uint64_t size = 0;
    if (!weir_take_varint(&bytes, &size) || bytes.size < 4 || size > bytes.size - 4)
      return WEIR_STATUS(DATA_LOSS, "cut off variant");
    weir_view_t element = weir_view(bytes.data, (size_t)size);
    crc = extend(crc, element);
    const char* check = bytes.data + size;
    if (weir_crc32c_unmask(weir_decode32(check)) != crc)
      return WEIR_STATUS(DATA_LOSS, "The checksum after variant %lld does not match: expected %u",
                         (long long)i, crc);
    crc = weir_crc32c_extend(crc, check, 4);
    bytes = weir_view(check + 4, bytes.size - (size_t)size - 4);
    WEIR_TRY(
        weir_variant_element_parse(element, &WEIR_TENSOR_DATA(tensor, weir_variant_t)[i].object));
  }
  *out_crc = crc;
  if (bytes.size == 0) return NULL;
  return WEIR_STATUS(DATA_LOSS, "%zu bytes follow the last variant", bytes.size);
}
