// cli.h — The weir command: what its verbs share.
#ifndef WEIR_CLI_CLI_H_
#define WEIR_CLI_CLI_H_

#include <stdbool.h>

#include "weir/weir.h"

// Exit codes.
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

// A verb: gets the arguments after its name.
typedef struct verb_t {
  const char* name;
  const char* summary;
  const char* help;  // printed by "weir VERB --help"
  int (*run)(int argc, char** argv);
} verb_t;

extern const verb_t verb_bench;
extern const verb_t verb_run;
extern const verb_t verb_show;
extern const verb_t verb_ops;
extern const verb_t verb_devices;
extern const verb_t verb_place;
extern const verb_t verb_server;

// ---- options: --name=value or --name value; anything else is positional ----
typedef struct args_t {
  int argc;
  char** argv;
  int next;
  const char* device;  // these three: of args_running
  const char* tf32;
  bool is_deterministic;
} args_t;
// Takes "--name=value", "--name value"; NULL when |args| does not stand at it. |out_value| is
// borrowed.
bool args_option(args_t* args, const char* name, const char** out_value);
bool args_flag(args_t* args, const char* name);  // "--name" alone
// Takes "--device" with "--tf32" and "--deterministic", "--devices", "--place", "--rates" or
// "--amp" of a session.
bool args_running(args_t* args, weir_session_options_t* options);
// Takes "--tls-ca", "--tls-cert", "--tls-key" or "--token-file" of a session on a server.
bool args_tls(args_t* args, weir_session_options_t* options);
const char* args_positional(args_t* args);  // NULL when it looks like an option
// Prints "weir VERB: unknown option X" and a hint; returns EXIT_USAGE.
int usage_error(const verb_t* verb, const char* format, ...) __attribute__((format(printf, 2, 3)));
bool parse_long(const char* text, long* out_value);
bool parse_double(const char* text, double* out_value);

// Prints an error as "weir: CODE: message" and destroys it; returns EXIT_FAILED.
int fail(weir_status_t* take_status);
// The node of the graph that |option| names; NOT_FOUND says that it may be empty.
weir_status_t* find_node(weir_graph_t* graph, const char* option, const char* name,
                         weir_node_t** out_node);
// Ends what a verb worked with, each of which may be NULL; returns its exit code.
int finish(weir_session_t* take_session, weir_graph_t* take_graph, weir_status_t* take_status);
// Measures how fast values go between the first of |tasks| ("/job:worker/task:0,…") and each other,
// on the server that |options| name, and prints a line a task, as --cluster of weir place reads it.
weir_status_t* print_transfers(const weir_session_options_t* options, const char* tasks);
// Writes a whole file; prints why not.
bool write_file(const char* path, const char* data, size_t size);

#endif  // WEIR_CLI_CLI_H_
