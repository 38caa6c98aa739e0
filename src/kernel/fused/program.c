// program.c — Programs of fused nodes as attributes, and what their steps may be.
#include "kernel/fused/program.h"

#include "kernel/elementwise/elementwise.h"
#include "kernel/nn/activation.h"
#include "kernel/reduce/reduce.h"
#include "tensor/cast.h"

// ---- scalar functions ----

int weir_scalar_arity(weir_scalar_t scalar) {
  switch (scalar.kind) {
    case WEIR_SCALAR_BINARY:
    case WEIR_SCALAR_BINARY_FLAT:
    case WEIR_SCALAR_BINARY_SAME:
    case WEIR_SCALAR_BIAS:
    case WEIR_SCALAR_ACTIVATION_GRAD: return 2;
    case WEIR_SCALAR_SELECT: return 3;
    default: return 1;
  }
}

static bool can_cast(weir_dtype_t from, weir_dtype_t to) {
  weir_status_t* status = weir_cast_elements(to, NULL, from, NULL, 0);
  bool is_good = !status && from != to;
  weir_status_destroy(status);
  return is_good;
}

bool weir_scalar_can_fuse(weir_scalar_t scalar, weir_dtype_t type, weir_dtype_t out_type) {
  if (!weir_dtype_is_plain(type) || !weir_dtype_is_plain(out_type)) return false;
  weir_unary_op_t unary = (weir_unary_op_t)scalar.function;
  weir_binary_op_t binary = (weir_binary_op_t)scalar.function;
  weir_activation_t activation = (weir_activation_t)scalar.function;
  switch (scalar.kind) {
    case WEIR_SCALAR_UNARY:
      return weir_unary_find(unary, type) && weir_unary_result(unary, type) == out_type;
    case WEIR_SCALAR_BINARY:
    case WEIR_SCALAR_BINARY_FLAT:
    case WEIR_SCALAR_BINARY_SAME:
    case WEIR_SCALAR_BIAS:
      return weir_binary_find(binary, type) && weir_binary_result(binary, type) == out_type &&
             !weir_binary_may_fail(binary, type);
    case WEIR_SCALAR_ACTIVATION: return weir_activation_find(activation, type) && type == out_type;
    case WEIR_SCALAR_ACTIVATION_GRAD:
      return weir_activation_grad_find(activation, type) && type == out_type;
    case WEIR_SCALAR_CAST: return can_cast(type, out_type);
    case WEIR_SCALAR_SELECT: return type == out_type;
    case WEIR_SCALAR_REDUCE:
    case WEIR_SCALAR_REDUCE_CHANNELS:
      return scalar.function == WEIR_REDUCE_SUM && weir_dtype_is_floating(type) && type == out_type;
    default: return false;
  }
}

bool weir_fused_is_reduced(uint32_t axes, int rank, int d) {
  int at = axes & WEIR_FUSED_FROM_END ? rank - 1 - d : d;
  return at >= WEIR_FUSED_AXES || !(axes >> at & 1);
}

bool weir_fused_reduces(const weir_fused_program_t* program) {
  for (int i = 0; i < program->step_count; ++i) {
    if (weir_scalar_reduces(program->steps[i].scalar)) return true;
  }
  return false;
}

double weir_scalar_cost(weir_scalar_t scalar) {
  switch (scalar.kind) {
    case WEIR_SCALAR_UNARY: return weir_unary_cost((weir_unary_op_t)scalar.function);
    case WEIR_SCALAR_BINARY:
    case WEIR_SCALAR_BINARY_FLAT:
    case WEIR_SCALAR_BINARY_SAME:
    case WEIR_SCALAR_BIAS: return weir_binary_cost((weir_binary_op_t)scalar.function);
    case WEIR_SCALAR_ACTIVATION:
    case WEIR_SCALAR_ACTIVATION_GRAD:
      return weir_activation_cost((weir_activation_t)scalar.function);
    default: return 0.5;
  }
}

// ---- as attributes ----

// A step is so many numbers: kind, function, type, out_type, operands, bits of the parameter or
// axes.
enum { NUMBERS = 5 + WEIR_FUSED_MAX_OPERANDS };

static void put_step(const weir_fused_step_t* step, int64_t* out) {
  uint32_t bits;
  memcpy(&bits, &step->parameter, sizeof(bits));
  if (weir_scalar_reduces(step->scalar)) bits = step->axes;
  *out++ = step->scalar.kind;
  *out++ = step->scalar.function;
  *out++ = step->type;
  *out++ = step->out_type;
  for (int k = 0; k < WEIR_FUSED_MAX_OPERANDS; ++k) *out++ = step->operands[k];
  *out = bits;
}

static void get_step(const int64_t* numbers, weir_fused_step_t* out) {
  uint32_t bits = (uint32_t)numbers[NUMBERS - 1];
  out->scalar.kind = (uint8_t)numbers[0];
  out->scalar.function = (uint8_t)numbers[1];
  out->type = (uint8_t)numbers[2];
  out->out_type = (uint8_t)numbers[3];
  for (int k = 0; k < WEIR_FUSED_MAX_OPERANDS; ++k) out->operands[k] = (uint16_t)numbers[4 + k];
  if (weir_scalar_reduces(out->scalar)) out->axes = bits;
  else memcpy(&out->parameter, &bits, sizeof(bits));
}

