// cuda_fused.c — Runs of fused programs on GPUs: init, memory of outputs, and launches.
#include "kernel/fused/cuda_fused.h"

#include "kernel/elementwise/cwise.h"
#include "kernel/fused/cuda_launch.h"

// ---- init ----

enum { GUESS = 32 };  // size of a dimension that is not known yet

static weir_status_t* init_values(weir_cuda_fused_t* code, const weir_node_def_t* node) {
  const weir_fused_program_t* program = &code->program;
  size_t count = (size_t)program->input_count + (size_t)program->step_count;
  weir_dtype_t* types = weir_arena_array(&code->arena, count, sizeof(*types));
  code->types = types;
  code->sources = weir_arena_array(&code->arena, count, sizeof(*code->sources));
  code->output_of = weir_arena_array(&code->arena, count, sizeof(*code->output_of));
  if (!types || !code->sources || !code->output_of) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) code->output_of[i] = -1;
  for (int i = 0; i < program->output_count; ++i) code->output_of[program->outputs[i]] = (int16_t)i;
  for (int i = 0; i < program->input_count; ++i) {
    types[i] = weir_dtype_base(node->input_types[i]);
    code->sources[i] = (uint64_t)1 << i;
  }
  for (int i = 0; i < program->step_count; ++i) {
    const weir_fused_step_t* step = &program->steps[i];
    int value = program->input_count + i;
    types[value] = (weir_dtype_t)step->out_type;
    for (int k = 0; k < weir_scalar_arity(step->scalar); ++k)
      code->sources[value] |= code->sources[step->operands[k]];
  }
  return NULL;
}

// What is known of input |i| when the plan is made; NULL: nothing.
static const weir_shape_t* known_shape(const weir_node_def_t* node, int i) {
  const weir_attr_t* shapes = weir_attrs_find(node->attrs, "shapes");
  bool is_there = shapes && shapes->kind == WEIR_ATTR_SHAPE && shapes->is_list &&
                  shapes->count == (size_t)node->input_count;
  return is_there && shapes->u.shapes[i]->rank >= 0 ? shapes->u.shapes[i] : NULL;
}

static weir_status_t* guess_shape(const weir_shape_t* known, weir_arena_t* arena,
                                  weir_shape_view_t* out) {
  int rank = known ? known->rank : 1;
  int64_t* dims = weir_arena_array(arena, (size_t)rank + 1, sizeof(*dims));
  if (!dims) return weir_out_of_memory();
  for (int d = 0; d < rank; ++d) dims[d] = known && known->dims[d] >= 0 ? known->dims[d] : GUESS;
  *out = (weir_shape_view_t){.rank = rank, .dims = dims};
  return NULL;
}

// Of all that is not known, the largest that is.
static weir_status_t* guess_shapes(const weir_node_def_t* node, weir_arena_t* arena,
                                   weir_shape_view_t* shapes) {
  int largest = -1;
  for (int i = 0; i < node->input_count; ++i) {
    const weir_shape_t* known = known_shape(node, i);
    WEIR_TRY(guess_shape(known, arena, &shapes[i]));
    if (known &&
        (largest < 0 || weir_shape_view_count(shapes[i]) > weir_shape_view_count(shapes[largest])))
      largest = i;
  }
  for (int i = 0; i < node->input_count && largest >= 0; ++i) {
    if (!known_shape(node, i)) shapes[i] = shapes[largest];
  }
  return NULL;
}

static weir_status_t* alloc_shapes(const weir_fused_program_t* program, weir_arena_t* arena,
                                   weir_fused_shapes_t* out) {
  size_t values = (size_t)program->input_count + (size_t)program->step_count;
  out->shapes = weir_arena_array(arena, values, sizeof(*out->shapes));
  out->counts = weir_arena_array(arena, values, sizeof(*out->counts));
  return out->shapes && out->counts ? NULL : weir_out_of_memory();
}

