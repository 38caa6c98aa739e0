// variant_proto.c — Variant tensors to and from TensorProto: TensorLists, composite and ragged
// tensors, maps, numbers and states of iterators, element by element.
#include "tensor/variant_proto.h"

#include "tensor/composite.h"
#include "tensor/parcel_kinds.h"
#include "tensor/tensor_list.h"
#include "tensor/tensor_proto.h"
#include "tensor/variant_data.h"
#include "tensor/variant_number.h"
#include "wire/wire.h"

enum {
  TENSOR_DTYPE = 1,  // fields of TensorProto
  TENSOR_SHAPE = 2,
  TENSOR_CONTENT = 4,
  TENSOR_VARIANT = 15,
  VARIANT_TYPE = 1,  // fields of VariantTensorDataProto
  VARIANT_METADATA = 2,
  VARIANT_TENSORS = 3,
  MAX_DEPTH = 32,  // lists of lists
};

// ---- writing ----

static weir_status_t* write_tensor(const weir_tensor_t* tensor, weir_strbuf_t* out) {
  return tensor->dtype == WEIR_DTYPE_VARIANT ? weir_variant_write(tensor, out)
                                             : weir_tensor_write(tensor, out);
}

// Which elements are not set, the elements' type, the limit, and the elements' shape.
static void write_metadata(const weir_list_t* list, weir_strbuf_t* out) {
  uint64_t absent_count = 0;
  for (size_t i = 0; i < list->count; ++i) absent_count += !list->items[i];
  size_t at = weir_wire_begin(out, VARIANT_METADATA);
  weir_wire_put_varint(out, absent_count);
  for (size_t i = 0; i < list->count; ++i) {
    if (!list->items[i]) weir_wire_put_varint(out, i);
  }
  weir_wire_put_varint(out, list->dtype);
  weir_wire_put_varint(out, (uint64_t)list->max_count);
  weir_shape_write(list->shape, out);
  weir_wire_end(out, at);
}

static weir_status_t* write_tensors(weir_tensor_t* const* tensors, size_t count,
                                    weir_strbuf_t* out) {
  for (size_t i = 0; i < count; ++i) {
    if (!tensors[i]) continue;
    size_t at = weir_wire_begin(out, VARIANT_TENSORS);
    WEIR_TRY(write_tensor(tensors[i], out));
    weir_wire_end(out, at);
  }
  return NULL;
}

static weir_status_t* write_composite(const weir_parcel_t* parcel, weir_strbuf_t* out) {
  weir_view_t metadata = weir_composite_metadata(parcel);
  weir_wire_put_string(out, VARIANT_TYPE, parcel->base.type->type_name);
  weir_wire_put_bytes(out, VARIANT_METADATA, metadata.data, metadata.size);
  return write_tensors(parcel->items, (size_t)parcel->count - 1, out);  // the last is the metadata
}

static weir_status_t* write_parcel(const weir_parcel_t* parcel, weir_strbuf_t* out) {
  weir_wire_put_string(out, VARIANT_TYPE, parcel->base.type->type_name);
  return write_tensors(parcel->items, (size_t)parcel->count, out);
}

weir_status_t* weir_variant_element_write(const weir_variant_object_t* object, weir_strbuf_t* out) {
  if (!object) return NULL;
  if (object->type == &weir_iterator_state_type) {
    const weir_variant_data_t* data = (const weir_variant_data_t*)object;
    weir_wire_put_string(out, VARIANT_TYPE, object->type->type_name);
    weir_wire_put_bytes(out, VARIANT_METADATA, data->bytes.data, data->bytes.size);
    return write_tensors(data->tensors, data->count, out);
  }
  if (weir_variant_is_number(object)) {
    weir_view_t bytes = weir_variant_number_bytes(object);
    weir_wire_put_string(out, VARIANT_TYPE, object->type->type_name);
    weir_wire_put_bytes(out, VARIANT_METADATA, bytes.data, bytes.size);
    return NULL;
  }
  if (object->type == &weir_composite_variant_type) {
    return write_composite((const weir_parcel_t*)object, out);
  }
  if (object->type == weir_parcel_kind(weir_view_of(object->type->type_name))) {
    return write_parcel((const weir_parcel_t*)object, out);
  }
  if (object->type != &weir_list_type) {
    return WEIR_STATUS(UNIMPLEMENTED, "a variant that is a %s cannot be sent to another task",
                       object->type->type_name);
  }
  const weir_list_t* list = (const weir_list_t*)object;
  weir_wire_put_string(out, VARIANT_TYPE, object->type->type_name);
  write_metadata(list, out);
  return write_tensors(list->items, list->count, out);
}

