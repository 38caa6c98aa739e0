// tensor.c — Creating, viewing, copying and releasing tensors.
#include "tensor/tensor.h"

#include <inttypes.h>
#include <stdio.h>

#include "weir/argument.h"

// weir_tensor_t.block_class: what the header's block holds and who frees the elements.
enum {
  BLOCK_WHOLE = 0,   // header and elements in one block of |alloc_size| bytes
  BLOCK_HEADER = 1,  // a header alone: a view, wrapped memory, or elements from |allocator|
  BLOCK_LEFT = 2,    // added to one of the above: there is a successor
};

// The table inlines what weir_dtype_size does, for the sake of weir_tensor_create.
static const uint8_t element_sizes[WEIR_DTYPE_COUNT] = {
#define X(name, number, spelling, size) [WEIR_DTYPE_##name] = size,
    WEIR_DTYPE_LIST(X)
#undef X
};

WEIR_INLINE size_t element_size(weir_dtype_t dtype) {
  return (unsigned)dtype < WEIR_DTYPE_COUNT ? element_sizes[dtype] : 0;
}

WEIR_INLINE bool is_plain(weir_dtype_t dtype) {
  return dtype != WEIR_DTYPE_STRING && dtype != WEIR_DTYPE_RESOURCE && dtype != WEIR_DTYPE_VARIANT;
}

// ---- sizes ----

static size_t append_dim(char* buffer, size_t used, int64_t dim, bool is_first) {
  int length = snprintf(buffer + used, WEIR_SHAPE_TEXT_SIZE - used,
                        is_first ? "%" PRId64 : ",%" PRId64, dim);
  return used + (size_t)length;
}

const char* weir_shape_text(int rank, const int64_t* dims, char buffer[WEIR_SHAPE_TEXT_SIZE]) {
  const size_t longest = sizeof(",-9223372036854775808,...]");
  size_t used = 0;
  buffer[used++] = '[';
  for (int i = 0; i < rank; ++i) {
    if (used + longest > WEIR_SHAPE_TEXT_SIZE) {
      memcpy(buffer + used, ",...", sizeof(",..."));
      used += 4;
      break;
    }
    used = append_dim(buffer, used, dims[i], i == 0);
  }
  memcpy(buffer + used, "]", 2);
  return buffer;
}

static weir_status_t* exhausted(weir_dtype_t dtype, int rank, const int64_t* dims) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(RESOURCE_EXHAUSTED, "OOM when allocating tensor with shape%s and type %s",
                     weir_shape_text(rank, dims, text), weir_dtype_name(dtype));
}

// As exhausted, and says how much was asked of whom, where the allocator tells.
static weir_status_t* exhausted_in(weir_allocator_t* allocator, weir_dtype_t dtype, int rank,
                                   const int64_t* dims, int64_t size) {
  if (!allocator->vtable->get_use) return exhausted(dtype, rank, dims);
  weir_allocator_use_t use;
  char text[WEIR_SHAPE_TEXT_SIZE];
  allocator->vtable->get_use(allocator, &use);
  return WEIR_STATUS(RESOURCE_EXHAUSTED,
                     "OOM when allocating tensor with shape%s and type %s on %s: %" PRId64
                     " bytes asked, %" PRId64 " of %" PRId64 " in use",
                     weir_shape_text(rank, dims, text), weir_dtype_name(dtype), use.name, size,
                     use.in_use, use.limit);
}

// Says what is wrong with a shape that count_elements refused.
static weir_status_t* bad_shape(weir_dtype_t dtype, int rank, const int64_t* dims) {
  if (element_size(dtype) == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%d is not the type of a tensor's elements", (int)dtype);
  }
  const char* type_name = weir_dtype_name(dtype);
  if (rank < 0 || rank > WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT, "rank %d of a %s tensor is not in [0, %d]", rank,
                       type_name, WEIR_MAX_RANK);
  }
  char text[WEIR_SHAPE_TEXT_SIZE];
  weir_shape_text(rank, dims, text);
  for (int i = 0; i < rank; ++i) {
    if (dims[i] < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Dimension %" PRId64 " must be >= 0 in shape %s of a %s tensor", dims[i],
                         text, type_name);
    }
  }
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) {
    if (__builtin_mul_overflow(count, dims[i], &count)) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Shape %s of a %s tensor would have more than 2**63 - 1 elements", text,
                         type_name);
    }
  }
  return exhausted(dtype, rank, dims);  // as many bytes as no machine has
}

