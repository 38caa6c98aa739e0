// run.c — Programs of fused nodes: a tile of all elements goes through all steps before the next,
// so that what one step leaves the next one finds in the first-level cache.
//
// Each step is the loop that the node's own kernel runs (kernel/elementwise, kernel/nn), on fewer
// elements at a time, so results are the same bit for bit. Values that are neither inputs nor
// outputs are in registers: pieces of a frame on the stack, as many as are alive at once.
//
// A run where all inputs are scalars or of one shape, the common one, is planned here, in one sweep
// over the steps: those that only scalars are behind are computed once, before the tiles. All else
// is planned in run_shapes.c.
#include "kernel/elementwise/select.h"
#include "kernel/fused/internal.h"
#include "tensor/cast.h"

enum {
  FRAME_BYTES = 16384,
  TILE_LIMIT = 1024,
  SMALL = 48,          // values of which the bookkeeping is on the stack
  ELEMENT_LIMIT = 16,  // bytes
};
#define SERIAL_NS 20000.0  // below this much work a run is not worth looking at the pool for

// ---- init ----

static void find_code(const weir_fused_step_t* step, weir_fused_loop_t* loop) {
  switch (step->scalar.kind) {
    case WEIR_SCALAR_UNARY:
      loop->fn.unary = weir_unary_find((weir_unary_op_t)step->scalar.function, loop->type);
      break;
    case WEIR_SCALAR_BINARY:
    case WEIR_SCALAR_BINARY_FLAT:
    case WEIR_SCALAR_BINARY_SAME:
    case WEIR_SCALAR_BIAS:
      loop->fn.binary = weir_binary_find((weir_binary_op_t)step->scalar.function, loop->type);
      break;
    case WEIR_SCALAR_ACTIVATION:
      loop->fn.activation =
          weir_activation_find((weir_activation_t)step->scalar.function, loop->type);
      break;
    case WEIR_SCALAR_ACTIVATION_GRAD:
      loop->fn.activation_grad =
          weir_activation_grad_find((weir_activation_t)step->scalar.function, loop->type);
      break;
    default: break;
  }
}

static void init_loop(weir_fused_code_t* code, int at) {
  const weir_fused_step_t* step = &code->program.steps[at];
  weir_fused_loop_t* loop = &code->loops[at];
  int result = code->program.input_count + at;
  *loop = (weir_fused_loop_t){.kind = step->scalar.kind,
                              .arity = (uint8_t)weir_scalar_arity(step->scalar),
                              .result = (uint16_t)result,
                              .type = (weir_dtype_t)step->type,
                              .out_type = (weir_dtype_t)step->out_type,
                              .out_size = (uint8_t)weir_dtype_size((weir_dtype_t)step->out_type),
                              .parameter = step->parameter};
  find_code(step, loop);
  code->last_use[result] = (uint16_t)at;
  for (int k = 0; k < loop->arity; ++k) {
    loop->operands[k] = step->operands[k];
    code->sources[result] |= code->sources[step->operands[k]];
    code->last_use[step->operands[k]] = (uint16_t)at;
  }
  code->element_size = WEIR_MAX(code->element_size, weir_dtype_size((weir_dtype_t)step->type));
  code->element_size = WEIR_MAX(code->element_size, (size_t)loop->out_size);
  code->cost += weir_scalar_cost(step->scalar);
  code->has_bias |= step->scalar.kind == WEIR_SCALAR_BIAS;
}

static size_t value_size(const weir_fused_code_t* code, int value) {
  int step = value - code->program.input_count;
  return step < 0 ? 0 : code->loops[step].out_size;
}

// Whether a step may write its result where operand |k|, which ends there, is.
static bool can_overwrite(const weir_fused_loop_t* loop, int k) {
  if (loop->kind == WEIR_SCALAR_CAST) return false;
  return loop->kind != WEIR_SCALAR_SELECT || k > 0;
}

static bool is_in_register(const weir_fused_code_t* code, int value) {
  return value >= code->program.input_count && code->output_of[value] < 0;
}

// Gives each result a register that nothing alive is in: an operand's, where that ends here and may
// be overwritten, else one that is free.
static void assign_register(weir_fused_code_t* code, int at, uint16_t* free_list, int* free_count) {
  weir_fused_loop_t* loop = &code->loops[at];
  bool needs_one = is_in_register(code, loop->result);
  int taken = -1;
  for (int k = 0; k < loop->arity && needs_one && taken < 0; ++k) {
    int value = loop->operands[k];
    bool ends = is_in_register(code, value) && code->last_use[value] == at;
    if (ends && can_overwrite(loop, k) && value_size(code, value) == loop->out_size) taken = value;
  }
  if (taken >= 0) {
    loop->slot = code->loops[taken - code->program.input_count].slot;
  } else if (needs_one) {
    loop->slot = *free_count ? free_list[--*free_count] : (uint16_t)code->register_count++;
  }
  for (int k = 0; k < loop->arity; ++k) {
    int value = loop->operands[k];
    bool is_repeated =
        (k > 0 && loop->operands[0] == value) || (k > 1 && loop->operands[1] == value);
    if (is_repeated || value == taken || !is_in_register(code, value)) continue;
    if (code->last_use[value] == at)
      free_list[(*free_count)++] = code->loops[value - code->program.input_count].slot;
  }
  // A result that nobody reads.
  if (needs_one && code->last_use[loop->result] == at) free_list[(*free_count)++] = loop->slot;
}

