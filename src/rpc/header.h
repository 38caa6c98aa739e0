// header.h — Values of gRPC's HTTP/2 headers: timeouts, percent-encoded messages. Pure functions.
#ifndef WEIR_RPC_HEADER_H_
#define WEIR_RPC_HEADER_H_

#include "base/base.h"
#include "base/string.h"

// Longer messages are cut, as TensorFlow's servers do: proxies and clients limit header sizes.
// Those of other letters than ASCII's are cut earlier.
#define WEIR_RPC_MAX_STATUS_MESSAGE 3072

// "301m" → nanoseconds. False when malformed.
bool weir_rpc_timeout_parse(weir_view_t text, int64_t* out_ns);
#define WEIR_RPC_TIMEOUT_TEXT_SIZE 16
void weir_rpc_timeout_format(int64_t ns, char out_text[WEIR_RPC_TIMEOUT_TEXT_SIZE]);

void weir_rpc_percent_encode(weir_strbuf_t* out, weir_view_t text);  // cut to the length above
void weir_rpc_percent_decode(weir_strbuf_t* out, weir_view_t text);  // a stray % stays as it is

#endif  // WEIR_RPC_HEADER_H_
