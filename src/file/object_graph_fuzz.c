// object_graph_fuzz.c — Fuzz target: any bytes as the graph of a checkpoint's objects. Each object
// that has a path is found by it.
#include "file/object_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir_object_graph_t graph = {.count = 0};
  weir_status_t* status = weir_object_graph_parse(weir_view(data, size), &graph);
  for (size_t i = 0; i < graph.count && i < 100; ++i) {
    const weir_object_t* object = &graph.objects[i];
    if (object->path) WEIR_CHECK(weir_object_graph_find(&graph, weir_view_of(object->path)));
  }
  for (size_t i = 0; i < graph.attribute_count; ++i)
    WEIR_CHECK(graph.attributes[i].object < graph.count);
  weir_status_destroy(status);
  weir_object_graph_free(&graph);
  return 0;
}
