// fuse_internal.h — What the files of the pass `fuse` share: groups of nodes that become one.
#ifndef WEIR_PASS_FUSE_INTERNAL_H_
#define WEIR_PASS_FUSE_INTERNAL_H_

#include "graph/analysis.h"
#include "kernel/fused/program.h"
#include "pass/rewrite.h"

enum { WEIR_NO_GROUP = -1, WEIR_MIXED_GROUPS = -2 };

typedef struct weir_fuse_group_t {
  weir_node_t* root;   // the node that began it: for device, condition and loop
  weir_node_t* first;  // member; see weir_fuse_t.next_member
  int member_count;    // 0: its members went to another group
  bool reduces;        // one of them is a reduction
  int input_count;
  weir_edge_t inputs[WEIR_FUSED_MAX_INPUTS];  // edges that members read and others make
} weir_fuse_group_t;

// What a member waits for by control edges: not NoOps, but what those wait for.
typedef struct weir_fuse_controls_t {
  weir_node_t** nodes;
  int count;
} weir_fuse_controls_t;

typedef struct weir_fuse_t {
  weir_rewrite_t rewrite;
  const weir_op_t* fused;         // NULL: nobody registered it
  const weir_op_t* fused_reduce;  // the same with a reduction
  weir_loops_t loops;             // by node id, as all below: which loop it is in
  const int* condition;           // when it is alive (alive.h)
  bool* is_live;
  bool* is_awaited;  // by control edges, or as a target
  bool* is_hop;      // a member without a step: it hands its input on
  weir_fuse_controls_t* controls;
  int* group_of;              // WEIR_NO_GROUP: none
  int* reader_group;          // of all that read it; WEIR_NO_GROUP: nobody; WEIR_MIXED_GROUPS
  weir_node_t** next_member;  // of its group; NULL: the last
  uint16_t* value_of;         // of a member: its value in the group's program
  weir_fuse_group_t** groups;
  int group_count;
} weir_fuse_t;

// Whether what runs as |a| may run as |b|: device, deadness, loop.
bool weir_fuse_is_alike(const weir_fuse_t* f, const weir_node_t* a, const weir_node_t* b);
int weir_fuse_find_input(const weir_fuse_group_t* group, weir_edge_t edge);  // -1: none

// Type of the operands; of a select's choices.
WEIR_INLINE weir_dtype_t weir_fuse_operand_type(const weir_node_t* node) {
  return node->def.input_types[node->def.input_count - 1];
}
// Of a member.
WEIR_INLINE bool weir_fuse_reduces(const weir_node_t* node) {
  return weir_scalar_reduces(node->def.op->def->scalar);
}
// Tells what |node| reads who reads it: |reader_group|.
void weir_fuse_note_reader(weir_fuse_t* f, const weir_node_t* node);
// Sets what |node| waits for.
WEIR_MUST_USE weir_status_t* weir_fuse_find_controls(weir_fuse_t* f, const weir_node_t* node);

// Joins groups where one reads the other though others read it, too: what those read becomes an
// output beside the last (fuse_join.c).
WEIR_MUST_USE weir_status_t* weir_fuse_join_groups(weir_fuse_t* f);

// Puts a node in the place of each group of two steps or more (fuse_replace.c).
WEIR_MUST_USE weir_status_t* weir_fuse_replace_groups(weir_fuse_t* f);

#endif  // WEIR_PASS_FUSE_INTERNAL_H_
