// saver.h — A saver from inside: its nodes (saver_graph.c), and the checkpoints it keeps (saver.c).
#ifndef WEIR_API_SAVER_H_
#define WEIR_API_SAVER_H_

#include "file/checkpoint_state.h"
#include "graph/graph.h"
#include "weir/saver.h"

// A checkpoint that counts for max_to_keep.
typedef struct weir_kept_t {
  char* prefix;  // owned
  double time;   // seconds since 1970
} weir_kept_t;

struct weir_saver_t {
  weir_edge_t filename;       // fed: a scalar string
  weir_edge_t saved;          // fetched: runs the saving nodes
  weir_node_t* restored;      // target: runs the assignments
  int max_to_keep;            // -1: all
  double keep_every_seconds;  // 0: never
  double next_keep;           // when the next one stays for good
  double last_preserved;      // time of the last that did; 0: none
  weir_kept_t* kept;          // oldest first
  size_t kept_count;
  size_t kept_capacity;
};

// Adds the nodes on |scope| and sets the first three fields; errors stick in |scope|.
void weir_saver_build(weir_saver_t* saver, weir_scope_t* scope,
                      const weir_saver_options_t* options);

#endif  // WEIR_API_SAVER_H_
