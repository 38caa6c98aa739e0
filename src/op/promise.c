// promise.c — From the shapes of inputs, and the values of those on the host, to empty outputs.
#include "op/promise.h"

#include "op/shape_ctx.h"

static bool are_plain(const weir_dtype_t* types, int count) {
  for (int i = 0; i < count; ++i) {
    if (weir_dtype_is_ref(types[i]) || !weir_dtype_is_plain(types[i])) return false;
  }
  return true;
}

bool weir_node_may_promise(const weir_node_def_t* node, const weir_kernel_def_t* kernel) {
  const weir_op_t* op = node->op;
  const weir_op_flags_t others = WEIR_OP_STATEFUL | WEIR_OP_VIEW | WEIR_OP_PASS_THROUGH;
  return op && op->def && op->def->infer_shape && !(op->flags & others) && node->output_count > 0 &&
         weir_kernel_host_args(node, kernel, true) == 0 &&
         are_plain(node->input_types, node->input_count) &&
         are_plain(node->output_types, node->output_count);
}

// ---- shapes ----

static bool describe_inputs(const weir_kernel_ctx_t* ctx, weir_arena_t* arena,
                            const weir_shape_t** shapes, const weir_tensor_t** values) {
  for (int i = 0; i < ctx->input_count; ++i) {
    const weir_tensor_t* t = ctx->inputs[i].tensor;
    if (!t) return false;
    shapes[i] = weir_shape_make(arena, t->rank, t->dims);
    values[i] = weir_tensor_is_host(t) ? t : NULL;
    if (!shapes[i]) return false;
  }
  return true;
}

// |out_shapes| has one shape an output. False where one is not known.
static bool infer(const weir_kernel_ctx_t* ctx, weir_arena_t* arena,
                  const weir_shape_t** out_shapes) {
  size_t count = (size_t)WEIR_MAX(ctx->input_count, ctx->output_count);
  const weir_shape_t** shapes = weir_arena_array(arena, count, sizeof(*shapes));
  const weir_tensor_t** values = weir_arena_array(arena, count, sizeof(*values));
  const void** unknown = weir_arena_array(arena, 3 * count, sizeof(*unknown));
  if (!shapes || !values || !unknown || !describe_inputs(ctx, arena, shapes, values)) return false;
  for (int i = 0; i < ctx->output_count; ++i) out_shapes[i] = &weir_shape_unknown;
  weir_shape_ctx_t shape_ctx = {
      .node = ctx->node,
      .arena = arena,
      .input_shapes = shapes,
      .input_values = values,
      .input_values_as_shape = (const weir_shape_t* const*)unknown,
      .input_handles = (const weir_handle_info_t* const*)unknown,
      .output_shapes = out_shapes,
      .output_values_as_shape = (const weir_shape_t**)(unknown + count),
      .output_handles = (const weir_handle_info_t**)(unknown + 2 * count)};
  weir_status_t* status = ctx->node->op->def->infer_shape(&shape_ctx);
  bool is_known = !status;
  weir_status_destroy(status);  // the kernel will say it, in its own words
  for (int i = 0; i < ctx->output_count; ++i) is_known &= weir_shape_is_full(out_shapes[i]);
  return is_known;
}

// ---- outputs ----

static bool make_outputs(const weir_kernel_ctx_t* ctx, const weir_shape_t* const* shapes,
                         weir_value_t* promised) {
  weir_allocator_t* allocator = weir_device_allocator(ctx->device, WEIR_MEMORY_DEVICE);
  int made = 0;
  weir_status_t* status = NULL;
  for (; made < ctx->output_count && !status; made += !status)
    status = weir_tensor_create_in(allocator, ctx->node->output_types[made], shapes[made]->rank,
                                   shapes[made]->dims, &promised[made].tensor);
  if (!status) return true;
  weir_status_destroy(status);
  while (made-- > 0) weir_value_release(&promised[made]);
  return false;
}

bool weir_promise_make(const weir_kernel_ctx_t* ctx, weir_value_t* promised) {
  weir_arena_t arena = {0};
  const weir_shape_t** shapes =
      weir_arena_array(&arena, (size_t)ctx->output_count, sizeof(*shapes));
  bool is_made = shapes && infer(ctx, &arena, shapes) && make_outputs(ctx, shapes, promised);
  weir_arena_free(&arena);
  return is_made;
}

weir_status_t* weir_promise_keep(const weir_kernel_ctx_t* ctx, const weir_value_t* promised) {
  for (int i = 0; i < ctx->output_count; ++i) {
    const weir_tensor_t* made = ctx->outputs[i].tensor;
    weir_tensor_t* said = promised[i].tensor;
    if (!made || !weir_tensor_same_shape(made, said)) {
      char got[WEIR_SHAPE_TEXT_SIZE], want[WEIR_SHAPE_TEXT_SIZE];
      return WEIR_STATUS(INTERNAL, "output %d is %s, but its shape function said %s", i,
                         made ? weir_tensor_shape_text(made, got) : "missing",
                         weir_tensor_shape_text(said, want));
    }
    if (made != said && made->count) memcpy(said->data, made->data, weir_tensor_byte_size(made));
  }
  return NULL;
}
