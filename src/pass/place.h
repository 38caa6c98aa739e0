// place.h — Placement: which device each node of a pruned graph runs on.
#ifndef WEIR_PASS_PLACE_H_
#define WEIR_PASS_PLACE_H_

#include "device/device.h"
#include "graph/graph.h"

// What goes on side by side on a device; WEIR_LANES of them a device.
enum {
  WEIR_LANE_WORK,
  WEIR_LANE_UPLOAD,    // copies from the host
  WEIR_LANE_DOWNLOAD,  // and to it
  WEIR_LANE_EXECUTOR,  // what gives devices their work
  WEIR_LANES,
};

// How fast a device is, for placement by cost.
typedef struct weir_rates_t {
  double flops;        // a second
  double bytes;        // of memory touched, a second
  double node_ns;      // what every node takes besides
  double delay_ns;     // from the end of a node to the start of what waited for it
  double copy_bytes;   // a second, from and to the host
  double copy_ns;      // what every copy takes besides
  double large_ns;     // and a large one, unless its bytes take less at |small_bytes|
  double small_bytes;  // a second; 0: there is no difference between large and small
  double message_ns;   // between tasks: how soon after a copy the next may begin, bytes apart
  double step_ns;      // what every step takes besides in which it does something
  double speed;        // 1: of the rates above; 0.5: half as fast, copies apart
  double submit_ns;    // of the executor, for each node and copy it gives the device
  int processor;       // devices of one number take turns
  int executor;        // the lane of the one that gives it work: that device * WEIR_LANES + lane
  bool is_host;        // its memory is the host's
} weir_rates_t;

// A device that nodes may be placed on.
typedef struct weir_placement_t {
  const char* device;       // full name, "/job:ps/replica:0/task:0/device:CPU:0"; borrowed
  const char* type;         // "CPU"
  const char* kernel_type;  // whose kernels it runs; NULL: |type|'s
  bool has_queue;           // it borrows no kernels that wait for others (queues, transfers)
  int preference;           // weir_device_t's
  uint64_t incarnation;     // part of the keys by which tensors leave it
  int task;                 // devices of one process have the same number
  bool is_reserved;         // by cost: only for what asks for its kind
  weir_rates_t rates;       // for WEIR_PLACE_COST only
} weir_placement_t;
// Of a device of this process.
WEIR_INLINE weir_placement_t weir_placement_of(const weir_device_t* device) {
  return (weir_placement_t){.device = device->name,
                            .type = device->type,
                            .kernel_type = device->kernel_type,
                            .has_queue = weir_device_has_streams(device),
                            .preference = device->preference,
                            .incarnation = device->incarnation};
}
// Whether |device| has a kernel for |node|. What has none anywhere is nobody's business here: it
// fails when it is to run.
bool weir_place_can_run(const weir_placement_t* device, const weir_node_t* node);

// Where nodes go that nobody constrained.
typedef struct weir_place_policy_t {
  enum {
    WEIR_PLACE_FIRST,   // the first device that can run them, or with their neighbours
    WEIR_PLACE_NAMED,   // |device|, where it can run them
    WEIR_PLACE_RANDOM,  // any, by |seed|
    WEIR_PLACE_COST,    // where the step is expected to end first
  } kind;
  uint64_t seed;
  weir_device_name_t device;
  const char* trace;  // COST: path of a trace with node times; borrowed from the text; NULL: none
} weir_place_policy_t;
// "graph" (or NULL), "cost", "cost:TRACE.json", "random:SEED", or the name of a device.
// INVALID_ARGUMENT quotes what it is not.
WEIR_MUST_USE weir_status_t* weir_place_policy_parse(const char* text,
                                                     weir_place_policy_t* out_policy);

typedef struct weir_place_params_t {
  weir_graph_t* graph;              // thread-confined to the caller, as for passes
  const weir_placement_t* devices;  // of those preferred alike, the first is
  int device_count;                 // at least 1
  int client;                       // the device of arguments and results
  bool allow_soft_placement;        // a device type or number nobody has is ignored
  weir_place_policy_t policy;
  bool is_alone;                          // and so is a task: there is but this process
  const struct weir_node_times_t* times;  // COST: measured before; NULL: none
  const bool* is_run;                     // COST: by node id: it will run; NULL: all
  const int* home_of;  // COST: by node id: the device of its state, where nobody asks for another;
                       // -1: none. NULL: of all
} weir_place_params_t;

// Writes the full name of a device into every node's def.device, and the number of that device into
// |out_device_of| (by node id, in |arena|). Nodes stay together that share a colocation class, a
// reference or a resource, and the back edge of a loop. INVALID_ARGUMENT naming the node where no
// device will do.
WEIR_MUST_USE weir_status_t* weir_place(const weir_place_params_t* params, weir_arena_t* arena,
                                        int** out_device_of);

#endif  // WEIR_PASS_PLACE_H_