weir_status_t* weir_fused_init(const weir_kernel_init_t* init, void* state) {
  weir_fused_code_t* code = state;
  weir_fused_program_t* program = &code->program;
  WEIR_TRY(weir_fused_decode(init->node, &code->arena, program));
  if (weir_fused_reduces(program))
    return WEIR_STATUS(UNIMPLEMENTED, "no kernel of the CPU takes a reduction along");
  size_t steps = (size_t)program->step_count;
  size_t values = steps + (size_t)program->input_count;
  uint16_t* free_list = weir_arena_array(&code->arena, 2 * steps, sizeof(*free_list));
  code->loops = weir_arena_array(&code->arena, steps, sizeof(*code->loops));
  code->sources = weir_arena_array(&code->arena, values, sizeof(*code->sources));
  code->last_use = weir_arena_array(&code->arena, values, sizeof(*code->last_use));
  code->output_of = weir_arena_array(&code->arena, values, sizeof(*code->output_of));
  if (!free_list || !code->loops || !code->sources || !code->last_use || !code->output_of)
    return weir_out_of_memory();
  for (int i = 0; i < program->input_count; ++i) code->sources[i] = (uint64_t)1 << i;
  for (size_t i = 0; i < values; ++i) code->output_of[i] = -1;
  for (int i = 0; i < program->output_count; ++i) code->output_of[program->outputs[i]] = (int16_t)i;
  for (int i = 0; i < program->step_count; ++i) init_loop(code, i);
  int free_count = 0;
  for (int i = 0; i < program->step_count; ++i) assign_register(code, i, free_list, &free_count);
  return NULL;
}

void weir_fused_deinit(void* state) {
  weir_fused_code_t* code = state;
  weir_arena_free(&code->arena);
}

// ---- tiles ----

WEIR_INLINE char* address(const place_t* place, char* frame, int64_t at) {
  return place->base ? place->base + (size_t)at * place->step : frame + place->offset;
}

static void run_select(const place_t* const places[3], char* const operands[3], char* z, int64_t n,
                       size_t size) {
  weir_select_run_t run = {.count = n,
                           .condition = (const bool*)operands[0],
                           .t = operands[1],
                           .e = operands[2],
                           .y = z,
                           .condition_step = !places[0]->is_one,
                           .t_step = !places[1]->is_one,
                           .e_step = !places[2]->is_one};
  weir_select_run(&run, size);
}

// Runs a step on |n| elements from |at| on.
WEIR_INLINE void run_step(const weir_fused_loop_t* loop, const place_t* places, char* frame,
                          int64_t at, int64_t n) {
  const place_t* px = &places[loop->operands[0]];
  const place_t* py = &places[loop->operands[1]];
  char* x = address(px, frame, at);
  char* z = address(&places[loop->result], frame, at);
  switch (loop->kind) {
    case WEIR_SCALAR_UNARY: loop->fn.unary(x, z, n); return;
    case WEIR_SCALAR_ACTIVATION: loop->fn.activation(x, z, n, loop->parameter); return;
    case WEIR_SCALAR_BINARY:
    case WEIR_SCALAR_BINARY_FLAT:
    case WEIR_SCALAR_BINARY_SAME:
    case WEIR_SCALAR_BIAS: {
      weir_span_t span = n == 1       ? WEIR_SPAN_BOTH
                         : px->is_one ? WEIR_SPAN_Y
                         : py->is_one ? WEIR_SPAN_X
                                      : WEIR_SPAN_BOTH;
      loop->fn.binary(x, address(py, frame, at), z, n, span);
      return;
    }
    case WEIR_SCALAR_ACTIVATION_GRAD:
      loop->fn.activation_grad(x, address(py, frame, at), z, n, loop->parameter);
      return;
    case WEIR_SCALAR_CAST:
      weir_status_destroy(weir_cast_elements(loop->out_type, z, loop->type, x, n));
      return;
    default: {
      const place_t* pe = &places[loop->operands[2]];
      const place_t* all[3] = {px, py, pe};
      char* operands[3] = {x, address(py, frame, at), address(pe, frame, at)};
      run_select(all, operands, z, n, loop->out_size);
      return;
    }
  }
}

