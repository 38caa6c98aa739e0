// cuda_graph.c — Recording what a thread launches, and launching all of it at once.
#include "device/cuda/cuda_graph.h"

#include <string.h>

#include "device/cuda/cuda.h"

// A graph takes about a microsecond and a kilobyte a launch to be made, and as many do no good.
enum { MOST_LAUNCHES = 200000 };

// What the host writes before each run.
enum { ANEW_ARG = 32, ANEW_PAGE = 1024 };  // bytes of an argument; pieces that are copied at once
typedef struct anew_t {
  void (*write)(const void* arg, void* bytes);
  char arg[ANEW_ARG];
} anew_t;
typedef struct anew_page_t {
  weir_tensor_t *there, *pinned;  // ANEW_PAGE pieces of WEIR_CUDA_ANEW bytes
} anew_page_t;

typedef struct cuda_graph_t {
  weir_recording_t base;  // first
  cuda_graph_place_t at;
  cu_stream_t stream;  // what is recorded; NULL: it has ended
  bool is_capturing;
  int launches;
  cuda_pool_t* pool;
  cuda_pool_t* pool_before;
  int64_t foreign_frees;  // before it
  bool is_whole;
  cu_graph_exec_t exec;  // what is launched
  anew_t* anew;
  size_t anew_count, anew_capacity;
  anew_page_t* pages;  // as many as |anew_count| needs
  size_t page_count, page_capacity;
} cuda_graph_t;

static _Thread_local cuda_graph_t* current;  // what this thread records

static cuda_graph_t* of(weir_recording_t* recording) { return (cuda_graph_t*)recording; }

static weir_status_t* check(const cuda_graph_t* graph, cu_result_t result, const char* doing) {
  return weir_cuda_check(graph->at.core->driver, result, doing);
}

bool weir_cuda_graph_is_recording(const cuda_core_t* core) {
  return WEIR_UNLIKELY(current != NULL) && current->at.core == core;
}

cu_stream_t weir_cuda_graph_stream(const cuda_core_t* core, cu_stream_t compute) {
  return weir_cuda_graph_is_recording(core) ? current->stream : compute;
}

weir_status_t* weir_cuda_graph_count(void) {
  if (WEIR_LIKELY(!current) || ++current->launches < MOST_LAUNCHES) return NULL;
  return WEIR_STATUS(RESOURCE_EXHAUSTED, "a step of more than %d launches is not recorded",
                     MOST_LAUNCHES);
}

// ---- recording ----

// The thread's launches and memory are as ever again.
static void leave(cuda_graph_t* graph) {
  if (current != graph) return;
  weir_cuda_pool_enter(graph->pool_before);
  graph->is_whole = weir_cuda_pool_foreign_frees() == graph->foreign_frees;
  current = NULL;
}

static void free_anew(cuda_graph_t* graph) {
  for (size_t i = 0; i < graph->page_count; ++i) {
    weir_tensor_release(graph->pages[i].there);
    weir_tensor_release(graph->pages[i].pinned);
  }
  weir_free(graph->pages);
  weir_free(graph->anew);
}

static void graph_destroy(weir_recording_t* base) {
  cuda_graph_t* graph = of(base);
  const cuda_driver_t* driver = graph->at.core->driver;
  cu_graph_t captured = NULL;
  leave(graph);
  free_anew(graph);
  weir_cuda_core_enter(graph->at.core);
  if (graph->is_capturing) driver->capture_end(graph->stream, &captured);
  if (captured) driver->graph_destroy(captured);
  if (graph->exec) driver->graph_exec_destroy(graph->exec);
  if (graph->stream) driver->stream_destroy(graph->stream);
  weir_cuda_pool_release(graph->pool);
  weir_cuda_core_release(graph->at.core);
  weir_free(graph);
}

