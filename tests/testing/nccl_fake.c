// nccl_fake.c — Collectives on memory of the fake driver, by the thread that ends the group.
#include "testing/nccl_fake.h"

#include <stdlib.h>
#include <string.h>

#include "testing/cuda_fake.h"

int nccl_fake_collectives = 0;
int nccl_fake_made = 0;
int nccl_fake_members = 0;
int nccl_fake_aborted = 0;
int nccl_fake_failing_groups = 0;
int nccl_fake_failing_inits = 0;
bool nccl_fake_is_broken = false;

enum { WRONG = 4, FAILED = 3, MOST = 8, CALLS = 64, UINT8 = 1, INT32 = 2, FLOAT = 7 };

typedef struct comm_t {
  int rank, count, id;
} comm_t;

typedef enum kind_t { ALL_REDUCE, REDUCE, SCATTER, BROADCAST, GATHER, SEND, RECEIVE } kind_t;
typedef struct call_t {
  kind_t kind;
  const char* from;
  char* to;
  size_t count;
  int type, merge, root;  // or the peer
  const comm_t* comm;
} call_t;

static call_t calls[CALLS];  // of the group under way
static int call_count;
static bool is_open;

static const char* get_text(int result) { return result == WRONG ? "wrong use" : "fake failure"; }

static int get_version(int* out_version) {
  *out_version = 22700;
  return 0;
}

static int create(nccl_comm_t* out_comms, int count, const int* devices) {
  if (count < 1 || count > MOST || !devices) return WRONG;
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < i; ++j) {
      if (devices[i] == devices[j]) return WRONG;
    }
  }
  if (nccl_fake_failing_inits > 0 && nccl_fake_failing_inits--) return FAILED;
  ++nccl_fake_made;
  for (int i = 0; i < count; ++i) {
    comm_t* comm = malloc(sizeof(*comm));
    *comm = (comm_t){.rank = i, .count = count, .id = nccl_fake_made};
    out_comms[i] = comm;
    ++nccl_fake_members;
  }
  return 0;
}

static int destroy(nccl_comm_t comm) {
  --nccl_fake_members;
  free(comm);
  return 0;
}

static int abort_one(nccl_comm_t comm) {
  ++nccl_fake_aborted;
  return destroy(comm);
}

static int get_error(nccl_comm_t comm, int* out_error) {
  *out_error = nccl_fake_is_broken && ((comm_t*)comm)->rank == 0 ? FAILED : 0;
  if (*out_error) nccl_fake_is_broken = false;
  return 0;
}

static int start(void) {
  if (is_open) return WRONG;
  is_open = true;
  call_count = 0;
  return 0;
}

static int add(call_t call, cu_stream_t stream) {
  if (!is_open || !stream || call_count == CALLS || !call.count) return WRONG;
  calls[call_count++] = call;
  return 0;
}

// ---- what they do ----

static size_t size_of(int type) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[type];
}

static double merge_two(double a, double b, int merge) {
  if (merge == WEIR_NCCL_PROD) return a * b;
  if (merge == WEIR_NCCL_MAX) return a > b ? a : b;
  if (merge == WEIR_NCCL_MIN) return a < b ? a : b;
  return a + b;
}

static double get(const char* memory, int type, size_t i) {
  if (type == INT32) return ((const int*)memory)[i];
  return type == FLOAT ? (double)((const float*)memory)[i] : ((const double*)memory)[i];
}

static void put(char* memory, int type, size_t i, double value) {
  if (type == INT32) ((int*)memory)[i] = (int)value;
  else if (type == FLOAT) ((float*)memory)[i] = (float)value;
  else ((double*)memory)[i] = value;
}

// Elements [begin, begin + count) of all members, merged.
static void merge_all(const call_t* first, int members, size_t begin, size_t count, double* out) {
  for (size_t i = 0; i < count; ++i) {
    for (int k = 0; k < members; ++k) {
      double x = get(cuda_fake_at(first[k].from), first->type, begin + i);
      out[i] = k ? merge_two(out[i], x, first->merge) : x;
    }
    if (first->merge == WEIR_NCCL_MEAN) out[i] /= members;
  }
}

static void put_all(const call_t* call, const double* values) {
  if (!call->to) return;
  for (size_t i = 0; i < call->count; ++i) put(cuda_fake_at(call->to), call->type, i, values[i]);
}

static void run_reduction(const call_t* first, int members) {
  bool is_scattered = first->kind == SCATTER;
  size_t all = is_scattered ? first->count * (size_t)members : first->count;
  double* values = calloc(all, sizeof(*values));
  merge_all(first, members, 0, all, values);
  for (int k = 0; k < members; ++k) {
    bool gets = first->kind != REDUCE || first->root == k;
    if (gets) put_all(&first[k], values + (is_scattered ? (size_t)k * first->count : 0));
  }
  free(values);
}

