// substr.c — StringLength, Substr: lengths and parts of strings, in bytes or UTF-8 characters.
#include "base/interrupt.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

static bool is_trail_byte(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

static bool counts_characters(weir_attrs_t attrs) {
  return weir_view_is(weir_attrs_string(attrs, "unit"), "UTF8_CHAR");
}

// ---- StringLength ----

static weir_status_t* length_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* input = weir_kernel_input(ctx, 0);
  const bool by_character = counts_characters(weir_kernel_attrs(ctx));
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, input->rank, input->dims, &out));
  for (int64_t i = 0; i < input->count; ++i) {
    weir_view_t text = weir_string_view(WEIR_TENSOR_DATA(input, weir_string_t) + i);
    size_t length = text.size;
    for (size_t j = 0; by_character && j < text.size; ++j) length -= is_trail_byte(text.data[j]);
    WEIR_TENSOR_DATA(out, int32_t)[i] = (int32_t)length;
  }
  return NULL;
}

// ---- Substr ----

// Move *|at| by |count| characters; false when the string ends before.
static bool move_forward(weir_view_t text, int64_t count, size_t* at) {
  int64_t moved = 0;
  for (; moved < count && *at < text.size; ++moved) {
    do ++*at;
    while (*at < text.size && is_trail_byte(text.data[*at]));
  }
  return moved == count;
}

static bool move_back(weir_view_t text, int64_t count, size_t* at) {
  int64_t moved = 0;
  for (; moved<count&& * at> 0; ++moved) {
    do --*at;
    while (*at > 0 && is_trail_byte(text.data[*at]));
  }
  return moved == count;
}

// A negative |length| takes all up to the end.
static bool cut_bytes(weir_view_t text, int64_t position, int64_t length, weir_view_t* out_part) {
  if (position < 0) position += (int64_t)text.size;
  if (position < 0 || position > (int64_t)text.size) return false;
  size_t left = text.size - (size_t)position;
  size_t size = length < 0 ? left : WEIR_MIN(left, (size_t)length);
  *out_part = weir_view(text.data + position, size);
  return true;
}

static bool cut_characters(weir_view_t text, int64_t position, int64_t length,
                           weir_view_t* out_part) {
  size_t begin = 0, end = 0;
  if (position >= 0) {
    if (!move_forward(text, position, &begin)) return false;
    end = begin;
    (void)move_forward(text, length, &end);  // cut short by the string's end
  } else {
    if (length < 0 || position < -(int64_t)text.size) return false;
    const int64_t skipped = WEIR_MAX(-position - length, 0);
    end = text.size;
    if (!move_back(text, skipped, &end)) return false;
    begin = end;
    if (!move_back(text, -position - skipped, &begin)) return false;
  }
  *out_part = weir_view(text.data + begin, end - begin);
  return true;
}

typedef struct substr_t {
  const weir_tensor_t* input;
  const weir_tensor_t* positions;
  const weir_tensor_t* lengths;
  weir_tensor_t* out;
  bool by_character;
} substr_t;

static weir_status_t* cut(const substr_t* s, int64_t from, int64_t place, int64_t to) {
  weir_view_t text = weir_string_view(WEIR_TENSOR_DATA(s->input, weir_string_t) + from), part;
  int64_t position = weir_tensor_int_at(s->positions, place);
  int64_t length = weir_tensor_int_at(s->lengths, place);
  bool is_inside = s->by_character ? cut_characters(text, position, length, &part)
                                   : cut_bytes(text, position, length, &part);
  if (!is_inside) {
    return WEIR_STATUS(INVALID_ARGUMENT, "pos %lld out of range for string b'%.*s' at index %lld",
                       (long long)position, WEIR_VIEW_ARG(text), (long long)to);
  }
  return weir_string_set(WEIR_TENSOR_DATA(s->out, weir_string_t) + to, part.data, part.size);
}

// Dimension |i| of |tensor| counted as in a shape of |rank|, 1 where it has none.
static int64_t dim_at(const weir_tensor_t* tensor, int rank, int i) {
  int own = i - (rank - tensor->rank);
  return own < 0 ? 1 : tensor->dims[own];
}

