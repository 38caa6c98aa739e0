// merge_checkpoints.c — MergeV2Checkpoints, ShardedFilename, ShardedFilespec: checkpoints of many
// tasks.
#include "file/bundle.h"
#include "ops/io/common.h"

// ---- MergeV2Checkpoints ----

static weir_status_t* merge_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, NULL));
  return weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL);
}

// A directory that something else still lies in stays, as TensorFlow leaves it.
static void remove_old_directories(const weir_names_t* prefixes, const char* destination) {
  weir_view_t keep = weir_path_parent(destination);
  for (size_t i = 0; i < prefixes->count; ++i) {
    weir_view_t parent = weir_path_parent(prefixes->items[i]);
    if (parent.size == 0 || weir_view_equal(parent, keep)) continue;
    char* path = weir_strndup(parent.data, parent.size);
    if (!path) return;
    weir_status_destroy(weir_fs_remove_directory(path));
    weir_free(path);
  }
}

static weir_status_t* check_merge(const weir_tensor_t* prefixes, const weir_tensor_t* destination) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (prefixes->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input checkpoint_prefixes should be an 1-D tensor, got %s instead.",
                       weir_tensor_shape_text(prefixes, text));
  }
  if (destination->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input destination_prefix should be a scalar tensor, got %s instead.",
                       weir_tensor_shape_text(destination, text));
  }
  return NULL;
}

static weir_status_t* merge_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* input = weir_kernel_input(ctx, 0);
  bool delete_old_dirs = weir_attrs_bool(weir_kernel_attrs(ctx), "delete_old_dirs");
  bool allow_missing = weir_attrs_bool(weir_kernel_attrs(ctx), "allow_missing_files");
  weir_names_t prefixes = {0};
  char* path = NULL;
  char* destination = NULL;
  weir_status_t* status = check_merge(input, weir_kernel_input(ctx, 1));
  for (int64_t i = 0; i < input->count && !status; ++i) {
    status = io_path(input, i, &path);
    if (!status) status = weir_names_add(&prefixes, weir_view_of(path));
    weir_free(path);
    path = NULL;
  }
  if (!status) status = io_path(weir_kernel_input(ctx, 1), 0, &destination);
  if (status) goto done;
  status = weir_bundle_merge((const char* const*)prefixes.items, prefixes.count, destination,
                             allow_missing);
  if (!status && delete_old_dirs) remove_old_directories(&prefixes, destination);
done:
  weir_names_free(&prefixes);
  weir_free(destination);
  return status;
}

// ---- names of shards ----

static weir_status_t* scalars_shape(weir_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->node->input_count; ++i) {
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  }
  return weir_shape_set_scalar(ctx, 0);
}

static weir_status_t* check_scalars(const weir_kernel_ctx_t* ctx) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  for (int i = 0; i < ctx->input_count; ++i) {
    const weir_tensor_t* input = weir_kernel_input(ctx, i);
    if (input->rank == 0) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a scalar, got shape %s",
                       ctx->node->op->inputs[i].name, weir_tensor_shape_text(input, text));
  }
  return NULL;
}

static weir_status_t* output_name(weir_kernel_ctx_t* ctx, weir_strbuf_t* name) {
  weir_status_t* status = weir_strbuf_finish(name);
  if (!status) status = io_output_string(ctx, 0, weir_strbuf_view(name));
  weir_strbuf_free(name);
  return status;
}

static weir_status_t* filename_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_scalars(ctx));
  weir_view_t basename = io_string(weir_kernel_input(ctx, 0), 0);
  weir_strbuf_t name = {0};
  weir_strbuf_append(&name, basename.data, basename.size);
  weir_strbuf_printf(&name, "-%05d-of-%05d", *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 1), int32_t),
                     *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 2), int32_t));
  return output_name(ctx, &name);
}

static weir_status_t* filespec_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_scalars(ctx));
  weir_view_t basename = io_string(weir_kernel_input(ctx, 0), 0);
  weir_strbuf_t name = {0};
  weir_strbuf_append(&name, basename.data, basename.size);
  weir_strbuf_printf(&name, "-%s-of-%05d", "?????",
                     *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 1), int32_t));
  return output_name(ctx, &name);
}

const weir_op_module_t weir_ops_io_merge_checkpoints = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "MergeV2Checkpoints",
         .attrs = "delete_old_dirs: bool = true; allow_missing_files: bool = false",
         .inputs = "checkpoint_prefixes: string; destination_prefix: string",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_UNBOUNDED,
         .summary = "Makes one checkpoint of many by renaming their data files.",
         .infer_shape = merge_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = merge_cpu)},
        {.name = "ShardedFilename",
         .inputs = "basename: string; shard: int32; num_shards: int32",
         .outputs = "filename: string",
         .flags = WEIR_OP_CHEAP,
         .summary = "The name of one shard: basename-00001-of-00003.",
         .infer_shape = scalars_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = filename_cpu)},
        {.name = "ShardedFilespec",
         .inputs = "basename: string; num_shards: int32",
         .outputs = "filename: string",
         .flags = WEIR_OP_CHEAP,
         .summary = "A pattern that matches all shards of a basename.",
         .infer_shape = scalars_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = filespec_cpu)},
        {0}}};
