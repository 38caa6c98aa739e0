// dataset.c — Datasets that come from somewhere: numbers, tensors, files.
#include "weir/dataset.h"

#include <string.h>

#include "dataset_nodes.h"

enum { DEFAULT_BUFFER = 256 * 1024 };

// ---- what all datasets are made with ----

bool weir_lib_has_dataset(weir_scope_t* scope, const char* what, weir_dataset_t dataset) {
  if (!weir_lib_ready(scope, what, dataset.variant)) return false;
  if (dataset.element.types.count > 0 && dataset.element.types.items &&
      dataset.element.shapes.count == dataset.element.types.count && dataset.element.shapes.items)
    return true;
  weir_lib_fail(scope, "%s: a dataset of %d types and %d shapes", what, dataset.element.types.count,
                dataset.element.shapes.count);
  return false;
}

weir_dataset_t weir_lib_dataset(weir_scope_t* scope, weir_edge_t variant, weir_spec_t element) {
  if (weir_scope_status(scope) || !variant.node) return WEIR_LIB_NO_DATASET;
  return (weir_dataset_t){.variant = variant, .element = element};
}

weir_edge_t weir_lib_int64(weir_scope_t* scope, int64_t value) {
  weir_tensor_t* tensor = NULL;
  if (weir_scope_status(scope)) return WEIR_LIB_NONE;
  weir_status_t* status = weir_tensor_create_from(WEIR_DTYPE_INT64, 0, NULL, &value, &tensor);
  if (status) weir_scope_fail(scope, status);
  weir_edge_t edge = weir_const(scope, tensor);
  weir_tensor_release(tensor);
  return edge;
}

weir_lib_element_t weir_lib_element_alloc(weir_scope_t* scope, int count) {
  weir_lib_element_t element = {.count = count};
  element.types = weir_scope_alloc(scope, (size_t)count + 1, sizeof(*element.types));
  element.shapes = weir_scope_alloc(scope, (size_t)count + 1, sizeof(*element.shapes));
  return element.types && element.shapes ? element : (weir_lib_element_t){0};
}

weir_spec_t weir_lib_element_spec(weir_lib_element_t element) {
  return (weir_spec_t){.types = {element.types, element.count},
                       .shapes = {element.shapes, element.count}};
}

weir_dims_t weir_lib_stacked(weir_scope_t* scope, int64_t first, weir_dims_t rest) {
  const weir_dims_t unknown = {.rank = -1, .is_set = true};
  if (!rest.is_set || rest.rank < 0) return unknown;
  int64_t* dims = weir_scope_alloc(scope, (size_t)rest.rank + 1, sizeof(*dims));
  if (!dims) return unknown;
  dims[0] = first;
  if (rest.rank > 0) memcpy(dims + 1, rest.dims, (size_t)rest.rank * sizeof(*dims));
  return (weir_dims_t){dims, rest.rank + 1, true};
}

weir_spec_t weir_lib_spec_copy(weir_scope_t* scope, weir_spec_t spec) {
  weir_lib_element_t copy = weir_lib_element_alloc(scope, spec.types.count);
  for (int i = 0; i < copy.count; ++i) {
    copy.types[i] = spec.types.items[i];
    // One dimension more, and without it again: the shape itself, in memory of its own.
    weir_dims_t more = weir_lib_stacked(scope, 0, spec.shapes.items[i]);
    copy.shapes[i] = more.rank < 0 ? more : (weir_dims_t){more.dims + 1, more.rank - 1, true};
  }
  return weir_lib_element_spec(copy);
}

static weir_spec_t scalars(weir_scope_t* scope, weir_dtype_t dtype) {
  weir_lib_element_t one = weir_lib_element_alloc(scope, 1);
  if (!one.count) return (weir_spec_t){0};
  one.types[0] = dtype;
  one.shapes[0] = WEIR_SCALAR_SHAPE;
  return weir_lib_element_spec(one);
}

// ---- numbers and tensors ----

