// rest_predict.c — :predict, in rows ("instances") and in columns ("inputs").
#include "serving/rest.h"

static weir_status_t* only_input(const weir_job_t* job, const weir_model_port_t** out_port) {
  *out_port = &job->signature->inputs[0];
  if (job->signature->input_count == 1) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "the signature has %d inputs: values must be given by their names",
                     job->signature->input_count);
}

// ---- columns ----

static weir_status_t* read_column(weir_job_t* job, weir_scan_t* scan,
                                  const weir_model_port_t* port) {
  weir_tensor_maker_t maker;
  weir_tensor_t* tensor = NULL;
  weir_tensor_maker_init(&maker, port->dtype, port->name);
  weir_status_t* status = weir_tensor_maker_read(&maker, scan, 0);
  if (!status) status = weir_tensor_maker_finish(&maker, -1, NULL, &tensor);
  weir_tensor_maker_free(&maker);
  return status ? status : weir_job_add_input(job, port, tensor);
}

static weir_status_t* read_columns(weir_job_t* job, weir_scan_t* scan) {
  const weir_model_port_t* port = NULL;
  bool is_first = true, has_more = false;
  weir_view_t key;
  if (weir_scan_peek(scan) != '{' || weir_scan_is_b64(scan)) {
    WEIR_TRY(only_input(job, &port));
    return read_column(job, scan, port);
  }
  WEIR_TRY(weir_scan_open(scan, '{'));
  for (;;) {
    WEIR_TRY(weir_scan_more(scan, '{', &is_first, &has_more));
    if (!has_more) return NULL;
    WEIR_TRY(weir_scan_key(scan, &key));
    WEIR_TRY(weir_job_find_input(job, key, &port));
    WEIR_TRY(read_column(job, scan, port));
  }
}

// ---- rows ----

// An input that grows by one value with each row.
typedef struct column_t {
  const weir_model_port_t* port;
  weir_tensor_maker_t maker;
  int64_t rows;
} column_t;

typedef struct rows_t {
  column_t* columns;  // by the signature's inputs
  int count;
  int64_t rows;
} rows_t;

static weir_status_t* differs(const rows_t* rows, const char* name) {
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "instance %lld: all instances must have the same inputs, each once: '%s'",
                     (long long)rows->rows, name);
}

static weir_status_t* read_value(rows_t* rows, int index, weir_scan_t* scan) {
  column_t* column = &rows->columns[index];
  if (column->rows != rows->rows) return differs(rows, column->port->name);
  ++column->rows;
  return weir_tensor_maker_read(&column->maker, scan, 1);
}

static weir_status_t* read_named_row(const weir_job_t* job, rows_t* rows, weir_scan_t* scan) {
  const weir_model_port_t* port = NULL;
  bool is_first = true, has_more = false;
  weir_view_t key;
  WEIR_TRY(weir_scan_open(scan, '{'));
  for (;;) {
    WEIR_TRY(weir_scan_more(scan, '{', &is_first, &has_more));
    if (!has_more) return NULL;
    WEIR_TRY(weir_scan_key(scan, &key));
    WEIR_TRY(weir_job_find_input(job, key, &port));
    WEIR_TRY(read_value(rows, (int)(port - job->signature->inputs), scan));
  }
}

static weir_status_t* read_row(const weir_job_t* job, rows_t* rows, weir_scan_t* scan) {
  const weir_model_port_t* port = NULL;
  if (weir_scan_peek(scan) == '{' && !weir_scan_is_b64(scan))
    return read_named_row(job, rows, scan);
  WEIR_TRY(only_input(job, &port));
  return read_value(rows, 0, scan);
}

static weir_status_t* read_all_rows(weir_job_t* job, rows_t* rows, weir_scan_t* scan) {
  bool is_first = true, has_more = false;
  WEIR_TRY(weir_scan_open(scan, '['));
  for (;; ++rows->rows) {
    WEIR_TRY(weir_scan_more(scan, '[', &is_first, &has_more));
    if (!has_more) break;
    WEIR_TRY(read_row(job, rows, scan));
    for (int i = 0; i < rows->count; ++i) {
      if (rows->columns[i].rows > 0 && rows->columns[i].rows != rows->rows + 1)
        return differs(rows, rows->columns[i].port->name);
    }
  }
  if (rows->rows > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "\"instances\" is empty");
}

static weir_status_t* finish_rows(weir_job_t* job, rows_t* rows) {
  for (int i = 0; i < rows->count; ++i) {
    column_t* column = &rows->columns[i];
    weir_tensor_t* tensor = NULL;
    if (column->rows == 0) continue;  // not given: the model may have a default
    WEIR_TRY(weir_tensor_maker_close(&column->maker, 0, rows->rows));
    WEIR_TRY(weir_tensor_maker_finish(&column->maker, -1, NULL, &tensor));
    WEIR_TRY(weir_job_add_input(job, column->port, tensor));
  }
  return NULL;
}