void weir_fused_run_one(const tiles_t* tiles, int step) {
  run_step(&tiles->code->loops[step], tiles->places, NULL, 0, 1);
}

static void run_range(void* arg, int64_t begin, int64_t end) {
  const tiles_t* tiles = arg;
  const weir_fused_loop_t* loops = tiles->code->loops;
  _Alignas(64) char frame[FRAME_BYTES];
  for (int64_t at = begin; at < end; at += tiles->tile) {
    int64_t n = WEIR_MIN(tiles->tile, end - at);
    for (int i = 0; i < tiles->spread_count; ++i) {
      const spread_t* s = tiles->spreads[i];
      weir_broadcast_gather(&s->plan, at, n, s->data, s->size,
                            frame + tiles->places[s->value].offset);
    }
    for (int i = 0; i < tiles->count; ++i)
      run_step(&loops[tiles->list[i]], tiles->places, frame, at, n);
  }
}

bool weir_fused_fits(size_t register_count, size_t element_size) {
  return register_count * element_size <= FRAME_BYTES;
}

int64_t weir_fused_tile(size_t register_count, size_t element_size, int64_t n) {
  int64_t tile = TILE_LIMIT;
  if (register_count)
    tile = WEIR_MIN(tile, (int64_t)(FRAME_BYTES / (register_count * element_size)));
  if (tile >= 64) tile -= tile % 64;
  return WEIR_MAX(WEIR_MIN(tile, n), (int64_t)1);
}

void weir_fused_run(weir_pool_t* pool, const tiles_t* tiles, int64_t n, double cost) {
  tiles_t job = *tiles;
  if (!pool || (double)n * cost < SERIAL_NS) run_range(&job, 0, n);
  else weir_pool_for(pool, n, cost, run_range, &job);
}

// ---- outputs ----

// Whether input |from| is not read any more when the step that makes |value| writes.
static bool is_free_at(const weir_fused_code_t* code, int from, int value) {
  int step = value - code->program.input_count;
  const weir_fused_loop_t* loop = &code->loops[step];
  if (code->last_use[from] != step) return code->last_use[from] < step;
  for (int k = 0; k < loop->arity; ++k) {
    if (loop->operands[k] == from && !can_overwrite(loop, k)) return false;
  }
  return true;
}

static int find_free_input(const weir_kernel_ctx_t* ctx, int value, int64_t n) {
  const weir_fused_code_t* code = ctx->state;
  const weir_fused_loop_t* loop = &code->loops[value - code->program.input_count];
  for (int i = 0; i < ctx->input_count; ++i) {
    weir_tensor_t* t = ctx->inputs[i].tensor;
    if (t && t->count == n && weir_dtype_size(weir_tensor_type(t)) == loop->out_size &&
        is_free_at(code, i, value) && weir_tensor_is_sole(t))
      return i;
  }
  return -1;
}

weir_status_t* weir_fused_output(weir_kernel_ctx_t* ctx, int i, weir_shape_view_t shape, int64_t n,
                                 char** out_data) {
  const weir_fused_code_t* code = ctx->state;
  weir_tensor_t* tensor = NULL;
  int from = n ? find_free_input(ctx, code->program.outputs[i], n) : -1;
  if (from >= 0) WEIR_TRY(weir_kernel_forward(ctx, from, i, shape.rank, shape.dims, &tensor));
  else WEIR_TRY(weir_kernel_output(ctx, i, shape.rank, shape.dims, &tensor));
  *out_data = tensor->data;
  return NULL;
}

// ---- scalars and one shape ----

// What a run needs besides the frame; on the stack where it is small.
typedef struct plain_t {
  place_t* places;  // by value
  uint16_t* list;
  char* ones;  // an element a step
  weir_shape_view_t shape;
  int64_t n;
  uint64_t full;  // bit i: input i has that shape; the others are scalars
} plain_t;

// False when the inputs are something else, or have no elements.
static bool find_shape(const weir_kernel_ctx_t* ctx, plain_t* run) {
  const weir_tensor_t* like = NULL;
  run->full = 0;
  for (int i = 0; i < ctx->input_count; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, i);
    if (t->rank == 0) continue;
    if (!like) like = t;
    else if (!weir_tensor_same_shape(like, t)) return false;
    run->full |= (uint64_t)1 << i;
  }
  if (!like) {
    like = weir_kernel_input(ctx, 0);
    run->full = ~(uint64_t)0;
  }
  run->shape = weir_shape_view_of(like);
  run->n = like->count;
  return run->n > 0;
}

static bool is_full(const weir_fused_code_t* code, const plain_t* run, int value) {
  return (code->sources[value] & run->full) != 0;
}

