// unique.c — Unique, UniqueV2, UniqueWithCounts, UniqueWithCountsV2: distinct elements in order of
// first appearance.
#include <stdio.h>

#include "base/interrupt.h"
#include "kernel/cuda/source.h"
#include "kernel/move/cuda_pick.h"
#include "ops/array/element_set.h"

static weir_status_t* unique_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* x = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, &x));
  WEIR_TRY(weir_shape_set_vector(ctx, 0, -1));
  WEIR_TRY(weir_shape_set(ctx, 1, x));
  return ctx->node->output_count > 2 ? weir_shape_set_vector(ctx, 2, -1) : NULL;
}

static weir_status_t* read_axis(int64_t axis, int rank, int* out_axis) {
  if (axis < -rank || axis >= rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "axis expects to be in the range [%d, %d)", -rank, rank);
  }
  *out_axis = (int)(axis < 0 ? axis + rank : axis);
  return NULL;
}

static weir_status_t* unique_v2_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* x = weir_shape_input(ctx, 0);
  array_ints_t axis_ints;
  int64_t dims[WEIR_MAX_RANK];
  array_input_ints(ctx, 1, &axis_ints);
  if (ctx->node->output_count > 2) WEIR_TRY(weir_shape_set_vector(ctx, 2, -1));
  WEIR_TRY(weir_shape_set_vector(ctx, 1, -1));
  if (weir_shape_value(ctx, 1) && weir_shape_value(ctx, 1)->rank != 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "axis expects a 1D vector.");
  if (x->rank < 0 || !axis_ints.is_exact) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  int axis = 0;
  if (axis_ints.count == 0) {
    if (x->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "x expects a 1D vector.");
  } else if (axis_ints.count > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "axis does not support input tensors larger than 1 elements.");
  } else {
    WEIR_TRY(read_axis(axis_ints.values[0], x->rank, &axis));
  }
  for (int i = 0; i < x->rank; ++i) dims[i] = i == axis ? -1 : x->dims[i];
  WEIR_TRY(weir_shape_set_vector(ctx, 1, x->dims[axis]));
  return weir_shape_set_dims(ctx, 0, x->rank, dims);
}

// The rows along |axis| as runs of memory: |x| itself when it is the first axis.
static weir_status_t* rows_of(weir_kernel_ctx_t* ctx, const weir_tensor_t* x, int axis,
                              int64_t inner, weir_tensor_t** out_rows) {
  if (axis == 0) {
    *out_rows = weir_tensor_retain(ctx->inputs[0].tensor);
    return NULL;
  }
  int64_t size = x->dims[axis];
  int64_t outer = size * inner == 0 ? 0 : x->count / (size * inner);
  WEIR_TRY(weir_kernel_scratch(ctx, weir_tensor_type(x), x->count, out_rows));
  weir_move_dim_t box[] = {
      {size, inner, outer * inner}, {outer, size * inner, inner}, {inner, 1, 1}};
  return weir_move_box(weir_kernel_pool(ctx), weir_tensor_type(x), 3, box, x->data,
                       (*out_rows)->data);
}

static weir_status_t* number_rows(weir_kernel_ctx_t* ctx, element_set_t* set,
                                  const weir_tensor_t* rows, int64_t count) {
  weir_tensor_t* idx = NULL;
  weir_tensor_t* counts = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &count, &idx));
  size_t step = (size_t)set->row * set->size;
  for (int64_t i = 0; i < count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    weir_move_set_int(idx, i,
                      element_set_find(set, (const char*)rows->data + (size_t)i * step, true));
  }
  if (ctx->output_count < 3) return NULL;
  WEIR_TRY(weir_kernel_output(ctx, 2, 1, &set->count, &counts));
  weir_move_zero(weir_tensor_type(counts), counts->data, counts->count);
  for (int64_t i = 0; i < count; ++i) {
    int64_t member = weir_tensor_int_at(idx, i);
    weir_move_set_int(counts, member, weir_tensor_int_at(counts, member) + 1);
  }
  return NULL;
}

