// base64.c — EncodeBase64, DecodeBase64: bytes as letters, in the alphabet for URLs (RFC 4648).
#include "base/interrupt.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

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
  const size_t size = pads ? (in.size + 2) / 3 * 4 : (in.size * 4 + 2) / 3;
  char* text = weir_string_resize(out, size);
  if (!text) return weir_out_of_memory();
  uint32_t bits = 0;
  int held = 0;
  char* next = text;
  for (size_t i = 0; i < in.size; ++i) {
    bits = bits << 8 | (uint8_t)in.data[i];
    for (held += 8; held >= 6; held -= 6) *next++ = alphabet[bits >> (held - 6) & 63];
  }
  if (held > 0) *next++ = alphabet[bits << (6 - held) & 63];
  while (next < text + size) *next++ = '=';
  return NULL;
}

static int value_of(char c) {
  const char* at = c ? strchr(alphabet, c) : NULL;
  return at ? (int)(at - alphabet) : -1;
}

// Padding may be left out, but where it is there it is whole. Bits left over are not looked at.
static weir_status_t* decode(weir_view_t in, bool pads, weir_string_t* out) {
  (void)pads;
  if (in.size % 4 == 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Base64 string length cannot be 1 modulo 4.");
  }
  if (in.size > 0 && in.size % 4 == 0) {
    for (int i = 0; i < 2 && in.data[in.size - 1] == '='; ++i) --in.size;
  }
  char* next = weir_string_resize(out, in.size * 3 / 4);
  if (!next) return weir_out_of_memory();
  uint32_t bits = 0;
  int held = 0;
  for (size_t i = 0; i < in.size; ++i) {
    const int value = value_of(in.data[i]);
    if (value < 0) return WEIR_STATUS(INVALID_ARGUMENT, "Invalid character found in base64.");
    bits = bits << 6 | (uint32_t)value;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    *next++ = (char)(bits >> held);
  }
  return NULL;
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
