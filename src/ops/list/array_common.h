// array_common.h — What the TensorArray ops share: the array behind a handle, and gradient arrays
// in gradients.
#ifndef WEIR_OPS_LIST_ARRAY_COMMON_H_
#define WEIR_OPS_LIST_ARRAY_COMMON_H_

#include "kernel/elementwise/cuda_elementwise.h"
#include "op/grad_ctx.h"
#include "op/shape_ctx.h"
#include "op/step_resource.h"
#include "ops/list/rows.h"
#include "ops/list/tensor_array_resource.h"

// ---- kernels ----

// The array behind input 0; borrowed.
static inline weir_status_t* array_of(weir_kernel_ctx_t* ctx, weir_tensor_array_t** out_array) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_step_resource_get(ctx, 0, &weir_tensor_array_type, &resource));
  *out_array = (weir_tensor_array_t*)resource;
  return NULL;
}

static inline weir_status_t* array_check_read(const weir_tensor_array_t* array,
                                              weir_dtype_t dtype) {
  if (array->dtype == dtype) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "TensorArray dtype is %s but Op requested dtype %s.",
                     weir_dtype_name(array->dtype), weir_dtype_name(dtype));
}

static inline weir_status_t* array_check_write(const weir_tensor_array_t* array,
                                               const weir_tensor_t* value) {
  if (array->dtype == value->dtype) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "TensorArray dtype is %s but Op is trying to write dtype %s.",
                     weir_dtype_name(array->dtype), weir_dtype_name(weir_tensor_type(value)));
}

static inline weir_status_t* array_index(const weir_kernel_ctx_t* ctx, int64_t* out_index) {
  const weir_tensor_t* index = weir_kernel_input(ctx, 1);
  if (WEIR_UNLIKELY(index->rank != 0)) {
    char shape[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "TensorArray index must be scalar, but had shape: %s",
                       weir_tensor_shape_text(index, shape));
  }
  *out_index = weir_tensor_int_at(index, 0);
  return NULL;
}

// ---- elements in the memory of GPUs ----

// The state of a GPU's kernels that write: how gradients are added up. Without a function for types
// that are not numbers.
typedef struct array_state_t {
  weir_cuda_elementwise_t add;
  bool has_add;
} array_state_t;

static inline weir_status_t* array_write_init(const weir_kernel_init_t* init, void* state) {
  array_state_t* s = state;
  weir_dtype_t dtype = weir_attrs_type(init->node->attrs, "T");
  s->has_add = weir_device_is_cuda(init->device) &&
               (weir_dtype_is_floating(dtype) || weir_dtype_is_integer(dtype));
  return s->has_add ? weir_cuda_binary_find(init->device, WEIR_BINARY_ADD, dtype, dtype, &s->add)
                    : NULL;
}

static inline weir_status_t* array_create_zeros(void* arg, weir_dtype_t dtype, int rank,
                                                const int64_t* dims, weir_tensor_t** out_tensor) {
  return rows_create_zeros(arg, dtype, rank, dims, out_tensor);
}

static inline weir_status_t* array_accumulate(void* arg, weir_tensor_t** take_sum,
                                              const weir_tensor_t* value) {
  const weir_kernel_ctx_t* ctx = arg;
  const array_state_t* s = ctx->state;
  weir_tensor_t* old = *take_sum;
  weir_tensor_t* sum = old;
  if (!rows_are_on_gpu(ctx, weir_tensor_type(old))) return weir_tensor_accumulate(take_sum, value);
  if (!s->has_add)
    return WEIR_STATUS(INVALID_ARGUMENT, "tensors of type %s cannot be added",
                       weir_dtype_name(weir_tensor_type(old)));
  if (!weir_tensor_is_sole(old))
    WEIR_TRY(weir_tensor_create_in(weir_device_allocator(ctx->device, WEIR_MEMORY_DEVICE),
                                   weir_tensor_type(old), old->rank, old->dims, &sum));
  weir_status_t* status = weir_cuda_binary_run(ctx->device, &s->add, old->data, value->data,
                                               sum->data, old->count, WEIR_SPAN_BOTH);
  if (sum == old) return status;
  weir_tensor_release(status ? sum : old);
  if (!status) *take_sum = sum;
  return status;
}

#define ARRAY_MEMORY(ctx)               \
  (&(const weir_tensor_array_memory_t){ \
      .create_zeros = array_create_zeros, .accumulate = array_accumulate, .arg = (void*)(ctx)})

// ---- shapes ----

// Checks the shapes every op on an array has: the handle, and the flow at input |flow| (-1: none).
// A handle of the second generation is two strings; of the first nothing is checked.
static inline weir_status_t* array_check_shapes(weir_shape_ctx_t* ctx, int flow) {
  const weir_dtype_t type = ctx->node->input_types[0];
  if (weir_dtype_is_ref(type)) return NULL;
  if (type == WEIR_DTYPE_STRING) {
    const weir_shape_t* shape = NULL;
    int64_t dim = 0;
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, &shape));
    WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(shape, 0), 2, &dim));
  } else {
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  }
  return flow < 0 ? NULL : weir_shape_with_rank(ctx, weir_shape_input(ctx, flow), 0, NULL);
}

// ---- gradients ----

typedef struct array_grad_t {
  weir_edge_t handle;
  weir_edge_t flow;
} array_grad_t;

// The gradient array of the forward node's array, to be used after |flow|. All gradients of one
// graph share a source.
static inline array_grad_t array_grad_of(weir_grad_ctx_t* g, weir_edge_t flow) {
  weir_edge_t grad =
      weir_grad_node_with(g, "TensorArrayGradV3", WEIR_EDGES(weir_grad_input(g, 0), flow),
                          WEIR_ATTRS(weir_attr_string("source", "gradients")));
  return (array_grad_t){.handle = grad, .flow = weir_build_output(grad, 1)};
}

// The flow that comes back to a write, held until the write itself is done: the gradient array
// takes shapes from it.
static inline weir_edge_t array_grad_barrier(weir_grad_ctx_t* g) {
  weir_edge_t flow = weir_grad_node(g, "Identity", WEIR_EDGES(weir_grad_dy(g, 0)));
  weir_builder_t* b = g->builder;
  if (!b->status && flow.node) b->status = b->vtable->add_control(b, flow, g->self);
  return flow;
}

#define ARRAY_WRITE_TYPES                                                                      \
  "T: variant, resource, string, bool, complex128, complex64, double, float, bfloat16, half, " \
  "int32, int8, uint8, "                                                                       \
  "int16, uint16, uint32, int64, uint64"

#define ARRAY_WRITER \
  .types = ARRAY_WRITE_TYPES, .init = array_write_init, .state_size = sizeof(array_state_t)

#endif  // WEIR_OPS_LIST_ARRAY_COMMON_H_
