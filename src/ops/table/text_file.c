// text_file.c — InitializeTableFromTextFile, old and V2: a table from the lines of a file.
#include "ops/table/text_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/string.h"
#include "file/fs.h"
#include "op/shape_ctx.h"
#include "op/shared_handle.h"
#include "tensor/tensor.h"

enum { WHOLE_LINE = WEIR_TEXT_WHOLE_LINE, LINE_NUMBER = WEIR_TEXT_LINE_NUMBER };

typedef struct text_state_t {
  int64_t key_index;
  int64_t value_index;
  int64_t vocab_size;  // -1: all lines
  int64_t offset;      // of line numbers and, as in TensorFlow, of all that is int32
  char delimiter;
} text_state_t;

static weir_status_t* text_init(const weir_kernel_init_t* init, void* state) {
  text_state_t* s = state;
  const weir_attrs_t attrs = init->node->attrs;
  weir_view_t delimiter = weir_attrs_string(attrs, "delimiter");
  if (delimiter.size != 1) return WEIR_STATUS(INVALID_ARGUMENT, "delimiter should be only 1 char");
  *s = (text_state_t){.key_index = weir_attrs_int(attrs, "key_index"),
                      .value_index = weir_attrs_int(attrs, "value_index"),
                      .vocab_size = weir_attrs_int(attrs, "vocab_size"),
                      .offset = weir_attrs_int(attrs, "offset"),
                      .delimiter = delimiter.data[0]};
  return NULL;
}

// ---- lines ----

// What is left of the file, and where that is.
typedef struct lines_t {
  const char* path;
  weir_view_t rest;
  int64_t position;
  int64_t number;  // of the next line
} lines_t;

// Takes the next line, without carriage returns, into |out|; false at the end.
static bool next_line(lines_t* lines, weir_strbuf_t* out) {
  size_t i = 0;
  out->size = 0;
  if (lines->rest.size == 0) return false;
  for (; i < lines->rest.size && lines->rest.data[i] != '\n'; ++i) {
    if (lines->rest.data[i] != '\r') weir_strbuf_putc(out, lines->rest.data[i]);
  }
  size_t used = i < lines->rest.size ? i + 1 : i;
  lines->rest = weir_view(lines->rest.data + used, lines->rest.size - used);
  lines->position += (int64_t)used;
  return true;
}

static int64_t count_lines(weir_view_t text) {
  int64_t count = 0;
  for (size_t i = 0; i < text.size; ++i) count += text.data[i] == '\n';
  return count + (text.size > 0 && text.data[text.size - 1] != '\n');
}

// The column |index| of |line|.
static weir_status_t* column_of(const lines_t* lines, weir_view_t line, char delimiter,
                                int64_t index, int64_t needed, weir_view_t* out) {
  weir_view_t rest = line, part = {0};
  int64_t count = 0;
  while (weir_view_next(&rest, delimiter, &part)) {
    if (count++ == index) *out = part;
  }
  if (count >= needed) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Invalid number of columns in %s line %" PRId64
                     " (%.*s) : expected at least %" PRId64 " got %" PRId64,
                     lines->path, lines->number, WEIR_VIEW_ARG(line), needed, count);
}

// ---- elements ----

