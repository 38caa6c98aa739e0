// input.c — Pipelines of readers and queues as nodes, with the runners that fill them.
#include "weir/input.h"

#include "nodes.h"

// A runner is remembered as three edges whose indices carry its two numbers.
#define RUNNERS "queue_runners"
enum { DEFAULT_CAPACITY = 32, SPARE_BATCHES = 3, DEFAULT_CHOICE = 10 };

void weir_queue_runner_add(weir_scope_t* scope, weir_edge_t queue, weir_node_t* enqueue,
                           int threads, int runs) {
  if (!weir_lib_ready(scope, "queue_runner", queue) || !WEIR_HAS_ARG(scope, enqueue)) return;
  weir_node_t* close = weir_queue_close_v2(scope, queue);
  weir_node_t* cancel = weir_queue_close_v2(scope, queue, .cancel_pending_enqueues = true);
  weir_scope_collect(scope, RUNNERS, (weir_edge_t){enqueue, threads});
  weir_scope_collect(scope, RUNNERS, (weir_edge_t){close, runs});
  weir_scope_collect(scope, RUNNERS, (weir_edge_t){cancel, 0});
}

int weir_queue_runners(weir_scope_t* scope, weir_queue_runner_t* out_runners, int capacity) {
  const weir_edge_t* edges = NULL;
  const int count = weir_scope_collected(scope, RUNNERS, &edges) / 3;
  for (int i = 0; i < count && i < capacity; ++i, edges += 3) {
    out_runners[i] = (weir_queue_runner_t){.enqueue = edges[0].node,
                                           .threads = edges[0].index,
                                           .close = edges[1].node,
                                           .runs = edges[1].index,
                                           .cancel = edges[2].node};
  }
  return count;
}

// ---- strings and records ----

weir_edge_t weir_string_input_producer_with(weir_scope_t* scope, const char* const* strings,
                                            int count, const weir_producer_options_t* options) {
  options = options ? options : &(const weir_producer_options_t){0};
  if (weir_scope_status(scope)) return WEIR_LIB_NONE;
  if (count < 1 || options->epochs < 0) {
    weir_lib_fail(scope, "string_input_producer: %d strings, %d epochs", count, options->epochs);
    return WEIR_LIB_NONE;
  }
  weir_scope_t* s = weir_scope_in(scope, "input_producer");
  weir_edge_t all = weir_const_strings(s, strings, count);
  if (!options->no_shuffle) {
    weir_lib_seeds_t seeds = weir_lib_seeds(s, options->seed, 0);
    all = weir_random_shuffle(s, all, .seed = seeds.seed, .seed2 = seeds.seed2);
  }
  const int capacity = options->capacity ? options->capacity : DEFAULT_CAPACITY;
  weir_edge_t queue =
      weir_fifo_queue_v2(s, WEIR_TYPES(WEIR_DTYPE_STRING), .shapes = WEIR_SHAPES(WEIR_SCALAR_SHAPE),
                         .capacity = WEIR_SET(capacity));
  // One thread: each run of it is an epoch.
  weir_queue_runner_add(s, queue, weir_queue_enqueue_many_v2(s, queue, &all, 1), 1,
                        options->epochs);
  return queue;
}

weir_record_edges_t weir_read_records(weir_scope_t* scope, weir_edge_t files) {
  if (!weir_lib_ready(scope, "read_records", files))
    return (weir_record_edges_t){WEIR_LIB_NONE, WEIR_LIB_NONE};
  weir_reader_read_v2_result_t read =
      weir_reader_read_v2(scope, weir_tf_record_reader_v2(scope), files);
  return (weir_record_edges_t){.key = read.key, .value = read.value};
}

// ---- batches ----

// What the queue of a batch holds.
typedef struct components_t {
  weir_dtype_t* types;
  weir_dims_t* shapes;
  int count;
} components_t;

// The shape of one example; false when it must be known and is not.
static bool example_shape(weir_scope_t* scope, weir_edge_t tensor,
                          const weir_batch_options_t* options, weir_dims_t* out_shape) {
  const int skipped = options->enqueue_many ? 1 : 0;
  const int rank = weir_lib_rank(tensor);
  bool is_known = rank >= skipped;
  int64_t* dims = weir_scope_alloc(scope, is_known ? (size_t)rank + 1 : 1, sizeof(*dims));
  if (!dims) return false;
  for (int i = skipped; i < rank; ++i) {
    dims[i - skipped] = weir_lib_dim(tensor, i);
    is_known = is_known && (dims[i - skipped] >= 0 || options->dynamic_pad);
  }
  *out_shape = (weir_dims_t){dims, rank - skipped, true};
  if (!is_known) {
    weir_lib_fail(scope, "batch: the shape of '%s' must be known; weir_ensure_shape can say it",
                  weir_node_name(tensor.node));
  }
  return is_known;
}

static components_t list_components(weir_scope_t* scope, const weir_edge_t* tensors, int count,
                                    const weir_batch_options_t* options) {
  components_t parts = {.count = count};
  parts.types = weir_scope_alloc(scope, (size_t)count, sizeof(*parts.types));
  parts.shapes = weir_scope_alloc(scope, (size_t)count, sizeof(*parts.shapes));
  for (int i = 0; parts.types && parts.shapes && i < count; ++i) {
    parts.types[i] = weir_edge_type(tensors[i]);
    if (!example_shape(scope, tensors[i], options, &parts.shapes[i])) break;
  }
  return parts;
}

