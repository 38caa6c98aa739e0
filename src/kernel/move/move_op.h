// move_op.h — The moves of move.h for kernels, which compute on a CPU or on a GPU: one function
// serves both. Rows of a GPU have weir_move_state_t as state, all others none: that is how it is
// told where elements are.
#ifndef WEIR_KERNEL_MOVE_MOVE_OP_H_
#define WEIR_KERNEL_MOVE_MOVE_OP_H_

#include "device/cuda/cuda.h"
#include "kernel/move/move.h"
#include "op/kernel.h"

// Elements of 1, 2, 4, 8 and 16 bytes.
#define WEIR_MOVE_SIZES 5

// Immutable after init. Functions are there from the size of the elements on.
typedef struct weir_move_state_t {
  weir_cuda_function_t box[WEIR_MOVE_SIZES];
  weir_cuda_function_t tiles[WEIR_MOVE_SIZES];
  weir_cuda_function_t parts[WEIR_MOVE_SIZES];
  weir_cuda_function_t border[WEIR_MOVE_SIZES];
  weir_cuda_function_t indexed[WEIR_MOVE_SIZES];  // of the family's own
} weir_move_state_t;

// The init of a GPU's rows. |name| of the others: the functions of indexed.cu that they call, and
// the input with the indices.
weir_status_t* weir_move_gpu_init(const weir_kernel_init_t* init, void* state);
WEIR_MUST_USE weir_status_t* weir_move_indexed_gpu_init(const weir_kernel_init_t* init, void* state,
                                                        const char* name, int indices);

// What a GPU moves. int32 is the type of shapes, sizes and axes, which the host needs to know:
// where TensorFlow keeps it in host memory on GPUs, so do we.
#define WEIR_MOVED_TYPES                                                                     \
  "bfloat16, half, float, double, int8, int16, int64, uint8, uint16, uint32, uint64, bool, " \
  "complex64, complex128"
#define WEIR_MOVE_GPU_ROW(types_, init_, ...)                                                 \
  {                                                                                           \
    WEIR_DEVICE_GPU, .types = types_, .init = init_, .state_size = sizeof(weir_move_state_t), \
                     __VA_ARGS__                                                              \
  }
// The kernels of an op: one function, for elements of type attribute |attr|.
#define WEIR_MOVE_KERNELS(attr, ...)                                                         \
  ((const weir_kernel_def_t[]){                                                              \
      {WEIR_DEVICE_CPU, __VA_ARGS__},                                                        \
      WEIR_MOVE_GPU_ROW(attr ": int32, " WEIR_MOVED_TYPES, weir_move_gpu_init, __VA_ARGS__), \
      {0}})
// The same with int32 in host memory: |in| and |out| are the names of all inputs and outputs.
#define WEIR_MOVE_HOST_KERNELS(attr, fn, in, out, ...)                                           \
  ((const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, .compute = fn, __VA_ARGS__},                    \
                               WEIR_MOVE_GPU_ROW(attr ": " WEIR_MOVED_TYPES, weir_move_gpu_init, \
                                                 .compute = fn, __VA_ARGS__),                    \
                               {WEIR_DEVICE_GPU, .types = attr ": int32", .compute = fn,         \
                                .host_inputs = in, .host_outputs = out},                         \
                               {0}})

// ---- move.h's functions ----
WEIR_MUST_USE weir_status_t* weir_kernel_move_box(const weir_kernel_ctx_t* ctx, weir_dtype_t dtype,
                                                  int rank, weir_move_dim_t* dims, const void* src,
                                                  void* dst);
WEIR_MUST_USE weir_status_t* weir_kernel_move_copy(const weir_kernel_ctx_t* ctx, weir_dtype_t dtype,
                                                   const void* src, void* dst, int64_t count);
WEIR_MUST_USE weir_status_t* weir_kernel_move_zero(const weir_kernel_ctx_t* ctx, weir_dtype_t dtype,
                                                   void* dst, int64_t count);
