// save_restore.c — SaveV2, RestoreV2: tensors to and from checkpoints.
#include "file/bundle.h"
#include "ops/io/common.h"

enum { kPrefix, kTensorNames, kShapeAndSlices, kFirstTensor };

// ---- checks both share ----

static weir_status_t* check_inputs(const weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* prefix = weir_kernel_input(ctx, kPrefix);
  const weir_tensor_t* names = weir_kernel_input(ctx, kTensorNames);
  const weir_tensor_t* slices = weir_kernel_input(ctx, kShapeAndSlices);
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (prefix->count != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input prefix should have a single element, got %lld instead.",
                       (long long)prefix->count);
  }
  if (names->rank != 1 || slices->rank != 1) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Input tensor_names and shape_and_slices should be an 1-D tensors, got %s and "
        "%s instead.",
        weir_tensor_shape_text(names, a), weir_tensor_shape_text(slices, b));
  }
  if (names->count != slices->count) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "tensor_names and shape_and_slices have different number of elements: %lld vs. "
        "%lld",
        (long long)names->count, (long long)slices->count);
  }
  return NULL;
}

// ---- SaveV2 ----

static weir_status_t* save_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, kPrefix), 0, NULL));
  for (int i = kTensorNames; i <= kShapeAndSlices; ++i) {
    const weir_shape_t* names = NULL;
    int64_t dim = 0;
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 1, &names));
    int64_t tensor_count = ctx->node->input_count - kFirstTensor;
    WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(names, 0), tensor_count, &dim));
  }
  return NULL;
}

static weir_status_t* save_tensor(weir_bundle_writer_t* writer, weir_view_t name, weir_view_t spec,
                                  const weir_tensor_t* tensor) {
  int rank = 0;
  int64_t dims[WEIR_MAX_RANK];
  weir_slice_t slice;
  weir_slice_t resolved;
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (spec.size == 0) return weir_bundle_add(writer, name, tensor);
  WEIR_TRY(weir_slice_parse_spec(spec, &rank, dims, &slice));
  resolved = slice;
  WEIR_TRY(weir_slice_resolve(&resolved, rank, dims));
  if (tensor->rank != rank ||
      memcmp(tensor->dims, resolved.lengths, sizeof(int64_t) * (size_t)rank) != 0) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Slice in shape_and_slice specification does not match the shape of the tensor "
        "to  save: %.*s, tensor: %s",
        WEIR_VIEW_ARG(spec), weir_tensor_shape_text(tensor, text));
  }
  return weir_bundle_add_slice(writer, name, rank, dims, &slice, tensor);
}

static weir_status_t* save_all(const weir_kernel_ctx_t* ctx, weir_bundle_writer_t* writer) {
  const weir_tensor_t* names = weir_kernel_input(ctx, kTensorNames);
  const weir_tensor_t* specs = weir_kernel_input(ctx, kShapeAndSlices);
  for (int64_t i = 0; i < names->count; ++i) {
    const weir_tensor_t* tensor = weir_kernel_input(ctx, kFirstTensor + (int)i);
    WEIR_TRY(save_tensor(writer, io_string(names, i), io_string(specs, i), tensor));
  }
  return weir_bundle_finish(writer);
}

static weir_status_t* save_cpu(weir_kernel_ctx_t* ctx) {
  char* prefix = NULL;
  weir_bundle_writer_t* writer = NULL;
  WEIR_TRY(check_inputs(ctx));
  int64_t name_count = weir_kernel_input(ctx, kTensorNames)->count;
  if (name_count != ctx->input_count - kFirstTensor) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Got %lld tensor names but %d tensors.",
                       (long long)name_count, ctx->input_count - kFirstTensor);
  }
  WEIR_TRY(io_path(weir_kernel_input(ctx, kPrefix), 0, &prefix));
  weir_status_t* status = weir_bundle_writer_create(prefix, 1, &writer);
  if (!status) status = save_all(ctx, writer);
  weir_bundle_writer_destroy(writer);
  weir_free(prefix);
  return status;
}

// ---- RestoreV2 ----

static weir_status_t* restored_shape(weir_shape_ctx_t* ctx, int output, weir_view_t spec) {
  int rank = 0;
  int64_t dims[WEIR_MAX_RANK];
  weir_slice_t slice;
  if (spec.size == 0) return NULL;
  WEIR_TRY(weir_slice_parse_spec(spec, &rank, dims, &slice));
  WEIR_TRY(weir_slice_resolve(&slice, rank, dims));
  return weir_shape_set_dims(ctx, output, rank, slice.lengths);
}

