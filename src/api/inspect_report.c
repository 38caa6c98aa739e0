// inspect_report.c — Reports on files, as text or JSON.
#include <stdarg.h>

#include "api/inspect.h"

void weir_report_key(weir_report_t* report, const char* key) {
  if (!report->is_json) return;
  weir_strbuf_t* out = &report->out;
  char last = out->size ? out->data[out->size - 1] : '{';
  if (last != '{' && last != '[') weir_strbuf_puts(out, ", ");
  if (!key) return;
  weir_json_put_string(key, out);
  weir_strbuf_puts(out, ": ");
}

void weir_report_open(weir_report_t* report, const char* key, char bracket) {
  weir_report_key(report, key);
  if (report->is_json) weir_strbuf_putc(&report->out, bracket);
}
void weir_report_close(weir_report_t* report, char bracket) {
  if (report->is_json) weir_strbuf_putc(&report->out, bracket);
}

void weir_report_string(weir_report_t* report, const char* key, weir_view_t value) {
  weir_report_key(report, key);
  if (report->is_json) weir_json_put_view(value, &report->out);
}
void weir_report_number(weir_report_t* report, const char* key, int64_t value) {
  weir_report_key(report, key);
  if (report->is_json) weir_strbuf_printf(&report->out, "%lld", (long long)value);
}

void weir_report_type(weir_report_t* report, weir_dtype_t dtype, int rank, const int64_t* dims) {
  weir_report_string(report, "dtype", weir_view_of(weir_dtype_name(dtype)));
  weir_report_key(report, "shape");
  if (!report->is_json) return;
  if (rank < 0) weir_strbuf_puts(&report->out, "null");
  if (rank < 0) return;
  weir_strbuf_putc(&report->out, '[');
  for (int i = 0; i < rank; ++i)
    weir_strbuf_printf(&report->out, "%s%lld", i ? ", " : "", (long long)dims[i]);
  weir_strbuf_putc(&report->out, ']');
}

void weir_report_line(weir_report_t* report, const char* format, ...) {
  if (report->is_json) return;
  va_list args;
  va_start(args, format);
  weir_strbuf_vprintf(&report->out, format, args);
  va_end(args);
}

const char* weir_report_shape(int rank, const int64_t* dims, weir_strbuf_t* out) {
  out->size = 0;
  if (rank < 0) weir_strbuf_puts(out, "any shape");
  else weir_strbuf_putc(out, '[');
  for (int i = 0; i < rank; ++i) {
    if (dims[i] < 0) weir_strbuf_printf(out, "%s?", i ? "," : "");
    else weir_strbuf_printf(out, "%s%lld", i ? "," : "", (long long)dims[i]);
  }
  if (rank >= 0) weir_strbuf_putc(out, ']');
  return out->failed || !out->data ? "" : out->data;
}

void weir_report_begin(weir_report_t* report, const char* kind, const char* what) {
  weir_report_open(report, NULL, '{');
  weir_report_string(report, "path", weir_view_of(report->path));
  weir_report_string(report, "kind", weir_view_of(kind));
  weir_report_line(report, "%s: %s\n", report->path, what);
}
