// dlpack.c — Tensors to and from DLPack's structs, old and versioned.
#include "tensor/dlpack.h"

#include <inttypes.h>

#include "tensor/shape.h"
#include "tensor/tensor.h"
#include "weir/argument.h"
#include "weir/dlpack.h"

// ---- element types ----

typedef struct type_row_t {
  weir_dtype_t dtype;
  uint8_t code, bits;
} type_row_t;
enum { CODE_INT = 0, CODE_UINT, CODE_FLOAT, CODE_BFLOAT = 4, CODE_COMPLEX, CODE_BOOL };
enum { CODE_E4M3B11FNUZ = 9, CODE_E4M3FN, CODE_E4M3FNUZ, CODE_E5M2, CODE_E5M2FNUZ };
static const type_row_t type_rows[] = {
    {WEIR_DTYPE_FLOAT, CODE_FLOAT, 32},
    {WEIR_DTYPE_DOUBLE, CODE_FLOAT, 64},
    {WEIR_DTYPE_HALF, CODE_FLOAT, 16},
    {WEIR_DTYPE_BFLOAT16, CODE_BFLOAT, 16},
    {WEIR_DTYPE_INT8, CODE_INT, 8},
    {WEIR_DTYPE_INT16, CODE_INT, 16},
    {WEIR_DTYPE_INT32, CODE_INT, 32},
    {WEIR_DTYPE_INT64, CODE_INT, 64},
    {WEIR_DTYPE_UINT8, CODE_UINT, 8},
    {WEIR_DTYPE_UINT16, CODE_UINT, 16},
    {WEIR_DTYPE_UINT32, CODE_UINT, 32},
    {WEIR_DTYPE_UINT64, CODE_UINT, 64},
    {WEIR_DTYPE_BOOL, CODE_BOOL, 8},
    {WEIR_DTYPE_COMPLEX64, CODE_COMPLEX, 64},
    {WEIR_DTYPE_COMPLEX128, CODE_COMPLEX, 128},
    {WEIR_DTYPE_FLOAT8_E4M3B11FNUZ, CODE_E4M3B11FNUZ, 8},
    {WEIR_DTYPE_FLOAT8_E4M3FN, CODE_E4M3FN, 8},
    {WEIR_DTYPE_FLOAT8_E4M3FNUZ, CODE_E4M3FNUZ, 8},
    {WEIR_DTYPE_FLOAT8_E5M2, CODE_E5M2, 8},
    {WEIR_DTYPE_FLOAT8_E5M2FNUZ, CODE_E5M2FNUZ, 8},
};

static const type_row_t* find_dtype(weir_dtype_t dtype) {
  for (size_t i = 0; i < WEIR_COUNT_OF(type_rows); ++i) {
    if (type_rows[i].dtype == dtype) return &type_rows[i];
  }
  return NULL;
}

static const type_row_t* find_type(dlpack_type_t type) {
  for (size_t i = 0; i < WEIR_COUNT_OF(type_rows) && type.lanes == 1; ++i) {
    if (type_rows[i].code == type.code && type_rows[i].bits == type.bits) return &type_rows[i];
  }
  return NULL;
}

// ---- out ----

// Fills |out| for |tensor|; shape and strides go to |numbers|, twice the rank.
static void describe(weir_tensor_t* tensor, const type_row_t* row, int64_t* numbers,
                     dlpack_tensor_t* out) {
  int64_t stride = 1;
  for (int i = tensor->rank; i-- > 0;) {
    numbers[i] = tensor->dims[i];
    numbers[tensor->rank + i] = stride;
    stride *= WEIR_MAX(tensor->dims[i], 1);
  }
  *out = (dlpack_tensor_t){.data = tensor->data,
                           .device_type = DLPACK_CPU,
                           .rank = tensor->rank,
                           .type = {row->code, row->bits, 1},
                           .shape = numbers,
                           .strides = numbers + tensor->rank};
}

// One block: the managed struct, then shape and strides.
typedef struct block_t {
  union {
    struct DLManagedTensorVersioned versioned;
    struct DLManagedTensor old;
  } u;
  int64_t numbers[];
} block_t;

static void delete_versioned(struct DLManagedTensorVersioned* self) {
  weir_tensor_release(self->owner);
  weir_free(self);
}

static void delete_old(struct DLManagedTensor* self) {
  weir_tensor_release(self->owner);
  weir_free(self);
}

static weir_status_t* create_block(weir_tensor_t* tensor, const type_row_t** out_row,
                                   block_t** out_block) {
  WEIR_REQUIRE_ARG(tensor);
  *out_row = find_dtype(weir_tensor_type(tensor));
  if (!*out_row)
    return WEIR_STATUS(UNIMPLEMENTED, "DLPack has no type for elements of type %s",
                       weir_dtype_name(weir_tensor_type(tensor)));
  *out_block = weir_calloc(1, sizeof(**out_block) + sizeof(int64_t) * 2 * tensor->rank);
  return *out_block ? NULL : weir_out_of_memory();
}

weir_status_t* weir_tensor_to_dlpack(weir_tensor_t* tensor,
                                     struct DLManagedTensorVersioned** out_managed) {
  WEIR_REQUIRE_ARG(out_managed);
  const type_row_t* row = NULL;
  block_t* block = NULL;
  WEIR_TRY(create_block(tensor, &row, &block));
  struct DLManagedTensorVersioned* managed = &block->u.versioned;
  managed->major = DLPACK_MAJOR;
  managed->minor = DLPACK_MINOR;
  managed->flags = weir_tensor_is_sole(tensor) ? 0 : DLPACK_READ_ONLY;
  describe(tensor, row, block->numbers, &managed->tensor);
  managed->owner = weir_tensor_retain(tensor);
  managed->deleter = delete_versioned;
  *out_managed = managed;
  return NULL;
}

