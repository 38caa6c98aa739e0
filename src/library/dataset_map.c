// dataset_map.c — Datasets with functions on elements: map, filter, and datasets out of elements.
#include "dataset_nodes.h"

static const char* order_text(bool is_any_order) { return is_any_order ? "false" : "default"; }

// Whether |calls| says how many there may be at a time.
static bool is_parallel_count(weir_scope_t* scope, const char* what, int64_t calls) {
  if (calls >= 0 || calls == WEIR_AUTOTUNE) return true;
  weir_lib_fail(scope, "%s: %lld calls at a time", what, (long long)calls);
  return false;
}

// ---- map ----

weir_dataset_t weir_dataset_map_with(weir_scope_t* scope, weir_dataset_t dataset,
                                     weir_function_fn_t fn, void* user, int result_count,
                                     const weir_map_options_t* options) {
  static const weir_map_options_t defaults;
  options = options ? options : &defaults;
  if (!weir_lib_has_dataset(scope, "dataset_map", dataset) ||
      !is_parallel_count(scope, "dataset_map", options->parallel))
    return WEIR_LIB_NO_DATASET;
  if (result_count < 1) {
    weir_lib_fail(scope, "dataset_map: %d results", result_count);
    return WEIR_LIB_NO_DATASET;
  }
  weir_defined_t f =
      weir_define_function(scope, "Dataset_map", dataset.element, fn, user, result_count);
  if (!f.name) return WEIR_LIB_NO_DATASET;
  weir_edge_t variant =
      options->parallel
          ? weir_parallel_map_dataset_v2(
                scope, dataset.variant, f.captured, f.captured_count,
                weir_lib_int64(scope, options->parallel), f.name, f.results.types, f.results.shapes,
                .deterministic = order_text(options->is_any_order), .preserve_cardinality = true)
          : weir_map_dataset(scope, dataset.variant, f.captured, f.captured_count, f.name,
                             f.results.types, f.results.shapes, .preserve_cardinality = true);
  return weir_lib_dataset(scope, variant, f.results);
}

// ---- filter ----

typedef struct filter_t {
  weir_filter_fn_t fn;
  void* user;
} filter_t;

static void build_filter(weir_scope_t* scope, const weir_edge_t* args, weir_edge_t* results,
                         void* user) {
  const filter_t* filter = user;
  weir_edge_t truth = filter->fn(scope, args, filter->user);
  if (!weir_lib_ready(scope, "dataset_filter", truth)) return;
  if (weir_edge_type(truth) != WEIR_DTYPE_BOOL || weir_lib_rank(truth) > 0) {
    weir_lib_fail(scope, "dataset_filter: '%s' is no bool scalar", weir_node_name(truth.node));
    return;
  }
  results[0] = truth;
}

weir_dataset_t weir_dataset_filter(weir_scope_t* scope, weir_dataset_t dataset, weir_filter_fn_t fn,
                                   void* user) {
  if (!weir_lib_has_dataset(scope, "dataset_filter", dataset)) return WEIR_LIB_NO_DATASET;
  filter_t filter = {.fn = fn, .user = user};
  weir_defined_t f = weir_define_function(scope, "Dataset_filter", dataset.element,
                                          fn ? build_filter : NULL, &filter, 1);
  if (!f.name) return WEIR_LIB_NO_DATASET;
  return weir_lib_dataset(
      scope,
      weir_filter_dataset(scope, dataset.variant, f.captured, f.captured_count, f.name,
                          dataset.element.types, dataset.element.shapes),
      dataset.element);
}

// ---- datasets out of elements ----

typedef struct flat_map_t {
  weir_flat_map_fn_t fn;
  void* user;
  weir_scope_t* scope;  // around the function
  weir_spec_t element;  // of the datasets that it makes, in the memory of |scope|
} flat_map_t;

static void build_flat_map(weir_scope_t* scope, const weir_edge_t* args, weir_edge_t* results,
                           void* user) {
  flat_map_t* flat = user;
  weir_dataset_t made = flat->fn(scope, args, flat->user);
  if (!weir_lib_has_dataset(scope, "dataset_flat_map", made)) return;
  flat->element = weir_lib_spec_copy(flat->scope, made.element);
  results[0] = made.variant;
}

static weir_defined_t define_flat_map(weir_dataset_t dataset, flat_map_t* flat) {
  return weir_define_function(flat->scope, "Dataset_flat_map", dataset.element,
                              flat->fn ? build_flat_map : NULL, flat, 1);
}

weir_dataset_t weir_dataset_flat_map(weir_scope_t* scope, weir_dataset_t dataset,
                                     weir_flat_map_fn_t fn, void* user) {
  if (!weir_lib_has_dataset(scope, "dataset_flat_map", dataset)) return WEIR_LIB_NO_DATASET;
  flat_map_t flat = {.fn = fn, .user = user, .scope = scope};
  weir_defined_t f = define_flat_map(dataset, &flat);
  if (!f.name) return WEIR_LIB_NO_DATASET;
  return weir_lib_dataset(
      scope,
      weir_flat_map_dataset(scope, dataset.variant, f.captured, f.captured_count, f.name,
                            flat.element.types, flat.element.shapes),
      flat.element);
}

// Nothing below 1 but 0, which is |fallback|.
static bool turn_length(weir_scope_t* scope, const char* what, int64_t given, int64_t fallback,
                        weir_edge_t* out_length) {
  if (given < 0 && given != fallback) {
    weir_lib_fail(scope, "dataset_interleave: %s is %lld", what, (long long)given);
    return false;
  }
  *out_length = weir_lib_int64(scope, given ? given : fallback);
  return true;
}

weir_dataset_t weir_dataset_interleave_with(weir_scope_t* scope, weir_dataset_t dataset,
                                            weir_flat_map_fn_t fn, void* user,
                                            const weir_interleave_options_t* options) {
  static const weir_interleave_options_t defaults;
  weir_edge_t cycle, block;
  options = options ? options : &defaults;
  if (!weir_lib_has_dataset(scope, "dataset_interleave", dataset) ||
      !is_parallel_count(scope, "dataset_interleave", options->parallel) ||
      !turn_length(scope, "cycle_length", options->cycle_length, WEIR_AUTOTUNE, &cycle) ||
      !turn_length(scope, "block_length", options->block_length, 1, &block))
    return WEIR_LIB_NO_DATASET;
  flat_map_t flat = {.fn = fn, .user = user, .scope = scope};
  weir_defined_t f = define_flat_map(dataset, &flat);
  if (!f.name) return WEIR_LIB_NO_DATASET;
  weir_edge_t tuned = weir_lib_int64(scope, WEIR_AUTOTUNE);
  weir_edge_t variant =
      options->parallel
          ? weir_parallel_interleave_dataset_v4(
                scope, dataset.variant, f.captured, f.captured_count, cycle, block, tuned, tuned,
                weir_lib_int64(scope, options->parallel), f.name, flat.element.types,
                flat.element.shapes, .deterministic = order_text(options->is_any_order))
          : weir_interleave_dataset(scope, dataset.variant, f.captured, f.captured_count, cycle,
                                    block, f.name, flat.element.types, flat.element.shapes);
  return weir_lib_dataset(scope, variant, flat.element);
}
