// checkpoint_v1_writer.c — Writing checkpoints of the first format.
#include <stdlib.h>

#include "file/checkpoint_v1.h"
#include "file/table.h"
#include "file/temporary.h"
#include "tensor/shape.h"
#include "wire/wire.h"

enum { SLICES_META = 1, SLICES_DATA = 2 };
enum { META_TENSOR = 1, META_VERSIONS = 2 };
enum { TENSOR_NAME = 1, TENSOR_SHAPE = 2, TENSOR_TYPE = 3, TENSOR_SLICE = 4 };
enum { SAVED_NAME = 1, SAVED_SLICE = 2, SAVED_DATA = 3 };
#define FORMAT_VERSION 1

typedef struct saved_tensor_t {
  char* name;  // may hold zero bytes
  size_t name_size;
  weir_dtype_t dtype;
  int rank;
  int64_t dims[WEIR_MAX_RANK];
  weir_strbuf_t slices;  // fields of its SavedSliceMeta
} saved_tensor_t;

typedef struct saved_entry_t {
  weir_strbuf_t key;
  weir_strbuf_t value;
} saved_entry_t;

struct weir_v1_writer_t {
  char* path;
  saved_tensor_t** tensors;  // in the order they were added
  size_t tensor_count, tensor_capacity;
  saved_entry_t* entries;
  size_t entry_count, entry_capacity;
};

weir_status_t* weir_v1_writer_create(const char* path, weir_v1_writer_t** out_writer) {
  weir_v1_writer_t* writer = weir_calloc(1, sizeof(*writer));
  if (writer) writer->path = weir_strndup(path, strlen(path));
  if (!writer || !writer->path) {
    weir_free(writer);
    return weir_out_of_memory();
  }
  *out_writer = writer;
  return NULL;
}

void weir_v1_writer_destroy(weir_v1_writer_t* writer) {
  if (!writer) return;
  for (size_t i = 0; i < writer->tensor_count; ++i) {
    weir_free(writer->tensors[i]->name);
    weir_strbuf_free(&writer->tensors[i]->slices);
    weir_free(writer->tensors[i]);
  }
  for (size_t i = 0; i < writer->entry_count; ++i) {
    weir_strbuf_free(&writer->entries[i].key);
    weir_strbuf_free(&writer->entries[i].value);
  }
  weir_free(writer->tensors);
  weir_free(writer->entries);
  weir_free(writer->path);
  weir_free(writer);
}

// ---- values, as lists of the TensorProto that fits their type ----

typedef struct list_format_t {
  uint32_t field;  // 0: the format has none
  char kind;       // 'f' raw bytes, 'i' signed varints, 'u' unsigned ones, 's' strings
} list_format_t;

static list_format_t list_format(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: return (list_format_t){5, 'f'};
    case WEIR_DTYPE_DOUBLE: return (list_format_t){6, 'f'};
    case WEIR_DTYPE_INT8:
    case WEIR_DTYPE_INT16:
    case WEIR_DTYPE_INT32:
    case WEIR_DTYPE_QINT8:
    case WEIR_DTYPE_QINT32: return (list_format_t){7, 'i'};
    case WEIR_DTYPE_UINT8:
    case WEIR_DTYPE_UINT16:
    case WEIR_DTYPE_QUINT8: return (list_format_t){7, 'u'};
    case WEIR_DTYPE_STRING: return (list_format_t){8, 's'};
    case WEIR_DTYPE_COMPLEX64: return (list_format_t){9, 'f'};
    case WEIR_DTYPE_INT64: return (list_format_t){10, 'i'};
    case WEIR_DTYPE_BOOL: return (list_format_t){11, 'u'};
    case WEIR_DTYPE_COMPLEX128: return (list_format_t){12, 'f'};
    case WEIR_DTYPE_HALF: return (list_format_t){13, 'u'};
    default: return (list_format_t){0, ' '};
  }
}

static uint64_t integer_at(const weir_tensor_t* t, int64_t i, bool is_signed) {
  switch (weir_dtype_size(weir_tensor_type(t))) {
    case 1:
      return is_signed ? (uint64_t)(int64_t)((const int8_t*)t->data)[i]
                       : ((const uint8_t*)t->data)[i];
    case 2:
      return is_signed ? (uint64_t)(int64_t)((const int16_t*)t->data)[i]
                       : ((const uint16_t*)t->data)[i];
    case 4: return (uint64_t)(int64_t)((const int32_t*)t->data)[i];
    default: return ((const uint64_t*)t->data)[i];
  }
}

