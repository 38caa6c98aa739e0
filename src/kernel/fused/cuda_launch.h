// cuda_launch.h — What the files of the GPU's kernel share: launches, which a program is cut into
// by the shapes of its values, and the texts they run.
#ifndef WEIR_KERNEL_FUSED_CUDA_LAUNCH_H_
#define WEIR_KERNEL_FUSED_CUDA_LAUNCH_H_

#include "kernel/fused/cuda_fused.h"
#include "kernel/fused/shapes.h"
#include "kernel/reduce/cuda_reduce.h"

// What bounds the parameters of a kernel, 4 KiB in all.
enum {
  WEIR_FUSED_MAX_RESULTS = 128,  // of a launch
  WEIR_FUSED_MAX_STRIDED = 16,
  WEIR_FUSED_MAX_DIMS = 8,  // that are left where neighbours are merged
};

// How a value in memory lies in the elements that a launch goes over: which of its elements belongs
// to element i.
typedef enum weir_fused_kind_t {
  WEIR_FUSED_FULL,     // element i
  WEIR_FUSED_ONE,      // the only one
  WEIR_FUSED_ROW,      // i % extent: it is repeated along the outer dimensions
  WEIR_FUSED_COLUMN,   // i / extent: along the inner ones
  WEIR_FUSED_STRIDED,  // what the strides say
} weir_fused_kind_t;

typedef struct weir_fused_operand_t {
  uint16_t value;
  uint8_t kind;    // weir_fused_kind_t
  int64_t extent;  // of a row or a column
  int64_t strides[WEIR_FUSED_MAX_DIMS];
} weir_fused_operand_t;

enum { WEIR_FUSED_NO_VALUE = UINT16_MAX };

// Some values over all elements of one shape: what leads to them from values in memory. And one
// that these are reduced to, if so.
typedef struct weir_fused_launch_t {
  int64_t n;
  weir_shape_view_t shape;
  int rank;  // of the operands that are strided, merged
  int64_t dims[WEIR_FUSED_MAX_DIMS];
  int operand_count;
  weir_fused_operand_t* operands;
  int result_count;
  uint16_t* results;  // values that are written
  uint16_t reduced;   // the value that a reduction makes; or WEIR_FUSED_NO_VALUE
  bool is_row;        // it reduces the innermost dimensions
} weir_fused_launch_t;

typedef struct weir_fused_launches_t {
  weir_fused_launch_t* items;
  int count;
  bool is_stepwise;  // each is one step, and reads what earlier ones wrote
} weir_fused_launches_t;

// The step that makes |value|; NULL: it is an input, or none.
WEIR_INLINE const weir_fused_step_t* weir_fused_step_of(const weir_fused_program_t* program,
                                                        int value) {
  bool is_step = value >= program->input_count && value != WEIR_FUSED_NO_VALUE;
  return is_step ? &program->steps[value - program->input_count] : NULL;
}

// Cuts a program into launches, one for each shape of its outputs; or one for each step where that
// cannot be: ops that count elements only, and too many ways to broadcast. What has no elements is
// left out. In |arena|.
WEIR_MUST_USE weir_status_t* weir_fused_plan(const weir_cuda_fused_t* code,
                                             const weir_fused_shapes_t* shapes, weir_arena_t* arena,
                                             weir_fused_launches_t* out_launches);

// What the text of a launch depends on, and the function it became. Immutable once it is listed.
struct weir_fused_variant_t {
  weir_fused_variant_t* next;
  weir_cuda_function_t function;
  int width;     // elements that a thread takes at a time where they lie well; 1: it never does
  bool is_wide;  // indices have 64 bits
  bool is_row;   // as the launch says
  uint16_t reduced;
  weir_cuda_reduce_t reduce;  // in place of |function|, if something is reduced
  int operand_count;
  int result_count;
  uint16_t* results;
  uint16_t* values;  // of the operands
  uint8_t* kinds;    // likewise
};

// Appends the text of a variant, all but the prelude, and the text of reduce.cu if it reduces, and
// sets its width. UNIMPLEMENTED where a step has no formula.
WEIR_MUST_USE weir_status_t* weir_fused_write(const weir_cuda_fused_t* code,
                                              weir_fused_variant_t* variant, weir_strbuf_t* out);
// The text that runs |launch|, compiled the first time.
WEIR_MUST_USE weir_status_t* weir_fused_variant(weir_cuda_fused_t* code, weir_device_t* device,
                                                const weir_fused_launch_t* launch,
                                                const weir_fused_variant_t** out_variant);

#endif  // WEIR_KERNEL_FUSED_CUDA_LAUNCH_H_
