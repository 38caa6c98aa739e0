// bundle_writer.c — Writing checkpoints.
#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/map.h"
#include "file/bundle.h"
#include "file/coding.h"
#include "file/temporary.h"
#include "wire/wire.h"

// One entry of the index to be: a tensor, a slice, or a partitioned tensor, whose slices are
// appended.
typedef struct row_t {
  weir_bundle_entry_t entry;
  bool is_partitioned;
  weir_strbuf_t proto;
} row_t;

struct weir_bundle_writer_t {
  char* prefix;
  size_t alignment;
  weir_strbuf_t temporary;  // name of the data file until it is finished
  weir_writer_t* data;      // NULL once closed
  weir_map_t rows;          // key → row_t, owned
  bool is_finished;
};

// ---- life ----

// Makes the directory of the checkpoint, but not those above it: so does TensorFlow, and shards are
// written to "<prefix>_temp/". Why it could not be made shows when the file is opened.
static weir_status_t* make_parent(const char* prefix) {
  const weir_fs_t* fs = NULL;
  const char* local = NULL;
  WEIR_TRY(weir_fs_find(prefix, &fs, &local));
  weir_view_t parent = weir_path_parent(local);
  if (parent.size == 0) return NULL;
  char* path = weir_strndup(parent.data, parent.size);
  if (!path) return weir_out_of_memory();
  weir_status_destroy(fs->vtable->make_directory(fs, path));
  weir_free(path);
  return NULL;
}

weir_status_t* weir_bundle_writer_create(const char* prefix, size_t alignment,
                                         weir_bundle_writer_t** out_writer) {
  weir_bundle_writer_t* writer = weir_calloc(1, sizeof *writer);
  if (!writer) return weir_out_of_memory();
  writer->rows.owns_keys = true;
  writer->alignment = WEIR_MAX(alignment, (size_t)1);
  writer->prefix = weir_strdup(prefix);
  weir_bundle_append_data_path(prefix, 0, 1, &writer->temporary);
  weir_temporary_append(&writer->temporary);
  weir_status_t* status =
      writer->prefix ? weir_strbuf_finish(&writer->temporary) : weir_out_of_memory();
  if (!status) status = make_parent(prefix);
  if (!status) status = weir_writer_open(writer->temporary.data, false, &writer->data);
  if (status) {
    weir_bundle_writer_destroy(writer);
    return status;
  }
  *out_writer = writer;
  return NULL;
}

void weir_bundle_writer_destroy(weir_bundle_writer_t* writer) {
  if (!writer) return;
  weir_status_destroy(weir_writer_close(writer->data));
  if (!writer->is_finished && !writer->temporary.failed && writer->temporary.data) {
    weir_status_destroy(weir_fs_remove(writer->temporary.data));
  }
  weir_map_entry_t* e;
  for (size_t i = 0; (e = weir_map_next(&writer->rows, &i));) {
    weir_strbuf_free(&((row_t*)e->value)->proto);
    weir_free(e->value);
  }
  weir_map_free(&writer->rows);
  weir_strbuf_free(&writer->temporary);
  weir_free(writer->prefix);
  weir_free(writer);
}

// ---- tensors ----

static weir_status_t* add_row(weir_bundle_writer_t* writer, weir_view_t key, weir_dtype_t dtype,
                              int rank, const int64_t* dims, row_t** out_row) {
  row_t* row = weir_calloc(1, sizeof *row);
  if (!row) return weir_out_of_memory();
  row->entry.dtype = dtype;
  row->entry.rank = rank;
  for (int i = 0; i < rank; ++i) row->entry.dims[i] = dims[i];
  weir_status_t* status = weir_map_put(&writer->rows, key, row);
  if (status) {
    weir_free(row);
    return status;
  }
  *out_row = row;
  return NULL;
}