// False when the type, the rank or a dimension is bad, or count or bytes do not fit 64 bits.
WEIR_INLINE bool count_elements(weir_dtype_t dtype, int rank, const int64_t* dims,
                                int64_t* out_count, int64_t* out_size) {
  size_t size = element_size(dtype);
  if (WEIR_UNLIKELY(size == 0 || (unsigned)rank > WEIR_MAX_RANK)) return false;
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) {
    if (WEIR_UNLIKELY(dims[i] < 0 || __builtin_mul_overflow(count, dims[i], &count))) return false;
  }
  *out_count = count;
  return !__builtin_mul_overflow(count, (int64_t)size, out_size);
}

weir_status_t* weir_shape_count(weir_dtype_t dtype, int rank, const int64_t* dims,
                                int64_t* out_count) {
  int64_t count = 0;
  int64_t size = 0;
  if (!count_elements(dtype, rank, dims, &count, &size)) return bad_shape(dtype, rank, dims);
  *out_count = count;
  return NULL;
}

weir_status_t* weir_shape_check_sizes(int rank, const int64_t* dims) {
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) {
    const int64_t before = count;
    if (dims[i] < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Expected a non-negative size, got %" PRId64, dims[i]);
    }
    if (!__builtin_mul_overflow(before, dims[i], &count)) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Encountered overflow when multiplying %" PRId64 " with %" PRId64, before,
                       dims[i]);
  }
  return NULL;
}

// ---- blocks ----

WEIR_INLINE size_t header_size(int rank) {
  return sizeof(weir_tensor_t) + (size_t)rank * sizeof(int64_t);
}

WEIR_INLINE size_t aligned_header_size(int rank) {
  const size_t mask = WEIR_TENSOR_ALIGNMENT - 1;
  return (header_size(rank) + mask) & ~mask;
}

WEIR_INLINE void header_init(weir_tensor_t* tensor, weir_dtype_t dtype, int rank,
                             const int64_t* dims, int64_t count) {
  weir_ref_init(&tensor->ref);
  tensor->dtype = (uint8_t)dtype;
  tensor->rank = (uint8_t)rank;
  tensor->block_class = BLOCK_HEADER;
  tensor->is_variable = false;
  tensor->count = count;
  tensor->data = NULL;
  tensor->root = NULL;
  tensor->allocator = NULL;
  tensor->deallocator = NULL;
  tensor->deallocator_arg = NULL;
  tensor->alloc_size = 0;
  for (int i = 0; i < rank; ++i) tensor->dims[i] = dims[i];
}

WEIR_INLINE void* host_alloc(size_t size) {
  weir_allocator_t* host = weir_host_allocator();
  return host->vtable->alloc(host, size, WEIR_TENSOR_ALIGNMENT);
}

WEIR_INLINE void host_free(void* pointer, size_t size) {
  weir_allocator_t* host = weir_host_allocator();
  host->vtable->free(host, pointer, size);
}

// A header without elements; NULL when out of memory.
static weir_tensor_t* header_create(weir_dtype_t dtype, int rank, const int64_t* dims,
                                    int64_t count) {
  weir_tensor_t* tensor = host_alloc(header_size(rank));
  if (tensor) header_init(tensor, dtype, rank, dims, count);
  return tensor;
}

// ---- creation ----

weir_status_t* weir_tensor_create(weir_dtype_t dtype, int rank, const int64_t* dims,
                                  weir_tensor_t** out_tensor) {
  if (rank > 0) WEIR_REQUIRE_ARG(dims);
  WEIR_REQUIRE_ARG(out_tensor);
  int64_t count = 0;
  int64_t size = 0;
  if (WEIR_UNLIKELY(!count_elements(dtype, rank, dims, &count, &size))) {
    return bad_shape(dtype, rank, dims);
  }
  size_t offset = aligned_header_size(rank);
  size_t block_size = offset + (size_t)size;  // fits: size is at most INT64_MAX
  weir_tensor_t* tensor = host_alloc(block_size);
  if (WEIR_UNLIKELY(!tensor)) return exhausted(dtype, rank, dims);
  header_init(tensor, dtype, rank, dims, count);
  tensor->block_class = BLOCK_WHOLE;
  tensor->alloc_size = block_size;
  tensor->data = (char*)tensor + offset;
  if (WEIR_UNLIKELY(!is_plain(dtype))) weir_elements_init(dtype, tensor->data, count);
  *out_tensor = tensor;
  return NULL;
}

