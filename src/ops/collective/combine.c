// combine.c — Reductions, concatenations and exchanges over the tensors of a group's members.
#include "ops/collective/combine.h"

#include "kernel/move/move.h"
#include "tensor/cast.h"

weir_status_t* weir_collective_check(const weir_collective_t* what, const weir_tensor_t* tensor) {
  int rank = tensor && !what->dims ? tensor->rank : what->dim_count;
  const int64_t* dims = tensor && !what->dims ? tensor->dims : what->dims;
  bool is_tensor_needed = !what->wants_roster && what->kind != WEIR_COLLECTIVE_GROUP &&
                          (what->kind != WEIR_COLLECTIVE_BROADCAST || what->is_source);
  if (is_tensor_needed && (!tensor || weir_tensor_type(tensor) != what->dtype))
    return WEIR_STATUS(INTERNAL, "Collective instance %d: a member has no tensor of its type",
                       what->instance_key);
  if (what->kind == WEIR_COLLECTIVE_ALL_TO_ALL && (rank < 1 || dims[0] != what->group_size)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "input to all-to-all first dimension size (%lld) must be the same as the "
                       "group size (%d)",
                       rank < 1 ? 0LL : (long long)dims[0], what->group_size);
  }
  if (what->kind == WEIR_COLLECTIVE_GATHER && rank < 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "input to gather must have at least one dimension");
  if (what->kind == WEIR_COLLECTIVE_REDUCE_SCATTER && (rank < 1 || dims[0] % what->group_size)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "input to reduce-scatter first dimension size (%lld) must be a multiple of "
                       "the group size (%d)",
                       rank < 1 ? 0LL : (long long)dims[0], what->group_size);
  }
  return NULL;
}

// ---- reductions ----

typedef struct reduction_t {
  weir_tensor_t* const* inputs;
  int count;
  size_t size;  // bytes of an element
  char* out;
  weir_update_fn_t merge, divide;
  const void* divisor;
} reduction_t;

// All members' elements of a range, in the order of ranks; a part at a time that stays in cache.
static void reduce_range(void* arg, int64_t begin, int64_t end) {
  enum { PART = 4096 };
  const reduction_t* r = arg;
  for (int64_t at = begin; at < end; at += PART) {
    int64_t count = WEIR_MIN(end - at, PART);
    size_t offset = (size_t)at * r->size;
    char* out = r->out + offset;
    memcpy(out, (const char*)r->inputs[0]->data + offset, (size_t)count * r->size);
    for (int i = 1; i < r->count; ++i)
      r->merge(out, (const char*)r->inputs[i]->data + offset, count, false);
    if (r->divide) r->divide(out, r->divisor, count, true);
  }
}

// The number of members as an element; it is not 0 in any of the types.
static weir_status_t* make_divisor(weir_dtype_t dtype, int count, weir_tensor_t** out_divisor) {
  const int64_t value = count;
  WEIR_TRY(weir_tensor_create(dtype, 0, NULL, out_divisor));
  return weir_cast_elements(dtype, (*out_divisor)->data, WEIR_DTYPE_INT64, &value, 1);
}

static weir_status_t* reduce(const weir_collective_t* what, weir_pool_t* pool,
                             weir_tensor_t* const* inputs, weir_tensor_t** out_sum) {
  weir_tensor_t *out = NULL, *divisor = NULL;
  reduction_t r = {.inputs = inputs,
                   .count = what->group_size,
                   .size = weir_dtype_size(what->dtype),
                   .merge = weir_update_find(what->merge, what->dtype)};
  if (what->is_mean) r.divide = weir_update_find(WEIR_UPDATE_DIV, what->dtype);
  if (!r.merge || (what->is_mean && !r.divide)) {
    return WEIR_STATUS(INTERNAL, "CollectiveImplementation does not support datatype %s",
                       weir_dtype_name(what->dtype));
  }
  if (what->is_mean) WEIR_TRY(make_divisor(what->dtype, what->group_size, &divisor));
  weir_status_t* status = weir_tensor_create(what->dtype, inputs[0]->rank, inputs[0]->dims, &out);
  if (!status && out->count) {
    r.out = out->data;
    r.divisor = divisor ? divisor->data : NULL;
    weir_pool_for(pool, out->count, 0.5 * (double)what->group_size, reduce_range, &r);
  }
  weir_tensor_release(divisor);
  *out_sum = out;
  return status;
}