static weir_status_t* write_padding(weir_bundle_writer_t* writer) {
  static const char kZeros[64];
  size_t past = (size_t)(writer->data->size & (writer->alignment - 1));
  size_t missing = past ? writer->alignment - past : 0;
  while (missing > 0) {
    size_t size = WEIR_MIN(missing, sizeof kZeros);
    WEIR_TRY(weir_writer_write(writer->data, kZeros, size));
    missing -= size;
  }
  return NULL;
}

// See decode_strings of the reader for the layout.
static weir_status_t* write_strings(weir_writer_t* out, const weir_tensor_t* tensor,
                                    uint32_t* out_crc) {
  weir_strbuf_t lengths = {0};
  uint32_t crc = 0;
  size_t size = 0;
  for (int64_t i = 0; i < tensor->count; ++i) {
    uint8_t fixed[8];
    (void)weir_tensor_string(tensor, i, &size);
    weir_encode64(fixed, size);
    crc = weir_crc32c_extend(crc, fixed, size <= UINT32_MAX ? 4 : 8);
    weir_wire_put_varint(&lengths, size);
  }
  size_t at = lengths.size;
  weir_put32(&lengths, weir_crc32c_mask(crc));
  weir_status_t* status = weir_strbuf_finish(&lengths);
  if (status) goto done;
  crc = weir_crc32c_extend(crc, lengths.data + at, 4);
  status = weir_writer_write(out, lengths.data, lengths.size);
  for (int64_t i = 0; i < tensor->count && !status; ++i) {
    const char* text = weir_tensor_string(tensor, i, &size);
    crc = weir_crc32c_extend(crc, text, size);
    status = weir_writer_write(out, text, size);
  }
  *out_crc = crc;
done:
  weir_strbuf_free(&lengths);
  return status;
}

static weir_status_t* write_elements(weir_writer_t* out, const weir_tensor_t* tensor,
                                     uint32_t* out_crc) {
  if (tensor->dtype == WEIR_DTYPE_STRING) return write_strings(out, tensor, out_crc);
  if (tensor->dtype == WEIR_DTYPE_VARIANT) return weir_bundle_write_variants(out, tensor, out_crc);
  size_t size = weir_tensor_byte_size(tensor);
  *out_crc = weir_crc32c(tensor->data, size);
  return weir_writer_write(out, tensor->data, size);
}

static weir_status_t* check_key(const weir_bundle_writer_t* writer, weir_view_t key) {
  if (writer->is_finished || !writer->data) {
    return WEIR_STATUS(FAILED_PRECONDITION, "Checkpoint %s is finished already", writer->prefix);
  }
  if (key.size == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Tensors of a checkpoint must be named");
  if (!weir_map_find(&writer->rows, key)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Adding duplicate key: %.*s", WEIR_VIEW_ARG(key));
}

weir_status_t* weir_bundle_add(weir_bundle_writer_t* writer, weir_view_t key,
                               const weir_tensor_t* tensor) {
  weir_dtype_t dtype = weir_tensor_type(tensor);
  row_t* row = NULL;
  uint32_t crc = 0;
  WEIR_TRY(check_key(writer, key));
  if (!weir_dtype_is_plain(dtype) && dtype != WEIR_DTYPE_STRING && dtype != WEIR_DTYPE_VARIANT) {
    return WEIR_STATUS(UNIMPLEMENTED, "tensor %.*s: saving tensors of type %s", WEIR_VIEW_ARG(key),
                       weir_dtype_name(dtype));
  }
  WEIR_TRY(write_padding(writer));
  uint64_t offset = writer->data->size;
  WEIR_TRY(write_elements(writer->data, tensor, &crc));
  WEIR_TRY(add_row(writer, key, dtype, tensor->rank, tensor->dims, &row));
  row->entry.offset = offset;
  row->entry.size = writer->data->size - offset;
  row->entry.crc = weir_crc32c_mask(crc);
  weir_bundle_write_entry(&row->entry, &row->proto);
  return weir_strbuf_finish(&row->proto);
}

// The row that lists the slices of |key|, made when the first slice comes.
static weir_status_t* partitioned_row(weir_bundle_writer_t* writer, weir_view_t key,
                                      weir_dtype_t dtype, int rank, const int64_t* dims,
                                      row_t** out_row) {
  row_t* row = weir_map_find(&writer->rows, key);
  if (!row) {
    WEIR_TRY(check_key(writer, key));
    WEIR_TRY(add_row(writer, key, dtype, rank, dims, &row));
    row->is_partitioned = true;
    weir_bundle_write_entry(&row->entry, &row->proto);
    WEIR_TRY(weir_strbuf_finish(&row->proto));
  } else if (!row->is_partitioned) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Adding duplicate key: %.*s", WEIR_VIEW_ARG(key));
  } else if (row->entry.dtype != dtype || row->entry.rank != rank ||
             memcmp(row->entry.dims, dims, sizeof(int64_t) * (size_t)rank) != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Slices of %.*s differ in type or full shape",
                       WEIR_VIEW_ARG(key));
  }
  *out_row = row;
  return NULL;
}

