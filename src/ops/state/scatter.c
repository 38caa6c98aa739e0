// scatter.c — ResourceScatterAdd … ScatterUpdate: updates of the rows of a variable, by handle or
// by reference.
#include "kernel/elementwise/update.h"
#include "kernel/move/scatter_op.h"
#include "op/cost.h"
#include "op/shape_ctx.h"

#define NUMBERS                                                                               \
  "complex128, complex64, double, float, bfloat16, half, int32, int8, uint8, int16, uint16, " \
  "uint32, int64, uint64"
#define ORDERED \
  "double, float, bfloat16, half, int32, int8, uint8, int16, uint16, uint32, int64, uint64"
#define ASSIGN WEIR_UPDATE_COUNT  // replaces rows; the only one for types without arithmetic

// A scatter in progress. Rows are split by column between threads, so that repeated indices add up
// in order.
typedef struct scatter_t {
  weir_update_fn_t fn;  // NULL: replace
  weir_dtype_t dtype;
  char* params;
  const char* updates;
  const weir_tensor_t* indices;
  int64_t row_count;  // elements a row
  int64_t size;       // bytes an element
  bool is_scalar;
  weir_first_error_t error;
} scatter_t;

static weir_status_t* replace(const scatter_t* s, char* dst, const char* src, int64_t count) {
  if (!s->is_scalar) {
    if (!weir_dtype_is_plain(s->dtype)) return weir_elements_copy(s->dtype, dst, src, count);
    memmove(dst, src, (size_t)(count * s->size));  // a row onto itself, maybe
    return NULL;
  }
  for (int64_t i = 0; i < count; ++i)
    WEIR_TRY(weir_elements_copy(s->dtype, dst + i * s->size, src, 1));
  return NULL;
}

static void scatter_columns(void* arg, int64_t begin, int64_t end) {
  scatter_t* s = arg;
  for (int64_t i = 0; i < s->indices->count; ++i) {
    char* dst = s->params + (weir_tensor_int_at(s->indices, i) * s->row_count + begin) * s->size;
    const char* src = s->is_scalar ? s->updates : s->updates + (i * s->row_count + begin) * s->size;
    if (!s->fn) {
      weir_status_t* status = replace(s, dst, src, end - begin);
      if (status) {
        weir_first_error_set(&s->error, status);
        return;
      }
    } else if (!s->fn(dst, src, end - begin, s->is_scalar)) {
      weir_first_error_set(&s->error, WEIR_STATUS(INVALID_ARGUMENT, "Integer division by zero"));
      return;
    }
  }
}

static weir_status_t* check_prefix(const weir_tensor_t* indices, const weir_tensor_t* updates) {
  bool fits = updates->rank == 0 || updates->rank >= indices->rank;
  for (int d = 0; fits && updates->rank > 0 && d < indices->rank; ++d)
    fits = updates->dims[d] == indices->dims[d];
  if (fits) return NULL;
  char i[WEIR_SHAPE_TEXT_SIZE], u[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "The shape of indices (%s) must be a prefix of the shape of updates (%s)",
                     weir_tensor_shape_text(indices, i), weir_tensor_shape_text(updates, u));
}

static weir_status_t* check_shapes(const weir_tensor_t* params, const weir_tensor_t* indices,
                                   const weir_tensor_t* updates) {
  char p[WEIR_SHAPE_TEXT_SIZE], i[WEIR_SHAPE_TEXT_SIZE], u[WEIR_SHAPE_TEXT_SIZE];
  bool fits = updates->rank == 0 || updates->rank == indices->rank + params->rank - 1;
  for (int d = 0; fits && updates->rank > 0 && d < updates->rank; ++d) {
    fits = updates->dims[d] ==
           (d < indices->rank ? indices->dims[d] : params->dims[d - indices->rank + 1]);
  }
  if (!fits) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
        "updates.shape %s, indices.shape %s, params.shape %s",
        weir_tensor_shape_text(updates, u), weir_tensor_shape_text(indices, i),
        weir_tensor_shape_text(params, p));
  }
  return NULL;
}