// Copies the members out, back to where the axis was.
static weir_status_t* write_members(weir_kernel_ctx_t* ctx, const element_set_t* set,
                                    const weir_tensor_t* x, int axis, int64_t inner) {
  int64_t dims[WEIR_MAX_RANK];
  weir_tensor_t* y = NULL;
  for (int i = 0; i < x->rank; ++i) dims[i] = i == axis ? set->count : x->dims[i];
  WEIR_TRY(weir_kernel_output(ctx, 0, x->rank, dims, &y));
  if (y->count == 0) return NULL;
  int64_t outer = set->row / inner;
  for (int64_t i = 0; i < set->count; ++i) {
    weir_move_dim_t box[] = {{outer, inner, set->count * inner}, {inner, 1, 1}};
    WEIR_TRY(weir_move_box(NULL, set->dtype, 2, box, set->rows[i],
                           (char*)y->data + (size_t)(i * inner) * set->size));
  }
  return NULL;
}

static weir_status_t* unique(weir_kernel_ctx_t* ctx, int axis) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  int64_t count = x->dims[axis];
  int64_t inner = 1, row = 1;
  weir_tensor_t* rows = NULL;
  element_set_t set = {0};
  for (int i = 0; i < x->rank; ++i) {
    if (i != axis) row *= x->dims[i];
    if (i > axis) inner *= x->dims[i];
  }
  weir_status_t* status = element_set_create(&set, weir_tensor_type(x), row, count);
  if (!status) status = rows_of(ctx, x, axis, inner, &rows);
  if (!status) status = number_rows(ctx, &set, rows, count);
  if (!status) status = write_members(ctx, &set, x, axis, inner);
  element_set_free(&set);
  weir_tensor_release(rows);
  return status;
}

// The axis whose slices are compared, of the inputs' checked shapes.
static weir_status_t* find_axis(const weir_kernel_ctx_t* ctx, int* out_axis) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_tensor_t* axis = ctx->input_count > 1 ? weir_kernel_input(ctx, 1) : NULL;
  if (axis && axis->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "axis expects a 1D vector.");
  if (axis && axis->count > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "axis does not support input tensors larger than 1 elements");
  }
  *out_axis = 0;
  if (!axis || axis->count == 0)
    return x->rank == 1 ? NULL : WEIR_STATUS(INVALID_ARGUMENT, "unique expects a 1D vector.");
  int64_t value = weir_tensor_int_at(axis, 0);
  if (value < -x->rank || value >= x->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "axis has to be between [0, %d)", x->rank);
  }
  *out_axis = (int)(value < 0 ? value + x->rank : value);
  return NULL;
}

static weir_status_t* unique_cpu(weir_kernel_ctx_t* ctx) {
  int axis = 0;
  WEIR_TRY(find_axis(ctx, &axis));
  return unique(ctx, axis);
}

// ---- on a GPU ----

WEIR_CUDA_SOURCE(unique);
WEIR_CUDA_SOURCE(pick);

typedef struct unique_gpu_t {
  weir_cuda_function_t insert, index, rows;
  weir_cuda_pick_t pick;
} unique_gpu_t;

// As unique.cu has them.
typedef struct rows_t {
  const void* x;
  int64_t count, outer, inner;
} rows_t;
typedef struct choice_t {
  void *slots, *slot_of, *firsts, *numbers;
} choice_t;

typedef struct unique_call_t {
  weir_answer_t answer;  // first
  int axis;
  rows_t rows;
  choice_t choice;
} unique_call_t;

static const char* infinite_bits(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_HALF: return "0x7c00";
    case WEIR_DTYPE_BFLOAT16: return "0x7f80";
    case WEIR_DTYPE_FLOAT: return "0x7f800000";
    default: return "0x7ff0000000000000";
  }
}