static weir_status_t* set_element(const text_state_t* s, weir_tensor_t* t, int64_t at,
                                  weir_view_t text, int64_t line) {
  int64_t integer = 0;
  double real = 0;
  bool is_valid = true;
  switch (weir_tensor_type(t)) {
    case WEIR_DTYPE_STRING: return weir_tensor_set_string(t, at, text.data, text.size);
    case WEIR_DTYPE_INT32:
      is_valid = weir_parse_int64(text, &integer) && integer >= INT32_MIN && integer <= INT32_MAX;
      WEIR_TENSOR_DATA(t, int32_t)[at] = (int32_t)((uint64_t)integer + (uint64_t)s->offset);
      break;
    case WEIR_DTYPE_INT64:
      is_valid = weir_parse_int64(text, &integer);
      WEIR_TENSOR_DATA(t, int64_t)[at] = integer;
      break;
    case WEIR_DTYPE_FLOAT:
      is_valid = weir_parse_double(text, &real);
      WEIR_TENSOR_DATA(t, float)[at] = (float)real;
      break;
    case WEIR_DTYPE_DOUBLE:
      is_valid = weir_parse_double(text, &real);
      WEIR_TENSOR_DATA(t, double)[at] = real;
      break;
    default:
      return WEIR_STATUS(INVALID_ARGUMENT, "Data type %s not supported.",
                         weir_dtype_name(weir_tensor_type(t)));
  }
  if (is_valid) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Field %.*s in line %" PRId64 " is not a valid %s.",
                     WEIR_VIEW_ARG(text), line, weir_dtype_name(weir_tensor_type(t)));
}

static weir_status_t* read_element(const text_state_t* s, const lines_t* lines, weir_view_t line,
                                   int64_t index, weir_tensor_t* t) {
  weir_view_t text = line;
  if (index == LINE_NUMBER) {
    WEIR_TENSOR_DATA(t, int64_t)[lines->number] = lines->number + s->offset;
    return NULL;
  }
  if (index >= 0) {
    int64_t needed = (s->key_index > s->value_index ? s->key_index : s->value_index) + 1;
    WEIR_TRY(column_of(lines, line, s->delimiter, index, needed, &text));
  }
  return set_element(s, t, lines->number, text, lines->number);
}

static weir_status_t* read_lines(const text_state_t* s, lines_t* lines, int64_t count,
                                 weir_tensor_t* keys, weir_tensor_t* values, weir_strbuf_t* line) {
  for (; lines->number < count && next_line(lines, line); ++lines->number) {
    WEIR_TRY(weir_strbuf_finish(line));
    if (line->size == 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Invalid content in %s: empty line found at position %" PRId64 ".",
                         lines->path, lines->position);
    }
    WEIR_TRY(read_element(s, lines, weir_strbuf_view(line), s->key_index, keys));
    WEIR_TRY(read_element(s, lines, weir_strbuf_view(line), s->value_index, values));
  }
  return NULL;
}

// ---- the kernel ----

static weir_status_t* check_types(const text_state_t* s, const weir_lookup_table_config_t* config) {
  const struct {
    const char* name;
    const char* lower;
    int64_t index;
    weir_dtype_t dtype;
  } sides[] = {{"Key", "key", s->key_index, config->key_dtype},
               {"Value", "value", s->value_index, config->value_dtype}};
  for (int i = 0; i < 2; ++i) {
    const weir_dtype_t dtype = sides[i].dtype;
    if (sides[i].index == LINE_NUMBER && dtype != WEIR_DTYPE_INT64) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "%s index for line number requires table %s dtype of int64, got %s",
                         sides[i].name, sides[i].lower, weir_dtype_name(dtype));
    }
    const bool fits = weir_dtype_is_integer(dtype) || dtype == WEIR_DTYPE_STRING;
    if (sides[i].index == WHOLE_LINE && !fits) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "%s index for whole line requires table %s dtype of integer or string, "
                         "got %s",
                         sides[i].name, sides[i].lower, weir_dtype_name(dtype));
    }
  }
  return NULL;
}

// How many lines shall be read.
static weir_status_t* line_count(const text_state_t* s, const char* path, weir_view_t text,
                                 int64_t* out_count) {
  int64_t count = count_lines(text);
  if (s->vocab_size > count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Invalid vocab_size in %s: expected %" PRId64 " but got %" PRId64, path,
                       s->vocab_size, count);
  }
  if (text.size == 0) return WEIR_STATUS(OUT_OF_RANGE, "Read less bytes than requested");
  if (s->vocab_size == 0)
    return WEIR_STATUS(OUT_OF_RANGE, "Finished reading 0 of lines from %s", path);
  *out_count = s->vocab_size > 0 ? s->vocab_size : count;
  return NULL;
}