static weir_status_t* read_rows(weir_job_t* job, weir_scan_t* scan) {
  rows_t rows = {.count = job->signature->input_count};
  rows.columns = weir_calloc((size_t)rows.count + 1, sizeof(*rows.columns));
  if (!rows.columns) return weir_out_of_memory();
  for (int i = 0; i < rows.count; ++i) {
    rows.columns[i].port = &job->signature->inputs[i];
    weir_tensor_maker_init(&rows.columns[i].maker, rows.columns[i].port->dtype,
                           rows.columns[i].port->name);
  }
  weir_status_t* status = read_all_rows(job, &rows, scan);
  if (!status) status = finish_rows(job, &rows);
  for (int i = 0; i < rows.count; ++i) weir_tensor_maker_free(&rows.columns[i].maker);
  weir_free(rows.columns);
  return status;
}

// ---- the request ----

weir_status_t* weir_rest_read_predict(weir_rest_call_t* call) {
  weir_job_t* job = &call->job;
  weir_view_t values[WEIR_REST_MEMBERS];
  weir_scan_t scan;
  WEIR_TRY(
      weir_rest_find_members(call, (const char* const[]){"instances", "inputs"}, &scan, values));
  call->is_row_format = values[0].data != NULL;
  if (call->is_row_format == (values[1].data != NULL))
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "JSON: a request has either \"instances\" or \"inputs\"; this one has %s",
                       call->is_row_format ? "both" : "neither");
  WEIR_TRY(weir_job_bind(job, call->service->catalog, &call->spec));
  weir_scan_t value = weir_scan_within(&scan, values[call->is_row_format ? 0 : 1]);
  return call->is_row_format ? read_rows(job, &value) : read_columns(job, &value);
}

// ---- the answer ----

static bool is_binary(const char* name) {
  return weir_view_ends_with(weir_view_of(name), "_bytes");
}

static weir_status_t* check_rows(const weir_job_t* job) {
  int64_t rows = -1;
  for (int i = 0; i < job->output_count; ++i) {
    const weir_tensor_t* tensor = job->outputs[i].tensor;
    if (tensor->rank == 0)
      return WEIR_STATUS(
          INVALID_ARGUMENT,
          "Tensor name: %s has no shape information: it is a scalar, so there are no "
          "rows; ask by \"inputs\"",
          job->outputs[i].name);
    if (rows >= 0 && rows != tensor->dims[0])
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Tensor name: %s has inconsistent batch size: %lld expecting: %lld",
                         job->outputs[i].name, (long long)tensor->dims[0], (long long)rows);
    rows = tensor->dims[0];
  }
  return NULL;
}

static weir_status_t* put_one_row(const weir_job_t* job, int64_t row, weir_strbuf_t* out) {
  if (job->output_count == 1)
    return weir_json_put_row(job->outputs[0].tensor, row, is_binary(job->outputs[0].name), out);
  for (int i = 0; i < job->output_count; ++i) {
    weir_strbuf_putc(out, i ? ',' : '{');
    weir_json_put_string(job->outputs[i].name, out);
    weir_strbuf_putc(out, ':');
    WEIR_TRY(weir_json_put_row(job->outputs[i].tensor, row, is_binary(job->outputs[i].name), out));
  }
  weir_strbuf_putc(out, '}');
  return NULL;
}

static weir_status_t* put_rows(const weir_job_t* job, weir_strbuf_t* out) {
  WEIR_TRY(check_rows(job));
  int64_t rows = job->output_count > 0 ? job->outputs[0].tensor->dims[0] : 0;
  weir_strbuf_puts(out, "{\"predictions\": [");
  for (int64_t i = 0; i < rows; ++i) {
    if (i > 0) weir_strbuf_puts(out, ",\n");
    WEIR_TRY(put_one_row(job, i, out));
  }
  weir_strbuf_puts(out, "]}\n");
  return NULL;
}

static weir_status_t* put_columns(const weir_job_t* job, weir_strbuf_t* out) {
  weir_strbuf_puts(out, "{\"outputs\": ");
  if (job->output_count != 1) weir_strbuf_putc(out, '{');
  for (int i = 0; i < job->output_count; ++i) {
    const char* name = job->outputs[i].name;
    if (i > 0) weir_strbuf_puts(out, ",\n");
    if (job->output_count > 1) weir_json_put_string(name, out);
    if (job->output_count > 1) weir_strbuf_puts(out, ": ");
    WEIR_TRY(weir_json_put_tensor(job->outputs[i].tensor, is_binary(name), out));
  }
  weir_strbuf_puts(out, job->output_count != 1 ? "}}\n" : "}\n");
  return NULL;
}

weir_status_t* weir_rest_write_predict(weir_rest_call_t* call, weir_strbuf_t* out) {
  return call->is_row_format ? put_rows(&call->job, out) : put_columns(&call->job, out);
}