static void run_movement(const call_t* first, int members) {
  size_t size = first->count * size_of(first->type);
  for (int k = 0; k < members; ++k) {
    char* to = cuda_fake_at(first[k].to);
    if (first->kind == BROADCAST) {
      if (first[k].to) memmove(to, cuda_fake_at(first[first->root].from), size);
      continue;
    }
    for (int i = 0; i < members; ++i)
      memmove(to + (size_t)i * size, cuda_fake_at(first[i].from), size);
  }
}

// Each receipt finds the next thing sent from there to here.
static int run_exchange(void) {
  bool is_taken[CALLS] = {false};
  for (int i = 0; i < call_count; ++i) {
    if (calls[i].kind != RECEIVE) continue;
    int k = 0;
    while (k < call_count &&
           (is_taken[k] || calls[k].kind != SEND || calls[k].comm->rank != calls[i].root ||
            calls[k].root != calls[i].comm->rank))
      ++k;
    if (k == call_count || calls[k].count != calls[i].count) return WRONG;
    is_taken[k] = true;
    memmove(cuda_fake_at(calls[i].to), cuda_fake_at(calls[k].from),
            calls[i].count * size_of(calls[i].type));
  }
  return 0;
}

// All members of one communicator, in the order of ranks, and of one mind.
static bool is_complete(void) {
  if (call_count != calls[0].comm->count) return false;
  for (int i = 0; i < call_count; ++i) {
    const call_t *a = &calls[0], *b = &calls[i];
    if (b->comm->rank != i || b->comm->id != a->comm->id || a->kind != b->kind) return false;
    if (a->count != b->count || a->type != b->type || a->merge != b->merge || a->root != b->root)
      return false;
  }
  return true;
}

static int end(void) {
  if (!is_open) return WRONG;
  is_open = false;
  if (nccl_fake_failing_groups > 0 && nccl_fake_failing_groups--) return FAILED;
  if (!call_count) return 0;
  ++nccl_fake_collectives;
  if (calls[0].kind == SEND || calls[0].kind == RECEIVE) return run_exchange();
  if (!is_complete()) return WRONG;
  if (calls[0].kind <= SCATTER) run_reduction(calls, call_count);
  else run_movement(calls, call_count);
  return 0;
}

static int all_reduce(const void* from, void* to, size_t count, int type, int merge,
                      nccl_comm_t comm, cu_stream_t stream) {
  if (!from || !to) return WRONG;
  return add((call_t){ALL_REDUCE, from, to, count, type, merge, 0, comm}, stream);
}

static int reduce(const void* from, void* to, size_t count, int type, int merge, int root,
                  nccl_comm_t comm, cu_stream_t stream) {
  if (!from || (!to && ((comm_t*)comm)->rank == root)) return WRONG;
  return add((call_t){REDUCE, from, to, count, type, merge, root, comm}, stream);
}

static int reduce_scatter(const void* from, void* to, size_t count, int type, int merge,
                          nccl_comm_t comm, cu_stream_t stream) {
  return add((call_t){SCATTER, from, to, count, type, merge, 0, comm}, stream);
}

static int broadcast(const void* from, void* to, size_t count, int type, int root, nccl_comm_t comm,
                     cu_stream_t stream) {
  if (!to || (!from && ((comm_t*)comm)->rank == root)) return WRONG;
  return add((call_t){BROADCAST, from, to, count, type, 0, root, comm}, stream);
}

static int all_gather(const void* from, void* to, size_t count, int type, nccl_comm_t comm,
                      cu_stream_t stream) {
  return add((call_t){GATHER, from, to, count, type, 0, 0, comm}, stream);
}

static int send(const void* from, size_t count, int type, int peer, nccl_comm_t comm,
                cu_stream_t stream) {
  return add((call_t){SEND, from, NULL, count, type, 0, peer, comm}, stream);
}

static int receive(void* to, size_t count, int type, int peer, nccl_comm_t comm,
                   cu_stream_t stream) {
  return add((call_t){RECEIVE, NULL, to, count, type, 0, peer, comm}, stream);
}

const nccl_t nccl_fake = {.error_text = get_text,
                          .version = get_version,
                          .comm_create = create,
                          .comm_destroy = destroy,
                          .comm_abort = abort_one,
                          .comm_error = get_error,
                          .group_start = start,
                          .group_end = end,
                          .all_reduce = all_reduce,
                          .reduce = reduce,
                          .reduce_scatter = reduce_scatter,
                          .broadcast = broadcast,
                          .all_gather = all_gather,
                          .send = send,
                          .receive = receive};
