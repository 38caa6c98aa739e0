// set_operation.c — DenseToDenseSetOperation, DenseToSparseSetOperation,
// SparseToSparseSetOperation, SetSize: the last dimension of a tensor as a set of elements, one for
// each index of the others.
#include <ctype.h>
#include <stdlib.h>

#include "base/string.h"
#include "ops/sparse/sparse.h"

#define SET_TYPES "{int8, int16, int32, int64, uint8, uint16, string}"

typedef enum set_op_t { A_MINUS_B, B_MINUS_A, INTERSECTION, UNION } set_op_t;

typedef struct set_state_t {
  set_op_t op;
  bool validates;
} set_state_t;

static weir_status_t* set_init(const weir_kernel_init_t* init, void* state) {
  static const char* const names[] = {"a-b", "b-a", "intersection", "union"};
  set_state_t* self = state;
  weir_view_t given = weir_attrs_string(init->node->attrs, "set_operation");
  self->validates = weir_attrs_bool(init->node->attrs, "validate_indices");
  for (int i = 0; i < 4; ++i) {
    bool is_same = strlen(names[i]) == given.size;
    for (size_t k = 0; k < given.size && is_same; ++k)
      is_same = tolower((unsigned char)given.data[k]) == names[i][k];
    if (!is_same) continue;
    self->op = (set_op_t)i;
    return NULL;
  }
  weir_strbuf_t text = {0};
  for (size_t k = 0; k < given.size; ++k)
    weir_strbuf_putc(&text, (char)tolower((unsigned char)given.data[k]));
  weir_status_t* status =
      WEIR_STATUS(INVALID_ARGUMENT, "Invalid set_operation %s.", text.data ? text.data : "");
  weir_strbuf_free(&text);
  return status;
}

// ---- sets ----

// One operand, dense or sparse: groups in order, each a set of elements.
typedef struct source_t {
  const weir_tensor_t* values;
  weir_sparse_t s;  // of a sparse one; its rank is 0 otherwise
  int rank;         // of the tensor
  const int64_t* dims;
  int64_t at;  // the next group: a number where dense, a row where sparse
  int64_t group_count;
} source_t;

// Elements of a set: sorted, each once. Compared through |type|.
typedef struct set_t {
  const void** items;
  int64_t count;
} set_t;

static int compare_elements(weir_dtype_t dtype, const void* a, const void* b) {
  if (dtype == WEIR_DTYPE_STRING) {
    weir_view_t x = weir_string_view(a), y = weir_string_view(b);
    size_t n = WEIR_MIN(x.size, y.size);
    int order = n ? memcmp(x.data, y.data, n) : 0;
    return order ? order : (x.size > y.size) - (x.size < y.size);
  }
  weir_tensor_t x = {.dtype = (uint8_t)dtype, .data = (void*)(uintptr_t)a};
  weir_tensor_t y = {.dtype = (uint8_t)dtype, .data = (void*)(uintptr_t)b};
  int64_t p = weir_move_int_at(&x, 0), q = weir_move_int_at(&y, 0);
  return (p > q) - (p < q);
}

#define COMPARE_FN(name, DTYPE)                                                     \
  static int name(const void* a, const void* b) {                                   \
    return compare_elements(DTYPE, *(const void* const*)a, *(const void* const*)b); \
  }
COMPARE_FN(compare_int8, WEIR_DTYPE_INT8)
COMPARE_FN(compare_int16, WEIR_DTYPE_INT16)
COMPARE_FN(compare_int32, WEIR_DTYPE_INT32)
COMPARE_FN(compare_int64, WEIR_DTYPE_INT64)
COMPARE_FN(compare_uint8, WEIR_DTYPE_UINT8)
COMPARE_FN(compare_uint16, WEIR_DTYPE_UINT16)
COMPARE_FN(compare_string, WEIR_DTYPE_STRING)

typedef int (*compare_fn_t)(const void* a, const void* b);

static compare_fn_t compare_of(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_INT8: return compare_int8;
    case WEIR_DTYPE_INT16: return compare_int16;
    case WEIR_DTYPE_INT32: return compare_int32;
    case WEIR_DTYPE_INT64: return compare_int64;
    case WEIR_DTYPE_UINT8: return compare_uint8;
    case WEIR_DTYPE_UINT16: return compare_uint16;
    default: return compare_string;
  }
}

static void make_set(set_t* set, weir_dtype_t dtype) {
  int64_t kept = 0;
  if (set->count > 1) qsort(set->items, (size_t)set->count, sizeof(*set->items), compare_of(dtype));
  for (int64_t i = 0; i < set->count; ++i) {
    if (kept > 0 && compare_elements(dtype, set->items[kept - 1], set->items[i]) == 0) continue;
    set->items[kept++] = set->items[i];
  }
  set->count = kept;
}