static weir_status_t* start(cuda_graph_t* graph) {
  const cuda_driver_t* driver = graph->at.core->driver;
  graph->pool = weir_cuda_pool_retain(graph->at.memory);
  graph->foreign_frees = weir_cuda_pool_foreign_frees();
  WEIR_TRY(check(graph, driver->stream_create(&graph->stream, CU_STREAM_INDEPENDENT),
                 "making a stream"));
  // Relaxed: memory may be asked of the driver meanwhile, by this thread and by others.
  WEIR_TRY(check(graph, driver->capture_begin(graph->stream, CU_CAPTURE_RELAXED), "recording"));
  graph->is_capturing = true;
  return NULL;
}

static weir_status_t* graph_begin(weir_device_t* device, weir_recording_t** out_recording) {
  if (current) return WEIR_STATUS(FAILED_PRECONDITION, "this thread is recording already");
  cuda_graph_t* graph = weir_calloc(1, sizeof(*graph));
  if (!graph) return weir_out_of_memory();
  graph->base.recorder = &weir_cuda_recorder;
  graph->at = weir_cuda_graph_place(device);
  weir_cuda_core_retain(graph->at.core);
  weir_cuda_core_enter(graph->at.core);
  weir_status_t* status = start(graph);
  if (status) {
    graph_destroy(&graph->base);
    return status;
  }
  current = graph;
  graph->pool_before = weir_cuda_pool_enter(graph->pool);
  *out_recording = &graph->base;
  return NULL;
}

static weir_status_t* graph_keep(weir_recording_t* base, weir_dtype_t dtype, int rank,
                                 const int64_t* dims, weir_tensor_t** out_tensor) {
  weir_allocator_t* allocator = weir_device_allocator(of(base)->at.device, WEIR_MEMORY_DEVICE);
  cuda_pool_t* pool = weir_cuda_pool_enter(NULL);
  weir_status_t* status = weir_tensor_create_in(allocator, dtype, rank, dims, out_tensor);
  weir_cuda_pool_enter(pool);
  return status;
}

static weir_status_t* add_page(cuda_graph_t* graph) {
  const int64_t size = (int64_t)ANEW_PAGE * WEIR_CUDA_ANEW;
  if (!WEIR_GROW(graph->pages, graph->page_capacity, graph->page_count + 1))
    return weir_out_of_memory();
  anew_page_t* page = &graph->pages[graph->page_count++];
  *page = (anew_page_t){.there = NULL};
  WEIR_TRY(graph_keep(&graph->base, WEIR_DTYPE_UINT8, 1, &size, &page->there));
  return weir_device_host_tensor(graph->at.device, WEIR_DTYPE_UINT8, 1, &size, &page->pinned);
}

weir_status_t* weir_cuda_anew(weir_device_t* device, void (*write)(const void* arg, void* bytes),
                              const void* arg, size_t arg_size, void** out_address) {
  cuda_graph_t* graph = current;
  WEIR_CHECK(graph && graph->at.device == device && arg_size <= ANEW_ARG);
  if (!WEIR_GROW(graph->anew, graph->anew_capacity, graph->anew_count + 1))
    return weir_out_of_memory();
  if (graph->anew_count == graph->page_count * ANEW_PAGE) WEIR_TRY(add_page(graph));
  size_t at = graph->anew_count % ANEW_PAGE;
  anew_t* anew = &graph->anew[graph->anew_count++];
  *anew = (anew_t){.write = write};
  memcpy(anew->arg, arg, arg_size);
  *out_address = (char*)graph->pages[graph->page_count - 1].there->data + at * WEIR_CUDA_ANEW;
  return NULL;
}

// ---- what may be repeated ----

// Kernels, and what moves about within the device. Libraries may have put more into it: a copy of
// what was on the host's stack then is not there any more when it is repeated.
static bool repeats(const cuda_driver_t* driver, cu_graph_node_t node) {
  int kind = -1;
  cu_copy_t copy;
  if (driver->graph_node_kind(node, &kind) != 0) return false;
  if (kind == CU_NODE_KERNEL || kind == CU_NODE_SET || kind == CU_NODE_EMPTY) return true;
  memset(&copy, 0, sizeof(copy));
  return kind == CU_NODE_COPY && driver->graph_node_copy(node, &copy) == 0 &&
         copy.from.memory == CU_MEMORY_DEVICE && copy.to.memory == CU_MEMORY_DEVICE;
}

