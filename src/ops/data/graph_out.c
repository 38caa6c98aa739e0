// graph_out.c — From a dataset to the nodes of a GraphDef: one walk over what made it.
#include "ops/data/graph_out.h"

#include "ops/data/origin.h"
#include "wire/wire.h"

enum {
  GRAPH_NODE = 1,  // of GraphDef
  GRAPH_LIBRARY = 2,
  GRAPH_VERSIONS = 4,
  VERSIONS_PRODUCER = 1,
  GRAPH_VERSION = 2474,  // of TensorFlow 2.21, whose ops these are
  NODE_NAME = 1,         // of NodeDef
  NODE_OP = 2,
  NODE_INPUT = 3,
  NODE_ATTR = 5,
};

// ---- nodes ----

weir_status_t* weir_graph_out_node(weir_graph_out_t* out, const weir_node_out_t* node,
                                   const char** out_name) {
  const char* name = node->name;
  if (!name) name = weir_arena_printf(&out->arena, "%s/_%d", node->op, out->count++);
  if (!name) return weir_out_of_memory();
  size_t begin = weir_wire_begin(&out->nodes, GRAPH_NODE);
  weir_wire_put_string(&out->nodes, NODE_NAME, name);
  weir_wire_put_string(&out->nodes, NODE_OP, node->op);
  for (int i = 0; i < node->input_count; ++i)
    weir_wire_put_string(&out->nodes, NODE_INPUT, node->inputs[i]);
  if (node->control) {
    size_t input = weir_wire_begin(&out->nodes, NODE_INPUT);
    weir_strbuf_printf(&out->nodes, "^%s", node->control);
    weir_wire_end(&out->nodes, input);
  }
  for (size_t i = 0; i < node->attrs.count; ++i)
    WEIR_TRY(weir_attr_write_entry(&node->attrs.items[i], NODE_ATTR, &out->nodes));
  weir_wire_end(&out->nodes, begin);
  *out_name = name;
  return weir_strbuf_finish(&out->nodes);
}

// ---- tensors ----

static bool holds_dataset(const weir_variant_t* variant) {
  return variant->object && variant->object->type == &weir_dataset_type;
}

// Whether all elements are datasets.
static bool holds_datasets(const weir_tensor_t* tensor) {
  if (weir_tensor_type(tensor) != WEIR_DTYPE_VARIANT || tensor->count == 0) return false;
  for (int64_t i = 0; i < tensor->count; ++i)
    if (!holds_dataset(WEIR_TENSOR_DATA(tensor, const weir_variant_t) + i)) return false;
  return true;
}

// The |count| nodes of what is packed along dimension |dim|, the first element being |variants|.
static weir_status_t* write_packed(weir_graph_out_t* out, const weir_tensor_t* tensor, int dim,
                                   const weir_variant_t* variants, const char** out_name) {
  if (dim == tensor->rank)
    return weir_graph_out_dataset(out, (weir_data_t*)variants->object, out_name);
  int64_t count = tensor->dims[dim], stride = 1;
  for (int i = dim + 1; i < tensor->rank; ++i) stride *= tensor->dims[i];
  const char** names = weir_alloc_array((size_t)count, sizeof(*names));
  weir_status_t* status = names ? NULL : weir_out_of_memory();
  for (int64_t i = 0; i < count && !status; ++i)
    status = write_packed(out, tensor, dim + 1, variants + i * stride, &names[i]);
  weir_node_out_t pack = {
      .op = "Pack",
      .inputs = names,
      .input_count = (int)count,
      .attrs = WEIR_ATTRS(weir_attr_int("N", count), weir_attr_type("T", WEIR_DTYPE_VARIANT),
                          weir_attr_int("axis", 0))};
  if (!status) status = weir_graph_out_node(out, &pack, out_name);
  weir_free(names);
  return status;
}