weir_status_t* weir_bundle_add_slice(weir_bundle_writer_t* writer, weir_view_t key, int rank,
                                     const int64_t* dims, const weir_slice_t* slice,
                                     const weir_tensor_t* tensor) {
  weir_slice_t resolved = *slice;
  row_t* row = NULL;
  weir_strbuf_t slice_key = {0};
  WEIR_TRY(weir_slice_resolve(&resolved, rank, dims));
  if (tensor->rank != rank ||
      (rank > 0 && memcmp(tensor->dims, resolved.lengths, sizeof(int64_t) * (size_t)rank) != 0)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%.*s: the tensor's shape is not that of its slice",
                       WEIR_VIEW_ARG(key));
  }
  if (weir_slice_is_full(slice, dims)) return weir_bundle_add(writer, key, tensor);
  WEIR_TRY(partitioned_row(writer, key, weir_tensor_type(tensor), rank, dims, &row));
  weir_slice_append_key(key, slice, &slice_key);
  weir_status_t* status = weir_strbuf_finish(&slice_key);
  if (!status) status = weir_bundle_add(writer, weir_strbuf_view(&slice_key), tensor);
  if (!status) {
    size_t begin = weir_wire_begin(&row->proto, 7);
    weir_slice_write(slice, &row->proto);
    weir_wire_end(&row->proto, begin);
    status = weir_strbuf_finish(&row->proto);
  }
  weir_strbuf_free(&slice_key);
  return status;
}

// ---- finishing ----

static weir_status_t* finish_data(weir_bundle_writer_t* writer) {
  weir_strbuf_t path = {0};
  weir_status_t* status = weir_writer_sync(writer->data);
  weir_status_t* closed = weir_writer_close(writer->data);
  writer->data = NULL;
  if (status) {
    weir_status_destroy(closed);
    return status;
  }
  if (closed) return closed;
  weir_bundle_append_data_path(writer->prefix, 0, 1, &path);
  status = weir_strbuf_finish(&path);
  if (!status) status = weir_fs_rename(writer->temporary.data, path.data);
  if (!status) {
    writer->is_finished = true;
    status = weir_fs_sync_parent(path.data);
  }
  weir_strbuf_free(&path);
  return status;
}

weir_status_t* weir_bundle_finish(weir_bundle_writer_t* writer) {
  if (!writer->data) {
    return WEIR_STATUS(FAILED_PRECONDITION, "Checkpoint %s is finished already", writer->prefix);
  }
  weir_bundle_row_t* rows = weir_alloc_array(writer->rows.count + 1, sizeof *rows);
  if (!rows) return weir_out_of_memory();
  size_t count = 0;
  weir_map_entry_t* e;
  for (size_t i = 0; (e = weir_map_next(&writer->rows, &i));) {
    weir_view_t proto = weir_strbuf_view(&((row_t*)e->value)->proto);
    rows[count++] = (weir_bundle_row_t){.key = e->key, .proto = proto};
  }
  weir_status_t* status = finish_data(writer);
  if (!status) status = weir_bundle_write_index(writer->prefix, 1, rows, count);
  weir_free(rows);
  return status;
}