// A header here, elements from |allocator|. Not inline: it would crowd the path of the host's.
static __attribute__((noinline)) weir_status_t* create_apart(weir_allocator_t* allocator,
                                                             weir_dtype_t dtype, int rank,
                                                             const int64_t* dims,
                                                             weir_tensor_t** out_tensor) {
  int64_t count = 0;
  int64_t size = 0;
  if (!count_elements(dtype, rank, dims, &count, &size)) return bad_shape(dtype, rank, dims);
  if (!weir_allocator_is_host(allocator) && !is_plain(dtype)) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "a %s tensor of shape %s cannot be in device memory",
                       weir_dtype_name(dtype), weir_shape_text(rank, dims, text));
  }
  weir_tensor_t* tensor = header_create(dtype, rank, dims, count);
  if (!tensor) return exhausted(dtype, rank, dims);
  tensor->allocator = allocator;
  if (size > 0) {
    tensor->data = allocator->vtable->alloc(allocator, (size_t)size, WEIR_TENSOR_ALIGNMENT);
    if (!tensor->data) {
      host_free(tensor, header_size(rank));
      return exhausted_in(allocator, dtype, rank, dims, size);
    }
    tensor->alloc_size = (size_t)size;
    if (!is_plain(dtype)) weir_elements_init(dtype, tensor->data, count);
  }
  *out_tensor = tensor;
  return NULL;
}

weir_status_t* weir_tensor_create_in(weir_allocator_t* allocator, weir_dtype_t dtype, int rank,
                                     const int64_t* dims, weir_tensor_t** out_tensor) {
  if (WEIR_LIKELY(!allocator || allocator == weir_host_allocator()))
    return weir_tensor_create(dtype, rank, dims, out_tensor);
  return create_apart(allocator, dtype, rank, dims, out_tensor);
}

weir_status_t* weir_tensor_create_from(weir_dtype_t dtype, int rank, const int64_t* dims,
                                       const void* data, weir_tensor_t** out_tensor) {
  WEIR_REQUIRE_ARG(out_tensor);
  if (!is_plain(dtype)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "elements of type %s cannot be created from bytes",
                       weir_dtype_name(dtype));
  }
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_tensor_create(dtype, rank, dims, &tensor));
  size_t size = weir_tensor_byte_size(tensor);
  if (size && !data) {
    weir_tensor_release(tensor);
    WEIR_REQUIRE_ARG(data);
  }
  if (size) memcpy(tensor->data, data, size);
  *out_tensor = tensor;
  return NULL;
}

// What weir_tensor_wrap must know before it takes over the memory.
static weir_status_t* check_wrapped(weir_dtype_t dtype, int rank, const int64_t* dims,
                                    const void* data, size_t size) {
  int64_t count = 0;
  int64_t needed = 0;
  if (!count_elements(dtype, rank, dims, &count, &needed)) return bad_shape(dtype, rank, dims);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (size < (size_t)needed || (needed > 0 && !data)) {
    return WEIR_STATUS(
        INVALID_ARGUMENT, "%zu bytes given for a %s tensor of shape %s, which needs %" PRId64,
        data ? size : 0, weir_dtype_name(dtype), weir_shape_text(rank, dims, text), needed);
  }
  // Strings and handles are structs that are written through, not bytes that are loaded.
  if (!is_plain(dtype) && (uintptr_t)data % _Alignof(weir_string_t) != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "memory of a %s tensor of shape %s is not aligned",
                       weir_dtype_name(dtype), weir_shape_text(rank, dims, text));
  }
  return NULL;
}

// Memory of the caller always has a deallocator: by it, weir_tensor_is_sole knows not to write
// there.
static void keep_memory(void* data, size_t size, void* arg) {
  (void)data;
  (void)size;
  (void)arg;
}