weir_status_t* weir_variant_write(const weir_tensor_t* tensor, weir_strbuf_t* out) {
  weir_wire_put_int(out, TENSOR_DTYPE, WEIR_DTYPE_VARIANT);
  size_t shape = weir_wire_begin(out, TENSOR_SHAPE);
  weir_shape_write_dims(tensor->rank, tensor->dims, out);
  weir_wire_end(out, shape);
  for (int64_t i = 0; i < tensor->count; ++i) {
    size_t at = weir_wire_begin(out, TENSOR_VARIANT);
    WEIR_TRY(
        weir_variant_element_write(WEIR_TENSOR_DATA(tensor, const weir_variant_t)[i].object, out));
    weir_wire_end(out, at);
  }
  return weir_strbuf_finish(out);
}

// ---- reading ----

static weir_status_t* parse_tensor(weir_view_t proto, int depth, weir_tensor_t** out_tensor);

// Takes a varint off the front of |view|. False when there is none.
static bool take_varint(weir_view_t* view, uint64_t* out_value) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && view->size > 0; shift += 7) {
    uint8_t byte = (uint8_t)*view->data++;
    --view->size;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte & 0x80) continue;
    *out_value = value;
    return true;
  }
  return false;
}

typedef struct metadata_t {
  weir_view_t absent;  // varints: the places of elements that are not set, in order
  uint64_t absent_count;
  weir_dtype_t dtype;
  int64_t max_count;
  weir_view_t shape;
} metadata_t;

static weir_status_t* parse_metadata(weir_view_t bytes, metadata_t* out) {
  uint64_t dtype = 0, limit = 0, place;
  weir_view_t rest = bytes;
  bool is_good = take_varint(&rest, &out->absent_count) && out->absent_count <= rest.size;
  out->absent = rest;
  for (uint64_t i = 0; is_good && i < out->absent_count; ++i) is_good = take_varint(&rest, &place);
  is_good = is_good && take_varint(&rest, &dtype) && take_varint(&rest, &limit);
  if (!is_good || dtype >= WEIR_DTYPE_COUNT)
    return WEIR_STATUS(INVALID_ARGUMENT, "a TensorList has malformed metadata");
  out->dtype = (weir_dtype_t)dtype;
  out->max_count = (int64_t)limit;
  out->shape = rest;
  return NULL;
}

// Puts the tensors of |proto| into the places of |list| that |metadata| does not say are unset.
static weir_status_t* read_items(weir_view_t proto, metadata_t metadata, int depth,
                                 weir_list_t* list) {
  size_t place = 0;
  uint64_t next_absent = UINT64_MAX;
  if (metadata.absent_count > 0) take_varint(&metadata.absent, &next_absent);
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (weir_wire_next(&reader)) {
    if (reader.field != VARIANT_TENSORS || reader.type != WEIR_WIRE_BYTES) continue;
    for (; place == next_absent; ++place) {
      next_absent = UINT64_MAX;
      if (--metadata.absent_count > 0) take_varint(&metadata.absent, &next_absent);
    }
    if (place >= list->count)
      return WEIR_STATUS(INVALID_ARGUMENT, "a TensorList has malformed metadata");
    WEIR_TRY(parse_tensor(reader.bytes, depth + 1, &list->items[place]));
    if (weir_tensor_type(list->items[place++]) != list->dtype)
      return WEIR_STATUS(INVALID_ARGUMENT, "a TensorList of %s holds another type",
                         weir_dtype_name(list->dtype));
  }
  return weir_wire_check(&reader, "VariantTensorDataProto");
}

static weir_status_t* parse_list(weir_view_t proto, weir_view_t bytes, size_t set_count, int depth,
                                 weir_list_t** out_list) {
  metadata_t metadata;
  weir_arena_t arena = {0};
  const weir_shape_t* shape = NULL;
  weir_list_t* list = NULL;
  WEIR_TRY(parse_metadata(bytes, &metadata));
  weir_status_t* status = weir_shape_parse(metadata.shape, &arena, &shape);
  if (!status) {
    status =
        weir_list_create(metadata.dtype, shape, set_count + (size_t)metadata.absent_count, &list);
  }
  if (!status) list->max_count = metadata.max_count;
  if (!status) status = read_items(proto, metadata, depth, list);
  weir_arena_free(&arena);
  if (status) weir_list_release(list);
  else *out_list = list;
  return status;
}

