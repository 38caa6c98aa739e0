// cuda_text.c — The kernel of a launch as CUDA text.
//
// Each formula is a function of its own, which rounds to the type of its result as the node's
// kernel did when it wrote to memory: so results are those of the nodes, bit for bit (formula.cu
// says why no two of them are contracted). The steps are one function, from values in memory to
// results; the kernel calls it for each element of a pack, or for one element where packs do not
// lie well.
//
// Where there is a reduction, the kernels are those of reduce.cu, which ask for packs in an order
// of their own: the text says how operands are read, and how the steps are taken with them.
//
// v7 is value 7, p7 its place in memory, n7 its extent, s7 its strides, and x7 the pack it is in.
#include "kernel/cuda/source.h"
#include "kernel/elementwise/cuda_formula.h"
#include "kernel/fused/cuda_launch.h"
#include "kernel/nn/cuda_activation.h"

WEIR_CUDA_SOURCE(fused);

enum {
  LONG = 64,   // steps of a program in which what is often used is called, not copied
  OFTEN = 8,   // uses
  ONES = 16,   // operands of one element that are read before the first element
  WORDS = 64,  // of 4 bytes that a thread holds for operands and results
  WORK = 128,  // steps that a thread takes at a time
  HELD = 16,   // words of operands that a thread asks for before it takes the first
};

typedef struct writer_t {
  const weir_cuda_fused_t* code;
  const weir_fused_variant_t* variant;
  weir_strbuf_t* out;
  bool* is_needed;     // by step: results come from it
  uint16_t* function;  // by step: the first step with the same formula
  uint16_t* uses;      // by step: of those, how many
  int step_count;      // that are needed
  int ones;
} writer_t;

// What a value is called that may be of a type only moved.
static const char* type_name(weir_dtype_t dtype) {
  const char* name = weir_cuda_type_name(dtype);
  return name ? name : weir_cuda_bytes_name(weir_dtype_size(dtype));
}

static const char* value_type(const writer_t* w, int value) {
  return type_name(w->code->types[value]);
}

// ---- which steps ----

static bool is_operand(const weir_fused_variant_t* variant, int value) {
  for (int i = 0; i < variant->operand_count; ++i) {
    if (variant->values[i] == value) return true;
  }
  return false;
}

static void need(writer_t* w, int value) {
  int step = value - w->code->program.input_count;
  if (step < 0 || w->is_needed[step]) return;
  w->is_needed[step] = true;
  ++w->step_count;
}

// What the variant reduces; or WEIR_FUSED_NO_VALUE.
static int reduction_operand(const writer_t* w) {
  const weir_fused_step_t* step = weir_fused_step_of(&w->code->program, w->variant->reduced);
  return step ? step->operands[0] : WEIR_FUSED_NO_VALUE;
}

// Results are needed, though they may be operands of later launches; of all else, what no operand
// stands for.
static void find_steps(writer_t* w) {
  const weir_fused_program_t* program = &w->code->program;
  for (int i = 0; i < w->variant->result_count; ++i) need(w, w->variant->results[i]);
  int source = reduction_operand(w);
  if (source != WEIR_FUSED_NO_VALUE && !is_operand(w->variant, source)) need(w, source);
  for (int i = program->step_count; i-- > 0;) {
    if (!w->is_needed[i]) continue;
    const weir_fused_step_t* step = &program->steps[i];
    for (int k = 0; k < weir_scalar_arity(step->scalar); ++k) {
      if (!is_operand(w->variant, step->operands[k])) need(w, step->operands[k]);
    }
  }
}

// ---- formulas ----

