// lookup.c — Reading and changing tables, by handle or by Ref(string): find, insert, remove, size,
// export, import, initialize.
#include "op/shape_ctx.h"
#include "op/shared_handle.h"
#include "ops/table/table.h"

static void append_types(weir_strbuf_t* out, const weir_dtype_t* types, int count) {
  for (int i = 0; i < count; ++i)
    weir_strbuf_printf(out, "%s%s", i ? ", " : "", weir_dtype_name(types[i]));
}

static void append_signature(weir_strbuf_t* out, const weir_node_def_t* node,
                             const weir_dtype_t* inputs, const weir_dtype_t* outputs) {
  append_types(out, inputs, node->input_count);
  weir_strbuf_puts(out, "->");
  append_types(out, outputs, node->output_count);
}

// Whether the node's types are those of the table: after the handle come keys and values, put out
// are values (find) or keys and values (export).
static weir_status_t* check_signature(const weir_node_def_t* node,
                                      const weir_lookup_table_t* table) {
  const weir_lookup_table_config_t* config = weir_lookup_table_config(table);
  const weir_dtype_t inputs[3] = {node->input_types[0], config->key_dtype, config->value_dtype};
  const weir_dtype_t pair[2] = {config->key_dtype, config->value_dtype};
  const weir_dtype_t* outputs = node->output_count == 2 ? pair : &pair[1];
  weir_strbuf_t text = {0};
  bool is_same = true;
  // NOLINTBEGIN(clang-analyzer-core.UndefinedBinaryOperatorResult): at most 3 inputs and 2 outputs
  for (int i = 0; i < node->input_count; ++i) is_same &= node->input_types[i] == inputs[i];
  for (int i = 0; i < node->output_count; ++i) is_same &= node->output_types[i] == outputs[i];
  // NOLINTEND(clang-analyzer-core.UndefinedBinaryOperatorResult)
  if (is_same) return NULL;
  weir_strbuf_puts(&text, "have: ");
  append_signature(&text, node, node->input_types, node->output_types);
  weir_strbuf_puts(&text, " expected: ");
  append_signature(&text, node, inputs, outputs);
  weir_status_t* status = WEIR_STATUS(INVALID_ARGUMENT, "Signature mismatch, %.*s",
                                      WEIR_VIEW_ARG(weir_strbuf_view(&text)));
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* find_table(weir_kernel_ctx_t* ctx, weir_lookup_table_t** out_table) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_shared_handle_resource(ctx, 0, &weir_lookup_table_type, &resource));
  *out_table = (weir_lookup_table_t*)resource;
  return NULL;
}

static weir_status_t* get_table(weir_kernel_ctx_t* ctx, weir_lookup_table_t** out_table) {
  weir_lookup_table_t* table = NULL;
  WEIR_TRY(find_table(ctx, &table));
  weir_status_t* status = check_signature(ctx->node, table);
  if (status) {
    weir_resource_release((weir_resource_t*)table);
    return status;
  }
  *out_table = table;
  return NULL;
}

static weir_status_t* find_cpu(weir_kernel_ctx_t* ctx) {
  weir_lookup_table_t* table = NULL;
  weir_tensor_t* out = NULL;
  const weir_tensor_t* keys = weir_kernel_input(ctx, 1);
  WEIR_TRY(get_table(ctx, &table));
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  weir_status_t* status = weir_lookup_table_values_shape(table, keys, &rank, dims);
  if (!status) status = weir_kernel_output(ctx, 0, rank, dims, &out);
  if (!status) status = weir_lookup_table_find(table, keys, weir_kernel_input(ctx, 2), out);
  weir_resource_release((weir_resource_t*)table);
  return status;
}

typedef weir_status_t* (*fill_fn_t)(weir_lookup_table_t* table, const weir_tensor_t* keys,
                                    const weir_tensor_t* values);

