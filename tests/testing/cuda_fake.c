// cuda_fake.c — The functions of a driver, as far as they can be had without a GPU. Built as a
// library it is a libcuda.so.1 for programs that open one.
#include "testing/cuda_fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

size_t cuda_fake_memory = (size_t)1 << 30;
atomic_int cuda_fake_launches = 0;
int cuda_fake_graph_launches = 0;
int cuda_fake_graphs = 0;
int cuda_fake_failing_captures = 0;
bool cuda_fake_copies_from_host = false;
bool cuda_fake_are_peers = true;
atomic_int cuda_fake_reached = 0;
atomic_int cuda_fake_peer_copies = 0;

#define CUDA_FAKE_DECLARATION(name, symbol, arguments) \
  __attribute__((visibility("default"))) cu_result_t symbol arguments;
WEIR_CUDA_DRIVER_FUNCTIONS(CUDA_FAKE_DECLARATION)

enum { INVALID = 1, NOT_CAPTURABLE = 900, REACHED_ALREADY = 704, DEVICES = 3 };
enum { USUAL_SHARED = 48 << 10, MOST_SHARED = 163 << 10 };  // bytes of a block
static const int architectures[DEVICES] = {80, 90, 100};

// Memory of a device is mapped twice: where everybody knows it, without access, and where copies
// find it.
typedef struct block_t {
  char* address;
  char* memory;
  size_t size;
  struct block_t* next;
} block_t;

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;  // guards all below
static block_t* blocks;                                 // in use, of all devices
static block_t* pinned;                                 // likewise, of the host
static size_t in_use;                                   // bytes of them

cu_result_t cuCtxSynchronize(void) { return 0; }
cu_result_t cuInit(unsigned flags) { return flags ? INVALID : 0; }

cu_result_t cuGetErrorName(cu_result_t error, const char** out_name) {
  *out_name = error == CU_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return 0;
}

cu_result_t cuGetErrorString(cu_result_t error, const char** out_text) {
  *out_text = error == CU_OUT_OF_MEMORY ? "out of memory" : "a fake error";
  return 0;
}

cu_result_t cuDeviceGetCount(int* out_count) {
  *out_count = DEVICES;
  return 0;
}

cu_result_t cuDeviceGet(int* out_device, int ordinal) {
  *out_device = ordinal;
  return 0;
}

cu_result_t cuDeviceGetName(char* buffer, int size, int device) {
  (void)device;
  strncpy(buffer, "fake", (size_t)size);
  return 0;
}

cu_result_t cuDeviceGetPCIBusId(char* buffer, int size, int device) {
  snprintf(buffer, (size_t)size, "0000:0%d:00.0", device);
  return 0;
}

cu_result_t cuDeviceGetAttribute(int* out_value, int attribute, int device) {
  *out_value = attribute == CU_MAJOR          ? architectures[device] / 10
               : attribute == CU_MINOR        ? architectures[device] % 10
               : attribute == CU_SHARED_BYTES ? MOST_SHARED
                                              : 2;
  return 0;
}

cu_result_t cuDeviceTotalMem_v2(size_t* out_bytes, int device) {
  (void)device;
  *out_bytes = cuda_fake_memory;
  return 0;
}

static char contexts[DEVICES];
static _Thread_local char* context_here;  // the calling thread's

cu_result_t cuDevicePrimaryCtxRetain(cu_context_t* out_context, int device) {
  *out_context = &contexts[device];
  return 0;
}

cu_result_t cuCtxSetCurrent(cu_context_t context) {
  context_here = context;
  return context ? 0 : INVALID;
}

cu_result_t cuDeviceCanAccessPeer(int* out_can, int device, int peer) {
  *out_can = cuda_fake_are_peers && device != peer;
  return 0;
}

cu_result_t cuCtxEnablePeerAccess(cu_context_t peer, unsigned flags) {
  static bool is_reached[DEVICES][DEVICES];
  if (!context_here || context_here == peer || flags || !cuda_fake_are_peers) return INVALID;
  pthread_mutex_lock(&mu);
  bool* reached = &is_reached[context_here - contexts][(char*)peer - contexts];
  bool is_new = !*reached;
  *reached = true;
  cuda_fake_reached += is_new;
  pthread_mutex_unlock(&mu);
  return is_new ? 0 : REACHED_ALREADY;
}

