// variable.c — Variables: a tensor under a lock, read as a snapshot and written in place when
// nobody else holds it.
#include "base/alloc.h"
#include "op/resource.h"

static void destroy(weir_resource_t* resource) {
  weir_variable_t* variable = (weir_variable_t*)resource;
  weir_tensor_release(variable->tensor);
  weir_mutex_destroy(&variable->mu);
  weir_free(variable->shape);
  weir_free(variable);
}

static void describe(weir_resource_t* resource, weir_strbuf_t* out) {
  weir_variable_t* variable = (weir_variable_t*)resource;
  weir_tensor_t* tensor = weir_variable_read(variable);
  weir_strbuf_puts(out, weir_dtype_name(variable->dtype));
  if (tensor) {
    char shape[WEIR_SHAPE_TEXT_SIZE];
    weir_strbuf_puts(out, weir_tensor_shape_text(tensor, shape));
  } else {
    weir_strbuf_puts(out, " uninitialized");
  }
  weir_tensor_release(tensor);
}

const weir_resource_type_t weir_variable_type = {
    .name = "N10tensorflow3VarE",  // as TensorFlow's messages name it
    .destroy = destroy,
    .describe = describe,
};

weir_status_t* weir_variable_create(weir_dtype_t dtype, const weir_shape_t* shape,
                                    weir_variable_t** out) {
  weir_variable_t* variable = weir_calloc(1, sizeof(*variable));
  if (!variable) return weir_out_of_memory();
  if (shape) {
    variable->shape = weir_shape_clone(shape);
    if (!variable->shape) {
      weir_free(variable);
      return weir_out_of_memory();
    }
  }
  weir_resource_init(&variable->base, &weir_variable_type);
  weir_mutex_init(&variable->mu);
  variable->dtype = dtype;
  *out = variable;
  return NULL;
}

weir_tensor_t* weir_variable_read(weir_variable_t* variable) {
  weir_mutex_lock(&variable->mu);
  weir_tensor_t* tensor = weir_tensor_retain(variable->tensor);
  weir_mutex_unlock(&variable->mu);
  return tensor;
}

void weir_variable_assign(weir_variable_t* variable, weir_tensor_t* take_tensor) {
  weir_mutex_lock(&variable->mu);
  weir_tensor_t* old = variable->tensor;
  variable->tensor = take_tensor;
  weir_mutex_unlock(&variable->mu);
  weir_tensor_release(old);  // outside the lock: freeing may take long
}

weir_status_t* weir_variable_make_sole_locked(weir_variable_t* variable, const char* what) {
  if (!variable->tensor) {
    return WEIR_STATUS(FAILED_PRECONDITION, "Attempting to use uninitialized value %s", what);
  }
  if (weir_tensor_is_sole(variable->tensor)) return NULL;
  weir_tensor_t* copy = NULL;
  WEIR_TRY(weir_tensor_copy(variable->tensor, &copy));
  weir_tensor_release(variable->tensor);
  variable->tensor = copy;
  return NULL;
}