static weir_status_t* reduce_all(const weir_collective_t* what, weir_pool_t* pool,
                                 weir_tensor_t* const* inputs, weir_tensor_t** outputs) {
  weir_tensor_t* sum = NULL;
  WEIR_TRY(reduce(what, pool, inputs, &sum));
  for (int i = 0; i < what->group_size; ++i) outputs[i] = weir_tensor_retain(sum);
  weir_tensor_release(sum);
  return NULL;
}

static weir_status_t* reduce_scatter(const weir_collective_t* what, weir_pool_t* pool,
                                     weir_tensor_t* const* inputs, weir_tensor_t** outputs) {
  weir_tensor_t* sum = NULL;
  WEIR_TRY(reduce(what, pool, inputs, &sum));
  int64_t rows = sum->dims[0] / what->group_size;
  weir_status_t* status = NULL;
  for (int i = 0; i < what->group_size && !status; ++i)
    status = weir_tensor_slice(sum, i * rows, (i + 1) * rows, &outputs[i]);
  weir_tensor_release(sum);
  return status;
}

// ---- what only moves ----

static weir_status_t* gather(const weir_collective_t* what, weir_pool_t* pool,
                             weir_tensor_t* const* inputs, weir_tensor_t** outputs) {
  int64_t dims[WEIR_MAX_RANK];
  memcpy(dims, inputs[0]->dims, sizeof(*dims) * inputs[0]->rank);
  if (dims[0] > INT64_MAX / what->group_size)
    return WEIR_STATUS(INVALID_ARGUMENT, "the result of a gather is too large");
  dims[0] *= what->group_size;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_tensor_create(what->dtype, inputs[0]->rank, dims, &out));
  size_t size = weir_tensor_byte_size(inputs[0]);
  weir_status_t* status = NULL;
  for (int i = 0; i < what->group_size && size && !status; ++i)
    status = weir_move_copy(pool, what->dtype, inputs[i]->data, (char*)out->data + (size_t)i * size,
                            inputs[i]->count);
  for (int i = 0; i < what->group_size && !status; ++i) outputs[i] = weir_tensor_retain(out);
  weir_tensor_release(out);
  return status;
}

static weir_status_t* broadcast(const weir_collective_t* what, weir_tensor_t* const* inputs,
                                weir_tensor_t** outputs) {
  weir_tensor_t* source = NULL;
  for (int i = 0; i < what->group_size; ++i) source = inputs[i] ? inputs[i] : source;
  for (int i = 0; i < what->group_size; ++i) outputs[i] = weir_tensor_retain(source);
  return NULL;
}

// Row j of member i's output is row i of member j's input.
static weir_status_t* all_to_all(const weir_collective_t* what, weir_tensor_t* const* inputs,
                                 weir_tensor_t** outputs) {
  size_t row = weir_tensor_byte_size(inputs[0]) / (size_t)what->group_size;
  for (int i = 0; i < what->group_size; ++i) {
    WEIR_TRY(weir_tensor_create(what->dtype, inputs[0]->rank, inputs[0]->dims, &outputs[i]));
    for (int j = 0; j < what->group_size && row; ++j) {
      memcpy((char*)outputs[i]->data + (size_t)j * row,
             (const char*)inputs[j]->data + (size_t)i * row, row);
    }
  }
  return NULL;
}

weir_status_t* weir_collective_combine(const weir_collective_t* what, weir_pool_t* pool,
                                       weir_tensor_t* const* inputs, weir_tensor_t** outputs) {
  switch (what->kind) {
    case WEIR_COLLECTIVE_REDUCE: return reduce_all(what, pool, inputs, outputs);
    case WEIR_COLLECTIVE_REDUCE_SCATTER: return reduce_scatter(what, pool, inputs, outputs);
    case WEIR_COLLECTIVE_GATHER: return gather(what, pool, inputs, outputs);
    case WEIR_COLLECTIVE_BROADCAST: return broadcast(what, inputs, outputs);
    case WEIR_COLLECTIVE_ALL_TO_ALL: return all_to_all(what, inputs, outputs);
    default: return NULL;  // a group: nothing is exchanged
  }
}
