// gradients.c — TF_AddGradients: nodes that compute gradients, dense ones.
#include "graph/gradient.h"
#include "tensorflow/internal.h"

// TensorFlow's C API has no slices: a gradient of some rows becomes one of all.
static weir_status_t* densify(weir_graph_t* graph, const char* prefix,
                              const weir_grad_value_t* gradient, weir_edge_t* out_edge) {
  *out_edge = gradient->values;
  if (weir_edge_is_none(gradient->indices)) return NULL;
  weir_graph_builder_t builder;
  weir_graph_builder_init(&builder, graph, prefix);
  weir_grad_ctx_t ctx = {.builder = &builder.base, .dys = gradient};
  *out_edge = weir_grad_dy(&ctx, 0);
  return builder.base.status;
}

typedef struct gradients_t {
  weir_edge_t* ys;
  weir_edge_t* xs;
  weir_edge_t* dys;  // NULL: ones
  weir_grad_value_t* values;
} gradients_t;

static weir_edge_t* edges_of(weir_arena_t* arena, const TF_Output* outputs, int count) {
  weir_edge_t* edges = weir_arena_array(arena, (size_t)count, sizeof(*edges));
  for (int i = 0; edges && i < count; ++i) edges[i] = tf_edge(outputs[i]);
  return edges;
}

static weir_status_t* check_all(const weir_graph_t* graph, const TF_Output* outputs, int count) {
  for (int i = 0; i < count; ++i) WEIR_TRY(tf_check_output(graph, outputs[i]));
  return NULL;
}

static weir_status_t* choose_prefix(const weir_graph_t* graph, const char* prefix,
                                    char** out_prefix) {
  if (!prefix) {
    *out_prefix = tf_graph_unique_prefix(graph, "gradients");
    return *out_prefix ? NULL : weir_out_of_memory();
  }
  char* taken = tf_graph_unique_prefix(graph, prefix);
  const bool is_free = taken && strcmp(taken, prefix) == 0;
  *out_prefix = taken;
  if (!taken) return weir_out_of_memory();
  return is_free ? NULL
                 : WEIR_STATUS(INVALID_ARGUMENT,
                               "prefix [%s] conflicts with existing node in the graph named [%s]",
                               prefix, prefix);
}

static weir_status_t* add(weir_graph_t* graph, const char* prefix, const gradients_t* given,
                          int y_count, int x_count, TF_Output* out_dy) {
  const weir_gradient_params_t params = {.ys = {.items = given->ys, .count = y_count},
                                         .xs = {.items = given->xs, .count = x_count},
                                         .grad_ys = given->dys,
                                         .prefix = prefix};
  WEIR_TRY(weir_graph_gradients(graph, &params, given->values));
  for (int i = 0; i < x_count; ++i) {
    weir_edge_t edge = WEIR_NO_EDGE;
    WEIR_TRY(densify(graph, prefix, &given->values[i], &edge));
    out_dy[i] = edge.node ? tf_output(edge) : (TF_Output){NULL, -1};
  }
  return NULL;
}

void TF_AddGradientsWithPrefix(TF_Graph* g, const char* prefix, TF_Output* y, int ny, TF_Output* x,
                               int nx, TF_Output* dx, TF_Status* status, TF_Output* dy) {
  weir_graph_t* graph = g->graph;
  weir_arena_t arena = {0};
  char* name = NULL;
  gradients_t given = {.ys = edges_of(&arena, y, ny),
                       .xs = edges_of(&arena, x, nx),
                       .dys = dx ? edges_of(&arena, dx, ny) : NULL,
                       .values = weir_arena_array(&arena, (size_t)nx, sizeof(*given.values))};
  const bool has_memory = given.ys && given.xs && given.values && (!dx || given.dys);
  weir_mutex_lock(&graph->mu);
  weir_status_t* result = has_memory ? check_all(graph, y, ny) : weir_out_of_memory();
  if (!result) result = check_all(graph, x, nx);
  if (!result && dx) result = check_all(graph, dx, ny);
  if (!result) result = choose_prefix(graph, prefix, &name);
  if (!result) result = add(graph, name, &given, ny, nx, dy);
  weir_mutex_unlock(&graph->mu);
  weir_free(name);
  weir_arena_free(&arena);
  tf_status_take(status, result);
}

void TF_AddGradients(TF_Graph* g, TF_Output* y, int ny, TF_Output* x, int nx, TF_Output* dx,
                     TF_Status* status, TF_Output* dy) {
  TF_AddGradientsWithPrefix(g, NULL, y, ny, x, nx, dx, status, dy);
}