static weir_status_t* put_values(const weir_tensor_t* t, weir_strbuf_t* out) {
  const list_format_t format = list_format(weir_tensor_type(t));
  if (format.field == 0) {
    return t->dtype == WEIR_DTYPE_UINT32 || t->dtype == WEIR_DTYPE_UINT64
               ? WEIR_STATUS(INVALID_ARGUMENT,
                             "Tensor slice serialization not implemented for dtype %s",
                             weir_dtype_name(weir_tensor_type(t)))
               : WEIR_STATUS(UNIMPLEMENTED, "Saving data type %s not yet supported",
                             weir_dtype_name(weir_tensor_type(t)));
  }
  if (t->count == 0) return NULL;
  if (format.kind == 'f') {
    weir_wire_put_bytes(out, format.field, t->data,
                        (size_t)t->count * weir_dtype_size(weir_tensor_type(t)));
    return NULL;
  }
  if (format.kind == 's') {
    for (int64_t i = 0; i < t->count; ++i) {
      size_t size = 0;
      const char* text = weir_tensor_string(t, i, &size);
      weir_wire_put_bytes(out, format.field, text, size);
    }
    return NULL;
  }
  const size_t begin = weir_wire_begin(out, format.field);
  for (int64_t i = 0; i < t->count; ++i)
    weir_wire_put_varint(out, integer_at(t, i, format.kind == 'i'));
  weir_wire_end(out, begin);
  return NULL;
}

// ---- adding ----

static weir_status_t* shape_differs(const saved_tensor_t* saved, weir_view_t name, int rank,
                                    const int64_t* dims) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(
      INTERNAL, "Mismatching shapes: existing tensor = %s, trying to add name %.*s, shape = %s",
      weir_shape_text(saved->rank, saved->dims, a), WEIR_VIEW_ARG(name),
      weir_shape_text(rank, dims, b));
}

static weir_status_t* find_or_add(weir_v1_writer_t* writer, weir_view_t name, int rank,
                                  const int64_t* dims, weir_dtype_t dtype,
                                  saved_tensor_t** out_tensor) {
  for (size_t i = 0; i < writer->tensor_count; ++i) {
    saved_tensor_t* saved = writer->tensors[i];
    if (weir_view_compare(name, weir_view(saved->name, saved->name_size)) != 0) continue;
    if (saved->rank != rank || (rank && memcmp(saved->dims, dims, sizeof(*dims) * (size_t)rank)))
      return shape_differs(saved, name, rank, dims);
    if (saved->dtype != dtype) {
      return WEIR_STATUS(
          INTERNAL, "Mismatching types: existing type = %s, trying to add name %.*s, type = %s",
          weir_dtype_name(saved->dtype), WEIR_VIEW_ARG(name), weir_dtype_name(dtype));
    }
    *out_tensor = saved;
    return NULL;
  }
  if (!WEIR_GROW(writer->tensors, writer->tensor_capacity, writer->tensor_count + 1))
    return weir_out_of_memory();
  saved_tensor_t* saved = weir_calloc(1, sizeof(*saved));
  char* copy = weir_strndup(name.data ? name.data : "", name.size);
  if (!saved || !copy) {
    weir_free(saved);
    weir_free(copy);
    return weir_out_of_memory();
  }
  saved->name = copy;
  saved->name_size = name.size;
  saved->dtype = dtype;
  saved->rank = rank;
  for (int i = 0; i < rank; ++i) saved->dims[i] = dims[i];
  writer->tensors[writer->tensor_count++] = saved;
  *out_tensor = saved;
  return NULL;
}

static bool has_key(const weir_v1_writer_t* writer, const weir_strbuf_t* key) {
  for (size_t i = 0; i < writer->entry_count; ++i) {
    if (weir_view_compare(weir_strbuf_view(&writer->entries[i].key), weir_strbuf_view(key)) == 0)
      return true;
  }
  return false;
}

static weir_status_t* put_slice(const weir_tensor_t* tensor, weir_view_t name,
                                const weir_slice_t* slice, weir_strbuf_t* out) {
  const size_t saved = weir_wire_begin(out, SLICES_DATA);
  if (name.size > 0) weir_wire_put_bytes(out, SAVED_NAME, name.data, name.size);
  const size_t place = weir_wire_begin(out, SAVED_SLICE);
  weir_slice_write(slice, out);
  weir_wire_end(out, place);
  const size_t data = weir_wire_begin(out, SAVED_DATA);
  WEIR_TRY(put_values(tensor, out));
  weir_wire_end(out, data);
  weir_wire_end(out, saved);
  return NULL;
}

