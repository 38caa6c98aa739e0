// flood.c — Peers that keep a connection busy with next to nothing: empty frames, settings, pings,
// priorities, window updates, references to headers, requests that are reset. Each costs them a few
// bytes and bears no limit of its own.
#include "rpc/connection.h"

enum {
  PATIENCE = 100000,  // at the start, and never more
  PATIENCE_A_SECOND = 10000,
  SMALL_DATA = 64,      // bytes of a DATA frame below which it is next to nothing
  FREE_HEADERS = 64,    // of a stream
  BLOCK_COST = 1000,    // of a block of headers that is decoded only to be thrown away
  DATA_GAIN = 4,        // for a DATA frame to the peer: it may answer with window update and ping
  BYTES_A_GAIN = 1024,  // and more for a large one
};

void weir_rpc_flood_init(weir_rpc_conn_t* conn) {
  conn->flood = (weir_rpc_flood_t){.patience = PATIENCE,
                                   .since_ns = weir_clock_ns(),
                                   .payload_left = conn->is_server ? NGHTTP2_CLIENT_MAGIC_LEN : 0};
}

static void give_back(weir_rpc_flood_t* flood, int64_t gain) {
  flood->patience = WEIR_MIN(flood->patience + gain, (int64_t)PATIENCE);
}

// Time counts only when there is no patience left, so that honest peers cost no look at the clock.
static void use_up(weir_rpc_conn_t* conn, int64_t cost) {
  weir_rpc_flood_t* flood = &conn->flood;
  flood->patience -= cost;
  if (flood->patience >= 0 || conn->fault) return;
  int64_t now = weir_clock_ns();
  give_back(flood, (now - flood->since_ns) / (1000000000 / PATIENCE_A_SECOND));
  flood->since_ns = now;
  if (flood->patience >= 0) return;
  // Without memory for it, the connection ends without a word.
  (void)nghttp2_session_terminate_session(conn->session, NGHTTP2_ENHANCE_YOUR_CALM);
  weir_rpc_conn_fault(
      conn, WEIR_STATUS(UNAVAILABLE, "%s floods the connection with frames that carry nothing",
                        conn->peer));
}

static void frame_came(weir_rpc_conn_t* conn, size_t size, int type, int flags) {
  bool is_small = size < SMALL_DATA && !(flags & NGHTTP2_FLAG_END_STREAM);
  if (type == NGHTTP2_HEADERS) return;  // opens a call, or is reset, which counts
  if (type == NGHTTP2_DATA && !is_small) return;
  use_up(conn, 1);
}

void weir_rpc_flood_look(weir_rpc_conn_t* conn, const uint8_t* data, size_t size) {
  weir_rpc_flood_t* flood = &conn->flood;
  while (size > 0 && !conn->fault) {
    size_t part = WEIR_MIN(size, flood->payload_left);
    flood->payload_left -= part;
    if (part == 0) {
      uint8_t* head = flood->head;
      part = WEIR_MIN(size, sizeof(flood->head) - flood->head_size);
      memcpy(head + flood->head_size, data, part);
      flood->head_size += part;
      if (flood->head_size == sizeof(flood->head)) {
        flood->head_size = 0;
        flood->payload_left = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        frame_came(conn, flood->payload_left, head[3], head[4]);
      }
    }
    data += part;
    size -= part;
  }
}

void weir_rpc_flood_frame_sent(weir_rpc_conn_t* conn, const nghttp2_frame* frame) {
  if (frame->hd.type == NGHTTP2_DATA)
    give_back(&conn->flood, DATA_GAIN + (int64_t)(frame->hd.length / BYTES_A_GAIN));
  if (frame->hd.type != NGHTTP2_RST_STREAM || !conn->is_server) return;
  uint32_t error = frame->rst_stream.error_code;
  // nghttp2 refuses headers that are no request in the midst of their block; the rest, of any
  // length, it decodes without a word.
  if (error == NGHTTP2_PROTOCOL_ERROR) use_up(conn, BLOCK_COST);
  else if (error != NGHTTP2_NO_ERROR) use_up(conn, 1);
}

void weir_rpc_flood_header_came(weir_rpc_stream_t* stream, bool is_too_much) {
  if (is_too_much) use_up(stream->conn, BLOCK_COST);
  else if (++stream->header_count > FREE_HEADERS) use_up(stream->conn, 1);
}
