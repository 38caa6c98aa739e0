// checkpoint_v1_reader.c — Reading checkpoints of the first format.
#include "file/checkpoint_v1.h"
#include "file/table.h"
#include "tensor/shape.h"
#include "tensor/tensor_proto.h"
#include "wire/wire.h"

enum { SLICES_META = 1, SLICES_DATA = 2, META_TENSOR = 1, SAVED_DATA = 3 };
enum { TENSOR_NAME = 1, TENSOR_SHAPE = 2, TENSOR_TYPE = 3, TENSOR_SLICE = 4 };

// A part of a tensor, and the file that holds it.
typedef struct part_t {
  weir_slice_t slice;     // as written: its key is made of it
  weir_slice_t resolved;  // for finding out what it covers
  size_t file;
} part_t;

struct weir_v1_tensor_t {
  char* name;  // may hold zero bytes
  size_t name_size;
  weir_dtype_t dtype;
  int rank;
  int64_t dims[WEIR_MAX_RANK];
  part_t* parts;
  size_t part_count, part_capacity;
};

typedef struct v1_file_t {
  weir_strbuf_t bytes;
  weir_table_t table;
} v1_file_t;

struct weir_v1_reader_t {
  v1_file_t* files;
  size_t file_count;
  weir_v1_tensor_t** tensors;
  size_t tensor_count, tensor_capacity;
};

void weir_v1_reader_close(weir_v1_reader_t* reader) {
  if (!reader) return;
  for (size_t i = 0; i < reader->file_count; ++i) weir_strbuf_free(&reader->files[i].bytes);
  for (size_t i = 0; i < reader->tensor_count; ++i) {
    weir_free(reader->tensors[i]->name);
    weir_free(reader->tensors[i]->parts);
    weir_free(reader->tensors[i]);
  }
  weir_free(reader->files);
  weir_free(reader->tensors);
  weir_free(reader);
}

const weir_v1_tensor_t* weir_v1_reader_find(const weir_v1_reader_t* reader, weir_view_t name) {
  for (size_t i = 0; i < reader->tensor_count; ++i) {
    const weir_v1_tensor_t* tensor = reader->tensors[i];
    if (weir_view_compare(name, weir_view(tensor->name, tensor->name_size)) == 0) return tensor;
  }
  return NULL;
}

size_t weir_v1_reader_count(const weir_v1_reader_t* reader) { return reader->tensor_count; }
const weir_v1_tensor_t* weir_v1_reader_at(const weir_v1_reader_t* reader, size_t index) {
  return reader->tensors[index];
}
weir_view_t weir_v1_tensor_name(const weir_v1_tensor_t* tensor) {
  return weir_view(tensor->name, tensor->name_size);
}
size_t weir_v1_tensor_part_count(const weir_v1_tensor_t* tensor) { return tensor->part_count; }
weir_dtype_t weir_v1_tensor_dtype(const weir_v1_tensor_t* tensor) { return tensor->dtype; }
int weir_v1_tensor_rank(const weir_v1_tensor_t* tensor) { return tensor->rank; }
const int64_t* weir_v1_tensor_dims(const weir_v1_tensor_t* tensor) { return tensor->dims; }

// ---- what the files hold ----

// The tensor of a SavedSliceMeta without its slices.
typedef struct header_t {
  weir_view_t name;
  weir_dtype_t dtype;
  const weir_shape_t* shape;
} header_t;

static weir_status_t* parse_header(weir_view_t message, weir_arena_t* arena, header_t* out) {
  *out = (header_t){.shape = &weir_shape_scalar};
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.field == TENSOR_NAME && r.type == WEIR_WIRE_BYTES) out->name = r.bytes;
    if (r.field == TENSOR_SHAPE && r.type == WEIR_WIRE_BYTES)
      WEIR_TRY(weir_shape_parse(r.bytes, arena, &out->shape));
    if (r.field == TENSOR_TYPE && r.type == WEIR_WIRE_VARINT)
      out->dtype = r.value < WEIR_DTYPE_COUNT ? (weir_dtype_t)r.value : WEIR_DTYPE_INVALID;
  }
  WEIR_TRY(weir_wire_check(&r, "SavedSliceMeta"));
  if (out->dtype == WEIR_DTYPE_INVALID || !weir_shape_is_full(out->shape) ||
      out->shape->rank > WEIR_MAX_RANK) {
    return WEIR_STATUS(DATA_LOSS, "tensor '%.*s' of a checkpoint has no type or shape",
                       WEIR_VIEW_ARG(out->name));
  }
  return NULL;
}