static weir_status_t* check_nodes(const cuda_graph_t* graph, cu_graph_t captured) {
  const cuda_driver_t* driver = graph->at.core->driver;
  size_t count = 0, wrong = 0;
  WEIR_TRY(check(graph, driver->graph_nodes(captured, NULL, &count), "reading a recording"));
  cu_graph_node_t* nodes = weir_alloc_array(count + 1, sizeof(*nodes));
  if (!nodes) return weir_out_of_memory();
  weir_status_t* status =
      check(graph, driver->graph_nodes(captured, nodes, &count), "reading a recording");
  for (size_t i = 0; i < count && !status; ++i) wrong += !repeats(driver, nodes[i]);
  weir_free(nodes);
  if (status || !wrong) return status;
  return WEIR_STATUS(UNIMPLEMENTED, "%zu of what it launches cannot be repeated", wrong);
}

static weir_status_t* instantiate(cuda_graph_t* graph, cu_graph_t captured) {
  if (weir_cuda_memory_is_tight(graph->at.memory))
    return WEIR_STATUS(RESOURCE_EXHAUSTED, "a recording would leave others too little memory");
  WEIR_TRY(check_nodes(graph, captured));
  return check(graph, graph->at.core->driver->graph_instantiate(&graph->exec, captured, 0),
               "making a graph");
}

static weir_status_t* graph_end(weir_recording_t* base) {
  cuda_graph_t* graph = of(base);
  const cuda_driver_t* driver = graph->at.core->driver;
  cu_graph_t captured = NULL;
  leave(graph);
  weir_cuda_core_enter(graph->at.core);
  graph->is_capturing = false;
  WEIR_TRY(check(graph, driver->capture_end(graph->stream, &captured), "ending a recording"));
  // What ordinary steps used is not needed as much any more.
  weir_cuda_memory_trim(graph->at.memory);
  weir_status_t* status = instantiate(graph, captured);
  driver->graph_destroy(captured);
  return status;
}

// ---- repeating ----

static weir_status_t* graph_upload(weir_recording_t* base, void* dst, const void* src,
                                   size_t size) {
  const cuda_graph_t* graph = of(base);
  weir_cuda_core_enter(graph->at.core);
  return check(graph, graph->at.core->driver->upload((uintptr_t)dst, src, size, graph->at.compute),
               "copying what is fed");
}

// The last run is over when its results are there, so the pages may be written.
static weir_status_t* write_anew(cuda_graph_t* graph) {
  for (size_t i = 0; i < graph->anew_count; ++i) {
    char* page = graph->pages[i / ANEW_PAGE].pinned->data;
    graph->anew[i].write(graph->anew[i].arg, page + i % ANEW_PAGE * WEIR_CUDA_ANEW);
  }
  for (size_t i = 0; i < graph->page_count; ++i) {
    size_t count = WEIR_MIN(graph->anew_count - i * ANEW_PAGE, ANEW_PAGE);
    WEIR_TRY(graph_upload(&graph->base, graph->pages[i].there->data, graph->pages[i].pinned->data,
                          count * WEIR_CUDA_ANEW));
  }
  return NULL;
}

static weir_status_t* graph_launch(weir_recording_t* base) {
  cuda_graph_t* graph = of(base);
  weir_cuda_core_enter(graph->at.core);
  if (graph->anew_count) WEIR_TRY(write_anew(graph));
  return check(graph, graph->at.core->driver->graph_launch(graph->exec, graph->at.compute),
               "launching a recorded step");
}

static bool graph_is_whole(weir_recording_t* base) { return of(base)->is_whole; }

const weir_recorder_t weir_cuda_recorder = {
    .begin = graph_begin,
    .end = graph_end,
    .destroy = graph_destroy,
    .keep = graph_keep,
    .upload = graph_upload,
    .launch = graph_launch,
    .is_whole = graph_is_whole,
};
