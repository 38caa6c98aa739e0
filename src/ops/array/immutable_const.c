// immutable_const.c — ImmutableConst: a tensor whose elements are the bytes of a file, mapped into
// memory.
#include "file/mapping.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

typedef struct const_state_t {
  weir_mutex_t mu;
  weir_tensor_t* tensor;  // guarded by mu; NULL until the first run
  char* path;
} const_state_t;

static weir_status_t* const_init(const weir_kernel_init_t* init, void* state) {
  const_state_t* s = state;
  weir_mutex_init(&s->mu);
  if (!weir_shape_is_full(weir_attrs_shape(init->node->attrs, "shape"))) {
    return WEIR_STATUS(INVALID_ARGUMENT, "The shape of '%s' is not fully known", init->node->name);
  }
  const weir_view_t path = weir_attrs_string(init->node->attrs, "memory_region_name");
  s->path = weir_strndup(path.data ? path.data : "", path.size);
  return s->path ? NULL : weir_out_of_memory();
}

static void const_deinit(void* state) {
  const_state_t* s = state;
  weir_tensor_release(s->tensor);
  weir_free(s->path);
  weir_mutex_destroy(&s->mu);
}

static weir_status_t* make_tensor(weir_kernel_ctx_t* ctx, const char* path,
                                  weir_tensor_t** out_tensor) {
  const weir_dtype_t dtype = weir_attrs_type(weir_kernel_attrs(ctx), "dtype");
  const weir_shape_t* shape = weir_attrs_shape(weir_kernel_attrs(ctx), "shape");
  int64_t count = 0;
  weir_mapping_t* mapping = NULL;
  WEIR_TRY(weir_mapping_create(path, &mapping));
  weir_status_t* status = weir_shape_count(dtype, shape->rank, shape->dims, &count);
  if (!status && !weir_dtype_is_plain(dtype)) {
    status = WEIR_STATUS(UNIMPLEMENTED, "Sorry, %s is not currently supported for ImmutableConst",
                         weir_dtype_name(dtype));
  }
  const size_t needed = (size_t)count * weir_dtype_size(dtype);
  if (!status && needed > mapping->size) {
    status = WEIR_STATUS(INTERNAL,
                         "Readonly memory region %s has wrong length (%zu) when allocating %zu",
                         path, mapping->size, needed);
  }
  if (status) {
    weir_mapping_release(mapping);
    return status;
  }
  return weir_tensor_wrap(dtype, shape->rank, shape->dims, mapping->data, mapping->size,
                          weir_mapping_drop, mapping, out_tensor);
}

static weir_status_t* const_cpu(weir_kernel_ctx_t* ctx) {
  const_state_t* s = ctx->state;
  weir_status_t* status = NULL;
  weir_mutex_lock(&s->mu);
  if (!s->tensor) status = make_tensor(ctx, s->path, &s->tensor);
  if (!status) weir_kernel_set(ctx, 0, weir_tensor_retain(s->tensor));
  weir_mutex_unlock(&s->mu);
  return status;
}

static weir_status_t* const_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_set(ctx, 0, weir_attrs_shape(weir_shape_attrs(ctx), "shape"));
}

const weir_op_module_t weir_ops_array_immutable_const = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ImmutableConst",
         .attrs = "dtype: type; shape: shape; memory_region_name: string",
         .outputs = "tensor: dtype",
         .flags = WEIR_OP_NO_FOLD | WEIR_OP_NO_GRADIENT | WEIR_OP_UNBOUNDED,
         .summary = "A tensor that lies in a file",
         .infer_shape = const_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = const_cpu, .state_size = sizeof(const_state_t),
                                    .init = const_init, .deinit = const_deinit)},
        {0}}};
