// http_parse.h — Reads HTTP/1.1 requests piece by piece, as they come: the head, then a body of
// known length or in chunks. Bounded, and strict where laxness lets a request hide in another.
//
// Thread-confined. Zero-initialise, then weir_http_parser_reset.
#ifndef WEIR_RPC_HTTP_PARSE_H_
#define WEIR_RPC_HTTP_PARSE_H_

#include "base/base.h"
#include "base/string.h"

#define WEIR_HTTP_HEAD_LIMIT ((size_t)16384)

typedef struct weir_http_request_t {
  weir_view_t method;                       // "GET"
  weir_view_t path;                         // without its query
  weir_view_t query;                        // empty: none
  weir_view_t authorization, content_type;  // values of header fields; empty: none
  weir_view_t body;
} weir_http_request_t;

typedef enum weir_http_state_t {
  WEIR_HTTP_HEAD,
  WEIR_HTTP_BODY,        // of a length that was told
  WEIR_HTTP_CHUNK_SIZE,  // a line with the size of the next chunk
  WEIR_HTTP_CHUNK,
  WEIR_HTTP_CHUNK_END,  // the line's end behind a chunk
  WEIR_HTTP_TRAILER,    // fields after the last chunk, which nobody reads
  WEIR_HTTP_DONE,
  WEIR_HTTP_BAD,  // |code| says why; what follows cannot be told from it
} weir_http_state_t;

typedef struct weir_http_parser_t {
  weir_http_state_t state;
  int code;                     // BAD: the status code to answer with
  size_t max_body_size;         // set by the caller, before reset
  bool keeps_alive;             // the client wants to go on afterwards
  bool awaits_continue;         // it sends the body only when told to; the caller clears it
  weir_strbuf_t head;           // the request line and the fields, as they came
  weir_strbuf_t body;           // so far
  weir_strbuf_t line;           // of a chunk's size or a trailer, so far
  size_t trailer_size;          // bytes of trailers so far
  uint64_t left;                // bytes of the body or of the chunk that are still to come
  weir_http_request_t request;  // once past the head; |body| when DONE. Views into the above
} weir_http_parser_t;

// Begins a request. Memory is kept, unless the last body was large.
void weir_http_parser_reset(weir_http_parser_t* parser);
void weir_http_parser_free(weir_http_parser_t* parser);
// Takes what it needs of |data| and returns how much that was: all of it, unless the state became
// DONE or BAD.
size_t weir_http_parser_feed(weir_http_parser_t* parser, const char* data, size_t size);

#endif  // WEIR_RPC_HTTP_PARSE_H_