static weir_status_t* fill(weir_kernel_ctx_t* ctx, fill_fn_t fn) {
  weir_lookup_table_t* table = NULL;
  WEIR_TRY(get_table(ctx, &table));
  weir_status_t* status = fn(table, weir_kernel_input(ctx, 1), weir_kernel_input(ctx, 2));
  weir_resource_release((weir_resource_t*)table);
  return status;
}

static weir_status_t* insert_cpu(weir_kernel_ctx_t* ctx) {
  return fill(ctx, weir_lookup_table_insert);
}
static weir_status_t* import_cpu(weir_kernel_ctx_t* ctx) {
  return fill(ctx, weir_lookup_table_import);
}

static weir_status_t* check_vector(const weir_tensor_t* tensor, const char* what) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (tensor->rank == 1) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a vector, but received shape %s", what,
                     weir_tensor_shape_text(tensor, text));
}

static weir_status_t* initialize_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* keys = weir_kernel_input(ctx, 1);
  const weir_tensor_t* values = weir_kernel_input(ctx, 2);
  WEIR_TRY(check_vector(keys, "Keys"));
  WEIR_TRY(check_vector(values, "Values"));
  if (keys->count != values->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Keys and values must have the same number of elements: %lld vs %lld",
                       (long long)keys->count, (long long)values->count);
  }
  return fill(ctx, weir_lookup_table_initialize);
}

static weir_status_t* remove_cpu(weir_kernel_ctx_t* ctx) {
  weir_lookup_table_t* table = NULL;
  WEIR_TRY(get_table(ctx, &table));
  weir_status_t* status = weir_lookup_table_remove(table, weir_kernel_input(ctx, 1));
  weir_resource_release((weir_resource_t*)table);
  return status;
}

static weir_status_t* size_cpu(weir_kernel_ctx_t* ctx) {
  weir_lookup_table_t* table = NULL;
  WEIR_TRY(find_table(ctx, &table));
  int64_t size = weir_lookup_table_size(table);
  weir_resource_release((weir_resource_t*)table);
  return weir_kernel_output_int(ctx, 0, size);
}

static weir_status_t* export_cpu(weir_kernel_ctx_t* ctx) {
  weir_lookup_table_t* table = NULL;
  weir_tensor_t *keys = NULL, *values = NULL;
  WEIR_TRY(get_table(ctx, &table));
  weir_status_t* status = weir_lookup_table_export(table, &keys, &values);
  weir_resource_release((weir_resource_t*)table);
  if (status) return status;
  weir_kernel_set(ctx, 0, keys);
  weir_kernel_set(ctx, 1, values);
  return NULL;
}

// ---- shapes ----
// A handle is a scalar resource, or a vector [container, name] of two strings.
static weir_status_t* check_handle(weir_shape_ctx_t* ctx) {
  const weir_shape_t* handle = weir_shape_input(ctx, 0);
  int64_t two = 2;
  if (!weir_dtype_is_ref(ctx->node->input_types[0]))
    return weir_shape_with_rank(ctx, handle, 0, NULL);
  WEIR_TRY(weir_shape_with_rank(ctx, handle, 1, NULL));
  return weir_dim_join(ctx, weir_shape_dim(handle, 0), two, &two);
}

static weir_status_t* find_shape(weir_shape_ctx_t* ctx) {
  const weir_handle_info_t* info = ctx->input_handles[0];
  WEIR_TRY(check_handle(ctx));
  if (weir_dtype_is_ref(ctx->node->input_types[0]) || !info || !info->shape) return NULL;
  return weir_shape_set(ctx, 0, weir_shape_concat(ctx, weir_shape_input(ctx, 1), info->shape));
}

static weir_status_t* size_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_handle(ctx));
  return weir_shape_set_scalar(ctx, 0);
}

// Keys are a vector, or a matrix where the table is dense, which no reference names.
static weir_status_t* export_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_handle(ctx));
  if (!weir_dtype_is_ref(ctx->node->input_types[0])) return NULL;
  return weir_shape_set_vector(ctx, 0, -1);
}

