// shape.h — Partially known shapes, for inference. Immutable after create.
#ifndef WEIR_TENSOR_SHAPE_H_
#define WEIR_TENSOR_SHAPE_H_

#include "base/alloc.h"
#include "base/base.h"
#include "base/string.h"

// rank < 0: nothing is known. A dimension of -1 is unknown.
typedef struct weir_shape_t {
  int rank;
  int64_t dims[];
} weir_shape_t;

extern const weir_shape_t weir_shape_unknown;  // rank -1
extern const weir_shape_t weir_shape_scalar;   // rank 0

const weir_shape_t* weir_shape_make(weir_arena_t* arena, int rank,
                                    const int64_t* dims);  // NULL when out of memory
weir_shape_t* weir_shape_clone(
    const weir_shape_t* shape);  // on the heap, weir_free it; NULL when out of memory
bool weir_shape_is_full(const weir_shape_t* shape);  // rank and every dimension known
bool weir_shape_equal(const weir_shape_t* a,
                      const weir_shape_t* b);  // structurally, unknowns equal unknowns
// Whether a tensor of |dims| may flow where |shape| is declared.
bool weir_shape_accepts(const weir_shape_t* shape, int rank, const int64_t* dims);
// The most specific shape both allow; false when they contradict.
bool weir_shape_merge(weir_arena_t* arena, const weir_shape_t* a, const weir_shape_t* b,
                      const weir_shape_t** out);
void weir_shape_append(const weir_shape_t* shape, weir_strbuf_t* out);  // "[2,?]" or "<unknown>"

// TensorShapeProto. Reading: -1 is an unknown dimension, unknown_rank honoured; INVALID_ARGUMENT on
// less than -1, rank > 254.
WEIR_MUST_USE weir_status_t* weir_shape_parse(weir_view_t proto, weir_arena_t* arena,
                                              const weir_shape_t** out);
// The same for shapes that TensorFlow's own inference noted, where each number below -1 stands for
// one dimension that is not known: they are read as unknown.
WEIR_MUST_USE weir_status_t* weir_shape_parse_symbolic(weir_view_t proto, weir_arena_t* arena,
                                                       const weir_shape_t** out);
void weir_shape_write(const weir_shape_t* shape,
                      weir_strbuf_t* out);  // the message's fields, without an outer tag
// As weir_shape_write, for a known rank.
void weir_shape_write_dims(int rank, const int64_t* dims, weir_strbuf_t* out);

#endif  // WEIR_TENSOR_SHAPE_H_
