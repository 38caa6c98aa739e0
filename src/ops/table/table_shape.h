// table_shape.h — What a table's values are, by the attribute that says so.
#ifndef WEIR_OPS_TABLE_TABLE_SHAPE_H_
#define WEIR_OPS_TABLE_TABLE_SHAPE_H_

#include "op/op.h"
#include "ops/table/table.h"
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

#endif  // WEIR_OPS_TABLE_TABLE_SHAPE_H_
