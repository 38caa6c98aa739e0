// string_join.c — StringJoin: joins strings elementwise, scalars going with every element.
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/string.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

static weir_status_t* join_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* out = NULL;
  bool all_scalars = true;
  for (int i = 0; i < ctx->node->input_count; ++i) {
    const weir_shape_t* shape = weir_shape_input(ctx, i);
    if (shape->rank == 0) continue;
    all_scalars = false;
    if (shape->rank < 0) continue;  // may be a scalar yet
    if (out) {
      WEIR_TRY(weir_shape_join(ctx, out, shape, &out));
    } else {
      out = shape;
    }
  }
  if (all_scalars) return weir_shape_set_scalar(ctx, 0);
  return out ? weir_shape_set(ctx, 0, out) : NULL;
}

// The shape of the inputs that are not scalars; NULL when all are.
static weir_status_t* find_shape(const weir_kernel_ctx_t* ctx, const weir_tensor_t** out_like) {
  const weir_tensor_t* like = NULL;
  for (int i = 0; i < ctx->input_count; ++i) {
    const weir_tensor_t* input = weir_kernel_input(ctx, i);
    if (input->rank == 0) continue;
    if (!like) {
      like = input;
    } else if (!weir_tensor_same_shape(like, input)) {
      char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
      return WEIR_STATUS(INVALID_ARGUMENT, "Input shapes do not match: %s vs. %s",
                         weir_tensor_shape_text(like, a), weir_tensor_shape_text(input, b));
    }
  }
  *out_like = like;
  return NULL;
}

static weir_view_t element_at(const weir_tensor_t* input, int64_t index) {
  return weir_string_view(WEIR_TENSOR_DATA(input, weir_string_t) + (input->rank ? index : 0));
}

static size_t joined_size(const weir_kernel_ctx_t* ctx, weir_view_t separator, int64_t index) {
  size_t size = ctx->input_count > 1 ? separator.size * (size_t)(ctx->input_count - 1) : 0;
  for (int i = 0; i < ctx->input_count; ++i) {
    size += element_at(weir_kernel_input(ctx, i), index).size;
  }
  return size;
}

// A long scalar goes with every element: little input can make more than there is memory for.
static weir_status_t* check_size(const weir_kernel_ctx_t* ctx, weir_view_t separator,
                                 int64_t count) {
  size_t total = 0;
  for (int64_t i = 0; i < count; ++i) total += joined_size(ctx, separator, i);
  if (total < WEIR_LARGE_BLOCK || !weir_memory_lacks(total)) return NULL;
  return WEIR_STATUS(RESOURCE_EXHAUSTED, "there is no memory for %lld strings of %zu bytes in all",
                     (long long)count, total);
}

static weir_status_t* join_element(const weir_kernel_ctx_t* ctx, weir_view_t separator,
                                   int64_t index, weir_string_t* out) {
  char* next = weir_string_resize(out, joined_size(ctx, separator, index));
  if (!next) return weir_out_of_memory();
  for (int i = 0; i < ctx->input_count; ++i) {
    weir_view_t part = element_at(weir_kernel_input(ctx, i), index);
    if (i > 0 && separator.size > 0) {
      memcpy(next, separator.data, separator.size);
      next += separator.size;
    }
    if (part.size > 0) memcpy(next, part.data, part.size);
    next += part.size;
  }
  return NULL;
}

static weir_status_t* join_cpu(weir_kernel_ctx_t* ctx) {
  const weir_view_t separator = weir_attrs_string(weir_kernel_attrs(ctx), "separator");
  const weir_tensor_t* like = NULL;
  weir_tensor_t* out = NULL;
  WEIR_TRY(find_shape(ctx, &like));
  WEIR_TRY(weir_kernel_output(ctx, 0, like ? like->rank : 0, like ? like->dims : NULL, &out));
  WEIR_TRY(check_size(ctx, separator, out->count));
  weir_string_t* strings = out->data;
  for (int64_t i = 0; i < out->count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    WEIR_TRY(join_element(ctx, separator, i, &strings[i]));
  }
  return NULL;
}

const weir_op_module_t weir_ops_string_string_join = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "StringJoin",
                                    .attrs = "N: int >= 0; separator: string = ''",
                                    .inputs = "inputs: N * string",
                                    .outputs = "output: string",
                                    .flags = WEIR_OP_NO_GRADIENT,
                                    .summary = "Joins strings elementwise",
                                    .infer_shape = join_shape,
                                    .kernels = WEIR_CPU_KERNEL(.compute = join_cpu)},
                                   {0}}};
