// cli.h — The weir command: what its verbs share.
#ifndef WEIR_CLI_CLI_H_
#define WEIR_CLI_CLI_H_

#include <stdbool.h>
#include <stdint.h>

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
extern const verb_t verb_freeze;
extern const verb_t verb_checkpoint;
extern const verb_t verb_run;
extern const verb_t verb_show;
extern const verb_t verb_ops;
extern const verb_t verb_devices;
extern const verb_t verb_place;
extern const verb_t verb_simulate;
extern const verb_t verb_serve;
extern const verb_t verb_server;
extern const verb_t verb_top;
extern const verb_t verb_completion;
const verb_t* const* all_verbs(void);  // in the order of the help text; ends with NULL

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
// Prints that |argument| is none of the verb's, and the option of its help that may be meant;
// returns EXIT_USAGE.
int unknown_argument(const verb_t* verb, const char* argument);
bool parse_long(const char* text, long* out_value);
bool parse_double(const char* text, double* out_value);
bool parse_int(const char* text, int max, int* out_value);  // from 0 to |max|
// Bytes, or as many KiB, MiB or GiB: "64M". Not 0.
bool parse_size(const char* text, uint64_t* out_size);

// Prints an error as "weir: CODE: message" and destroys it; returns EXIT_FAILED.
int fail(weir_status_t* take_status);
// The node of the graph that |option| names; NOT_FOUND says that it may be empty.
weir_status_t* find_node(weir_graph_t* graph, const char* option, const char* name,
                         weir_node_t** out_node);
// Ends what a verb worked with, each of which may be NULL; returns its exit code.
int finish(weir_session_t* take_session, weir_graph_t* take_graph, weir_status_t* take_status);
// ---- values ----
// "1,2,3", JSON, a text or "@file.npy" as a tensor of |dtype|; a file has its own type.
weir_status_t* parse_value(const char* text, weir_dtype_t dtype, weir_tensor_t** out_tensor);
// Numbers between 0 and 1, integers 0 or 1, empty texts. Of unknown dimensions the first is
// |batch|, the others 1. INVALID_ARGUMENT for a negative |rank|: it is not known.
weir_status_t* random_value(weir_dtype_t dtype, int rank, const int64_t* dims, long batch,
                            weir_tensor_t** out_tensor);

void print_json_text(const char* text);  // in quotes, to stdout

// ---- nodes by what they are; NULL or false: there is none ----
weir_node_t* pick_init(weir_graph_t* graph);        // gives variables their first values
weir_node_t* pick_table_init(weir_graph_t* graph);  // fills the tables
weir_node_t* pick_step(weir_graph_t* graph);        // trains
bool pick_loss(weir_graph_t* graph, weir_edge_t* out_edge);
bool has_variables(weir_graph_t* graph);

// Measures how fast values go between the first of |tasks| ("/job:worker/task:0,…") and each other,
// on the server that |options| name, and prints a line a task, as --cluster of weir place reads it.
weir_status_t* print_transfers(const weir_session_options_t* options, const char* tasks);
// SIGTERM and SIGINT, for programs that serve. Blocks them for this thread and all made later; to
// be called before any is.
void block_ending_signals(void);
// Starts a thread that calls |stop|(|arg|) at the first of these signals, and ends the process at
// the second. False: said why not. unwatch: |stop| is not called any more.
bool watch_ending_signals(const char* name, void (*stop)(void* arg), void* arg);
void unwatch_ending_signals(void);
// Writes a whole file; prints why not.
bool write_file(const char* path, const char* data, size_t size);

#endif  // WEIR_CLI_CLI_H_
