// find_rows.c — _FindRows: the rows of a table that ids have, given as they come and taken back
// from those that were not used for longest.
//
// A table of |capacity| rows is cut into sets of eight. An id may only be in the set that its hash
// names, so nothing is ever moved and nothing grows: |keys| says whose each row is (id + 1; 0:
// free), |used| when it was asked for last, by a clock that is its last element. Both are
// variables: they are saved as others are, and may lie in files, where rows that nobody asked for
// take no space.
#include "op/kernel.h"
#include "op/shape_ctx.h"

enum { WAYS = 8 };

// Both variables, locked.
typedef struct rows_t {
  int64_t* keys;
  int64_t* used;
  int64_t capacity;
  int64_t now;
  bool is_inserting;
} rows_t;

// Scatters consecutive ids.
static uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// A row of the set for another id: a free one, else the one not used for longest; -1: all are in
// use by this very step.
static int64_t take_row(rows_t* rows, int64_t set, int64_t key) {
  int64_t best = -1;
  for (int64_t row = set; row < set + WAYS; ++row) {
    if (!rows->keys[row]) {
      best = row;
      break;
    }
    if (rows->used[row] < rows->now && (best < 0 || rows->used[row] < rows->used[best])) best = row;
  }
  if (best >= 0) {
    rows->keys[best] = key;
    rows->used[best] = rows->now;
  }
  return best;
}

static int64_t find_row(rows_t* rows, int64_t id, bool* is_fresh) {
  const uint64_t sets = (uint64_t)(rows->capacity / WAYS);
  const int64_t key = id + 1, set = (int64_t)(mix((uint64_t)id) % sets) * WAYS;
  *is_fresh = false;
  for (int64_t row = set; row < set + WAYS; ++row) {
    if (rows->keys[row] != key) continue;
    if (rows->is_inserting) rows->used[row] = rows->now;
    return row;
  }
  if (!rows->is_inserting) return -1;
  const int64_t row = take_row(rows, set, key);
  *is_fresh = row >= 0;
  return row;
}

static weir_status_t* check_ids(const weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* ids = weir_kernel_input(ctx, 2);
  for (int64_t i = 0; i < ids->count; ++i) {
    const int64_t id = WEIR_TENSOR_DATA(ids, int64_t)[i];
    if (id == -1 || id == INT64_MAX)
      return WEIR_STATUS(INVALID_ARGUMENT, "%s: id %lld stands for none", ctx->node->name,
                         (long long)id);
  }
  return NULL;
}

// Makes both safe to write, and looks at their shapes.
static weir_status_t* open_locked(const weir_kernel_ctx_t* ctx, weir_variable_t* const* variables,
                                  rows_t* rows) {
  const char* name = ctx->node->name;
  for (int i = 0; i < 2; ++i) WEIR_TRY(weir_variable_make_sole_locked(variables[i], name));
  const weir_tensor_t *keys = variables[0]->tensor, *used = variables[1]->tensor;
  if (weir_tensor_type(keys) != WEIR_DTYPE_INT64 || weir_tensor_type(used) != WEIR_DTYPE_INT64)
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: keys and used must be int64, got %s and %s", name,
                       weir_dtype_name(weir_tensor_type(keys)),
                       weir_dtype_name(weir_tensor_type(used)));
  if (keys->count <= 0 || keys->count % WAYS || used->count != keys->count + 1)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "%s: needs a multiple of %d keys and one more of used, got %lld and %lld",
                       name, WAYS, (long long)keys->count, (long long)used->count);
  rows->keys = WEIR_TENSOR_DATA(keys, int64_t);
  rows->used = WEIR_TENSOR_DATA(used, int64_t);
  rows->capacity = keys->count;
  if (rows->is_inserting && rows->used[rows->capacity] < INT64_MAX) ++rows->used[rows->capacity];
  rows->now = rows->used[rows->capacity];
  return NULL;
}

static int64_t find_all(rows_t* rows, const weir_tensor_t* ids, int64_t* out_rows,
                        int64_t* out_fresh) {
  int64_t fresh_count = 0;
  for (int64_t i = 0; i < ids->count; ++i) {
    bool is_fresh = false;
    out_rows[i] = find_row(rows, WEIR_TENSOR_DATA(ids, int64_t)[i], &is_fresh);
    if (is_fresh) out_fresh[fresh_count++] = out_rows[i];
  }
  return fresh_count;
}

// In the order of their addresses, as optimizers lock theirs.
static weir_status_t* find_in(weir_kernel_ctx_t* ctx, weir_variable_t* const* variables,
                              weir_tensor_t* out, weir_tensor_t* fresh,
                              int64_t* out_count) WEIR_NO_THREAD_SAFETY {
  rows_t rows = {.is_inserting = weir_attrs_bool(weir_kernel_attrs(ctx), "insert")};
  const int first = variables[0] > variables[1];
  weir_mutex_lock(&variables[first]->mu);
  weir_mutex_lock(&variables[!first]->mu);
  weir_status_t* status = open_locked(ctx, variables, &rows);
  if (!status)
    *out_count = find_all(&rows, weir_kernel_input(ctx, 2), WEIR_TENSOR_DATA(out, int64_t),
                          WEIR_TENSOR_DATA(fresh, int64_t));
  weir_mutex_unlock(&variables[!first]->mu);
  weir_mutex_unlock(&variables[first]->mu);
  return status;
}

static weir_status_t* find_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* ids = weir_kernel_input(ctx, 2);
  weir_variable_t* variables[2] = {NULL, NULL};
  weir_tensor_t *rows = NULL, *fresh = NULL, *scratch = NULL;
  int64_t count = 0;
  WEIR_TRY(check_ids(ctx));
  weir_status_t* status = weir_kernel_variable(ctx, 0, &variables[0]);
  if (!status) status = weir_kernel_variable(ctx, 1, &variables[1]);
  if (!status && variables[0] == variables[1])
    status = WEIR_STATUS(INVALID_ARGUMENT, "%s: keys and used are one variable", ctx->node->name);
  if (!status) status = weir_kernel_output(ctx, 0, ids->rank, ids->dims, &rows);
  if (!status) status = weir_kernel_scratch(ctx, WEIR_DTYPE_INT64, ids->count, &scratch);
  if (!status) status = find_in(ctx, variables, rows, scratch, &count);
  if (!status) status = weir_kernel_output(ctx, 1, 1, &count, &fresh);
  if (!status && count) memcpy(fresh->data, scratch->data, (size_t)count * sizeof(int64_t));
  weir_tensor_release(scratch);
  for (int i = 0; i < 2; ++i) {
    if (variables[i]) weir_resource_release(&variables[i]->base);
  }
  return status;
}

static weir_status_t* find_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_set(ctx, 0, weir_shape_input(ctx, 2)));
  return weir_shape_set_dims(ctx, 1, 1, (const int64_t[]){-1});
}

const weir_op_module_t weir_ops_state_find_rows = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "_FindRows",
         .summary = "Rows of a table for ids, given as they come, and which of them are new",
         .attrs = "insert: bool = true",
         .inputs = "keys: resource; used: resource; ids: int64",
         .outputs = "rows: int64; fresh: int64",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT,
         .infer_shape = find_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = find_cpu)},
        {0}}};
