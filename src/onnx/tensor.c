// tensor.c — Reading TensorProto messages of ONNX.
#include "onnx/tensor.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "file/mapping.h"
#include "onnx/proto.h"
#include "tensor/tensor.h"
#include "wire/wire.h"

enum {
  TENSOR_DIMS = 1,
  TENSOR_TYPE = 2,
  TENSOR_SEGMENT = 3,
  TENSOR_FLOATS = 4,
  TENSOR_INT32S = 5,
  TENSOR_STRINGS = 6,
  TENSOR_INT64S = 7,
  TENSOR_NAME = 8,
  TENSOR_RAW = 9,
  TENSOR_DOUBLES = 10,
  TENSOR_UINT64S = 11,
  TENSOR_EXTERNAL = 13,
  TENSOR_LOCATION = 14,
};
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };

// What a TensorProto says, but for its numbers.
typedef struct header_t {
  weir_view_t name, raw, message;
  bool has_raw, is_external, is_segment;
  int64_t type;
  weir_dtype_t dtype;
  int rank;
  int64_t dims[WEIR_MAX_RANK];
  int64_t count;
} header_t;

static weir_status_t* bad(const header_t* header, const char* what) {
  return WEIR_STATUS(INVALID_ARGUMENT, "tensor '%.*s' %s", WEIR_VIEW_ARG(header->name), what);
}

static weir_status_t* add_dims(const weir_wire_reader_t* reader, header_t* header) {
  weir_wire_packed_t packed = weir_wire_packed(reader, WEIR_WIRE_VARINT);
  uint64_t bits = 0;
  while (weir_wire_packed_next(&packed, &bits)) {
    if (header->rank == WEIR_MAX_RANK) return bad(header, "has too many dimensions");
    header->dims[header->rank++] = (int64_t)bits;
  }
  return packed.failed ? bad(header, "has malformed dimensions") : NULL;
}

static weir_status_t* read_header(weir_view_t message, header_t* header) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  header->message = message;
  while (weir_wire_next(&reader)) {
    switch (reader.field) {
      case TENSOR_DIMS: WEIR_TRY(add_dims(&reader, header)); break;
      case TENSOR_TYPE: header->type = weir_wire_int(&reader); break;
      case TENSOR_SEGMENT: header->is_segment = true; break;
      case TENSOR_NAME: header->name = reader.bytes; break;
      case TENSOR_RAW:
        header->raw = reader.bytes;
        header->has_raw = true;
        break;
      case TENSOR_LOCATION: header->is_external = reader.value == 1; break;
      default: break;
    }
  }
  WEIR_TRY(weir_wire_check(&reader, "TensorProto"));
  header->dtype = onnx_dtype(header->type);
  if (header->dtype == WEIR_DTYPE_INVALID)
    return WEIR_STATUS(UNIMPLEMENTED, "tensor '%.*s' is of type %s", WEIR_VIEW_ARG(header->name),
                       onnx_type_name(header->type));
  if (header->is_segment)
    return WEIR_STATUS(UNIMPLEMENTED, "tensor '%.*s' is a segment of one",
                       WEIR_VIEW_ARG(header->name));
  weir_status_t* status =
      weir_shape_count(header->dtype, header->rank, header->dims, &header->count);
  return weir_status_prefix(status, "tensor '%.*s': ", WEIR_VIEW_ARG(header->name));
}

// ---- bytes as they lie in memory ----

static bool is_nibbles(weir_dtype_t dtype) {
  return dtype == WEIR_DTYPE_INT4 || dtype == WEIR_DTYPE_UINT4;
}

static size_t raw_size(const header_t* header) {
  size_t count = (size_t)header->count;
  return is_nibbles(header->dtype) ? (count + 1) / 2 : count * weir_dtype_size(header->dtype);
}

// Two elements a byte, the lower half first; here each has a byte of its own.
static void unpack_nibbles(const header_t* header, const uint8_t* from, int8_t* to) {
  for (int64_t i = 0; i < header->count; ++i) {
    int value = from[i / 2] >> (i % 2 * 4) & 0xf;
    to[i] = (int8_t)(header->dtype == WEIR_DTYPE_INT4 && value > 7 ? value - 16 : value);
  }
}

static weir_status_t* from_bytes(const header_t* header, weir_view_t bytes,
                                 weir_tensor_t** out_tensor) {
  weir_tensor_t* tensor = NULL;
  if (!weir_dtype_is_plain(header->dtype)) return bad(header, "has strings as raw bytes");
  if (bytes.size != raw_size(header))
    return WEIR_STATUS(DATA_LOSS, "tensor '%.*s' has %zu bytes, but its shape needs %zu",
                       WEIR_VIEW_ARG(header->name), bytes.size, raw_size(header));
  WEIR_TRY(weir_tensor_create(header->dtype, header->rank, header->dims, &tensor));
  if (is_nibbles(header->dtype)) unpack_nibbles(header, (const uint8_t*)bytes.data, tensor->data);
  else if (bytes.size > 0) memcpy(tensor->data, bytes.data, bytes.size);
  for (int64_t i = 0; header->dtype == WEIR_DTYPE_BOOL && i < tensor->count; ++i)
    WEIR_TENSOR_DATA(tensor, uint8_t)[i] = WEIR_TENSOR_DATA(tensor, uint8_t)[i] != 0;
  *out_tensor = tensor;
  return NULL;
}

