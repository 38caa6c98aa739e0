// cuda_nccl.h — Collectives between GPUs of this process, by NCCL, which is opened at run time.
// Thread-safe.
//
// NCCL's calls of one collective wait for each other on the GPUs. So what one GPU is told first
// must be what all are told first, or they wait for ever. Here one call brings what every GPU of
// the collective has to do; it is handed to NCCL as a whole, and one such call at a time, whoever
// makes it. There is no order of threads or of nodes that could differ between two GPUs, and no
// collective of which some GPUs never hear, whatever becomes of the step that asked for it.
#ifndef WEIR_DEVICE_CUDA_NCCL_H_
#define WEIR_DEVICE_CUDA_NCCL_H_

#include "device/cuda/cuda.h"
#include "device/span.h"

typedef void* nccl_comm_t;

// FUNCTION(type, name, symbol, arguments); those that return an int: 0 is success.
#define WEIR_NCCL_FUNCTIONS(FUNCTION)                                                             \
  FUNCTION(const char*, error_text, ncclGetErrorString, (int result))                             \
  FUNCTION(int, version, ncclGetVersion, (int* out_version))                                      \
  FUNCTION(int, comm_create, ncclCommInitAll,                                                     \
           (nccl_comm_t * out_comms, int count, const int* devices))                              \
  FUNCTION(int, comm_destroy, ncclCommDestroy, (nccl_comm_t comm))                                \
  FUNCTION(int, comm_abort, ncclCommAbort, (nccl_comm_t comm))                                    \
  FUNCTION(int, comm_error, ncclCommGetAsyncError, (nccl_comm_t comm, int* out_error))            \
  FUNCTION(int, group_start, ncclGroupStart, (void))                                              \
  FUNCTION(int, group_end, ncclGroupEnd, (void))                                                  \
  FUNCTION(int, all_reduce, ncclAllReduce,                                                        \
           (const void* from, void* to, size_t count, int type, int merge, nccl_comm_t comm,      \
            cu_stream_t stream))                                                                  \
  FUNCTION(int, reduce, ncclReduce,                                                               \
           (const void* from, void* to, size_t count, int type, int merge, int root,              \
            nccl_comm_t comm, cu_stream_t stream))                                                \
  FUNCTION(int, reduce_scatter, ncclReduceScatter,                                                \
           (const void* from, void* to, size_t count, int type, int merge, nccl_comm_t comm,      \
            cu_stream_t stream))                                                                  \
  FUNCTION(int, broadcast, ncclBroadcast,                                                         \
           (const void* from, void* to, size_t count, int type, int root, nccl_comm_t comm,       \
            cu_stream_t stream))                                                                  \
  FUNCTION(                                                                                       \
      int, all_gather, ncclAllGather,                                                             \
      (const void* from, void* to, size_t count, int type, nccl_comm_t comm, cu_stream_t stream)) \
  FUNCTION(                                                                                       \
      int, send, ncclSend,                                                                        \
      (const void* from, size_t count, int type, int peer, nccl_comm_t comm, cu_stream_t stream)) \
  FUNCTION(int, receive, ncclRecv,                                                                \
           (void* to, size_t count, int type, int peer, nccl_comm_t comm, cu_stream_t stream))

typedef struct nccl_t {
#define WEIR_NCCL_FIELD(type, name, symbol, arguments) type(*name) arguments;
  WEIR_NCCL_FUNCTIONS(WEIR_NCCL_FIELD)
#undef WEIR_NCCL_FIELD
} nccl_t;

// NCCL's numbers.
typedef enum weir_nccl_merge_t {
  WEIR_NCCL_SUM = 0,
  WEIR_NCCL_PROD = 1,
  WEIR_NCCL_MAX = 2,
  WEIR_NCCL_MIN = 3,
  WEIR_NCCL_MEAN = 4,  // of floats
} weir_nccl_merge_t;

typedef enum weir_nccl_kind_t {
  WEIR_NCCL_ALL_REDUCE,      // all get the merged elements
  WEIR_NCCL_REDUCE,          // the root does
  WEIR_NCCL_REDUCE_SCATTER,  // each gets its part of them
  WEIR_NCCL_BROADCAST,       // all get the root's
  WEIR_NCCL_ALL_GATHER,      // all get all
  WEIR_NCCL_ALL_TO_ALL,      // each gets its part of everyone's
} weir_nccl_kind_t;

// What one GPU has to do with it.
typedef struct weir_nccl_rank_t {
  weir_device_t* device;     // each is in a call once
  const void* from;          // in its memory; NULL: it brings nothing
  void* to;                  // likewise; NULL: it gets nothing
  weir_stream_span_t* span;  // of whoever is to be shown for it in traces; NULL: nobody
} weir_nccl_rank_t;

typedef struct weir_nccl_call_t {
  weir_nccl_kind_t kind;
  weir_nccl_merge_t merge;  // of reductions
  weir_dtype_t dtype;
  int64_t count;  // of elements that each brings, at least one
  int root;
  int rank_count;
  const weir_nccl_rank_t* ranks;
} weir_nccl_call_t;

// Whether NCCL is there; UNAVAILABLE says what is not.
WEIR_MUST_USE weir_status_t* weir_nccl_check(void);
// Whether it has the type, and merges it so.
bool weir_nccl_has(weir_dtype_t dtype, weir_nccl_merge_t merge);
// Puts the collective into the compute streams of all its GPUs, and returns: it is over when they
// are. INTERNAL where NCCL fails, in its words. Nothing of it is left in the streams then; the next
// call begins anew. INVALID_ARGUMENT for a GPU that is named twice.
WEIR_MUST_USE weir_status_t* weir_nccl_run(const weir_nccl_call_t* call);

// Answers with |nccl| from now on; NULL: with the real one. For tests, when nothing is under way.
void weir_nccl_replace(const nccl_t* nccl);
extern const nccl_t weir_nccl_none;  // stands for a machine without it

#endif  // WEIR_DEVICE_CUDA_NCCL_H_