// Writes the elements of the result to |out|; returns how many.
static int64_t combine(set_op_t op, weir_dtype_t dtype, const set_t* a, const set_t* b,
                       const void** out) {
  int64_t i = 0, j = 0, count = 0;
  while (i < a->count || j < b->count) {
    int order = i == a->count   ? 1
                : j == b->count ? -1
                                : compare_elements(dtype, a->items[i], b->items[j]);
    bool is_kept = op == UNION || (op == INTERSECTION && order == 0) ||
                   (op == A_MINUS_B && order < 0) || (op == B_MINUS_A && order > 0);
    if (is_kept) out[count++] = order <= 0 ? a->items[i] : b->items[j];
    i += order <= 0;
    j += order >= 0;
  }
  return count;
}

// ---- operands ----

static weir_status_t* read_dense(const weir_tensor_t* t, source_t* out) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (t->rank < 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape %s has rank %d < 2",
                       weir_tensor_shape_text(t, text), t->rank);
  }
  *out = (source_t){.values = t, .rank = t->rank, .dims = t->dims, .group_count = 1};
  for (int d = 0; d < t->rank - 1; ++d) out->group_count *= t->dims[d];
  return NULL;
}

static weir_status_t* read_sparse(const weir_kernel_ctx_t* ctx, int first, bool validates,
                                  source_t* out) {
  weir_sparse_t* s = &out->s;
  *out = (source_t){.at = 0};
  weir_sparse_get(weir_kernel_input(ctx, first), weir_kernel_input(ctx, first + 1),
                  weir_kernel_input(ctx, first + 2), s);
  if (s->shape->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be a 1D tensor.");
  WEIR_TRY(weir_sparse_check_dims(s->dims, s->shape->count, NULL));
  if (s->shape->count < 2)
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid rank %" PRId64 ".", s->shape->count);
  WEIR_TRY(weir_sparse_check_parts(s));
  if (validates) WEIR_TRY(weir_sparse_check_order(s));
  out->values = s->values;
  out->rank = s->rank;
  out->dims = s->dims;
  return NULL;
}

static bool is_dense(const source_t* source) { return source->s.rank == 0; }
static bool is_done(const source_t* source) {
  return source->at >= (is_dense(source) ? source->group_count : source->s.count);
}

// The index of the next group.
static const int64_t* next_group(const source_t* source, int64_t* scratch) {
  if (!is_dense(source)) return weir_sparse_row(&source->s, source->at);
  int64_t rest = source->at;
  for (int d = source->rank - 2; d >= 0; --d) {
    scratch[d] = rest % source->dims[d];
    rest /= source->dims[d];
  }
  return scratch;
}

// Takes the elements of the next group.
static void take_group(source_t* source, set_t* set) {
  set->count = 0;
  if (is_dense(source)) {
    int64_t n = source->dims[source->rank - 1];
    for (int64_t i = 0; i < n; ++i)
      set->items[set->count++] = weir_sparse_at(source->values, source->at * n + i);
    ++source->at;
    return;
  }
  const int64_t* first = weir_sparse_row(&source->s, source->at);
  while (source->at < source->s.count &&
         weir_sparse_compare(first, weir_sparse_row(&source->s, source->at), source->rank - 1) == 0)
    set->items[set->count++] = weir_sparse_at(source->values, source->at++);
}

static weir_status_t* check_groups(const source_t* a, const source_t* b) {
  if (a->rank == b->rank && weir_sparse_compare(a->dims, b->dims, a->rank - 1) == 0) return NULL;
  char x[WEIR_SHAPE_TEXT_SIZE], y[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "Mismatched shapes %s vs %s",
                     weir_shape_text(a->rank - 1, a->dims, x),
                     weir_shape_text(b->rank - 1, b->dims, y));
}

// ---- the operation ----

// All there is room for at the beginning: results never have more elements than both operands.
typedef struct work_t {
  set_t a, b;
  const void** values;
  int64_t* indices;
  int64_t count;
  int64_t widest;
} work_t;

static weir_status_t* write_result(weir_kernel_ctx_t* ctx, const work_t* work, int rank,
                                   const int64_t* dims) {
  weir_tensor_t* indices = NULL;
  weir_tensor_t* values = NULL;
  weir_tensor_t* shape = NULL;
  const int64_t rank64 = rank;
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, (const int64_t[]){work->count, rank}, &indices));
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &work->count, &values));
  WEIR_TRY(weir_kernel_output(ctx, 2, 1, &rank64, &shape));
  if (work->count > 0)
    memcpy(indices->data, work->indices, sizeof(int64_t) * (size_t)indices->count);
  for (int64_t i = 0; i < work->count; ++i) {
    WEIR_TRY(weir_elements_copy(weir_tensor_type(values), weir_sparse_at(values, i),
                                work->values[i], 1));
  }
  memcpy(shape->data, dims, sizeof(int64_t) * (size_t)(rank - 1));
  WEIR_TENSOR_DATA(shape, int64_t)[rank - 1] = work->widest;
  return NULL;
}

