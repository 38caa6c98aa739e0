// internal.h — What the files of this folder share: steps with their code, and where values are
// while a program runs.
#ifndef WEIR_KERNEL_FUSED_INTERNAL_H_
#define WEIR_KERNEL_FUSED_INTERNAL_H_

#include "kernel/elementwise/cwise.h"
#include "kernel/fused/run.h"
#include "kernel/nn/activation.h"

struct weir_fused_loop_t {
  uint8_t kind;  // weir_scalar_kind_t
  uint8_t arity;
  uint8_t out_size;  // bytes of an element of the result
  uint16_t operands[WEIR_FUSED_MAX_OPERANDS];
  uint16_t result;  // value
  uint16_t slot;    // register of the result; unused for outputs
  weir_dtype_t type;
  weir_dtype_t out_type;
  float parameter;
  union {
    weir_unary_fn_t unary;
    weir_binary_fn_t binary;
    weir_activation_loop_fn_t activation;
    weir_activation_grad_fn_t activation_grad;
  } fn;
};

// Where a value is during a run.
typedef struct place_t {
  char* base;  // NULL: in the frame of registers, at |offset|
  uint32_t offset;
  uint16_t step;  // bytes from an element in memory to the next; 0: one for all of them
  bool is_one;    // one element stands for all
} place_t;

// An operand that is repeated in some dimensions: its register is filled anew for each tile.
typedef struct spread_t {
  const char* data;
  size_t size;  // of an element
  uint16_t value;
  weir_broadcast_t plan;  // of the result's shape with the operand's
} spread_t;

// Some steps over all elements of one shape.
typedef struct tiles_t {
  const weir_fused_code_t* code;
  place_t* places;       // by value
  const uint16_t* list;  // steps
  int count;
  spread_t** spreads;
  int spread_count;
  int64_t tile;  // elements at a time
} tiles_t;

// Whether so many registers of one element fit the frame.
bool weir_fused_fits(size_t register_count, size_t element_size);
// Elements of a tile of which the registers fit the frame: a part of the first-level cache.
int64_t weir_fused_tile(size_t register_count, size_t element_size, int64_t n);
// Runs |tiles| over |n| elements, each of which takes |cost| ns.
void weir_fused_run(weir_pool_t* pool, const tiles_t* tiles, int64_t n, double cost);
// Runs a step whose operands are one element each.
void weir_fused_run_one(const tiles_t* tiles, int step);

// Output |i|: in the memory of an input of |n| elements where that is not needed any more when the
// output's step writes, given that steps run in turn; 0: in memory of its own.
WEIR_MUST_USE weir_status_t* weir_fused_output(weir_kernel_ctx_t* ctx, int i,
                                               weir_shape_view_t shape, int64_t n, char** out_data);

// For inputs of any shapes.
WEIR_MUST_USE weir_status_t* weir_fused_compute_shapes(weir_kernel_ctx_t* ctx);

#endif  // WEIR_KERNEL_FUSED_INTERNAL_H_