static weir_status_t* parse_data(weir_view_t proto, weir_view_t bytes, int depth,
                                 weir_variant_object_t** out_object) {
  weir_variant_data_t* data = NULL;
  WEIR_TRY(weir_variant_data_create(&data));
  weir_strbuf_append(&data->bytes, bytes.data, bytes.size);
  weir_status_t* status = weir_strbuf_finish(&data->bytes);
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (!status && weir_wire_next(&reader)) {
    weir_tensor_t* tensor = NULL;
    if (reader.field != VARIANT_TENSORS || reader.type != WEIR_WIRE_BYTES) continue;
    status = parse_tensor(reader.bytes, depth + 1, &tensor);
    if (!status) status = weir_variant_data_add(data, tensor);
  }
  if (status) weir_variant_data_release(data);
  else *out_object = &data->base;
  return status;
}

// Reads the tensors of |proto|, as many as were counted.
static weir_status_t* parse_items(weir_view_t proto, int depth, weir_tensor_t** items) {
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (weir_wire_next(&reader)) {
    if (reader.field != VARIANT_TENSORS || reader.type != WEIR_WIRE_BYTES) continue;
    WEIR_TRY(parse_tensor(reader.bytes, depth + 1, items++));
  }
  return NULL;
}

// |kind| NULL: a composite tensor.
static weir_status_t* parse_parcel(const weir_variant_type_t* kind, weir_view_t proto,
                                   weir_view_t metadata, size_t count, int depth,
                                   weir_variant_object_t** out_object) {
  weir_parcel_t* parcel = NULL;
  if (count >= INT32_MAX) return WEIR_STATUS(INVALID_ARGUMENT, "a variant of too many tensors");
  WEIR_TRY(kind ? weir_parcel_create(kind, (int)count, &parcel)
                : weir_composite_create((int)count, metadata, &parcel));
  weir_status_t* status = parse_items(proto, depth, parcel->items);
  if (!status && kind && !weir_parcel_is_valid(parcel)) {
    status =
        WEIR_STATUS(INVALID_ARGUMENT, "the tensors of a variant do not make a %s", kind->type_name);
  }
  if (status) weir_variant_release(&parcel->base);
  else *out_object = &parcel->base;
  return status;
}

static weir_status_t* parse_element(weir_view_t proto, int depth,
                                    weir_variant_object_t** out_object) {
  weir_view_t type = {0}, metadata = {0};
  size_t count = 0;
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (weir_wire_next(&reader)) {
    if (reader.type != WEIR_WIRE_BYTES) continue;
    if (reader.field == VARIANT_TYPE) type = reader.bytes;
    if (reader.field == VARIANT_METADATA) metadata = reader.bytes;
    if (reader.field == VARIANT_TENSORS) ++count;
  }
  WEIR_TRY(weir_wire_check(&reader, "VariantTensorDataProto"));
  if (type.size == 0) return NULL;
  const weir_variant_type_t* number = weir_variant_number_type(type);
  if (number) return weir_variant_number_create(number, metadata, out_object);
  if (weir_view_is(type, weir_iterator_state_type.type_name))
    return parse_data(proto, metadata, depth, out_object);
  const weir_variant_type_t* kind = weir_parcel_kind(type);
  if (kind || weir_view_is(type, weir_composite_variant_type.type_name)) {
    return parse_parcel(kind, proto, metadata, count, depth, out_object);
  }
  if (!weir_view_equal(type, weir_view_of(weir_list_type.type_name))) {
    return WEIR_STATUS(UNIMPLEMENTED, "a variant that is a %.*s cannot be read",
                       WEIR_VIEW_ARG(type));
  }
  weir_list_t* list = NULL;
  WEIR_TRY(parse_list(proto, metadata, count, depth, &list));
  *out_object = &list->base;
  return NULL;
}

// What a TensorProto of variants says: elements one by one, or the lengths of all and then all.
typedef struct parts_t {
  uint64_t dtype;
  weir_view_t shape, content;
  int64_t count;  // elements in field variant_val
} parts_t;

static weir_status_t* split(weir_view_t proto, parts_t* out_parts) {
  *out_parts = (parts_t){.dtype = 0};
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (weir_wire_next(&reader)) {
    if (reader.field == TENSOR_DTYPE && reader.type == WEIR_WIRE_VARINT)
      out_parts->dtype = reader.value;
    if (reader.type != WEIR_WIRE_BYTES) continue;
    if (reader.field == TENSOR_SHAPE) out_parts->shape = reader.bytes;
    if (reader.field == TENSOR_CONTENT) out_parts->content = reader.bytes;
    if (reader.field == TENSOR_VARIANT) ++out_parts->count;
  }
  return weir_wire_check(&reader, "TensorProto");
}

