// proto.c — Reading ONNX's protobuf messages.
#include "onnx/proto.h"

#include "wire/wire.h"

enum { kMaxDepth = 32 };  // of graphs within graphs

// The numbers of the fields that are read.
enum { MODEL_IR_VERSION = 1, MODEL_GRAPH = 7, MODEL_OPSET = 8, MODEL_FUNCTION = 25 };
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum {
  GRAPH_NODE = 1,
  GRAPH_NAME = 2,
  GRAPH_INITIALIZER = 5,
  GRAPH_INPUT = 11,
  GRAPH_OUTPUT = 12,
  GRAPH_SPARSE_INITIALIZER = 15
};
enum {
  NODE_INPUT = 1,
  NODE_OUTPUT = 2,
  NODE_NAME = 3,
  NODE_OP = 4,
  NODE_ATTRIBUTE = 5,
  NODE_DOMAIN = 7
};
enum {
  ATTR_NAME = 1,
  ATTR_F = 2,
  ATTR_I = 3,
  ATTR_S = 4,
  ATTR_T = 5,
  ATTR_G = 6,
  ATTR_FLOATS = 7,
  ATTR_INTS = 8,
  ATTR_STRINGS = 9,
  ATTR_TYPE = 20,
  ATTR_SOURCE = 21
};
enum { PORT_NAME = 1, PORT_TYPE = 2 };
enum { TYPE_TENSOR = 1, TENSOR_TYPE_ELEMENT = 1, TENSOR_TYPE_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1 };
enum { TENSOR_NAME = 8 };
enum {
  FUNCTION_NAME = 1,
  FUNCTION_INPUT = 4,
  FUNCTION_OUTPUT = 5,
  FUNCTION_NODE = 7,
  FUNCTION_OPSET = 9,
  FUNCTION_DOMAIN = 10,
  FUNCTION_DEFAULT = 11
};

typedef struct parser_t {
  weir_arena_t* arena;
  int depth;  // of graphs
} parser_t;

// ---- types ----

typedef struct type_row_t {
  const char* name;
  weir_dtype_t dtype;
} type_row_t;
// By ONNX's numbers.
static const type_row_t kTypes[] = {{"UNDEFINED", WEIR_DTYPE_INVALID},
                                    {"FLOAT", WEIR_DTYPE_FLOAT},
                                    {"UINT8", WEIR_DTYPE_UINT8},
                                    {"INT8", WEIR_DTYPE_INT8},
                                    {"UINT16", WEIR_DTYPE_UINT16},
                                    {"INT16", WEIR_DTYPE_INT16},
                                    {"INT32", WEIR_DTYPE_INT32},
                                    {"INT64", WEIR_DTYPE_INT64},
                                    {"STRING", WEIR_DTYPE_STRING},
                                    {"BOOL", WEIR_DTYPE_BOOL},
                                    {"FLOAT16", WEIR_DTYPE_HALF},
                                    {"DOUBLE", WEIR_DTYPE_DOUBLE},
                                    {"UINT32", WEIR_DTYPE_UINT32},
                                    {"UINT64", WEIR_DTYPE_UINT64},
                                    {"COMPLEX64", WEIR_DTYPE_COMPLEX64},
                                    {"COMPLEX128", WEIR_DTYPE_COMPLEX128},
                                    {"BFLOAT16", WEIR_DTYPE_BFLOAT16},
                                    {"FLOAT8E4M3FN", WEIR_DTYPE_FLOAT8_E4M3FN},
                                    {"FLOAT8E4M3FNUZ", WEIR_DTYPE_FLOAT8_E4M3FNUZ},
                                    {"FLOAT8E5M2", WEIR_DTYPE_FLOAT8_E5M2},
                                    {"FLOAT8E5M2FNUZ", WEIR_DTYPE_FLOAT8_E5M2FNUZ},
                                    {"UINT4", WEIR_DTYPE_UINT4},
                                    {"INT4", WEIR_DTYPE_INT4},
                                    {"FLOAT4E2M1", WEIR_DTYPE_INVALID},
                                    {"FLOAT8E8M0", WEIR_DTYPE_INVALID},
                                    {"UINT2", WEIR_DTYPE_INVALID},
                                    {"INT2", WEIR_DTYPE_INVALID}};

