// op_list.c — Which ops and kernels there are; libraries that bring more.
#include <dlfcn.h>

#include "base/library.h"
#include "graph/graph_internal.h"
#include "ops/builtin_ops.h"
#include "tensorflow/internal.h"
#include "wire/wire.h"

enum { OP_LIST_OP = 1, KERNEL_LIST_KERNEL = 1 };
enum {
  KERNEL_OP = 1,
  KERNEL_DEVICE_TYPE = 2,
  KERNEL_CONSTRAINT = 3,
  KERNEL_HOST_MEMORY_ARG = 4,
  KERNEL_LABEL = 5,
  KERNEL_PRIORITY = 6,
};
enum { CONSTRAINT_NAME = 1, CONSTRAINT_ALLOWED_VALUES = 2, ATTR_VALUE_LIST = 1, LIST_TYPE = 6 };

struct TF_Library {
  TF_Buffer ops;  // OpList of what it registered
};

// ---- ops ----

static weir_status_t* put_op(const weir_op_t* op, weir_strbuf_t* out) {
  const size_t begin = weir_wire_begin(out, OP_LIST_OP);
  WEIR_TRY(weir_op_write(op, out));
  weir_wire_end(out, begin);
  return NULL;
}

static weir_status_t* put_all_ops(weir_strbuf_t* out) {
  const weir_registry_t* registry = NULL;
  WEIR_TRY(weir_registry_builtin(&registry));
  for (size_t i = 0; i < weir_registry_count(registry); ++i)
    WEIR_TRY(put_op(weir_registry_at(registry, i), out));
  return weir_strbuf_finish(out);
}

TF_Buffer* TF_GetAllOpList(void) {
  weir_strbuf_t bytes = {0};
  if (!weir_status_report(put_all_ops(&bytes))) return tf_buffer_new(&bytes);
  weir_strbuf_free(&bytes);
  return NULL;
}

// ---- kernels ----

static void put_constraint(const char* attr, uint64_t types, weir_strbuf_t* out) {
  const size_t constraint = weir_wire_begin(out, KERNEL_CONSTRAINT);
  weir_wire_put_string(out, CONSTRAINT_NAME, attr);
  const size_t values = weir_wire_begin(out, CONSTRAINT_ALLOWED_VALUES);
  const size_t list = weir_wire_begin(out, ATTR_VALUE_LIST);
  const size_t packed = weir_wire_begin(out, LIST_TYPE);
  for (int type = 1; type < WEIR_DTYPE_COUNT; ++type) {
    if (types >> type & 1) weir_wire_put_varint(out, (uint64_t)type);
  }
  weir_wire_end(out, packed);
  weir_wire_end(out, list);
  weir_wire_end(out, values);
  weir_wire_end(out, constraint);
}

static void put_kernel(const weir_op_t* op, const weir_kernel_def_t* kernel, weir_strbuf_t* out) {
  const size_t begin = weir_wire_begin(out, KERNEL_LIST_KERNEL);
  weir_wire_put_string(out, KERNEL_OP, op->name);
  weir_wire_put_string(out, KERNEL_DEVICE_TYPE, kernel->device);
  for (int i = 0; i < op->attr_count; ++i) {
    const weir_attr_def_t* attr = &op->attrs[i];
    if (attr->kind != WEIR_ATTR_TYPE || attr->is_list || !kernel->types) continue;
    put_constraint(attr->name, weir_kernel_types(op, kernel, attr->name), out);
  }
  for (int i = 0; i < op->input_count && i < 64; ++i) {
    if (kernel->host_input_args >> i & 1)
      weir_wire_put_string(out, KERNEL_HOST_MEMORY_ARG, op->inputs[i].name);
  }
  if (kernel->label) weir_wire_put_string(out, KERNEL_LABEL, kernel->label);
  if (kernel->priority) weir_wire_put_int(out, KERNEL_PRIORITY, kernel->priority);
  weir_wire_end(out, begin);
}

