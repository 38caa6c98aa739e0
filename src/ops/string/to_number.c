// to_number.c — StringToNumber: what numbers strings spell.
#include "base/interrupt.h"
#include "base/string.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/string/number_text.h"

// Elements may be views of memory that no terminator follows, so each is copied.
static weir_status_t* parse_all(const weir_tensor_t* in, weir_strbuf_t* copy, weir_tensor_t* out) {
  const weir_dtype_t dtype = weir_tensor_type(out);
  for (int64_t i = 0; i < in->count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    const weir_view_t text = weir_string_view(WEIR_TENSOR_DATA(in, weir_string_t) + i);
    copy->size = 0;
    weir_strbuf_append(copy, text.data, text.size);
    weir_strbuf_putc(copy, '\0');
    WEIR_TRY(weir_strbuf_finish(copy));
    void* place = (char*)out->data + (size_t)i * weir_dtype_size(dtype);
    if (weir_number_parse(weir_view(copy->data, text.size), dtype, place)) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "StringToNumberOp could not correctly convert string: %.*s",
                       WEIR_VIEW_ARG(text));
  }
  return NULL;
}

static weir_status_t* number_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  weir_strbuf_t copy = {0};
  weir_status_t* status = parse_all(in, &copy, out);
  weir_strbuf_free(&copy);
  return status;
}

const weir_op_module_t weir_ops_string_to_number = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "StringToNumber",
         .attrs = "out_type: {float, double, int32, int64, uint32, uint64} = DT_FLOAT",
         .inputs = "string_tensor: string",
         .outputs = "output: out_type",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "The numbers that strings spell",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = number_cpu)},
        {0}}};
