// datasets.c — Pipelines built by weir/dataset.h, for dataset_test.py: prints the elements of one,
// a line each, and writes the graph, of which TensorFlow must make the same: "variables" and
// "start", then "next" until the end. Usage: datasets NAME FOLDER GRAPH.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

static void check(weir_status_t* status) {
  if (weir_status_report(status)) exit(1);
}

typedef struct world_t {
  weir_edge_t pattern;  // of files
  weir_edge_t v;        // a variable, 7
} world_t;

// ---- functions on elements ----

static void number_lines(weir_scope_t* s, const weir_edge_t* x, weir_edge_t* results, void* user) {
  world_t* w = user;
  weir_edge_t size = weir_string_length(s, x[0]);
  results[0] = weir_add_v2(s, weir_cast(s, size, WEIR_DTYPE_FLOAT), w->v);
}

static void filled(weir_scope_t* s, const weir_edge_t* x, weir_edge_t* results, void* user) {
  weir_edge_t n = weir_cast(s, x[0], WEIR_DTYPE_INT32);
  (void)user;
  results[0] = weir_fill(s, weir_expand_dims(s, n, weir_const_int(s, 0)),
                         weir_cast(s, x[0], WEIR_DTYPE_FLOAT));
}

static weir_edge_t is_long(weir_scope_t* s, const weir_edge_t* x, void* user) {
  (void)user;
  return weir_greater(s, weir_string_length(s, x[0]), weir_const_int(s, 3));
}

static weir_dataset_t lines_of(weir_scope_t* s, const weir_edge_t* x, void* user) {
  return weir_dataset_map(s, weir_dataset_lines(s, x[0]), number_lines, user, 1);
}

// ---- pipelines: of one tensor an element, whose text is compared ----

static weir_dataset_t files(weir_scope_t* s, world_t* w) {
  weir_dataset_t names = weir_dataset_files(s, w->pattern, .no_shuffle = true);
  return weir_dataset_interleave(s, names, lines_of, w, .cycle_length = 2, .parallel = 2);
}

static weir_dataset_t shuffled(weir_scope_t* s, world_t* w) {
  (void)w;
  weir_dataset_t d = weir_dataset_shuffle(s, weir_dataset_range(s, 0, 20, 1), 7, .seed = 5);
  return weir_dataset_batch(s, weir_dataset_repeat(s, d, 2), 6);
}

static weir_dataset_t padded(weir_scope_t* s, world_t* w) {
  weir_dataset_t d =
      weir_dataset_map(s, weir_dataset_range(s, 0, 7, 1), filled, w, 1, .parallel = WEIR_AUTOTUNE);
  d = weir_dataset_skip(s, weir_dataset_concatenate(s, d, d), 1);
  return weir_dataset_prefetch(s, weir_dataset_padded_batch(s, d, 3), WEIR_AUTOTUNE);
}

static weir_dataset_t long_lines(weir_scope_t* s, world_t* w) {
  weir_edge_t names = weir_matching_files(s, w->pattern);
  weir_dataset_t d = weir_dataset_filter(s, weir_dataset_lines(s, names), is_long, w);
  d = weir_dataset_repeat(s, weir_dataset_cache(s, d, NULL), 2);
  return weir_dataset_map(s, weir_dataset_shard(s, d, 2, 1), number_lines, w, 1);
}

static const struct {
  const char* name;
  weir_dataset_t (*build)(weir_scope_t* s, world_t* w);
} pipelines[] = {
    {"files", files}, {"shuffled", shuffled}, {"padded", padded}, {"long_lines", long_lines}};

static weir_dataset_t build(weir_scope_t* s, const char* name, world_t* w) {
  for (size_t i = 0; i < sizeof(pipelines) / sizeof(*pipelines); ++i) {
    if (!strcmp(pipelines[i].name, name)) return pipelines[i].build(s, w);
  }
  return (weir_dataset_t){0};
}

// ---- running ----

static void print_all(weir_session_t* session, weir_edge_t next) {
  for (;;) {
    weir_tensor_t* value = NULL;
    char* text = NULL;
    weir_status_t* status =
        weir_session_run(session, &(const weir_step_spec_t){WEIR_FETCHES(next)}, &value);
    if (weir_status_code(status) == WEIR_OUT_OF_RANGE) {
      weir_status_destroy(status);
      return;
    }
    check(status);
    check(weir_tensor_to_text(value, 1000, &text));
    puts(text);
    weir_buffer_free(text);
    weir_tensor_release(value);
  }
}

static void write_graph(weir_graph_t* graph, const char* path) {
  char* def = NULL;
  size_t size = 0;
  FILE* file = fopen(path, "wb");
  check(weir_graph_to_def(graph, &def, &size));
  if (!file || fwrite(def, 1, size, file) != size || fclose(file)) exit(1);
  weir_buffer_free(def);
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  check(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  char pattern[4096];
  snprintf(pattern, sizeof(pattern), "%s/*.txt", argv[2]);
  world_t w = {.pattern = weir_const_string(s, pattern),
               .v = weir_variable(s, "v", weir_const_float(s, 7))};
  weir_node_t* variables = weir_group(s, "variables", (weir_node_t*[]){weir_initializer(s)}, 1);
  weir_dataset_iterator_t it = weir_dataset_iterator(s, build(s, argv[1], &w));
  weir_edge_t value;
  weir_dataset_get_next(s, it, &value);
  weir_edge_t next = weir_identity(weir_scope_name(s, "next"), value);
  weir_node_t* init = weir_group(s, "start", &it.initializer, 1);
  check(weir_scope_finish(s));
  write_graph(graph, argv[3]);
  check(weir_session_create(graph, NULL, &session));
  check(weir_session_run_target(session, variables));
  check(weir_session_run_target(session, init));
  print_all(session, next);
  weir_session_destroy(session);
  weir_graph_release(graph);
  return 0;
}
