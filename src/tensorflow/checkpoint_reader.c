// checkpoint_reader.c — TF_CheckpointReader: what a checkpoint holds, without a graph.
#include "file/bundle.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/internal.h"

struct TF_CheckpointReader {
  weir_bundle_t* bundle;  // owned
  weir_names_t names;
};

static weir_status_t* open_reader(const char* filename, TF_CheckpointReader* reader) {
  WEIR_TRY(weir_bundle_open(filename, &reader->bundle));
  return weir_bundle_list(reader->bundle, &reader->names);
}

TF_CheckpointReader* TF_NewCheckpointReader(const char* filename, TF_Status* status) {
  TF_CheckpointReader* reader = weir_calloc(1, sizeof(*reader));
  weir_status_t* result = reader ? open_reader(filename, reader) : weir_out_of_memory();
  if (tf_status_take(status, result)) return reader;
  TF_DeleteCheckpointReader(reader);
  return NULL;
}

void TF_DeleteCheckpointReader(TF_CheckpointReader* reader) {
  if (!reader) return;
  if (reader->bundle) weir_bundle_close(reader->bundle);
  weir_names_free(&reader->names);
  weir_free(reader);
}

// False where there is none of that name.
static bool find(const TF_CheckpointReader* reader, const char* name, weir_bundle_entry_t* out) {
  weir_status_t* status = weir_bundle_find(reader->bundle, weir_view_of(name), out);
  const bool is_there = !status;
  weir_status_destroy(status);
  return is_there;
}

int TF_CheckpointReaderHasTensor(TF_CheckpointReader* reader, const char* name) {
  weir_bundle_entry_t entry;
  return find(reader, name, &entry);
}

const char* TF_CheckpointReaderGetVariable(TF_CheckpointReader* reader, int index) {
  const bool is_there = index >= 0 && (size_t)index < reader->names.count;
  return is_there ? reader->names.items[index] : NULL;
}

int TF_CheckpointReaderSize(TF_CheckpointReader* reader) { return (int)reader->names.count; }

TF_DataType TF_CheckpointReaderGetVariableDataType(TF_CheckpointReader* reader, const char* name) {
  weir_bundle_entry_t entry;
  return find(reader, name, &entry) ? (TF_DataType)entry.dtype : (TF_DataType)0;
}

int TF_CheckpointReaderGetVariableNumDims(TF_CheckpointReader* reader, const char* name) {
  weir_bundle_entry_t entry;
  return find(reader, name, &entry) ? entry.rank : -1;
}

static weir_status_t* get_shape(const TF_CheckpointReader* reader, const char* name, int64_t* dims,
                                int num_dims) {
  weir_bundle_entry_t entry;
  WEIR_TRY(weir_bundle_find(reader->bundle, weir_view_of(name), &entry));
  if (entry.rank != num_dims)
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected rank is %d but actual rank is %d", num_dims,
                       entry.rank);
  for (int i = 0; i < entry.rank; ++i) dims[i] = entry.dims[i];
  return NULL;
}

void TF_CheckpointReaderGetVariableShape(TF_CheckpointReader* reader, const char* name,
                                         int64_t* dims, int num_dims, TF_Status* status) {
  tf_status_take(status, get_shape(reader, name, dims, num_dims));
}

TF_Tensor* TF_CheckpointReaderGetTensor(TF_CheckpointReader* reader, const char* name,
                                        TF_Status* status) {
  weir_tensor_t* tensor = NULL;
  TF_Tensor* handle = NULL;
  weir_status_t* result = weir_bundle_read(reader->bundle, weir_view_of(name), &tensor);
  if (!result) result = tf_tensor_out(tensor, &handle);
  tf_status_take(status, result);
  return handle;
}
