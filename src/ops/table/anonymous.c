// anonymous.c — AnonymousHashTable, AnonymousMutableHashTable, AnonymousMutableHashTableOfTensors,
// AnonymousMutableDenseHashTable: tables that live as long as a handle to them.
#include <stdio.h>

#include "op/shape_ctx.h"
#include "op/shared_handle.h"
#include "ops/table/table_shape.h"

static void release_table(void* object) { weir_resource_release(object); }

static weir_status_t* make_handle(weir_kernel_ctx_t* ctx, weir_lookup_table_t* take_table) {
  weir_handle_t* handle = NULL;
  weir_tensor_t* out = NULL;
  char name[64];
  snprintf(name, sizeof(name), "Anonymous Resource-at-%p", (void*)take_table);
  weir_status_t* status = weir_handle_create(ctx->device->name, "localhost", name,
                                             WEIR_LOOKUP_TABLE_TYPE_NAME, &handle);
  if (status) {
    weir_resource_release((weir_resource_t*)take_table);
    return status;
  }
  handle->object = take_table;
  handle->release_object = release_table;
  status = weir_tensor_create_handle(handle, &out);
  weir_handle_release(handle);
  if (!status) weir_kernel_set(ctx, 0, out);
  return status;
}

static weir_status_t* make_table(weir_kernel_ctx_t* ctx, bool is_mutable) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  weir_lookup_table_t* table = NULL;
  weir_lookup_table_config_t config = {.key_dtype = weir_attrs_type(attrs, "key_dtype"),
                                       .value_dtype = weir_attrs_type(attrs, "value_dtype"),
                                       .is_mutable = is_mutable};
  WEIR_TRY(weir_lookup_table_read_shape(attrs, &config));
  WEIR_TRY(weir_lookup_table_create(&config, &table));
  return make_handle(ctx, table);
}

static weir_status_t* hash_cpu(weir_kernel_ctx_t* ctx) { return make_table(ctx, false); }
static weir_status_t* mutable_cpu(weir_kernel_ctx_t* ctx) { return make_table(ctx, true); }

static weir_status_t* dense_cpu(weir_kernel_ctx_t* ctx) {
  weir_lookup_table_t* table = NULL;
  weir_dense_table_config_t dense;
  weir_lookup_table_config_t config;
  WEIR_TRY(weir_lookup_table_read_dense(ctx, &dense, &config));
  WEIR_TRY(weir_lookup_table_create(&config, &table));
  return make_handle(ctx, table);
}

static weir_status_t* dense_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_set_scalar(ctx, 0));
  return weir_dense_table_handle_shape(ctx);
}

static weir_status_t* table_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_set_scalar(ctx, 0));
  const weir_attrs_t attrs = weir_shape_attrs(ctx);
  const bool has_shape = weir_attrs_find(attrs, "value_shape");
  return weir_shape_set_handle(
      ctx, 0, weir_attrs_type(attrs, "value_dtype"),
      has_shape ? weir_attrs_shape(attrs, "value_shape") : &weir_shape_scalar);
}

#define ANONYMOUS_KERNEL(fn, row_types) \
  { WEIR_DEVICE_CPU, .types = row_types, .compute = fn, .host_outputs = "table_handle" }

#define ANONYMOUS_OP(op_name, text, more, rows)                                      \
  {                                                                                  \
    .name = op_name, .attrs = "key_dtype: type; value_dtype: type" more,             \
    .outputs = "table_handle: resource", .flags = WEIR_OP_STATEFUL, .summary = text, \
    .infer_shape = table_shape, .kernels = rows                                      \
  }

static const weir_kernel_def_t hash_kernels[] = {
    ANONYMOUS_KERNEL(hash_cpu,
                     "key_dtype: string; value_dtype: string, int64, int32, float, double, bool"),
    ANONYMOUS_KERNEL(hash_cpu,
                     "key_dtype: int64; value_dtype: string, int64, int32, float, double"),
    ANONYMOUS_KERNEL(hash_cpu, "key_dtype: int32; value_dtype: string, int32, float, double"),
    {0}};
static const weir_kernel_def_t mutable_kernels[] = {
    ANONYMOUS_KERNEL(mutable_cpu,
                     "key_dtype: string; value_dtype: int64, int32, float, double, bool"),
    ANONYMOUS_KERNEL(mutable_cpu,
                     "key_dtype: int64; value_dtype: variant, string, int64, int32, float, double"),
    ANONYMOUS_KERNEL(mutable_cpu, "key_dtype: int32; value_dtype: int32, float, double"),
    {0}};

static const weir_kernel_def_t tensor_kernels[] = {
    ANONYMOUS_KERNEL(mutable_cpu,
                     "key_dtype: string; value_dtype: int64, int32, float, double, bool"),
    ANONYMOUS_KERNEL(mutable_cpu,
                     "key_dtype: int64; value_dtype: string, int64, int32, float, double"),
    ANONYMOUS_KERNEL(mutable_cpu, "key_dtype: int32; value_dtype: int32, float, double"),
    {0}};

static const weir_kernel_def_t dense_kernels[] = {
    ANONYMOUS_KERNEL(dense_cpu,
                     "key_dtype: string; value_dtype: resource, int64, int32, float, double, bool"),
    ANONYMOUS_KERNEL(dense_cpu,
                     "key_dtype: int64; value_dtype: variant, int64, int32, float, double, bool"),
    ANONYMOUS_KERNEL(dense_cpu, "key_dtype: int32; value_dtype: int32, float, double"),
    {0}};

const weir_op_module_t weir_ops_table_anonymous = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        ANONYMOUS_OP("AnonymousHashTable", "A HashTable that lives as long as its handle", "",
                     hash_kernels),
        ANONYMOUS_OP("AnonymousMutableHashTable",
                     "A MutableHashTable that lives as long as its handle", "", mutable_kernels),
        ANONYMOUS_OP("AnonymousMutableHashTableOfTensors",
                     "A MutableHashTableOfTensors that lives as long as its handle",
                     "; value_shape: shape = { }", tensor_kernels),
        {.name = "AnonymousMutableDenseHashTable",
         .attrs = WEIR_DENSE_TABLE_ATTRS,
         .inputs = "empty_key: key_dtype; deleted_key: key_dtype",
         .outputs = "table_handle: resource",
         .flags = WEIR_OP_STATEFUL,
         .summary = "A MutableDenseHashTable that lives as long as its handle",
         .infer_shape = dense_shape,
         .kernels = dense_kernels},
        {0}}};
