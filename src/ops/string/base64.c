// base64.c — EncodeBase64, DecodeBase64: bytes as letters, in the alphabet for URLs (RFC 4648).
#include "base/base64.h"

#include "base/interrupt.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

typedef weir_status_t* (*recode_fn_t)(weir_view_t in, bool pads, weir_string_t* out);

static weir_status_t* recode_all(weir_kernel_ctx_t* ctx, bool pads, recode_fn_t recode) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  for (int64_t i = 0; i < in->count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    WEIR_TRY(recode(weir_string_view(WEIR_TENSOR_DATA(in, weir_string_t) + i), pads,
                    WEIR_TENSOR_DATA(out, weir_string_t) + i));
  }
  return NULL;
}

static weir_status_t* encode(weir_view_t in, bool pads, weir_string_t* out) {
  char* text = weir_string_resize(out, weir_base64_size(in.size, pads));
  if (!text) return weir_out_of_memory();
  weir_base64_encode(WEIR_BASE64_URL, in, pads, text);
  return NULL;
}

static weir_status_t* decode(weir_view_t in, bool pads, weir_string_t* out) {
  (void)pads;
  if (in.size % 4 == 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Base64 string length cannot be 1 modulo 4.");
  }
  weir_view_t letters = weir_base64_trim(in);
  char* bytes = weir_string_resize(out, letters.size * 3 / 4);
  if (!bytes) return weir_out_of_memory();
  if (weir_base64_decode(WEIR_BASE64_URL, letters, bytes)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Invalid character found in base64.");
}

static weir_status_t* encode_cpu(weir_kernel_ctx_t* ctx) {
  return recode_all(ctx, weir_attrs_bool(weir_kernel_attrs(ctx), "pad"), encode);
}

static weir_status_t* decode_cpu(weir_kernel_ctx_t* ctx) { return recode_all(ctx, false, decode); }

const weir_op_module_t weir_ops_string_base64 = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "EncodeBase64",
                                    .attrs = "pad: bool = false",
                                    .inputs = "input: string",
                                    .outputs = "output: string",
                                    .flags = WEIR_OP_NO_GRADIENT,
                                    .summary = "Bytes as letters of base 64, safe in URLs",
                                    .infer_shape = weir_shape_fn_unchanged,
                                    .kernels = WEIR_CPU_KERNEL(.compute = encode_cpu)},
                                   {.name = "DecodeBase64",
                                    .inputs = "input: string",
                                    .outputs = "output: string",
                                    .flags = WEIR_OP_NO_GRADIENT,
                                    .summary = "Bytes from letters of base 64, safe in URLs",
                                    .infer_shape = weir_shape_fn_unchanged,
                                    .kernels = WEIR_CPU_KERNEL(.compute = decode_cpu)},
                                   {0}}};