cu_result_t cuMemGetInfo_v2(size_t* out_free, size_t* out_total) {
  *out_total = cuda_fake_memory;
  pthread_mutex_lock(&mu);
  *out_free = cuda_fake_memory - in_use;
  pthread_mutex_unlock(&mu);
  return 0;
}

static block_t* block_create(size_t size) {
  block_t* block = malloc(sizeof(*block));
  int file = memfd_create("device", 0);
  if (!block || file < 0 || ftruncate(file, (off_t)size) != 0) abort();
  *block = (block_t){.address = mmap(NULL, size, PROT_NONE, MAP_SHARED, file, 0),
                     .memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0),
                     .size = size};
  if (block->address == MAP_FAILED || block->memory == MAP_FAILED) abort();
  close(file);
  return block;
}

cu_result_t cuMemAlloc_v2(cu_pointer_t* out_pointer, size_t size) {
  pthread_mutex_lock(&mu);
  bool fits = size <= cuda_fake_memory && in_use <= cuda_fake_memory - size;
  block_t* block = fits ? block_create(size) : NULL;
  if (block) {
    in_use += size;
    block->next = blocks;
    blocks = block;
    *out_pointer = (uintptr_t)block->address;
  }
  pthread_mutex_unlock(&mu);
  return fits ? 0 : CU_OUT_OF_MEMORY;
}

cu_result_t cuMemFree_v2(cu_pointer_t pointer) {
  pthread_mutex_lock(&mu);
  block_t** at = &blocks;
  while (*at && (uintptr_t)(*at)->address != pointer) at = &(*at)->next;
  block_t* block = *at;
  if (block) {
    *at = block->next;
    in_use -= block->size;
    munmap(block->address, block->size);
    munmap(block->memory, block->size);
    free(block);
  }
  pthread_mutex_unlock(&mu);
  return block ? 0 : INVALID;
}

// Where |size| bytes at |pointer| of a device can be touched; NULL: they are no device's.
static char* find(cu_pointer_t pointer, size_t size) {
  char* found = NULL;
  pthread_mutex_lock(&mu);
  for (const block_t* block = blocks; block && !found; block = block->next) {
    size_t offset = (size_t)(pointer - (uintptr_t)block->address);
    if (offset <= block->size && size <= block->size - offset) found = block->memory + offset;
  }
  pthread_mutex_unlock(&mu);
  return found;
}

char* cuda_fake_at(const void* address) { return find((uintptr_t)address, 1); }

cu_result_t cuMemHostAlloc(void** out_pointer, size_t size, unsigned flags) {
  (void)flags;
  block_t* block = malloc(sizeof(*block));
  if (!block) abort();
  *block = (block_t){.address = aligned_alloc(512, (size + 511) / 512 * 512), .size = size};
  if (!block->address) abort();
  pthread_mutex_lock(&mu);
  block->next = pinned;
  pinned = block;
  pthread_mutex_unlock(&mu);
  *out_pointer = block->address;
  return 0;
}

cu_result_t cuMemFreeHost(void* pointer) {
  pthread_mutex_lock(&mu);
  block_t** at = &pinned;
  while (*at && (*at)->address != pointer) at = &(*at)->next;
  block_t* block = *at;
  if (block) *at = block->next;
  pthread_mutex_unlock(&mu);
  if (block) free(block->address);
  free(block);
  return block ? 0 : INVALID;
}

// A real driver copies other memory, too, but holds the calling thread meanwhile.
static bool is_pinned(const void* pointer, size_t size) {
  bool is_found = false;
  pthread_mutex_lock(&mu);
  for (const block_t* block = pinned; block && !is_found; block = block->next) {
    size_t offset = (size_t)((uintptr_t)pointer - (uintptr_t)block->address);
    is_found = offset <= block->size && size <= block->size - offset;
  }
  pthread_mutex_unlock(&mu);
  return is_found;
}

// ---- work: done at once, or kept by a stream that is captured ----

enum { MOST_ARGS = 8, ARG_SIZE = 4096 };
typedef struct work_t {
  enum { COPY, SET, LAUNCH } kind;
  cu_pointer_t to, from;
  size_t size;
  unsigned char value;
  const cuda_fake_function_t* function;
  char* args;  // copies, ARG_SIZE bytes each; NULL: it computes nothing
} work_t;

