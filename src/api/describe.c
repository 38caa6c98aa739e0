// describe.c — What this build is: its version and its ops, as the registry tells them; and where
// it runs.
#include "base/alloc.h"
#include "base/json.h"
#include "base/string.h"
#include "base/thread.h"
#include "device/cuda/cuda.h"
#include "op/misspelt.h"
#include "op/op.h"
#include "ops/builtin_ops.h"
#include "weir/argument.h"
#include "weir/version.h"
#include "wire/wire.h"

const char* weir_version(void) { return WEIR_VERSION; }
int64_t weir_peak_bytes(void) { return weir_host_allocator_peak(); }
void weir_reset_peak_bytes(void) { weir_host_allocator_reset_peak(); }

// The types of |attr| for which some kernel exists beside the op's definition.
static uint64_t kernel_types(const weir_op_t* op, const char* attr) {
  uint64_t mask = 0;
  for (const weir_kernel_def_t* k = op->def->kernels ? weir_op_kernels(op)[0] : NULL;
       k && k->device; ++k)
    mask |= weir_kernel_types(op, k, attr);
  return mask;
}

static void append_types(uint64_t mask, const char* separator, const char* quote,
                         weir_strbuf_t* out) {
  bool is_first = true;
  for (int i = 1; i < WEIR_DTYPE_COUNT; ++i) {
    if (!(mask & (UINT64_C(1) << i)) || !weir_dtype_is_valid((weir_dtype_t)i)) continue;
    weir_strbuf_printf(out, "%s%s%s%s", is_first ? "" : separator, quote,
                       weir_dtype_name((weir_dtype_t)i), quote);
    is_first = false;
  }
}

// Whether some kernel of |op| serves devices of |type|.
static bool has_kernel(const weir_op_t* op, const char* type) {
  const weir_kernel_def_t* const* tables = weir_op_kernels(op);
  for (size_t i = 0; tables[i]; ++i) {
    for (const weir_kernel_def_t* k = tables[i]; k->device; ++k) {
      if (k->is_portable || strcmp(k->device, type) == 0) return true;
    }
  }
  return false;
}

static void append_devices(const weir_op_t* op, const char* separator, const char* quote,
                           weir_strbuf_t* out) {
  static const char* const types[] = {WEIR_DEVICE_CPU, WEIR_DEVICE_GPU};
  bool is_first = true;
  for (size_t i = 0; i < WEIR_COUNT_OF(types); ++i) {
    if (!has_kernel(op, types[i])) continue;
    weir_strbuf_printf(out, "%s%s%s%s", is_first ? "" : separator, quote, types[i], quote);
    is_first = false;
  }
}

static void append_json(const weir_op_t* op, weir_strbuf_t* out) {
  weir_strbuf_printf(out, "{\"name\": \"%s\", \"summary\": ", op->name);
  weir_json_put_string(op->def->summary ? op->def->summary : "", out);
  weir_strbuf_puts(out, ", \"types\": {");
  bool is_first = true;
  for (int i = 0; i < op->attr_count; ++i) {
    if (op->attrs[i].kind != WEIR_ATTR_TYPE || op->attrs[i].is_list) continue;
    weir_strbuf_printf(out, "%s\"%s\": [", is_first ? "" : ", ", op->attrs[i].name);
    append_types(kernel_types(op, op->attrs[i].name), ", ", "\"", out);
    weir_strbuf_puts(out, "]");
    is_first = false;
  }
  weir_strbuf_puts(out, "}, \"devices\": [");
  append_devices(op, ", ", "\"", out);
  weir_strbuf_printf(out, "], \"gradient\": %s, \"stateful\": %s}\n",
                     op->def->build_grad ? "true" : "false",
                     op->flags & WEIR_OP_STATEFUL ? "true" : "false");
}

static void append_line(const weir_op_t* op, weir_strbuf_t* out) {
  weir_strbuf_printf(out, "%-40s %-1s %-8s ", op->name, op->def->kernels ? "" : "-",
                     op->def->build_grad ? "gradient" : "");
  if (op->def->kernels) append_devices(op, ",", "", out);
  for (int i = 0; i < op->attr_count; ++i) {
    if (op->attrs[i].kind != WEIR_ATTR_TYPE || op->attrs[i].is_list) continue;
    weir_strbuf_printf(out, "  %s: ", op->attrs[i].name);
    append_types(kernel_types(op, op->attrs[i].name), ",", "", out);
  }
  weir_strbuf_putc(out, '\n');
}

static void append_spec(const char* what, const char* spec, weir_strbuf_t* out) {
  if (spec && *spec) weir_strbuf_printf(out, "  %-8s %s\n", what, spec);
}

static void append_whole(const weir_op_t* op, weir_strbuf_t* out) {
  append_line(op, out);
  if (op->def->summary) weir_strbuf_printf(out, "  %s\n", op->def->summary);
  append_spec("inputs", op->def->inputs, out);
  append_spec("outputs", op->def->outputs, out);
  append_spec("attrs", op->def->attrs, out);
}

weir_status_t* weir_describe_ops(const char* name, bool json, char** out_text) {
  WEIR_REQUIRE_ARG(out_text);
  const weir_registry_t* registry = NULL;
  WEIR_TRY(weir_registry_builtin(&registry));
  weir_strbuf_t out = {0};
  if (name) {
    const weir_op_t* op = weir_registry_find(registry, weir_view_of(name));
    if (!op)
      return weir_registry_suggest(registry, name,
                                   WEIR_STATUS(NOT_FOUND, "there is no op '%s'", name));
    if (json) append_json(op, &out);
    else append_whole(op, &out);
  }
  for (size_t i = 0; !name && i < weir_registry_count(registry); ++i) {
    const weir_op_t* op = weir_registry_at(registry, i);
    if (json) append_json(op, &out);
    else append_line(op, &out);
  }
  weir_status_t* status = weir_strbuf_finish(&out);
  if (status) weir_strbuf_free(&out);
  else *out_text = out.data;
  return status;
}

weir_status_t* weir_describe_devices(char** out_text) {
  WEIR_REQUIRE_ARG(out_text);
  weir_strbuf_t out = {0};
  int count = weir_cpu_count();
  weir_strbuf_printf(&out, "cpu     %d core%s\n", count, count == 1 ? "" : "s");
  weir_cuda_describe(&out);
  weir_status_t* status = weir_strbuf_finish(&out);
  if (status) weir_strbuf_free(&out);
  else *out_text = out.data;
  return status;
}

weir_status_t* weir_op_list(char** out_data, size_t* out_size) {
  WEIR_REQUIRE_ARG(out_data);
  WEIR_REQUIRE_ARG(out_size);
  const weir_registry_t* registry = NULL;
  WEIR_TRY(weir_registry_builtin(&registry));
  weir_strbuf_t out = {0};
  weir_status_t* status = NULL;
  for (size_t i = 0; i < weir_registry_count(registry) && !status; ++i) {
    size_t begin = weir_wire_begin(&out, 1);
    status = weir_op_write(weir_registry_at(registry, i), &out);
    weir_wire_end(&out, begin);
  }
  if (!status) status = weir_strbuf_finish(&out);
  if (status) {
    weir_strbuf_free(&out);
    return status;
  }
  *out_data = out.data;
  *out_size = out.size;
  return NULL;
}