// TensorFlow's scatters by reference look at the variable first, by handle at the indices, and at
// it last.
static weir_status_t* check_all(bool is_ref, const weir_tensor_t* params,
                                const weir_tensor_t* indices, const weir_tensor_t* updates) {
  if (!is_ref) WEIR_TRY(check_prefix(indices, updates));
  if (!is_ref || params->rank > 0) WEIR_TRY(check_shapes(params, indices, updates));
  if (params->rank > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "params must be at least 1-D, got shape []");
}

static weir_status_t* check_indices(const weir_tensor_t* params, const weir_tensor_t* indices) {
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t index = weir_tensor_int_at(indices, i);
    if (index >= 0 && index < params->dims[0]) continue;
    char place[WEIR_SHAPE_TEXT_SIZE];
    int64_t at[WEIR_MAX_RANK], rest = i;
    for (int d = indices->rank - 1; d >= 0; --d) {
      at[d] = rest % indices->dims[d];
      rest /= indices->dims[d];
    }
    return WEIR_STATUS(INVALID_ARGUMENT, "indices%s = %lld is not in [0, %lld)",
                       weir_shape_text(indices->rank, at, place), (long long)index,
                       (long long)params->dims[0]);
  }
  return NULL;
}

// Only a GPU's rows have a state.
static weir_status_t* scatter_on_gpu(weir_kernel_ctx_t* ctx, weir_tensor_t* params) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  const weir_tensor_t* updates = weir_kernel_input(ctx, 2);
  if (params->count == 0) return NULL;
  weir_move_places_t places = {.indices = indices,
                               .count = indices->count,
                               .depth = 1,
                               .dims = params->dims,
                               .inner = params->count / params->dims[0]};
  return weir_gpu_scatter(ctx, ctx->state, &places, updates, updates->rank == 0, params);
}

static weir_status_t* scatter_locked(weir_kernel_ctx_t* ctx, weir_variable_t* variable,
                                     int update) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  WEIR_TRY(weir_variable_make_sole_with_locked(variable, ctx->node->name, &ctx->inputs[2].tensor));
  const weir_tensor_t* updates = weir_kernel_input(ctx, 2);
  weir_tensor_t* params = variable->tensor;
  if (params->dtype != updates->dtype) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Trying to scatter %s into a variable of %s",
                       weir_dtype_name(weir_tensor_type(updates)),
                       weir_dtype_name(weir_tensor_type(params)));
  }
  WEIR_TRY(check_all(ctx->inputs[0].ref, params, indices, updates));
  if (ctx->state) return scatter_on_gpu(ctx, params);
  WEIR_TRY(check_indices(params, indices));
  if (indices->count == 0 || params->count == 0) return NULL;
  scatter_t s = {.fn = update == ASSIGN
                           ? NULL
                           : weir_update_find((weir_update_op_t)update, weir_tensor_type(params)),
                 .dtype = weir_tensor_type(params),
                 .params = params->data,
                 .updates = updates->data,
                 .indices = indices,
                 .row_count = params->count / params->dims[0],
                 .size = (int64_t)weir_dtype_size(weir_tensor_type(params)),
                 .is_scalar = updates->rank == 0};
  weir_pool_for(weir_kernel_pool(ctx), s.row_count, (double)indices->count, scatter_columns, &s);
  return s.error.status;
}

static weir_status_t* scatter(weir_kernel_ctx_t* ctx, weir_update_op_t update) {
  weir_variable_t* variable = NULL;
  WEIR_TRY(weir_kernel_live_variable(ctx, 0, &variable));
  return weir_kernel_update_variable(ctx, variable, scatter_locked, (int)update);
}