weir_status_t* weir_tensor_wrap(weir_dtype_t dtype, int rank, const int64_t* dims, void* data,
                                size_t size, weir_deallocator_fn_t deallocator, void* arg,
                                weir_tensor_t** out_tensor) {
  weir_tensor_t* tensor = NULL;
  int64_t count = 0;
  weir_status_t* status = out_tensor && (dims || rank <= 0)
                              ? check_wrapped(dtype, rank, dims, data, size)
                              : WEIR_STATUS(INVALID_ARGUMENT, "weir_tensor_wrap: %s is NULL",
                                            out_tensor ? "dims" : "out_tensor");
  if (!status) status = weir_shape_count(dtype, rank, dims, &count);
  if (!status) {
    tensor = header_create(dtype, rank, dims, count);
    if (!tensor) status = exhausted(dtype, rank, dims);
  }
  if (status) {
    if (deallocator) deallocator(data, size, arg);
    return status;
  }
  tensor->data = data;
  tensor->alloc_size = size;
  tensor->deallocator = deallocator ? deallocator : keep_memory;
  tensor->deallocator_arg = arg;
  *out_tensor = tensor;
  return NULL;
}

weir_status_t* weir_tensor_create_strings(int rank, const int64_t* dims, const char* const* strings,
                                          const size_t* sizes, weir_tensor_t** out_tensor) {
  WEIR_REQUIRE_ARG(out_tensor);
  weir_tensor_t* tensor = NULL;
  int64_t count = 0;
  if (rank > 0) WEIR_REQUIRE_ARG(dims);
  WEIR_TRY(weir_shape_count(WEIR_DTYPE_STRING, rank, dims, &count));
  if (count > 0) WEIR_REQUIRE_ARG(strings);
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_STRING, rank, dims, &tensor));
  weir_string_t* elements = tensor->data;
  for (int64_t i = 0; i < tensor->count; ++i) {
    size_t size = sizes ? sizes[i] : strings[i] ? strlen(strings[i]) : 0;
    weir_status_t* status = weir_string_set(&elements[i], strings[i], size);
    if (status) {
      weir_tensor_release(tensor);
      return status;
    }
  }
  *out_tensor = tensor;
  return NULL;
}

// ---- views ----

// Creates a header on |tensor|'s memory from |offset| bytes on. The arguments are checked.
static weir_status_t* view_create(weir_tensor_t* tensor, weir_dtype_t dtype, int rank,
                                  const int64_t* dims, int64_t count, size_t offset,
                                  weir_tensor_t** out_view) {
  weir_tensor_t* view = header_create(dtype, rank, dims, count);
  if (!view) return exhausted(dtype, rank, dims);
  view->data = tensor->data ? (char*)tensor->data + offset : NULL;
  view->root = weir_tensor_retain_inline(tensor->root ? tensor->root : tensor);
  *out_view = view;
  return NULL;
}

weir_status_t* weir_tensor_reshape(weir_tensor_t* tensor, int rank, const int64_t* dims,
                                   weir_tensor_t** out_view) {
  if (rank > 0) WEIR_REQUIRE_ARG(dims);
  WEIR_REQUIRE_ARG(tensor);
  WEIR_REQUIRE_ARG(out_view);
  weir_dtype_t dtype = weir_tensor_type(tensor);
  int64_t count = 0;
  WEIR_TRY(weir_shape_count(dtype, rank, dims, &count));
  if (count != tensor->count) {
    char from[WEIR_SHAPE_TEXT_SIZE];
    char to[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "a %s tensor of shape %s with %" PRId64
                       " elements cannot be reshaped to %s with %" PRId64,
                       weir_dtype_name(dtype), weir_tensor_shape_text(tensor, from), tensor->count,
                       weir_shape_text(rank, dims, to), count);
  }
  return view_create(tensor, dtype, rank, dims, count, 0, out_view);
}

weir_status_t* weir_tensor_view_as(weir_tensor_t* tensor, weir_dtype_t dtype, int rank,
                                   const int64_t* dims, weir_tensor_t** out_view) {
  weir_dtype_t old_dtype = weir_tensor_type(tensor);
  int64_t count = 0;
  WEIR_TRY(weir_shape_count(dtype, rank, dims, &count));
  bool is_same_kind = dtype == old_dtype || (is_plain(dtype) && is_plain(old_dtype));
  if (!is_same_kind || (size_t)count * element_size(dtype) != weir_tensor_byte_size(tensor)) {
    char from[WEIR_SHAPE_TEXT_SIZE];
    char to[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "the memory of a %s tensor of shape %s cannot be seen as %s of shape %s",
                       weir_dtype_name(old_dtype), weir_tensor_shape_text(tensor, from),
                       weir_dtype_name(dtype), weir_shape_text(rank, dims, to));
  }
  return view_create(tensor, dtype, rank, dims, count, 0, out_view);
}