static void put_kernels(const weir_op_t* op, weir_strbuf_t* out) {
  const weir_kernel_def_t* const* tables = weir_op_kernels(op);
  for (size_t t = 0; tables[t]; ++t) {
    for (const weir_kernel_def_t* k = tables[t]; k->device; ++k) {
      put_kernel(op, k, out);
      if (k->is_only) break;
    }
  }
}

static TF_Buffer* give(weir_status_t* take_status, weir_strbuf_t* take_bytes, TF_Status* status) {
  TF_Buffer* buffer = NULL;
  weir_status_t* result = take_status;
  if (!result) {
    buffer = tf_buffer_new(take_bytes);
    if (!buffer) result = weir_out_of_memory();
  }
  weir_strbuf_free(take_bytes);
  tf_status_take(status, result);
  return buffer;
}

TF_Buffer* TF_GetAllRegisteredKernels(TF_Status* status) {
  const weir_registry_t* registry = NULL;
  weir_strbuf_t bytes = {0};
  weir_status_t* result = weir_registry_builtin(&registry);
  for (size_t i = 0; !result && i < weir_registry_count(registry); ++i)
    put_kernels(weir_registry_at(registry, i), &bytes);
  return give(result, &bytes, status);
}

TF_Buffer* TF_GetRegisteredKernelsForOp(const char* name, TF_Status* status) {
  const weir_registry_t* registry = NULL;
  weir_strbuf_t bytes = {0};
  weir_status_t* result = weir_registry_builtin(&registry);
  const weir_op_t* op = result ? NULL : weir_registry_find(registry, weir_view_of(name));
  if (op) put_kernels(op, &bytes);
  return give(result, &bytes, status);
}

// ---- libraries ----

// The ops that were not there before.
static weir_status_t* list_new_ops(const weir_registry_t* registry, const weir_map_t* before,
                                   weir_strbuf_t* out) {
  for (size_t i = 0; i < weir_registry_count(registry); ++i) {
    const weir_op_t* op = weir_registry_at(registry, i);
    if (!weir_map_find(before, weir_view_of(op->name))) WEIR_TRY(put_op(op, out));
  }
  return weir_strbuf_finish(out);
}

static weir_status_t* note_ops(const weir_registry_t* registry, weir_map_t* out_names) {
  for (size_t i = 0; i < weir_registry_count(registry); ++i) {
    const weir_op_t* op = weir_registry_at(registry, i);
    WEIR_TRY(weir_map_put(out_names, weir_view_of(op->name), (void*)(uintptr_t)op));
  }
  return NULL;
}

static weir_status_t* open_library(const char* path) {
  typedef void (*init_kernel_fn_t)(void);
  init_kernel_fn_t init = NULL;
  void* object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!object) return WEIR_STATUS(NOT_FOUND, "%s", dlerror());
  if (weir_library_find(object, "TF_InitKernel", &init)) init();
  return NULL;  // what it registered points into it: it stays
}

static weir_status_t* load(const char* path, TF_Library* library) {
  const weir_registry_t* registry = NULL;
  weir_map_t before = {0};
  weir_strbuf_t ops = {0};
  WEIR_TRY(weir_registry_builtin(&registry));
  weir_status_t* status = note_ops(registry, &before);
  if (!status) status = open_library(path);
  if (!status) status = list_new_ops(registry, &before, &ops);
  if (!status) status = tf_buffer_take(&library->ops, &ops);
  weir_map_free(&before);
  weir_strbuf_free(&ops);
  return status;
}

TF_Library* TF_LoadLibrary(const char* library_filename, TF_Status* status) {
  TF_Library* library = weir_calloc(1, sizeof(*library));
  weir_status_t* result = library ? load(library_filename, library) : weir_out_of_memory();
  if (tf_status_take(status, result)) return library;
  weir_free(library);
  return NULL;
}

TF_Buffer TF_GetOpList(TF_Library* lib_handle) { return lib_handle->ops; }

void TF_DeleteLibraryHandle(TF_Library* lib_handle) {
  if (!lib_handle) return;
  weir_free((void*)(uintptr_t)lib_handle->ops.data);
  weir_free(lib_handle);
}