typedef struct graph_t {
  work_t* works;
  size_t count, capacity;
} graph_t;

typedef struct stream_t {
  bool is_captured;
  bool is_broken;  // something was asked for that cannot be captured
  graph_t graph;
} stream_t;

static cu_result_t run_launch(const work_t* work) {
  void* args[MOST_ARGS];
  pthread_mutex_lock(&mu);
  ++cuda_fake_launches;
  pthread_mutex_unlock(&mu);
  if (!work->args) return 0;
  for (int i = 0; i < work->function->arg_count; ++i) args[i] = work->args + i * ARG_SIZE;
  work->function->run(args);
  return 0;
}

static cu_result_t run(const work_t* work) {
  if (work->kind == LAUNCH) return run_launch(work);
  char* to = find(work->to, work->size);
  const char* from = work->kind == COPY ? find(work->from, work->size) : to;
  if (!to || !from) return INVALID;
  if (work->kind == COPY) memmove(to, from, work->size);
  else memset(to, work->value, work->size);
  return 0;
}

static cu_result_t submit(stream_t* stream, work_t work) {
  cu_result_t result = 0;
  if (stream->is_captured) {
    graph_t* graph = &stream->graph;
    if (graph->count == graph->capacity) {
      graph->capacity = graph->capacity ? 2 * graph->capacity : 64;
      graph->works = realloc(graph->works, graph->capacity * sizeof(*graph->works));
      if (!graph->works) abort();
    }
    graph->works[graph->count++] = work;
    return 0;
  }
  result = run(&work);
  free(work.args);
  return result;
}

static void graph_free(graph_t* graph) {
  for (size_t i = 0; i < graph->count; ++i) free(graph->works[i].args);
  free(graph->works);
  *graph = (graph_t){0};
}

// Whether |stream| can do what is not captured.
static cu_result_t check_plain(stream_t* stream) {
  if (!stream) return INVALID;
  if (stream->is_captured) stream->is_broken = true;
  return stream->is_captured ? NOT_CAPTURABLE : 0;
}

cu_result_t cuMemcpyHtoDAsync_v2(cu_pointer_t to, const void* from, size_t size,
                                 cu_stream_t stream) {
  char* memory = is_pinned(from, size) ? find(to, size) : NULL;
  cu_result_t result = check_plain(stream);
  if (memory && !result) memcpy(memory, from, size);
  return memory ? result : INVALID;
}

cu_result_t cuMemcpyDtoHAsync_v2(void* to, cu_pointer_t from, size_t size, cu_stream_t stream) {
  const char* memory = is_pinned(to, size) ? find(from, size) : NULL;
  cu_result_t result = check_plain(stream);
  if (memory && !result) memcpy(to, memory, size);
  return memory ? result : INVALID;
}

cu_result_t cuMemcpyDtoDAsync_v2(cu_pointer_t to, cu_pointer_t from, size_t size,
                                 cu_stream_t stream) {
  if (!stream || !find(to, size) || !find(from, size)) return INVALID;
  return submit(stream, (work_t){.kind = COPY, .to = to, .from = from, .size = size});
}

cu_result_t cuMemcpyPeerAsync(cu_pointer_t to, cu_context_t to_context, cu_pointer_t from,
                              cu_context_t from_context, size_t size, cu_stream_t stream) {
  if (to_context == from_context) return INVALID;
  ++cuda_fake_peer_copies;
  return cuMemcpyDtoDAsync_v2(to, from, size, stream);
}

cu_result_t cuMemsetD8Async(cu_pointer_t to, unsigned char value, size_t size, cu_stream_t stream) {
  if (!stream || !find(to, size)) return INVALID;
  return submit(stream, (work_t){.kind = SET, .to = to, .size = size, .value = value});
}

cu_result_t cuStreamCreate(cu_stream_t* out_stream, unsigned flags) {
  (void)flags;
  *out_stream = calloc(1, sizeof(stream_t));
  return *out_stream ? 0 : CU_OUT_OF_MEMORY;
}

cu_result_t cuStreamDestroy_v2(cu_stream_t stream) {
  graph_free(&((stream_t*)stream)->graph);
  free(stream);
  return 0;
}

