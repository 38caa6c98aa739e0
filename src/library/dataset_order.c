// dataset_order.c — Datasets of which elements, in which order, and when they are made; iterators.
#include "dataset_nodes.h"

// ---- which elements, and in which order ----

weir_dataset_t weir_dataset_shuffle_with(weir_scope_t* scope, weir_dataset_t dataset,
                                         int64_t buffer_size,
                                         const weir_shuffle_options_t* options) {
  static const weir_shuffle_options_t defaults;
  options = options ? options : &defaults;
  if (!weir_lib_has_dataset(scope, "dataset_shuffle", dataset)) return WEIR_LIB_NO_DATASET;
  if (options->no_shuffle) return dataset;
  if (buffer_size < 1) {
    weir_lib_fail(scope, "dataset_shuffle: a buffer of %lld elements", (long long)buffer_size);
    return WEIR_LIB_NO_DATASET;
  }
  weir_lib_seeds_t seeds = weir_lib_seeds(scope, options->seed, 0);
  weir_edge_t variant = weir_shuffle_dataset(
      scope, dataset.variant, weir_lib_int64(scope, buffer_size), weir_lib_int64(scope, seeds.seed),
      weir_lib_int64(scope, seeds.seed2), dataset.element.types, dataset.element.shapes,
      .reshuffle_each_iteration = WEIR_SET(!options->is_same));
  return weir_lib_dataset(scope, variant, dataset.element);
}

// The number of elements, or of times, that three functions take; -1 stands for all.
static bool has_count(weir_scope_t* scope, const char* what, weir_dataset_t dataset,
                      int64_t count) {
  if (!weir_lib_has_dataset(scope, what, dataset)) return false;
  if (count >= -1) return true;
  weir_lib_fail(scope, "%s: count is %lld", what, (long long)count);
  return false;
}

weir_dataset_t weir_dataset_repeat(weir_scope_t* scope, weir_dataset_t dataset, int64_t count) {
  if (!has_count(scope, "dataset_repeat", dataset, count)) return WEIR_LIB_NO_DATASET;
  weir_edge_t variant = weir_repeat_dataset(scope, dataset.variant, weir_lib_int64(scope, count),
                                            dataset.element.types, dataset.element.shapes);
  return weir_lib_dataset(scope, variant, dataset.element);
}

weir_dataset_t weir_dataset_take(weir_scope_t* scope, weir_dataset_t dataset, int64_t count) {
  if (!has_count(scope, "dataset_take", dataset, count)) return WEIR_LIB_NO_DATASET;
  weir_edge_t variant = weir_take_dataset(scope, dataset.variant, weir_lib_int64(scope, count),
                                          dataset.element.types, dataset.element.shapes);
  return weir_lib_dataset(scope, variant, dataset.element);
}

weir_dataset_t weir_dataset_skip(weir_scope_t* scope, weir_dataset_t dataset, int64_t count) {
  if (!has_count(scope, "dataset_skip", dataset, count)) return WEIR_LIB_NO_DATASET;
  weir_edge_t variant = weir_skip_dataset(scope, dataset.variant, weir_lib_int64(scope, count),
                                          dataset.element.types, dataset.element.shapes);
  return weir_lib_dataset(scope, variant, dataset.element);
}

weir_dataset_t weir_dataset_shard(weir_scope_t* scope, weir_dataset_t dataset, int64_t shard_count,
                                  int64_t index) {
  if (!weir_lib_has_dataset(scope, "dataset_shard", dataset)) return WEIR_LIB_NO_DATASET;
  if (index < 0 || index >= shard_count) {
    weir_lib_fail(scope, "dataset_shard: shard %lld of %lld", (long long)index,
                  (long long)shard_count);
    return WEIR_LIB_NO_DATASET;
  }
  weir_edge_t variant = weir_shard_dataset(
      scope, dataset.variant, weir_lib_int64(scope, shard_count), weir_lib_int64(scope, index),
      dataset.element.types, dataset.element.shapes);
  return weir_lib_dataset(scope, variant, dataset.element);
}

// ---- several datasets ----

weir_dataset_t weir_dataset_zip(weir_scope_t* scope, const weir_dataset_t* datasets, int count) {
  if (weir_scope_status(scope) || !WEIR_HAS_ARG(scope, datasets)) return WEIR_LIB_NO_DATASET;
  int width = 0;
  for (int i = 0; i < count; ++i) {
    if (!weir_lib_has_dataset(scope, "dataset_zip", datasets[i])) return WEIR_LIB_NO_DATASET;
    width += datasets[i].element.types.count;
  }
  if (count < 1) {
    weir_lib_fail(scope, "dataset_zip: %d datasets", count);
    return WEIR_LIB_NO_DATASET;
  }
  weir_lib_element_t element = weir_lib_element_alloc(scope, width);
  weir_edge_t* variants = weir_scope_alloc(scope, (size_t)count, sizeof(*variants));
  if (!element.count || !variants) return WEIR_LIB_NO_DATASET;
  for (int i = 0, at = 0; i < count; ++i) {
    variants[i] = datasets[i].variant;
    for (int k = 0; k < datasets[i].element.types.count; ++k, ++at) {
      element.types[at] = datasets[i].element.types.items[k];
      element.shapes[at] = datasets[i].element.shapes.items[k];
    }
  }
  weir_spec_t spec = weir_lib_element_spec(element);
  return weir_lib_dataset(scope, weir_zip_dataset(scope, variants, count, spec.types, spec.shapes),
                          spec);
}

