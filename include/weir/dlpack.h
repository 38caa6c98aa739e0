// dlpack.h — Tensors to and from other libraries without a copy, by DLPack's structs.
//
// The structs are those of dlpack/dlpack.h, which a program that looks into them includes: they are
// only named here. Memory of the host only. Threading: as tensors'.
#ifndef WEIR_DLPACK_H_
#define WEIR_DLPACK_H_

#include "weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;           // before version 1.0
struct DLManagedTensorVersioned;  // of version 1.x

// Creates a managed tensor on |tensor|'s memory, which keeps it until its deleter is called. It is
// marked as read-only unless |tensor| is writable and has no other user than the managed one.
// UNIMPLEMENTED for strings, resources and variants, and types that DLPack lacks.
WEIR_API WEIR_MUST_USE weir_status_t* weir_tensor_to_dlpack(
    weir_tensor_t* tensor, struct DLManagedTensorVersioned** out_managed);
// The same for consumers of the old struct, which cannot say that memory is read-only:
// FAILED_PRECONDITION for such a tensor.
WEIR_API WEIR_MUST_USE weir_status_t* weir_tensor_to_dlpack_old(
    weir_tensor_t* tensor, struct DLManagedTensor** out_managed);

// Creates a tensor on the memory of |take_managed|, whose deleter is called when nobody needs it
// any more, also when this function fails. Elements that do not lie one behind another are copied.
// INVALID_ARGUMENT for what makes no tensor, UNIMPLEMENTED for other devices, element types of
// several lanes, and major versions above 1.
WEIR_API WEIR_MUST_USE weir_status_t* weir_tensor_from_dlpack(
    struct DLManagedTensorVersioned* take_managed, weir_tensor_t** out_tensor);
WEIR_API WEIR_MUST_USE weir_status_t* weir_tensor_from_dlpack_old(
    struct DLManagedTensor* take_managed, weir_tensor_t** out_tensor);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_DLPACK_H_