cu_result_t cuStreamWaitEvent(cu_stream_t stream, cu_event_t event, unsigned flags) {
  return stream && event && !flags ? check_plain(stream) : INVALID;
}

cu_result_t cuStreamSynchronize(cu_stream_t stream) { return check_plain(stream); }

cu_result_t cuLaunchHostFunc(cu_stream_t stream, cu_host_fn_t fn, void* arg) {
  cu_result_t result = check_plain(stream);
  if (!result) fn(arg);
  return result;
}

typedef struct event_t {
  bool keeps_time;
  int64_t ns;  // when it was recorded; 0: never
} event_t;

cu_result_t cuEventCreate(cu_event_t* out_event, unsigned flags) {
  event_t* event = calloc(1, sizeof(*event));
  if (event) event->keeps_time = flags != CU_EVENT_NO_TIMING;
  *out_event = event;
  return event ? 0 : CU_OUT_OF_MEMORY;
}

cu_result_t cuEventRecord(cu_event_t event, cu_stream_t stream) {
  struct timespec now;
  cu_result_t result = event ? check_plain(stream) : INVALID;
  if (result) return result;
  clock_gettime(CLOCK_MONOTONIC, &now);
  ((event_t*)event)->ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
  return 0;
}

cu_result_t cuEventDestroy_v2(cu_event_t event) {
  free(event);
  return 0;
}

cu_result_t cuEventElapsedTime(float* out_ms, cu_event_t from, cu_event_t to) {
  const event_t *first = from, *last = to;
  if (!first->keeps_time || !last->keeps_time || !first->ns || !last->ns) return INVALID;
  *out_ms = (float)(last->ns - first->ns) * 1e-6F;
  return 0;
}

cu_result_t cuEventQuery(cu_event_t event) { return event ? 0 : INVALID; }
cu_result_t cuEventSynchronize(cu_event_t event) { return cuEventQuery(event); }

const char cuda_fake_magic[8] = "fake fn";

// Code that a test made is its function; any other computes nothing.
cu_result_t cuModuleLoadData(cu_module_t* out_module, const void* image) {
  cuda_fake_function_t* function = calloc(1, sizeof(*function));
  *out_module = function;
  if (!function || !image) return INVALID;
  const cuda_fake_code_t* code = image;
  if (strncmp(image, cuda_fake_magic, sizeof(cuda_fake_magic)) == 0) *function = code->function;
  return 0;
}

cu_result_t cuModuleUnload(cu_module_t module) {
  free(module);
  return 0;
}

cu_result_t cuModuleGetFunction(cu_function_t* out_function, cu_module_t module, const char* name) {
  *out_function = module;
  return name && *name ? 0 : INVALID;
}

static char* copy_args(const cuda_fake_function_t* function, void** args) {
  if (!function->run) return NULL;
  char* copies = calloc(MOST_ARGS, ARG_SIZE);
  if (!copies || function->arg_count > MOST_ARGS) abort();
  for (int i = 0; i < function->arg_count; ++i)
    memcpy(copies + i * ARG_SIZE, args[i], function->arg_sizes[i]);
  return copies;
}

// The function that asked last for more shared memory than all have, and how much.
static cu_function_t asking;
static unsigned asked_bytes;

cu_result_t cuFuncSetAttribute(cu_function_t function, int attribute, int value) {
  if (!function || attribute != CU_FUNCTION_SHARED_BYTES || value < 0 || value > MOST_SHARED)
    return INVALID;
  pthread_mutex_lock(&mu);
  asking = function;
  asked_bytes = (unsigned)value;
  pthread_mutex_unlock(&mu);
  return 0;
}

static bool has_shared(cu_function_t function, unsigned bytes) {
  pthread_mutex_lock(&mu);
  bool has_asked = asking == function && asked_bytes >= bytes;
  pthread_mutex_unlock(&mu);
  return bytes <= USUAL_SHARED || has_asked;
}

cu_result_t cuLaunchKernel(cu_function_t function, unsigned grid_x, unsigned grid_y,
                           unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                           unsigned shared_bytes, cu_stream_t stream, void** args, void** extra) {
  if (!function || !stream || !args || extra || !has_shared(function, shared_bytes)) return INVALID;
  if (!grid_x || !grid_y || !grid_z || grid_y > 65535 || grid_z > 65535) return INVALID;
  if (!block_x || !block_y || !block_z || block_x * block_y * block_z > 1024) return INVALID;
  return submit(stream,
                (work_t){.kind = LAUNCH, .function = function, .args = copy_args(function, args)});
}

