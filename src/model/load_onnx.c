// load_onnx.c — Models in ONNX's format: the imported graph, with a signature of its ports.
#include "model/load_onnx.h"

#include "weir/onnx.h"

// In the order of the model, not of names: that is what its users know.
static weir_status_t* list_ports(const weir_onnx_t* onnx, bool is_input, weir_arena_t* arena,
                                 weir_port_list_t* list) {
  int count = is_input ? weir_onnx_input_count(onnx) : weir_onnx_output_count(onnx);
  list->items = weir_arena_array(arena, (size_t)count, sizeof(*list->items));
  if (!list->items) return weir_out_of_memory();
  for (int i = 0; i < count; ++i) {
    weir_onnx_port_t port = is_input ? weir_onnx_input_at(onnx, i) : weir_onnx_output_at(onnx, i);
    const char* tensor =
        weir_arena_printf(arena, "%s:%d", weir_node_name(port.edge.node), port.edge.index);
    if (!tensor) return weir_out_of_memory();
    list->items[list->count++] =
        (weir_port_info_t){.name = port.name, .tensor = tensor, .shape = &weir_shape_unknown};
  }
  return NULL;
}

weir_status_t* weir_model_import_onnx(const char* path, weir_model_t* model) {
  weir_onnx_t* onnx = NULL;
  weir_arena_t arena = {0};
  weir_signature_info_t signature = {.name = "serving_default", .method = "onnx"};
  weir_meta_graph_t meta = {.signatures = &signature, .signature_count = 1};
  WEIR_TRY(weir_onnx_import(path, &onnx));
  weir_graph_release(model->graph);
  model->graph = weir_graph_retain(weir_onnx_graph(onnx));
  weir_status_t* status = list_ports(onnx, true, &arena, &signature.inputs);
  if (!status) status = list_ports(onnx, false, &arena, &signature.outputs);
  if (!status) status = weir_model_bind(model, &meta);
  weir_arena_free(&arena);
  weir_onnx_destroy(onnx);
  return status;
}