weir_status_t* weir_fused_encode(const weir_fused_program_t* program, weir_arena_t* arena,
                                 weir_named_attr_t out_attrs[WEIR_FUSED_ATTRS]) {
  size_t count = (size_t)program->step_count;
  size_t output_count = (size_t)program->output_count;
  int64_t* numbers = weir_arena_array(arena, count * NUMBERS + output_count, sizeof(*numbers));
  if (!numbers) return weir_out_of_memory();
  int64_t* outputs = numbers + count * NUMBERS;
  for (size_t i = 0; i < count; ++i) put_step(&program->steps[i], numbers + i * NUMBERS);
  for (size_t i = 0; i < output_count; ++i) outputs[i] = program->outputs[i];
  out_attrs[0] = weir_attr_ints("steps", numbers, count * NUMBERS);
  out_attrs[1] = weir_attr_ints("outputs", outputs, output_count);
  out_attrs[2] = weir_attr_strings("names", program->names, count);
  out_attrs[3] = weir_attr_strings("ops", program->op_names, count);
  return NULL;
}

// The numbers are anyone's where a graph was imported.
static weir_dtype_t value_type(const weir_node_def_t* node, const weir_fused_program_t* program,
                               int value) {
  if (value < program->input_count) return node->input_types[value];
  return (weir_dtype_t)program->steps[value - program->input_count].out_type;
}

static bool is_reduced(const weir_fused_program_t* program, int value) {
  int step = value - program->input_count;
  return step >= 0 && weir_scalar_reduces(program->steps[step].scalar);
}

static bool is_step_good(const weir_node_def_t* node, const weir_fused_program_t* program, int at) {
  const weir_fused_step_t* step = &program->steps[at];
  if (step->type >= WEIR_DTYPE_COUNT || step->out_type >= WEIR_DTYPE_COUNT) return false;
  static const int limits[] = {[WEIR_SCALAR_UNARY] = WEIR_UNARY_COUNT,
                               [WEIR_SCALAR_BINARY] = WEIR_BINARY_COUNT,
                               [WEIR_SCALAR_BINARY_FLAT] = WEIR_BINARY_COUNT,
                               [WEIR_SCALAR_BINARY_SAME] = WEIR_BINARY_COUNT,
                               [WEIR_SCALAR_BIAS] = WEIR_BINARY_COUNT,
                               [WEIR_SCALAR_ACTIVATION] = WEIR_ACTIVATION_COUNT,
                               [WEIR_SCALAR_ACTIVATION_GRAD] = WEIR_ACTIVATION_COUNT,
                               [WEIR_SCALAR_CAST] = 1,
                               [WEIR_SCALAR_SELECT] = 1,
                               [WEIR_SCALAR_REDUCE] = WEIR_REDUCE_COUNT};
  if (step->scalar.kind >= WEIR_COUNT_OF(limits) ||
      step->scalar.function >= limits[step->scalar.kind] ||
      !weir_scalar_can_fuse(step->scalar, (weir_dtype_t)step->type, (weir_dtype_t)step->out_type))
    return false;
  for (int k = 0; k < weir_scalar_arity(step->scalar); ++k) {
    bool is_condition = step->scalar.kind == WEIR_SCALAR_SELECT && k == 0;
    weir_dtype_t wanted = is_condition ? WEIR_DTYPE_BOOL : (weir_dtype_t)step->type;
    if (step->operands[k] >= program->input_count + at ||
        value_type(node, program, step->operands[k]) != wanted ||
        is_reduced(program, step->operands[k]))
      return false;
  }
  return true;
}

static bool is_good(const weir_node_def_t* node, const weir_fused_program_t* program) {
  for (int i = 0; i < program->step_count; ++i) {
    if (!is_step_good(node, program, i)) return false;
  }
  bool is_output[WEIR_FUSED_MAX_STEPS] = {false};
  for (int i = 0; i < program->output_count; ++i) {
    int step = program->outputs[i] - program->input_count;
    if (step < 0 || step >= program->step_count || is_output[step] ||
        value_type(node, program, program->outputs[i]) != node->output_types[i])
      return false;
    is_output[step] = true;
  }
  return true;
}

weir_status_t* weir_fused_decode(const weir_node_def_t* node, weir_arena_t* arena,
                                 weir_fused_program_t* out_program) {
  const weir_attr_t* numbers = weir_attrs_list(node->attrs, "steps");
  const weir_attr_t* values = weir_attrs_list(node->attrs, "outputs");
  const weir_attr_t* names = weir_attrs_list(node->attrs, "names");
  const weir_attr_t* op_names = weir_attrs_list(node->attrs, "ops");
  size_t count = numbers->count / NUMBERS;
  if (count == 0 || count > WEIR_FUSED_MAX_STEPS || numbers->count % NUMBERS ||
      names->count != count || op_names->count != count ||
      values->count != (size_t)node->output_count || node->input_count > WEIR_FUSED_MAX_INPUTS)
    return WEIR_STATUS(INVALID_ARGUMENT, "not a program: %zu numbers, %zu names", numbers->count,
                       names->count);
  weir_fused_step_t* steps = weir_arena_array(arena, count, sizeof(*steps));
  uint16_t* outputs = weir_arena_array(arena, values->count, sizeof(*outputs));
  if (!steps || !outputs) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) get_step(numbers->u.ints + i * NUMBERS, &steps[i]);
  for (size_t i = 0; i < values->count; ++i) outputs[i] = (uint16_t)values->u.ints[i];
  *out_program = (weir_fused_program_t){.input_count = node->input_count,
                                        .step_count = (int)count,
                                        .output_count = node->output_count,
                                        .steps = steps,
                                        .outputs = outputs,
                                        .names = names->u.strings,
                                        .op_names = op_names->u.strings};
  if (is_good(node, out_program)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "the program's types or values do not fit together");
}
