// sole.h — Whether a tensor's memory may be written in place. Used within op/ only.
#ifndef WEIR_OP_SOLE_H_
#define WEIR_OP_SOLE_H_

#include "tensor/tensor.h"

// True when the caller holds the only reference, and the memory is Weir's own: wrapped memory
// belongs to whoever lent it.
WEIR_INLINE bool weir_tensor_is_writable(weir_tensor_t* t) {
  if (!weir_tensor_is_sole(t)) return false;
  const weir_tensor_t* owner = t->root ? t->root : t;
  if (owner->deallocator) return false;
  if (owner->allocator) return true;
  // Elements within the block end where the block does.
  size_t offset = (size_t)((uintptr_t)owner->data - (uintptr_t)owner);
  return offset >= sizeof(*owner) && offset + weir_tensor_byte_size(owner) == owner->alloc_size;
}

#endif  // WEIR_OP_SOLE_H_
