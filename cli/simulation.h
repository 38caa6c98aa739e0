// simulation.h — A training cluster played through, event by event: parameter servers and workers,
// each with a processor and a link to the network, and messages that queue for them.
//
// A worker's step asks every server for its part of the parameters, computes when all have come,
// and hands every server its part of the gradient. A server takes one message at a time. A link
// carries one message at a time in each direction.
#ifndef WEIR_CLI_SIMULATION_H_
#define WEIR_CLI_SIMULATION_H_

#include <stdbool.h>
#include <stdint.h>

// Seconds and bytes.
typedef struct cluster_model_t {
  int servers, workers;
  int backups;                     // workers more than gradients that a synchronous step takes
  bool is_synchronous;             // else each worker goes on when its gradient was applied
  double fetched, pushed;          // bytes of a worker's step, over all servers
  double compute;                  // of a worker's step, the median
  double spread;                   // standard deviation of its logarithm
  double slow_share, slow_factor;  // so many of the steps take so many times as long
  double latency;                  // of a message, one way
  double bandwidth;                // of each link and direction; INFINITY: transfers take no time
  double request;                  // a server's processor, for each message
  double apply;                    // and for each byte that is pushed
  int cores;  // all tasks are on one machine of so many, links are copies; 0: a machine each
  int steps;  // that are counted, after a tenth more and each worker's first
  uint64_t seed;
} cluster_model_t;

typedef struct simulated_t {
  double median, p10,
      p90;  // of a step: synchronous, from one to the next; else of each worker's own
  double steps_per_second;  // of the parameters
  double dropped;           // share of the gradients that came too late
} simulated_t;

// False: no memory.
bool simulate_cluster(const cluster_model_t* model, simulated_t* out_result);

#endif  // WEIR_CLI_SIMULATION_H_
