// operation_build.c — TF_OperationDescription: inputs and attributes are gathered, and checked
// against the op when the operation is finished.
#include "tensorflow/operation_build.h"

#include "graph/graph_internal.h"
#include "tensorflow/internal.h"
#include "wire/wire.h"

// The tensors given for one argument of the op.
typedef struct argument_t {
  int first;  // among |edges|
  int count;
  bool is_list;
} argument_t;

struct TF_OperationDescription {
  weir_graph_t* graph;  // owned reference
  weir_arena_t arena;
  weir_tensor_list_t tensors;  // that attributes hold
  const char* op;
  const char* name;
  const char* device;
  argument_t* arguments;
  size_t argument_count, argument_capacity;
  weir_edge_t* edges;
  size_t edge_count, edge_capacity;
  weir_node_t** controls;
  size_t control_count, control_capacity;
  weir_named_attr_t* attrs;
  size_t attr_count, attr_capacity;
  weir_view_t* places;  // colocation requests, "loc:@name"
  size_t place_count, place_capacity;
  weir_status_t* failure;  // the first thing that went wrong; said by finish
};

static void fail(TF_OperationDescription* desc, weir_status_t* take_status) {
  if (desc->failure) weir_status_destroy(take_status);
  else desc->failure = take_status;
}

static const char* keep_text(TF_OperationDescription* desc, const char* text) {
  const char* copy = weir_arena_strndup(&desc->arena, text, strlen(text));
  if (!copy) fail(desc, weir_out_of_memory());
  return copy ? copy : "";
}

TF_OperationDescription* TF_NewOperation(TF_Graph* graph, const char* op_type,
                                         const char* oper_name) {
  TF_OperationDescription* desc = weir_calloc(1, sizeof(*desc));
  if (!desc) return NULL;
  desc->graph = weir_graph_ref(graph->graph);
  desc->op = keep_text(desc, op_type);
  desc->name = keep_text(desc, oper_name);
  desc->device = "";
  return desc;
}

TF_OperationDescription* TF_NewOperationLocked(TF_Graph* graph, const char* op_type,
                                               const char* oper_name) {
  return TF_NewOperation(graph, op_type, oper_name);
}

void TF_SetDevice(TF_OperationDescription* desc, const char* device) {
  desc->device = keep_text(desc, device);
}

// ---- inputs ----

static void add_argument(TF_OperationDescription* desc, const TF_Output* inputs, int count,
                         bool is_list) {
  const bool has_room =
      WEIR_GROW(desc->arguments, desc->argument_capacity, desc->argument_count + 1) &&
      WEIR_GROW(desc->edges, desc->edge_capacity, desc->edge_count + (size_t)count);
  if (!has_room) {
    fail(desc, weir_out_of_memory());
    return;
  }
  desc->arguments[desc->argument_count++] =
      (argument_t){.first = (int)desc->edge_count, .count = count, .is_list = is_list};
  for (int i = 0; i < count; ++i) desc->edges[desc->edge_count++] = tf_edge(inputs[i]);
}

void TF_AddInput(TF_OperationDescription* desc, TF_Output input) {
  add_argument(desc, &input, 1, false);
}

void TF_AddInputList(TF_OperationDescription* desc, const TF_Output* inputs, int num_inputs) {
  add_argument(desc, inputs, num_inputs, true);
}

void TF_AddControlInput(TF_OperationDescription* desc, TF_Operation* input) {
  if (WEIR_GROW(desc->controls, desc->control_capacity, desc->control_count + 1))
    desc->controls[desc->control_count++] = tf_node(input);
  else fail(desc, weir_out_of_memory());
}

// ---- attributes ----

weir_arena_t* tf_description_arena(TF_OperationDescription* desc) { return &desc->arena; }

