// dataset_batch.c — Datasets of batches: elements stacked, padded where they differ in size.
#include "dataset_nodes.h"

static const weir_dataset_batch_options_t defaults;

static bool is_batch(weir_scope_t* scope, const char* what, weir_dataset_t dataset, int64_t size) {
  if (!weir_lib_has_dataset(scope, what, dataset)) return false;
  if (size > 0) return true;
  weir_lib_fail(scope, "%s: batches of %lld", what, (long long)size);
  return false;
}

// Elements with one dimension more than those of |element|.
static weir_spec_t stacked(weir_scope_t* scope, weir_spec_t element, int64_t size,
                           const weir_dataset_batch_options_t* options) {
  weir_lib_element_t batch = weir_lib_element_alloc(scope, element.types.count);
  for (int i = 0; i < batch.count; ++i) {
    batch.types[i] = element.types.items[i];
    batch.shapes[i] =
        weir_lib_stacked(scope, options->drop_remainder ? size : -1, element.shapes.items[i]);
  }
  return weir_lib_element_spec(batch);
}

weir_dataset_t weir_dataset_batch_with(weir_scope_t* scope, weir_dataset_t dataset, int64_t size,
                                       const weir_dataset_batch_options_t* options) {
  options = options ? options : &defaults;
  if (!is_batch(scope, "dataset_batch", dataset, size)) return WEIR_LIB_NO_DATASET;
  weir_spec_t element = stacked(scope, dataset.element, size, options);
  if (weir_scope_status(scope)) return WEIR_LIB_NO_DATASET;
  weir_edge_t variant = weir_batch_dataset_v2(scope, dataset.variant, weir_lib_int64(scope, size),
                                              weir_const_bool(scope, options->drop_remainder),
                                              element.types, element.shapes);
  return weir_lib_dataset(scope, variant, element);
}

// ---- padding ----

static weir_edge_t shape_vector(weir_scope_t* scope, weir_dims_t shape) {
  weir_tensor_t* tensor = NULL;
  const int64_t rank = shape.rank;
  weir_status_t* status = weir_tensor_create_from(WEIR_DTYPE_INT64, 1, &rank, shape.dims, &tensor);
  if (status) {
    weir_scope_fail(scope, status);
    return WEIR_LIB_NONE;
  }
  weir_edge_t edge = weir_const(scope, tensor);
  weir_tensor_release(tensor);
  return edge;
}

static weir_edge_t default_padding(weir_scope_t* scope, weir_dtype_t dtype) {
  if (dtype == WEIR_DTYPE_STRING) return weir_const_string(scope, "");
  if (dtype == WEIR_DTYPE_BOOL) return weir_const_bool(scope, false);
  return weir_lib_number(scope, dtype, 0);
}

// What tensor |i| of |dataset| is padded to.
static bool padded_shape(weir_scope_t* scope, weir_dataset_t dataset, int i,
                         const weir_dataset_batch_options_t* options, weir_dims_t* out_shape) {
  const weir_dims_t own = dataset.element.shapes.items[i];
  const bool is_given = i < options->shapes.count && options->shapes.items[i].is_set;
  *out_shape = is_given ? options->shapes.items[i] : own;
  if (out_shape->rank >= 0 && (own.rank < 0 || own.rank == out_shape->rank)) return true;
  weir_lib_fail(scope, "dataset_padded_batch: tensor %d has rank %d, and is padded to rank %d", i,
                own.rank, out_shape->rank);
  return false;
}

typedef struct padding_t {
  weir_edge_t* shapes;
  weir_edge_t* values;
  weir_spec_t element;  // of what is padded, before it is stacked
} padding_t;

static bool padding_init(weir_scope_t* scope, weir_dataset_t dataset,
                         const weir_dataset_batch_options_t* options, padding_t* out_padding) {
  const int count = dataset.element.types.count;
  weir_lib_element_t element = weir_lib_element_alloc(scope, count);
  weir_edge_t* shapes = weir_scope_alloc(scope, (size_t)count, sizeof(*shapes));
  weir_edge_t* values = weir_scope_alloc(scope, (size_t)count, sizeof(*values));
  if (!element.count || !shapes || !values) return false;
  for (int i = 0; i < count; ++i) {
    const weir_dtype_t type = element.types[i] = dataset.element.types.items[i];
    if (!padded_shape(scope, dataset, i, options, &element.shapes[i])) return false;
    shapes[i] = shape_vector(scope, element.shapes[i]);
    values[i] = options->values ? options->values[i] : default_padding(scope, type);
    if (!weir_lib_ready(scope, "dataset_padded_batch", shapes[i], values[i])) return false;
    if (weir_edge_type(values[i]) != type) {
      weir_lib_fail(scope, "dataset_padded_batch: tensor %d is %s, and is padded with %s", i,
                    weir_dtype_name(type), weir_dtype_name(weir_edge_type(values[i])));
      return false;
    }
  }
  *out_padding =
      (padding_t){.shapes = shapes, .values = values, .element = weir_lib_element_spec(element)};
  return true;
}

weir_dataset_t weir_dataset_padded_batch_with(weir_scope_t* scope, weir_dataset_t dataset,
                                              int64_t size,
                                              const weir_dataset_batch_options_t* options) {
  padding_t padding;
  options = options ? options : &defaults;
  if (!is_batch(scope, "dataset_padded_batch", dataset, size)) return WEIR_LIB_NO_DATASET;
  const int count = dataset.element.types.count;
  if ((options->values && options->value_count != count) ||
      (options->shapes.count > 0 && !options->shapes.items) || options->shapes.count > count) {
    weir_lib_fail(scope, "dataset_padded_batch: %d values and %d shapes for %d tensors",
                  options->value_count, options->shapes.count, count);
    return WEIR_LIB_NO_DATASET;
  }
  if (!padding_init(scope, dataset, options, &padding)) return WEIR_LIB_NO_DATASET;
  weir_spec_t element = stacked(scope, padding.element, size, options);
  if (weir_scope_status(scope)) return WEIR_LIB_NO_DATASET;
  weir_edge_t variant = weir_padded_batch_dataset_v2(
      scope, dataset.variant, weir_lib_int64(scope, size), padding.shapes, count, padding.values,
      count, weir_const_bool(scope, options->drop_remainder), element.shapes);
  return weir_lib_dataset(scope, variant, element);
}
