// slice.c — Slices of tensors: text, arithmetic, copying, and their encodings in checkpoints.
#include "file/slice.h"

#include "wire/wire.h"

static const int64_t kFull = -1;

void weir_slice_set_full(weir_slice_t* slice, int rank) {
  slice->rank = rank;
  for (int i = 0; i < rank; ++i) {
    slice->starts[i] = 0;
    slice->lengths[i] = kFull;
  }
}

// ---- text ----

static weir_status_t* parse_extent(weir_view_t text, weir_view_t all, int64_t* out_start,
                                   int64_t* out_length) {
  *out_start = 0;
  *out_length = kFull;
  if (weir_view_is(text, "-")) return NULL;
  weir_view_t rest = text;
  weir_view_t first = {0};
  bool is_pair = weir_view_next(&rest, ',', &first) && weir_parse_int64(first, out_start) &&
                 weir_parse_int64(rest, out_length);
  if (!is_pair) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected a pair of numbers or '-' but got '%.*s': string = %.*s",
                       WEIR_VIEW_ARG(text), WEIR_VIEW_ARG(all));
  }
  if (*out_start < 0 || *out_length <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected non-negative start and positive length but got start = %lld, "
                       "length = %lld: string = %.*s",
                       (long long)*out_start, (long long)*out_length, WEIR_VIEW_ARG(all));
  }
  return NULL;
}

static weir_status_t* parse_extents(weir_view_t text, weir_slice_t* out_slice) {
  weir_view_t rest = text;
  out_slice->rank = 0;
  while (rest.size > 0) {
    const char* colon = memchr(rest.data, ':', rest.size);
    size_t size = colon ? (size_t)(colon - rest.data) : rest.size;
    if (out_slice->rank == WEIR_MAX_RANK) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Too many dimensions in slice: string = %.*s",
                         WEIR_VIEW_ARG(text));
    }
    int i = out_slice->rank++;
    WEIR_TRY(parse_extent(weir_view(rest.data, size), text, &out_slice->starts[i],
                          &out_slice->lengths[i]));
    size_t used = colon ? size + 1 : size;
    rest = weir_view(rest.data + used, rest.size - used);
  }
  return NULL;
}

weir_status_t* weir_slice_parse_spec(weir_view_t spec, int* out_rank, int64_t* dims,
                                     weir_slice_t* out_slice) {
  weir_view_t rest = spec;
  int rank = 0;
  const char* space;
  while (rest.size > 0 && (space = memchr(rest.data, ' ', rest.size))) {
    size_t size = (size_t)(space - rest.data);
    int64_t dim = 0;
    if (rank == WEIR_MAX_RANK || !weir_parse_int64(weir_view(rest.data, size), &dim) || dim < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Non numerical dimension in shape_and_slice: %.*s",
                         WEIR_VIEW_ARG(spec));
    }
    dims[rank++] = dim;
    rest = weir_view(rest.data + size + 1, rest.size - size - 1);
  }
  if (rank == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Need least two elements in shape_and_slice specification: %.*s",
                       WEIR_VIEW_ARG(spec));
  }
  WEIR_TRY(parse_extents(rest, out_slice));
  *out_rank = rank;
  weir_slice_t resolved = *out_slice;
  return weir_slice_resolve(&resolved, rank, dims);
}

void weir_slice_append(const weir_slice_t* slice, weir_strbuf_t* out) {
  for (int i = 0; i < slice->rank; ++i) {
    if (i > 0) weir_strbuf_putc(out, ':');
    if (slice->lengths[i] == kFull) {
      weir_strbuf_putc(out, '-');
    } else {
      weir_strbuf_printf(out, "%lld,%lld", (long long)slice->starts[i],
                         (long long)slice->lengths[i]);
    }
  }
}

// ---- arithmetic ----

bool weir_slice_is_full(const weir_slice_t* slice, const int64_t* dims) {
  for (int i = 0; i < slice->rank; ++i) {
    bool is_whole =
        slice->lengths[i] == kFull || (slice->starts[i] == 0 && slice->lengths[i] == dims[i]);
    if (!is_whole) return false;
  }
  return true;
}

