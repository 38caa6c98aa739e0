// save_restore_v1.c — Save, SaveSlices, Restore, RestoreSlice: tensors to and from checkpoints of
// the first format.
#include <stdlib.h>

#include "file/checkpoint_v1.h"
#include "file/table.h"
#include "ops/io/common.h"

static weir_status_t* check_single(const weir_kernel_ctx_t* ctx, int i, const char* name) {
  const weir_tensor_t* tensor = weir_kernel_input(ctx, i);
  if (tensor->count == 1) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Input %d (%s) must be a string scalar; got a tensor of size %lld", i, name,
                     (long long)tensor->count);
}

// Of more than one TensorFlow takes the first.
static weir_status_t* check_any(const weir_kernel_ctx_t* ctx, int i, const char* name) {
  if (weir_kernel_input(ctx, i)->count > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Input %d (%s) is empty", i, name);
}

// ---- saving ----

typedef struct item_t {
  weir_view_t name;
  weir_view_t spec;  // empty: all of the tensor
  const weir_tensor_t* tensor;
  int64_t order;
} item_t;

// By name, and as given within one.
static int compare_items(const void* a, const void* b) {
  const item_t* x = a;
  const item_t* y = b;
  const int order = weir_view_compare(x->name, y->name);
  return order ? order : x->order < y->order ? -1 : 1;
}

static weir_status_t* save_item(weir_v1_writer_t* writer, const item_t* item) {
  weir_slice_t slice;
  weir_slice_t resolved;
  int rank = item->tensor->rank;
  int64_t dims[WEIR_MAX_RANK];
  if (item->spec.size == 0) {
    weir_slice_set_full(&slice, rank);
    return weir_v1_writer_add(writer, item->name, item->tensor->dims, &slice, item->tensor);
  }
  WEIR_TRY(weir_slice_parse_spec(item->spec, &rank, dims, &slice));
  resolved = slice;
  WEIR_TRY(weir_slice_resolve(&resolved, rank, dims));
  if (item->tensor->rank != rank ||
      memcmp(item->tensor->dims, resolved.lengths, sizeof(int64_t) * (size_t)rank) != 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Slice in shape_and_slice specification does not match the shape of the tensor to  save: "
        "%.*s, tensor: %s",
        WEIR_VIEW_ARG(item->spec), weir_tensor_shape_text(item->tensor, text));
  }
  return weir_v1_writer_add(writer, item->name, dims, &slice, item->tensor);
}

static weir_status_t* save_items(const char* path, item_t* items, int64_t count) {
  weir_v1_writer_t* writer = NULL;
  WEIR_TRY(weir_v1_writer_create(path, &writer));
  qsort(items, (size_t)count, sizeof(*items), compare_items);
  weir_status_t* status = NULL;
  for (int64_t i = 0; i < count && !status; ++i) status = save_item(writer, &items[i]);
  if (!status) status = weir_v1_writer_finish(writer);
  weir_v1_writer_destroy(writer);
  return status;
}

static weir_status_t* save_all(weir_kernel_ctx_t* ctx, bool has_slices) {
  const int first = has_slices ? 3 : 2;
  const weir_tensor_t* names = weir_kernel_input(ctx, 1);
  WEIR_TRY(check_single(ctx, 0, "filename"));
  if (names->count + first != ctx->input_count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected totally %lld inputs as input #1 (which is a string tensor of "
                       "saved names) contains %lld names, but received %d inputs",
                       (long long)names->count + first, (long long)names->count, ctx->input_count);
  }
  const weir_tensor_t* specs = has_slices ? weir_kernel_input(ctx, 2) : NULL;
  if (specs && specs->count != names->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected %lld elements for the tensor shapes and slices but got %lld",
                       (long long)names->count, (long long)specs->count);
  }
  item_t* items = weir_alloc_array((size_t)names->count + 1, sizeof(*items));
  char* path = NULL;
  weir_status_t* status =
      items ? io_path(weir_kernel_input(ctx, 0), 0, &path) : weir_out_of_memory();
  for (int64_t i = 0; i < names->count && !status; ++i) {
    items[i] = (item_t){.name = io_string(names, i),
                        .spec = specs ? io_string(specs, i) : weir_view(NULL, 0),
                        .tensor = weir_kernel_input(ctx, first + (int)i),
                        .order = i};
  }
  if (!status) status = save_items(path, items, names->count);
  weir_free(path);
  weir_free(items);
  return status;
}

static weir_status_t* save_cpu(weir_kernel_ctx_t* ctx) { return save_all(ctx, false); }
static weir_status_t* save_slices_cpu(weir_kernel_ctx_t* ctx) { return save_all(ctx, true); }

// ---- restoring ----

// Fills |slice| with what is asked for: all of the tensor, or what the spec says.
static weir_status_t* asked_slice(const weir_v1_tensor_t* tensor, weir_view_t spec,
                                  weir_slice_t* slice) {
  const int saved_rank = weir_v1_tensor_rank(tensor);
  const int64_t* saved = weir_v1_tensor_dims(tensor);
  int rank = 0;
  int64_t dims[WEIR_MAX_RANK];
  if (spec.size == 0) {
    weir_slice_set_full(slice, saved_rank);
    return weir_slice_resolve(slice, saved_rank, saved);
  }
  WEIR_TRY(weir_slice_parse_spec(spec, &rank, dims, slice));
  WEIR_TRY(weir_slice_resolve(slice, rank, dims));
  if (rank == saved_rank && memcmp(dims, saved, sizeof(int64_t) * (size_t)rank) == 0) return NULL;
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Shape in shape_and_slice spec does not match the shape in the save file: %s, "
                     "save file shape: %s",
                     weir_shape_text(rank, dims, a), weir_shape_text(saved_rank, saved, b));
}