weir_status_t* weir_tensor_slice(weir_tensor_t* tensor, int64_t begin, int64_t end,
                                 weir_tensor_t** out_view) {
  WEIR_REQUIRE_ARG(tensor);
  WEIR_REQUIRE_ARG(out_view);
  weir_dtype_t dtype = weir_tensor_type(tensor);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (tensor->rank == 0 || begin < 0 || end < begin || end > tensor->dims[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "rows [%" PRId64 ", %" PRId64 ") are not within a %s tensor of shape %s",
                       begin, end, weir_dtype_name(dtype), weir_tensor_shape_text(tensor, text));
  }
  int64_t dims[WEIR_MAX_RANK + 1];
  memcpy(dims, tensor->dims, sizeof(int64_t) * tensor->rank);
  dims[0] = end - begin;
  int64_t row_count = tensor->count ? tensor->count / tensor->dims[0] : 0;
  size_t offset = (size_t)(begin * row_count) * element_size(dtype);
  return view_create(tensor, dtype, tensor->rank, dims, row_count * dims[0], offset, out_view);
}

weir_status_t* weir_tensor_copy(const weir_tensor_t* tensor, weir_tensor_t** out_copy) {
  weir_dtype_t dtype = weir_tensor_type(tensor);
  const weir_tensor_t* owner = tensor->root ? tensor->root : tensor;
  weir_tensor_t* copy = NULL;
  WEIR_TRY(weir_tensor_create_in(owner->allocator, dtype, tensor->rank, tensor->dims, &copy));
  weir_allocator_t* allocator = owner->allocator;
  weir_status_t* status = allocator && allocator->vtable->copy && tensor->count
                              ? allocator->vtable->copy(allocator, copy->data, tensor->data,
                                                        weir_tensor_byte_size(tensor))
                              : weir_elements_copy(dtype, copy->data, tensor->data, tensor->count);
  if (status) {
    weir_tensor_release(copy);
    return status;
  }
  *out_copy = copy;
  return NULL;
}

// ---- tensors that move ----

void weir_tensor_leave(weir_tensor_t* tensor, weir_successor_t* take_successor) {
  WEIR_CHECK(!tensor->root && !tensor->deallocator && !(tensor->block_class & BLOCK_LEFT));
  tensor->block_class |= BLOCK_LEFT;  // read by whoever drops the last reference
  // Pairs with the acquire in weir_tensor_is_outdated.
  atomic_store_explicit(&tensor->successor, take_successor, memory_order_release);
}

weir_status_t* weir_tensor_move(weir_tensor_t** tensor, weir_tensor_t* memory) {
  weir_tensor_t* old = *tensor;
  weir_tensor_t* root = old->root ? old->root : old;
  size_t offset = old->data ? (size_t)((char*)old->data - (char*)root->data) : 0;
  weir_tensor_t* view = NULL;
  WEIR_TRY(
      view_create(memory, weir_tensor_type(old), old->rank, old->dims, old->count, offset, &view));
  weir_tensor_release(old);
  *tensor = view;
  return NULL;
}

weir_status_t* weir_tensor_renew(weir_tensor_t** tensor) {
  weir_tensor_t* old = *tensor;
  if (!weir_tensor_is_outdated(old)) return NULL;
  weir_tensor_t* root = old->root ? old->root : old;
  weir_successor_t* successor = atomic_load_explicit(&root->successor, memory_order_acquire);
  weir_tensor_t* newest = successor->newest(successor);
  weir_status_t* status = weir_tensor_move(tensor, newest);
  weir_tensor_release(newest);
  return status;
}

static void release_frozen(void* data, size_t size, void* arg) {
  (void)data;
  (void)size;
  weir_tensor_release(arg);
}

weir_status_t* weir_tensor_freeze(weir_tensor_t** tensor) {
  weir_tensor_t* old = *tensor;
  weir_tensor_t* frozen = header_create(weir_tensor_type(old), old->rank, old->dims, old->count);
  if (!frozen) return exhausted(weir_tensor_type(old), old->rank, old->dims);
  frozen->data = old->data;
  frozen->alloc_size = weir_tensor_byte_size(old);
  frozen->allocator = (old->root ? old->root : old)->allocator;  // says which memory it is
  frozen->deallocator = release_frozen;  // memory with a deallocator is never outdated
  frozen->deallocator_arg = old;
  *tensor = frozen;
  return NULL;
}

// ---- lifetime ----

weir_tensor_t* weir_tensor_retain(weir_tensor_t* tensor) {
  return tensor ? weir_tensor_retain_inline(tensor) : NULL;
}

