// token.h — The secret that the tasks and clients of a cluster share, sent with every call as
// "authorization: Bearer …".
//
// Thread-safe: there is no state.
#ifndef WEIR_RPC_TOKEN_H_
#define WEIR_RPC_TOKEN_H_

#include "base/base.h"
#include "base/string.h"

// Reads a token out of |path|: its letters without the white space around them. The caller frees
// it. INVALID_ARGUMENT naming the file when it cannot be read, is too short to be a secret, too
// long for a header or has bytes that no header may bear. Warns of a file that every user can read.
WEIR_MUST_USE weir_status_t* weir_rpc_token_load(const char* path, char** out_token);
void weir_rpc_token_free(char* token);  // leaves no trace of it in memory
// The header's value, "Bearer …"; to be freed as a token.
WEIR_MUST_USE weir_status_t* weir_rpc_token_header(const char* token, char** out_value);
// Whether |value| of an authorization header bears |token|. The time it takes tells nothing of how
// much of it was right.
bool weir_rpc_token_is_in(const char* token, weir_view_t value);

#endif  // WEIR_RPC_TOKEN_H_