static weir_status_t* initialize_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* keys = NULL;
  WEIR_TRY(check_handle(ctx));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &keys));
  return weir_shape_join(ctx, keys, weir_shape_input(ctx, 2), &keys);
}

static weir_status_t* remove_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_handle(ctx));
  return weir_shape_at_least(ctx, weir_shape_input(ctx, 1), 1);
}

#define KERNEL(fn) WEIR_CPU_KERNEL(.compute = fn, .host_inputs = "table_handle")
#define LOOKUP_OP(op, text, specs, handle, ins, outs, op_flags, shape_fn, fn)           \
  {                                                                                     \
    .name = op, .summary = text, .attrs = specs, .inputs = "table_handle: " handle ins, \
    .outputs = outs, .flags = op_flags, .infer_shape = shape_fn, .kernels = KERNEL(fn)  \
  }
#define IN_OUT "Tin: type; Tout: type"
#define PAIRS "; keys: Tin; values: Tout"
#define REF "Ref(string)"
#define STATEFUL WEIR_OP_STATEFUL

const weir_op_module_t weir_ops_table_lookup = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        LOOKUP_OP("LookupTableFind",
                  "The values of keys in a table; a default where a key is absent", IN_OUT, REF,
                  "; keys: Tin; default_value: Tout", "values: Tout", WEIR_OP_NO_GRADIENT,
                  find_shape, find_cpu),
        LOOKUP_OP("LookupTableFindV2",
                  "The values of keys in a table; a default where a key is absent", IN_OUT,
                  "resource", "; keys: Tin; default_value: Tout", "values: Tout",
                  STATEFUL | WEIR_OP_NO_GRADIENT, find_shape, find_cpu),
        LOOKUP_OP("LookupTableInsert",
                  "Puts keys with values into a table, over those that were there", IN_OUT, REF,
                  PAIRS, NULL, 0, check_handle, insert_cpu),
        LOOKUP_OP("LookupTableInsertV2",
                  "Puts keys with values into a table, over those that were there", IN_OUT,
                  "resource", PAIRS, NULL, STATEFUL, check_handle, insert_cpu),
        LOOKUP_OP("LookupTableImport", "Replaces all that is in a table", IN_OUT, REF, PAIRS, NULL,
                  0, check_handle, import_cpu),
        LOOKUP_OP("LookupTableImportV2", "Replaces all that is in a table", IN_OUT, "resource",
                  PAIRS, NULL, STATEFUL, check_handle, import_cpu),
        LOOKUP_OP("LookupTableRemoveV2", "Takes keys out of a table; absent ones do not matter",
                  "Tin: type", "resource", "; keys: Tin", NULL, STATEFUL, remove_shape, remove_cpu),
        LOOKUP_OP("LookupTableSize", "The number of keys in a table", NULL, REF, "", "size: int64",
                  WEIR_OP_CHEAP, size_shape, size_cpu),
        LOOKUP_OP("LookupTableSizeV2", "The number of keys in a table", NULL, "resource", "",
                  "size: int64", STATEFUL | WEIR_OP_CHEAP, size_shape, size_cpu),
        LOOKUP_OP("LookupTableExport", "All keys and values of a table",
                  "Tkeys: type; Tvalues: type", REF, "", "keys: Tkeys; values: Tvalues", 0,
                  export_shape, export_cpu),
        LOOKUP_OP("LookupTableExportV2", "All keys and values of a table",
                  "Tkeys: type; Tvalues: type", "resource", "", "keys: Tkeys; values: Tvalues",
                  STATEFUL, export_shape, export_cpu),
        LOOKUP_OP("InitializeTable", "Fills a table that is filled once", "Tkey: type; Tval: type",
                  REF, "; keys: Tkey; values: Tval", NULL, 0, initialize_shape, initialize_cpu),
        LOOKUP_OP("InitializeTableV2", "Fills a table that is filled once",
                  "Tkey: type; Tval: type", "resource", "; keys: Tkey; values: Tval", NULL,
                  STATEFUL, initialize_shape, initialize_cpu),
        {0}}};
