// messages.h — What is said to etcd, and what it answers.
//
// Writers append a message to |out|, whose failure is sticky. Readers take an answer as a
// stranger's bytes: a malformed one, or one that does not fit the question, is a status. No state.
#ifndef WEIR_CLUSTER_ETCD_MESSAGES_H_
#define WEIR_CLUSTER_ETCD_MESSAGES_H_

#include "base/base.h"
#include "base/string.h"

// A key as etcd has it. The views point into the answer.
typedef struct weir_etcd_entry_t {
  weir_view_t key, value;
  int64_t revision;  // of etcd's state when the key was last changed
  int64_t lease;     // that the key goes with; 0: none
} weir_etcd_entry_t;
typedef weir_status_t* (*weir_etcd_entry_fn_t)(void* arg, const weir_etcd_entry_t* entry);

// A value to be put under a key.
typedef struct weir_etcd_put_t {
  weir_view_t key, value;
  int64_t lease;  // that it shall go with
} weir_etcd_put_t;

// ---- requests ----
// The key, or with an |end| that is not empty all keys from |key| to before it.
void weir_etcd_write_range(weir_strbuf_t* out, weir_view_t key, weir_view_t end);
void weir_etcd_write_put(weir_strbuf_t* out, const weir_etcd_put_t* put);
// A transaction that puts only if the key was last changed at |revision|; 0: if there is none.
void weir_etcd_write_put_if(weir_strbuf_t* out, const weir_etcd_put_t* put, int64_t revision);
void weir_etcd_write_grant(weir_strbuf_t* out, int64_t seconds);
void weir_etcd_write_revoke(weir_strbuf_t* out, int64_t lease);
void weir_etcd_write_keep_alive(weir_strbuf_t* out, int64_t lease);
// What all keys that begin with |prefix| are before. Empty: there is no such thing.
void weir_etcd_write_end_of(weir_strbuf_t* out, weir_view_t prefix);

// ---- answers ----
// Calls |fn| for each key, in order, until it returns an error.
WEIR_MUST_USE weir_status_t* weir_etcd_read_range(weir_view_t answer, weir_etcd_entry_fn_t fn,
                                                  void* arg);
WEIR_MUST_USE weir_status_t* weir_etcd_read_put_if(weir_view_t answer, bool* out_is_put);
// A lease is never 0, and holds for at least a second.
WEIR_MUST_USE weir_status_t* weir_etcd_read_grant(weir_view_t answer, int64_t* out_lease,
                                                  int64_t* out_seconds);
// |out_seconds| is how long |lease| holds from now on; 0: there is no such lease any more.
WEIR_MUST_USE weir_status_t* weir_etcd_read_keep_alive(weir_view_t answer, int64_t lease,
                                                       int64_t* out_seconds);

#endif  // WEIR_CLUSTER_ETCD_MESSAGES_H_