static void combine_groups(set_op_t op, source_t* a, source_t* b, work_t* work) {
  const weir_dtype_t dtype = weir_tensor_type(a->values);
  const int rank = a->rank;
  int64_t x[WEIR_MAX_RANK], y[WEIR_MAX_RANK];
  for (;;) {
    const int64_t* p = is_done(a) ? NULL : next_group(a, x);
    const int64_t* q = is_done(b) ? NULL : next_group(b, y);
    if (!p && !q) return;
    int order = !p ? 1 : !q ? -1 : weir_sparse_compare(p, q, rank - 1);
    const int64_t* group = order <= 0 ? p : q;
    work->a.count = work->b.count = 0;
    if (order <= 0) take_group(a, &work->a);
    if (order >= 0) take_group(b, &work->b);
    make_set(&work->a, dtype);
    make_set(&work->b, dtype);
    int64_t n = combine(op, dtype, &work->a, &work->b, work->values + work->count);
    for (int64_t i = 0; i < n; ++i) {
      int64_t* row = work->indices + (work->count + i) * rank;
      memcpy(row, group, sizeof(int64_t) * (size_t)(rank - 1));
      row[rank - 1] = i;
    }
    work->count += n;
    work->widest = WEIR_MAX(work->widest, n);
  }
}

static weir_status_t* operate(weir_kernel_ctx_t* ctx, source_t* a, source_t* b) {
  const set_state_t* state = ctx->state;
  WEIR_TRY(check_groups(a, b));
  const size_t most = (size_t)a->values->count + (size_t)b->values->count;
  work_t work = {.a = {.items = weir_alloc_array((size_t)a->values->count, sizeof(void*))},
                 .b = {.items = weir_alloc_array((size_t)b->values->count, sizeof(void*))},
                 .values = weir_alloc_array(most, sizeof(void*)),
                 .indices = weir_alloc_array(most, sizeof(int64_t) * (size_t)a->rank)};
  weir_status_t* status = NULL;
  if (work.a.items && work.b.items && work.values && work.indices) {
    combine_groups(state->op, a, b, &work);
    status = write_result(ctx, &work, a->rank, a->dims);
  } else {
    status = weir_out_of_memory();
  }
  weir_free(work.a.items);
  weir_free(work.b.items);
  weir_free(work.values);
  weir_free(work.indices);
  return status;
}

static weir_status_t* dense_dense_cpu(weir_kernel_ctx_t* ctx) {
  source_t a, b;
  WEIR_TRY(read_dense(weir_kernel_input(ctx, 0), &a));
  WEIR_TRY(read_dense(weir_kernel_input(ctx, 1), &b));
  return operate(ctx, &a, &b);
}

static weir_status_t* dense_sparse_cpu(weir_kernel_ctx_t* ctx) {
  const set_state_t* state = ctx->state;
  source_t a, b;
  WEIR_TRY(read_sparse(ctx, 1, state->validates, &b));
  WEIR_TRY(read_dense(weir_kernel_input(ctx, 0), &a));
  return operate(ctx, &a, &b);
}

static weir_status_t* sparse_sparse_cpu(weir_kernel_ctx_t* ctx) {
  const set_state_t* state = ctx->state;
  source_t a, b;
  WEIR_TRY(read_sparse(ctx, 0, state->validates, &a));
  WEIR_TRY(read_sparse(ctx, 3, state->validates, &b));
  return operate(ctx, &a, &b);
}

static weir_status_t* count_sets(weir_kernel_ctx_t* ctx, source_t* source, set_t* set) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, source->rank - 1, source->dims, &out));
  weir_move_zero(WEIR_DTYPE_INT32, out->data, out->count);
  while (!is_done(source)) {
    const int64_t* group = weir_sparse_row(&source->s, source->at);
    int64_t place = 0;
    bool is_within = true;
    for (int d = 0; d < source->rank - 1; ++d) {
      is_within = is_within && group[d] >= 0 && group[d] < source->dims[d];
      place = is_within ? place * source->dims[d] + group[d] : 0;
    }
    if (!is_within) return weir_sparse_check_bounds(&source->s);
    take_group(source, set);
    make_set(set, weir_tensor_type(source->values));
    WEIR_TENSOR_DATA(out, int32_t)[place] = (int32_t)set->count;
  }
  return NULL;
}