void tf_description_add(TF_OperationDescription* desc, weir_named_attr_t attr) {
  attr.name = keep_text(desc, attr.name);
  weir_attr_t copy = {0};
  weir_status_t* status = weir_attr_clone(&attr.value, &desc->arena, &desc->tensors, &copy);
  attr.value = copy;
  for (size_t i = 0; !status && i < desc->attr_count; ++i) {
    if (strcmp(desc->attrs[i].name, attr.name)) continue;
    if (weir_attr_equal(&desc->attrs[i].value, &copy)) return;
    weir_strbuf_t text = {0};
    weir_attr_append_text(&desc->attrs[i].value, &text);
    weir_strbuf_puts(&text, " vs. ");
    weir_attr_append_text(&copy, &text);
    status = WEIR_STATUS(INVALID_ARGUMENT, "Inconsistent values for attr '%s' %s", attr.name,
                         text.data ? text.data : "");
    weir_strbuf_free(&text);
  }
  if (!status && !WEIR_GROW(desc->attrs, desc->attr_capacity, desc->attr_count + 1))
    status = weir_out_of_memory();
  if (status) fail(desc, status);
  else desc->attrs[desc->attr_count++] = attr;
}

void tf_description_fail(TF_OperationDescription* desc, weir_status_t* take_status) {
  fail(desc, take_status);
}

weir_status_t* tf_description_parse(TF_OperationDescription* desc, weir_view_t proto,
                                    weir_attr_t* out_value) {
  const char* bytes = weir_arena_strndup(&desc->arena, proto.data, proto.size);
  if (!bytes) return weir_out_of_memory();
  return weir_attr_parse(weir_view(bytes, proto.size), &desc->arena, &desc->tensors, out_value);
}

// ---- colocation ----

static void add_place(TF_OperationDescription* desc, weir_view_t place) {
  const char* text = weir_arena_strndup(&desc->arena, place.data, place.size);
  if (!text || !WEIR_GROW(desc->places, desc->place_capacity, desc->place_count + 1)) {
    fail(desc, weir_out_of_memory());
    return;
  }
  size_t at = 0;  // sorted, each once
  for (; at < desc->place_count; ++at) {
    const weir_view_t other = desc->places[at];
    int order = memcmp(text, other.data, WEIR_MIN(place.size, other.size));
    if (order == 0 && place.size == other.size) return;
    if (order < 0 || (order == 0 && place.size < other.size)) break;
  }
  memmove(desc->places + at + 1, desc->places + at,
          (desc->place_count - at) * sizeof(*desc->places));
  desc->places[at] = weir_view(text, place.size);
  ++desc->place_count;
}

void tf_description_colocate(TF_OperationDescription* desc, const weir_view_t* places,
                             size_t count) {
  desc->place_count = 0;
  for (size_t i = 0; i < count; ++i) add_place(desc, places[i]);
}

void TF_ColocateWith(TF_OperationDescription* desc, TF_Operation* op) {
  const char* place = weir_arena_printf(&desc->arena, "loc:@%s", tf_node(op)->def.name);
  if (place) add_place(desc, weir_view_of(place));
  else fail(desc, weir_out_of_memory());
}

// ---- finishing ----

static bool is_list_arg(const weir_arg_t* arg) { return arg->number_attr || arg->type_list_attr; }

// In the words that TensorFlow's builder has for it.
static weir_status_t* check_arguments(const TF_OperationDescription* desc, const weir_op_t* op) {
  for (size_t i = 0; i < desc->argument_count; ++i) {
    if ((int)i >= op->input_count)
      return WEIR_STATUS(INVALID_ARGUMENT, "More Input() calls than the %d input_args",
                         op->input_count);
    const weir_arg_t* arg = &op->inputs[i];
    if (is_list_arg(arg) && !desc->arguments[i].is_list)
      return WEIR_STATUS(INVALID_ARGUMENT, "Single tensor passed to '%s', expected list",
                         arg->name);
    if (!is_list_arg(arg) && desc->arguments[i].is_list)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "List provided to input '%s' when single Tensor expected", arg->name);
  }
  if ((int)desc->argument_count == op->input_count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%zu inputs specified of %d inputs in Op",
                     desc->argument_count, op->input_count);
}

static weir_status_t* check_edges(const TF_OperationDescription* desc) {
  for (size_t i = 0; i < desc->edge_count; ++i) {
    const weir_edge_t edge = desc->edges[i];
    WEIR_TRY(tf_check_output(desc->graph, tf_output(edge)));
  }
  return NULL;
}

