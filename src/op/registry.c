// registry.c — The table of all ops: parsed and validated once, then read by everyone.
#include <ctype.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/string.h"
#include "op/spec.h"

// The ops at one time. Immutable once it is the registry's; readers may hold an old one.
typedef struct table_t table_t;
struct table_t {
  weir_map_t by_name;  // → weir_op_t
  const weir_op_t** sorted;
  size_t count;
  table_t* older;
};

struct weir_registry_t {
  weir_arena_t arena;          // of everything parsed
  weir_tensor_list_t tensors;  // within defaults
  _Atomic(table_t*) table;     // replaced when ops are added
};

static table_t* current(const weir_registry_t* registry) {
  // pairs with the release in weir_registry_add
  return atomic_load_explicit(&((weir_registry_t*)registry)->table, memory_order_acquire);
}

// ---- validation of what the spec strings do not say ----

static weir_status_t* bad_op(const char* file, const char* op, const char* problem) {
  return WEIR_STATUS(INVALID_ARGUMENT, "%s: op %s: %s", file, op, problem);
}

static bool is_op_name(const char* name) {
  if (!isupper((unsigned char)name[0]) && name[0] != '_') return false;
  for (const char* c = name; *c; ++c) {
    if (!isalnum((unsigned char)*c) && *c != '_' && *c != '>') return false;
  }
  return true;
}

// The index of the argument |name|; -1 when there is none.
static int find_arg(weir_view_t name, const weir_arg_t* args, int count) {
  for (int i = 0; i < count; ++i) {
    if (weir_view_is(name, args[i].name)) return i;
  }
  return -1;
}

// The arguments that a comma-separated list names, as a mask.
static weir_status_t* parse_arg_names(const char* file, const weir_op_t* op, const char* names,
                                      const weir_arg_t* args, int count, uint64_t* out_mask) {
  weir_view_t rest = weir_view_of(names);
  weir_view_t part;
  while (rest.size && weir_view_next(&rest, ',', &part)) {
    part = weir_view_trim(part);
    int arg = find_arg(part, args, count);
    if (arg < 0 || arg >= 64) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%s: op %s: a kernel names '%.*s', which is no argument",
                         file, op->name, WEIR_VIEW_ARG(part));
    }
    *out_mask |= UINT64_C(1) << arg;
  }
  return NULL;
}

// Every attribute that a row constrains must be a type attribute of the op, with known types.
static weir_status_t* check_kernel_types(const char* file, const weir_op_t* op,
                                         const weir_kernel_def_t* kernel) {
  weir_view_t rest = weir_view_of(kernel->types);
  weir_view_t part;
  while (rest.size && weir_view_next(&rest, ';', &part)) {
    weir_view_t name;
    if (weir_view_trim(part).size == 0) continue;
    weir_view_next(&part, ':', &name);
    name = weir_view_trim(name);
    bool is_found = false;
    for (int i = 0; i < op->attr_count && !is_found; ++i) {
      if (!weir_view_is(name, op->attrs[i].name) || op->attrs[i].kind != WEIR_ATTR_TYPE) continue;
      uint64_t mask = 0;
      weir_status_t* status = weir_spec_kernel_types(kernel->types, op->attrs[i].name, &mask);
      if (status) return weir_status_prefix(status, "%s: op %s: kernel types: ", file, op->name);
      is_found = true;
    }
    if (!is_found) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "%s: op %s: a kernel constrains '%.*s', which is no type attribute", file,
                         op->name, WEIR_VIEW_ARG(name));
    }
  }
  return NULL;
}

