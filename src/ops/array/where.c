// where.c — Where: the places of elements that are not zero.
#include <stdio.h>

#include "kernel/cuda/source.h"
#include "kernel/move/cuda_pick.h"
#include "ops/array/common.h"
#include "tensor/cast.h"

static weir_status_t* where_shape(weir_shape_ctx_t* ctx) {
  const int64_t dims[] = {-1, weir_shape_input(ctx, 0)->rank};
  return weir_shape_set_dims(ctx, 0, 2, dims);
}

enum { BLOCK = 1024 };  // elements: their marks and places stay in the first-level cache

// The type to read elements as: a complex number is two parts, a bool a byte.
static weir_dtype_t part_type(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_COMPLEX64: return WEIR_DTYPE_FLOAT;
    case WEIR_DTYPE_COMPLEX128: return WEIR_DTYPE_DOUBLE;
    case WEIR_DTYPE_BOOL: return WEIR_DTYPE_UINT8;
    default: return dtype;
  }
}

// Marks which of |n| elements from |begin| are not zero.
static void mark(const weir_tensor_t* x, int64_t begin, int64_t n, bool* marks) {
  const weir_dtype_t dtype = weir_tensor_type(x);
  const char* src = (const char*)x->data + (size_t)begin * weir_dtype_size(dtype);
  const bool is_complex = weir_dtype_is_complex(dtype);
  weir_status_destroy(weir_cast_elements(WEIR_DTYPE_BOOL, marks, part_type(dtype), src,
                                         is_complex ? 2 * n : n));  // a plain type: no error
  for (int64_t i = 0; is_complex && i < n; ++i) marks[i] = marks[2 * i] || marks[2 * i + 1];
}

static int64_t count_nonzero(const weir_tensor_t* x) {
  bool marks[2 * BLOCK];
  int64_t count = 0;
  for (int64_t begin = 0; begin < x->count; begin += BLOCK) {
    int64_t n = WEIR_MIN(BLOCK, x->count - begin);
    mark(x, begin, n, marks);
    for (int64_t i = 0; i < n; ++i) count += marks[i];
  }
  return count;
}

// The places in a block of the elements that are not zero. Without a branch: which elements those
// are cannot be predicted.
static int64_t find_nonzero(const weir_tensor_t* x, int64_t begin, int64_t n, int32_t* found) {
  bool marks[2 * BLOCK];
  int64_t count = 0;
  mark(x, begin, n, marks);
  for (int32_t i = 0; i < n; ++i) {
    found[count] = i;
    count += marks[i];
  }
  return count;
}

// Moves a place |distance| elements on, so that only a new row takes a division.
static void advance(const weir_tensor_t* x, int64_t* place, int64_t distance) {
  for (int k = x->rank - 1; distance > 0; --k) {
    place[k] += distance;
    if (place[k] < x->dims[k]) return;
    distance = place[k] / x->dims[k];
    place[k] %= x->dims[k];
  }
}

static weir_status_t* check_rank(const weir_tensor_t* x) {
  if (x->rank > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "WhereOp : Unhandled input dimensions: 0");
}

static weir_status_t* where_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  WEIR_TRY(check_rank(x));
  const int64_t dims[] = {count_nonzero(x), x->rank};
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, dims, &out));
  int64_t* dst = out->data;
  int64_t place[WEIR_MAX_RANK] = {0};
  int64_t at = 0;  // of |place|
  for (int64_t begin = 0; begin < x->count; begin += BLOCK) {
    int32_t found[BLOCK];
    int64_t count = find_nonzero(x, begin, WEIR_MIN(BLOCK, x->count - begin), found);
    for (int64_t i = 0; i < count; ++i) {
      advance(x, place, begin + found[i] - at);
      at = begin + found[i];
      for (int k = 0; k < x->rank; ++k) *dst++ = place[k];
    }
  }
  return NULL;
}

// ---- on a GPU ----

WEIR_CUDA_SOURCE(where);

// choice_t of where.cu.
typedef struct choice_t {
  const void* x;
  int64_t* places;
  int64_t most;
  int rank;
  int64_t dims[WEIR_MAX_RANK];
} choice_t;

typedef struct where_t {
  weir_answer_t answer;  // first
  choice_t choice;
  weir_cuda_picks_t picks;
} where_t;

static weir_status_t* where_gpu_init(const weir_kernel_init_t* init, void* state) {
  weir_dtype_t dtype = weir_dtype_base(init->node->input_types[0]);
  char definitions[128];
  snprintf(definitions, sizeof(definitions), "#define T %s\n#define PARTS %d\n#define RANK %d\n",
           weir_cuda_type_name(part_type(dtype)), weir_dtype_is_complex(dtype) ? 2 : 1,
           WEIR_MAX_RANK);
  return weir_cuda_pick_find(init->device, definitions, weir_cuda_source_where, state);
}

static weir_status_t* where_count(weir_answer_t* answer) {
  where_t* self = (where_t*)answer;
  const weir_tensor_t* x = weir_kernel_input(answer->ctx, 0);
  weir_tensor_t* none = NULL;
  WEIR_TRY(check_rank(x));
  if (x->count == 0)
    return weir_kernel_output(answer->ctx, 0, 2, (const int64_t[]){0, x->rank}, &none);
  self->choice = (choice_t){.x = x->data, .rank = x->rank};
  memcpy(self->choice.dims, x->dims, (size_t)x->rank * sizeof(*x->dims));
  self->picks = (weir_cuda_picks_t){
      .functions = answer->ctx->state, .choice = &self->choice, .count = x->count};
  return weir_cuda_pick_count(answer, &self->picks);
}

static weir_status_t* where_write(weir_answer_t* answer, const int64_t* numbers) {
  where_t* self = (where_t*)answer;
  const int64_t dims[] = {numbers[0], self->choice.rank};
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(answer->ctx, 0, 2, dims, &out));
  if (out->count == 0) return NULL;
  self->choice.places = out->data;
  self->choice.most = numbers[0];
  return weir_cuda_pick_put(answer, &self->picks);
}

static void where_gpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  static const weir_answer_fns_t fns = {
      .size = sizeof(where_t), .before = where_count, .after = where_write};
  weir_answer_run(ctx, &fns, done);
}

#define GPU_TYPES "T: int32, " WEIR_MOVED_TYPES

const weir_op_module_t weir_ops_array_where = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Where",
         .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, "
                  "qint32, bfloat16, "
                  "qint16, quint16, uint16, complex128, half, uint32, uint64, bool} = DT_BOOL",
         .inputs = "input: T",
         .outputs = "index: int64",
         .summary = "Returns the places of all elements that are true or not zero.",
         .infer_shape = where_shape,
         .kernels = (const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, .compute = where_cpu},
                                                {WEIR_DEVICE_GPU, .types = GPU_TYPES,
                                                 .compute_async = where_gpu, .init = where_gpu_init,
                                                 .state_size = sizeof(weir_cuda_pick_t)},
                                                {0}}},
        {0}}};