// Lists that inputs make have a length, or types: as attributes, where the op asks for them.
static weir_status_t* add_list_attr(TF_OperationDescription* desc, const weir_arg_t* arg,
                                    const argument_t* given) {
  if (arg->number_attr) {
    tf_description_add(desc, weir_attr_int(arg->number_attr, given->count));
    return NULL;
  }
  weir_dtype_t* types = weir_arena_array(&desc->arena, (size_t)given->count, sizeof(*types));
  if (!types) return weir_out_of_memory();
  for (int i = 0; i < given->count; ++i)
    types[i] = weir_dtype_base(weir_edge_dtype(desc->edges[given->first + i]));
  tf_description_add(desc, weir_attr_types(arg->type_list_attr, types, (size_t)given->count));
  return NULL;
}

static weir_status_t* describe_lists(TF_OperationDescription* desc, const weir_op_t* op) {
  for (size_t i = 0; i < desc->argument_count; ++i) {
    if (desc->arguments[i].is_list)
      WEIR_TRY(add_list_attr(desc, &op->inputs[i], &desc->arguments[i]));
  }
  weir_status_t* failure = desc->failure;
  desc->failure = NULL;
  return failure;
}

static weir_status_t* at_op(weir_status_t* take_status, const TF_OperationDescription* desc,
                            const weir_op_t* op) {
  if (!take_status) return NULL;
  weir_strbuf_t text = {0};
  weir_op_append_summary(op, &text);
  weir_status_t* status = weir_status_create(
      weir_status_code(take_status), __FILE__, __LINE__, "%s while building NodeDef '%s' using %s",
      weir_status_message(take_status), desc->name, text.data ? text.data : op->name);
  weir_strbuf_free(&text);
  weir_status_destroy(take_status);
  return status;
}

static weir_status_t* add_node(TF_OperationDescription* desc, weir_node_t** out_node) {
  weir_graph_t* graph = desc->graph;
  if (weir_graph_find(graph, weir_view_of(desc->name)))
    return WEIR_STATUS(INVALID_ARGUMENT, "Duplicate node name in graph: '%s'", desc->name);
  const weir_op_t* op = weir_graph_find_op(graph, desc->op);
  if (!op) return WEIR_STATUS(INVALID_ARGUMENT, "Op type not registered '%s'", desc->op);
  weir_status_t* failure = check_arguments(desc, op);
  if (!failure) failure = check_edges(desc);
  if (!failure) failure = describe_lists(desc, op);
  WEIR_TRY(at_op(failure, desc, op));
  if (desc->place_count)
    tf_description_add(desc, weir_attr_strings("_class", desc->places, desc->place_count));
  weir_node_params_t params = {
      .op = desc->op,
      .name = desc->name,
      .any_name = true,
      .device = desc->device,
      .inputs = {.items = desc->edges, .count = (int)desc->edge_count},
      .control_inputs = desc->controls,
      .control_count = (int)desc->control_count,
      .attrs = {.items = desc->attrs, .count = desc->attr_count},
  };
  return weir_graph_add(graph, &params, out_node);
}

static void destroy(TF_OperationDescription* desc) {
  weir_graph_unref(desc->graph);
  weir_tensor_list_free(&desc->tensors);
  weir_free(desc->arguments);
  weir_free(desc->edges);
  weir_free(desc->controls);
  weir_free(desc->attrs);
  weir_free(desc->places);
  weir_arena_free(&desc->arena);
  weir_free(desc);
}

TF_Operation* TF_FinishOperation(TF_OperationDescription* desc, TF_Status* status) {
  weir_node_t* node = NULL;
  weir_status_t* result = desc->failure;
  desc->failure = NULL;
  weir_mutex_lock(&desc->graph->mu);
  if (!result) result = add_node(desc, &node);
  weir_mutex_unlock(&desc->graph->mu);
  weir_status_destroy(desc->failure);
  destroy(desc);
  return tf_status_take(status, result) ? tf_operation(node) : NULL;
}

TF_Operation* TF_FinishOperationLocked(TF_OperationDescription* desc, TF_Status* status) {
  return TF_FinishOperation(desc, status);
}
