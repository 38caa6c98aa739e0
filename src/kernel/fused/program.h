// program.h — What several elementwise nodes compute, as one program: the pass that fuses writes
// it, kernels of the op _Fused run it, on a CPU tile by tile (run.c).
//
// A program is straight-line code over values. The inputs are values 0 … input_count - 1, and step
// i makes value input_count + i from earlier ones. Each step is the scalar function of one node
// (op/op.h), of one type, and rounds to its result's type as the node did. Shapes are not part of
// it: inputs broadcast as those of the nodes would. A step may also be a reduction, whose result no
// other step reads: kernels of the op _FusedReduce run such programs. Immutable after create:
// thread-safe.
#ifndef WEIR_KERNEL_FUSED_PROGRAM_H_
#define WEIR_KERNEL_FUSED_PROGRAM_H_

#include "op/attr.h"
#include "op/op.h"

enum { WEIR_FUSED_MAX_STEPS = 1024, WEIR_FUSED_MAX_INPUTS = 64, WEIR_FUSED_MAX_OPERANDS = 3 };

typedef struct weir_fused_step_t {
  weir_scalar_t scalar;
  uint8_t type;                                // of the operands; of SELECT: the last two
  uint8_t out_type;                            // of the result
  uint16_t operands[WEIR_FUSED_MAX_OPERANDS];  // values; as many as the scalar function takes
  float parameter;                             // of an activation
  uint32_t axes;                               // of a reduction: see below
} weir_fused_step_t;

// Which dimensions a reduction keeps: bit i is dimension i, counted from the end if so. All others
// are reduced, and are no dimensions of the result.
enum {
  WEIR_FUSED_AXES = 16,
  WEIR_FUSED_FROM_END = 1u << WEIR_FUSED_AXES,
};
#define WEIR_FUSED_KEEPS_LAST (WEIR_FUSED_FROM_END | 1u)
#define WEIR_FUSED_KEEPS_SECOND (1u << 1)
// Whether dimension |d| of |rank| is reduced.
bool weir_fused_is_reduced(uint32_t axes, int rank, int d);

typedef struct weir_fused_program_t {
  int input_count;
  int step_count;
  int output_count;
  const weir_fused_step_t* steps;
  const uint16_t* outputs;   // values
  const weir_view_t* names;  // the nodes that the steps were, for errors
  const weir_view_t* op_names;
} weir_fused_program_t;

// How many operands a scalar function has.
int weir_scalar_arity(weir_scalar_t scalar);
WEIR_INLINE bool weir_scalar_reduces(weir_scalar_t scalar) {
  return scalar.kind == WEIR_SCALAR_REDUCE || scalar.kind == WEIR_SCALAR_REDUCE_CHANNELS;
}
bool weir_fused_reduces(const weir_fused_program_t* program);
// Whether a step may compute it: there is a loop for the types, and no element makes it fail.
bool weir_scalar_can_fuse(weir_scalar_t scalar, weir_dtype_t type, weir_dtype_t out_type);
double weir_scalar_cost(weir_scalar_t scalar);  // ns an element, roughly

// The program as the attributes of a node: steps, outputs, names, ops. In |arena|.
enum { WEIR_FUSED_ATTRS = 4 };
WEIR_MUST_USE weir_status_t* weir_fused_encode(const weir_fused_program_t* program,
                                               weir_arena_t* arena,
                                               weir_named_attr_t out_attrs[WEIR_FUSED_ATTRS]);
// And back, in |arena|; names point into the attributes. INVALID_ARGUMENT when they are no program.
WEIR_MUST_USE weir_status_t* weir_fused_decode(const weir_node_def_t* node, weir_arena_t* arena,
                                               weir_fused_program_t* out_program);

#endif  // WEIR_KERNEL_FUSED_PROGRAM_H_
