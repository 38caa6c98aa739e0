// regex.c — StaticRegexFullMatch and RegexFullMatch: which strings match a pattern as a whole.
#include "base/regex.h"

#include "base/interrupt.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

typedef struct regex_state_t {
  weir_regex_t* regex;
} regex_state_t;

static weir_status_t* static_init(const weir_kernel_init_t* init, void* state) {
  return weir_regex_create(weir_attrs_string(init->node->attrs, "pattern"),
                           &((regex_state_t*)state)->regex);
}

static void static_deinit(void* state) { weir_regex_destroy(((regex_state_t*)state)->regex); }

static weir_status_t* match_all(weir_kernel_ctx_t* ctx, const weir_regex_t* regex) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  for (int64_t i = 0; i < in->count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    size_t size = 0;
    const char* text = weir_tensor_string(in, i, &size);
    WEIR_TRY(weir_regex_full_match(regex, weir_view(text, size), &WEIR_TENSOR_DATA(out, bool)[i]));
  }
  return NULL;
}

static weir_status_t* static_cpu(weir_kernel_ctx_t* ctx) {
  return match_all(ctx, ((const regex_state_t*)ctx->state)->regex);
}

static weir_status_t* match_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* pattern = weir_kernel_input(ctx, 1);
  if (pattern->rank != 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Pattern must be scalar, but received %s",
                       weir_tensor_shape_text(pattern, text));
  }
  size_t size = 0;
  const char* text = weir_tensor_string(pattern, 0, &size);
  weir_regex_t* regex = NULL;
  WEIR_TRY(weir_regex_create(weir_view(text, size), &regex));
  weir_status_t* status = match_all(ctx, regex);
  weir_regex_destroy(regex);
  return status;
}

static weir_status_t* match_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

const weir_op_module_t weir_ops_string_regex = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RegexFullMatch",
         .inputs = "input: string; pattern: string",
         .outputs = "output: bool",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Whether strings match a pattern as a whole",
         .infer_shape = match_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = match_cpu)},
        {.name = "StaticRegexFullMatch",
         .attrs = "pattern: string",
         .inputs = "input: string",
         .outputs = "output: bool",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Whether strings match a fixed pattern as a whole",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = static_cpu, .state_size = sizeof(regex_state_t),
                                    .init = static_init, .deinit = static_deinit)},
        {0}}};