static weir_status_t* out_of_shape(const weir_slice_t* slice, int rank, const int64_t* dims,
                                   int at) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  weir_strbuf_t box = {0};
  weir_slice_append(slice, &box);
  weir_shape_text(rank, dims, text);
  weir_status_t* status;
  if (at < 0) {
    status = WEIR_STATUS(INTERNAL, "Mismatching ranks: shape = %s, slice = %.*s", text,
                         WEIR_VIEW_ARG(weir_strbuf_view(&box)));
  } else {
    status = WEIR_STATUS(INTERNAL, "Extent in dimension %d out of bounds: shape = %s, slice = %.*s",
                         at, text, WEIR_VIEW_ARG(weir_strbuf_view(&box)));
  }
  weir_strbuf_free(&box);
  return status;
}

weir_status_t* weir_slice_resolve(weir_slice_t* slice, int rank, const int64_t* dims) {
  if (slice->rank != rank) return out_of_shape(slice, rank, dims, -1);
  for (int i = 0; i < rank; ++i) {
    if (slice->lengths[i] == kFull) continue;
    if (slice->starts[i] < 0 || slice->lengths[i] < 0 || slice->starts[i] > dims[i] ||
        slice->lengths[i] > dims[i] - slice->starts[i]) {
      return out_of_shape(slice, rank, dims, i);
    }
  }
  for (int i = 0; i < rank; ++i) {
    if (slice->lengths[i] == kFull) slice->lengths[i] = dims[i];
  }
  return NULL;
}

bool weir_slice_intersect(const weir_slice_t* a, const weir_slice_t* b, weir_slice_t* out_common) {
  out_common->rank = a->rank;
  for (int i = 0; i < a->rank; ++i) {
    int64_t begin = WEIR_MAX(a->starts[i], b->starts[i]);
    int64_t end = WEIR_MIN(a->starts[i] + a->lengths[i], b->starts[i] + b->lengths[i]);
    if (end <= begin) return false;
    out_common->starts[i] = begin;
    out_common->lengths[i] = end - begin;
  }
  return true;
}

int64_t weir_slice_count(const weir_slice_t* slice) {
  int64_t count = 1;
  for (int i = 0; i < slice->rank; ++i) count *= slice->lengths[i];
  return count;
}

// Where the element at |position| of the full tensor lies within a tensor that holds |slice|.
static int64_t element_at(const weir_slice_t* slice, const int64_t* position) {
  int64_t at = 0;
  for (int i = 0; i < slice->rank; ++i)
    at = at * slice->lengths[i] + position[i] - slice->starts[i];
  return at;
}

weir_status_t* weir_slice_copy(const weir_slice_t* common, const weir_slice_t* src_slice,
                               const weir_tensor_t* src, const weir_slice_t* dst_slice,
                               weir_tensor_t* dst) {
  weir_dtype_t dtype = weir_tensor_type(src);
  size_t size = weir_dtype_size(dtype);
  int rank = common->rank;
  // Dimensions that all three cover alike join the run that is copied at once.
  int64_t run = 1;
  int outer = rank;
  bool is_whole = true;
  while (outer > 0 && is_whole) {
    --outer;
    run *= common->lengths[outer];
    is_whole = common->lengths[outer] == src_slice->lengths[outer] &&
               common->lengths[outer] == dst_slice->lengths[outer];
  }
  int64_t position[WEIR_MAX_RANK];
  for (int i = 0; i < rank; ++i) position[i] = common->starts[i];
  for (;;) {
    const char* from = (const char*)src->data + (size_t)element_at(src_slice, position) * size;
    char* to = (char*)dst->data + (size_t)element_at(dst_slice, position) * size;
    WEIR_TRY(weir_elements_copy(dtype, to, from, run));
    int i = outer - 1;
    while (i >= 0 && ++position[i] == common->starts[i] + common->lengths[i]) {
      position[i] = common->starts[i];
      --i;
    }
    if (i < 0) return NULL;
  }
}

// ---- TensorSliceProto {1: extent {1: start, 2: length}} ----