weir_dtype_t onnx_dtype(int64_t type) {
  bool is_known = type > 0 && type < (int64_t)WEIR_COUNT_OF(kTypes);
  return is_known ? kTypes[type].dtype : WEIR_DTYPE_INVALID;
}

const char* onnx_type_name(int64_t type) {
  return type >= 0 && type < (int64_t)WEIR_COUNT_OF(kTypes) ? kTypes[type].name : "unknown";
}

int onnx_type_of(weir_dtype_t dtype) {
  for (size_t i = 1; i < WEIR_COUNT_OF(kTypes); ++i) {
    if (kTypes[i].dtype == dtype && dtype != WEIR_DTYPE_INVALID) return (int)i;
  }
  return 0;
}

// ---- repeated fields: counted, then read ----

static int count_field(weir_view_t message, uint32_t field) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  int count = 0;
  while (weir_wire_next(&reader)) count += reader.field == field && reader.type == WEIR_WIRE_BYTES;
  return count;
}

// An array for all fields |field| of |message|.
static weir_status_t* make_array(parser_t* p, weir_view_t message, uint32_t field, size_t size,
                                 void* out_array) {
  void* array = weir_arena_array(p->arena, (size_t)count_field(message, field) + 1, size);
  if (!array) return weir_out_of_memory();
  *(void**)out_array = array;
  return NULL;
}

static weir_status_t* read_names(parser_t* p, weir_view_t message, uint32_t field,
                                 onnx_names_t* out_names) {
  weir_view_t* items = NULL;
  WEIR_TRY(make_array(p, message, field, sizeof(*items), &items));
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field != field || reader.type != WEIR_WIRE_BYTES) continue;
    items[out_names->count++] = reader.bytes;
  }
  out_names->items = items;
  return weir_wire_check(&reader, "ONNX message");
}

// ---- attributes ----

static weir_status_t* read_numbers(parser_t* p, weir_view_t message, uint32_t field,
                                   weir_wire_type_t type, onnx_attr_t* attr) {
  uint64_t total = 0, bits = 0, count = 0;
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field != field) continue;
    if (!weir_wire_packed_count(weir_wire_packed(&reader, type), &count))
      return WEIR_STATUS(INVALID_ARGUMENT, "malformed numbers in an attribute");
    total += count;
  }
  if (total == 0 || total > INT32_MAX) return NULL;
  int64_t* ints = weir_arena_array(p->arena, (size_t)total, sizeof(*ints));
  float* floats = weir_arena_array(p->arena, (size_t)total, sizeof(*floats));
  if (!ints || !floats) return weir_out_of_memory();
  attr->count = 0;
  reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field != field) continue;
    weir_wire_packed_t packed = weir_wire_packed(&reader, type);
    while (weir_wire_packed_next(&packed, &bits)) {
      uint32_t low = (uint32_t)bits;
      if (type == WEIR_WIRE_VARINT) ints[attr->count] = (int64_t)bits;
      else memcpy(&floats[attr->count], &low, sizeof(low));
      attr->count += 1;
    }
  }
  if (type == WEIR_WIRE_VARINT) attr->ints = ints;
  else attr->floats = floats;
  return NULL;
}

static weir_status_t* read_graph(parser_t* p, weir_view_t message, const onnx_graph_t** out_graph);

// Old writers leave the type out: then it is that of the field that is there.
static void guess_type(onnx_attr_t* attr) {
  if (attr->type != ONNX_ATTR_NONE) return;
  if (attr->ints) attr->type = ONNX_ATTR_INTS;
  else if (attr->floats) attr->type = ONNX_ATTR_FLOATS;
  else if (attr->strings.count) attr->type = ONNX_ATTR_STRINGS;
  else if (attr->graph) attr->type = ONNX_ATTR_GRAPH;
  else if (attr->tensor.data) attr->type = ONNX_ATTR_TENSOR;
  else if (attr->s.data) attr->type = ONNX_ATTR_STRING;
  else if (attr->f != 0) attr->type = ONNX_ATTR_FLOAT;
  else attr->type = ONNX_ATTR_INT;
}