// Compiles what the shapes that are known ask for.
static weir_status_t* compile(weir_cuda_fused_t* code, const weir_kernel_init_t* init,
                              weir_arena_t* arena) {
  weir_fused_shapes_t shapes;
  weir_fused_launches_t launches;
  const weir_fused_variant_t* variant = NULL;
  WEIR_TRY(alloc_shapes(&code->program, arena, &shapes));
  WEIR_TRY(guess_shapes(init->node, arena, shapes.shapes));
  weir_status_t* misfit = weir_fused_find_shapes(&code->program, arena, &shapes);
  if (misfit) {  // a guess, or an error for the step to meet
    weir_status_destroy(misfit);
    return NULL;
  }
  WEIR_TRY(weir_fused_plan(code, &shapes, arena, &launches));
  for (int i = 0; i < launches.count; ++i)
    WEIR_TRY(weir_fused_variant(code, init->device, &launches.items[i], &variant));
  return NULL;
}

weir_status_t* weir_cuda_fused_init(const weir_kernel_init_t* init, void* state) {
  weir_cuda_fused_t* code = state;
  weir_mutex_init(&code->mu);
  code->has_mutex = true;
  WEIR_TRY(weir_fused_decode(init->node, &code->arena, &code->program));
  WEIR_TRY(init_values(code, init->node));
  weir_arena_t arena = {0};
  weir_status_t* status = compile(code, init, &arena);
  weir_arena_free(&arena);
  return status;
}

void weir_cuda_fused_deinit(void* state) {
  weir_cuda_fused_t* code = state;
  weir_fused_variant_t* v = atomic_load_explicit(&code->variants, memory_order_relaxed);
  while (v) {
    weir_fused_variant_t* next = v->next;
    weir_free(v);
    v = next;
  }
  if (code->has_mutex) weir_mutex_destroy(&code->mu);
  weir_arena_free(&code->arena);
}

// ---- memory ----

typedef struct run_t {
  weir_kernel_ctx_t* ctx;
  weir_cuda_fused_t* code;
  weir_arena_t arena;
  weir_fused_shapes_t shapes;
  weir_fused_launches_t launches;
  void** data;              // by value: memory; NULL: none
  weir_tensor_t** scratch;  // by value: memory of what is no output, where steps run alone
} run_t;

static bool reads(const weir_fused_launch_t* launch, int value) {
  for (int i = 0; i < launch->operand_count; ++i) {
    if (launch->operands[i].value == value) return true;
  }
  return false;
}

// An input whose memory |value|, a result of launch |at|, may be written to: each thread has read
// its elements before it writes there, and no later launch reads them. -1: none.
static int find_free_input(const run_t* run, int at, int value) {
  const weir_fused_launch_t* launch = &run->launches.items[at];
  for (int i = 0; i < launch->operand_count; ++i) {
    int input = launch->operands[i].value;
    if (launch->operands[i].kind != WEIR_FUSED_FULL || input >= run->ctx->input_count ||
        weir_dtype_size(run->code->types[input]) != weir_dtype_size(run->code->types[value]))
      continue;
    weir_tensor_t* t = run->ctx->inputs[input].tensor;
    bool is_free = t && weir_tensor_is_sole(t);
    for (int k = at + 1; k < run->launches.count && is_free; ++k)
      is_free = !reads(&run->launches.items[k], input);
    if (is_free) return input;
  }
  return -1;
}

static weir_status_t* make_output(run_t* run, int at, int value) {
  weir_shape_view_t shape = run->shapes.shapes[value];
  int output = run->code->output_of[value];
  int from = at >= 0 ? find_free_input(run, at, value) : -1;
  weir_tensor_t* tensor = NULL;
  if (from >= 0)
    WEIR_TRY(weir_kernel_forward(run->ctx, from, output, shape.rank, shape.dims, &tensor));
  else WEIR_TRY(weir_kernel_output(run->ctx, output, shape.rank, shape.dims, &tensor));
  run->data[value] = tensor->data;
  return NULL;
}

