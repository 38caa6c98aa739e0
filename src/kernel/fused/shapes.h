// shapes.h — Which shape each value of a fused program has, given those of the inputs. Thread-safe.
#ifndef WEIR_KERNEL_FUSED_SHAPES_H_
#define WEIR_KERNEL_FUSED_SHAPES_H_

#include "kernel/elementwise/elementwise.h"
#include "kernel/fused/program.h"

// By value.
typedef struct weir_fused_shapes_t {
  weir_shape_view_t* shapes;  // those of the inputs are given; dimensions of the others in an arena
  int64_t* counts;            // elements
} weir_fused_shapes_t;

// Shapes that do not fit together are the error of the first node that would have met them.
WEIR_MUST_USE weir_status_t* weir_fused_find_shapes(const weir_fused_program_t* program,
                                                    weir_arena_t* arena,
                                                    weir_fused_shapes_t* shapes);
// |take_status| as the error of the node that |step| was.
weir_status_t* weir_fused_at_node(const weir_fused_program_t* program, int step,
                                  weir_status_t* take_status);
int64_t weir_shape_view_count(weir_shape_view_t shape);  // elements

#endif  // WEIR_KERNEL_FUSED_SHAPES_H_