static int formula_kind(weir_scalar_t scalar) {
  switch (scalar.kind) {
    case WEIR_SCALAR_BINARY_FLAT:
    case WEIR_SCALAR_BINARY_SAME:
    case WEIR_SCALAR_BIAS: return WEIR_SCALAR_BINARY;
    default: return scalar.kind;
  }
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static bool is_same_formula(const weir_fused_step_t* a, const weir_fused_step_t* b) {
  return formula_kind(a->scalar) == formula_kind(b->scalar) &&
         a->scalar.function == b->scalar.function && a->type == b->type &&
         a->out_type == b->out_type && bits_of(a->parameter) == bits_of(b->parameter);
}

static void find_functions(writer_t* w) {
  const weir_fused_program_t* program = &w->code->program;
  for (int i = 0; i < program->step_count; ++i) {
    if (!w->is_needed[i]) continue;
    int first = 0;
    while (first < i && !(w->is_needed[first] && w->function[first] == first &&
                          is_same_formula(&program->steps[first], &program->steps[i])))
      ++first;
    w->function[i] = (uint16_t)first;
    ++w->uses[first];
  }
}

// False: there is none.
static bool write_formula(const weir_fused_step_t* step, weir_strbuf_t* out) {
  weir_dtype_t type = (weir_dtype_t)step->type;
  bool is_gradient = step->scalar.kind == WEIR_SCALAR_ACTIVATION_GRAD;
  const char* text = NULL;
  switch (formula_kind(step->scalar)) {
    case WEIR_SCALAR_UNARY:
      text = weir_cuda_unary_formula((weir_unary_op_t)step->scalar.function, type);
      break;
    case WEIR_SCALAR_BINARY:
      text = weir_cuda_binary_formula((weir_binary_op_t)step->scalar.function, type);
      break;
    case WEIR_SCALAR_CAST: text = weir_cuda_cast_formula(type, (weir_dtype_t)step->out_type); break;
    case WEIR_SCALAR_ACTIVATION:
    case WEIR_SCALAR_ACTIVATION_GRAD:
      weir_cuda_activation_formula((weir_activation_t)step->scalar.function, is_gradient,
                                   weir_activation_alpha(type, step->parameter), out);
      return weir_dtype_is_floating(type);
    default: return false;
  }
  if (text) weir_strbuf_puts(out, text);
  return text != NULL;
}

static void write_select(const writer_t* w, int at) {
  const char* type = type_name((weir_dtype_t)w->code->program.steps[at].type);
  weir_strbuf_printf(w->out,
                     "__device__ __forceinline__ %s f%d(bool x, %s a, %s b) {\n"
                     "  return x ? a : b;\n}\n",
                     type, at, type, type);
}

static weir_status_t* write_function(const writer_t* w, int at) {
  const weir_fused_step_t* step = &w->code->program.steps[at];
  const char* type = type_name((weir_dtype_t)step->type);
  const char* result = type_name((weir_dtype_t)step->out_type);
  bool is_binary = weir_scalar_arity(step->scalar) == 2;
  bool is_called = w->step_count > LONG && w->uses[at] > OFTEN;
  if (step->scalar.kind == WEIR_SCALAR_SELECT) {
    write_select(w, at);
    return NULL;
  }
  weir_strbuf_printf(w->out, "__device__ %s %s f%d(%s x",
                     is_called ? "__noinline__" : "__forceinline__", result, at, type);
  if (is_binary) weir_strbuf_printf(w->out, ", %s y", type);
  weir_strbuf_printf(w->out,
                     ") {\n  typedef %s T;\n  typedef T R;\n  typedef %s U;\n"
                     "  typedef element_t<T>::acc_t ACC;\n  ACC a = element_t<T>::load(x);\n",
                     type, weir_cuda_wrapping_name((weir_dtype_t)step->type));
  if (is_binary) weir_strbuf_puts(w->out, "  ACC b = element_t<T>::load(y);\n");
  weir_strbuf_printf(w->out, "  return element_t<%s>::store(", result);
  if (!write_formula(step, w->out))
    return WEIR_STATUS(UNIMPLEMENTED, "no GPU kernel computes %.*s of type %s in a fused node",
                       WEIR_VIEW_ARG(w->code->program.op_names[at]),
                       weir_dtype_name((weir_dtype_t)step->type));
  weir_strbuf_puts(w->out, ");\n}\n");
  return NULL;
}

// ---- steps ----

static void write_steps(const writer_t* w) {
  const weir_fused_program_t* program = &w->code->program;
  const weir_fused_variant_t* v = w->variant;
  weir_strbuf_puts(w->out, "__device__ __forceinline__ void steps(");
  for (int i = 0; i < v->operand_count; ++i)
    weir_strbuf_printf(w->out, "%s v%d, ", value_type(w, v->values[i]), v->values[i]);
  for (int i = 0; i < v->result_count; ++i)
    weir_strbuf_printf(w->out, "%s%s* r%d", i ? ", " : "", value_type(w, v->results[i]),
                       v->results[i]);
  int reduced = reduction_operand(w);
  if (reduced != WEIR_FUSED_NO_VALUE)
    weir_strbuf_printf(w->out, "%s%s* reduced", v->result_count ? ", " : "",
                       value_type(w, reduced));
  weir_strbuf_puts(w->out, ") {\n");
  for (int i = 0; i < program->step_count; ++i) {
    if (!w->is_needed[i]) continue;
    const weir_fused_step_t* step = &program->steps[i];
    int value = program->input_count + i;
    weir_strbuf_printf(w->out, "  %s v%d = f%d(", value_type(w, value), value, w->function[i]);
    for (int k = 0; k < weir_scalar_arity(step->scalar); ++k)
      weir_strbuf_printf(w->out, "%sv%d", k ? ", " : "", step->operands[k]);
    weir_strbuf_puts(w->out, ");\n");
  }
  for (int i = 0; i < v->result_count; ++i)
    weir_strbuf_printf(w->out, "  *r%d = v%d;\n", v->results[i], v->results[i]);
  if (reduced != WEIR_FUSED_NO_VALUE) weir_strbuf_printf(w->out, "  *reduced = v%d;\n", reduced);
  weir_strbuf_puts(w->out, "}\n");
}

// ---- the kernel ----

static bool is_kind(const writer_t* w, int i, weir_fused_kind_t kind) {
  return w->variant->kinds[i] == kind;
}

static bool has_extent(const writer_t* w, int i) {
  return is_kind(w, i, WEIR_FUSED_ROW) || is_kind(w, i, WEIR_FUSED_COLUMN);
}

static bool has_strided(const weir_fused_variant_t* v) {
  for (int i = 0; i < v->operand_count; ++i) {
    if (v->kinds[i] == WEIR_FUSED_STRIDED) return true;
  }
  return false;
}

// In the order in which launches pass them.
static void write_parameters(const writer_t* w) {
  const weir_fused_variant_t* v = w->variant;
  weir_strbuf_puts(w->out, "extern \"C\" __global__ void fused(int64_t n, int is_packed");
  if (has_strided(v)) weir_strbuf_puts(w->out, ", dims_t dims");
  for (int i = 0; i < v->operand_count; ++i) {
    int value = v->values[i];
    weir_strbuf_printf(w->out, ", const %s* p%d", value_type(w, value), value);
    if (has_extent(w, i)) weir_strbuf_printf(w->out, ", int64_t n%d", value);
    if (is_kind(w, i, WEIR_FUSED_STRIDED)) weir_strbuf_printf(w->out, ", strides_t s%d", value);
  }
  for (int i = 0; i < v->result_count; ++i)
    weir_strbuf_printf(w->out, ", %s* p%d", value_type(w, v->results[i]), v->results[i]);
  weir_strbuf_puts(w->out, ") {\n");
}

// Where element |index| is in the operands that are strided: in a7, for value 7.
static void write_positions(const writer_t* w, const char* index) {
  const weir_fused_variant_t* v = w->variant;
  if (!has_strided(v)) return;
  for (int i = 0; i < v->operand_count; ++i) {
    if (is_kind(w, i, WEIR_FUSED_STRIDED))
      weir_strbuf_printf(w->out, "    I a%d = 0;\n", v->values[i]);
  }
  weir_strbuf_printf(w->out,
                     "    I rest = %s;\n"
                     "    for (int d = dims.rank - 1; d >= 0; --d) {\n"
                     "      I dim = (I)dims.at[d], next = rest / dim, at = rest - next * dim;\n",
                     index);
  for (int i = 0; i < v->operand_count; ++i) {
    int value = v->values[i];
    if (is_kind(w, i, WEIR_FUSED_STRIDED))
      weir_strbuf_printf(w->out, "      a%d += at * (I)s%d.at[d];\n", value, value);
  }
  weir_strbuf_puts(w->out, "      rest = next;\n    }\n");
}

static bool is_held(const writer_t* w, int i) {
  return is_kind(w, i, WEIR_FUSED_ONE) && w->ones <= ONES;
}

static void write_pack_operand(const writer_t* w, int i) {
  int value = w->variant->values[i];
  const char* type = value_type(w, value);
  switch ((weir_fused_kind_t)w->variant->kinds[i]) {
    case WEIR_FUSED_FULL:
      weir_strbuf_printf(w->out, "    pack<%s> x%d = pack_at(p%d, i);\n", type, value, value);
      return;
    case WEIR_FUSED_ROW:
      weir_strbuf_printf(w->out, "    pack<%s> x%d = pack_at(p%d, i %% ((I)n%d / WIDTH));\n", type,
                         value, value, value);
      return;
    case WEIR_FUSED_COLUMN:
      weir_strbuf_printf(w->out, "    %s v%d = p%d[i / ((I)n%d / WIDTH)];\n", type, value, value,
                         value);
      return;
    case WEIR_FUSED_STRIDED:
      weir_strbuf_printf(w->out, "    I d%d = (I)s%d.at[dims.rank - 1];\n", value, value);
      return;
    default: return;
  }
}

static void write_pack_argument(const writer_t* w, int i) {
  int value = w->variant->values[i];
  switch ((weir_fused_kind_t)w->variant->kinds[i]) {
    case WEIR_FUSED_FULL:
    case WEIR_FUSED_ROW: weir_strbuf_printf(w->out, "x%d.at[k], ", value); return;
    case WEIR_FUSED_ONE:
      weir_strbuf_printf(w->out, "%s%d, ", is_held(w, i) ? "v" : "*p", value);
      return;
    case WEIR_FUSED_COLUMN: weir_strbuf_printf(w->out, "v%d, ", value); return;
    default: weir_strbuf_printf(w->out, "p%d[a%d + k * d%d], ", value, value, value); return;
  }
}

static void write_packs(const writer_t* w) {
  const weir_fused_variant_t* v = w->variant;
  weir_strbuf_puts(w->out,
                   "  I packs = is_packed ? (I)n / WIDTH : 0;\n"
                   "  for (I i = first; i < packs; i += step) {\n");
  write_positions(w, "i * WIDTH");
  for (int i = 0; i < v->operand_count; ++i) write_pack_operand(w, i);
  for (int i = 0; i < v->result_count; ++i)
    weir_strbuf_printf(w->out, "    pack<%s> y%d;\n", value_type(w, v->results[i]), v->results[i]);
  weir_strbuf_puts(w->out, "#pragma unroll\n    for (int k = 0; k < WIDTH; ++k)\n      steps(");
  for (int i = 0; i < v->operand_count; ++i) write_pack_argument(w, i);
  for (int i = 0; i < v->result_count; ++i)
    weir_strbuf_printf(w->out, "%s&y%d.at[k]", i ? ", " : "", v->results[i]);
  weir_strbuf_puts(w->out, ");\n");
  for (int i = 0; i < v->result_count; ++i)
    weir_strbuf_printf(w->out, "    store_pack(p%d, i, y%d);\n", v->results[i], v->results[i]);
  weir_strbuf_puts(w->out, "  }\n");
}

static void write_argument(const writer_t* w, int i) {
  int value = w->variant->values[i];
  switch ((weir_fused_kind_t)w->variant->kinds[i]) {
    case WEIR_FUSED_FULL: weir_strbuf_printf(w->out, "p%d[i], ", value); return;
    case WEIR_FUSED_ONE:
      weir_strbuf_printf(w->out, "%s%d, ", is_held(w, i) ? "v" : "*p", value);
      return;
    case WEIR_FUSED_ROW: weir_strbuf_printf(w->out, "p%d[i %% (I)n%d], ", value, value); return;
    case WEIR_FUSED_COLUMN: weir_strbuf_printf(w->out, "p%d[i / (I)n%d], ", value, value); return;
    default: weir_strbuf_printf(w->out, "p%d[a%d], ", value, value); return;
  }
}

static void write_kernel(const writer_t* w) {
  const weir_fused_variant_t* v = w->variant;
  write_parameters(w);
  weir_strbuf_puts(w->out, "  I first = (I)thread_of_grid(), step = (I)threads_of_grid();\n");
  for (int i = 0; i < v->operand_count; ++i) {
    if (is_held(w, i))
      weir_strbuf_printf(w->out, "  %s v%d = *p%d;\n", value_type(w, v->values[i]), v->values[i],
                         v->values[i]);
  }
  if (v->width > 1) write_packs(w);
  weir_strbuf_puts(w->out, v->width > 1
                               ? "  for (I i = packs * WIDTH + first; i < (I)n; i += step) {\n"
                               : "  for (I i = first; i < (I)n; i += step) {\n");
  write_positions(w, "i");
  weir_strbuf_puts(w->out, "    steps(");
  for (int i = 0; i < v->operand_count; ++i) write_argument(w, i);
  for (int i = 0; i < v->result_count; ++i)
    weir_strbuf_printf(w->out, "%sp%d + i", i ? ", " : "", v->results[i]);
  weir_strbuf_puts(w->out, ");\n  }\n}\n");
}

// ---- what a reduction takes ----

static void write_source(const writer_t* w) {
  const weir_fused_variant_t* v = w->variant;
  weir_strbuf_puts(w->out, "struct source_t {\n");
  if (has_strided(v)) weir_strbuf_puts(w->out, "  dims_t dims;\n");
  for (int i = 0; i < v->operand_count; ++i) {
    int value = v->values[i];
    weir_strbuf_printf(w->out, "  const %s* p%d;\n", value_type(w, value), value);
    if (has_extent(w, i)) weir_strbuf_printf(w->out, "  int64_t n%d;\n", value);
    if (is_kind(w, i, WEIR_FUSED_STRIDED)) weir_strbuf_printf(w->out, "  strides_t s%d;\n", value);
  }
  for (int i = 0; i < v->result_count; ++i)
    weir_strbuf_printf(w->out, "  %s* p%d;\n", value_type(w, v->results[i]), v->results[i]);
  weir_strbuf_puts(w->out, "};\n");
}

static bool is_one_a_pack(const writer_t* w, int i) {
  return is_kind(w, i, WEIR_FUSED_ONE) || is_kind(w, i, WEIR_FUSED_COLUMN);
}

static void write_held(const writer_t* w) {
  const weir_fused_variant_t* v = w->variant;
  weir_strbuf_puts(w->out, "template <int N>\nstruct held_t {\n");
  for (int i = 0; i < v->operand_count; ++i) {
    const char* type = value_type(w, v->values[i]);
    if (is_one_a_pack(w, i)) weir_strbuf_printf(w->out, "  %s v%d;\n", type, v->values[i]);
    else weir_strbuf_printf(w->out, "  pack_t<%s, N> x%d;\n", type, v->values[i]);
  }
  weir_strbuf_puts(w->out, "};\n");
}

static void write_fetched(const writer_t* w, int i) {
  int value = w->variant->values[i];
  const char* type = value_type(w, value);
  switch ((weir_fused_kind_t)w->variant->kinds[i]) {
    case WEIR_FUSED_FULL:
      weir_strbuf_printf(w->out, "    held.x%d = *(const pack_t<%s, N>*)(s.p%d + i);\n", value,
                         type, value);
      return;
    case WEIR_FUSED_ONE:
      weir_strbuf_printf(w->out, "    held.v%d = *s.p%d;\n", value, value);
      return;
    case WEIR_FUSED_ROW:
      weir_strbuf_printf(w->out, "    held.x%d = *(const pack_t<%s, N>*)(s.p%d + i %% (I)s.n%d);\n",
                         value, type, value, value);
      return;
    case WEIR_FUSED_COLUMN:
      weir_strbuf_printf(w->out, "    held.v%d = s.p%d[i / (I)s.n%d];\n", value, value, value);
      return;
    default:
      weir_strbuf_printf(w->out,
                         "    for (int k = 0; k < N; ++k)\n"
                         "      held.x%d.at[k] = s.p%d[a%d + k * (I)s%d.at[dims.rank - 1]];\n",
                         value, value, value, value);
      return;
  }
}

static void write_fetch(const writer_t* w) {
  const weir_fused_variant_t* v = w->variant;
  weir_strbuf_puts(w->out,
                   "template <int N>\n__device__ __forceinline__ void fetch(const source_t& s, "
                   "int64_t at, held_t<N>& held) {\n    I i = (I)at;\n");
  if (has_strided(v)) weir_strbuf_puts(w->out, "    const dims_t& dims = s.dims;\n");
  for (int i = 0; i < v->operand_count; ++i) {
    if (is_kind(w, i, WEIR_FUSED_STRIDED))
      weir_strbuf_printf(w->out, "    const strides_t& s%d = s.s%d;\n", v->values[i], v->values[i]);
  }
  write_positions(w, "i");
  for (int i = 0; i < v->operand_count; ++i) write_fetched(w, i);
  weir_strbuf_puts(w->out, "}\n");
}

static void write_take(const writer_t* w) {
  const weir_fused_variant_t* v = w->variant;
  weir_strbuf_printf(w->out,
                     "template <int N>\n__device__ __forceinline__ void take(const source_t& s, "
                     "int64_t at, const held_t<N>& held, %s* reduced) {\n    I i = (I)at;\n",
                     value_type(w, v->reduced));
  for (int i = 0; i < v->result_count; ++i)
    weir_strbuf_printf(w->out, "    pack_t<%s, N> y%d;\n", value_type(w, v->results[i]),
                       v->results[i]);
  weir_strbuf_puts(w->out, "#pragma unroll\n    for (int k = 0; k < N; ++k)\n      steps(");
  for (int i = 0; i < v->operand_count; ++i)
    weir_strbuf_printf(w->out, is_one_a_pack(w, i) ? "held.v%d, " : "held.x%d.at[k], ",
                       v->values[i]);
  for (int i = 0; i < v->result_count; ++i)
    weir_strbuf_printf(w->out, "&y%d.at[k], ", v->results[i]);
  weir_strbuf_puts(w->out, "&reduced[k]);\n");
  for (int i = 0; i < v->result_count; ++i)
    weir_strbuf_printf(w->out, "    store_whole((pack_t<%s, N>*)(s.p%d + i), y%d);\n",
                       value_type(w, v->results[i]), v->results[i], v->results[i]);
  weir_strbuf_puts(w->out, "}\n");
}

// All that reduce.cu wants to know of it. Packs are asked for ahead, as many as the registers for
// them allow.
static weir_status_t* write_reduction(const writer_t* w) {
  const weir_fused_variant_t* v = w->variant;
  const weir_fused_step_t* step = weir_fused_step_of(&w->code->program, v->reduced);
  int words = 0;
  for (int i = 0; i < v->operand_count; ++i)
    words += WEIR_MAX((int)weir_dtype_size(w->code->types[v->values[i]]) * v->width / 4, 1);
  write_source(w);
  write_held(w);
  write_fetch(w);
  write_take(w);
  weir_strbuf_printf(w->out, "#define HAS_SOURCE\nenum { AHEAD = %d };\n",
                     WEIR_MIN(WEIR_MAX(HELD / WEIR_MAX(words, 1), 1), 4));
  return weir_cuda_reduce_define((weir_reduce_op_t)step->scalar.function, (weir_dtype_t)step->type,
                                 w->out);
}

// ---- all of it ----

// Sixteen bytes of the largest type, less where that would take too many registers or instructions.
static int find_width(const writer_t* w) {
  const weir_fused_variant_t* v = w->variant;
  size_t size = 1;
  for (int i = 0; i < v->operand_count; ++i)
    size = WEIR_MAX(size, weir_dtype_size(w->code->types[v->values[i]]));
  for (int i = 0; i < v->result_count; ++i)
    size = WEIR_MAX(size, weir_dtype_size(w->code->types[v->results[i]]));
  int width = (int)(16 / size), words = WEIR_MAX((int)size / 4, 1);
  int count = v->operand_count + v->result_count;
  while (width > 1 && (width * words * count > WORDS || width * w->step_count > WORK)) width /= 2;
  return width;
}

static weir_status_t* write_all(writer_t* w, weir_fused_variant_t* variant) {
  find_steps(w);
  find_functions(w);
  variant->width = find_width(w);
  for (int i = 0; i < variant->operand_count; ++i) w->ones += variant->kinds[i] == WEIR_FUSED_ONE;
  weir_cuda_put_words(w->out);
  weir_strbuf_printf(w->out, "#define INDEX %s\nenum { WIDTH = %d };\n%s\n",
                     variant->is_wide ? "uint64_t" : "uint32_t", variant->width,
                     weir_cuda_source_fused);
  for (int i = 0; i < w->code->program.step_count; ++i) {
    if (w->is_needed[i] && w->function[i] == i) WEIR_TRY(write_function(w, i));
  }
  write_steps(w);
  if (variant->reduced != WEIR_FUSED_NO_VALUE) return write_reduction(w);
  write_kernel(w);
  return NULL;
}

weir_status_t* weir_fused_write(const weir_cuda_fused_t* code, weir_fused_variant_t* variant,
                                weir_strbuf_t* out) {
  weir_arena_t arena = {0};
  size_t steps = (size_t)code->program.step_count;
  writer_t w = {.code = code, .variant = variant, .out = out};
  w.is_needed = weir_arena_array(&arena, steps, sizeof(*w.is_needed));
  w.function = weir_arena_array(&arena, steps, sizeof(*w.function));
  w.uses = weir_arena_array(&arena, steps, sizeof(*w.uses));
  weir_status_t* status =
      w.is_needed && w.function && w.uses ? write_all(&w, variant) : weir_out_of_memory();
  weir_arena_free(&arena);
  return status;
}
