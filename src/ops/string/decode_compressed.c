// decode_compressed.c — DecodeCompressed: inflates strings.
#include "base/interrupt.h"
#include "base/memory.h"
#include "file/deflate.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

#define PIECE ((size_t)1 << 14)

typedef struct source_t {
  weir_view_t rest;
} source_t;

static weir_status_t* read_source(void* arg, void* buffer, size_t size, size_t* out_size) {
  source_t* source = arg;
  *out_size = WEIR_MIN(size, source->rest.size);
  if (*out_size) memcpy(buffer, source->rest.data, *out_size);
  source->rest = weir_view(source->rest.data + *out_size, source->rest.size - *out_size);
  return NULL;
}

// Little data can make more than there is memory for.
static weir_status_t* check_size(size_t size) {
  if (size < WEIR_LARGE_BLOCK || !weir_memory_lacks(size)) return NULL;
  return WEIR_STATUS(RESOURCE_EXHAUSTED, "there is no memory for a string of more than %zu bytes",
                     size);
}

// A stream that is cut off ends there, as in TensorFlow.
static weir_status_t* inflate_all(weir_inflater_t* inflater, weir_strbuf_t* out) {
  for (;;) {
    size_t got = 0;
    if (!weir_strbuf_reserve(out, PIECE)) return weir_out_of_memory();
    WEIR_TRY(weir_inflater_read(inflater, out->data + out->size, PIECE, &got));
    out->size += got;
    if (got < PIECE) return NULL;
    if (weir_is_interrupted()) return WEIR_STATUS(CANCELLED, "the work was interrupted");
    WEIR_TRY(check_size(out->size));
  }
}

static weir_status_t* inflate_string(weir_deflate_format_t format, weir_view_t data,
                                     weir_string_t* out) {
  source_t source = {.rest = data};
  weir_inflater_t* inflater = NULL;
  weir_strbuf_t text = {0};
  weir_status_t* status = weir_inflater_create(format, read_source, &source, &inflater);
  if (!status && data.size > 0) status = inflate_all(inflater, &text);
  if (!status) status = weir_string_set(out, text.data, text.size);
  weir_strbuf_free(&text);
  weir_inflater_destroy(inflater);
  return status;
}

typedef struct decode_t {
  bool is_plain;  // not compressed
  weir_deflate_format_t format;
} decode_t;

static weir_status_t* decode_init(const weir_kernel_init_t* init, void* state) {
  const weir_view_t type = weir_attrs_string(init->node->attrs, "compression_type");
  decode_t* d = state;
  d->is_plain = type.size == 0;
  d->format = weir_view_is(type, "GZIP") ? WEIR_DEFLATE_GZIP : WEIR_DEFLATE_ZLIB;
  if (d->is_plain || weir_view_is(type, "ZLIB") || weir_view_is(type, "GZIP")) return NULL;
  if (weir_view_is(type, "ZSTD")) {
    return WEIR_STATUS(UNIMPLEMENTED, "DecodeCompressed: Zstandard is not supported here");
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "Only ZLIB, ZSTD, GZIP or NONE are supported compressions");
}

static weir_status_t* decode_cpu(weir_kernel_ctx_t* ctx) {
  const decode_t* d = ctx->state;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  if (d->is_plain) {
    weir_kernel_pass(ctx, 0, 0);
    return NULL;
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  for (int64_t i = 0; i < in->count; ++i) {
    WEIR_TRY(inflate_string(d->format, weir_string_view(WEIR_TENSOR_DATA(in, weir_string_t) + i),
                            WEIR_TENSOR_DATA(out, weir_string_t) + i));
  }
  return NULL;
}

const weir_op_module_t weir_ops_string_decode_compressed = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DecodeCompressed",
         .attrs = "compression_type: string = ''",
         .inputs = "bytes: string",
         .outputs = "output: string",
         .flags = WEIR_OP_VIEW | WEIR_OP_UNBOUNDED,
         .summary = "Inflates strings of zlib or gzip",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = decode_cpu, .init = decode_init,
                                    .state_size = sizeof(decode_t))},
        {0}}};
