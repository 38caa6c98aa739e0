// decode_csv.c — DecodeCSV: reads records of comma-separated values, a tensor for each column.
#include "base/interrupt.h"
#include "base/string.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/string/number_text.h"

// The kernel's own.
typedef struct csv_state_t {
  char delimiter;
  bool use_quotes;
} csv_state_t;

// What a record is read with, and the fields of the one at hand.
typedef struct csv_t {
  char delimiter;
  bool use_quotes;
  weir_view_t missing;          // also stands for no value
  const weir_attr_t* selected;  // columns to read; an empty list: all
  int column_count;             // outputs
  weir_strbuf_t text;           // of the fields kept, each with a terminator
  size_t* ends;                 // |column_count| offsets into |text|, of the terminators
  int64_t found;                // fields kept; those beyond |column_count| are only counted
} csv_t;

static weir_status_t* csv_shape(weir_shape_ctx_t* ctx) {
  for (int i = 1; i < ctx->node->input_count; ++i) {
    const weir_shape_t* shape = weir_shape_input(ctx, i);
    WEIR_TRY(weir_shape_at_most(ctx, shape, 1));
    if (shape->rank == 1 && shape->dims[0] > 1) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Shape of a default must be a length-0 or length-1 vector, or a scalar.");
    }
  }
  for (int i = 0; i < ctx->node->output_count; ++i) {
    WEIR_TRY(weir_shape_set(ctx, i, weir_shape_input(ctx, 0)));
  }
  return NULL;
}

static weir_status_t* csv_init(const weir_kernel_init_t* init, void* state) {
  csv_state_t* own = state;
  weir_attrs_t attrs = init->node->attrs;
  const weir_view_t delimiter = weir_attrs_string(attrs, "field_delim");
  const weir_attr_t* selected = weir_attrs_list(attrs, "select_cols");
  if (selected->count > 0 && selected->count != (size_t)init->node->output_count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "select_cols should match output size");
  }
  for (size_t i = 1; i < selected->count; ++i) {
    if (selected->u.ints[i - 1] < selected->u.ints[i]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "select_cols should be strictly increasing indices");
  }
  if (selected->count > 0 && selected->u.ints[0] < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "select_cols should be non-negative indices");
  }
  if (delimiter.size != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "field_delim should be only 1 char");
  }
  own->delimiter = delimiter.data[0];
  own->use_quotes = weir_attrs_bool(attrs, "use_quote_delim");
  return NULL;
}

// ---- splitting a record ----

static bool is_selected(const csv_t* csv, int64_t column) {
  return csv->selected->count == 0 || (csv->found < (int64_t)csv->selected->count &&
                                       csv->selected->u.ints[csv->found] == column);
}

static weir_status_t* read_plain(csv_t* csv, weir_view_t record, size_t* at) {
  for (; *at < record.size && record.data[*at] != csv->delimiter; ++*at) {
    char c = record.data[*at];
    if ((csv->use_quotes && c == '"') || c == '\n' || c == '\r') {
      return WEIR_STATUS(INVALID_ARGUMENT, "Unquoted fields cannot have quotes/CRLFs inside");
    }
    weir_strbuf_putc(&csv->text, c);
  }
  ++*at;
  return NULL;
}

static weir_status_t* read_quoted(csv_t* csv, weir_view_t record, size_t* at) {
  const char* data = record.data;
  for (++*at; *at + 1 < record.size && (data[*at] != '"' || data[*at + 1] != csv->delimiter);) {
    if (data[*at] == '"') {
      if (data[*at + 1] != '"') {
        return WEIR_STATUS(INVALID_ARGUMENT,
                           "Quote inside a string has to be escaped by another quote");
      }
      ++*at;
    }
    weir_strbuf_putc(&csv->text, data[*at]);
    ++*at;
  }
  if (*at >= record.size || data[*at] != '"') {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Quoted field has to end with quote followed by delim or end");
  }
  *at += 2;
  return NULL;
}

static void end_field(csv_t* csv) {
  if (csv->found < csv->column_count) csv->ends[csv->found] = csv->text.size;
  weir_strbuf_putc(&csv->text, '\0');
  ++csv->found;
}