weir_status_t* weir_slice_parse(weir_view_t proto, weir_slice_t* out_slice) {
  out_slice->rank = 0;
  weir_wire_reader_t reader = weir_wire_reader(proto);
  while (weir_wire_next(&reader)) {
    if (reader.field != 1 || reader.type != WEIR_WIRE_BYTES) continue;
    if (out_slice->rank == WEIR_MAX_RANK) {
      return WEIR_STATUS(INVALID_ARGUMENT, "slice has more than %d dimensions", WEIR_MAX_RANK);
    }
    int64_t start = 0;
    int64_t length = kFull;
    weir_wire_reader_t extent = weir_wire_reader(reader.bytes);
    while (weir_wire_next(&extent)) {
      if (extent.field == 1 && extent.type == WEIR_WIRE_VARINT) start = weir_wire_int(&extent);
      if (extent.field == 2 && extent.type == WEIR_WIRE_VARINT) length = weir_wire_int(&extent);
    }
    WEIR_TRY(weir_wire_check(&extent, "TensorSliceProto.Extent"));
    if (start < 0 || length < kFull || (length == kFull && start != 0)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "bad extent of a slice: start %lld, length %lld",
                         (long long)start, (long long)length);
    }
    out_slice->starts[out_slice->rank] = start;
    out_slice->lengths[out_slice->rank++] = length;
  }
  return weir_wire_check(&reader, "TensorSliceProto");
}

void weir_slice_write(const weir_slice_t* slice, weir_strbuf_t* out) {
  for (int i = 0; i < slice->rank; ++i) {
    size_t begin = weir_wire_begin(out, 1);
    if (slice->lengths[i] != kFull) {
      if (slice->starts[i] != 0) weir_wire_put_int(out, 1, slice->starts[i]);
      weir_wire_put_int(out, 2, slice->lengths[i]);
    }
    weir_wire_end(out, begin);
  }
}

// ---- keys: an order-preserving code ----

static int bit_size(uint64_t value) { return value == 0 ? 0 : 64 - __builtin_clzll(value); }

// The number of significant bytes, then those bytes, highest first.
static void put_unsigned(weir_strbuf_t* out, uint64_t value) {
  int size = (bit_size(value) + 7) / 8;
  weir_strbuf_putc(out, (char)size);
  for (int i = size - 1; i >= 0; --i) weir_strbuf_putc(out, (char)(value >> (8 * i)));
}

// 0x00 and 0xff are followed by a byte that tells them from the end mark "\0\1".
static void put_text(weir_strbuf_t* out, weir_view_t text) {
  for (size_t i = 0; i < text.size; ++i) {
    uint8_t byte = (uint8_t)text.data[i];
    weir_strbuf_putc(out, (char)byte);
    if (byte == 0) weir_strbuf_putc(out, (char)0xff);
    if (byte == 0xff) weir_strbuf_putc(out, 0);
  }
  weir_strbuf_append(out, "\0\1", 2);
}

// Two's complement, highest byte first, in as many bytes as needed; as many bits at the front as
// there are bytes are inverted sign bits, so that longer numbers sort outside of shorter ones.
static void put_signed(weir_strbuf_t* out, int64_t value) {
  uint64_t magnitude = (uint64_t)(value < 0 ? ~value : value);
  int size = bit_size(magnitude) / 7 + 1;
  uint8_t sign = value < 0 ? 0xff : 0;
  uint8_t bytes[10] = {sign, sign};
  for (int i = 0; i < 8; ++i) bytes[2 + i] = (uint8_t)((uint64_t)value >> (56 - 8 * i));
  uint8_t* first = bytes + sizeof bytes - size;
  uint32_t header = 0xffffu << (16 - size) & 0xffffu;  // |size| ones at the top of two bytes
  first[0] ^= (uint8_t)(header >> 8);
  if (size > 1) first[1] ^= (uint8_t)header;
  weir_strbuf_append(out, first, (size_t)size);
}

void weir_slice_append_key(weir_view_t name, const weir_slice_t* slice, weir_strbuf_t* out) {
  put_unsigned(out, 0);
  put_text(out, name);
  put_unsigned(out, (uint64_t)slice->rank);
  for (int i = 0; i < slice->rank; ++i) {
    put_signed(out, slice->starts[i]);
    put_signed(out, slice->lengths[i]);
  }
}