static weir_status_t* read_attr(parser_t* p, weir_view_t message, onnx_attr_t* attr) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    switch (reader.field) {
      case ATTR_NAME: attr->name = reader.bytes; break;
      case ATTR_F: attr->f = weir_wire_float(&reader); break;
      case ATTR_I: attr->i = weir_wire_int(&reader); break;
      case ATTR_S: attr->s = reader.bytes; break;
      case ATTR_T: attr->tensor = reader.bytes; break;
      case ATTR_G: WEIR_TRY(read_graph(p, reader.bytes, &attr->graph)); break;
      case ATTR_TYPE: attr->type = (onnx_attr_type_t)reader.value; break;
      case ATTR_SOURCE: attr->source = reader.bytes; break;
      default: break;
    }
  }
  WEIR_TRY(weir_wire_check(&reader, "AttributeProto"));
  WEIR_TRY(read_numbers(p, message, ATTR_INTS, WEIR_WIRE_VARINT, attr));
  if (!attr->ints) WEIR_TRY(read_numbers(p, message, ATTR_FLOATS, WEIR_WIRE_FIXED32, attr));
  WEIR_TRY(read_names(p, message, ATTR_STRINGS, &attr->strings));
  guess_type(attr);
  return NULL;
}

static weir_status_t* read_attrs(parser_t* p, weir_view_t message, uint32_t field,
                                 const onnx_attr_t** out_attrs, int* out_count) {
  onnx_attr_t* attrs = NULL;
  WEIR_TRY(make_array(p, message, field, sizeof(*attrs), &attrs));
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field != field || reader.type != WEIR_WIRE_BYTES) continue;
    WEIR_TRY(read_attr(p, reader.bytes, &attrs[(*out_count)++]));
  }
  *out_attrs = attrs;
  return NULL;
}

// ---- nodes ----

static weir_status_t* read_node(parser_t* p, weir_view_t message, onnx_node_t* node) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == NODE_NAME) node->name = reader.bytes;
    if (reader.field == NODE_OP) node->op = reader.bytes;
    if (reader.field == NODE_DOMAIN) node->domain = reader.bytes;
  }
  WEIR_TRY(weir_wire_check(&reader, "NodeProto"));
  WEIR_TRY(read_names(p, message, NODE_INPUT, &node->inputs));
  WEIR_TRY(read_names(p, message, NODE_OUTPUT, &node->outputs));
  return read_attrs(p, message, NODE_ATTRIBUTE, &node->attrs, &node->attr_count);
}

static weir_status_t* read_nodes(parser_t* p, weir_view_t message, uint32_t field,
                                 const onnx_node_t** out_nodes, int* out_count) {
  onnx_node_t* nodes = NULL;
  WEIR_TRY(make_array(p, message, field, sizeof(*nodes), &nodes));
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field != field || reader.type != WEIR_WIRE_BYTES) continue;
    WEIR_TRY(read_node(p, reader.bytes, &nodes[(*out_count)++]));
  }
  *out_nodes = nodes;
  return NULL;
}

// ---- ports ----

static weir_status_t* read_dims(parser_t* p, weir_view_t shape, onnx_port_t* port) {
  int64_t* dims = NULL;
  WEIR_TRY(make_array(p, shape, SHAPE_DIM, sizeof(*dims), &dims));
  weir_wire_reader_t reader = weir_wire_reader(shape);
  port->rank = 0;
  while (weir_wire_next(&reader)) {
    if (reader.field != SHAPE_DIM || reader.type != WEIR_WIRE_BYTES) continue;
    weir_wire_reader_t dim = weir_wire_reader(reader.bytes);
    dims[port->rank] = -1;
    while (weir_wire_next(&dim)) {
      if (dim.field == DIM_VALUE) dims[port->rank] = WEIR_MAX(weir_wire_int(&dim), -1);
    }
    WEIR_TRY(weir_wire_check(&dim, "TensorShapeProto"));
    port->rank += 1;
  }
  if (port->rank > 254)  // more than any tensor has
    return WEIR_STATUS(INVALID_ARGUMENT, "'%.*s' has %d dimensions", WEIR_VIEW_ARG(port->name),
                       port->rank);
  port->dims = dims;
  return weir_wire_check(&reader, "TensorShapeProto");
}