// ---- external data ----

void onnx_files_free(onnx_files_t* files) {
  weir_map_entry_t* entry = NULL;
  for (size_t i = 0; (entry = weir_map_next(&files->mappings, &i));)
    weir_mapping_release(entry->value);
  weir_map_free(&files->mappings);
}

typedef struct place_t {
  weir_view_t location;
  int64_t offset, length;  // length -1: up to the end
} place_t;

static weir_status_t* read_number(const header_t* header, weir_view_t text, int64_t* out_number) {
  if (weir_parse_int64(text, out_number) && *out_number >= 0) return NULL;
  return bad(header, "has a bad offset or length of external data");
}

static weir_status_t* read_place(const header_t* header, place_t* place) {
  weir_wire_reader_t reader = weir_wire_reader(header->message);
  while (weir_wire_next(&reader)) {
    if (reader.field != TENSOR_EXTERNAL) continue;
    weir_view_t key = {0}, value = {0};
    weir_wire_reader_t entry = weir_wire_reader(reader.bytes);
    while (weir_wire_next(&entry)) {
      if (entry.field == ENTRY_KEY) key = entry.bytes;
      if (entry.field == ENTRY_VALUE) value = entry.bytes;
    }
    WEIR_TRY(weir_wire_check(&entry, "StringStringEntryProto"));
    if (weir_view_is(key, "offset")) WEIR_TRY(read_number(header, value, &place->offset));
    if (weir_view_is(key, "length")) WEIR_TRY(read_number(header, value, &place->length));
    if (weir_view_is(key, "location")) place->location = value;
  }
  return place->location.size ? NULL : bad(header, "has external data without a location");
}

// Whether |path|, links followed, is below |folder|.
static bool is_inside(const char* folder, const char* path) {
  char* real_folder = realpath(folder, NULL);
  char* real_path = realpath(path, NULL);
  size_t size = real_folder ? strlen(real_folder) : 0;
  bool is_root = size == 1;
  bool is_good = real_folder && real_path && strncmp(real_folder, real_path, size) == 0 &&
                 (is_root || real_path[size] == '/');
  free(real_folder);
  free(real_path);
  return is_good;
}

static weir_status_t* open_file(const header_t* header, onnx_files_t* files, weir_view_t location,
                                weir_mapping_t** out_mapping) {
  weir_strbuf_t path = {0};
  *out_mapping = weir_map_find(&files->mappings, location);
  if (*out_mapping) return NULL;
  if (!files->folder) return bad(header, "has external data, but the model is not a file");
  bool is_plain = location.data[0] != '/' && !memchr(location.data, '\0', location.size);
  weir_strbuf_printf(&path, "%s/%.*s", files->folder, WEIR_VIEW_ARG(location));
  weir_status_t* status = weir_strbuf_finish(&path);
  if (!status && is_plain && !weir_fs_exists(path.data))
    status = WEIR_STATUS(NOT_FOUND, "tensor '%.*s': no file '%s' with its data",
                         WEIR_VIEW_ARG(header->name), path.data);
  if (!status && !(is_plain && is_inside(files->folder, path.data)))
    status = bad(header, "has external data outside of the model's folder");
  if (!status) status = weir_mapping_create(path.data, out_mapping);
  if (!status) {
    status = weir_map_put(&files->mappings, location, *out_mapping);
    if (status) weir_mapping_release(*out_mapping);
  }
  weir_strbuf_free(&path);
  return status;
}

static weir_status_t* from_file(const header_t* header, onnx_files_t* files,
                                weir_tensor_t** out_tensor) {
  place_t place = {.length = -1};
  weir_mapping_t* mapping = NULL;
  WEIR_TRY(read_place(header, &place));
  WEIR_TRY(open_file(header, files, place.location, &mapping));
  size_t offset = (size_t)place.offset;
  if (offset > mapping->size) return bad(header, "has external data beyond the end of their file");
  size_t size = place.length < 0 ? mapping->size - offset : (size_t)place.length;
  if (size > mapping->size - offset)
    return bad(header, "has external data beyond the end of their file");
  char* data = mapping->data + offset;
  bool is_aligned = (uintptr_t)data % WEIR_MIN(weir_dtype_size(header->dtype), 8) == 0;
  bool is_plain = weir_dtype_is_plain(header->dtype) && !is_nibbles(header->dtype) &&
                  header->dtype != WEIR_DTYPE_BOOL;
  if (!is_plain || !is_aligned || size != raw_size(header) || size == 0)
    return from_bytes(header, weir_view(data, size), out_tensor);
  return weir_tensor_wrap(header->dtype, header->rank, header->dims, data, size, weir_mapping_drop,
                          weir_mapping_retain(mapping), out_tensor);
}