// TensorFlow broadcasts vectors and matrices only.
static weir_status_t* cut_broadcast(weir_kernel_ctx_t* ctx, substr_t* s) {
  const int rank = WEIR_MAX(s->input->rank, s->positions->rank);
  int64_t a[2] = {1, 1}, b[2] = {1, 1}, dims[WEIR_MAX_RANK];
  for (int i = 0; i < rank; ++i) {
    int64_t x = dim_at(s->input, rank, i), y = dim_at(s->positions, rank, i);
    if (x != y && x != 1 && y != 1) {
      char left[WEIR_SHAPE_TEXT_SIZE], right[WEIR_SHAPE_TEXT_SIZE];
      return WEIR_STATUS(INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s",
                         weir_tensor_shape_text(s->input, left),
                         weir_tensor_shape_text(s->positions, right));
    }
    dims[i] = x == 1 ? y : x;
    if (rank <= 2) a[2 - rank + i] = x, b[2 - rank + i] = y;
  }
  if (rank > 2) {
    return WEIR_STATUS(UNIMPLEMENTED, "Substr broadcast not implemented for %d dimensions", rank);
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &s->out));
  const int64_t columns = a[1] == 1 ? b[1] : a[1];
  for (int64_t i = 0; i < s->out->count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    int64_t row = i / columns, column = i % columns;
    int64_t from = (a[0] > 1 ? row : 0) * a[1] + (a[1] > 1 ? column : 0);
    int64_t place = (b[0] > 1 ? row : 0) * b[1] + (b[1] > 1 ? column : 0);
    WEIR_TRY(cut(s, from, place, i));
  }
  return NULL;
}

static weir_status_t* substr_cpu(weir_kernel_ctx_t* ctx) {
  substr_t s = {.input = weir_kernel_input(ctx, 0),
                .positions = weir_kernel_input(ctx, 1),
                .lengths = weir_kernel_input(ctx, 2),
                .by_character = counts_characters(weir_kernel_attrs(ctx))};
  if (!weir_tensor_same_shape(s.positions, s.lengths)) {
    char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "pos and len should have the same shape, got: %s vs. %s",
                       weir_tensor_shape_text(s.positions, a),
                       weir_tensor_shape_text(s.lengths, b));
  }
  const bool is_scalar = s.positions->rank == 0;
  if (!is_scalar && !weir_tensor_same_shape(s.input, s.positions)) return cut_broadcast(ctx, &s);
  WEIR_TRY(weir_kernel_output(ctx, 0, s.input->rank, s.input->dims, &s.out));
  for (int64_t i = 0; i < s.input->count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    WEIR_TRY(cut(&s, i, is_scalar ? 0 : i, i));
  }
  return NULL;
}

static weir_status_t* substr_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* positions = weir_shape_input(ctx, 1);
  const weir_shape_t* lengths = weir_shape_input(ctx, 2);
  const weir_shape_t* joined = NULL;
  WEIR_TRY(weir_shape_join(ctx, positions, lengths, &joined));
  return weir_shape_fn_broadcast(ctx);
}

const weir_op_module_t weir_ops_string_substr = {
    .file = __FILE__,
    .ops =
        (const weir_op_def_t[]){{.name = "StringLength",
                                 .attrs = "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'",
                                 .inputs = "input: string",
                                 .outputs = "output: int32",
                                 .summary = "Lengths of strings in bytes or characters",
                                 .infer_shape = weir_shape_fn_unchanged,
                                 .kernels = WEIR_CPU_KERNEL(.compute = length_cpu)},
                                {.name = "Substr",
                                 .attrs = "T: {int32, int64}; unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'",
                                 .inputs = "input: string; pos: T; len: T",
                                 .outputs = "output: string",
                                 .summary = "Parts of strings",
                                 .infer_shape = substr_shape,
                                 .kernels = WEIR_CPU_KERNEL(.compute = substr_cpu)},
                                {0}}};
