// request_fuzz.c — Fuzz target: any bytes as requests to a real master and a real worker.
//
// An input is a list of records: a byte that chooses the method, two bytes of length (little
// endian), the request. Where the method's byte has bit 7 set, handles that earlier answers gave
// are appended to the request, and win over those in it: so steps of sessions and registered graphs
// are reached. Records of one input are served one after another; state is dropped between inputs.
#include <stdio.h>
#include <stdlib.h>

#include "cluster/master/master.h"
#include "cluster/worker/worker.h"
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
const char* __asan_default_options(void);
int __lsan_is_turned_off(void);

enum { MAX_RECORDS = 12, TIMEOUT_MS = 50, PATIENCE_MS = 10000, HANDLE_SIZE = 64 };

// A graph may ask for tensors of any size: beyond 64 MB the allocator says no, and so must the
// step.
const char* __asan_default_options(void) {
  return "allocator_may_return_null=1:max_allocation_size_mb=64";
}

// Threads of the server allocate and free while an input is served, which libFuzzer takes for a
// hint at leaks after each one. Looking takes seconds: once, at the end.
static bool is_ending;
int __lsan_is_turned_off(void) { return !is_ending; }
static void note_end(void) { is_ending = true; }

static weir_task_t* task;
static weir_rpc_server_t* server;
static weir_rpc_channel_t* channel;
static weir_rpc_method_t methods[64];
static int method_count;
static char session_handle[HANDLE_SIZE], graph_handle[HANDLE_SIZE], partial_handle[HANDLE_SIZE];

static void set_up(void) {
  weir_task_options_t options = {.job = "localhost", .threads = 1, .io_threads = 1};
  weir_status_t* status = weir_cluster_spec_add(&options.spec, weir_view_of("localhost"), 0,
                                                weir_view_of("localhost:0"));
  if (!status) status = weir_task_create(&options, &task);
  if (!status) status = weir_master_create(task, &task->master);
  if (!status) status = weir_worker_create(task, &task->worker);
  WEIR_CHECK(!status && atexit(note_end) == 0);
  for (const weir_rpc_method_t* m = weir_master_methods; m->path; ++m) methods[method_count++] = *m;
  for (const weir_rpc_method_t* m = weir_worker_methods; m->path; ++m) methods[method_count++] = *m;
  weir_rpc_server_options_t server_options = {.pool = task->pool, .self = task};
  status = weir_rpc_server_create(task->loop, &server_options, methods, &server);
  WEIR_CHECK(!status);
  weir_rpc_channel_options_t channel_options = {.server = server};
  status = weir_rpc_channel_create(task->loop, &channel_options, &channel);
  WEIR_CHECK(!status);
}

static bool has(const uint8_t* data, size_t size, const char* word) {
  return memmem(data, size, word, strlen(word)) != NULL;
}

// Ops that act on the world outside: files, the terminal, the process itself.
static bool is_harmless(const uint8_t* data, size_t size) {
  static const char* const denied[] = {"File",    "Save",  "Restore", "Checkpoint",
                                       "Summary", "Print", "Abort",   "Reader"};
  for (size_t i = 0; i < WEIR_COUNT_OF(denied); ++i) {
    if (has(data, size, denied[i])) return false;
  }
  return true;
}

static bool is_method(int method, const char* name) {
  return strcmp(strrchr(methods[method].path, '/') + 1, name) == 0;
}

static void keep(char* handle, weir_view_t value) {
  size_t size = WEIR_MIN(value.size, (size_t)HANDLE_SIZE - 1);
  memcpy(handle, value.data, size);
  handle[size] = 0;
}

// Handles are field 1 of the answers that give one.
static void keep_handle(int method, weir_rpc_buffer_t* response) {
  weir_wire_reader_t reader = weir_wire_reader(weir_rpc_buffer_view(response));
  while (weir_wire_next(&reader)) {
    if (reader.field != 1 || reader.type != WEIR_WIRE_BYTES) continue;
    if (is_method(method, "CreateSession")) keep(session_handle, reader.bytes);
    if (is_method(method, "PartialRunSetup")) keep(partial_handle, reader.bytes);
    if (is_method(method, "RegisterGraph")) keep(graph_handle, reader.bytes);
  }
}

static void append_handles(int method, weir_strbuf_t* request) {
  bool is_masters = strstr(methods[method].path, "Master") != NULL;
  bool is_by_graph = is_method(method, "RunGraph") || is_method(method, "DeregisterGraph");
  if (is_by_graph) weir_wire_put_string(request, 1, graph_handle);
  else if (is_masters && !is_method(method, "CreateSession") && !is_method(method, "Reset"))
    weir_wire_put_string(request, 1, session_handle);
  if (is_method(method, "RunStep") && partial_handle[0])
    weir_wire_put_string(request, 6, partial_handle);
}

static void call(int method, bool has_handles, const uint8_t* data, size_t size, int timeout_ms) {
  weir_strbuf_t request = {0};
  weir_strbuf_append(&request, (const char*)data, size);
  if (has_handles) append_handles(method, &request);
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_rpc_message_append_strbuf(message, &request);
  weir_rpc_call_options_t options = {.deadline_ns =
                                         weir_clock_ns() + timeout_ms * INT64_C(1000000)};
  weir_rpc_buffer_t* response = NULL;
  weir_status_t* status =
      weir_rpc_channel_call(channel, methods[method].path, message, &options, &response);
  if (getenv("WEIR_FUZZ_VERBOSE"))  // to see how far an input gets
    fprintf(stderr, "%s: %s\n", methods[method].path, status ? weir_status_message(status) : "OK");
  if (!status) keep_handle(method, response);
  weir_rpc_buffer_release(response);
  weir_status_destroy(status);
}

static void call_named(const char* name, bool has_handles) {
  for (int i = 0; i < method_count; ++i) {
    if (is_method(i, name)) call(i, has_handles, (const uint8_t*)"", 0, PATIENCE_MS);
  }
}

// What one input made is gone before the next.
static void forget(void) {
  call_named("CloseSession", true);
  call_named("DeleteWorkerSession", false);
  call_named("Reset", false);
  weir_task_end_all_steps(task);
  weir_request_ids_clear(&task->request_ids);
  weir_request_ids_clear(&task->receive_ids);
  session_handle[0] = graph_handle[0] = partial_handle[0] = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (!task) {
    set_up();
    call_named("CreateSession", false);  // the first one reads the definitions of all ops
    forget();
  }
  if (!is_harmless(data, size)) return 0;
  for (int i = 0; i < MAX_RECORDS && size >= 3; ++i) {
    size_t length = WEIR_MIN((size_t)data[1] | (size_t)data[2] << 8, size - 3);
    call((data[0] & 0x7f) % method_count, data[0] >> 7, data + 3, length, TIMEOUT_MS);
    data += 3 + length;
    size -= 3 + length;
  }
  forget();
  return 0;
}