// ---- numbers in fields of their own ----

static weir_status_t* from_strings(const header_t* header, weir_tensor_t** out_tensor) {
  int64_t count = 0;
  weir_tensor_t* tensor = NULL;
  weir_wire_reader_t reader = weir_wire_reader(header->message);
  while (weir_wire_next(&reader)) count += reader.field == TENSOR_STRINGS;
  if (count != header->count) return bad(header, "has too few or too many strings");
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_STRING, header->rank, header->dims, &tensor));
  weir_status_t* status = NULL;
  reader = weir_wire_reader(header->message);
  for (int64_t i = 0; !status && weir_wire_next(&reader);) {
    if (reader.field != TENSOR_STRINGS) continue;
    status = weir_tensor_set_string(tensor, i++, reader.bytes.data, reader.bytes.size);
  }
  if (status) weir_tensor_release(tensor);
  else *out_tensor = tensor;
  return status;
}

typedef struct field_t {
  uint32_t number;
  weir_wire_type_t type;
  size_t size;  // bytes of an element that a value of the field stands for
} field_t;

static field_t field_of(weir_dtype_t dtype) {
  size_t size = weir_dtype_size(dtype);
  switch (dtype) {
    case WEIR_DTYPE_FLOAT:
    case WEIR_DTYPE_COMPLEX64: return (field_t){TENSOR_FLOATS, WEIR_WIRE_FIXED32, 4};
    case WEIR_DTYPE_DOUBLE:
    case WEIR_DTYPE_COMPLEX128: return (field_t){TENSOR_DOUBLES, WEIR_WIRE_FIXED64, 8};
    case WEIR_DTYPE_INT64: return (field_t){TENSOR_INT64S, WEIR_WIRE_VARINT, size};
    case WEIR_DTYPE_UINT32:
    case WEIR_DTYPE_UINT64: return (field_t){TENSOR_UINT64S, WEIR_WIRE_VARINT, size};
    default: return (field_t){TENSOR_INT32S, WEIR_WIRE_VARINT, size};
  }
}

static weir_status_t* count_values(const header_t* header, field_t field, uint64_t* out_total) {
  weir_wire_reader_t reader = weir_wire_reader(header->message);
  *out_total = 0;
  while (weir_wire_next(&reader)) {
    uint64_t count = 0;
    if (reader.field != field.number) continue;
    if (!weir_wire_packed_count(weir_wire_packed(&reader, field.type), &count))
      return bad(header, "has malformed data");
    *out_total += count;
  }
  return NULL;
}

static weir_status_t* from_numbers(const header_t* header, weir_tensor_t** out_tensor) {
  field_t field = field_of(header->dtype);
  uint64_t total = 0, bits = 0;
  weir_tensor_t* tensor = NULL;
  bool is_packed = is_nibbles(header->dtype);
  size_t needed = is_packed ? raw_size(header)
                            : (size_t)header->count * weir_dtype_size(header->dtype) / field.size;
  WEIR_TRY(count_values(header, field, &total));
  if (total != needed)
    return WEIR_STATUS(DATA_LOSS, "tensor '%.*s' has %llu values, but its shape needs %zu",
                       WEIR_VIEW_ARG(header->name), (unsigned long long)total, needed);
  WEIR_TRY(weir_tensor_create(header->dtype, header->rank, header->dims, &tensor));
  uint8_t* to = tensor->data;
  weir_wire_reader_t reader = weir_wire_reader(header->message);
  while (weir_wire_next(&reader)) {
    if (reader.field != field.number) continue;
    weir_wire_packed_t packed = weir_wire_packed(&reader, field.type);
    while (weir_wire_packed_next(&packed, &bits)) {
      if (header->dtype == WEIR_DTYPE_BOOL) bits = bits != 0;
      memcpy(to, &bits, field.size);  // little-endian: the low bytes come first
      to += field.size;
    }
  }
  if (is_packed) {  // from the last to the first, as the bytes are where the elements go
    uint8_t* bytes = tensor->data;
    for (int64_t i = header->count - 1; i >= 0; --i) {
      int value = bytes[i / 2] >> (i % 2 * 4) & 0xf;
      bytes[i] = (uint8_t)(header->dtype == WEIR_DTYPE_INT4 && value > 7 ? value - 16 : value);
    }
  }
  *out_tensor = tensor;
  return NULL;
}

weir_status_t* onnx_tensor_parse(weir_view_t message, onnx_files_t* files,
                                 weir_tensor_t** out_tensor) {
  header_t header = {0};
  WEIR_TRY(read_header(message, &header));
  if (header.is_external) return from_file(&header, files, out_tensor);
  if (header.has_raw) return from_bytes(&header, header.raw, out_tensor);
  if (header.dtype == WEIR_DTYPE_STRING) return from_strings(&header, out_tensor);
  return from_numbers(&header, out_tensor);
}