static weir_status_t* read_tensor_type(parser_t* p, weir_view_t message, onnx_port_t* port) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == TENSOR_TYPE_ELEMENT) {
      port->type = (int)reader.value;
      port->dtype = onnx_dtype((int64_t)reader.value);
    }
    if (reader.field == TENSOR_TYPE_SHAPE) WEIR_TRY(read_dims(p, reader.bytes, port));
  }
  return weir_wire_check(&reader, "TypeProto");
}

static weir_status_t* read_type(parser_t* p, weir_view_t message, onnx_port_t* port) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    port->is_tensor = reader.field == TYPE_TENSOR;
    if (port->is_tensor) WEIR_TRY(read_tensor_type(p, reader.bytes, port));
  }
  return weir_wire_check(&reader, "TypeProto");
}

static weir_status_t* read_ports(parser_t* p, weir_view_t message, uint32_t field,
                                 const onnx_port_t** out_ports, int* out_count) {
  onnx_port_t* ports = NULL;
  WEIR_TRY(make_array(p, message, field, sizeof(*ports), &ports));
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field != field || reader.type != WEIR_WIRE_BYTES) continue;
    onnx_port_t* port = &ports[(*out_count)++];
    *port = (onnx_port_t){.rank = -1, .is_tensor = true};
    weir_wire_reader_t fields = weir_wire_reader(reader.bytes);
    while (weir_wire_next(&fields)) {
      if (fields.field == PORT_NAME) port->name = fields.bytes;
      if (fields.field == PORT_TYPE) WEIR_TRY(read_type(p, fields.bytes, port));
    }
    WEIR_TRY(weir_wire_check(&fields, "ValueInfoProto"));
  }
  *out_ports = ports;
  return NULL;
}

// ---- graphs ----

static weir_status_t* read_initializers(parser_t* p, weir_view_t message, onnx_graph_t* graph) {
  onnx_initializer_t* items = NULL;
  WEIR_TRY(make_array(p, message, GRAPH_INITIALIZER, sizeof(*items), &items));
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == GRAPH_SPARSE_INITIALIZER) graph->has_sparse_initializers = true;
    if (reader.field != GRAPH_INITIALIZER || reader.type != WEIR_WIRE_BYTES) continue;
    onnx_initializer_t* item = &items[graph->initializer_count++];
    item->tensor = reader.bytes;
    weir_wire_reader_t fields = weir_wire_reader(reader.bytes);
    while (weir_wire_next(&fields)) {
      if (fields.field == TENSOR_NAME) item->name = fields.bytes;
    }
    WEIR_TRY(weir_wire_check(&fields, "TensorProto"));
  }
  graph->initializers = items;
  return NULL;
}

static weir_status_t* read_graph(parser_t* p, weir_view_t message, const onnx_graph_t** out_graph) {
  if (p->depth == kMaxDepth)
    return WEIR_STATUS(INVALID_ARGUMENT, "graphs within graphs, more than %d deep", kMaxDepth);
  onnx_graph_t* graph = weir_arena_alloc(p->arena, sizeof(*graph));
  if (!graph) return weir_out_of_memory();
  p->depth += 1;
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == GRAPH_NAME) graph->name = reader.bytes;
  }
  WEIR_TRY(weir_wire_check(&reader, "GraphProto"));
  WEIR_TRY(read_nodes(p, message, GRAPH_NODE, &graph->nodes, &graph->node_count));
  WEIR_TRY(read_initializers(p, message, graph));
  WEIR_TRY(read_ports(p, message, GRAPH_INPUT, &graph->inputs, &graph->input_count));
  WEIR_TRY(read_ports(p, message, GRAPH_OUTPUT, &graph->outputs, &graph->output_count));
  p->depth -= 1;
  *out_graph = graph;
  return NULL;
}

