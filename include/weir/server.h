// server.h — Servers: a process as one task of a cluster, speaking TensorFlow's gRPC protocol.
//
// Threading: thread-safe. In a build without the cluster every function that returns a status says
// UNIMPLEMENTED.
#ifndef WEIR_SERVER_H_
#define WEIR_SERVER_H_

#include <stdbool.h>
#include <stdint.h>

#include "weir/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_server_t weir_server_t;

// Zero-initialise; every zero is the default. Strings are borrowed until the server is destroyed.
typedef struct weir_server_options_t {
  // Jobs separated by commas, "job|host:port;host:port"; NULL: what the environment says, if it is
  // asked, else one task, /job:localhost/task:0.
  const char* cluster;
  const char* job;  // which of them this process is; NULL: as the environment has it
  int task;
  const char* bind;      // host to listen on; NULL: 127.0.0.1. "0.0.0.0": every interface
  int port;              // 0: the one the cluster gives this task, else any that is free
  int threads;           // for kernels; 0: one a CPU
  const char* tls_cert;  // PEM files; a certificate turns TLS on
  const char* tls_key;
  const char* tls_ca;  // whom to trust: peers of this server, and clients when mutual
  bool is_tls_mutual;  // clients must have a certificate signed by tls_ca

  // Without |cluster|: TF_CONFIG, then Slurm's variables (SLURM_PROCID and its kin) tell the
  // cluster and the task. Under Slurm |port| is that of the first task on each node (0: 8888).
  bool use_environment;
  const char* jobs;       // Slurm's tasks in order of rank: "ps:1,worker:3"; NULL: all "worker"
  const char* unix_path;  // listen on this Unix socket instead of a port
  int metrics_port;       // HTTP with /metrics and /healthz; 0: none; -1: any that is free
  // The server asks to be ended (weir_server_wait) when the chief (chief:0, master:0 or worker:0)
  // has answered once and then not for so many seconds; 0: never.
  int exit_with_chief_s;
  // The devices of this task, "cpu:2,guard:2" (weir_session_options_t.devices); NULL: one CPU.
  const char* devices;
  // Where its master puts nodes that ask for no device, of graphs that clients give it
  // (weir_session_options_t.place): "graph", "cost", …; NULL: "graph", on its own task.
  const char* place;
  // By cost: a file with the rates of the tasks, as "weir place --print-rates --tasks=…" prints
  // them, read for every session; NULL: the master measures them.
  const char* rates;
  // A file with a secret of one line, 16 letters or more, that this server, its clients and the
  // other tasks of the cluster share: a call without it is UNAUTHENTICATED. NULL: none is asked
  // for.
  const char* token_file;
  // Folders, separated by colons, that graphs may read and write: files elsewhere are
  // PERMISSION_DENIED. NULL: every file that the process may. It holds for the whole process, for
  // its own sessions too, while there is such a server; another one with others is
  // FAILED_PRECONDITION.
  const char* file_roots;
  // Addresses of etcd's members, separated by commas: "host:2379", "https://host:2379" (with the
  // files of |tls_ca|, |tls_cert| and |tls_key|). There the tasks say where they are, and those
  // whose address |cluster| leaves out ("ps|-;-") are found by the others, wherever they are
  // started again. NULL: the description says all.
  const char* etcd;
  const char* etcd_prefix;  // of the keys: the same for the tasks of a cluster, another for each
  // The host by which the others find this task then. NULL: |bind| or, where that is every
  // interface, this machine's name.
  const char* advertise;
  // How large tensors go between tasks: "auto": copied from memory on one machine, else in calls;
  // "ucx": by UCX to tasks that say so too, which is not encrypted and so INVALID_ARGUMENT with
  // |tls_cert|; "ucx:plain": with it, too. NULL: what WEIR_TRANSPORT says, else "auto".
  const char* transport;
  // What clients may ask for; more is RESOURCE_EXHAUSTED. 0: the default.
  uint64_t max_graph_size;    // bytes of a session's graph; 2 GiB
  uint64_t max_message_size;  // bytes of a message, and so of a tensor that arrives; 4 GiB
  int max_connections;        // 10,000
  int max_steps;              // that run at a time; 10,000
  int max_calls;              // that are not answered yet, of all connections; 100,000
} weir_server_options_t;

// INVALID_ARGUMENT: options or environment make no cluster. UNAVAILABLE: cannot listen there.
WEIR_API WEIR_MUST_USE weir_status_t* weir_server_create(const weir_server_options_t* options,
                                                         weir_server_t** out_server);
WEIR_API int weir_server_port(const weir_server_t* server);  // that it listens on; 0: Unix socket
// What it listens on, "127.0.0.1:2222" or "unix:/path"; and which task it is,
// "/job:worker/replica:0/task:0". Borrowed.
WEIR_API const char* weir_server_address(const weir_server_t* server);
WEIR_API const char* weir_server_task_name(const weir_server_t* server);
WEIR_API int weir_server_metrics_port(const weir_server_t* server);  // 0: none

// Why a server should end.
typedef enum weir_server_end_t {
  WEIR_SERVER_RUNNING = 0,     // it should not
  WEIR_SERVER_STOPPED = 1,     // weir_server_stop was called
  WEIR_SERVER_SHUT_DOWN = 2,   // a client asked for it: weir_server_shut_down
  WEIR_SERVER_CHIEF_GONE = 3,  // see exit_with_chief_s
} weir_server_end_t;
// Waits until there is a reason to end, for up to |timeout_ms| (negative: for ever). The server
// serves on until it is destroyed.
WEIR_API weir_server_end_t weir_server_wait(weir_server_t* server, int timeout_ms);
WEIR_API void weir_server_stop(weir_server_t* server);  // makes weir_server_wait return
// Lets running calls end for up to |grace_ms|, then cancels them; frees the server. NULL is fine.
WEIR_API void weir_server_destroy(weir_server_t* server, int grace_ms);

// Asks the server at |target| ("grpc://host:port", "host:port", "unix:/path") to end, and waits for
// its answer. Of |options| only those about TLS and the token count; NULL: neither.
WEIR_API WEIR_MUST_USE weir_status_t* weir_server_shut_down(const char* target,
                                                            const weir_server_options_t* options);
// What the server at |target| does now: its task, cluster, devices, memory, sessions and steps, as
// the lines of its page /metrics about them (docs/cluster.md), which it need not serve. |options|
// as above. weir_buffer_free the text. UNIMPLEMENTED: a server that is not Weir's, or older.
WEIR_API WEIR_MUST_USE weir_status_t* weir_server_state(const char* target,
                                                        const weir_server_options_t* options,
                                                        char** out_text);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_SERVER_H_