static weir_status_t* split_record(csv_t* csv, weir_view_t record) {
  int64_t column = 0;
  csv->text.size = 0;
  csv->found = 0;
  for (size_t at = 0; at < record.size;) {
    if (record.data[at] == '\n' || record.data[at] == '\r') {
      ++at;
      continue;
    }
    const size_t start = csv->text.size;
    bool is_quoted = csv->use_quotes && record.data[at] == '"';
    WEIR_TRY(is_quoted ? read_quoted(csv, record, &at) : read_plain(csv, record, &at));
    if (is_selected(csv, column++)) {
      end_field(csv);
      if (csv->found == (int64_t)csv->selected->count) return weir_strbuf_finish(&csv->text);
    } else {
      csv->text.size = start;
    }
  }
  const bool ends_open = record.size > 0 && record.data[record.size - 1] == csv->delimiter;
  if (ends_open && is_selected(csv, column)) end_field(csv);
  return weir_strbuf_finish(&csv->text);
}

// ---- reading fields ----

static weir_status_t* store_field(weir_kernel_ctx_t* ctx, const csv_t* csv, int f, int64_t record) {
  const size_t start = f > 0 ? csv->ends[f - 1] + 1 : 0;
  const weir_view_t text = weir_view(csv->text.data + start, csv->ends[f] - start);
  const weir_tensor_t* fallback = weir_kernel_input(ctx, f + 1);
  weir_tensor_t* out = ctx->outputs[f].tensor;
  const weir_dtype_t dtype = weir_tensor_type(out);
  const size_t size = weir_dtype_size(dtype);
  void* place = (char*)out->data + (size_t)record * size;
  if (text.size == 0 || weir_view_equal(text, csv->missing)) {
    if (fallback->count != 1) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Field %d is required but missing in record %lld!", f,
                         (long long)record);
    }
    if (dtype == WEIR_DTYPE_STRING) return weir_elements_copy(dtype, place, fallback->data, 1);
    memcpy(place, fallback->data, size);
    return NULL;
  }
  if (dtype == WEIR_DTYPE_STRING) return weir_string_set(place, text.data, text.size);
  if (weir_number_parse(text, dtype, place)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Field %d in record %lld is not a valid %s: %.*s", f,
                     (long long)record, weir_dtype_name(dtype), WEIR_VIEW_ARG(text));
}

static weir_status_t* decode_record(weir_kernel_ctx_t* ctx, csv_t* csv, int64_t record) {
  const weir_string_t* strings = weir_kernel_input(ctx, 0)->data;
  WEIR_TRY(split_record(csv, weir_string_view(&strings[record])));
  if (csv->found != csv->column_count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Expect %d fields but have %lld in record %lld",
                       csv->column_count, (long long)csv->found, (long long)record);
  }
  for (int f = 0; f < csv->column_count; ++f) WEIR_TRY(store_field(ctx, csv, f, record));
  return NULL;
}

static weir_status_t* csv_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* records = weir_kernel_input(ctx, 0);
  weir_attrs_t attrs = weir_kernel_attrs(ctx);
  for (int i = 0; i < ctx->output_count; ++i) {
    const weir_tensor_t* fallback = weir_kernel_input(ctx, i + 1);
    weir_tensor_t* out = NULL;
    if (fallback->rank > 1) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Each record default should be at most rank 1");
    }
    if (fallback->count > 1) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "There should only be 1 default per field but field %d has %lld", i,
                         (long long)fallback->count);
    }
    WEIR_TRY(weir_kernel_output(ctx, i, records->rank, records->dims, &out));
  }
  const csv_state_t* own = ctx->state;
  csv_t csv = {.delimiter = own->delimiter,
               .use_quotes = own->use_quotes,
               .missing = weir_attrs_string(attrs, "na_value"),
               .selected = weir_attrs_list(attrs, "select_cols"),
               .column_count = ctx->output_count,
               .ends = weir_calloc((size_t)ctx->output_count, sizeof(size_t))};
  if (!csv.ends) return weir_out_of_memory();
  weir_status_t* status = NULL;
  for (int64_t i = 0; !status && i < records->count; ++i) {
    status = weir_interrupt_poll(i);
    if (!status) status = decode_record(ctx, &csv, i);
  }
  weir_strbuf_free(&csv.text);
  weir_free(csv.ends);
  return status;
}

const weir_op_module_t weir_ops_string_decode_csv = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DecodeCSV",
         .attrs = "OUT_TYPE: list({float, double, int32, int64, string}) >= 1; field_delim: string "
                  "= ','; use_quote_delim: bool = true; na_value: string = ''; select_cols: "
                  "list(int) = []",
         .inputs = "records: string; record_defaults: OUT_TYPE",
         .outputs = "output: OUT_TYPE",
         .summary = "Reads records of comma-separated values",
         .infer_shape = csv_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = csv_cpu, .state_size = sizeof(csv_state_t),
                                    .init = csv_init)},
        {0}}};
