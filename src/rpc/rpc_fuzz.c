// rpc_fuzz.c — Fuzz target: any bytes sent to a server, or to a client that has made a call.
//
// The first byte chooses: odd, the rest is what a server's peer sends; even, what a client's peer
// answers. HTTP/2's opening is put before it, so that the fuzzer need not find it.
#include <fcntl.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/channel.h"
#include "rpc/server.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static weir_rpc_loop_t* loop;
static weir_rpc_server_t* server;

static void echo(void* self, weir_rpc_call_t* call) {
  (void)self;
  weir_view_t request = weir_rpc_buffer_view(weir_rpc_call_request(call));
  weir_rpc_message_t* response = weir_rpc_message_create();
  weir_rpc_message_append(response, request.data, request.size);
  weir_rpc_call_respond(call, response);
}

static void set_up(void) {
  static const weir_rpc_method_t methods[] = {{"/a/b", echo, .is_inline = true}, {0}};
  weir_rpc_loop_options_t options = {.thread_count = 1, .memory_budget = 8 << 20};
  weir_rpc_server_options_t server_options = {0};
  weir_status_t* status = weir_rpc_loop_create(&options, &loop);
  if (!status) status = weir_rpc_server_create(loop, &server_options, methods, &server);
  WEIR_CHECK(!status);
}

// Sends all and reads until the other side closes.
static void talk(int fd, const void* data, size_t size) {
  const uint8_t* next = data;
  char answer[4096];
  while (size > 0) {
    ssize_t sent = send(fd, next, size, MSG_NOSIGNAL);
    if (sent <= 0) break;
    next += sent;
    size -= (size_t)sent;
    while (recv(fd, answer, sizeof(answer), MSG_DONTWAIT) > 0) continue;
  }
  shutdown(fd, SHUT_WR);
  while (recv(fd, answer, sizeof(answer), 0) > 0) continue;
}

static void fuzz_server(const uint8_t* data, size_t size) {
  int fds[2];
  WEIR_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  WEIR_CHECK(fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
  weir_rpc_server_adopt(server, fds[0]);
  static const char settings[9] = {0, 0, 0, NGHTTP2_SETTINGS};
  WEIR_CHECK(send(fds[1], NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN, MSG_NOSIGNAL) > 0);
  WEIR_CHECK(send(fds[1], settings, sizeof(settings), MSG_NOSIGNAL) > 0);
  talk(fds[1], data, size);
  close(fds[1]);
}

static void forget(void* self, weir_status_t* take_status, weir_rpc_buffer_t* take_message) {
  (void)self;
  weir_status_destroy(take_status);
  weir_rpc_buffer_release(take_message);
}

// A listener that plays the server.
static int listen_somewhere(char* out_address, size_t size) {
  weir_rpc_address_t address;
  int fd = -1;
  snprintf(out_address, size, "unix:/tmp/weir_rpc_fuzz.%d", (int)getpid());
  weir_status_t* status = weir_rpc_address_parse(out_address, &address);
  if (!status) status = weir_rpc_listen(&address, &fd);
  WEIR_CHECK(!status);
  return fd;
}

static void fuzz_client(const uint8_t* data, size_t size) {
  char address[64];
  int listener = listen_somewhere(address, sizeof(address));
  weir_rpc_channel_options_t options = {.address = address};
  weir_rpc_channel_t* channel = NULL;
  weir_status_t* status = weir_rpc_channel_create(loop, &options, &channel);
  WEIR_CHECK(!status);
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_rpc_message_append(message, "request", 7);
  weir_rpc_channel_call_async(channel, "/a/b", message, NULL, forget, NULL, NULL);
  int fd;
  do {
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  } while (fd < 0);
  static const char settings[9] = {0, 0, 0, NGHTTP2_SETTINGS};
  WEIR_CHECK(send(fd, settings, sizeof(settings), MSG_NOSIGNAL) > 0);
  talk(fd, data, size);
  close(fd);
  close(listener);
  unlink(address + 5);
  weir_rpc_channel_destroy(channel);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (!loop) set_up();
  if (size == 0) return 0;
  if (data[0] % 2) fuzz_server(data + 1, size - 1);
  else fuzz_client(data + 1, size - 1);
  return 0;
}
