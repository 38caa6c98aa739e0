// reader.c — The ops that name a reader: TFRecordReader, TextLineReader, WholeFileReader,
// IdentityReader, FixedLengthRecordReader, old and V2.
#include "op/shape_ctx.h"
#include "ops/reader/reader_resource.h"

typedef struct reader_state_t {
  weir_shared_handle_t handle;
  weir_reader_config_t config;
} reader_state_t;

static weir_status_t* init_handle(const weir_kernel_init_t* init, reader_state_t* s) {
  s->config.name = init->node->name;
  return weir_shared_handle_init(init, WEIR_READER_TYPE_NAME, &s->handle);
}

// An attribute that counts bytes or lines.
static weir_status_t* init_count(const weir_kernel_init_t* init, const char* attr,
                                 int64_t* out_value) {
  *out_value = weir_attrs_int(init->node->attrs, attr);
  if (*out_value >= 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s must be >= 0 not %lld", attr, (long long)*out_value);
}

// TensorFlow takes names it does not know for no compression.
static weir_status_t* init_compression(const weir_kernel_init_t* init, const char* attr,
                                       weir_reader_config_t* config) {
  weir_view_t name = weir_attrs_string(init->node->attrs, attr);
  if (weir_view_is(name, "SNAPPY")) {
    return WEIR_STATUS(UNIMPLEMENTED, "%s 'SNAPPY': such files cannot be read", attr);
  }
  config->is_compressed = weir_view_is(name, "ZLIB") || weir_view_is(name, "GZIP");
  config->compression = weir_view_is(name, "GZIP") ? WEIR_DEFLATE_GZIP : WEIR_DEFLATE_ZLIB;
  return NULL;
}

static weir_status_t* text_line_init(const weir_kernel_init_t* init, void* state) {
  reader_state_t* s = state;
  s->config.kind = WEIR_READER_TEXT_LINE;
  WEIR_TRY(init_count(init, "skip_header_lines", &s->config.skip_lines));
  return init_handle(init, s);
}

static weir_status_t* whole_file_init(const weir_kernel_init_t* init, void* state) {
  reader_state_t* s = state;
  s->config.kind = WEIR_READER_WHOLE_FILE;
  return init_handle(init, s);
}

static weir_status_t* record_init(const weir_kernel_init_t* init, void* state) {
  reader_state_t* s = state;
  s->config.kind = WEIR_READER_RECORD;
  WEIR_TRY(init_compression(init, "compression_type", &s->config));
  return init_handle(init, s);
}

static weir_status_t* fixed_length_init(const weir_kernel_init_t* init, void* state) {
  reader_state_t* s = state;
  s->config.kind = WEIR_READER_FIXED_LENGTH;
  WEIR_TRY(init_count(init, "header_bytes", &s->config.header_size));
  WEIR_TRY(init_count(init, "record_bytes", &s->config.record_size));
  WEIR_TRY(init_count(init, "footer_bytes", &s->config.footer_size));
  WEIR_TRY(init_count(init, "hop_bytes", &s->config.hop_size));
  // The old op has no such attribute.
  if (weir_attrs_find(init->node->attrs, "encoding")) {
    WEIR_TRY(init_compression(init, "encoding", &s->config));
  }
  return init_handle(init, s);
}

static weir_status_t* identity_init(const weir_kernel_init_t* init, void* state) {
  reader_state_t* s = state;
  s->config.kind = WEIR_READER_IDENTITY;
  return init_handle(init, s);
}

static void reader_deinit(void* state) {
  weir_shared_handle_deinit(&((reader_state_t*)state)->handle);
}

static weir_status_t* make_reader(void* arg, weir_resource_t** out_resource) {
  weir_reader_t* reader = NULL;
  WEIR_TRY(weir_reader_create(arg, &reader));
  *out_resource = (weir_resource_t*)reader;
  return NULL;
}

static weir_status_t* reader_cpu(weir_kernel_ctx_t* ctx) {
  reader_state_t* s = ctx->state;
  weir_resource_t* reader = NULL;
  WEIR_TRY(weir_shared_handle_create(ctx, &s->handle, &weir_reader_type, make_reader, &s->config,
                                     &reader));
  weir_shared_handle_set(ctx, &s->handle);
  weir_resource_release(reader);
  return NULL;
}

#define NAMES "container: string = ''; shared_name: string = ''"
#define READER_OP(op, text, out, extra, specs, init_fn)                                           \
  {                                                                                               \
    .name = op, .summary = text, .attrs = specs, .outputs = "reader_handle: " out,                \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP | (extra), .infer_shape = weir_shared_handle_shape, \
    .kernels = (const weir_kernel_def_t[]) {                                                      \
      {WEIR_DEVICE_CPU, .compute = reader_cpu,   .state_size = sizeof(reader_state_t),            \
       .init = init_fn, .deinit = reader_deinit, .host_outputs = "reader_handle"},                \
      {                                                                                           \
        0                                                                                         \
      }                                                                                           \
    }                                                                                             \
  }
#define READER_OPS(name, text, specs, old_specs, init_fn)    \
  READER_OP(name "V2", text, "resource", 0, specs, init_fn), \
      READER_OP(name, text, "Ref(string)", WEIR_OP_NO_GRADIENT, old_specs, init_fn)

#define RECORD NAMES "; compression_type: string = ''"
#define TEXT_LINE "skip_header_lines: int = 0; " NAMES
#define FIXED_LENGTH \
  "header_bytes: int = 0; record_bytes: int; footer_bytes: int = 0; hop_bytes: int = 0; " NAMES

const weir_op_module_t weir_ops_reader_reader = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        READER_OPS("TFRecordReader", "Reads files of records, a record at a time", RECORD, RECORD,
                   record_init),
        READER_OPS("TextLineReader", "Reads text files, a line at a time", TEXT_LINE, TEXT_LINE,
                   text_line_init),
        READER_OPS("WholeFileReader", "Reads files whole: the key is the name, the value all bytes",
                   NAMES, NAMES, whole_file_init),
        READER_OPS("IdentityReader", "Gives the names of files themselves as keys and values",
                   NAMES, NAMES, identity_init),
        READER_OPS("FixedLengthRecordReader",
                   "Reads files in pieces of one length, without header and footer",
                   FIXED_LENGTH "; encoding: string = ''", FIXED_LENGTH, fixed_length_init),
        {0}}};