static weir_status_t* restore_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* names = NULL;
  const weir_shape_t* slices = NULL;
  const weir_shape_t* both = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, kPrefix), 0, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, kTensorNames), 1, &names));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, kShapeAndSlices), 1, &slices));
  WEIR_TRY(weir_shape_join(ctx, names, slices, &both));
  const weir_tensor_t* specs = weir_shape_value(ctx, kShapeAndSlices);
  if (!specs) return NULL;
  if (specs->count != ctx->node->output_count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The number of shape_and_slice doesn't match tensor outputs.");
  }
  for (int64_t i = 0; i < specs->count; ++i) {
    WEIR_TRY(restored_shape(ctx, (int)i, io_string(specs, i)));
  }
  return NULL;
}

static weir_status_t* check_dtype(const weir_kernel_ctx_t* ctx, const weir_bundle_t* bundle,
                                  weir_view_t name, int output) {
  weir_bundle_entry_t entry;
  weir_dtype_t expected = weir_dtype_base(ctx->node->output_types[output]);
  WEIR_TRY(weir_bundle_find(bundle, name, &entry));
  if (entry.dtype == expected) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "tensor_name = %.*s; expected dtype %s does not equal original dtype %s",
                     WEIR_VIEW_ARG(name), weir_dtype_name(expected), weir_dtype_name(entry.dtype));
}

static weir_status_t* restore_tensor(weir_bundle_t* bundle, weir_view_t name, weir_view_t spec,
                                     weir_tensor_t** out_tensor) {
  int rank = 0;
  int64_t dims[WEIR_MAX_RANK];
  weir_slice_t slice;
  weir_bundle_entry_t entry;
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (spec.size == 0) return weir_bundle_read(bundle, name, out_tensor);
  WEIR_TRY(weir_slice_parse_spec(spec, &rank, dims, &slice));
  WEIR_TRY(weir_bundle_find(bundle, name, &entry));
  if (entry.rank != rank || memcmp(entry.dims, dims, sizeof(int64_t) * (size_t)rank) != 0) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "tensor_name = %.*s; shape in shape_and_slice spec %s does not match the shape "
        "stored in checkpoint: %s",
        WEIR_VIEW_ARG(name), weir_shape_text(rank, dims, a),
        weir_shape_text(entry.rank, entry.dims, b));
  }
  return weir_bundle_read_slice(bundle, name, &slice, out_tensor);
}

static weir_status_t* restore_all(weir_kernel_ctx_t* ctx, weir_bundle_t* bundle) {
  const weir_tensor_t* names = weir_kernel_input(ctx, kTensorNames);
  const weir_tensor_t* specs = weir_kernel_input(ctx, kShapeAndSlices);
  for (int i = 0; i < ctx->output_count; ++i) {
    WEIR_TRY(check_dtype(ctx, bundle, io_string(names, i), i));
  }
  for (int i = 0; i < ctx->output_count; ++i) {
    weir_tensor_t* tensor = NULL;
    WEIR_TRY(restore_tensor(bundle, io_string(names, i), io_string(specs, i), &tensor));
    weir_kernel_set(ctx, i, tensor);
  }
  return NULL;
}

static weir_status_t* open_checkpoint(const char* prefix, weir_bundle_t** out_bundle) {
  weir_status_t* status = weir_bundle_open(prefix, out_bundle);
  if (weir_status_code(status) != WEIR_NOT_FOUND) return status;
  weir_status_destroy(status);
  return WEIR_STATUS(
      NOT_FOUND,
      "Unsuccessful TensorSliceReader constructor: Failed to find any matching files "
      "for %s",
      prefix);
}

static weir_status_t* restore_cpu(weir_kernel_ctx_t* ctx) {
  char* prefix = NULL;
  weir_bundle_t* bundle = NULL;
  int64_t name_count = weir_kernel_input(ctx, kTensorNames)->count;
  if (name_count != ctx->output_count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Got %lld tensor names, but %d expected dtypes.",
                       (long long)name_count, ctx->output_count);
  }
  WEIR_TRY(check_inputs(ctx));
  WEIR_TRY(io_path(weir_kernel_input(ctx, kPrefix), 0, &prefix));
  weir_status_t* status = open_checkpoint(prefix, &bundle);
  if (!status) status = restore_all(ctx, bundle);
  weir_bundle_close(bundle);
  weir_free(prefix);
  return status;
}

const weir_op_module_t weir_ops_io_save_restore = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SaveV2",
         .attrs = "dtypes: list(type) >= 1",
         .inputs =
             "prefix: string; tensor_names: string; shape_and_slices: string; tensors: dtypes",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_UNBOUNDED,
         .summary = "Writes tensors to a checkpoint.",
         .infer_shape = save_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = save_cpu)},
        {.name = "RestoreV2",
         .attrs = "dtypes: list(type) >= 1",
         .inputs = "prefix: string; tensor_names: string; shape_and_slices: string",
         .outputs = "tensors: dtypes",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_UNBOUNDED,
         .summary = "Reads tensors from a checkpoint.",
         .infer_shape = restore_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = restore_cpu)},
        {0}}};