weir_status_t* weir_tensor_to_dlpack_old(weir_tensor_t* tensor,
                                         struct DLManagedTensor** out_managed) {
  WEIR_REQUIRE_ARG(out_managed);
  WEIR_REQUIRE_ARG(tensor);
  if (!weir_tensor_is_sole(tensor))
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "the tensor's memory is shared, and the old DLPack struct cannot say that "
                       "it is read-only");
  const type_row_t* row = NULL;
  block_t* block = NULL;
  WEIR_TRY(create_block(tensor, &row, &block));
  struct DLManagedTensor* managed = &block->u.old;
  describe(tensor, row, block->numbers, &managed->tensor);
  managed->owner = weir_tensor_retain(tensor);
  managed->deleter = delete_old;
  *out_managed = managed;
  return NULL;
}

// ---- in ----

static void release_versioned(void* data, size_t size, void* arg) {
  (void)data;
  (void)size;
  struct DLManagedTensorVersioned* managed = arg;
  if (managed->deleter) managed->deleter(managed);
}

static void release_old(void* data, size_t size, void* arg) {
  (void)data;
  (void)size;
  struct DLManagedTensor* managed = arg;
  if (managed->deleter) managed->deleter(managed);
}

static weir_status_t* check_imported(const dlpack_tensor_t* t, weir_dtype_t* out_dtype) {
  if (t->device_type != DLPACK_CPU)
    return WEIR_STATUS(UNIMPLEMENTED,
                       "a DLPack tensor on device type %d: only memory of the host (1) is read",
                       t->device_type);
  const type_row_t* row = find_type(t->type);
  if (!row)
    return WEIR_STATUS(UNIMPLEMENTED, "a DLPack tensor of type code %d, %d bits, %d lanes",
                       t->type.code, t->type.bits, t->type.lanes);
  if (t->rank < 0 || t->rank > WEIR_MAX_RANK)
    return WEIR_STATUS(INVALID_ARGUMENT, "a DLPack tensor of rank %d", t->rank);
  if (t->rank > 0 && !t->shape)
    return WEIR_STATUS(INVALID_ARGUMENT, "a DLPack tensor of rank %d without a shape", t->rank);
  *out_dtype = row->dtype;
  return NULL;
}

static bool is_dense(const dlpack_tensor_t* t) {
  int64_t stride = 1;
  for (int i = t->strides ? t->rank : 0; i-- > 0;) {
    if (t->shape[i] != 1 && t->strides[i] != stride) return false;
    stride *= t->shape[i];
  }
  return true;
}

// Copies elements that lie anywhere to |to|, in order.
static void gather(const dlpack_tensor_t* t, const char* from, size_t size, weir_tensor_t* to) {
  int64_t at[WEIR_MAX_RANK] = {0};
  char* out = to->data;
  for (int64_t i = 0; i < to->count; ++i, out += size) {
    memcpy(out, from, size);
    for (int d = t->rank; d-- > 0;) {
      from += t->strides[d] * (int64_t)size;
      if (++at[d] < t->shape[d]) break;
      from -= t->strides[d] * t->shape[d] * (int64_t)size;
      at[d] = 0;
    }
  }
}

// The tensor of |t|; |release| is called with |managed| when its memory is needed no more.
static weir_status_t* import_tensor(const dlpack_tensor_t* t, weir_deallocator_fn_t release,
                                    void* managed, weir_tensor_t** out_tensor) {
  weir_dtype_t dtype = WEIR_DTYPE_INVALID;
  int64_t count = 0;
  weir_status_t* status = check_imported(t, &dtype);
  if (!status) status = weir_shape_count(dtype, t->rank, t->shape, &count);
  if (!status && count && !t->data)
    status = WEIR_STATUS(INVALID_ARGUMENT, "a DLPack tensor of %" PRId64 " elements without data",
                         count);
  char* data = !status && t->data ? (char*)t->data + t->byte_offset : NULL;
  if (!status && (count == 0 || is_dense(t)))
    return weir_tensor_wrap(dtype, t->rank, t->shape, data, (size_t)count * weir_dtype_size(dtype),
                            release, managed, out_tensor);
  if (!status) status = weir_tensor_create(dtype, t->rank, t->shape, out_tensor);
  if (!status) gather(t, data, weir_dtype_size(dtype), *out_tensor);
  release(NULL, 0, managed);
  return status;
}

weir_status_t* weir_tensor_from_dlpack(struct DLManagedTensorVersioned* take_managed,
                                       weir_tensor_t** out_tensor) {
  WEIR_REQUIRE_ARG(take_managed);
  WEIR_REQUIRE_ARG(out_tensor);
  if (take_managed->major > DLPACK_MAJOR) {  // nothing but the deleter is where it is known to be
    weir_status_t* status =
        WEIR_STATUS(UNIMPLEMENTED, "DLPack of version %" PRIu32 ".%" PRIu32 ": up to 1.x is read",
                    take_managed->major, take_managed->minor);
    release_versioned(NULL, 0, take_managed);
    return status;
  }
  return import_tensor(&take_managed->tensor, release_versioned, take_managed, out_tensor);
}

weir_status_t* weir_tensor_from_dlpack_old(struct DLManagedTensor* take_managed,
                                           weir_tensor_t** out_tensor) {
  WEIR_REQUIRE_ARG(take_managed);
  WEIR_REQUIRE_ARG(out_tensor);
  return import_tensor(&take_managed->tensor, release_old, take_managed, out_tensor);
}
