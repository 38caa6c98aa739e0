// file.c — ReadFile, WriteFile, MatchingFiles: whole files and their names.
#include "file/fs.h"
#include "ops/io/common.h"

static weir_status_t* check_scalar(const weir_tensor_t* tensor, const char* what) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (tensor->rank == 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s tensor must be scalar, but had shape: %s", what,
                     weir_tensor_shape_text(tensor, text));
}

// ---- ReadFile ----

// As many bytes as the file's size says when it is opened, as in TensorFlow: a device has none.
static weir_status_t* read_contents(const char* path, weir_tensor_t* out) {
  weir_file_t* file = NULL;
  size_t got = 0;
  WEIR_TRY(weir_file_open(path, &file));
  weir_string_t* content = WEIR_TENSOR_DATA(out, weir_string_t);
  char* bytes = file->size < SIZE_MAX ? weir_string_resize(content, (size_t)file->size) : NULL;
  weir_status_t* status = NULL;
  if (!bytes) {
    status = WEIR_STATUS(RESOURCE_EXHAUSTED, "%s: there is no memory for its %llu bytes", path,
                         (unsigned long long)file->size);
  }
  if (!status) status = weir_file_read(file, 0, bytes, (size_t)file->size, &got);
  if (!status) (void)weir_string_resize(content, got);  // shorter: it was cut off meanwhile
  weir_file_close(file);
  return status;
}

static weir_status_t* read_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  return weir_shape_set_scalar(ctx, 0);
}

static weir_status_t* read_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* filename = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  char* path = NULL;
  WEIR_TRY(check_scalar(filename, "Input filename"));
  WEIR_TRY(weir_kernel_output(ctx, 0, 0, NULL, &out));
  WEIR_TRY(io_path(filename, 0, &path));
  weir_status_t* status = read_contents(path, out);
  weir_free(path);
  return status;
}

// ---- WriteFile ----

static weir_status_t* write_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  return weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL);
}

static weir_status_t* make_parent(const char* path) {
  weir_view_t parent = weir_path_parent(path);
  if (parent.size == 0) return NULL;
  char* copy = weir_strndup(parent.data, parent.size);
  if (!copy) return weir_out_of_memory();
  weir_status_t* status = weir_fs_make_directories(copy);
  weir_free(copy);
  return status;
}

static weir_status_t* write_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* filename = weir_kernel_input(ctx, 0);
  const weir_tensor_t* contents = weir_kernel_input(ctx, 1);
  char* path = NULL;
  WEIR_TRY(check_scalar(filename, "Input filename"));
  WEIR_TRY(check_scalar(contents, "Contents"));
  WEIR_TRY(io_path(filename, 0, &path));
  weir_status_t* status = make_parent(path);
  if (!status) status = weir_fs_write_all(path, io_string(contents, 0));
  weir_free(path);
  return status;
}

// ---- MatchingFiles ----

static weir_status_t* matching_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_at_most(ctx, weir_shape_input(ctx, 0), 1));
  return weir_shape_set_vector(ctx, 0, -1);
}

static weir_status_t* find_matches(const weir_tensor_t* patterns, weir_names_t* out) {
  weir_status_t* status = NULL;
  for (int64_t i = 0; i < patterns->count && !status; ++i) {
    char* pattern = NULL;
    status = io_path(patterns, i, &pattern);
    if (!status) status = weir_fs_glob(pattern, out);
    weir_free(pattern);
  }
  weir_names_sort(out);
  return status;
}

static weir_status_t* output_names(weir_kernel_ctx_t* ctx, const weir_names_t* names) {
  weir_tensor_t* out = NULL;
  const int64_t dims[] = {(int64_t)names->count};
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, dims, &out));
  for (size_t i = 0; i < names->count; ++i) {
    const char* name = names->items[i];
    WEIR_TRY(weir_tensor_set_string(out, (int64_t)i, name, strlen(name)));
  }
  return NULL;
}

static weir_status_t* matching_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* patterns = weir_kernel_input(ctx, 0);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (patterns->rank > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input patterns tensor must be scalar or vector, but had shape: %s",
                       weir_tensor_shape_text(patterns, text));
  }
  weir_names_t names = {0};
  weir_status_t* status = find_matches(patterns, &names);
  if (!status) status = output_names(ctx, &names);
  weir_names_free(&names);
  return status;
}

// What these read lies outside of the graph: not to be folded, though not stateful by definition.
const weir_op_module_t weir_ops_io_file = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ReadFile",
         .inputs = "filename: string",
         .outputs = "contents: string",
         .flags = WEIR_OP_NO_FOLD | WEIR_OP_UNBOUNDED,
         .summary = "The bytes of a file.",
         .infer_shape = read_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = read_cpu)},
        {.name = "WriteFile",
         .inputs = "filename: string; contents: string",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_UNBOUNDED,
         .summary = "Writes a file, and the directories above it where they are missing.",
         .infer_shape = write_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = write_cpu)},
        {.name = "MatchingFiles",
         .inputs = "pattern: string",
         .outputs = "filenames: string",
         .flags = WEIR_OP_NO_FOLD | WEIR_OP_UNBOUNDED,
         .summary = "The files whose names match one of the patterns, sorted.",
         .infer_shape = matching_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = matching_cpu)},
        {0}}};
