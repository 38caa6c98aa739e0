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
  BYTES_A_COST = 16,    // and of one whose size is known
  HEADERS_GAIN = 2,     // for HEADERS to the peer: they answer its own and the end of its request
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

// Whether headers are for a stream that is gone, or more than any stream may have: nghttp2 decodes
// them without a word, for the sake of the table.
static bool are_for_nobody(weir_rpc_conn_t* conn, size_t size, uint32_t id) {
  if (size > WEIR_RPC_MAX_HEADER_BYTES) return true;
  if (nghttp2_session_get_stream_user_data(conn->session, (int32_t)id)) return false;
  return !conn->is_server || (int32_t)id <= nghttp2_session_get_last_proc_stream_id(conn->session);
}

static void frame_came(weir_rpc_conn_t* conn, size_t size, const uint8_t* head) {
  int type = head[3];
  bool has_headers = type == NGHTTP2_HEADERS || type == NGHTTP2_CONTINUATION;
  uint32_t id = ((uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 |
                 (uint32_t)head[8]) &
                INT32_MAX;
  if (type == NGHTTP2_DATA && size >= SMALL_DATA) return;
  bool is_lost = has_headers && are_for_nobody(conn, size, id);
  use_up(conn, is_lost ? 1 + (int64_t)(size / BYTES_A_COST) : 1);
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
        frame_came(conn, flood->payload_left, head);
      }
    }
    data += part;
    size -= part;
  }
}

void weir_rpc_flood_frame_sent(weir_rpc_conn_t* conn, const nghttp2_frame* frame) {
  if (frame->hd.type == NGHTTP2_HEADERS) give_back(&conn->flood, HEADERS_GAIN);
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
