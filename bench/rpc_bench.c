// rpc_bench.c — What a call costs: µs of a small one, calls a second in parallel, GB/s of large
// messages; over TCP, a Unix socket, and TLS when certificates are given (CERT KEY CA).
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "rpc/rpc.h"

#define LARGE_SIZE ((size_t)64 << 20)
#define SMALL_CALLS 20000
#define LARGE_CALLS 40
#define PARALLEL 64

static char* large;

static void echo(void* self, weir_rpc_call_t* call) {
  (void)self;
  weir_view_t request = weir_rpc_buffer_view(weir_rpc_call_request(call));
  weir_rpc_message_t* response = weir_rpc_message_create();
  weir_rpc_message_append(response, request.data, request.size);
  weir_rpc_call_respond(call, response);
}

static void get_large(void* self, weir_rpc_call_t* call) {
  (void)self;
  weir_rpc_message_t* response = weir_rpc_message_create();
  weir_rpc_message_append_ref(response, large, LARGE_SIZE, NULL, NULL);
  weir_rpc_call_respond(call, response);
}

static void put_large(void* self, weir_rpc_call_t* call) {
  (void)self;
  weir_rpc_call_fail(call, NULL);
}

static const weir_rpc_method_t methods[] = {{"/weir.Bench/Echo", echo, true},
                                            {"/weir.Bench/Get", get_large, true},
                                            {"/weir.Bench/Put", put_large, true},
                                            {0}};

static void check(weir_status_t* status) {
  if (weir_status_report(status)) exit(1);
}

static int compare(const void* a, const void* b) {
  int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return (x > y) - (x < y);
}

static void call_once(weir_rpc_channel_t* channel, const char* path, const void* data,
                      size_t size) {
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_rpc_message_append_ref(message, data, size, NULL, NULL);
  weir_rpc_buffer_t* response = NULL;
  check(weir_rpc_channel_call(channel, path, message, NULL, &response));
  weir_rpc_buffer_release(response);
}

static double median_us(weir_rpc_channel_t* channel, const char* path, size_t size, int count) {
  int64_t* times = weir_alloc_array((size_t)count, sizeof(*times));
  for (int i = -count / 10 - 1; i < count; ++i) {  // the first tenth warms up
    int64_t begin = weir_clock_ns();
    call_once(channel, path, large, size);
    if (i >= 0) times[i] = weir_clock_ns() - begin;
  }
  qsort(times, (size_t)count, sizeof(*times), compare);
  double median = (double)times[count / 2] / 1000;
  weir_free(times);
  return median;
}

typedef struct parallel_t {
  weir_rpc_channel_t* channel;
  atomic_int left, running;
} parallel_t;

static void next_call(parallel_t* parallel);

static void call_done(void* self, weir_status_t* take_status, weir_rpc_buffer_t* take_message) {
  check(take_status);
  weir_rpc_buffer_release(take_message);
  next_call(self);
}

static void next_call(parallel_t* parallel) {
  if (atomic_fetch_sub(&parallel->left, 1) <= 0) {
    atomic_fetch_sub(&parallel->running, 1);
    return;
  }
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_rpc_message_append_ref(message, large, 100, NULL, NULL);
  weir_rpc_channel_call_async(parallel->channel, "/weir.Bench/Echo", message, NULL, call_done,
                              parallel, NULL);
}

static double calls_a_second(weir_rpc_channel_t* channel) {
  parallel_t parallel = {.channel = channel, .left = SMALL_CALLS * 5, .running = PARALLEL};
  int64_t begin = weir_clock_ns();
  for (int i = 0; i < PARALLEL; ++i) next_call(&parallel);
  while (atomic_load(&parallel.running) > 0) {
    struct timespec nap = {.tv_nsec = 1000000};
    nanosleep(&nap, NULL);
  }
  return SMALL_CALLS * 5 / ((double)(weir_clock_ns() - begin) / 1e9);
}

static void bench(const char* name, const char* address, const weir_rpc_tls_t* tls, int spin_us) {
  weir_rpc_loop_options_t loop_options = {.thread_count = 1, .spin_us = spin_us};
  weir_rpc_loop_t *server_loop = NULL, *client_loop = NULL;
  check(weir_rpc_loop_create(&loop_options, &server_loop));
  check(weir_rpc_loop_create(&loop_options, &client_loop));
  weir_rpc_server_options_t server_options = {.address = address};
  if (tls) server_options.tls = *tls;
  weir_rpc_server_t* server = NULL;
  check(weir_rpc_server_create(server_loop, &server_options, methods, &server));
  weir_rpc_channel_options_t options = {.address = weir_rpc_server_address(server)};
  if (tls) options.tls = (weir_rpc_tls_t){.is_enabled = true, .ca_file = tls->ca_file};
  weir_rpc_channel_t* channel = NULL;
  check(weir_rpc_channel_create(client_loop, &options, &channel));
  double small = median_us(channel, "/weir.Bench/Echo", 100, SMALL_CALLS);
  double rate = calls_a_second(channel);
  double get = median_us(channel, "/weir.Bench/Get", 0, LARGE_CALLS);
  double put = median_us(channel, "/weir.Bench/Put", LARGE_SIZE, LARGE_CALLS);
  printf(
      "{\"transport\": \"%s\", \"small_call_us\": %.1f, \"parallel_calls_per_s\": %.0f, "
      "\"response_gb_per_s\": %.2f, \"request_gb_per_s\": %.2f}\n",
      name, small, rate, (double)LARGE_SIZE / get / 1e3, (double)LARGE_SIZE / put / 1e3);
  weir_rpc_channel_destroy(channel);
  weir_rpc_server_destroy(server);
  weir_rpc_loop_destroy(client_loop);
  weir_rpc_loop_destroy(server_loop);
}

int main(int argc, char** argv) {
  large = weir_malloc(LARGE_SIZE);
  if (!large) return 1;
  memset(large, 7, LARGE_SIZE);
  char path[64];
  snprintf(path, sizeof(path), "unix:/tmp/rpc_bench.%d", (int)getpid());
  bench("tcp", "127.0.0.1:0", NULL, 0);
  bench("tcp, spinning", "127.0.0.1:0", NULL, 50);
  bench("unix", path, NULL, 0);
  if (argc == 4) {
    weir_rpc_tls_t tls = {
        .is_enabled = true, .cert_file = argv[1], .key_file = argv[2], .ca_file = argv[3]};
    bench("tls", "127.0.0.1:0", &tls, 0);
  }
  weir_free(large);
  return 0;
}