static weir_status_t* make_results(run_t* run, int at) {
  const weir_fused_launch_t* launch = &run->launches.items[at];
  for (int i = 0; i < launch->result_count; ++i) {
    int value = launch->results[i];
    if (run->code->output_of[value] >= 0) {
      WEIR_TRY(make_output(run, at, value));
      continue;
    }
    WEIR_TRY(
        weir_kernel_scratch(run->ctx, run->code->types[value], launch->n, &run->scratch[value]));
    run->data[value] = run->scratch[value]->data;
  }
  return NULL;
}

// Outputs without elements, and sums of none.
static weir_status_t* make_empty_outputs(run_t* run) {
  const weir_fused_program_t* program = &run->code->program;
  for (int i = 0; i < program->output_count; ++i) {
    int value = program->outputs[i];
    const weir_fused_step_t* step = weir_fused_step_of(program, value);
    bool is_sum = weir_scalar_reduces(step->scalar);
    if (run->shapes.counts[is_sum ? step->operands[0] : value] > 0) continue;
    WEIR_TRY(make_output(run, -1, value));
    size_t size = (size_t)run->shapes.counts[value] * weir_dtype_size(run->code->types[value]);
    if (size > 0) WEIR_TRY(weir_cuda_zero(run->ctx->device, run->data[value], size));
  }
  return NULL;
}

// ---- launches ----

// As the kernel has them.
typedef struct dims_t {
  int64_t at[WEIR_FUSED_MAX_DIMS];
  int rank;
} dims_t;

static bool is_aligned(const void* pointer) { return ((uintptr_t)pointer & 15) == 0; }

// Whether packs of |width| elements lie in one piece everywhere.
static bool is_packed(const run_t* run, const weir_fused_launch_t* launch, int width) {
  bool is_good = width > 1;
  for (int i = 0; i < launch->result_count && is_good; ++i)
    is_good = is_aligned(run->data[launch->results[i]]);
  for (int i = 0; i < launch->operand_count && is_good; ++i) {
    const weir_fused_operand_t* operand = &launch->operands[i];
    int kind = operand->kind;
    if (kind == WEIR_FUSED_FULL || kind == WEIR_FUSED_ROW)
      is_good = is_aligned(run->data[operand->value]);
    if (kind == WEIR_FUSED_ROW || kind == WEIR_FUSED_COLUMN)
      is_good = is_good && operand->extent % width == 0;
    if (kind == WEIR_FUSED_STRIDED) is_good = launch->dims[launch->rank - 1] % width == 0;
  }
  return is_good;
}

// Enough for n, the flag, the dimensions, an operand and a number for each of them, and the
// results.
enum { MAX_ARGS = 3 + 2 * WEIR_FUSED_MAX_INPUTS + WEIR_FUSED_MAX_RESULTS };

// What the kernel of a launch reads and writes, one after the other: source_t of its text, all of
// which is of eight bytes.
typedef struct source_t {
  int64_t words[WEIR_FUSED_MAX_DIMS + 1 + 2 * WEIR_FUSED_MAX_INPUTS +
                WEIR_FUSED_MAX_DIMS * WEIR_FUSED_MAX_STRIDED + WEIR_FUSED_MAX_RESULTS];
  size_t count;
} source_t;

static void put(source_t* source, const void* words, size_t count) {
  memcpy(source->words + source->count, words, count * sizeof(*source->words));
  source->count += count;
}

static void put_source(const run_t* run, const weir_fused_launch_t* launch, source_t* source) {
  if (launch->rank > 0) {
    int64_t rank = launch->rank;
    put(source, launch->dims, WEIR_FUSED_MAX_DIMS);
    put(source, &rank, 1);
  }
  for (int i = 0; i < launch->operand_count; ++i) {
    const weir_fused_operand_t* operand = &launch->operands[i];
    put(source, &run->data[operand->value], 1);
    if (operand->kind == WEIR_FUSED_ROW || operand->kind == WEIR_FUSED_COLUMN)
      put(source, &operand->extent, 1);
    if (operand->kind == WEIR_FUSED_STRIDED) put(source, operand->strides, WEIR_FUSED_MAX_DIMS);
  }
  for (int i = 0; i < launch->result_count; ++i) put(source, &run->data[launch->results[i]], 1);
}

