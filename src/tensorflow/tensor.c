// tensor.c — TF_Tensor and TF_DataType.
#include "tensor/tensor.h"

#include "tensor/tensor_proto.h"
#include "tensorflow/internal.h"

_Static_assert(sizeof(TF_TString) == sizeof(weir_string_t), "strings are handed over as they are");

size_t TF_DataTypeSize(TF_DataType dt) {
  const weir_dtype_t dtype = (weir_dtype_t)dt;
  return weir_dtype_is_plain(dtype) ? weir_dtype_size(dtype) : 0;
}

size_t TF_TensorDefaultAlignment(void) { return WEIR_TENSOR_ALIGNMENT; }

// ---- handles ----

TF_Tensor* tf_tensor_wrap(weir_tensor_t* take_tensor) {
  TF_Tensor* tensor = weir_malloc(sizeof(*tensor));
  if (tensor) tensor->tensor = take_tensor;
  else weir_tensor_release(take_tensor);
  return tensor;
}

// NULL says that something is wrong, as TensorFlow's does: there is no status.
static TF_Tensor* wrap_or_null(weir_status_t* take_status, weir_tensor_t* take_tensor) {
  const bool is_ok = !take_status;
  weir_status_destroy(take_status);
  return is_ok ? tf_tensor_wrap(take_tensor) : NULL;
}

// ---- creation ----

static bool is_aligned(const void* data) { return (uintptr_t)data % WEIR_TENSOR_ALIGNMENT == 0; }

// A copy in memory of its own, without what the shape leaves over.
static weir_status_t* copy_in(weir_dtype_t dtype, int rank, const int64_t* dims, const void* data,
                              size_t len, weir_tensor_t** out_tensor) {
  int64_t count = 0;
  WEIR_TRY(weir_shape_count(dtype, rank, dims, &count));
  if (len < (size_t)count * weir_dtype_size(dtype))
    return WEIR_STATUS(INVALID_ARGUMENT, "%zu bytes are too few", len);
  return weir_tensor_create_from(dtype, rank, dims, data, out_tensor);
}

TF_Tensor* TF_NewTensor(TF_DataType dt, const int64_t* dims, int num_dims, void* data, size_t len,
                        void (*deallocator)(void* data, size_t len, void* arg),
                        void* deallocator_arg) {
  const weir_dtype_t dtype = (weir_dtype_t)dt;
  weir_tensor_t* tensor = NULL;
  if (is_aligned(data) || !weir_dtype_is_plain(dtype)) {
    weir_status_t* status =
        weir_tensor_wrap(dtype, num_dims, dims, data, len, deallocator, deallocator_arg, &tensor);
    return wrap_or_null(status, tensor);
  }
  weir_status_t* status = copy_in(dtype, num_dims, dims, data, len, &tensor);
  if (deallocator) deallocator(data, len, deallocator_arg);
  return wrap_or_null(status, tensor);
}

// Elements of TF_STRING start out empty and are freed with the tensor, also after the caller freed
// them: an element knows whether it owns anything.
TF_Tensor* TF_AllocateTensor(TF_DataType dt, const int64_t* dims, int num_dims, size_t len) {
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = weir_tensor_create((weir_dtype_t)dt, num_dims, dims, &tensor);
  if (!status && len < weir_tensor_byte_size(tensor)) {
    weir_tensor_release(tensor);
    return NULL;
  }
  return wrap_or_null(status, tensor);
}

TF_Tensor* TF_TensorMaybeMove(TF_Tensor* tensor) {
  return weir_tensor_is_sole(tensor->tensor) ? tensor : NULL;
}

void TF_DeleteTensor(TF_Tensor* tensor) {
  if (!tensor) return;
  weir_tensor_release(tensor->tensor);
  weir_free(tensor);
}

// ---- looking ----

TF_DataType TF_TensorType(const TF_Tensor* t) { return (TF_DataType)weir_tensor_dtype(t->tensor); }
int TF_NumDims(const TF_Tensor* t) { return weir_tensor_rank(t->tensor); }
int64_t TF_Dim(const TF_Tensor* t, int dim_index) { return weir_tensor_dim(t->tensor, dim_index); }
size_t TF_TensorByteSize(const TF_Tensor* t) { return weir_tensor_byte_size(t->tensor); }
void* TF_TensorData(const TF_Tensor* t) { return weir_tensor_data(t->tensor); }
int64_t TF_TensorElementCount(const TF_Tensor* t) { return weir_tensor_count(t->tensor); }
bool TF_TensorIsAligned(const TF_Tensor* t) { return is_aligned(weir_tensor_data(t->tensor)); }

// ---- changing ----

void TF_SetShape(TF_Tensor* tensor, const int64_t* dims, int num_dims) {
  weir_tensor_t* view = NULL;
  weir_status_t* status = weir_tensor_reshape(tensor->tensor, num_dims, dims, &view);
  if (weir_status_report(status)) return;  // there is no other way to say so
  weir_tensor_release(tensor->tensor);
  tensor->tensor = view;
}

void TF_TensorBitcastFrom(const TF_Tensor* from, TF_DataType type, TF_Tensor* to,
                          const int64_t* new_dims, int num_new_dims, TF_Status* status) {
  weir_tensor_t* view = NULL;
  weir_status_t* result =
      weir_tensor_view_as(from->tensor, (weir_dtype_t)type, num_new_dims, new_dims, &view);
  if (!tf_status_take(status, result)) return;
  weir_tensor_release(to->tensor);
  to->tensor = view;
}

void TF_TensorFromProto(const TF_Buffer* from, TF_Tensor* to, TF_Status* status) {
  weir_tensor_t* tensor = NULL;
  if (!tf_status_take(status, weir_tensor_parse(tf_buffer_view(from), &tensor))) return;
  weir_tensor_release(to->tensor);
  to->tensor = tensor;
}

// ---- the border ----

static weir_status_t* copy_strings(const weir_tensor_t* from, weir_tensor_t** out_tensor) {
  weir_tensor_t* copy = NULL;
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_STRING, from->rank, from->dims, &copy));
  const TF_TString* elements = from->data;
  weir_status_t* status = NULL;
  for (int64_t i = 0; i < from->count && !status; ++i)
    status = weir_tensor_set_string(copy, i, TF_TString_GetDataPointer(&elements[i]),
                                    TF_TString_GetSize(&elements[i]));
  if (status) weir_tensor_release(copy);
  else *out_tensor = copy;
  return status;
}

// The caller may change, or free, the strings of its tensor as soon as the step has returned, when
// a variable may still have them.
weir_status_t* tf_tensor_in(const TF_Tensor* tensor, weir_tensor_t** out_tensor) {
  if (!tensor) return WEIR_STATUS(INVALID_ARGUMENT, "a tensor to feed is NULL");
  if (weir_tensor_type(tensor->tensor) == WEIR_DTYPE_STRING)
    return copy_strings(tensor->tensor, out_tensor);
  *out_tensor = weir_tensor_retain(tensor->tensor);
  return NULL;
}

weir_status_t* tf_tensor_out(weir_tensor_t* take_tensor, TF_Tensor** out_tensor) {
  weir_tensor_t* tensor = take_tensor;
  if (weir_tensor_type(tensor) == WEIR_DTYPE_STRING && !weir_tensor_is_sole(tensor)) {
    weir_status_t* status = copy_strings(take_tensor, &tensor);
    weir_tensor_release(take_tensor);
    if (status) return status;
  }
  *out_tensor = tf_tensor_wrap(tensor);
  return *out_tensor ? NULL : weir_out_of_memory();
}
