// token.h — The secret that the tasks and clients of a cluster share, sent with every call as
// "authorization: Bearer …".
//
// It is in a file, a line of which is a token: the first is sent, all are taken. The file is looked
// at again while it is used, so that secrets can be changed without ending anything: first the new
// one is added to all files, then it is made the first of each, then the old one is removed.
//
// Thread-safe.
#ifndef WEIR_RPC_TOKEN_H_
#define WEIR_RPC_TOKEN_H_

#include "base/base.h"
#include "base/string.h"

typedef struct weir_rpc_token_t weir_rpc_token_t;

// INVALID_ARGUMENT naming the file when it cannot be read, has no line or too many, or one that is
// too short to be a secret, too long for a header, or has bytes that no header may bear. Warns of a
// file that every user can read.
WEIR_MUST_USE weir_status_t* weir_rpc_token_open(const char* path, weir_rpc_token_t** out_token);
weir_rpc_token_t* weir_rpc_token_retain(weir_rpc_token_t* token);  // NULL: nothing, as below
void weir_rpc_token_release(weir_rpc_token_t* token);  // leaves no trace of it in memory

enum { WEIR_RPC_TOKEN_HEADER_SIZE = 1024 + 16 };
// Writes the header's value, "Bearer …". The caller forgets it (weir_rpc_token_forget).
void weir_rpc_token_header(weir_rpc_token_t* token, char out_value[WEIR_RPC_TOKEN_HEADER_SIZE]);
void weir_rpc_token_forget(char value[WEIR_RPC_TOKEN_HEADER_SIZE]);
// Whether |value| of an authorization header bears a token. The time it takes tells nothing of how
// much of it was right.
bool weir_rpc_token_is_in(weir_rpc_token_t* token, weir_view_t value);

#endif  // WEIR_RPC_TOKEN_H_
