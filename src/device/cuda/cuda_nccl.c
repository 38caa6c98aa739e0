// cuda_nccl.c — Opening NCCL, its communicators, and calls that bring the work of all GPUs at once.
#include "device/cuda/cuda_nccl.h"

#include <pthread.h>

// ---- the library ----

static nccl_t library;
static weir_status_t* reason;  // why there is none; for the life of the process
static const nccl_t* replacement;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_once(void) {
  static const char* const sonames[] = {"libnccl.so.2", NULL};
#define NCCL_SYMBOL(type, name, symbol, arguments) #symbol,
  static const char* const symbols[] = {WEIR_NCCL_FUNCTIONS(NCCL_SYMBOL)};
#undef NCCL_SYMBOL
  reason = weir_cuda_open(sonames, symbols, WEIR_COUNT_OF(symbols), &library);
}

const nccl_t weir_nccl_none = {0};

static weir_status_t* find_nccl(const nccl_t** out_nccl) {
  if (!replacement) {
    pthread_once(&once, open_once);
    if (reason) return weir_status_copy(reason);
  }
  if (replacement == &weir_nccl_none)
    return WEIR_STATUS(UNAVAILABLE, "libnccl.so.2 cannot be opened");
  *out_nccl = replacement ? replacement : &library;
  return NULL;
}

weir_status_t* weir_nccl_check(void) {
  const nccl_t* nccl = NULL;
  return find_nccl(&nccl);
}

static weir_status_t* check(const nccl_t* nccl, int result, const char* doing) {
  if (WEIR_LIKELY(result == 0)) return NULL;
  return WEIR_STATUS(INTERNAL, "NCCL: %s: %s", doing, nccl->error_text(result));
}

// NCCL's number of a type; -1: it has none.
static int type_of(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_BOOL:
    case WEIR_DTYPE_UINT8: return 1;
    case WEIR_DTYPE_INT32: return 2;
    case WEIR_DTYPE_INT64: return 4;
    case WEIR_DTYPE_HALF: return 6;
    case WEIR_DTYPE_FLOAT: return 7;
    case WEIR_DTYPE_DOUBLE: return 8;
    case WEIR_DTYPE_BFLOAT16: return 9;
    default: return -1;
  }
}

bool weir_nccl_has(weir_dtype_t dtype, weir_nccl_merge_t merge) {
  enum { FIRST_FLOAT = 6, FIRST_WITH_MEAN = 21000 };  // 2.10.0
  const nccl_t* nccl = NULL;
  int version = 0;
  if (type_of(dtype) < 0) return false;
  if (merge != WEIR_NCCL_MEAN) return true;
  weir_status_t* status = find_nccl(&nccl);
  bool is_known = !status && nccl->version(&version) == 0;
  weir_status_destroy(status);
  return is_known && version >= FIRST_WITH_MEAN && type_of(dtype) >= FIRST_FLOAT;
}

// ---- communicators ----

// One for each list of GPUs that ever met, in the order of ranks. They stay, as contexts do: the
// next session wants them soon, and sessions at once on the same GPUs share them, so that NCCL puts
// what they ask for into one order.
typedef struct group_t {
  struct group_t* next;
  nccl_comm_t* comms;
  int count;
  int devices[];  // the driver's numbers
} group_t;

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;  // held by one call at a time
static group_t* groups;                                 // guarded by mu

static void group_free(group_t* group) {
  weir_free(group->comms);
  weir_free(group);
}

// Ends what is under way on its GPUs, too: nobody is left waiting for one that never comes.
static void group_abort(const nccl_t* nccl, group_t* group) {
  group_t** at = &groups;
  while (*at != group) at = &(*at)->next;
  *at = group->next;
  for (int i = 0; i < group->count; ++i) (void)nccl->comm_abort(group->comms[i]);
  group_free(group);
}

static bool is_of(const group_t* group, const weir_nccl_call_t* call) {
  bool is_same = group->count == call->rank_count;
  for (int i = 0; i < group->count && is_same; ++i)
    is_same = group->devices[i] == weir_cuda_core(call->ranks[i].device)->device;
  return is_same;
}

static weir_status_t* check_devices(const weir_nccl_call_t* call) {
  for (int i = 1; i < call->rank_count; ++i) {
    const weir_device_t* device = call->ranks[i].device;
    for (int j = 0; j < i; ++j) {
      if (weir_cuda_core(call->ranks[j].device)->device != weir_cuda_core(device)->device) continue;
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "NCCL: %s is in the collective twice: each of its %d members must be on a "
                         "GPU of its own",
                         device->name, call->rank_count);
    }
  }
  return NULL;
}

static weir_status_t* group_create(const nccl_t* nccl, const weir_nccl_call_t* call,
                                   group_t** out_group) {
  size_t count = (size_t)call->rank_count;
  WEIR_TRY(check_devices(call));
  group_t* group = weir_calloc(1, sizeof(*group) + count * sizeof(*group->devices));
  if (!group) return weir_out_of_memory();
  group->count = call->rank_count;
  for (size_t i = 0; i < count; ++i)
    group->devices[i] = weir_cuda_core(call->ranks[i].device)->device;
  group->comms = weir_calloc(count, sizeof(*group->comms));
  weir_status_t* status = group->comms ? NULL : weir_out_of_memory();
  if (!status)
    status = check(nccl, nccl->comm_create(group->comms, group->count, group->devices),
                   "making a communicator");
  if (status) {
    group_free(group);
    return status;
  }
  group->next = groups;
  *out_group = groups = group;
  return NULL;
}