static uint64_t all_args(int count) {
  return count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

// Checks a row and sets its masks.
static weir_status_t* complete_kernel(const char* file, const weir_op_t* op, weir_kernel_def_t* k) {
  if (!k->compute == !k->compute_async) {
    return bad_op(file, op->name, "a kernel needs one of compute and compute_async");
  }
  if (k->init && k->state_size == 0) {
    return bad_op(file, op->name, "a kernel has init but no state_size");
  }
  WEIR_TRY(check_kernel_types(file, op, k));
  WEIR_TRY(
      parse_arg_names(file, op, k->host_inputs, op->inputs, op->input_count, &k->host_input_args));
  WEIR_TRY(parse_arg_names(file, op, k->host_outputs, op->outputs, op->output_count,
                           &k->host_output_args));
  if (op->flags & WEIR_OP_HOST_ONLY) {
    k->host_input_args |= all_args(op->input_count);
    k->host_output_args |= all_args(op->output_count);
  }
  return NULL;
}

// ---- creation ----

// A row with kernels alone adds them to an op that another module defines.
static bool is_kernel_row(const weir_op_def_t* def) {
  return def->kernels && !def->infer_shape && !def->attrs && !def->inputs && !def->outputs;
}

static size_t count_rows(const weir_kernel_def_t* rows) {
  size_t count = 0;
  while (rows[count].device) {
    if (rows[count++].is_only) break;
  }
  return count;
}

// A copy of |rows|, each of them complete, and ended by a zero row.
static weir_status_t* copy_kernels(weir_registry_t* registry, const char* file, const weir_op_t* op,
                                   const weir_kernel_def_t* rows,
                                   const weir_kernel_def_t** out_rows) {
  const size_t count = count_rows(rows);
  weir_kernel_def_t* copy = weir_arena_array(&registry->arena, count + 1, sizeof(*copy));
  if (!copy) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    copy[i] = rows[i];
    WEIR_TRY(complete_kernel(file, op, &copy[i]));
    if (!copy[i].is_portable) continue;
    weir_kernel_def_t* abroad = weir_arena_array(&registry->arena, 1, sizeof(*abroad));
    if (!abroad) return weir_out_of_memory();
    *abroad = copy[i];
    abroad->keeps_int32 = !abroad->has_device_int32;
    copy[i].abroad = abroad;
  }
  *out_rows = copy;
  return NULL;
}

// Tables are in the order of their rows' priorities, which are equal within one; of equal tables
// the older is first.
static weir_status_t* add_kernels(weir_registry_t* registry, const char* file, weir_op_t* op,
                                  const weir_kernel_def_t* rows) {
  const weir_kernel_def_t* const* before = weir_op_kernels(op);
  size_t count = 0;
  while (before[count]) ++count;
  const weir_kernel_def_t** tables = weir_arena_array(&registry->arena, count + 2, sizeof(*tables));
  if (!tables) return weir_out_of_memory();
  size_t at = 0;
  while (at < count && before[at]->priority >= rows->priority) ++at;
  for (size_t i = 0; i < count; ++i) tables[i < at ? i : i + 1] = before[i];
  tables[count + 1] = NULL;
  WEIR_TRY(copy_kernels(registry, file, op, rows, &tables[at]));
  // pairs with the acquire in weir_op_kernels
  atomic_store_explicit(&op->kernel_tables, tables, memory_order_release);
  return NULL;
}

static weir_status_t* add_op(weir_registry_t* registry, table_t* table, const char* file,
                             const weir_op_def_t* def) {
  if (!is_op_name(def->name)) return bad_op(file, def->name, "this is not a name for an op");
  if (weir_map_find(&table->by_name, weir_view_of(def->name))) {
    return bad_op(file, def->name, "the name is taken by another op");
  }
  if (!def->infer_shape) return bad_op(file, def->name, "infer_shape is required");
  weir_op_t* op = weir_arena_alloc(&registry->arena, sizeof(*op));
  if (!op) return weir_out_of_memory();
  WEIR_TRY(weir_spec_parse(file, def, &registry->arena, &registry->tensors, op));
  if (def->kernels) WEIR_TRY(add_kernels(registry, file, op, def->kernels));
  return weir_map_put(&table->by_name, weir_view_of(op->name), op);
}