// ---- functions and the model ----

static weir_status_t* read_opsets(parser_t* p, weir_view_t message, uint32_t field,
                                  onnx_opsets_t* out_opsets) {
  onnx_opset_t* items = NULL;
  WEIR_TRY(make_array(p, message, field, sizeof(*items), &items));
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field != field || reader.type != WEIR_WIRE_BYTES) continue;
    weir_wire_reader_t fields = weir_wire_reader(reader.bytes);
    onnx_opset_t* item = &items[out_opsets->count++];
    while (weir_wire_next(&fields)) {
      if (fields.field == OPSET_DOMAIN) item->domain = fields.bytes;
      if (fields.field == OPSET_VERSION) item->version = weir_wire_int(&fields);
    }
    WEIR_TRY(weir_wire_check(&fields, "OperatorSetIdProto"));
  }
  out_opsets->items = items;
  return NULL;
}

static weir_status_t* read_function(parser_t* p, weir_view_t message, onnx_function_t* function) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == FUNCTION_NAME) function->name = reader.bytes;
    if (reader.field == FUNCTION_DOMAIN) function->domain = reader.bytes;
  }
  WEIR_TRY(weir_wire_check(&reader, "FunctionProto"));
  WEIR_TRY(read_names(p, message, FUNCTION_INPUT, &function->inputs));
  WEIR_TRY(read_names(p, message, FUNCTION_OUTPUT, &function->outputs));
  WEIR_TRY(read_attrs(p, message, FUNCTION_DEFAULT, &function->defaults, &function->default_count));
  WEIR_TRY(read_opsets(p, message, FUNCTION_OPSET, &function->opsets));
  return read_nodes(p, message, FUNCTION_NODE, &function->nodes, &function->node_count);
}

static weir_status_t* read_functions(parser_t* p, weir_view_t message, onnx_model_t* model) {
  onnx_function_t* functions = NULL;
  WEIR_TRY(make_array(p, message, MODEL_FUNCTION, sizeof(*functions), &functions));
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field != MODEL_FUNCTION || reader.type != WEIR_WIRE_BYTES) continue;
    WEIR_TRY(read_function(p, reader.bytes, &functions[model->function_count++]));
  }
  model->functions = functions;
  return NULL;
}

weir_status_t* onnx_model_parse(weir_view_t bytes, weir_arena_t* arena, onnx_model_t* out_model) {
  parser_t p = {.arena = arena};
  onnx_model_t model = {0};
  weir_wire_reader_t reader = weir_wire_reader(bytes);
  while (weir_wire_next(&reader)) {
    if (reader.field == MODEL_IR_VERSION) model.ir_version = weir_wire_int(&reader);
    if (reader.field == MODEL_GRAPH) WEIR_TRY(read_graph(&p, reader.bytes, &model.graph));
  }
  WEIR_TRY(weir_wire_check(&reader, "ModelProto"));
  if (!model.graph) return WEIR_STATUS(INVALID_ARGUMENT, "not an ONNX model: it has no graph");
  WEIR_TRY(read_opsets(&p, bytes, MODEL_OPSET, &model.opsets));
  WEIR_TRY(read_functions(&p, bytes, &model));
  *out_model = model;
  return NULL;
}

bool onnx_domain_is_default(weir_view_t domain) {
  return domain.size == 0 || weir_view_is(domain, "ai.onnx");
}

int64_t onnx_opset_version(onnx_opsets_t opsets, weir_view_t domain) {
  for (int i = 0; i < opsets.count; ++i) {
    bool is_default = onnx_domain_is_default(domain);
    bool is_same = is_default ? onnx_domain_is_default(opsets.items[i].domain)
                              : weir_view_equal(opsets.items[i].domain, domain);
    if (is_same) return opsets.items[i].version;
  }
  return 0;
}