// Whether a GPU has failed in what it was told before.
static bool has_failed(const nccl_t* nccl, const group_t* group) {
  int error = 0;
  for (int i = 0; i < group->count && !error; ++i) {
    if (nccl->comm_error(group->comms[i], &error) != 0) error = 1;
  }
  return error != 0;
}

static weir_status_t* find_group(const nccl_t* nccl, const weir_nccl_call_t* call,
                                 group_t** out_group) {
  group_t* group = groups;
  while (group && !is_of(group, call)) group = group->next;
  if (group && has_failed(nccl, group)) {
    group_abort(nccl, group);
    group = NULL;
  }
  *out_group = group;
  return group ? NULL : group_create(nccl, call, out_group);
}

// ---- calls ----

// Row j of rank i's output is row i of rank j's input.
static int exchange(const nccl_t* nccl, const weir_nccl_call_t* call, int rank, nccl_comm_t comm,
                    cu_stream_t stream) {
  const weir_nccl_rank_t* own = &call->ranks[rank];
  size_t count = (size_t)(call->count / call->rank_count);
  size_t size = count * weir_dtype_size(call->dtype);
  int type = type_of(call->dtype), result = 0;
  for (int i = 0; i < call->rank_count && !result; ++i) {
    result = nccl->send((const char*)own->from + (size_t)i * size, count, type, i, comm, stream);
    if (!result)
      result = nccl->receive((char*)own->to + (size_t)i * size, count, type, i, comm, stream);
  }
  return result;
}

static int start_rank(const nccl_t* nccl, const weir_nccl_call_t* call, int rank,
                      nccl_comm_t comm) {
  const weir_nccl_rank_t* own = &call->ranks[rank];
  cu_stream_t stream = weir_cuda_stream(own->device);
  size_t count = (size_t)call->count;
  int type = type_of(call->dtype), merge = (int)call->merge;
  switch (call->kind) {
    case WEIR_NCCL_ALL_REDUCE:
      return nccl->all_reduce(own->from, own->to, count, type, merge, comm, stream);
    case WEIR_NCCL_REDUCE:
      return nccl->reduce(own->from, own->to, count, type, merge, call->root, comm, stream);
    case WEIR_NCCL_REDUCE_SCATTER:
      return nccl->reduce_scatter(own->from, own->to, count / (size_t)call->rank_count, type, merge,
                                  comm, stream);
    case WEIR_NCCL_BROADCAST:
      // Who sends has a buffer to receive in, too: its own.
      return nccl->broadcast(own->from, own->to ? own->to : (void*)(uintptr_t)own->from, count,
                             type, call->root, comm, stream);
    case WEIR_NCCL_ALL_GATHER:
      return nccl->all_gather(own->from, own->to, count, type, comm, stream);
    default: return exchange(nccl, call, rank, comm, stream);
  }
}

// What a group of calls begins, its end launches, on all GPUs.
static weir_status_t* start_all(const nccl_t* nccl, const weir_nccl_call_t* call,
                                const group_t* group) {
  int result = nccl->group_start();
  if (result) return check(nccl, result, "beginning a collective");
  for (int i = 0; i < call->rank_count && !result; ++i) {
    weir_stream_span_t* outer = weir_span_set(call->ranks[i].span);
    result = start_rank(nccl, call, i, group->comms[i]);
    weir_span_set(outer);
  }
  int ended = nccl->group_end();
  return check(nccl, result ? result : ended, "launching a collective");
}

// The marks after it, in traced runs; and where every launch is waited for, all are launched now.
static weir_status_t* follow(const weir_nccl_call_t* call) {
  weir_status_t* first = NULL;
  for (int i = 0; i < call->rank_count; ++i) {
    const weir_nccl_rank_t* rank = &call->ranks[i];
    weir_stream_span_t* outer = weir_span_set(rank->span);
    weir_span_extend(rank->device, WEIR_STREAM_COMPUTE);
    weir_span_set(outer);
    weir_status_t* status = weir_cuda_launched(rank->device);
    if (first) weir_status_destroy(status);
    else first = status;
  }
  return first;
}

weir_status_t* weir_nccl_run(const weir_nccl_call_t* call) {
  const nccl_t* nccl = NULL;
  group_t* group = NULL;
  WEIR_TRY(find_nccl(&nccl));
  pthread_mutex_lock(&mu);
  weir_status_t* status = find_group(nccl, call, &group);
  if (!status) {
    status = start_all(nccl, call, group);
    // Some GPUs may have begun, and would wait for the others.
    if (status) group_abort(nccl, group);
  }
  weir_cuda_core_forget();  // NCCL goes from GPU to GPU
  pthread_mutex_unlock(&mu);
  return status ? status : follow(call);
}

void weir_nccl_replace(const nccl_t* with) {
  const nccl_t* nccl = NULL;
  pthread_mutex_lock(&mu);
  weir_status_t* status = groups ? find_nccl(&nccl) : NULL;
  while (groups && !status) {
    group_t* group = groups;
    groups = group->next;
    for (int i = 0; i < group->count; ++i) (void)nccl->comm_destroy(group->comms[i]);
    group_free(group);
  }
  weir_status_destroy(status);
  replacement = with;
  pthread_mutex_unlock(&mu);
}