static weir_status_t* scatter_add(weir_kernel_ctx_t* ctx) { return scatter(ctx, WEIR_UPDATE_ADD); }
static weir_status_t* scatter_sub(weir_kernel_ctx_t* ctx) { return scatter(ctx, WEIR_UPDATE_SUB); }
static weir_status_t* scatter_mul(weir_kernel_ctx_t* ctx) { return scatter(ctx, WEIR_UPDATE_MUL); }
static weir_status_t* scatter_div(weir_kernel_ctx_t* ctx) { return scatter(ctx, WEIR_UPDATE_DIV); }
static weir_status_t* scatter_min(weir_kernel_ctx_t* ctx) { return scatter(ctx, WEIR_UPDATE_MIN); }
static weir_status_t* scatter_max(weir_kernel_ctx_t* ctx) { return scatter(ctx, WEIR_UPDATE_MAX); }
static weir_status_t* scatter_assign(weir_kernel_ctx_t* ctx) { return scatter(ctx, ASSIGN); }

static weir_status_t* check_updates_shape(weir_shape_ctx_t* ctx, const weir_shape_t* params) {
  const weir_shape_t* indices = weir_shape_input(ctx, 1);
  const weir_shape_t* updates = weir_shape_input(ctx, 2);
  if (params->rank < 0 || indices->rank < 0 || updates->rank <= 0) return NULL;
  const weir_shape_t* joined = NULL;
  const weir_shape_t* row =
      params->rank == 0 ? params : weir_shape_sub(ctx, params, 1, params->rank);
  const weir_shape_t* expected = row ? weir_shape_concat(ctx, indices, row) : NULL;
  if (!expected) return weir_out_of_memory();
  WEIR_TRY(weir_shape_join(ctx, updates, expected, &joined));
  return weir_shape_at_least(ctx, params, 1);
}

static weir_status_t* resource_shape(weir_shape_ctx_t* ctx) {
  const weir_handle_info_t* info = ctx->input_handles[0];
  return info && info->shape ? check_updates_shape(ctx, info->shape) : NULL;
}

static weir_status_t* ref_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_updates_shape(ctx, weir_shape_input(ctx, 0)));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

WEIR_SCATTER_INIT(scatter_add_gpu, ADD)
WEIR_SCATTER_INIT(scatter_sub_gpu, SUB)
WEIR_SCATTER_INIT(scatter_mul_gpu, MUL)
WEIR_SCATTER_INIT(scatter_div_gpu, DIV)
WEIR_SCATTER_INIT(scatter_min_gpu, MIN)
WEIR_SCATTER_INIT(scatter_max_gpu, MAX)
WEIR_SCATTER_INIT(scatter_assign_gpu, ASSIGN)

// Rows of the table below.
#define RESOURCE_SCATTER(op, text, allowed, row_types, gpu_types, fn)                             \
  {                                                                                               \
    .name = op, .summary = text, .attrs = "dtype: " allowed "; Tindices: {int32, int64}",         \
    .inputs = "resource: resource; indices: Tindices; updates: dtype", .flags = WEIR_OP_STATEFUL, \
    .infer_shape = resource_shape, .cost = weir_cost_fn_updates,                                  \
    .kernels = (const weir_kernel_def_t[]) {                                                      \
      {WEIR_DEVICE_CPU, .types = row_types, .compute = fn, .host_inputs = "resource"},            \
          {WEIR_DEVICE_GPU,                                                                       \
           .types = "dtype: " gpu_types,                                                          \
           .compute = fn,                                                                         \
           .init = fn##_gpu,                                                                      \
           .state_size = sizeof(weir_scatter_state_t),                                            \
           .host_inputs = "resource"},                                                            \
      {                                                                                           \
        0                                                                                         \
      }                                                                                           \
    }                                                                                             \
  }