// A matrix whose columns are, one after the other, those of matrices of as many rows: it is made of
// them, or cut into them. Small ones wait until there are enough for a launch, or none comes any
// more.
#define WEIR_MOVE_MAX_PARTS 64
typedef struct weir_kernel_parts_t {
  const weir_kernel_ctx_t* ctx;
  weir_dtype_t dtype;
  bool is_cut;
  int64_t rows, columns;  // of the whole
  uintptr_t whole;        // at the first column of those that wait
  int count;              // of parts that wait, which the rest is about
  int64_t waiting;        // columns
  uintptr_t at[WEIR_MOVE_MAX_PARTS];
  int64_t widths[WEIR_MOVE_MAX_PARTS];
} weir_kernel_parts_t;
// The next part, of |width| columns: that of a whole that is written, and of one that is cut.
WEIR_MUST_USE weir_status_t* weir_kernel_join_part(weir_kernel_parts_t* parts, const void* part,
                                                   int64_t width);
WEIR_MUST_USE weir_status_t* weir_kernel_cut_part(weir_kernel_parts_t* parts, void* part,
                                                  int64_t width);
// Moves those that wait.
WEIR_MUST_USE weir_status_t* weir_kernel_finish_parts(weir_kernel_parts_t* parts);
// On a GPU rows whose index is out of range are zero.
WEIR_MUST_USE weir_status_t* weir_kernel_move_gather(const weir_kernel_ctx_t* ctx,
                                                     weir_dtype_t dtype,
                                                     const weir_move_gather_t* gather,
                                                     const void* src, const weir_tensor_t* indices,
                                                     void* dst, int64_t* out_bad);

// ---- of GPUs only ----
WEIR_INLINE const weir_move_state_t* weir_move_gpu(const weir_kernel_ctx_t* ctx) {
  return ctx->state;
}
// Copies |in| into |out|, which is larger by a border that begins |before| in each dimension, and
// fills that with |value| (of the host), or with the mirror image of |in|, whose edge comes twice
// unless |offset| is 1.
typedef struct weir_move_border_t {
  int64_t before[WEIR_MAX_RANK];
  const void* value;  // NULL: a mirror image
  int64_t offset;
} weir_move_border_t;
WEIR_MUST_USE weir_status_t* weir_gpu_move_border(const weir_kernel_ctx_t* ctx,
                                                  const weir_tensor_t* in,
                                                  const weir_move_border_t* border,
                                                  const weir_tensor_t* out);
// Slices of |inner| elements, each picked by a row of |depth| indices into dimensions |dims|.
typedef struct weir_move_places_t {
  const weir_tensor_t* indices;
  int64_t count;
  int depth;
  const int64_t* dims;
  int64_t inner;
} weir_move_places_t;
// The same as GPUs have it. UNIMPLEMENTED for rows of more indices than that.
#define WEIR_GPU_MAX_DEPTH 8
typedef struct weir_gpu_places_t {
  int depth;
  int64_t count, inner;
  int64_t dims[WEIR_GPU_MAX_DEPTH];
} weir_gpu_places_t;
WEIR_MUST_USE weir_status_t* weir_gpu_places(const weir_move_places_t* places,
                                             weir_gpu_places_t* out_places);
WEIR_MUST_USE weir_status_t* weir_gpu_move_slices(const weir_kernel_ctx_t* ctx, weir_dtype_t dtype,
                                                  const weir_move_places_t* places, const void* src,
                                                  void* dst);
// Dimensions of |batch| entries and of |places| in a sequence, each |..._stride| elements apart: of
// each entry the first places, as many as |lengths| say, are reversed, at most all.
typedef struct weir_move_sequences_t {
  int64_t count, batch, batch_stride, places, place_stride;
} weir_move_sequences_t;
WEIR_MUST_USE weir_status_t* weir_gpu_move_sequences(const weir_kernel_ctx_t* ctx,
                                                     weir_dtype_t dtype,
                                                     const weir_move_sequences_t* sequences,
                                                     const void* src, const weir_tensor_t* lengths,
                                                     void* dst);

#endif  // WEIR_KERNEL_MOVE_MOVE_OP_H_
