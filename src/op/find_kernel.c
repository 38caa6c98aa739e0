// find_kernel.c — The kernel of a node on a device, by the types its row accepts.
#include <ctype.h>
#include <stdatomic.h>

#include "base/string.h"
#include "op/spec.h"

const weir_kernel_def_t* const* weir_op_kernels(const weir_op_t* op) {
  static const weir_kernel_def_t* const none[] = {NULL};
  // pairs with the release in add_kernels of registry.c
  const weir_kernel_def_t* const* tables =
      op ? atomic_load_explicit(&((weir_op_t*)op)->kernel_tables, memory_order_acquire) : NULL;
  return tables ? tables : none;
}

uint64_t weir_kernel_types(const weir_op_t* op, const weir_kernel_def_t* kernel, const char* attr) {
  uint64_t mask = 0;
  weir_status_destroy(
      weir_spec_kernel_types(kernel->types, attr, &mask));  // checked by the registry
  const weir_attr_def_t* def = weir_op_attr(op, attr);
  uint64_t allowed = def && def->allowed_types ? def->allowed_types : UINT64_MAX;
  return mask ? mask : allowed;
}

static bool accepts(const weir_kernel_def_t* kernel, const char* attr, const weir_attr_t* value) {
  uint64_t mask = 0;
  weir_status_destroy(weir_spec_kernel_types(kernel->types, attr, &mask));
  if (!mask) return true;
  if (!value->is_list) return mask >> value->u.type & 1;
  for (size_t i = 0; i < value->count; ++i) {
    if (!(mask >> value->u.types[i] & 1)) return false;
  }
  return true;
}

// A node that asks for a kernel by its label gets no other, and nobody else gets that one.
static bool has_label(const weir_node_def_t* node, const char* label) {
  const weir_attr_t* asked = weir_attrs_find(node->attrs, "_kernel");
  const bool is_text = asked && asked->kind == WEIR_ATTR_STRING && !asked->is_list;
  return weir_view_is(is_text ? asked->u.s : weir_view("", 0), label ? label : "");
}

// |device_type| NULL: any, of portable kernels.
static bool kernel_fits(const weir_node_def_t* node, const weir_kernel_def_t* kernel,
                        const char* device_type) {
  if (device_type ? strcmp(kernel->device, device_type) != 0 : !kernel->is_portable) return false;
  if (!has_label(node, kernel->label)) return false;
  for (int i = 0; kernel->types && i < node->op->attr_count; ++i) {
    const weir_attr_def_t* def = &node->op->attrs[i];
    if (def->kind != WEIR_ATTR_TYPE) continue;
    const weir_attr_t* value = weir_attrs_find(node->attrs, def->name);
    if (value && value->kind == WEIR_ATTR_TYPE && !accepts(kernel, def->name, value)) return false;
  }
  return true;
}

static const weir_kernel_def_t* find_in(const weir_node_def_t* node, const weir_kernel_def_t* rows,
                                        const char* device_type) {
  for (const weir_kernel_def_t* k = rows; k->device; ++k) {
    if (kernel_fits(node, k, device_type)) return k;
  }
  return NULL;
}

static const weir_kernel_def_t* find_in_tables(const weir_node_def_t* node,
                                               const char* device_type) {
  const weir_kernel_def_t* kernel = NULL;
  const weir_kernel_def_t* const* tables = weir_op_kernels(node->op);
  for (size_t i = 0; !kernel && tables[i]; ++i) kernel = find_in(node, tables[i], device_type);
  return kernel;
}

// "DT_FLOAT", as TensorFlow prints types in this message.
static void append_enum_name(weir_dtype_t type, weir_strbuf_t* out) {
  weir_strbuf_puts(out, "DT_");
  for (const char* c = weir_dtype_name(type); *c; ++c) {
    weir_strbuf_putc(out, (char)toupper((unsigned char)*c));
  }
}

static void append_row(const weir_op_t* op, const weir_kernel_def_t* kernel, weir_strbuf_t* out) {
  weir_strbuf_printf(out, "  device='%s'", kernel->device);
  for (int i = 0; i < op->attr_count; ++i) {
    uint64_t mask = 0;
    weir_status_destroy(weir_spec_kernel_types(kernel->types, op->attrs[i].name, &mask));
    if (!mask) continue;
    weir_strbuf_printf(out, "; %s in [", op->attrs[i].name);
    bool is_first = true;
    for (int t = 1; t < WEIR_DTYPE_COUNT; ++t) {
      if (!(mask >> t & 1)) continue;
      if (!is_first) weir_strbuf_puts(out, ", ");
      append_enum_name((weir_dtype_t)t, out);
      is_first = false;
    }
    weir_strbuf_putc(out, ']');
  }
  weir_strbuf_putc(out, '\n');
}

static void append_type_attrs(const weir_node_def_t* node, weir_strbuf_t* out) {
  bool is_first = true;
  for (size_t i = 0; i < node->attrs.count; ++i) {
    const weir_named_attr_t* attr = &node->attrs.items[i];
    if (attr->value.kind != WEIR_ATTR_TYPE || attr->value.is_list) continue;
    weir_strbuf_printf(out, "%s%s=", is_first ? "" : ", ", attr->name);
    append_enum_name(attr->value.u.type, out);
    is_first = false;
  }
}

// A known op without a kernel is INVALID_ARGUMENT in TensorFlow's sessions; an unknown op is
// NOT_FOUND.
static weir_status_t* no_kernel(const weir_node_def_t* node, const char* device_type) {
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text,
                     "No OpKernel was registered to support Op '%s' used by {{node %s}} with these "
                     "attrs: [",
                     node->op_name, node->name);
  append_type_attrs(node, &text);
  weir_strbuf_printf(&text, "]\nRegistered devices: [%s]\nRegistered kernels:\n", device_type);
  size_t before = text.size;
  const weir_op_t* op = node->op;
  const weir_kernel_def_t* const* tables = weir_op_kernels(op);
  for (size_t i = 0; tables[i]; ++i) {
    for (const weir_kernel_def_t* k = tables[i]; k->device; ++k) append_row(op, k, &text);
  }
  if (text.size == before) weir_strbuf_puts(&text, "  <no registered kernels>\n");
  const char* message = text.data ? text.data : node->name;
  weir_status_t* status =
      op ? WEIR_STATUS(INVALID_ARGUMENT, "%s", message) : WEIR_STATUS(NOT_FOUND, "%s", message);
  weir_strbuf_free(&text);
  return status;
}

const weir_kernel_def_t* weir_op_kernel(const weir_node_def_t* node, const char* device_type) {
  const weir_kernel_def_t* kernel = find_in_tables(node, device_type);
  if (kernel) return kernel;
  const weir_kernel_def_t* portable = find_in_tables(node, NULL);
  return portable ? portable->abroad : NULL;
}

weir_status_t* weir_op_find_kernel(const weir_node_def_t* node, const char* device_type,
                                   const weir_kernel_def_t** out_kernel) {
  const weir_kernel_def_t* kernel = weir_op_kernel(node, device_type);
  if (!kernel) return no_kernel(node, device_type);
  *out_kernel = kernel;
  return NULL;
}
