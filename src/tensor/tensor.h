// tensor.h — The tensor struct itself, for kernels and the executor. The public face is
// weir/tensor.h.
//
// A fresh tensor is one block: header, dimensions, then the elements, aligned to 64 bytes. A view
// is a header alone that holds a reference on the root, the tensor that owns the memory. Headers
// are cheap; elements are never copied to change a shape.
#ifndef WEIR_TENSOR_TENSOR_H_
#define WEIR_TENSOR_TENSOR_H_

#include "base/alloc.h"
#include "base/base.h"
#include "base/thread.h"
#include "tensor/string_element.h"
#include "weir/tensor.h"

#define WEIR_TENSOR_ALIGNMENT 64

// Where the elements of a tensor live on whose memory was left for another: see "tensors that
// move".
typedef struct weir_successor_t {
  // Returns the newest tensor, retained. It owns its memory and is as large as the one left behind.
  weir_tensor_t* (*newest)(struct weir_successor_t* self);
  void (*destroy)(struct weir_successor_t* self);  // the tensor left behind is gone
} weir_successor_t;

struct weir_tensor_t {
  weir_ref_t ref;
  uint8_t dtype;  // weir_dtype_t, never a reference type
  uint8_t rank;
  uint8_t block_class;  // private to tensor.c
  bool is_variable;     // memory of a reference variable: set before anyone else sees it
  int64_t count;        // elements
  void* data;           // NULL only when count is 0 and the memory is not owned
  weir_tensor_t* root;  // the tensor that owns the memory; NULL when this one does
  weir_allocator_t*
      allocator;  // of the elements, when owned and not within the block; NULL otherwise
  weir_deallocator_fn_t deallocator;  // of wrapped memory, never NULL there; NULL elsewhere
  union {
    void* deallocator_arg;                 // of wrapped memory
    _Atomic(weir_successor_t*) successor;  // of owned memory that was left; NULL: it is in use
  };
  size_t alloc_size;  // bytes from |allocator| or of the wrapped memory
  int64_t dims[];     // |rank| of them
};

// ---- creation beyond the public functions ----
// As weir_tensor_create, in the memory of |allocator| (NULL: host). Elements of device memory are
// not touched.
WEIR_MUST_USE weir_status_t* weir_tensor_create_in(weir_allocator_t* allocator, weir_dtype_t dtype,
                                                   int rank, const int64_t* dims,
                                                   weir_tensor_t** out_tensor);
// As reshape, and the elements are read as |dtype|; the byte sizes must agree. For Bitcast.
WEIR_MUST_USE weir_status_t* weir_tensor_view_as(weir_tensor_t* tensor, weir_dtype_t dtype,
                                                 int rank, const int64_t* dims,
                                                 weir_tensor_t** out_view);
// Creates a copy of the elements in fresh memory of the same space (strings, handles and variants
// are copied, deep or by reference). Called where that memory can be reached.
WEIR_MUST_USE weir_status_t* weir_tensor_copy(const weir_tensor_t* tensor,
                                              weir_tensor_t** out_copy);

// ---- tensors that move ----
// In TensorFlow a read of a reference variable shares the variable's memory, so that whoever looks
// at what was read after an update sees the update. Here an update that finds the memory shared
// writes elsewhere, and nothing is ever read torn. The tensor left behind then names its successor,
// and executors renew what a kernel reads just before it runs.

// From now on |tensor|, which owns its memory, and all views of it are outdated. Consumes
// |take_successor|. The caller holds a reference on |tensor|, which has no successor yet.
void weir_tensor_leave(weir_tensor_t* tensor, weir_successor_t* take_successor);
WEIR_INLINE bool weir_tensor_is_outdated(const weir_tensor_t* tensor) {
  const weir_tensor_t* root = tensor->root ? tensor->root : tensor;
  // Pairs with the release in weir_tensor_leave.
  return !root->deallocator && atomic_load_explicit(&root->successor, memory_order_acquire);
}
WEIR_INLINE bool weir_tensor_is_variable(const weir_tensor_t* tensor) {
  return (tensor->root ? tensor->root : tensor)->is_variable;
}
// Replaces |tensor| by the same view of |memory|, which is as large as what it is a view of.
WEIR_MUST_USE weir_status_t* weir_tensor_move(weir_tensor_t** tensor, weir_tensor_t* memory);
// Replaces an outdated tensor by the same view of the newest memory; leaves others alone.
WEIR_MUST_USE weir_status_t* weir_tensor_renew(weir_tensor_t** tensor);
// Replaces a tensor by one that shows the same elements and is never outdated: what is read now.
WEIR_MUST_USE weir_status_t* weir_tensor_freeze(weir_tensor_t** tensor);

