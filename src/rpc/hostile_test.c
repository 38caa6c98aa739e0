// hostile_test.c — Peers that lie, stall, reset, or speak something else. Frames are made by hand.
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <sys/socket.h>

#include "rpc/rpc_testing.h"

// ---- frames ----
typedef struct peer_t {
  int fd;
  weir_strbuf_t out;  // frames to send
  nghttp2_hd_inflater* inflater;
  // What came back on the stream of interest.
  int http_status, grpc_status;
  bool is_reset, is_closed;
  uint32_t reset_code, goaway_code;
} peer_t;

static void put_frame(weir_strbuf_t* out, int type, int flags, uint32_t stream, const void* data,
                      size_t size) {
  uint8_t head[9] = {(uint8_t)(size >> 16),   (uint8_t)(size >> 8),   (uint8_t)size,
                     (uint8_t)type,           (uint8_t)flags,         (uint8_t)(stream >> 24),
                     (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};
  weir_strbuf_append(out, head, sizeof(head));
  weir_strbuf_append(out, data, size);
}

// A literal header without indexing: no table, no Huffman.
static void put_header(weir_strbuf_t* out, const char* name, const char* value) {
  WEIR_CHECK(strlen(name) < 127 && strlen(value) < 127);
  weir_strbuf_putc(out, 0);
  weir_strbuf_putc(out, (char)strlen(name));
  weir_strbuf_puts(out, name);
  weir_strbuf_putc(out, (char)strlen(value));
  weir_strbuf_puts(out, value);
}

static void put_request(peer_t* peer, uint32_t stream, const char* method, const char* type,
                        int flags) {
  weir_strbuf_t block = {0};
  put_header(&block, ":method", method);
  put_header(&block, ":scheme", "http");
  put_header(&block, ":path", "/weir.Test/Echo");
  put_header(&block, ":authority", "x");
  put_header(&block, "content-type", type);
  put_frame(&peer->out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | flags, stream, block.data,
            block.size);
  weir_strbuf_free(&block);
}

static void put_data(peer_t* peer, uint32_t stream, int flags, const void* data, size_t size) {
  put_frame(&peer->out, NGHTTP2_DATA, flags, stream, data, size);
}

static void peer_send(peer_t* peer) {
  size_t sent = 0;
  while (sent < peer->out.size) {
    ssize_t part = send(peer->fd, peer->out.data + sent, peer->out.size - sent, MSG_NOSIGNAL);
    if (part <= 0) {  // the other side has had enough
      peer->is_closed = true;
      break;
    }
    sent += (size_t)part;
  }
  peer->out.size = 0;
}

static peer_t peer_of(int fd) {
  peer_t peer = {.fd = fd, .grpc_status = -1};
  assert_int_equal(nghttp2_hd_inflate_new(&peer.inflater), 0);
  return peer;
}

static peer_t peer_connect(int port) {
  struct sockaddr_in name = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  assert_true(fd >= 0);
  assert_int_equal(connect(fd, (struct sockaddr*)&name, sizeof(name)), 0);
  peer_t peer = peer_of(fd);
  weir_strbuf_append(&peer.out, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
  put_frame(&peer.out, NGHTTP2_SETTINGS, 0, 0, "", 0);
  return peer;
}

static void peer_close(peer_t* peer) {
  close(peer->fd);
  weir_strbuf_free(&peer->out);
  nghttp2_hd_inflate_del(peer->inflater);
}

// ---- reading what came back ----
static bool read_all(peer_t* peer, uint8_t* data, size_t size) {
  for (size_t done = 0; done < size;) {
    struct pollfd poll_fd = {.fd = peer->fd, .events = POLLIN};
    assert_int_equal(poll(&poll_fd, 1, 60000), 1);
    ssize_t part = recv(peer->fd, data + done, size - done, 0);
    if (part <= 0) return false;
    done += (size_t)part;
  }
  return true;
}

static void read_headers(peer_t* peer, uint8_t* data, size_t size) {
  int flags = 0;
  do {
    nghttp2_nv pair;
    ssize_t part = nghttp2_hd_inflate_hd2(peer->inflater, &pair, &flags, data, size, 1);
    assert_true(part >= 0);
    data += part;
    size -= (size_t)part;
    if (!(flags & NGHTTP2_HD_INFLATE_EMIT)) continue;
    weir_view_t name = weir_view(pair.name, pair.namelen);
    if (weir_view_is(name, ":status")) peer->http_status = atoi((const char*)pair.value);
    if (weir_view_is(name, "grpc-status")) peer->grpc_status = atoi((const char*)pair.value);
  } while (!(flags & NGHTTP2_HD_INFLATE_FINAL));
  nghttp2_hd_inflate_end_headers(peer->inflater);
}

// Reads frames until |stream| ends, one way or another. Returns the type of the last frame; -1 when
// the connection was closed. Stream 0: until it is closed.
static int peer_read(peer_t* peer, uint32_t stream) {
  for (;;) {
    uint8_t head[9];
    if (!read_all(peer, head, sizeof(head))) break;
    size_t size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    uint32_t id =
        (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8];
    uint8_t* body = weir_malloc(size);
    assert_non_null(body);
    if (!read_all(peer, body, size)) {
      weir_free(body);
      break;
    }
    if (head[3] == NGHTTP2_HEADERS) read_headers(peer, body, size);
    if (head[3] == NGHTTP2_RST_STREAM && id == stream) {
      peer->is_reset = true;
      memcpy(&peer->reset_code, body, 4);
      peer->reset_code = ntohl(peer->reset_code);
    }
    if (head[3] == NGHTTP2_GOAWAY && size >= 8) {
      memcpy(&peer->goaway_code, body + 4, 4);
      peer->goaway_code = ntohl(peer->goaway_code);
    }
    weir_free(body);
    bool is_end = head[3] <= NGHTTP2_HEADERS && (head[4] & NGHTTP2_FLAG_END_STREAM);
    if (stream && id == stream && (is_end || peer->is_reset)) return head[3];
  }
  peer->is_closed = true;
  return -1;
}

// ---- clients that misbehave ----
static void open_world(world_t* world) {
  world_open(world, (weir_rpc_loop_options_t){.memory_budget = (uint64_t)16 << 30});
  world_serve(world, (weir_rpc_server_options_t){.address = "127.0.0.1:0"});
}

static void expect_alive(world_t* world) {
  weir_rpc_channel_t* channel = channel_to(world->loop, weir_rpc_server_address(world->server));
  expect_call(channel, "/weir.Test/Echo", "alive", NULL, WEIR_OK, "alive");
  weir_rpc_channel_destroy(channel);
}

// One request with |body| as its DATA; returns grpc-status (or minus the HTTP status).
static int answer_to(world_t* world, const char* method, const char* type, const void* body,
                     size_t size) {
  peer_t peer = peer_connect(weir_rpc_server_port(world->server));
  put_request(&peer, 1, method, type, 0);
  put_data(&peer, 1, NGHTTP2_FLAG_END_STREAM, body, size);
  peer_send(&peer);
  peer_read(&peer, 1);
  peer_close(&peer);
  return peer.http_status == 200 ? peer.grpc_status : -peer.http_status;
}

static void test_lies(void** state) {
  (void)state;
  world_t world;
  open_world(&world);
  const char* grpc = "application/grpc+proto";
  assert_int_equal(answer_to(&world, "POST", grpc, "\0\0\0\0\3abc", 8), WEIR_OK);
  // Less than announced, nothing, half a prefix, more than announced, two messages.
  assert_int_equal(answer_to(&world, "POST", grpc, "\0\0\0\0\7abc", 8), WEIR_INTERNAL);
  assert_int_equal(answer_to(&world, "POST", grpc,
                             "\0\x10\0\0\0"
                             "abc",
                             8),
                   WEIR_INTERNAL);
  assert_int_equal(answer_to(&world, "POST", grpc, "", 0), WEIR_INTERNAL);
  assert_int_equal(answer_to(&world, "POST", grpc, "\0\0", 2), WEIR_INTERNAL);
  assert_int_equal(answer_to(&world, "POST", grpc, "\0\0\0\0\1abc", 8), WEIR_UNIMPLEMENTED);
  assert_int_equal(answer_to(&world, "POST", grpc, "\0\0\0\0\0\0\0\0\0\0", 10), WEIR_UNIMPLEMENTED);
  // Compressed; a flag that does not exist.
  assert_int_equal(answer_to(&world, "POST", grpc, "\1\0\0\0\1a", 6), WEIR_UNIMPLEMENTED);
  assert_int_equal(answer_to(&world, "POST", grpc, "\7\0\0\0\1a", 6), WEIR_INTERNAL);
  // Not gRPC.
  assert_int_equal(answer_to(&world, "POST", "text/plain", "\0\0\0\0\1a", 6), -415);
  assert_int_equal(answer_to(&world, "GET", grpc, "", 0), -405);
  expect_alive(&world);
  world_close(&world);
}

static void test_padding_and_pieces(void** state) {
  (void)state;
  world_t world;
  open_world(&world);
  peer_t peer = peer_connect(weir_rpc_server_port(world.server));
  put_request(&peer, 1, "POST", "application/grpc", 0);
  // One byte a frame, some padded, some empty; then the end alone.
  const char body[] = "\0\0\0\0\4wxyz";
  for (size_t i = 0; i + 1 < sizeof(body); ++i) {
    const char padded[] = {3, body[i], 0, 0, 0};
    if (i % 2) put_data(&peer, 1, NGHTTP2_FLAG_PADDED, padded, sizeof(padded));
    else put_data(&peer, 1, 0, body + i, 1);
    put_data(&peer, 1, 0, "", 0);
    peer_send(&peer);
    usleep(2000);
  }
  put_data(&peer, 1, NGHTTP2_FLAG_END_STREAM, "", 0);
  peer_send(&peer);
  assert_int_equal(peer_read(&peer, 1), NGHTTP2_HEADERS);
  assert_int_equal(peer.grpc_status, WEIR_OK);
  peer_close(&peer);
  world_close(&world);
}

static void test_stalls(void** state) {
  (void)state;
  world_t world;
  open_world(&world);
  enum { PEERS = 20 };
  peer_t peers[PEERS];
  for (int i = 0; i < PEERS; ++i) {
    // Each announces 256 MiB, sends a little and stops; one does not even finish the preface.
    peers[i] = peer_connect(weir_rpc_server_port(world.server));
    if (i == 0) peers[i].out.size = 10;
    put_request(&peers[i], 1, "POST", "application/grpc", 0);
    put_data(&peers[i], 1, 0,
             "\0\x10\0\0\0"
             "abc",
             8);
    if (i == 0) peers[i].out.size = 10;
    peer_send(&peers[i]);
  }
  expect_alive(&world);
  for (int i = 0; i < PEERS / 2; ++i) peer_close(&peers[i]);
  expect_alive(&world);
  weir_rpc_server_shutdown(world.server, 20);  // the others are still connected
  for (int i = PEERS / 2; i < PEERS; ++i) peer_close(&peers[i]);
  world_close(&world);
}

// A peer that holds all the memory and stops gives way to others.
static void test_stall_timeout(void** state) {
  (void)state;
  world_t world;
  world_open(&world,
             (weir_rpc_loop_options_t){.memory_budget = (uint64_t)1 << 20, .stall_timeout_ms = 50});
  world_serve(&world, (weir_rpc_server_options_t){.address = "127.0.0.1:0"});
  peer_t peer = peer_connect(weir_rpc_server_port(world.server));
  put_request(&peer, 1, "POST", "application/grpc", 0);
  put_data(&peer, 1, 0, "\0\0\x10\0\0x", 6);
  peer_send(&peer);
  usleep(200000);  // nobody waits yet, so it may
  char* text = weir_malloc(600001);
  assert_non_null(text);
  memset(text, 'y', 600000);
  text[600000] = '\0';
  weir_rpc_channel_t* channel = channel_to(world.loop, weir_rpc_server_address(world.server));
  expect_call(channel, "/weir.Test/Echo", text, NULL, WEIR_OK, text);
  peer_read(&peer, 1);
  assert_int_equal(peer.grpc_status, WEIR_ABORTED);
  weir_free(text);
  weir_rpc_channel_destroy(channel);
  peer_close(&peer);
  world_close(&world);
}

static void test_resets(void** state) {
  (void)state;
  world_t world;
  open_world(&world);
  peer_t peer = peer_connect(weir_rpc_server_port(world.server));
  for (uint32_t id = 1; id < 6001; id += 2) {
    put_request(&peer, id, "POST", "application/grpc", 0);
    put_data(&peer, id, id % 3 ? 0 : NGHTTP2_FLAG_END_STREAM, "\0\0\0\0\3abc", 8);
    put_frame(&peer.out, NGHTTP2_RST_STREAM, 0, id, "\0\0\0\x8", 4);
  }
  peer_send(&peer);
  put_request(&peer, 6001, "POST", "application/grpc", 0);
  put_data(&peer, 6001, NGHTTP2_FLAG_END_STREAM, "\0\0\0\0\3abc", 8);
  peer_send(&peer);
  assert_int_equal(peer_read(&peer, 6001), NGHTTP2_HEADERS);
  assert_int_equal(peer.grpc_status, WEIR_OK);
  peer_close(&peer);
  expect_alive(&world);
  world_close(&world);
}

static void expect_dropped(world_t* world, const void* bytes, size_t size, bool with_preface) {
  peer_t peer = peer_connect(weir_rpc_server_port(world->server));
  if (!with_preface) peer.out.size = 0;
  weir_strbuf_append(&peer.out, bytes, size);
  peer_send(&peer);
  assert_int_equal(peer_read(&peer, 0), -1);
  peer_close(&peer);
  expect_alive(world);
}

static void test_garbage(void** state) {
  (void)state;
  world_t world;
  open_world(&world);
  const char http1[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  expect_dropped(&world, http1, sizeof(http1) - 1, false);
  char noise[4096];
  for (size_t i = 0; i < sizeof(noise); ++i) noise[i] = (char)(i * 2654435761u >> 13);
  expect_dropped(&world, noise, sizeof(noise), false);
  expect_dropped(&world, "\0\0\x08\0\1\0\0\0\0abcdefgh", 17, true);        // DATA on stream 0
  expect_dropped(&world, "\0\0\4\1\4\0\0\0\1\x80\x80\x80\x80", 13, true);  // bad HPACK
  world_close(&world);
}

static void test_header_flood(void** state) {
  (void)state;
  world_t world;
  open_world(&world);
  peer_t peer = peer_connect(weir_rpc_server_port(world.server));
  weir_strbuf_t block = {0};
  put_header(&block, ":method", "POST");
  put_header(&block, ":scheme", "http");
  put_header(&block, ":path", "/weir.Test/Echo");
  put_header(&block, "content-type", "application/grpc");
  // 3,000 times the same indexed header: few bytes on the wire, many in memory.
  weir_strbuf_append(&block,
                     "\x40\x04name\x20"
                     "0123456789abcdef0123456789abcdef",
                     39);
  for (int i = 0; i < 3000; ++i) weir_strbuf_putc(&block, (char)(0x80 | 62));
  put_frame(&peer.out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, block.data, block.size);
  weir_strbuf_free(&block);
  peer_send(&peer);
  peer_read(&peer, 1);
  assert_true(peer.is_reset);
  peer_close(&peer);
  expect_alive(&world);
  world_close(&world);
}

// ---- floods: many times what costs next to nothing ----
enum { FLOOD = 2000000, BLOCKS = 10000 };  // at most; most end at a twentieth of it

static void put_empty_data(peer_t* peer, int i) {
  if (i == 0) put_request(peer, 1, "POST", "application/grpc", 0);
  put_data(peer, 1, 0, "", 0);
}
static void put_tiny_data(peer_t* peer, int i) {
  if (i == 0) put_request(peer, 1, "POST", "application/grpc", 0);
  put_data(peer, 1, 0, i == 0 ? "\0\0\x10\0\0" : "x", i == 0 ? 5 : 1);
}
static void put_late_data(peer_t* peer, int i) {  // for a call that has failed
  if (i == 0) put_request(peer, 1, "POST", "application/grpc", 0);
  put_data(peer, 1, 0, "\7\7\7\7\7", 5);
}
static void put_late_end(peer_t* peer, int i) {  // and it knows that it has
  if (i == 0) {
    put_late_data(peer, 0);
    peer_send(peer);
    for (int k = 0; k < 2; ++k) peer_read(peer, 1);  // the answer, then the reset
  }
  put_data(peer, 1, NGHTTP2_FLAG_END_STREAM, "\7\7\7\7\7", 5);
}
static void put_window_update(peer_t* peer, int i) {
  (void)i;
  put_frame(&peer->out, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\1", 4);
}
static void put_priority(peer_t* peer, int i) {
  (void)i;
  put_frame(&peer->out, NGHTTP2_PRIORITY, 0, 1, "\0\0\0\3\1", 5);
}
static void put_settings(peer_t* peer, int i) {
  (void)i;
  put_frame(&peer->out, NGHTTP2_SETTINGS, 0, 0, "", 0);
}
static void put_settings_ack(peer_t* peer, int i) {
  (void)i;
  put_frame(&peer->out, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, "", 0);
}
static void put_ping_ack(peer_t* peer, int i) {
  (void)i;
  put_frame(&peer->out, NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, "pingping", 8);
}
static void put_unknown(peer_t* peer, int i) {
  (void)i;
  put_frame(&peer->out, 0xfe, 0, 0, "", 0);
}
static void put_bad_request(peer_t* peer, int i) {  // it is reset for its missing headers
  put_frame(&peer->out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM,
            (uint32_t)(2 * i + 1), "\x83", 1);
}
// |count| times a header that is put into the table first.
static void put_references_to(peer_t* peer, int i, const char* field, size_t size, int count) {
  weir_strbuf_t block = {0};
  put_header(&block, ":method", "POST");
  put_header(&block, ":scheme", "http");
  put_header(&block, ":path", "/weir.Test/Echo");
  put_header(&block, "content-type", "application/grpc");
  if (i == 0) weir_strbuf_append(&block, field, size);
  for (int k = 0; k < count; ++k) weir_strbuf_putc(&block, (char)(0x80 | 62));
  put_frame(&peer->out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM,
            (uint32_t)(2 * i + 1), block.data, block.size);
  weir_strbuf_free(&block);
}
static void put_references(peer_t* peer, int i) {
  put_references_to(peer, i, "\x40\x04name\x04text", 11, 5000);
}
static void put_invalid_references(peer_t* peer, int i) {  // nghttp2 passes over such a value
  put_references_to(peer, i, "\x40\x04name\x04\0\0\0\0", 11, 300);
}
static void put_references_of_none(peer_t* peer, int i) {  // it is refused at the first of them
  put_references_to(peer, i, "\x40\x05:none\x04text", 12, 10000);
}
static void put_late_headers(peer_t* peer, int i) {  // the second time, for a call that was reset
  if (i == 0) put_request(peer, 1, "POST", "application/grpc", 0);
  put_frame(&peer->out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, "\x83", 1);
}

// Ended with GOAWAY, which nghttp2 leaves out where it ends a flood itself.
static void expect_calmed(world_t* world, void (*put)(peer_t* peer, int i), int count,
                          bool is_ours) {
  peer_t peer = peer_connect(weir_rpc_server_port(world->server));
  for (int i = 0; i < count && !peer.is_closed; ++i) {
    put(&peer, i);
    if (peer.out.size > 100000) peer_send(&peer);
  }
  uint32_t id = 2 * FLOOD + 1;
  put_request(&peer, id, "POST", "application/grpc", 0);
  put_data(&peer, id, NGHTTP2_FLAG_END_STREAM, "\0\0\0\0\3abc", 8);
  peer_send(&peer);
  assert_int_equal(peer_read(&peer, id), -1);
  if (is_ours) assert_int_equal(peer.goaway_code, NGHTTP2_ENHANCE_YOUR_CALM);
  peer_close(&peer);
  expect_alive(world);
}

static void test_floods(void** state) {
  (void)state;
  world_t world;
  open_world(&world);
  expect_calmed(&world, put_empty_data, FLOOD, true);
  expect_calmed(&world, put_tiny_data, FLOOD, true);
  expect_calmed(&world, put_late_data, FLOOD, true);
  expect_calmed(&world, put_late_end, FLOOD, true);
  expect_calmed(&world, put_window_update, FLOOD, true);
  expect_calmed(&world, put_priority, FLOOD, true);
  expect_calmed(&world, put_settings, FLOOD, false);
  expect_calmed(&world, put_settings_ack, FLOOD, false);
  expect_calmed(&world, put_ping_ack, FLOOD, true);
  expect_calmed(&world, put_unknown, FLOOD, true);
  expect_calmed(&world, put_bad_request, FLOOD, false);
  expect_calmed(&world, put_late_headers, FLOOD, true);
  expect_calmed(&world, put_references, BLOCKS, true);
  expect_calmed(&world, put_invalid_references, BLOCKS, true);
  expect_calmed(&world, put_references_of_none, BLOCKS / 10, false);
  world_close(&world);
}

// A block of headers in endless pieces.
static void test_continuations(void** state) {
  (void)state;
  world_t world;
  open_world(&world);
  peer_t peer = peer_connect(weir_rpc_server_port(world.server));
  put_frame(&peer.out, NGHTTP2_HEADERS, 0, 1, "\x83", 1);
  for (int i = 0; i < FLOOD / 8; ++i) put_frame(&peer.out, NGHTTP2_CONTINUATION, 0, 1, "", 0);
  put_frame(&peer.out, NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, 1, "", 0);
  peer_send(&peer);
  assert_int_equal(peer_read(&peer, 1), -1);
  peer_close(&peer);
  expect_alive(&world);
  world_close(&world);
}

// Many small calls, each with all that real clients send along, are no flood.
static void test_busy_client(void** state) {
  (void)state;
  world_t world;
  open_world(&world);
  peer_t peer = peer_connect(weir_rpc_server_port(world.server));
  uint32_t id = 1;
  for (int i = 0; i < 60000; ++i, id += 2) {
    put_request(&peer, id, "POST", "application/grpc", 0);
    put_data(&peer, id, 0, "\0\0\0\0\3abc", 8);
    put_data(&peer, id, NGHTTP2_FLAG_END_STREAM, "", 0);
    put_frame(&peer.out, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\x08", 4);
    put_frame(&peer.out, NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, "pingping", 8);
    if (i % 100 != 99) continue;
    peer_send(&peer);
    assert_int_equal(peer_read(&peer, id), NGHTTP2_HEADERS);
    assert_int_equal(peer.grpc_status, WEIR_OK);
  }
  peer_close(&peer);
  world_close(&world);
}

// ---- servers that misbehave ----
typedef struct script_t {
  int listener;
  int port;
  const char* bytes;  // sent after the client's request
  size_t size;
  bool says_settings;  // before that
  bool stays;          // open until told
  int connection_count;
  int keepalive_ms;  // of the client
  pthread_t thread;
} script_t;

// Reads until the client has sent a HEADERS frame, or nothing more comes.
static void wait_for_request(peer_t* peer) {
  uint8_t preface[NGHTTP2_CLIENT_MAGIC_LEN], head[9] = {0};
  if (!read_all(peer, preface, sizeof(preface))) return;
  while (head[3] != NGHTTP2_HEADERS && read_all(peer, head, sizeof(head))) {
    size_t size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    uint8_t* body = weir_malloc(size);
    if (!body || !read_all(peer, body, size)) head[3] = NGHTTP2_HEADERS;
    weir_free(body);
  }
}

static void* serve_script(void* arg) {
  script_t* script = arg;
  for (int i = 0; i < script->connection_count; ++i) {
    peer_t peer = peer_of(accept(script->listener, NULL, NULL));
    if (script->says_settings) {
      put_frame(&peer.out, NGHTTP2_SETTINGS, 0, 0, "", 0);
      peer_send(&peer);
      wait_for_request(&peer);
    }
    weir_strbuf_append(&peer.out, script->bytes, script->size);
    peer_send(&peer);
    if (script->stays) peer_read(&peer, 0);
    peer_close(&peer);
  }
  return NULL;
}

static void expect_script(script_t script, weir_code_t code, const char* text) {
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof(name);
  script.listener = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(script.listener, (struct sockaddr*)&name, size), 0);
  assert_int_equal(listen(script.listener, 5), 0);
  assert_int_equal(getsockname(script.listener, (struct sockaddr*)&name, &size), 0);
  if (!script.connection_count) script.connection_count = 1;
  assert_int_equal(pthread_create(&script.thread, NULL, serve_script, &script), 0);
  world_t world;
  world_open(&world, (weir_rpc_loop_options_t){0});
  char address[32];
  snprintf(address, sizeof(address), "127.0.0.1:%d", ntohs(name.sin_port));
  weir_rpc_channel_options_t channel_options = {.address = address,
                                                .keepalive_ms = script.keepalive_ms};
  weir_rpc_channel_t* channel = NULL;
  assert_null(weir_rpc_channel_create(world.loop, &channel_options, &channel));
  bool is_silent = script.stays && !script.keepalive_ms;
  weir_rpc_call_options_t options = {.deadline_ns = from_now_ms(is_silent ? 1000 : 60000)};
  expect_call(channel, "/weir.Test/Echo", "x", &options, code, text);
  weir_rpc_channel_destroy(channel);
  world_close(&world);
  pthread_join(script.thread, NULL);
  close(script.listener);
}

// HEADERS :status 200 without END_STREAM on stream 1; 0x88 is that header in the static table.
#define RESPONSE "\0\0\1\1\4\0\0\0\1\x88"
#define TRAILER_OK                          \
  "\0\0\x0f\1\5\0\0\0\1\0\x0bgrpc-status\1" \
  "0"
#define GOAWAY_ALL "\0\0\x08\7\0\0\0\0\0\0\0\0\0\0\0\0\0"  // last stream 0, no error

static void test_bad_servers(void** state) {
  (void)state;
#define SCRIPT(text) .bytes = text, .size = sizeof(text) - 1
  expect_script((script_t){SCRIPT("")}, WEIR_UNAVAILABLE, "cannot connect");
  expect_script((script_t){SCRIPT("HTTP/1.1 400 Bad Request\r\n\r\n")}, WEIR_UNAVAILABLE, NULL);
  expect_script((script_t){SCRIPT(""), .says_settings = true}, WEIR_UNAVAILABLE, NULL);
  expect_script((script_t){SCRIPT(""), .says_settings = true, .stays = true},
                WEIR_DEADLINE_EXCEEDED, NULL);
  expect_script((script_t){SCRIPT(RESPONSE), .says_settings = true, .stays = true},
                WEIR_DEADLINE_EXCEEDED, NULL);
  expect_script((script_t){SCRIPT(""), .says_settings = true, .stays = true, .keepalive_ms = 40},
                WEIR_UNAVAILABLE, "does not answer");
  // No message; less than announced; another kind of stream end.
  expect_script((script_t){SCRIPT(RESPONSE TRAILER_OK), .says_settings = true}, WEIR_INTERNAL,
                "before its message was complete");
  expect_script((script_t){SCRIPT(RESPONSE "\0\0\6\0\0\0\0\0\1\0\0\0\0\2x" TRAILER_OK),
                           .says_settings = true},
                WEIR_INTERNAL, "before its message was complete");
  expect_script((script_t){SCRIPT(RESPONSE "\0\0\6\0\0\0\0\0\1\0\0\0\0\1x" TRAILER_OK),
                           .says_settings = true},
                WEIR_OK, "x");
  expect_script((script_t){SCRIPT(RESPONSE "\0\0\6\0\0\0\0\0\1\1\0\0\0\1x"), .says_settings = true},
                WEIR_UNIMPLEMENTED, "compressed");
  expect_script((script_t){SCRIPT(RESPONSE "\0\0\0\0\1\0\0\0\1"), .says_settings = true},
                WEIR_UNKNOWN, "HTTP status 200");
  expect_script((script_t){SCRIPT("\0\0\4\3\0\0\0\0\1\0\0\0\x0b"), .says_settings = true},
                WEIR_RESOURCE_EXHAUSTED, NULL);
  // Refused calls are made again, elsewhere; in the end the client gives up.
  expect_script((script_t){SCRIPT(GOAWAY_ALL), .says_settings = true, .connection_count = 5},
                WEIR_UNAVAILABLE, NULL);
}

// ---- no memory ----
// Whichever allocation fails, of client or server, the call ends soon, and the next one works.
static void test_out_of_memory(void** state) {
  (void)state;
  world_t world;
  open_world(&world);
  int failed_count = 0;
  for (int n = 1; n < 150; ++n) {
    weir_rpc_channel_t* channel = channel_to(world.loop, weir_rpc_server_address(world.server));
    weir_rpc_call_options_t options = {.deadline_ns = from_now_ms(20000)};
    outcome_t outcome;
    weir_alloc_fail_at(n, false);
    outcome_start(&outcome, channel, "/weir.Test/PoolEcho", "x", &options, NULL);
    assert_true(event_wait(&outcome.event, 1));
    weir_alloc_fail_at(0, false);
    weir_code_t code = weir_status_code(outcome.status);
    bool is_expected =
        code == WEIR_OK || code == WEIR_RESOURCE_EXHAUSTED || code == WEIR_UNAVAILABLE;
    if (!is_expected) print_message("%d: %s\n", n, weir_status_message(outcome.status));
    assert_true(is_expected);
    failed_count += code != WEIR_OK;
    outcome_expect(&outcome, code, NULL);
    options.deadline_ns = from_now_ms(20000);
    options.wait_for_ready = true;
    expect_call(channel, "/weir.Test/Echo", "y", &options, WEIR_OK, "y");
    weir_rpc_channel_destroy(channel);
  }
  assert_true(failed_count > 10);
  world_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lies),         cmocka_unit_test(test_padding_and_pieces),
      cmocka_unit_test(test_stalls),       cmocka_unit_test(test_stall_timeout),
      cmocka_unit_test(test_resets),       cmocka_unit_test(test_garbage),
      cmocka_unit_test(test_header_flood), cmocka_unit_test(test_bad_servers),
      cmocka_unit_test(test_floods),       cmocka_unit_test(test_continuations),
      cmocka_unit_test(test_busy_client),  cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