static void free_header_block(weir_tensor_t* tensor) {
  if (tensor->root) {
    weir_tensor_release(tensor->root);
  } else if (tensor->deallocator) {
    tensor->deallocator(tensor->data, tensor->alloc_size, tensor->deallocator_arg);
  } else if (tensor->allocator && tensor->data) {
    weir_allocator_t* allocator = tensor->allocator;
    weir_elements_destroy(weir_tensor_type(tensor), tensor->data, tensor->count);
    allocator->vtable->free(allocator, tensor->data, tensor->alloc_size);
  }
  host_free(tensor, header_size(tensor->rank));
}

// What a tensor needs that is not just one block. False when its one block is still to be freed.
static __attribute__((noinline)) bool free_unusual(weir_tensor_t* tensor) {
  if (tensor->block_class & BLOCK_LEFT) {
    // Relaxed: nobody else holds the tensor.
    weir_successor_t* successor = atomic_load_explicit(&tensor->successor, memory_order_relaxed);
    successor->destroy(successor);
    tensor->block_class &= (uint8_t)~BLOCK_LEFT;
  }
  if (tensor->block_class == BLOCK_WHOLE) return false;
  free_header_block(tensor);
  return true;
}

void weir_tensor_release(weir_tensor_t* tensor) {
  if (!tensor || !weir_ref_dec(&tensor->ref)) return;
  if (WEIR_UNLIKELY(tensor->block_class != BLOCK_WHOLE) && free_unusual(tensor)) return;
  weir_dtype_t dtype = weir_tensor_type(tensor);
  if (WEIR_UNLIKELY(!is_plain(dtype))) weir_elements_destroy(dtype, tensor->data, tensor->count);
  host_free(tensor, tensor->alloc_size);
}

// ---- access ----

weir_dtype_t weir_tensor_dtype(const weir_tensor_t* tensor) {
  WEIR_ASSERT_ARG(tensor);
  return weir_tensor_type(tensor);
}

int weir_tensor_rank(const weir_tensor_t* tensor) {
  WEIR_ASSERT_ARG(tensor);
  return tensor->rank;
}

int64_t weir_tensor_dim(const weir_tensor_t* tensor, int index) {
  WEIR_ASSERT_ARG(tensor);
  return index >= 0 && index < tensor->rank ? tensor->dims[index] : -1;
}

const int64_t* weir_tensor_dims(const weir_tensor_t* tensor) {
  WEIR_ASSERT_ARG(tensor);
  return tensor->dims;
}

int64_t weir_tensor_count(const weir_tensor_t* tensor) {
  WEIR_ASSERT_ARG(tensor);
  return tensor->count;
}

size_t weir_tensor_byte_size(const weir_tensor_t* tensor) {
  WEIR_ASSERT_ARG(tensor);
  return (size_t)tensor->count * element_size(weir_tensor_type(tensor));
}

bool weir_tensor_is_writable(weir_tensor_t* tensor) {
  WEIR_ASSERT_ARG(tensor);
  return weir_tensor_is_sole(tensor);
}

void* weir_tensor_data(const weir_tensor_t* tensor) {
  WEIR_ASSERT_ARG(tensor);
  return tensor->data;
}

// NULL when |tensor| has no string |index|.
static weir_string_t* string_at(const weir_tensor_t* tensor, int64_t index) {
  bool is_there = tensor->dtype == WEIR_DTYPE_STRING && index >= 0 && index < tensor->count;
  return is_there ? WEIR_TENSOR_DATA(tensor, weir_string_t) + index : NULL;
}

const char* weir_tensor_string(const weir_tensor_t* tensor, int64_t index, size_t* out_size) {
  WEIR_ASSERT_ARG(tensor);
  const weir_string_t* element = string_at(tensor, index);
  weir_view_t text = element ? weir_string_view(element) : weir_view(NULL, 0);
  if (out_size) *out_size = text.size;
  return text.data;
}

weir_status_t* weir_tensor_set_string(weir_tensor_t* tensor, int64_t index, const void* data,
                                      size_t size) {
  WEIR_REQUIRE_ARG(tensor);
  weir_string_t* element = string_at(tensor, index);
  if (element) return weir_string_set(element, data, size);
  char text[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "a %s tensor of shape %s has no string %" PRId64,
                     weir_dtype_name(weir_tensor_type(tensor)),
                     weir_tensor_shape_text(tensor, text), index);
}