static weir_status_t* add_tensor(weir_v1_reader_t* reader, const header_t* header,
                                 weir_v1_tensor_t** out_tensor) {
  if (!WEIR_GROW(reader->tensors, reader->tensor_capacity, reader->tensor_count + 1))
    return weir_out_of_memory();
  weir_v1_tensor_t* tensor = weir_calloc(1, sizeof(*tensor));
  char* name = weir_strndup(header->name.data ? header->name.data : "", header->name.size);
  if (!tensor || !name) {
    weir_free(tensor);
    weir_free(name);
    return weir_out_of_memory();
  }
  tensor->name = name;
  tensor->name_size = header->name.size;
  tensor->dtype = header->dtype;
  tensor->rank = header->shape->rank;
  for (int i = 0; i < tensor->rank; ++i) tensor->dims[i] = header->shape->dims[i];
  reader->tensors[reader->tensor_count++] = tensor;
  *out_tensor = tensor;
  return NULL;
}

static weir_status_t* find_or_add(weir_v1_reader_t* reader, const header_t* header,
                                  weir_v1_tensor_t** out_tensor) {
  weir_v1_tensor_t* tensor = (weir_v1_tensor_t*)weir_v1_reader_find(reader, header->name);
  if (!tensor) return add_tensor(reader, header, out_tensor);
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (!weir_shape_accepts(header->shape, tensor->rank, tensor->dims)) {
    return WEIR_STATUS(INTERNAL,
                       "Incompatible tensor shapes detected for tensor %s: existing = %s, new = %s",
                       tensor->name, weir_shape_text(tensor->rank, tensor->dims, a),
                       weir_shape_text(header->shape->rank, header->shape->dims, b));
  }
  if (tensor->dtype != header->dtype) {
    return WEIR_STATUS(
        INTERNAL, "Incompatible tensor types detected for tensor %s: existing = %s, new = %s",
        tensor->name, weir_dtype_name(tensor->dtype), weir_dtype_name(header->dtype));
  }
  *out_tensor = tensor;
  return NULL;
}

static weir_status_t* add_part(weir_v1_tensor_t* tensor, weir_view_t message, size_t file) {
  part_t part = {.file = file};
  weir_slice_t common;
  WEIR_TRY(weir_slice_parse(message, &part.slice));
  part.resolved = part.slice;
  WEIR_TRY(weir_slice_resolve(&part.resolved, tensor->rank, tensor->dims));
  for (size_t i = 0; i < tensor->part_count; ++i) {
    if (!weir_slice_intersect(&tensor->parts[i].resolved, &part.resolved, &common)) continue;
    return WEIR_STATUS(INTERNAL, "Overlapping slices of tensor %s in the checkpoint", tensor->name);
  }
  if (!WEIR_GROW(tensor->parts, tensor->part_capacity, tensor->part_count + 1))
    return weir_out_of_memory();
  tensor->parts[tensor->part_count++] = part;
  return NULL;
}

static weir_status_t* read_tensor_meta(weir_v1_reader_t* reader, weir_view_t message, size_t file) {
  weir_arena_t arena = {0};
  header_t header;
  weir_v1_tensor_t* tensor = NULL;
  weir_status_t* status = parse_header(message, &arena, &header);
  if (!status) status = find_or_add(reader, &header, &tensor);
  weir_wire_reader_t r = weir_wire_reader(message);
  while (!status && weir_wire_next(&r)) {
    if (r.field == TENSOR_SLICE && r.type == WEIR_WIRE_BYTES)
      status = add_part(tensor, r.bytes, file);
  }
  weir_arena_free(&arena);
  return status;
}

static weir_status_t* read_meta(weir_v1_reader_t* reader, weir_view_t message, size_t file) {
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.field != SLICES_META || r.type != WEIR_WIRE_BYTES) continue;
    weir_wire_reader_t meta = weir_wire_reader(r.bytes);
    while (weir_wire_next(&meta)) {
      if (meta.field == META_TENSOR && meta.type == WEIR_WIRE_BYTES)
        WEIR_TRY(read_tensor_meta(reader, meta.bytes, file));
    }
    WEIR_TRY(weir_wire_check(&meta, "SavedTensorSliceMeta"));
  }
  return weir_wire_check(&r, "SavedTensorSlices");
}

// Finds the value of |key| in a file.
static weir_status_t* find_value(const v1_file_t* file, weir_view_t key, weir_view_t* out_value) {
  weir_table_cursor_t cursor = weir_table_cursor(&file->table);
  bool found = false;
  weir_status_t* status = weir_table_seek(&cursor, key, &found);
  if (!status && (!found || weir_view_compare(weir_table_key(&cursor), key) != 0))
    status = WEIR_STATUS(DATA_LOSS, "a checkpoint lacks an entry that it says it has");
  if (!status) *out_value = weir_table_value(&cursor);
  weir_table_cursor_free(&cursor);
  return status;
}

