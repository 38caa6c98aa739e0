// shape.c — Partially known shapes: comparing, merging, and TensorShapeProto.
#include "tensor/shape.h"

#include <inttypes.h>

#include "weir/tensor.h"
#include "wire/wire.h"

const weir_shape_t weir_shape_unknown = {.rank = -1};
const weir_shape_t weir_shape_scalar = {.rank = 0};

// Numbers of TensorShapeProto's fields.
enum { SHAPE_DIM = 2, SHAPE_UNKNOWN_RANK = 3, DIM_SIZE = 1 };

static size_t shape_size(int rank) {
  return sizeof(weir_shape_t) + (rank > 0 ? (size_t)rank * sizeof(int64_t) : 0);
}

const weir_shape_t* weir_shape_make(weir_arena_t* arena, int rank, const int64_t* dims) {
  if (rank < 0) return &weir_shape_unknown;
  if (rank == 0) return &weir_shape_scalar;
  weir_shape_t* shape = weir_arena_alloc(arena, shape_size(rank));
  if (!shape) return NULL;
  shape->rank = rank;
  memcpy(shape->dims, dims, (size_t)rank * sizeof(int64_t));
  return shape;
}

weir_shape_t* weir_shape_clone(const weir_shape_t* shape) {
  weir_shape_t* clone = weir_malloc(shape_size(shape->rank));
  if (clone) memcpy(clone, shape, shape_size(shape->rank));
  return clone;
}

bool weir_shape_is_full(const weir_shape_t* shape) {
  for (int i = 0; i < shape->rank; ++i) {
    if (shape->dims[i] < 0) return false;
  }
  return shape->rank >= 0;
}

bool weir_shape_equal(const weir_shape_t* a, const weir_shape_t* b) {
  if (a->rank < 0 || b->rank < 0) return a->rank < 0 && b->rank < 0;
  if (a->rank != b->rank) return false;
  return a->rank == 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(int64_t)) == 0;
}

bool weir_shape_accepts(const weir_shape_t* shape, int rank, const int64_t* dims) {
  if (shape->rank < 0) return true;
  if (shape->rank != rank) return false;
  for (int i = 0; i < rank; ++i) {
    if (shape->dims[i] >= 0 && shape->dims[i] != dims[i]) return false;
  }
  return true;
}

bool weir_shape_merge(weir_arena_t* arena, const weir_shape_t* a, const weir_shape_t* b,
                      const weir_shape_t** out) {
  if (a->rank < 0 || b->rank < 0) {
    *out = a->rank < 0 ? b : a;
    return true;
  }
  if (a->rank != b->rank) return false;
  bool a_suffices = true;
  bool b_suffices = true;
  for (int i = 0; i < a->rank; ++i) {
    if (a->dims[i] == b->dims[i]) continue;
    if (a->dims[i] >= 0 && b->dims[i] >= 0) return false;
    if (a->dims[i] < 0) a_suffices = false;
    if (b->dims[i] < 0) b_suffices = false;
  }
  *out = a_suffices ? a : b;
  if (a_suffices || b_suffices) return true;
  const weir_shape_t* copy = weir_shape_make(arena, a->rank, a->dims);
  if (!copy) return true;  // out of memory: one of the two is less specific, but not wrong
  weir_shape_t* merged = (weir_shape_t*)copy;  // fresh from the arena: nobody else has seen it
  for (int i = 0; i < a->rank; ++i) merged->dims[i] = WEIR_MAX(a->dims[i], b->dims[i]);
  *out = merged;
  return true;
}

void weir_shape_append(const weir_shape_t* shape, weir_strbuf_t* out) {
  if (shape->rank < 0) {
    weir_strbuf_puts(out, "<unknown>");
    return;
  }
  weir_strbuf_putc(out, '[');
  for (int i = 0; i < shape->rank; ++i) {
    if (i > 0) weir_strbuf_putc(out, ',');
    if (shape->dims[i] < 0) {
      weir_strbuf_putc(out, '?');
    } else {
      weir_strbuf_printf(out, "%" PRId64, shape->dims[i]);
    }
  }
  weir_strbuf_putc(out, ']');
}

static weir_status_t* parse_dim(weir_view_t proto, bool is_symbolic, int64_t* out_size) {
  int64_t size = 0;
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (weir_wire_next(&reader)) {
    if (reader.field == DIM_SIZE && reader.type == WEIR_WIRE_VARINT) size = weir_wire_int(&reader);
  }
  WEIR_TRY(weir_wire_check(&reader, "TensorShapeProto.Dim"));
  if (size < -1 && !is_symbolic) {
    return WEIR_STATUS(INVALID_ARGUMENT, "shape has the dimension %" PRId64 ", less than -1", size);
  }
  *out_size = size < -1 ? -1 : size;
  return NULL;
}

static weir_status_t* parse_shape(weir_view_t proto, bool is_symbolic, weir_arena_t* arena,
                                  const weir_shape_t** out) {
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  bool is_unknown = false;
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (weir_wire_next(&reader)) {
    if (reader.field == SHAPE_UNKNOWN_RANK && reader.type == WEIR_WIRE_VARINT) {
      is_unknown = weir_wire_bool(&reader);
    } else if (reader.field == SHAPE_DIM && reader.type == WEIR_WIRE_BYTES) {
      if (rank == WEIR_MAX_RANK) {
        return WEIR_STATUS(INVALID_ARGUMENT, "shape has more than %d dimensions", WEIR_MAX_RANK);
      }
      WEIR_TRY(parse_dim(reader.bytes, is_symbolic, &dims[rank++]));
    }
  }
  WEIR_TRY(weir_wire_check(&reader, "TensorShapeProto"));
  if (is_unknown && rank > 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "shape of unknown rank has %d dimensions", rank);
  }
  const weir_shape_t* shape = weir_shape_make(arena, is_unknown ? -1 : rank, dims);
  if (!shape) return weir_out_of_memory();
  *out = shape;
  return NULL;
}

weir_status_t* weir_shape_parse(weir_view_t proto, weir_arena_t* arena, const weir_shape_t** out) {
  return parse_shape(proto, false, arena, out);
}

weir_status_t* weir_shape_parse_symbolic(weir_view_t proto, weir_arena_t* arena,
                                         const weir_shape_t** out) {
  return parse_shape(proto, true, arena, out);
}

void weir_shape_write_dims(int rank, const int64_t* dims, weir_strbuf_t* out) {
  for (int i = 0; i < rank; ++i) {
    size_t begin = weir_wire_begin(out, SHAPE_DIM);
    if (dims[i] != 0) weir_wire_put_int(out, DIM_SIZE, dims[i]);  // 0 is proto3's default
    weir_wire_end(out, begin);
  }
}

void weir_shape_write(const weir_shape_t* shape, weir_strbuf_t* out) {
  if (shape->rank < 0) {
    weir_wire_put_bool(out, SHAPE_UNKNOWN_RANK, true);
  } else {
    weir_shape_write_dims(shape->rank, shape->dims, out);
  }
}