static weir_status_t* unique_gpu_init(const weir_kernel_init_t* init, void* state) {
  unique_gpu_t* self = state;
  const char* const names[] = {"unique_insert", "unique_index", "unique_rows"};
  weir_cuda_function_t* const found[] = {&self->insert, &self->index, &self->rows};
  weir_dtype_t dtype = weir_dtype_base(init->node->input_types[0]);
  char definitions[192];
  snprintf(definitions, sizeof(definitions),
           "#define T %s\n#define INDEX %s\n#define IS_FLOATING %d\n#define INFINITE %s\n",
           weir_cuda_bytes_name(weir_dtype_size(dtype)),
           weir_cuda_type_name(init->node->output_types[1]), weir_dtype_is_floating(dtype),
           infinite_bits(dtype));
  for (int i = 0; i < 3; ++i) {
    weir_strbuf_t text = {0};
    weir_strbuf_printf(&text, "%s%s", definitions, weir_cuda_source_unique);  // all of one text
    WEIR_TRY(weir_cuda_build(init->device, &text, weir_cuda_source_pick, names[i], found[i]));
  }
  return weir_cuda_pick_find(init->device, definitions, weir_cuda_source_unique, &self->pick);
}

static weir_cuda_picks_t picks_of(const unique_call_t* self) {
  const unique_gpu_t* functions = self->answer.ctx->state;
  return (weir_cuda_picks_t){
      .functions = &functions->pick, .choice = &self->choice, .count = self->rows.count};
}

// Finds the first of each row's equals.
static weir_status_t* insert_rows(unique_call_t* self) {
  enum { FIRST_SCRATCH = 2, UNSET = 0xff };  // those before are of the picks
  weir_answer_t* answer = &self->answer;
  const unique_gpu_t* functions = answer->ctx->state;
  weir_device_t* device = answer->ctx->device;
  choice_t* c = &self->choice;
  int64_t count = self->rows.count, slots = 16;
  while (slots < 2 * count && slots < (int64_t)1 << 31) slots *= 2;
  void** const made[] = {&c->slots, &c->slot_of, &c->firsts, &c->numbers};
  for (int i = 0; i < 4; ++i)
    WEIR_TRY(weir_answer_scratch(answer, FIRST_SCRATCH + i, WEIR_DTYPE_UINT32, i ? count : slots,
                                 i ? WEIR_ANSWER_ANY : UNSET, made[i]));
  uint32_t mask = (uint32_t)(slots - 1);
  weir_cuda_size_t size = weir_cuda_size_for(device, count);
  return weir_cuda_launch(device, functions->insert, &size,
                          WEIR_CUDA_ARGS(&self->rows, &c->slots, &mask, &c->slot_of));
}

static weir_status_t* write_unique(weir_answer_t* answer, const int64_t* numbers);

static weir_status_t* count_unique(weir_answer_t* answer) {
  unique_call_t* self = (unique_call_t*)answer;
  const weir_tensor_t* x = weir_kernel_input(answer->ctx, 0);
  WEIR_TRY(find_axis(answer->ctx, &self->axis));
  self->rows = (rows_t){.x = x->data, .count = x->dims[self->axis], .outer = 1, .inner = 1};
  for (int i = 0; i < x->rank; ++i) {
    if (i < self->axis) self->rows.outer *= x->dims[i];
    if (i > self->axis) self->rows.inner *= x->dims[i];
  }
  if (self->rows.count > INT32_MAX)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "unique does not support input tensors larger than %d elements", INT32_MAX);
  if (self->rows.count == 0) return write_unique(answer, (const int64_t[]){0});
  weir_cuda_picks_t picks = picks_of(self);
  WEIR_TRY(insert_rows(self));
  WEIR_TRY(weir_cuda_pick_count(answer, &picks));
  return weir_cuda_pick_put(answer, &picks);
}

static weir_status_t* copy_distinct(const unique_call_t* self, int64_t distinct) {
  weir_kernel_ctx_t* ctx = self->answer.ctx;
  const unique_gpu_t* functions = ctx->state;
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK];
  weir_tensor_t* y = NULL;
  for (int i = 0; i < x->rank; ++i) dims[i] = i == self->axis ? distinct : x->dims[i];
  WEIR_TRY(weir_kernel_output(ctx, 0, x->rank, dims, &y));
  if (y->count == 0) return NULL;
  rows_t rows = self->rows;
  void* firsts = self->choice.firsts;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, y->count);
  return weir_cuda_launch(ctx->device, functions->rows, &size,
                          WEIR_CUDA_ARGS(&rows, &firsts, &distinct, &y->data));
}