weir_dataset_t weir_dataset_range(weir_scope_t* scope, int64_t start, int64_t stop, int64_t step) {
  if (weir_scope_status(scope)) return WEIR_LIB_NO_DATASET;
  if (step == 0) {
    weir_lib_fail(scope, "dataset_range: step is 0");
    return WEIR_LIB_NO_DATASET;
  }
  weir_spec_t element = scalars(scope, WEIR_DTYPE_INT64);
  weir_edge_t variant =
      weir_range_dataset(scope, weir_lib_int64(scope, start), weir_lib_int64(scope, stop),
                         weir_lib_int64(scope, step), element.types, element.shapes);
  return weir_lib_dataset(scope, variant, element);
}

// The shape of |tensor|, without its first |skipped| dimensions. False when it has fewer.
static bool part_shape(weir_scope_t* scope, weir_edge_t tensor, int skipped,
                       weir_dims_t* out_shape) {
  const int rank = weir_lib_rank(tensor);
  *out_shape = (weir_dims_t){.rank = -1, .is_set = true};
  if (rank < 0) return true;
  if (rank < skipped) {
    weir_lib_fail(scope, "dataset_slices: '%s' is a scalar: it has no rows",
                  weir_node_name(tensor.node));
    return false;
  }
  int64_t* dims = weir_scope_alloc(scope, (size_t)rank + 1, sizeof(*dims));
  if (!dims) return false;
  weir_edge_dims(tensor, dims, rank);
  *out_shape = (weir_dims_t){dims + skipped, rank - skipped, true};
  return true;
}

// Types and shapes of elements that are |tensors|, or, with |skipped| 1, their rows.
static bool element_of(weir_scope_t* scope, const char* what, const weir_edge_t* tensors, int count,
                       int skipped, weir_spec_t* out_element) {
  if (weir_scope_status(scope)) return false;
  if (count < 1) {
    weir_lib_fail(scope, "%s: %d tensors", what, count);
    return false;
  }
  if (!weir_scope_has_argument(scope, tensors, what, "tensors") ||
      !weir_lib_is_ready(scope, what, tensors, count))
    return false;
  weir_lib_element_t element = weir_lib_element_alloc(scope, count);
  for (int i = 0; i < element.count; ++i) {
    element.types[i] = weir_edge_type(tensors[i]);
    if (!part_shape(scope, tensors[i], skipped, &element.shapes[i])) return false;
  }
  *out_element = weir_lib_element_spec(element);
  return element.count > 0;
}

weir_dataset_t weir_dataset_tensors(weir_scope_t* scope, const weir_edge_t* tensors, int count) {
  weir_spec_t element;
  if (!element_of(scope, "dataset_tensors", tensors, count, 0, &element))
    return WEIR_LIB_NO_DATASET;
  return weir_lib_dataset(scope, weir_tensor_dataset(scope, tensors, count, element.shapes),
                          element);
}

// Rows that are known to be of different numbers are found here, not in the first step.
static bool has_same_rows(weir_scope_t* scope, const weir_edge_t* tensors, int count) {
  int64_t rows = -1;
  for (int i = 0; i < count; ++i) {
    const int64_t own = weir_lib_rank(tensors[i]) > 0 ? weir_lib_dim(tensors[i], 0) : -1;
    if (own >= 0 && rows >= 0 && own != rows) {
      weir_lib_fail(scope, "dataset_slices: tensor %d has %lld rows, others have %lld", i,
                    (long long)own, (long long)rows);
      return false;
    }
    if (own >= 0) rows = own;
  }
  return true;
}

weir_dataset_t weir_dataset_slices(weir_scope_t* scope, const weir_edge_t* tensors, int count) {
  weir_spec_t element;
  if (!element_of(scope, "dataset_slices", tensors, count, 1, &element) ||
      !has_same_rows(scope, tensors, count))
    return WEIR_LIB_NO_DATASET;
  return weir_lib_dataset(scope, weir_tensor_slice_dataset(scope, tensors, count, element.shapes),
                          element);
}

// ---- files ----

typedef struct file_inputs_t {
  const weir_files_options_t* options;
  weir_edge_t compression, buffer_size;
} file_inputs_t;