static weir_status_t* open_file(weir_v1_reader_t* reader, const char* path) {
  v1_file_t* file = &reader->files[reader->file_count++];
  weir_view_t meta = {0};
  WEIR_TRY(weir_fs_read_all(path, &file->bytes));
  WEIR_TRY(weir_status_prefix(weir_table_open(weir_strbuf_view(&file->bytes), &file->table),
                              "Unable to open table file %s: ", path));
  WEIR_TRY(weir_status_prefix(find_value(file, weir_view("", 0), &meta), "%s: ", path));
  return read_meta(reader, meta, reader->file_count - 1);
}

weir_status_t* weir_v1_reader_open(const char* pattern, weir_v1_reader_t** out_reader) {
  weir_names_t paths = {0};
  weir_v1_reader_t* reader = weir_calloc(1, sizeof(*reader));
  weir_status_t* status = reader ? weir_fs_glob(pattern, &paths) : weir_out_of_memory();
  if (!status && paths.count == 0) {
    status = WEIR_STATUS(NOT_FOUND,
                         "Unsuccessful TensorSliceReader constructor: Failed to find any matching "
                         "files for %s",
                         pattern);
  }
  if (!status) {
    weir_names_sort(&paths);
    reader->files = weir_calloc(paths.count, sizeof(*reader->files));
    if (!reader->files) status = weir_out_of_memory();
  }
  for (size_t i = 0; i < paths.count && !status; ++i) status = open_file(reader, paths.items[i]);
  weir_names_free(&paths);
  if (status) {
    weir_v1_reader_close(reader);
    return status;
  }
  *out_reader = reader;
  return NULL;
}

// ---- values ----

// A part's values lack type and shape, which TensorProtos need: they are put before.
static weir_status_t* parse_part(const weir_v1_tensor_t* tensor, const part_t* part,
                                 weir_view_t values, weir_tensor_t** out_tensor) {
  weir_strbuf_t proto = {0};
  weir_wire_put_int(&proto, 1, (int64_t)tensor->dtype);
  const size_t shape = weir_wire_begin(&proto, 2);
  weir_shape_write_dims(tensor->rank, part->resolved.lengths, &proto);
  weir_wire_end(&proto, shape);
  weir_strbuf_append(&proto, values.data, values.size);
  weir_status_t* status = weir_strbuf_finish(&proto);
  if (!status) status = weir_tensor_parse(weir_strbuf_view(&proto), out_tensor);
  weir_strbuf_free(&proto);
  return status;
}

static weir_status_t* find_field(weir_view_t message, uint32_t field, weir_view_t* out_bytes) {
  *out_bytes = weir_view(NULL, 0);
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.field == field && r.type == WEIR_WIRE_BYTES) *out_bytes = r.bytes;
  }
  return weir_wire_check(&r, "SavedTensorSlices");
}

static weir_status_t* read_part(const weir_v1_reader_t* reader, const weir_v1_tensor_t* tensor,
                                const part_t* part, weir_tensor_t** out_tensor) {
  weir_strbuf_t key = {0};
  weir_view_t value = {0}, saved = {0}, data = {0};
  weir_slice_append_key(weir_view(tensor->name, tensor->name_size), &part->slice, &key);
  weir_status_t* status = weir_strbuf_finish(&key);
  if (!status) status = find_value(&reader->files[part->file], weir_strbuf_view(&key), &value);
  weir_strbuf_free(&key);
  if (status) return status;
  WEIR_TRY(find_field(value, SLICES_DATA, &saved));
  WEIR_TRY(find_field(saved, SAVED_DATA, &data));
  return parse_part(tensor, part, data, out_tensor);
}

weir_status_t* weir_v1_reader_read(weir_v1_reader_t* reader, const weir_v1_tensor_t* tensor,
                                   const weir_slice_t* slice, weir_tensor_t** out_tensor) {
  weir_tensor_t* out = NULL;
  int64_t covered = 0;
  weir_status_t* status = weir_tensor_create(tensor->dtype, tensor->rank, slice->lengths, &out);
  for (size_t i = 0; i < tensor->part_count && !status; ++i) {
    const part_t* part = &tensor->parts[i];
    weir_slice_t common;
    weir_tensor_t* values = NULL;
    if (!weir_slice_intersect(&part->resolved, slice, &common)) continue;
    status = read_part(reader, tensor, part, &values);
    if (!status) status = weir_slice_copy(&common, &part->resolved, values, slice, out);
    weir_tensor_release(values);
    covered += weir_slice_count(&common);
  }
  if (!status && covered != weir_slice_count(slice)) {
    status = WEIR_STATUS(INVALID_ARGUMENT,
                         "Error copying slice data: the checkpoint holds a part of '%s' only",
                         tensor->name);
  }
  if (status) {
    weir_tensor_release(out);
    return status;
  }
  *out_tensor = out;
  return NULL;
}