static weir_status_t* write_unique(weir_answer_t* answer, const int64_t* numbers) {
  unique_call_t* self = (unique_call_t*)answer;
  weir_kernel_ctx_t* ctx = answer->ctx;
  const unique_gpu_t* functions = ctx->state;
  weir_tensor_t *index = NULL, *counts = NULL;
  int64_t distinct = numbers[0], count = self->rows.count;
  WEIR_TRY(copy_distinct(self, distinct));
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &count, &index));
  if (ctx->output_count > 2) WEIR_TRY(weir_kernel_output(ctx, 2, 1, &distinct, &counts));
  if (count == 0) return NULL;
  void* count_data = counts ? counts->data : NULL;
  if (counts && counts->count)
    WEIR_TRY(weir_cuda_zero(ctx->device, counts->data, weir_tensor_byte_size(counts)));
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, count);
  return weir_cuda_launch(ctx->device, functions->index, &size,
                          WEIR_CUDA_ARGS(&self->choice, &count, &index->data, &count_data));
}

static void unique_gpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  static const weir_answer_fns_t fns = {
      .size = sizeof(unique_call_t), .before = count_unique, .after = write_unique};
  weir_answer_run(ctx, &fns, done);
}

#define GPU_TYPES                                                                              \
  "T: float, double, half, bfloat16, bool, int8, int16, int32, int64, uint8, uint16, uint32, " \
  "uint64"
#define UNIQUE_KERNELS(...)                                                                       \
  ((const weir_kernel_def_t[]){                                                                   \
      {WEIR_DEVICE_CPU, .types = GPU_TYPES ", string", .compute = unique_cpu, __VA_ARGS__},       \
      {WEIR_DEVICE_GPU, .types = GPU_TYPES, .compute_async = unique_gpu, .init = unique_gpu_init, \
       .state_size = sizeof(unique_gpu_t), __VA_ARGS__},                                          \
      {0}})

const weir_op_module_t weir_ops_array_unique = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Unique",
         .attrs = "T: type; out_idx: {int32, int64} = DT_INT32",
         .inputs = "x: T",
         .outputs = "y: T; idx: out_idx",
         .summary = "Returns the distinct elements of a vector and the number of each element's.",
         .infer_shape = unique_shape,
         .kernels = UNIQUE_KERNELS(.host_inputs = NULL)},
        {.name = "UniqueV2",
         .attrs = "T: type; Taxis: {int32, int64} = DT_INT64; out_idx: {int32, int64} = DT_INT32",
         .inputs = "x: T; axis: Taxis",
         .outputs = "y: T; idx: out_idx",
         .summary = "Returns the distinct slices of a tensor along an axis.",
         .infer_shape = unique_v2_shape,
         .kernels = UNIQUE_KERNELS(.host_inputs = "axis")},
        {.name = "UniqueWithCounts",
         .attrs = "T: type; out_idx: {int32, int64} = DT_INT32",
         .inputs = "x: T",
         .outputs = "y: T; idx: out_idx; count: out_idx",
         .summary = "As Unique, with the number of times each element occurs.",
         .infer_shape = unique_shape,
         .kernels = UNIQUE_KERNELS(.host_inputs = NULL)},
        {.name = "UniqueWithCountsV2",
         .attrs = "T: type; Taxis: {int32, int64} = DT_INT64; out_idx: {int32, int64} = DT_INT32",
         .inputs = "x: T; axis: Taxis",
         .outputs = "y: T; idx: out_idx; count: out_idx",
         .summary = "As UniqueV2, with the number of times each slice occurs.",
         .infer_shape = unique_v2_shape,
         .kernels = UNIQUE_KERNELS(.host_inputs = "axis")},
        {0}}};