weir_status_t* weir_v1_writer_add(weir_v1_writer_t* writer, weir_view_t name, const int64_t* dims,
                                  const weir_slice_t* slice, const weir_tensor_t* tensor) {
  saved_tensor_t* saved = NULL;
  saved_entry_t entry = {{0}, {0}};
  WEIR_TRY(find_or_add(writer, name, slice->rank, dims, weir_tensor_type(tensor), &saved));
  const size_t place = weir_wire_begin(&saved->slices, TENSOR_SLICE);
  weir_slice_write(slice, &saved->slices);
  weir_wire_end(&saved->slices, place);
  weir_slice_append_key(name, slice, &entry.key);
  weir_status_t* status = put_slice(tensor, name, slice, &entry.value);
  if (!status) status = weir_strbuf_finish(&saved->slices);
  if (!status) status = weir_strbuf_finish(&entry.key);
  if (!status) status = weir_strbuf_finish(&entry.value);
  if (!status && !has_key(writer, &entry.key)) {
    if (WEIR_GROW(writer->entries, writer->entry_capacity, writer->entry_count + 1)) {
      writer->entries[writer->entry_count++] = entry;
      return NULL;
    }
    status = weir_out_of_memory();
  }
  weir_strbuf_free(&entry.key);
  weir_strbuf_free(&entry.value);
  return status;
}

// ---- the file ----

static void put_meta(const weir_v1_writer_t* writer, weir_strbuf_t* out) {
  const size_t meta = weir_wire_begin(out, SLICES_META);
  for (size_t i = 0; i < writer->tensor_count; ++i) {
    const saved_tensor_t* saved = writer->tensors[i];
    const size_t tensor = weir_wire_begin(out, META_TENSOR);
    if (saved->name_size > 0) weir_wire_put_bytes(out, TENSOR_NAME, saved->name, saved->name_size);
    const size_t shape = weir_wire_begin(out, TENSOR_SHAPE);
    weir_shape_write_dims(saved->rank, saved->dims, out);
    weir_wire_end(out, shape);
    weir_wire_put_int(out, TENSOR_TYPE, (int64_t)saved->dtype);
    weir_strbuf_append(out, saved->slices.data, saved->slices.size);
    weir_wire_end(out, tensor);
  }
  const size_t versions = weir_wire_begin(out, META_VERSIONS);
  weir_wire_put_int(out, 1, FORMAT_VERSION);
  weir_wire_end(out, versions);
  weir_wire_end(out, meta);
}

static int compare_entries(const void* a, const void* b) {
  return weir_view_compare(weir_strbuf_view(&((const saved_entry_t*)a)->key),
                           weir_strbuf_view(&((const saved_entry_t*)b)->key));
}

static weir_status_t* write_table(weir_v1_writer_t* writer, weir_writer_t* file) {
  weir_strbuf_t meta = {0};
  weir_table_builder_t table = weir_table_builder(file);
  put_meta(writer, &meta);
  weir_status_t* status = weir_strbuf_finish(&meta);
  if (!status) status = weir_table_add(&table, weir_view("", 0), weir_strbuf_view(&meta));
  if (writer->entry_count > 0)
    qsort(writer->entries, writer->entry_count, sizeof(*writer->entries), compare_entries);
  for (size_t i = 0; i < writer->entry_count && !status; ++i) {
    status = weir_table_add(&table, weir_strbuf_view(&writer->entries[i].key),
                            weir_strbuf_view(&writer->entries[i].value));
  }
  if (!status) status = weir_table_finish(&table);
  weir_table_builder_free(&table);
  weir_strbuf_free(&meta);
  return status;
}

weir_status_t* weir_v1_writer_finish(weir_v1_writer_t* writer) {
  weir_strbuf_t temporary = {0};
  weir_writer_t* file = NULL;
  weir_strbuf_puts(&temporary, writer->path);
  weir_temporary_append(&temporary);
  weir_status_t* status = weir_strbuf_finish(&temporary);
  if (!status) status = weir_writer_open(temporary.data, false, &file);
  if (!status) {
    status = write_table(writer, file);
    weir_status_t* closed = weir_writer_close(file);
    if (status) {
      weir_status_destroy(closed);
    } else {
      status = closed;
    }
    if (!status) status = weir_fs_rename(temporary.data, writer->path);
    if (status) weir_status_destroy(weir_fs_remove(temporary.data));
    else weir_temporary_clean(writer->path);
  }
  weir_strbuf_free(&temporary);
  return status;
}
