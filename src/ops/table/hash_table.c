// hash_table.c — The ops that name a table: HashTable, MutableHashTable, MutableHashTableOfTensors
// and MutableDenseHashTable, old and V2.
#include "op/shape_ctx.h"
#include "op/shared_handle.h"
#include "ops/table/table_shape.h"

typedef struct table_state_t {
  weir_shared_handle_t handle;
  weir_lookup_table_config_t config;
} table_state_t;

static weir_status_t* table_init(const weir_kernel_init_t* init, table_state_t* s,
                                 bool is_mutable) {
  s->config =
      (weir_lookup_table_config_t){.key_dtype = weir_attrs_type(init->node->attrs, "key_dtype"),
                                   .value_dtype = weir_attrs_type(init->node->attrs, "value_dtype"),
                                   .is_mutable = is_mutable};
  WEIR_TRY(weir_lookup_table_read_shape(init->node->attrs, &s->config));
  return weir_shared_handle_init(init, WEIR_LOOKUP_TABLE_TYPE_NAME, &s->handle);
}

static weir_status_t* hash_init(const weir_kernel_init_t* init, void* state) {
  return table_init(init, state, false);
}
static weir_status_t* mutable_init(const weir_kernel_init_t* init, void* state) {
  return table_init(init, state, true);
}

static weir_status_t* dense_init(const weir_kernel_init_t* init, void* state) {
  table_state_t* s = state;
  s->config.key_dtype = weir_attrs_type(init->node->attrs, "key_dtype");
  s->config.value_dtype = weir_attrs_type(init->node->attrs, "value_dtype");
  return weir_shared_handle_init(init, WEIR_LOOKUP_TABLE_TYPE_NAME, &s->handle);
}

static void table_deinit(void* state) {
  weir_shared_handle_deinit(&((table_state_t*)state)->handle);
}

static weir_status_t* make_table(void* arg, weir_resource_t** out_resource) {
  weir_lookup_table_t* table = NULL;
  WEIR_TRY(weir_lookup_table_create(arg, &table));
  *out_resource = (weir_resource_t*)table;
  return NULL;
}

static weir_status_t* check_same(const weir_lookup_table_t* table, const table_state_t* s) {
  const weir_lookup_table_config_t* found = weir_lookup_table_config(table);
  if (found->key_dtype == s->config.key_dtype && found->value_dtype == s->config.value_dtype) {
    return NULL;
  }
  return WEIR_STATUS(
      INVALID_ARGUMENT, "Conflicting key/value dtypes %s->%s with %s->%s for table %s",
      weir_dtype_name(s->config.key_dtype), weir_dtype_name(s->config.value_dtype),
      weir_dtype_name(found->key_dtype), weir_dtype_name(found->value_dtype), s->handle.name);
}

static weir_status_t* name_table(weir_kernel_ctx_t* ctx, weir_lookup_table_config_t* config) {
  table_state_t* s = ctx->state;
  weir_resource_t* table = NULL;
  WEIR_TRY(weir_shared_handle_create(ctx, &s->handle, &weir_lookup_table_type, make_table, config,
                                     &table));
  weir_status_t* status = check_same((weir_lookup_table_t*)table, s);
  if (!status) weir_shared_handle_set(ctx, &s->handle);
  weir_resource_release(table);
  return status;
}

static weir_status_t* table_cpu(weir_kernel_ctx_t* ctx) {
  return name_table(ctx, &((table_state_t*)ctx->state)->config);
}

static weir_status_t* dense_cpu(weir_kernel_ctx_t* ctx) {
  weir_dense_table_config_t dense;
  weir_lookup_table_config_t config;
  WEIR_TRY(weir_lookup_table_read_dense(ctx, &dense, &config));
  return name_table(ctx, &config);
}

static weir_status_t* dense_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shared_handle_shape(ctx));
  if (weir_dtype_is_ref(ctx->node->output_types[0])) return NULL;
  return weir_dense_table_handle_shape(ctx);
}

// The handle says that values are scalars, which gives lookups the shape of their keys.
static weir_status_t* table_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shared_handle_shape(ctx));
  if (weir_dtype_is_ref(ctx->node->output_types[0])) return NULL;
  weir_dtype_t value = weir_attrs_type(weir_shape_attrs(ctx), "value_dtype");
  const bool has_shape = weir_attrs_find(weir_shape_attrs(ctx), "value_shape");
  return weir_shape_set_handle(
      ctx, 0, value,
      has_shape ? weir_attrs_shape(weir_shape_attrs(ctx), "value_shape") : &weir_shape_scalar);
}