#define REF_SCATTER(op, text, allowed, locking, op_flags, row_types, gpu_types, fn)          \
  {                                                                                          \
    .name = op, .summary = text,                                                             \
    .attrs = "T: " allowed "; Tindices: {int32, int64}; use_locking: bool = " locking,       \
    .inputs = "ref: Ref(T); indices: Tindices; updates: T", .outputs = "output_ref: Ref(T)", \
    .flags = op_flags, .infer_shape = ref_shape, .cost = weir_cost_fn_updates,               \
    .kernels = (const weir_kernel_def_t[]) {                                                 \
      {WEIR_DEVICE_CPU, .types = row_types, .compute = fn},                                  \
          {WEIR_DEVICE_GPU, .types = "T: " gpu_types, .compute = fn, .init = fn##_gpu,       \
           .state_size = sizeof(weir_scatter_state_t)},                                      \
      {                                                                                      \
        0                                                                                    \
      }                                                                                      \
    }                                                                                        \
  }
#define MINMAX_TYPES "{half, bfloat16, float, double, int32, int64}"

const weir_op_module_t weir_ops_state_scatter = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        RESOURCE_SCATTER("ResourceScatterAdd", "Adds to rows of a variable", "numbertype",
                         "dtype: " NUMBERS, WEIR_SCATTERED_NUMBERS, scatter_add),
        RESOURCE_SCATTER("ResourceScatterSub", "Subtracts from rows of a variable", "numbertype",
                         "dtype: " NUMBERS, WEIR_SCATTERED_NUMBERS, scatter_sub),
        RESOURCE_SCATTER("ResourceScatterMul", "Multiplies rows of a variable", "numbertype",
                         "dtype: " NUMBERS, WEIR_SCATTERED_NUMBERS, scatter_mul),
        RESOURCE_SCATTER("ResourceScatterDiv", "Divides rows of a variable", "numbertype",
                         "dtype: " NUMBERS, WEIR_SCATTERED_NUMBERS, scatter_div),
        RESOURCE_SCATTER("ResourceScatterMin", "Keeps the smaller elements in rows of a variable",
                         "numbertype", "dtype: " ORDERED, WEIR_SCATTERED_NUMBERS, scatter_min),
        RESOURCE_SCATTER("ResourceScatterMax", "Keeps the larger elements in rows of a variable",
                         "numbertype", "dtype: " ORDERED, WEIR_SCATTERED_NUMBERS, scatter_max),
        RESOURCE_SCATTER("ResourceScatterUpdate", "Replaces rows of a variable", "type", NULL,
                         WEIR_MOVED_TYPES, scatter_assign),
        REF_SCATTER("ScatterAdd", "Adds to rows of a variable", "numbertype", "false",
                    WEIR_OP_NO_GRADIENT, "T: " NUMBERS, WEIR_SCATTERED_NUMBERS, scatter_add),
        REF_SCATTER("ScatterSub", "Subtracts from rows of a variable", "numbertype", "false",
                    WEIR_OP_NO_GRADIENT, "T: " NUMBERS, WEIR_SCATTERED_NUMBERS, scatter_sub),
        REF_SCATTER("ScatterMul", "Multiplies rows of a variable", "numbertype", "false",
                    WEIR_OP_NO_GRADIENT, "T: " NUMBERS, WEIR_SCATTERED_NUMBERS, scatter_mul),
        REF_SCATTER("ScatterDiv", "Divides rows of a variable", "numbertype", "false",
                    WEIR_OP_NO_GRADIENT, "T: " NUMBERS, WEIR_SCATTERED_NUMBERS, scatter_div),
        REF_SCATTER("ScatterMin", "Keeps the smaller elements in rows of a variable", MINMAX_TYPES,
                    "false", 0, "T: half, bfloat16, float, double, int32, int64",
                    WEIR_SCATTERED_NUMBERS, scatter_min),
        REF_SCATTER("ScatterMax", "Keeps the larger elements in rows of a variable", MINMAX_TYPES,
                    "false", 0, "T: half, bfloat16, float, double, int32, int64",
                    WEIR_SCATTERED_NUMBERS, scatter_max),
        REF_SCATTER("ScatterUpdate", "Replaces rows of a variable", "type", "true", 0, NULL,
                    WEIR_MOVED_TYPES, scatter_assign),
        {0}}};