static weir_status_t* set_size_cpu(weir_kernel_ctx_t* ctx) {
  source_t source;
  WEIR_TRY(
      read_sparse(ctx, 0, weir_attrs_bool(weir_kernel_attrs(ctx), "validate_indices"), &source));
  set_t set = {.items = weir_alloc_array((size_t)source.s.count, sizeof(void*))};
  weir_status_t* status = set.items ? count_sets(ctx, &source, &set) : weir_out_of_memory();
  weir_free(set.items);
  return status;
}

// ---- shape functions ----

static weir_status_t* set_result(weir_shape_ctx_t* ctx, int64_t rank) {
  return weir_sparse_shape_set(ctx, 0, -1, rank);
}

// The rank that a dense operand and the shape of a sparse one agree on.
static weir_status_t* join_ranks(int64_t a, int64_t b, int64_t* out_rank) {
  if (a >= 0 && b >= 0 && a != b) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Dimension must be %" PRId64 " but is %" PRId64, a, b);
  }
  *out_rank = a >= 0 ? a : b;
  return NULL;
}

static weir_status_t* dense_dense_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* a = weir_shape_input(ctx, 0);
  const weir_shape_t* b = weir_shape_input(ctx, 1);
  WEIR_TRY(weir_shape_at_least(ctx, a, 2));
  WEIR_TRY(weir_shape_at_least(ctx, b, 2));
  if (a->rank >= 0 && b->rank >= 0) {
    const weir_shape_t* unused = NULL;
    WEIR_TRY(weir_shape_with_rank(ctx, b, a->rank, &unused));
    WEIR_TRY(weir_shape_join(ctx, weir_shape_sub(ctx, a, 0, a->rank - 1),
                             weir_shape_sub(ctx, b, 0, a->rank - 1), &unused));
  }
  return set_result(ctx, a->rank >= 0 ? a->rank : b->rank);
}

static weir_status_t* dense_sparse_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* a = weir_shape_input(ctx, 0);
  int64_t rank = -1;
  WEIR_TRY(weir_sparse_shape_validate(ctx, 1));
  WEIR_TRY(weir_shape_at_least(ctx, a, 2));
  WEIR_TRY(join_ranks(a->rank, weir_shape_dim(weir_shape_input(ctx, 3), 0), &rank));
  return set_result(ctx, rank);
}

static weir_status_t* sparse_sparse_shape(weir_shape_ctx_t* ctx) {
  int64_t rank = -1;
  for (int first = 0; first <= 3; first += 3) {
    WEIR_TRY(weir_sparse_shape_validate(ctx, first));
    int64_t own = weir_shape_dim(weir_shape_input(ctx, first + 2), 0);
    if (own >= 0 && own < 2) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Input %d, expected rank >= 2, got %" PRId64 ".",
                         first / 3, own);
    }
    WEIR_TRY(join_ranks(rank, own, &rank));
  }
  return set_result(ctx, rank);
}

#define SET_OP(op_name, inputs_, text, shape_fn, fn)                                               \
  {                                                                                                \
    .name = op_name,                                                                               \
    .attrs = "set_operation: string; validate_indices: bool = true; T: " SET_TYPES,                \
    .inputs = inputs_, .outputs = "result_indices: int64; result_values: T; result_shape: int64",  \
    .flags = WEIR_OP_NO_GRADIENT, .summary = text, .infer_shape = shape_fn,                        \
    .kernels = WEIR_CPU_KERNEL(.compute = fn, .init = set_init, .state_size = sizeof(set_state_t)) \
  }

const weir_op_module_t weir_ops_sparse_set_operation = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        SET_OP("DenseToDenseSetOperation", "set1: T; set2: T",
               "Unions, intersections or differences of rows as sets", dense_dense_shape,
               dense_dense_cpu),
        SET_OP("DenseToSparseSetOperation",
               "set1: T; set2_indices: int64; set2_values: T; set2_shape: int64",
               "Unions, intersections or differences of dense rows and sparse ones as sets",
               dense_sparse_shape, dense_sparse_cpu),
        SET_OP("SparseToSparseSetOperation",
               "set1_indices: int64; set1_values: T; set1_shape: int64; set2_indices: int64; "
               "set2_values: T; set2_shape: int64",
               "Unions, intersections or differences of the rows of two sparse tensors as sets",
               sparse_sparse_shape, sparse_sparse_cpu),
        {.name = "SetSize",
         .attrs = "validate_indices: bool = true; T: " SET_TYPES,
         .inputs = "set_indices: int64; set_values: T; set_shape: int64",
         .outputs = "size: int32",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "The number of different elements in each row of a sparse tensor",
         .infer_shape = weir_shape_fn_unknown,
         .kernels = WEIR_CPU_KERNEL(.compute = set_size_cpu)},
        {0}}};