#define TABLE_KERNEL(init_fn, row_types)                                          \
  {                                                                               \
    WEIR_DEVICE_CPU, .types = row_types, .compute = table_cpu, .init = init_fn,   \
                     .state_size = sizeof(table_state_t), .deinit = table_deinit, \
                     .host_outputs = "table_handle"                               \
  }

static const weir_kernel_def_t hash_kernels[] = {
    TABLE_KERNEL(hash_init,
                 "key_dtype: string; value_dtype: string, int64, int32, float, double, bool"),
    TABLE_KERNEL(hash_init, "key_dtype: int64; value_dtype: string, int64, int32, float, double"),
    TABLE_KERNEL(hash_init, "key_dtype: int32; value_dtype: string, int32, float, double"),
    {0}};
static const weir_kernel_def_t mutable_kernels[] = {
    TABLE_KERNEL(mutable_init, "key_dtype: string; value_dtype: int64, int32, float, double, bool"),
    TABLE_KERNEL(mutable_init,
                 "key_dtype: int64; value_dtype: variant, string, int64, int32, float, double"),
    TABLE_KERNEL(mutable_init, "key_dtype: int32; value_dtype: int32, float, double"),
    {0}};

static const weir_kernel_def_t tensor_kernels[] = {
    TABLE_KERNEL(mutable_init, "key_dtype: string; value_dtype: int64, int32, float, double, bool"),
    TABLE_KERNEL(mutable_init,
                 "key_dtype: int64; value_dtype: string, int64, int32, float, double"),
    TABLE_KERNEL(mutable_init, "key_dtype: int32; value_dtype: int32, float, double"),
    {0}};

#define DENSE_KERNEL(row_types)                                                    \
  {                                                                                \
    WEIR_DEVICE_CPU, .types = row_types, .compute = dense_cpu, .init = dense_init, \
                     .state_size = sizeof(table_state_t), .deinit = table_deinit,  \
                     .host_outputs = "table_handle"                                \
  }
static const weir_kernel_def_t dense_kernels[] = {
    DENSE_KERNEL("key_dtype: string; value_dtype: resource, int64, int32, float, double, bool"),
    DENSE_KERNEL("key_dtype: int64; value_dtype: variant, int64, int32, float, double, bool"),
    DENSE_KERNEL("key_dtype: int32; value_dtype: int32, float, double"),
    {0}};

#define TABLE_ATTRS                                    \
  "container: string = ''; shared_name: string = ''; " \
  "use_node_name_sharing: bool = false; key_dtype: type; value_dtype: type"
#define TABLE_OP(op, text, out, specs, rows)                                               \
  {                                                                                        \
    .name = op, .summary = text, .attrs = specs, .outputs = "table_handle: " out,          \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP, .infer_shape = table_shape, .kernels = rows \
  }

#define DENSE_OP(op, text, ins, out)                                                       \
  {                                                                                        \
    .name = op, .summary = text,                                                           \
    .attrs =                                                                               \
        "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = " \
        "false; " WEIR_DENSE_TABLE_ATTRS,                                                  \
    .inputs = ins, .outputs = "table_handle: " out, .flags = WEIR_OP_STATEFUL,             \
    .infer_shape = dense_shape, .kernels = dense_kernels                                   \
  }

const weir_op_module_t weir_ops_table_hash_table = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        TABLE_OP("HashTable", "A table that is filled once and looked up from then on",
                 "Ref(string)", TABLE_ATTRS, hash_kernels),
        TABLE_OP("HashTableV2", "A table that is filled once and looked up from then on",
                 "resource", TABLE_ATTRS, hash_kernels),
        TABLE_OP("MutableHashTable", "A table of scalars that can change", "Ref(string)",
                 TABLE_ATTRS, mutable_kernels),
        TABLE_OP("MutableHashTableV2", "A table of scalars that can change", "resource",
                 TABLE_ATTRS, mutable_kernels),
        TABLE_OP("MutableHashTableOfTensors", "A table of tensors of one shape that can change",
                 "Ref(string)", TABLE_ATTRS "; value_shape: shape = { }", tensor_kernels),
        TABLE_OP("MutableHashTableOfTensorsV2", "A table of tensors of one shape that can change",
                 "resource", TABLE_ATTRS "; value_shape: shape = { }", tensor_kernels),
        DENSE_OP("MutableDenseHashTable",
                 "A table that can change, in one array of buckets, with an empty key",
                 "empty_key: key_dtype", "Ref(string)"),
        DENSE_OP("MutableDenseHashTableV2",
                 "A table that can change, in one array of buckets, with an empty key",
                 "empty_key: key_dtype; deleted_key: key_dtype", "resource"),
        {0}}};