weir_status_t* weir_graph_out_tensor(weir_graph_out_t* out, weir_tensor_t* tensor,
                                     const char** out_name) {
  if (holds_datasets(tensor))
    return write_packed(out, tensor, 0, WEIR_TENSOR_DATA(tensor, const weir_variant_t), out_name);
  const char* resource = NULL;
  if (weir_tensor_handle(tensor)) WEIR_TRY(weir_graph_out_resource(out, tensor, &resource));
  if (resource) {
    *out_name = resource;
    return NULL;
  }
  weir_node_out_t node = {.op = "Const",
                          .attrs = WEIR_ATTRS(weir_attr_type("dtype", weir_tensor_type(tensor)),
                                              weir_attr_tensor("value", tensor))};
  return weir_graph_out_node(out, &node, out_name);
}

static weir_status_t* write_tensors(weir_graph_out_t* out, weir_tensor_t* const* tensors, int count,
                                    const char** names) {
  for (int i = 0; i < count; ++i) WEIR_TRY(weir_graph_out_tensor(out, tensors[i], &names[i]));
  return NULL;
}

// ---- datasets ----

static weir_status_t* add_functions(weir_graph_out_t* out, const weir_attr_t* value) {
  if (value->kind != WEIR_ATTR_FUNC) return NULL;
  if (!value->is_list) return weir_graph_out_function(out, value->u.func->name);
  for (size_t i = 0; i < value->count; ++i)
    WEIR_TRY(weir_graph_out_function(out, value->u.funcs[i].name));
  return NULL;
}

// The node's attribute, but for types and shapes of elements, which are as they turned out to be.
static weir_named_attr_t attr_of(const weir_data_t* self, const weir_named_attr_t* attr) {
  const weir_shape_t* const* shapes = (const weir_shape_t* const*)self->shapes;
  size_t count = (size_t)self->count;
  if (strcmp(attr->name, "output_types") == 0)
    return weir_attr_types(attr->name, self->types, count);
  if (strcmp(attr->name, "output_shapes") == 0) return weir_attr_shapes(attr->name, shapes, count);
  return *attr;
}

static weir_status_t* write_from_origin(weir_graph_out_t* out, weir_data_t* self,
                                        weir_named_attr_t* attrs, const char** inputs,
                                        const char** out_name) {
  const weir_origin_t* origin = self->origin;
  for (size_t i = 0; i < origin->attrs.count; ++i) {
    attrs[i] = attr_of(self, &origin->attrs.items[i]);
    WEIR_TRY(add_functions(out, &attrs[i].value));
  }
  WEIR_TRY(write_tensors(out, self->args, self->arg_count, inputs));
  weir_node_out_t node = {.op = origin->op->name,
                          .inputs = inputs,
                          .input_count = self->arg_count,
                          .attrs = {.items = attrs, .count = origin->attrs.count}};
  return weir_graph_out_node(out, &node, out_name);
}

static weir_status_t* write_dataset(weir_graph_out_t* out, weir_data_t* self,
                                    const char** out_name) {
  if (self->vtable->write) return self->vtable->write(self, out, out_name);
  if (!self->origin)
    return WEIR_STATUS(UNIMPLEMENTED, "%sDataset does not support serialization.",
                       self->vtable->name);
  weir_named_attr_t* attrs = weir_calloc(self->origin->attrs.count + 1, sizeof(*attrs));
  const char** inputs = weir_calloc((size_t)self->arg_count + 1, sizeof(*inputs));
  weir_status_t* status = attrs && inputs ? write_from_origin(out, self, attrs, inputs, out_name)
                                          : weir_out_of_memory();
  weir_free(inputs);
  weir_free(attrs);
  return status;
}

static const char* find_known(const weir_graph_out_t* out, const weir_data_t* dataset) {
  return weir_map_find(&out->datasets, weir_view((const char*)&dataset, sizeof(dataset)));
}

static weir_status_t* write_new(weir_graph_out_t* out, weir_data_t* dataset) {
  const char* name = NULL;
  WEIR_TRY(write_dataset(out, dataset, &name));
  return weir_map_put(&out->datasets, weir_view((const char*)&dataset, sizeof(dataset)),
                      (void*)(uintptr_t)name);
}