static weir_status_t* launch_reduction(run_t* run, const weir_fused_launch_t* launch,
                                       const weir_fused_variant_t* variant) {
  const weir_fused_step_t* step = weir_fused_step_of(&run->code->program, launch->reduced);
  bool is_reduced[WEIR_MAX_RANK];
  for (int d = 0; d < launch->shape.rank; ++d)
    is_reduced[d] = weir_fused_is_reduced(step->axes, launch->shape.rank, d);
  WEIR_TRY(make_output(run, -1, launch->reduced));
  source_t source = {.count = 0};
  put_source(run, launch, &source);
  weir_cuda_reduction_t what = {.rank = launch->shape.rank,
                                .dims = launch->shape.dims,
                                .is_reduced = is_reduced,
                                .source = source.words,
                                .y = run->data[launch->reduced],
                                .width = variant->width,
                                .is_packed = is_packed(run, launch, variant->width)};
  return weir_cuda_reduce_from(run->ctx, &variant->reduce, &what);
}

static weir_status_t* launch_one(run_t* run, int at) {
  weir_fused_launch_t* launch = &run->launches.items[at];
  weir_device_t* device = run->ctx->device;
  const weir_fused_variant_t* variant = NULL;
  WEIR_TRY(weir_fused_variant(run->code, device, launch, &variant));
  WEIR_TRY(make_results(run, at));
  if (launch->reduced != WEIR_FUSED_NO_VALUE) return launch_reduction(run, launch, variant);
  int packed = is_packed(run, launch, variant->width);
  dims_t dims = {.rank = launch->rank};
  memcpy(dims.at, launch->dims, sizeof(dims.at));
  void* args[MAX_ARGS] = {&launch->n, &packed};
  int count = 2;
  if (launch->rank > 0) args[count++] = &dims;
  for (int i = 0; i < launch->operand_count; ++i) {
    weir_fused_operand_t* operand = &launch->operands[i];
    args[count++] = &run->data[operand->value];
    if (operand->kind == WEIR_FUSED_ROW || operand->kind == WEIR_FUSED_COLUMN)
      args[count++] = &operand->extent;
    if (operand->kind == WEIR_FUSED_STRIDED) args[count++] = operand->strides;
  }
  for (int i = 0; i < launch->result_count; ++i) args[count++] = &run->data[launch->results[i]];
  int64_t threads = packed ? launch->n / variant->width + 1 : launch->n;
  weir_cuda_size_t size = weir_cuda_size_for(device, threads);
  return weir_cuda_launch(device, variant->function, &size, args);
}

static weir_status_t* prepare(run_t* run) {
  const weir_fused_program_t* program = &run->code->program;
  size_t values = (size_t)program->input_count + (size_t)program->step_count;
  WEIR_TRY(alloc_shapes(program, &run->arena, &run->shapes));
  run->data = weir_arena_array(&run->arena, values, sizeof(*run->data));
  run->scratch = weir_arena_array(&run->arena, values, sizeof(*run->scratch));
  if (!run->data || !run->scratch) return weir_out_of_memory();
  for (int i = 0; i < program->input_count; ++i) {
    const weir_tensor_t* t = weir_kernel_input(run->ctx, i);
    run->shapes.shapes[i] = weir_shape_view_of(t);
    run->data[i] = t->data;
  }
  WEIR_TRY(weir_fused_find_shapes(program, &run->arena, &run->shapes));
  return weir_fused_plan(run->code, &run->shapes, &run->arena, &run->launches);
}

weir_status_t* weir_cuda_fused_compute(weir_kernel_ctx_t* ctx) {
  run_t run = {.ctx = ctx, .code = ctx->state};
  weir_status_t* status = prepare(&run);
  if (!status) status = make_empty_outputs(&run);
  for (int i = 0; i < run.launches.count && !status; ++i) status = launch_one(&run, i);
  int values = run.code->program.input_count + run.code->program.step_count;
  for (int i = 0; run.scratch && run.launches.is_stepwise && i < values; ++i)
    weir_tensor_release(run.scratch[i]);
  weir_arena_free(&run.arena);
  return status;
}
