// onnx_api.c — The public functions on ONNX models.
#include "base/alloc.h"
#include "base/string.h"
#include "file/mapping.h"
#include "onnx/import.h"
#include "onnx/import_api.h"
#include "weir/argument.h"

struct weir_onnx_t {
  onnx_import_t import;
};

void onnx_import_add(onnx_import_t* import, bool is_input, weir_view_t name, weir_edge_t edge) {
  onnx_ports_t* ports = is_input ? &import->inputs : &import->outputs;
  char* copy = weir_strndup(name.data ? name.data : "", name.size);
  if (copy && WEIR_GROW(ports->items, ports->capacity, ports->count + 1)) {
    ports->items[ports->count++] = (weir_onnx_port_t){.name = copy, .edge = edge};
    return;
  }
  weir_free(copy);
  if (!import->status) import->status = weir_out_of_memory();
}

static void free_ports(onnx_ports_t* ports) {
  for (size_t i = 0; i < ports->count; ++i) weir_free((char*)ports->items[i].name);
  weir_free(ports->items);
}

static weir_status_t* import_bytes(weir_view_t bytes, const char* folder, weir_onnx_t** out_model) {
  weir_onnx_t* model = weir_calloc(1, sizeof(*model));
  if (!model) return weir_out_of_memory();
  onnx_import_t* import = &model->import;
  weir_status_t* status = weir_graph_create(&import->graph);
  if (!status) status = onnx_import_model(bytes, folder, import->graph, import);
  if (!status) {
    status = import->status;
    import->status = NULL;
  }
  if (status) weir_onnx_destroy(model);
  else *out_model = model;
  return status;
}

weir_status_t* weir_onnx_import_bytes(const void* data, size_t size, weir_onnx_t** out_model) {
  WEIR_REQUIRE_ARG(data);
  WEIR_REQUIRE_ARG(out_model);
  return import_bytes(weir_view(data, size), NULL, out_model);
}

weir_status_t* weir_onnx_import(const char* path, weir_onnx_t** out_model) {
  WEIR_REQUIRE_ARG(path);
  WEIR_REQUIRE_ARG(out_model);
  weir_mapping_t* mapping = NULL;
  weir_view_t parent = weir_path_parent(path);
  char* folder = parent.size ? weir_strndup(parent.data, parent.size) : weir_strdup(".");
  weir_status_t* status = folder ? weir_mapping_create(path, &mapping) : weir_out_of_memory();
  if (!status) {
    status = import_bytes(weir_view(mapping->data, mapping->size), folder, out_model);
    status = weir_status_prefix(status, "%s: ", path);
  }
  weir_mapping_release(mapping);
  weir_free(folder);
  return status;
}

void weir_onnx_destroy(weir_onnx_t* model) {
  if (!model) return;
  weir_graph_release(model->import.graph);
  free_ports(&model->import.inputs);
  free_ports(&model->import.outputs);
  weir_status_destroy(model->import.status);
  weir_free(model);
}

weir_graph_t* weir_onnx_graph(const weir_onnx_t* model) {
  WEIR_ASSERT_ARG(model);
  return model->import.graph;
}
int weir_onnx_input_count(const weir_onnx_t* model) {
  WEIR_ASSERT_ARG(model);
  return (int)model->import.inputs.count;
}
int weir_onnx_output_count(const weir_onnx_t* model) {
  WEIR_ASSERT_ARG(model);
  return (int)model->import.outputs.count;
}

static weir_onnx_port_t port_at(const onnx_ports_t* ports, int index) {
  bool is_there = index >= 0 && (size_t)index < ports->count;
  return is_there ? ports->items[index] : (weir_onnx_port_t){.name = NULL};
}
weir_onnx_port_t weir_onnx_input_at(const weir_onnx_t* model, int index) {
  WEIR_ASSERT_ARG(model);
  return port_at(&model->import.inputs, index);
}
weir_onnx_port_t weir_onnx_output_at(const weir_onnx_t* model, int index) {
  WEIR_ASSERT_ARG(model);
  return port_at(&model->import.outputs, index);
}

weir_onnx_op_t weir_onnx_op_at(int index) {
  const onnx_row_t* row = index >= 0 ? onnx_row_at(index) : NULL;
  if (!row) return (weir_onnx_op_t){.name = NULL};
  return (weir_onnx_op_t){
      .domain = row->domain ? row->domain : "", .name = row->op, .since = row->since};
}