static weir_status_t* fill_table(const text_state_t* s, weir_lookup_table_t* table,
                                 const char* path, weir_view_t text) {
  const weir_lookup_table_config_t* config = weir_lookup_table_config(table);
  int64_t count = 0;
  weir_tensor_t *keys = NULL, *values = NULL;
  weir_strbuf_t line = {0};
  lines_t lines = {.path = path, .rest = text};
  WEIR_TRY(line_count(s, path, text, &count));
  weir_status_t* status = weir_tensor_create(config->key_dtype, 1, &count, &keys);
  if (!status) status = weir_tensor_create(config->value_dtype, 1, &count, &values);
  if (!status) status = read_lines(s, &lines, count, keys, values, &line);
  if (!status) status = weir_lookup_table_initialize(table, keys, values);
  weir_strbuf_free(&line);
  weir_tensor_release(keys);
  weir_tensor_release(values);
  return status;
}

static weir_status_t* read_file(const text_state_t* s, weir_lookup_table_t* table,
                                weir_view_t name) {
  weir_strbuf_t text = {0};
  WEIR_TRY(weir_lookup_table_check_initializable(table));
  char* path = weir_strndup(name.data ? name.data : "", name.size);
  if (!path) return weir_out_of_memory();
  weir_status_t* status = weir_fs_read_all(path, &text);
  if (!status) status = fill_table(s, table, path, weir_strbuf_view(&text));
  weir_strbuf_free(&text);
  weir_free(path);
  return status;
}

weir_status_t* weir_lookup_table_read_file(weir_lookup_table_t* table, weir_view_t path,
                                           int64_t key_index, int64_t value_index,
                                           int64_t vocab_size) {
  const text_state_t state = {.key_index = key_index,
                              .value_index = value_index,
                              .vocab_size = vocab_size,
                              .delimiter = '\t'};
  return read_file(&state, table, path);
}

static weir_status_t* text_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* name = weir_kernel_input(ctx, 1);
  weir_resource_t* table = NULL;
  if (name->rank != 0) {
    char shape[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "filename should be a single string, but got %s",
                       weir_tensor_shape_text(name, shape));
  }
  WEIR_TRY(weir_shared_handle_resource(ctx, 0, &weir_lookup_table_type, &table));
  weir_status_t* status =
      check_types(ctx->state, weir_lookup_table_config((weir_lookup_table_t*)table));
  if (!status) {
    status = read_file(ctx->state, (weir_lookup_table_t*)table, weir_string_view(name->data));
  }
  weir_resource_release(table);
  return status;
}

static weir_status_t* text_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL);
}

#define TEXT_OP(op_name, handle, op_flags)                                           \
  {                                                                                  \
    .name = op_name,                                                                 \
    .attrs =                                                                         \
        "key_index: int >= -2; value_index: int >= -2; vocab_size: int >= -1 = -1; " \
        "delimiter: string = '\t'; offset: int = 0",                                 \
    .inputs = "table_handle: " handle "; filename: string", .flags = op_flags,       \
    .summary = "Fills a table with the lines of a file", .infer_shape = text_shape,  \
    .kernels = WEIR_CPU_KERNEL(.compute = text_cpu, .init = text_init,               \
                               .state_size = sizeof(text_state_t))                   \
  }

const weir_op_module_t weir_ops_table_text_file = {
    .file = __FILE__,
    .ops =
        (const weir_op_def_t[]){TEXT_OP("InitializeTableFromTextFile", "Ref(string)",
                                        WEIR_OP_NO_GRADIENT | WEIR_OP_UNBOUNDED),
                                TEXT_OP("InitializeTableFromTextFileV2", "resource",
                                        WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_UNBOUNDED),
                                {0}}};