static weir_status_t* restore_from(weir_kernel_ctx_t* ctx, weir_v1_reader_t* reader,
                                   const char* pattern, weir_view_t spec) {
  const weir_view_t name = io_string(weir_kernel_input(ctx, 1), 0);
  const weir_dtype_t expected = weir_dtype_base(ctx->node->output_types[0]);
  const weir_v1_tensor_t* tensor = weir_v1_reader_find(reader, name);
  if (!tensor) {
    return WEIR_STATUS(NOT_FOUND, "Tensor name \"%.*s\" not found in checkpoint files %s",
                       WEIR_VIEW_ARG(name), pattern);
  }
  if (weir_v1_tensor_dtype(tensor) != expected) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected to restore a tensor of type %s, got a tensor of type %s instead: "
                       "tensor_name = %.*s",
                       weir_dtype_name(expected), weir_dtype_name(weir_v1_tensor_dtype(tensor)),
                       WEIR_VIEW_ARG(name));
  }
  weir_slice_t slice;
  weir_tensor_t* out = NULL;
  WEIR_TRY(asked_slice(tensor, spec, &slice));
  WEIR_TRY(weir_v1_reader_read(reader, tensor, &slice, &out));
  weir_kernel_set(ctx, 0, out);
  return NULL;
}

static weir_status_t* restore(weir_kernel_ctx_t* ctx, weir_view_t spec) {
  char* pattern = NULL;
  weir_v1_reader_t* reader = NULL;
  WEIR_TRY(check_single(ctx, 0, "file_pattern"));
  WEIR_TRY(check_any(ctx, 1, "tensor_name"));
  WEIR_TRY(io_path(weir_kernel_input(ctx, 0), 0, &pattern));
  weir_status_t* status = weir_v1_reader_open(pattern, &reader);
  if (!status) status = restore_from(ctx, reader, pattern, spec);
  weir_v1_reader_close(reader);
  weir_free(pattern);
  return status;
}

static weir_status_t* restore_cpu(weir_kernel_ctx_t* ctx) {
  return restore(ctx, weir_view(NULL, 0));
}
static weir_status_t* restore_slice_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_any(ctx, 2, "shape_and_slice"));
  return restore(ctx, io_string(weir_kernel_input(ctx, 2), 0));
}

// ---- shapes ----

static weir_status_t* check_names(weir_shape_ctx_t* ctx, int first) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  for (int i = 1; i < first; ++i) {
    const weir_shape_t* names = NULL;
    int64_t count = 0;
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 1, &names));
    WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(names, 0), ctx->node->input_count - first, &count));
  }
  return NULL;
}
static weir_status_t* save_shape(weir_shape_ctx_t* ctx) { return check_names(ctx, 2); }
static weir_status_t* save_slices_shape(weir_shape_ctx_t* ctx) { return check_names(ctx, 3); }

static weir_status_t* restore_shape(weir_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->node->input_count; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  return NULL;
}

static weir_status_t* restore_slice_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(restore_shape(ctx));
  const weir_tensor_t* spec = weir_shape_value(ctx, 2);
  if (!spec || spec->count != 1 || io_string(spec, 0).size == 0) return NULL;
  int rank = 0;
  int64_t dims[WEIR_MAX_RANK];
  weir_slice_t slice;
  WEIR_TRY(weir_slice_parse_spec(io_string(spec, 0), &rank, dims, &slice));
  WEIR_TRY(weir_slice_resolve(&slice, rank, dims));
  return weir_shape_set_dims(ctx, 0, rank, slice.lengths);
}

const weir_op_module_t weir_ops_io_save_restore_v1 = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Save",
         .attrs = "T: list(type) >= 1",
         .inputs = "filename: string; tensor_names: string; data: T",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_UNBOUNDED,
         .summary = "Writes tensors to a checkpoint of the first format",
         .infer_shape = save_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = save_cpu)},
        {.name = "SaveSlices",
         .attrs = "T: list(type) >= 1",
         .inputs = "filename: string; tensor_names: string; shapes_and_slices: string; data: T",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_UNBOUNDED,
         .summary = "Writes parts of tensors to a checkpoint of the first format",
         .infer_shape = save_slices_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = save_slices_cpu)},
        {.name = "Restore",
         .attrs = "dt: type; preferred_shard: int = -1",
         .inputs = "file_pattern: string; tensor_name: string",
         .outputs = "tensor: dt",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_UNBOUNDED,
         .summary = "Reads a tensor from checkpoints of the first format",
         .infer_shape = restore_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = restore_cpu)},
        {.name = "RestoreSlice",
         .attrs = "dt: type; preferred_shard: int = -1",
         .inputs = "file_pattern: string; tensor_name: string; shape_and_slice: string",
         .outputs = "tensor: dt",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_UNBOUNDED,
         .summary = "Reads a part of a tensor from checkpoints of the first format",
         .infer_shape = restore_slice_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = restore_slice_cpu)},
        {0}}};
