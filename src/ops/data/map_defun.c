// map_defun.c — MapDefun: a function on every row of its arguments, and what it makes stacked.
#include "ops/data/background_kernel.h"
#include "ops/data/captured.h"
#include "ops/data/rows.h"

static weir_status_t* check_arguments(const weir_kernel_ctx_t* ctx, int count, int64_t* out_rows) {
  for (int i = 0; i < count; ++i) {
    const weir_tensor_t* argument = weir_kernel_input(ctx, i);
    if (argument->rank == 0)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "All inputs must have rank at least 1. Input %d has a rank of 0.", i);
    if (i == 0) *out_rows = argument->dims[0];
    if (argument->dims[0] != *out_rows)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "All inputs must have the same dimension 0. Input %d has leading "
                         "dimension %lld, while all previous inputs have leading dimension %lld",
                         i, (long long)argument->dims[0], (long long)*out_rows);
  }
  return NULL;
}

static weir_status_t* check_results(const weir_kernel_ctx_t* ctx, weir_tensor_t* const* results,
                                    weir_tensor_t* const* first) {
  const weir_attr_t* shapes = weir_attrs_list(weir_kernel_attrs(ctx), "output_shapes");
  for (int i = 0; i < ctx->output_count; ++i) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    if (weir_tensor_type(results[i]) != ctx->node->output_types[i])
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Mismatch in function return type and expected output type for output: %d",
                         i);
    if (!weir_shape_accepts(shapes->u.shapes[i], results[i]->rank, results[i]->dims) ||
        !weir_tensor_same_shape(results[i], first[i]))
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Mismatch in function retval shape, %s, and expected output shape of "
                         "output %d",
                         weir_tensor_shape_text(results[i], text), i);
  }
  return NULL;
}

// Calls the function on row |row|.
static weir_status_t* call_row(weir_kernel_ctx_t* ctx, const weir_captured_t* function,
                               const weir_walk_t* walk, int64_t row, weir_tensor_t** out) {
  const int count = weir_captured_count(ctx, "Targuments");
  weir_tensor_t** args = weir_element_create(count);
  weir_results_t results = {.count = ctx->output_count, .items = out};
  weir_status_t* status = args ? NULL : weir_out_of_memory();
  for (int i = 0; i < count && !status; ++i)
    status = weir_row_create(ctx->inputs[i].tensor, row, &args[i]);
  if (!status) status = weir_captured_call(function, walk, walk->cancel, args, count, &results);
  weir_element_free(args, count);
  return status;
}

// Without rows only the declared shapes say what one would be.
static weir_status_t* put_empty(weir_kernel_ctx_t* ctx) {
  const weir_attr_t* shapes = weir_attrs_list(weir_kernel_attrs(ctx), "output_shapes");
  for (int i = 0; i < ctx->output_count; ++i) {
    const weir_shape_t* shape = shapes->u.shapes[i];
    int64_t dims[WEIR_MAX_RANK + 1] = {0};
    weir_tensor_t* out = NULL;
    if (!weir_shape_is_full(shape)) continue;
    memcpy(dims + 1, shape->dims, (size_t)shape->rank * sizeof(*dims));
    WEIR_TRY(weir_kernel_output(ctx, i, 1 + shape->rank, dims, &out));
  }
  return weir_kernel_check_outputs(ctx);
}

static weir_status_t* call_all(weir_kernel_ctx_t* ctx, const weir_captured_t* function,
                               weir_tensor_t*** made, int64_t rows, int64_t* out_count) {
  const weir_walk_t walk = weir_step_walk(ctx);
  int count = 0;
  WEIR_TRY(weir_captured_result_count(function, &walk, &count));
  if (count != ctx->output_count)
    return WEIR_STATUS(INVALID_ARGUMENT, "Mismatch in number of function outputs.");
  for (int64_t row = 0; row < rows; ++row) {
    made[row] = weir_element_create(ctx->output_count);
    if (!made[row]) return weir_out_of_memory();
    ++*out_count;
    WEIR_TRY(call_row(ctx, function, &walk, row, made[row]));
    WEIR_TRY(check_results(ctx, made[row], made[0]));
  }
  return NULL;
}

static weir_status_t* map_rows(weir_kernel_ctx_t* ctx, const weir_captured_t* function,
                               int64_t rows) {
  if (rows == 0) return put_empty(ctx);
  int64_t count = 0;
  weir_tensor_t*** made = weir_calloc((size_t)rows, sizeof(*made));
  weir_tensor_t** out = weir_element_create(ctx->output_count);
  weir_status_t* status =
      made && out ? call_all(ctx, function, made, rows, &count) : weir_out_of_memory();
  if (!status) status = weir_rows_stack(made, rows, ctx->output_count, out);
  for (int i = 0; i < ctx->output_count && !status; ++i) weir_kernel_set(ctx, i, out[i]);
  weir_free(out);
  weir_rows_free(made, count, ctx->output_count);
  return status;
}

static weir_status_t* map(weir_kernel_ctx_t* ctx) {
  const int count = weir_captured_count(ctx, "Targuments");
  weir_captured_t function = {.count = 0};
  int64_t rows = 0;
  WEIR_TRY(check_arguments(ctx, count, &rows));
  weir_status_t* status =
      weir_captured_init(ctx, "f", count, weir_captured_count(ctx, "Tcaptured"), &function);
  if (!status) status = map_rows(ctx, &function, rows);
  weir_captured_deinit(&function);
  return status;
}

static void map_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_background_kernel(ctx, done, map);
}

static weir_status_t* map_shape(weir_shape_ctx_t* ctx) {
  const weir_attr_t* shapes = weir_attrs_list(weir_shape_attrs(ctx), "output_shapes");
  const int count = (int)weir_attrs_list(weir_shape_attrs(ctx), "Targuments")->count;
  int64_t rows = -1;
  if (shapes->count != (size_t)ctx->node->output_count)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "`output_shapes` must be the same length as `output_types` (%zu vs. %d)",
                       shapes->count, ctx->node->output_count);
  for (int i = 0; i < count; ++i) {
    const weir_shape_t* argument = weir_shape_input(ctx, i);
    if (argument->rank == 0)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Arguments must have at least rank 1. Input #%d has "
                         "rank 0.",
                         i);
    const int64_t dim = argument->rank > 0 ? argument->dims[0] : -1;
    if (rows >= 0 && dim >= 0 && dim != rows)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Arguments must have the same dimension 0: %lld and %lld", (long long)rows,
                         (long long)dim);
    if (dim >= 0) rows = dim;
  }
  const weir_shape_t* outer = weir_shape_make(ctx->arena, 1, &rows);
  if (!outer) return weir_out_of_memory();
  for (int i = 0; i < ctx->node->output_count; ++i) {
    if (shapes->u.shapes[i]->rank < 0) continue;
    WEIR_TRY(weir_shape_set(ctx, i, weir_shape_concat(ctx, outer, shapes->u.shapes[i])));
  }
  return NULL;
}

const weir_op_module_t weir_ops_data_map_defun = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "MapDefun",
         .attrs = "Targuments: list(type) >= 1; Tcaptured: list(type) >= 0 = []; " WEIR_DATASET_SPEC
                  "; f: func; max_intra_op_parallelism: int = 1",
         .inputs = "arguments: Targuments; captured_inputs: Tcaptured",
         .outputs = "output: output_types",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY | WEIR_OP_UNBOUNDED,
         .summary = "What a function makes of every row of its arguments, stacked",
         .infer_shape = map_shape,
         .kernels = WEIR_CPU_KERNEL(.compute_async = map_cpu)},
        {0}}};