// Number of elements of a full shape. INVALID_ARGUMENT naming the shape on a negative dimension or
// overflow (of bytes too).
WEIR_MUST_USE weir_status_t* weir_shape_count(weir_dtype_t dtype, int rank, const int64_t* dims,
                                              int64_t* out_count);
// The same checks in the words of TensorFlow's kernels that make a shape of numbers they are given.
WEIR_MUST_USE weir_status_t* weir_shape_check_sizes(int rank, const int64_t* dims);

// ---- memory spaces ----
WEIR_INLINE const weir_space_t* weir_tensor_space(const weir_tensor_t* tensor) {
  const weir_tensor_t* owner = tensor->root ? tensor->root : tensor;
  return owner->allocator ? owner->allocator->space : &weir_host_space;
}
WEIR_INLINE bool weir_tensor_is_host(const weir_tensor_t* tensor) {
  return weir_tensor_space(tensor) == &weir_host_space;
}

// ---- inline access for kernels ----
#define WEIR_TENSOR_DATA(tensor, type) ((type*)(tensor)->data)
WEIR_INLINE weir_dtype_t weir_tensor_type(const weir_tensor_t* t) { return (weir_dtype_t)t->dtype; }
WEIR_INLINE bool weir_tensor_same_shape(const weir_tensor_t* a, const weir_tensor_t* b) {
  return a->rank == b->rank &&
         (a->rank == 0 || memcmp(a->dims, b->dims, sizeof(int64_t) * a->rank) == 0);
}
// True when the caller's reference is the only one on the header and on the memory: it may be
// overwritten.
WEIR_INLINE bool weir_tensor_is_sole(weir_tensor_t* t) {
  if (!weir_ref_is_one(&t->ref)) return false;
  return t->root ? t->root->deallocator == NULL && weir_ref_is_one(&t->root->ref)
                 : t->deallocator == NULL;
}
WEIR_INLINE weir_tensor_t* weir_tensor_retain_inline(weir_tensor_t* t) {
  weir_ref_inc(&t->ref, 1);
  return t;
}

// Reads element |index| of an int32 or int64 tensor.
WEIR_INLINE int64_t weir_tensor_int_at(const weir_tensor_t* t, int64_t index) {
  return t->dtype == WEIR_DTYPE_INT32 ? ((const int32_t*)t->data)[index]
                                      : ((const int64_t*)t->data)[index];
}

// Appends "[2,3]" to a fixed buffer and returns it, for messages.
#define WEIR_SHAPE_TEXT_SIZE 256
const char* weir_shape_text(int rank, const int64_t* dims, char buffer[WEIR_SHAPE_TEXT_SIZE]);
WEIR_INLINE const char* weir_tensor_shape_text(const weir_tensor_t* t,
                                               char buffer[WEIR_SHAPE_TEXT_SIZE]) {
  return weir_shape_text(t->rank, t->dims, buffer);
}

// ---- elements that are not plain bytes ----
// Makes |count| elements at |data| empty, frees them, or copies them (strings deep, handles and
// variants by reference).
void weir_elements_init(weir_dtype_t dtype, void* data, int64_t count);
void weir_elements_destroy(weir_dtype_t dtype, void* data, int64_t count);
WEIR_MUST_USE weir_status_t* weir_elements_copy(weir_dtype_t dtype, void* dst, const void* src,
                                                int64_t count);

// Appends a readable rendering ("[[1 2] [3 4]]") of up to |limit| elements a dimension.
typedef struct weir_strbuf_t weir_strbuf_t;
void weir_tensor_print(const weir_tensor_t* tensor, int64_t limit, weir_strbuf_t* out);

#endif  // WEIR_TENSOR_TENSOR_H_