static weir_status_t* read_content(weir_view_t content, int depth, weir_tensor_t* tensor) {
  weir_view_t sizes = content, data = content;
  uint64_t size;
  for (int64_t i = 0; i < tensor->count; ++i) {
    if (!take_varint(&data, &size))
      return WEIR_STATUS(INVALID_ARGUMENT, "a TensorProto of variants ends within their sizes");
  }
  for (int64_t i = 0; i < tensor->count; ++i) {
    if (!take_varint(&sizes, &size) || size > data.size)
      return WEIR_STATUS(INVALID_ARGUMENT, "a TensorProto of variants is shorter than they are");
    weir_view_t element = weir_view(data.data, (size_t)size);
    WEIR_TRY(parse_element(element, depth, &WEIR_TENSOR_DATA(tensor, weir_variant_t)[i].object));
    data = weir_view(data.data + size, data.size - (size_t)size);
  }
  return NULL;
}

// Values for which there is no place are left out, and places without one stay empty, as in
// TensorFlow.
static weir_status_t* read_fields(weir_view_t proto, int depth, weir_tensor_t* tensor) {
  weir_wire_reader_t reader = weir_wire_reader(proto);
  int64_t i = 0;
  while (i < tensor->count && weir_wire_next(&reader)) {
    if (reader.field != TENSOR_VARIANT || reader.type != WEIR_WIRE_BYTES) continue;
    weir_variant_t* element = &WEIR_TENSOR_DATA(tensor, weir_variant_t)[i++];
    WEIR_TRY(parse_element(reader.bytes, depth, &element->object));
  }
  return NULL;
}

static weir_status_t* parse_variants(weir_view_t proto, const parts_t* parts, int depth,
                                     weir_tensor_t** out_tensor) {
  weir_arena_t arena = {0};
  weir_tensor_t* tensor = NULL;
  const weir_shape_t* shape = NULL;
  int64_t count = 0;
  weir_status_t* status = weir_shape_parse(parts->shape, &arena, &shape);
  if (!status && !weir_shape_is_full(shape))
    status = WEIR_STATUS(INVALID_ARGUMENT, "a TensorProto has a shape that is not fully known");
  if (!status) status = weir_shape_count(WEIR_DTYPE_VARIANT, shape->rank, shape->dims, &count);
  bool has_content = parts->content.size > 0;
  if (!status && has_content && (uint64_t)count > parts->content.size) {
    status =
        WEIR_STATUS(INVALID_ARGUMENT, "a TensorProto has not the %lld variants that its shape says",
                    (long long)count);
  }
  if (!status) status = weir_tensor_proto_check_memory(WEIR_DTYPE_VARIANT, shape);
  if (!status) status = weir_tensor_create(WEIR_DTYPE_VARIANT, shape->rank, shape->dims, &tensor);
  if (!status) {
    status = has_content ? read_content(parts->content, depth, tensor)
                         : read_fields(proto, depth, tensor);
  }
  weir_arena_free(&arena);
  if (status) weir_tensor_release(tensor);
  else *out_tensor = tensor;
  return status;
}

static weir_status_t* parse_tensor(weir_view_t proto, int depth, weir_tensor_t** out_tensor) {
  parts_t parts;
  WEIR_TRY(split(proto, &parts));
  if (parts.dtype != WEIR_DTYPE_VARIANT) return weir_tensor_parse(proto, out_tensor);
  if (depth > MAX_DEPTH)
    return WEIR_STATUS(INVALID_ARGUMENT, "TensorLists are nested more than %d deep", MAX_DEPTH);
  return parse_variants(proto, &parts, depth, out_tensor);
}

bool weir_variant_is_proto(weir_view_t proto) {
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (weir_wire_next(&reader)) {
    if (reader.field == TENSOR_DTYPE && reader.type == WEIR_WIRE_VARINT)
      return reader.value == WEIR_DTYPE_VARIANT;
  }
  return false;
}

weir_status_t* weir_variant_parse(weir_view_t proto, weir_tensor_t** out_tensor) {
  return parse_tensor(proto, 0, out_tensor);
}

weir_status_t* weir_variant_element_parse(weir_view_t proto, weir_variant_object_t** out_object) {
  return parse_element(proto, 0, out_object);
}