// Ops that do not broadcast take two scalars, or two of the shape; a bias is neither.
static bool fits(const weir_fused_code_t* code, const plain_t* run) {
  if (code->has_bias) return false;
  uint64_t scalars = ~run->full << (64 - code->program.input_count);
  if (!scalars) return true;
  for (int i = 0; i < code->program.step_count; ++i) {
    const weir_fused_loop_t* loop = &code->loops[i];
    bool broadcasts = loop->kind != WEIR_SCALAR_BINARY_FLAT &&
                      loop->kind != WEIR_SCALAR_BINARY_SAME &&
                      loop->kind != WEIR_SCALAR_ACTIVATION_GRAD;
    if (!broadcasts &&
        is_full(code, run, loop->operands[0]) != is_full(code, run, loop->operands[1]))
      return false;
  }
  return true;
}

static void place_inputs(const weir_kernel_ctx_t* ctx, plain_t* run) {
  for (int i = 0; i < ctx->input_count; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, i);
    bool advances = run->full >> i & 1;
    size_t size = weir_dtype_size(weir_tensor_type(t));
    run->places[i] =
        (place_t){.base = t->data, .step = (uint16_t)(advances ? size : 0), .is_one = !advances};
  }
}

static weir_status_t* place_outputs(weir_kernel_ctx_t* ctx, plain_t* run) {
  const weir_fused_code_t* code = ctx->state;
  for (int i = 0; i < ctx->output_count; ++i) {
    int value = code->program.outputs[i];
    bool advances = is_full(code, run, value);
    weir_shape_view_t shape = advances ? run->shape : (weir_shape_view_t){.rank = 0};
    place_t place = {.is_one = !advances,
                     .step = advances ? code->loops[value - ctx->input_count].out_size : 0};
    WEIR_TRY(weir_fused_output(ctx, i, shape, advances ? run->n : 0, &place.base));
    run->places[value] = place;
  }
  return NULL;
}

static weir_status_t* compute_plain(weir_kernel_ctx_t* ctx, plain_t* run) {
  const weir_fused_code_t* code = ctx->state;
  tiles_t tiles = {.code = code, .places = run->places, .list = run->list};
  tiles.tile = weir_fused_tile((size_t)code->register_count, code->element_size, run->n);
  size_t slot_size = (size_t)tiles.tile * code->element_size;
  place_inputs(ctx, run);
  WEIR_TRY(place_outputs(ctx, run));
  for (int i = 0; i < code->program.step_count; ++i) {
    const weir_fused_loop_t* loop = &code->loops[i];
    bool advances = is_full(code, run, loop->result);
    place_t* place = &run->places[loop->result];
    if (code->output_of[loop->result] < 0) {
      char* one = advances ? NULL : run->ones + (size_t)i * ELEMENT_LIMIT;
      *place =
          (place_t){.base = one, .offset = (uint32_t)(loop->slot * slot_size), .is_one = !advances};
    }
    if (advances) run->list[tiles.count++] = (uint16_t)i;
    else weir_fused_run_one(&tiles, i);
  }
  weir_fused_run(weir_kernel_pool(ctx), &tiles, run->n, code->cost);
  return NULL;
}

static weir_status_t* compute_large(weir_kernel_ctx_t* ctx, plain_t* run) {
  const weir_fused_code_t* code = ctx->state;
  size_t steps = (size_t)code->program.step_count;
  size_t values = steps + (size_t)code->program.input_count;
  size_t size = values * sizeof(place_t) + steps * (ELEMENT_LIMIT + sizeof(uint16_t));
  char* block = weir_malloc(size);
  if (!block) return weir_out_of_memory();
  run->places = (place_t*)(void*)block;
  run->ones = block + values * sizeof(place_t);
  run->list = (uint16_t*)(void*)(run->ones + steps * ELEMENT_LIMIT);
  weir_status_t* status = compute_plain(ctx, run);
  weir_free(block);
  return status;
}

static weir_status_t* compute_small(weir_kernel_ctx_t* ctx, const plain_t* found) {
  place_t places[SMALL];
  uint16_t list[SMALL];
  _Alignas(16) char ones[SMALL * ELEMENT_LIMIT];
  plain_t run = *found;
  run.places = places;
  run.list = list;
  run.ones = ones;
  return compute_plain(ctx, &run);
}

weir_status_t* weir_fused_compute(weir_kernel_ctx_t* ctx) {
  const weir_fused_code_t* code = ctx->state;
  plain_t run;
  if (!find_shape(ctx, &run) || !fits(code, &run) ||
      !weir_fused_fits((size_t)code->register_count, code->element_size))
    return weir_fused_compute_shapes(ctx);
  bool is_small = code->program.step_count + code->program.input_count <= SMALL;
  return is_small ? compute_small(ctx, &run) : compute_large(ctx, &run);
}
