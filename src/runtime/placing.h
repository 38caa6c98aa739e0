// placing.h — Where the nodes of a program go, by its policy. Thread-safe.
#ifndef WEIR_RUNTIME_PLACING_H_
#define WEIR_RUNTIME_PLACING_H_

#include "pass/node_times.h"
#include "runtime/program.h"

typedef struct weir_placing_t weir_placing_t;

// |rates|: file with the rates of devices; NULL: they are measured. NOT_FOUND and friends when it,
// or a trace that the policy names, cannot be read.
WEIR_MUST_USE weir_status_t* weir_placing_create(const weir_program_t* program, const char* rates,
                                                 weir_placing_t** out_placing);
void weir_placing_destroy(weir_placing_t* placing);  // NULL-safe

// Gives every node of |source| one of the runtime's devices, by name.
WEIR_MUST_USE weir_status_t* weir_program_place(weir_program_t* program,
                                                const weir_source_t* source, weir_arena_t* arena);
// Devices that a program's graphs are spread over, of this process or of several.
typedef struct weir_stage_t {
  const weir_placement_t* devices;  // their names outlive the program; by cost: with rates
  int device_count;
  bool allow_soft_placement;
  bool is_alone;  // there is but this process
} weir_stage_t;
// Gives every node of |source| a device of |stage|. What has state goes where an earlier call put
// it, and stays there. By cost, the graph is to be optimised already.
WEIR_MUST_USE weir_status_t* weir_program_place_on(weir_program_t* program,
                                                   const weir_source_t* source,
                                                   const weir_stage_t* stage, weir_arena_t* arena);
// The devices of the runtime with their rates, in |arena|; and the node times that nodes are placed
// by, which are the program's and may be NULL.
WEIR_MUST_USE weir_status_t* weir_program_devices(weir_program_t* program, weir_arena_t* arena,
                                                  weir_placement_t** out_devices);
// Appends the rates, as rates_file.h reads them.
WEIR_MUST_USE weir_status_t* weir_program_print_rates(weir_program_t* program, weir_strbuf_t* out);
const weir_node_times_t* weir_program_times(const weir_program_t* program);
// Which nodes a step runs, by node id, in |arena|: passes leave behind what nothing reads.
WEIR_MUST_USE weir_status_t* weir_source_find_run(const weir_source_t* source, weir_arena_t* arena,
                                                  bool** out_is_run);

#endif  // WEIR_RUNTIME_PLACING_H_
