// staging.h — What staging areas, with keys (map_staging.c) and without (staging.c), share: tuples
// of tensors, and the kernels' state.
#ifndef WEIR_OPS_QUEUE_STAGING_H_
#define WEIR_OPS_QUEUE_STAGING_H_

#include "op/shape_ctx.h"
#include "op/shared_handle.h"
#include "ops/queue/waiter.h"

// A tuple, whose parts may be missing. Owns references on them.
typedef struct tuple_t {
  struct tuple_t* next;  // of the list it is in
  int64_t key;           // of a map
  int64_t size;          // of what was put, in bytes
  int64_t last_size;     // and of its last part
  int count;
  weir_tensor_t* parts[];
} tuple_t;

static inline tuple_t* tuple_create(int count) {
  tuple_t* tuple = weir_calloc(1, sizeof(*tuple) + (size_t)count * sizeof(tuple->parts[0]));
  if (tuple) tuple->count = count;
  return tuple;
}

static inline void tuple_destroy(tuple_t* tuple) {
  for (int i = 0; tuple && i < tuple->count; ++i) weir_tensor_release(tuple->parts[i]);
  weir_free(tuple);
}

// As TensorFlow counts: a string takes 24 bytes and its text.
static inline int64_t part_size(const weir_tensor_t* part) {
  if (weir_tensor_type(part) != WEIR_DTYPE_STRING) {
    return part->count * (int64_t)weir_dtype_size(weir_tensor_type(part));
  }
  int64_t size = 24 * part->count;
  const weir_string_t* texts = part->data;
  for (int64_t i = 0; i < part->count; ++i) size += (int64_t)weir_string_view(&texts[i]).size;
  return size;
}

static inline int64_t tuple_size(const tuple_t* tuple) {
  int64_t size = 0;
  for (int i = 0; i < tuple->count; ++i) {
    if (tuple->parts[i]) size += part_size(tuple->parts[i]);
  }
  return size;
}

// The inputs of |ctx| from |first| on, retained; NULL when out of memory.
static inline tuple_t* tuple_of_inputs(const weir_kernel_ctx_t* ctx, int first) {
  tuple_t* tuple = tuple_create(ctx->input_count - first);
  for (int i = 0; tuple && i < tuple->count; ++i) {
    tuple->parts[i] = weir_tensor_retain(ctx->inputs[first + i].tensor);
    tuple->last_size = part_size(tuple->parts[i]);
    tuple->size += tuple->last_size;
  }
  return tuple;
}

// Makes the parts of |tuple| outputs from |first| on.
static inline weir_status_t* tuple_put_out(weir_kernel_ctx_t* ctx, int first, tuple_t* tuple) {
  for (int i = 0; i < tuple->count; ++i) {
    const weir_dtype_t has = weir_tensor_type(tuple->parts[i]);
    const weir_dtype_t wanted = ctx->node->output_types[first + i];
    if (has != wanted) {
      return WEIR_STATUS(INTERNAL, "Output %d of type %s does not match declared output type %s",
                         first + i, weir_dtype_name(has), weir_dtype_name(wanted));
    }
    weir_kernel_set(ctx, first + i, tuple->parts[i]);
    tuple->parts[i] = NULL;
  }
  return NULL;
}

// ---- the state of all kernels ----
typedef struct staging_state_t {
  weir_shared_handle_t handle;
  int64_t capacity;      // tuples; 0: any number
  int64_t memory_limit;  // bytes; 0: any number
  int part_count;        // of the attribute dtypes
} staging_state_t;

static inline weir_status_t* staging_init(const weir_kernel_init_t* init, void* state) {
  staging_state_t* s = state;
  s->capacity = weir_attrs_int(init->node->attrs, "capacity");
  s->memory_limit = weir_attrs_int(init->node->attrs, "memory_limit");
  s->part_count = (int)weir_attrs_list(init->node->attrs, "dtypes")->count;
  return weir_shared_handle_init_names(init, &s->handle);
}

static inline void staging_deinit(void* state) {
  weir_shared_handle_deinit(&((staging_state_t*)state)->handle);
}

static inline weir_status_t* check_limit(int64_t size, int64_t memory_limit) {
  if (memory_limit == 0 || size <= memory_limit) return NULL;
  return WEIR_STATUS(RESOURCE_EXHAUSTED,
                     "Attempted to insert tensors with combined size of '%lld' bytes into Staging "
                     "Area with a memory limit of '%lld'.",
                     (long long)size, (long long)memory_limit);
}

#define STAGING_ATTRS "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; "
#define STAGING_NAMES "; container: string = ''; shared_name: string = ''"
#define STAGING_KERNEL(...)                                                         \
  WEIR_PORTABLE_KERNEL(.state_size = sizeof(staging_state_t), .init = staging_init, \
                       .deinit = staging_deinit, __VA_ARGS__)

#endif  // WEIR_OPS_QUEUE_STAGING_H_
