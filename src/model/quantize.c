// quantize.c — Weights as numbers of 8 bits and a scale a column, made floats again by Dequantize.
#include <math.h>

#include "model/fold.h"

enum { LARGE = 1024, STEPS = 127 };  // symmetric: -128 stands for nothing

bool weir_model_is_large(const weir_tensor_t* value) {
  return weir_tensor_type(value) == WEIR_DTYPE_FLOAT && value->rank >= 2 && value->count >= LARGE;
}

// The largest magnitude of each column; one of zeros, or of what is no number, counts as 1.
static void find_ranges(const weir_tensor_t* value, float* min, float* max) {
  const float* data = value->data;
  const int64_t columns = value->dims[value->rank - 1];
  for (int64_t c = 0; c < columns; ++c) max[c] = 0;
  for (int64_t i = 0; i < value->count; ++i)
    max[i % columns] = fmaxf(max[i % columns], fabsf(data[i]));
  for (int64_t c = 0; c < columns; ++c) {
    if (!(max[c] > 0) || isinf(max[c])) max[c] = 1;
    min[c] = -max[c];
  }
}

static void round_all(const weir_tensor_t* value, const float* max, int8_t* out) {
  const float* data = value->data;
  const int64_t columns = value->dims[value->rank - 1];
  for (int64_t i = 0; i < value->count; ++i) {
    float scaled = roundf(data[i] / max[i % columns] * (float)STEPS);
    if (!(scaled >= -STEPS)) scaled = isnan(scaled) ? 0 : -STEPS;
    out[i] = (int8_t)fminf(scaled, STEPS);
  }
}

// A constant beside |node|.
static weir_status_t* add_const(weir_node_t* node, const char* suffix, weir_tensor_t* value,
                                weir_edge_t* out_edge) {
  weir_node_t* made = NULL;
  const char* name = weir_arena_printf(&node->graph->arena, "%s/%s", node->def.name, suffix);
  if (!name) return weir_out_of_memory();
  weir_node_params_t params = {
      .op = "Const",
      .name = name,
      .unique_name = true,
      .device = node->def.device,
      .attrs = WEIR_ATTRS(weir_attr_tensor("value", value),
                          weir_attr_type("dtype", weir_tensor_type(value)))};
  WEIR_TRY(weir_graph_add(node->graph, &params, &made));
  *out_edge = (weir_edge_t){.node = made, .index = 0};
  return NULL;
}

static weir_status_t* redefine(weir_node_t* node, const weir_tensor_t* value,
                               weir_tensor_t* const parts[3]) {
  static const char* const suffixes[3] = {"quantized", "min", "max"};
  weir_edge_t edges[3];
  for (int i = 0; i < 3; ++i) WEIR_TRY(add_const(node, suffixes[i], parts[i], &edges[i]));
  return weir_graph_redefine(
      node, "Dequantize", (weir_edges_t){.items = edges, .count = 3},
      WEIR_ATTRS(weir_attr_type("T", WEIR_DTYPE_QINT8), weir_attr_string("mode", "SCALED"),
                 weir_attr_bool("narrow_range", true), weir_attr_int("axis", value->rank - 1),
                 weir_attr_type("dtype", WEIR_DTYPE_FLOAT)));
}

weir_status_t* weir_model_quantize(weir_node_t* node, const weir_tensor_t* value) {
  weir_tensor_t* parts[3] = {NULL};
  const int64_t columns = value->dims[value->rank - 1];
  weir_status_t* status = weir_tensor_create(WEIR_DTYPE_QINT8, value->rank, value->dims, &parts[0]);
  if (!status) status = weir_tensor_create(WEIR_DTYPE_FLOAT, 1, &columns, &parts[1]);
  if (!status) status = weir_tensor_create(WEIR_DTYPE_FLOAT, 1, &columns, &parts[2]);
  if (!status) {
    find_ranges(value, parts[1]->data, parts[2]->data);
    round_all(value, parts[2]->data, parts[0]->data);
    status = redefine(node, value, parts);
  }
  for (int i = 0; i < 3; ++i) weir_tensor_release(parts[i]);
  return status;
}