static bool file_inputs(weir_scope_t* scope, const char* what, weir_edge_t files,
                        const weir_files_options_t* options, file_inputs_t* out_inputs) {
  static const weir_files_options_t defaults;
  options = options ? options : &defaults;
  if (!weir_lib_ready(scope, what, files)) return false;
  if (options->buffer_size < 0 || options->header_bytes < 0 || options->footer_bytes < 0) {
    weir_lib_fail(scope, "%s: a negative number of bytes", what);
    return false;
  }
  const int64_t size = options->buffer_size ? options->buffer_size : DEFAULT_BUFFER;
  const char* compression = options->compression ? options->compression : "";
  *out_inputs = (file_inputs_t){.options = options,
                                .compression = weir_const_string(scope, compression),
                                .buffer_size = weir_lib_int64(scope, size)};
  return true;
}

weir_dataset_t weir_dataset_records_with(weir_scope_t* scope, weir_edge_t files,
                                         const weir_files_options_t* options) {
  file_inputs_t in;
  if (!file_inputs(scope, "dataset_records", files, options, &in)) return WEIR_LIB_NO_DATASET;
  return weir_lib_dataset(scope,
                          weir_tf_record_dataset(scope, files, in.compression, in.buffer_size),
                          scalars(scope, WEIR_DTYPE_STRING));
}

weir_dataset_t weir_dataset_lines_with(weir_scope_t* scope, weir_edge_t files,
                                       const weir_files_options_t* options) {
  file_inputs_t in;
  if (!file_inputs(scope, "dataset_lines", files, options, &in)) return WEIR_LIB_NO_DATASET;
  return weir_lib_dataset(scope,
                          weir_text_line_dataset(scope, files, in.compression, in.buffer_size),
                          scalars(scope, WEIR_DTYPE_STRING));
}

weir_dataset_t weir_dataset_fixed_length_with(weir_scope_t* scope, weir_edge_t files,
                                              int64_t record_bytes,
                                              const weir_files_options_t* options) {
  file_inputs_t in;
  if (!file_inputs(scope, "dataset_fixed_length", files, options, &in)) return WEIR_LIB_NO_DATASET;
  if (record_bytes < 1) {
    weir_lib_fail(scope, "dataset_fixed_length: records of %lld bytes", (long long)record_bytes);
    return WEIR_LIB_NO_DATASET;
  }
  weir_edge_t variant = weir_fixed_length_record_dataset_v2(
      scope, files, weir_lib_int64(scope, in.options->header_bytes),
      weir_lib_int64(scope, record_bytes), weir_lib_int64(scope, in.options->footer_bytes),
      in.buffer_size, in.compression);
  return weir_lib_dataset(scope, variant, scalars(scope, WEIR_DTYPE_STRING));
}

weir_dataset_t weir_dataset_files_with(weir_scope_t* scope, weir_edge_t patterns,
                                       const weir_shuffle_options_t* options) {
  static const weir_shuffle_options_t defaults;
  options = options ? options : &defaults;
  if (!weir_lib_ready(scope, "dataset_files", patterns)) return WEIR_LIB_NO_DATASET;
  weir_edge_t names = weir_matching_files(scope, patterns);
  weir_dataset_t files = weir_dataset_slices(scope, &names, 1);
  if (options->no_shuffle || !files.variant.node) return files;
  // All names are drawn from, and an empty list is one of no elements.
  weir_edge_t count = weir_maximum(scope, weir_size(scope, names, .out_type = WEIR_DTYPE_INT64),
                                   weir_lib_int64(scope, 1));
  weir_lib_seeds_t seeds = weir_lib_seeds(scope, options->seed, 0);
  weir_edge_t variant = weir_shuffle_dataset(
      scope, files.variant, count, weir_lib_int64(scope, seeds.seed),
      weir_lib_int64(scope, seeds.seed2), files.element.types, files.element.shapes,
      .reshuffle_each_iteration = WEIR_SET(!options->is_same));
  return weir_lib_dataset(scope, variant, files.element);
}
