// table_shape.h — What a table's values are, by the attribute that says so.
#ifndef WEIR_OPS_TABLE_TABLE_SHAPE_H_
#define WEIR_OPS_TABLE_TABLE_SHAPE_H_

#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/table/dense_table.h"
#include "tensor/tensor.h"

// The attribute value_shape says what a value is, where there is one: all dimensions must be known.
static inline weir_status_t* weir_lookup_table_read_shape(weir_attrs_t attrs,
                                                          weir_lookup_table_config_t* config) {
  const weir_shape_t* shape =
      weir_attrs_find(attrs, "value_shape") ? weir_attrs_shape(attrs, "value_shape") : NULL;
  if (!shape) return NULL;
  if (!weir_shape_is_full(shape))
    return WEIR_STATUS(INVALID_ARGUMENT, "The shape of a table's values must be known");
  if (shape->rank != 1) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Default value must be a vector, got shape %s",
                       weir_shape_text(shape->rank, shape->dims, text));
  }
  config->value_rank = shape->rank;
  config->value_dims = shape->dims;
  return NULL;
}

// What attributes and inputs say of a dense table, whose values are scalars or vectors; |dense|
// must live as long as |config|. The old op has no input for the key of removed entries, and no
// use.
static inline weir_status_t* weir_lookup_table_read_dense(weir_kernel_ctx_t* ctx,
                                                          weir_dense_table_config_t* dense,
                                                          weir_lookup_table_config_t* config) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  const weir_shape_t* shape = weir_attrs_shape(attrs, "value_shape");
  if (ctx->input_count < 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Unknown input name: deleted_key");
  }
  if (!weir_shape_is_full(shape)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "The shape of a table's values must be known");
  }
  *dense = (weir_dense_table_config_t){.empty_key = weir_kernel_input(ctx, 0),
                                       .deleted_key = weir_kernel_input(ctx, 1),
                                       .bucket_count = weir_attrs_int(attrs, "initial_num_buckets"),
                                       .max_load = weir_attrs_float(attrs, "max_load_factor")};
  *config = (weir_lookup_table_config_t){.key_dtype = weir_attrs_type(attrs, "key_dtype"),
                                         .value_dtype = weir_attrs_type(attrs, "value_dtype"),
                                         .is_mutable = true,
                                         .value_rank = shape->rank,
                                         .value_dims = shape->dims,
                                         .dense = dense};
  return NULL;
}

// The handle of a dense table. What lookups give has a known shape where keys are scalars.
static inline weir_status_t* weir_dense_table_handle_shape(weir_shape_ctx_t* ctx) {
  const weir_attrs_t attrs = weir_shape_attrs(ctx);
  WEIR_TRY(weir_shape_at_most(ctx, weir_shape_input(ctx, 0), 1));
  if (weir_shape_input(ctx, 0)->rank != 0) return NULL;
  return weir_shape_set_handle(ctx, 0, weir_attrs_type(attrs, "value_dtype"),
                               weir_attrs_shape(attrs, "value_shape"));
}

#define WEIR_DENSE_TABLE_ATTRS                                                                \
  "key_dtype: type; value_dtype: type; value_shape: shape = { }; initial_num_buckets: int = " \
  "131072; max_load_factor: float = 0.8"

#endif  // WEIR_OPS_TABLE_TABLE_SHAPE_H_