// ---- graphs ----

cu_result_t cuStreamBeginCapture_v2(cu_stream_t stream, int mode) {
  stream_t* captured = stream;
  if (!captured || captured->is_captured || mode != CU_CAPTURE_RELAXED) return INVALID;
  captured->is_captured = true;
  return 0;
}

cu_result_t cuStreamEndCapture(cu_stream_t stream, cu_graph_t* out_graph) {
  stream_t* captured = stream;
  if (!captured || !captured->is_captured) return INVALID;
  captured->is_captured = false;
  if (cuda_fake_failing_captures > 0) {
    --cuda_fake_failing_captures;
    captured->is_broken = true;
  }
  graph_t* graph = captured->is_broken ? NULL : malloc(sizeof(*graph));
  if (graph) *graph = captured->graph;
  else graph_free(&captured->graph);
  captured->graph = (graph_t){0};
  *out_graph = graph;
  return graph ? 0 : NOT_CAPTURABLE;
}

cu_result_t cuGraphGetNodes(cu_graph_t graph, cu_graph_node_t* nodes, size_t* count) {
  graph_t* captured = graph;
  if (!captured) return INVALID;
  for (size_t i = 0; nodes && i < *count && i < captured->count; ++i)
    nodes[i] = &captured->works[i];
  *count = captured->count;
  return 0;
}

cu_result_t cuGraphNodeGetType(cu_graph_node_t node, int* out_kind) {
  const work_t* work = node;
  *out_kind = work->kind == COPY ? CU_NODE_COPY : work->kind == SET ? CU_NODE_SET : CU_NODE_KERNEL;
  return 0;
}

cu_result_t cuGraphMemcpyNodeGetParams(cu_graph_node_t node, cu_copy_t* out_copy) {
  const work_t* work = node;
  *out_copy = (cu_copy_t){.width = work->size, .height = 1, .depth = 1};
  out_copy->from = (cu_copy_end_t){.memory = CU_MEMORY_DEVICE, .device = work->from};
  out_copy->to = (cu_copy_end_t){.memory = CU_MEMORY_DEVICE, .device = work->to};
  if (cuda_fake_copies_from_host) out_copy->from.memory = 1;
  return work->kind == COPY ? 0 : INVALID;
}

// What is launched is the graph itself; the graph that was captured is an empty one afterwards.
cu_result_t cuGraphInstantiateWithFlags(cu_graph_exec_t* out_exec, cu_graph_t graph,
                                        unsigned long long flags) {
  graph_t* exec = flags ? NULL : malloc(sizeof(*exec));
  if (!exec) return INVALID;
  *exec = *(graph_t*)graph;
  *(graph_t*)graph = (graph_t){0};
  ++cuda_fake_graphs;
  *out_exec = exec;
  return 0;
}

cu_result_t cuGraphDestroy(cu_graph_t graph) {
  graph_free(graph);
  free(graph);
  return 0;
}

cu_result_t cuGraphExecDestroy(cu_graph_exec_t exec) {
  --cuda_fake_graphs;
  return cuGraphDestroy(exec);
}

cu_result_t cuGraphLaunch(cu_graph_exec_t exec, cu_stream_t stream) {
  const graph_t* graph = exec;
  cu_result_t result = check_plain(stream);
  for (size_t i = 0; i < graph->count && !result; ++i) result = run(&graph->works[i]);
  ++cuda_fake_graph_launches;
  return result;
}

#define CUDA_FAKE_FIELD(name, symbol, arguments) .name = symbol,
const cuda_driver_t cuda_fake_driver = {WEIR_CUDA_DRIVER_FUNCTIONS(CUDA_FAKE_FIELD)};

// Which NVRTC asks of a driver that it finds: it has no such table.
__attribute__((visibility("default"))) cu_result_t cuGetExportTable(const void** out_table,
                                                                    const void* name);
cu_result_t cuGetExportTable(const void** out_table, const void* name) {
  *out_table = NULL;
  return name ? INVALID : 0;
}