// A dataset that the node of |self| was given and that is not written yet; NULL: there is none.
static weir_data_t* find_below(const weir_graph_out_t* out, const weir_data_t* self) {
  for (int i = 0; i < self->arg_count && !self->vtable->write; ++i) {
    if (!holds_datasets(self->args[i])) continue;
    const weir_variant_t* variants = WEIR_TENSOR_DATA(self->args[i], const weir_variant_t);
    for (int64_t k = 0; k < self->args[i]->count; ++k)
      if (!find_known(out, (weir_data_t*)variants[k].object))
        return (weir_data_t*)variants[k].object;
  }
  return NULL;
}

// Those below are written first, from a list: thousands may be within one another, which is too
// deep for calls within calls.
weir_status_t* weir_graph_out_dataset(weir_graph_out_t* out, weir_data_t* dataset,
                                      const char** out_name) {
  weir_data_t** open = NULL;
  size_t count = 0, capacity = 0;
  weir_status_t* status = NULL;
  weir_data_t* next = find_known(out, dataset) ? NULL : dataset;
  while ((next || count > 0) && !status) {
    if (next && !WEIR_GROW(open, capacity, count + 1)) status = weir_out_of_memory();
    else if (next) open[count++] = next;
    if (status) break;
    next = find_below(out, open[count - 1]);
    if (!next) status = write_new(out, open[--count]);
  }
  weir_free(open);
  if (!status) *out_name = find_known(out, dataset);
  return status;
}

weir_status_t* weir_graph_out_window(weir_graph_out_t* out, const weir_data_t* self,
                                     weir_tensor_t* const* items, int count,
                                     const char** out_name) {
  const weir_shape_t* const* shapes = (const weir_shape_t* const*)self->shapes;
  weir_dtype_t* types = weir_alloc_array((size_t)count, sizeof(*types));
  const char** inputs = weir_calloc((size_t)count + 1, sizeof(*inputs));
  weir_status_t* status = types && inputs ? NULL : weir_out_of_memory();
  for (int i = 0; i < count && !status; ++i) types[i] = weir_tensor_type(items[i]);
  if (!status) status = write_tensors(out, items, count, inputs);
  weir_node_out_t node = {
      .op = "WindowOp",
      .inputs = inputs,
      .input_count = count,
      .attrs = WEIR_ATTRS(weir_attr_types("output_types", self->types, (size_t)self->count),
                          weir_attr_shapes("output_shapes", shapes, (size_t)self->count),
                          weir_attr_types("Tinputs", types, (size_t)count))};
  if (!status) status = weir_graph_out_node(out, &node, out_name);
  weir_free(inputs);
  weir_free(types);
  return status;
}

// ---- the whole ----

weir_status_t* weir_graph_out_finish(weir_graph_out_t* out, const char* dataset,
                                     weir_strbuf_t* graph_def) {
  const char* ignored = NULL;
  weir_node_out_t result = {
      .op = "_Retval",
      .name = "dataset",
      .inputs = &dataset,
      .input_count = 1,
      .attrs = WEIR_ATTRS(weir_attr_type("T", WEIR_DTYPE_VARIANT), weir_attr_int("index", 0))};
  WEIR_TRY(weir_graph_out_node(out, &result, &ignored));
  WEIR_TRY(weir_strbuf_finish(&out->library));
  weir_strbuf_append(graph_def, out->nodes.data, out->nodes.size);
  weir_wire_put_bytes(graph_def, GRAPH_LIBRARY, out->library.data, out->library.size);
  size_t versions = weir_wire_begin(graph_def, GRAPH_VERSIONS);
  weir_wire_put_int(graph_def, VERSIONS_PRODUCER, GRAPH_VERSION);
  weir_wire_end(graph_def, versions);
  return weir_strbuf_finish(graph_def);
}

void weir_graph_out_free(weir_graph_out_t* out) {
  weir_map_entry_t* entry;
  for (size_t i = 0; (entry = weir_map_next(&out->functions_by_name, &i));) {
    weir_strbuf_free(entry->value);
    weir_free(entry->value);
  }
  weir_map_free(&out->functions_by_name);
  weir_map_free(&out->datasets);
  weir_strbuf_free(&out->library);
  weir_strbuf_free(&out->nodes);
  weir_arena_free(&out->arena);
}