// What is known of a shape that is one of the two.
static weir_dims_t either_shape(weir_scope_t* scope, weir_dims_t a, weir_dims_t b) {
  if (!a.is_set || !b.is_set || a.rank < 0 || a.rank != b.rank)
    return (weir_dims_t){.rank = -1, .is_set = true};
  int64_t* dims = weir_scope_alloc(scope, (size_t)a.rank + 1, sizeof(*dims));
  for (int i = 0; dims && i < a.rank; ++i) dims[i] = a.dims[i] == b.dims[i] ? a.dims[i] : -1;
  return (weir_dims_t){dims, a.rank, true};
}

weir_dataset_t weir_dataset_concatenate(weir_scope_t* scope, weir_dataset_t first,
                                        weir_dataset_t second) {
  const char* what = "dataset_concatenate";
  if (!weir_lib_has_dataset(scope, what, first) || !weir_lib_has_dataset(scope, what, second))
    return WEIR_LIB_NO_DATASET;
  const int count = first.element.types.count;
  bool is_same = count == second.element.types.count;
  weir_lib_element_t element = weir_lib_element_alloc(scope, count);
  for (int i = 0; is_same && i < element.count; ++i) {
    element.types[i] = first.element.types.items[i];
    is_same = element.types[i] == second.element.types.items[i];
    element.shapes[i] =
        either_shape(scope, first.element.shapes.items[i], second.element.shapes.items[i]);
  }
  if (!is_same) {
    weir_lib_fail(scope, "%s: the elements of the two differ in their types", what);
    return WEIR_LIB_NO_DATASET;
  }
  weir_spec_t spec = weir_lib_element_spec(element);
  if (weir_scope_status(scope)) return WEIR_LIB_NO_DATASET;
  return weir_lib_dataset(
      scope,
      weir_concatenate_dataset(scope, first.variant, second.variant, spec.types, spec.shapes),
      spec);
}

// ---- time and memory ----

weir_dataset_t weir_dataset_cache(weir_scope_t* scope, weir_dataset_t dataset, const char* prefix) {
  if (!weir_lib_has_dataset(scope, "dataset_cache", dataset)) return WEIR_LIB_NO_DATASET;
  weir_edge_t variant =
      weir_cache_dataset(scope, dataset.variant, weir_const_string(scope, prefix ? prefix : ""),
                         dataset.element.types, dataset.element.shapes);
  return weir_lib_dataset(scope, variant, dataset.element);
}

weir_dataset_t weir_dataset_prefetch(weir_scope_t* scope, weir_dataset_t dataset, int64_t count) {
  if (!has_count(scope, "dataset_prefetch", dataset, count)) return WEIR_LIB_NO_DATASET;
  weir_edge_t variant = weir_prefetch_dataset(scope, dataset.variant, weir_lib_int64(scope, count),
                                              dataset.element.types, dataset.element.shapes);
  return weir_lib_dataset(scope, variant, dataset.element);
}

// ---- iterators ----

weir_dataset_iterator_t weir_dataset_iterator(weir_scope_t* scope, weir_dataset_t dataset) {
  weir_dataset_iterator_t it = {.element = dataset.element};
  if (!weir_lib_has_dataset(scope, "dataset_iterator", dataset))
    return (weir_dataset_iterator_t){0};
  it.handle = weir_iterator_v2(scope, "", "", dataset.element.types, dataset.element.shapes);
  it.initializer = weir_make_iterator(scope, dataset.variant, it.handle);
  return weir_scope_status(scope) ? (weir_dataset_iterator_t){0} : it;
}

weir_dataset_iterator_t weir_dataset_one_shot(weir_scope_t* scope, weir_dataset_t dataset) {
  weir_dataset_iterator_t it = {.element = dataset.element};
  if (!weir_lib_has_dataset(scope, "dataset_one_shot", dataset))
    return (weir_dataset_iterator_t){0};
  weir_defined_t factory = weir_define_copy(scope, "Dataset_factory", &dataset.variant, 1);
  if (!factory.name) return (weir_dataset_iterator_t){0};
  it.handle =
      weir_one_shot_iterator(scope, factory.name, dataset.element.types, dataset.element.shapes);
  return weir_scope_status(scope) ? (weir_dataset_iterator_t){0} : it;
}

weir_node_t* weir_dataset_restart(weir_scope_t* scope, weir_dataset_iterator_t iterator,
                                  weir_dataset_t dataset) {
  const char* what = "dataset_restart";
  if (!weir_lib_has_dataset(scope, what, dataset) || !weir_lib_ready(scope, what, iterator.handle))
    return NULL;
  bool is_same = dataset.element.types.count == iterator.element.types.count;
  for (int i = 0; is_same && i < dataset.element.types.count; ++i)
    is_same = dataset.element.types.items[i] == iterator.element.types.items[i];
  if (!is_same) {
    weir_lib_fail(scope, "%s: the dataset's elements have other types than the iterator's", what);
    return NULL;
  }
  return weir_make_iterator(scope, dataset.variant, iterator.handle);
}

void weir_dataset_get_next(weir_scope_t* scope, weir_dataset_iterator_t iterator,
                           weir_edge_t* out_values) {
  if (!WEIR_HAS_ARG(scope, out_values)) return;
  for (int i = 0; i < iterator.element.types.count; ++i) out_values[i] = WEIR_LIB_NONE;
  if (!weir_lib_ready(scope, "dataset_get_next", iterator.handle)) return;
  weir_edge_t first = weir_iterator_get_next(scope, iterator.handle, iterator.element.types,
                                             iterator.element.shapes);
  for (int i = 0; first.node && i < iterator.element.types.count; ++i)
    out_values[i] = (weir_edge_t){first.node, i};
}