static weir_edge_t batch_queue(weir_scope_t* s, components_t parts, int batch_size, bool shuffles,
                               const weir_batch_options_t* options) {
  const weir_types_t types = {parts.types, parts.count};
  const weir_shapes_t shapes = {parts.shapes, parts.count};
  const int least = !shuffles                    ? 0
                    : options->min_after_dequeue ? options->min_after_dequeue
                                                 : DEFAULT_CHOICE * batch_size;
  const int capacity = options->capacity ? options->capacity : least + SPARE_BATCHES * batch_size;
  if (shuffles) {
    weir_lib_seeds_t seeds = weir_lib_seeds(s, options->seed, 0);
    return weir_random_shuffle_queue_v2(s, types, .shapes = shapes, .capacity = WEIR_SET(capacity),
                                        .min_after_dequeue = least, .seed = seeds.seed,
                                        .seed2 = seeds.seed2);
  }
  if (options->dynamic_pad)
    return weir_padding_fifo_queue_v2(s, types, .shapes = shapes, .capacity = WEIR_SET(capacity));
  return weir_fifo_queue_v2(s, types, .shapes = shapes, .capacity = WEIR_SET(capacity));
}

static void make_batch(weir_scope_t* scope, const weir_edge_t* tensors, int count, int batch_size,
                       weir_edge_t* out_batches, bool shuffles,
                       const weir_batch_options_t* options) {
  for (int i = 0; i < count; ++i) out_batches[i] = WEIR_LIB_NONE;
  if (!weir_lib_is_ready(scope, "batch", tensors, count)) return;
  if (count < 1 || batch_size < 1 || (shuffles && options->dynamic_pad)) {
    weir_lib_fail(scope, "batch: %d tensors, batches of %d%s", count, batch_size,
                  options->dynamic_pad ? ", padded" : "");
    return;
  }
  weir_scope_t* s = weir_scope_in(scope, shuffles ? "shuffle_batch" : "batch");
  components_t parts = list_components(s, tensors, count, options);
  if (weir_scope_status(s)) return;
  weir_edge_t queue = batch_queue(s, parts, batch_size, shuffles, options);
  weir_node_t* enqueue = options->enqueue_many
                             ? weir_queue_enqueue_many_v2(s, queue, tensors, count)
                             : weir_queue_enqueue_v2(s, queue, tensors, count);
  weir_queue_runner_add(s, queue, enqueue, options->threads, 0);
  const weir_types_t types = {parts.types, count};
  weir_edge_t n = weir_const_int(s, batch_size);
  weir_edge_t first = options->allow_smaller_final_batch
                          ? weir_queue_dequeue_up_to_v2(s, queue, n, types)
                          : weir_queue_dequeue_many_v2(s, queue, n, types);
  for (int i = 0; first.node && i < count; ++i) out_batches[i] = (weir_edge_t){first.node, i};
}

void weir_batch_with(weir_scope_t* scope, const weir_edge_t* tensors, int count, int batch_size,
                     weir_edge_t* out_batches, const weir_batch_options_t* options) {
  options = options ? options : &(const weir_batch_options_t){0};
  if (!WEIR_HAS_ARG(scope, tensors) || !WEIR_HAS_ARG(scope, out_batches)) return;
  make_batch(scope, tensors, count, batch_size, out_batches, false, options);
}

void weir_shuffle_batch_with(weir_scope_t* scope, const weir_edge_t* tensors, int count,
                             int batch_size, weir_edge_t* out_batches,
                             const weir_batch_options_t* options) {
  options = options ? options : &(const weir_batch_options_t){0};
  if (!WEIR_HAS_ARG(scope, tensors) || !WEIR_HAS_ARG(scope, out_batches)) return;
  make_batch(scope, tensors, count, batch_size, out_batches, true, options);
}

// ---- Examples ----

// An empty tensor is the op's word for "required".
static weir_edge_t dense_default(weir_scope_t* scope, const weir_dense_feature_t* feature) {
  if (feature->default_value.node) return feature->default_value;
  weir_tensor_t* empty = NULL;
  const int64_t none = 0;
  weir_status_t* status = weir_tensor_create(feature->dtype, 1, &none, &empty);
  if (status) {
    weir_scope_fail(scope, status);
    return WEIR_LIB_NONE;
  }
  weir_edge_t edge = weir_const(scope, empty);
  weir_tensor_release(empty);
  return edge;
}

void weir_parse_dense(weir_scope_t* scope, weir_edge_t serialized,
                      const weir_dense_feature_t* features, int count, weir_edge_t* out_values) {
  if (!WEIR_HAS_ARG(scope, features) || !WEIR_HAS_ARG(scope, out_values)) return;
  for (int i = 0; i < count; ++i) out_values[i] = WEIR_LIB_NONE;
  if (!weir_lib_ready(scope, "parse_dense", serialized)) return;
  weir_scope_t* s = weir_scope_in(scope, "parse_dense");
  const char** names = weir_scope_alloc(s, (size_t)count + 1, sizeof(*names));
  weir_edge_t* defaults = weir_scope_alloc(s, (size_t)count + 1, sizeof(*defaults));
  weir_dims_t* shapes = weir_scope_alloc(s, (size_t)count + 1, sizeof(*shapes));
  if (!names || !defaults || !shapes) return;
  for (int i = 0; i < count; ++i) {
    names[i] = features[i].name;
    defaults[i] = dense_default(s, &features[i]);
    shapes[i] = features[i].shape.is_set ? features[i].shape : WEIR_SCALAR_SHAPE;
  }
  weir_edge_t none = weir_const_strings(s, NULL, 0);
  weir_edge_t first =
      weir_parse_example_v2(s, serialized, none, none, weir_const_strings(s, names, count), none,
                            defaults, count, 0, ((weir_types_t){0}), ((weir_types_t){0}),
                            ((weir_types_t){0}), ((weir_shapes_t){shapes, count}))
          .dense_values;
  for (int i = 0; first.node && i < count; ++i)
    out_values[i] = (weir_edge_t){first.node, first.index + i};
}