static weir_status_t* add_kernel_row(weir_registry_t* registry, table_t* table, const char* file,
                                     const weir_op_def_t* def) {
  weir_op_t* op = weir_map_find(&table->by_name, weir_view_of(def->name));
  if (!op) return bad_op(file, def->name, "kernels are given for an op that nobody defines");
  return add_kernels(registry, file, op, def->kernels);
}

// Definitions first, so that kernel rows find theirs whatever the order of the modules.
static weir_status_t* add_modules(weir_registry_t* registry, table_t* table,
                                  const weir_op_module_t* const* modules, bool kernel_rows) {
  for (; *modules; ++modules) {
    const char* file = (*modules)->file ? (*modules)->file : "?";
    for (const weir_op_def_t* def = (*modules)->ops; def->name; ++def) {
      if (is_kernel_row(def) != kernel_rows) continue;
      WEIR_TRY(kernel_rows ? add_kernel_row(registry, table, file, def)
                           : add_op(registry, table, file, def));
    }
  }
  return NULL;
}

static int compare_names(const void* a, const void* b) {
  return strcmp((*(const weir_op_t* const*)a)->name, (*(const weir_op_t* const*)b)->name);
}

static weir_status_t* sort_ops(weir_registry_t* registry, table_t* table) {
  table->sorted = weir_arena_array(&registry->arena, table->by_name.count, sizeof(weir_op_t*));
  if (!table->sorted) return weir_out_of_memory();
  weir_map_entry_t* entry = NULL;
  for (size_t i = 0; (entry = weir_map_next(&table->by_name, &i));) {
    table->sorted[table->count++] = entry->value;
  }
  if (table->count) qsort(table->sorted, table->count, sizeof(*table->sorted), compare_names);
  return NULL;
}

static weir_status_t* copy_ops(const table_t* from, table_t* to) {
  for (size_t i = 0; from && i < from->count; ++i) {
    const weir_op_t* op = from->sorted[i];
    WEIR_TRY(weir_map_put(&to->by_name, weir_view_of(op->name), (void*)op));
  }
  return NULL;
}

weir_status_t* weir_registry_add(weir_registry_t* registry,
                                 const weir_op_module_t* const* modules) {
  table_t* table = weir_calloc(1, sizeof(*table));
  if (!table) return weir_out_of_memory();
  table->older = current(registry);
  weir_status_t* status = copy_ops(table->older, table);
  if (!status) status = add_modules(registry, table, modules, false);
  if (!status) status = add_modules(registry, table, modules, true);
  if (!status) status = sort_ops(registry, table);
  if (status) {
    weir_map_free(&table->by_name);
    weir_free(table);
    return status;
  }
  // pairs with the acquire in current()
  atomic_store_explicit(&registry->table, table, memory_order_release);
  return NULL;
}

weir_status_t* weir_registry_create(const weir_op_module_t* const* modules,
                                    weir_registry_t** out_registry) {
  weir_registry_t* registry = weir_calloc(1, sizeof(*registry));
  if (!registry) return weir_out_of_memory();
  weir_status_t* status = weir_registry_add(registry, modules);
  if (status) {
    weir_registry_destroy(registry);
    return status;
  }
  *out_registry = registry;
  return NULL;
}

void weir_registry_destroy(weir_registry_t* registry) {
  if (!registry) return;
  for (table_t *table = current(registry), *older; table; table = older) {
    older = table->older;
    weir_map_free(&table->by_name);
    weir_free(table);
  }
  weir_tensor_list_free(&registry->tensors);
  weir_arena_free(&registry->arena);
  weir_free(registry);
}

const weir_op_t* weir_registry_find(const weir_registry_t* registry, weir_view_t name) {
  return weir_map_find(&current(registry)->by_name, name);
}

size_t weir_registry_count(const weir_registry_t* registry) { return current(registry)->count; }

const weir_op_t* weir_registry_at(const weir_registry_t* registry, size_t index) {
  const table_t* table = current(registry);
  return index < table->count ? table->sorted[index] : NULL;
}
