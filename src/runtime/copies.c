// copies.c — Walks over all edges; where the memories of its ends differ, the reader gets a copy.
#include "runtime/copies.h"

#include "op/kernel.h"

enum { HOST = -1 };  // a memory is the host's or a device's, by its ordinal

typedef struct copies_t {
  const weir_runtime_t* runtime;
  weir_graph_t* graph;
  weir_arena_t* arena;
  int* device_of;  // by node id
  size_t first_new;
  weir_edge_t** made;  // by node id and output, for each memory: the copy there; NULL: none yet
} copies_t;

static weir_status_t* find_kernel(const copies_t* c, const weir_node_t* node,
                                  const weir_kernel_def_t** out_kernel) {
  weir_role_t role = weir_node_role(node);
  *out_kernel = NULL;
  if (role == WEIR_ROLE_ARG || role == WEIR_ROLE_RETVAL || !node->def.op) return NULL;
  const weir_device_t* device = c->runtime->devices[c->device_of[node->id]];
  return weir_op_find_kernel(&node->def, device->kernel_type, out_kernel);
}

// Whether it may hold tensors in the memory of the node's device. Other tasks are sent what the
// host can read.
static bool holds_tensors(const weir_node_t* node, int i, bool is_output) {
  weir_dtype_t dtype = is_output ? node->def.output_types[i] : node->def.input_types[i];
  weir_role_t role = weir_node_role(node);
  return weir_dtype_base(dtype) == WEIR_DTYPE_VARIANT && role != WEIR_ROLE_SEND &&
         role != WEIR_ROLE_RECV;
}

// Where a node's input, or output, |i| is; of variants, where the tensors that they hold are.
static weir_status_t* memory_of(const copies_t* c, const weir_node_t* node, int i, bool is_output,
                                int* out_memory) {
  const weir_kernel_def_t* kernel = NULL;
  int ordinal = c->device_of[node->id];
  *out_memory = HOST;
  if (weir_device_is_host(c->runtime->devices[ordinal])) return NULL;
  WEIR_TRY(find_kernel(c, node, &kernel));
  if (!kernel) return NULL;
  bool is_host = weir_kernel_is_host_arg(&node->def, kernel, is_output, i);
  if (!is_host || holds_tensors(node, i, is_output)) *out_memory = ordinal;
  return NULL;
}

// The slots of |edge|: one for the host, one for each device.
static weir_edge_t* slots_of(copies_t* c, weir_edge_t edge) {
  size_t width = (size_t)c->runtime->device_count + 1;
  weir_edge_t** made = &c->made[edge.node->id];
  size_t count = (size_t)edge.node->def.output_count * width;
  if (!*made) *made = weir_arena_array(c->arena, count, sizeof(**made));
  return *made ? *made + (size_t)edge.index * width : NULL;
}

// |op| is the copy, on the device of |ordinal|.
static weir_status_t* add_copy(copies_t* c, weir_edge_t source, const char* op, int ordinal,
                               weir_edge_t* out_edge) {
  weir_dtype_t dtype = weir_dtype_base(weir_edge_dtype(source));
  const char* name = weir_arena_printf(&c->graph->arena, "%s/copy", source.node->def.name);
  if (!name) return weir_out_of_memory();
  weir_node_params_t params = {.op = op,
                               .name = name,
                               .unique_name = true,
                               .device = c->runtime->devices[ordinal]->name,
                               .inputs = {.items = &source, .count = 1},
                               .attrs = WEIR_ATTRS(weir_attr_type("T", dtype))};
  weir_node_t* node = NULL;
  WEIR_TRY(weir_graph_add(c->graph, &params, &node));
  c->device_of[node->id] = ordinal;
  *out_edge = (weir_edge_t){.node = node, .index = 0};
  return NULL;
}

static bool are_peers(const copies_t* c, int from, int to) {
  weir_device_t* const* devices = c->runtime->devices;
  return from != HOST && to != HOST && weir_device_is_peer(devices[to], devices[from]);
}

// Readers of a variable do not share a copy: each sees it at a time of its own.
static weir_status_t* copy_reference(copies_t* c, weir_edge_t source, int from, int to,
                                     weir_edge_t* out_edge) {
  if (are_peers(c, from, to)) return add_copy(c, source, "_CopyFromPeer", to, out_edge);
  *out_edge = source;
  if (from != HOST) WEIR_TRY(add_copy(c, source, "_CopyToHost", from, out_edge));
  return to != HOST ? add_copy(c, *out_edge, "_CopyToDevice", to, out_edge) : NULL;
}

static weir_status_t* copy_to(copies_t* c, weir_edge_t source, int from, int to,
                              weir_edge_t* out_edge) {
  if (weir_dtype_is_ref(weir_edge_dtype(source)))
    return copy_reference(c, source, from, to, out_edge);
  // A constant is bound to its copy, as to any other reader, where the copy wants it.
  if (to != HOST && weir_node_is_free_const(source.node)) from = HOST;
  weir_edge_t* slots = slots_of(c, source);
  if (!slots) return weir_out_of_memory();
  weir_edge_t* made = &slots[to + 1];  // the host's is the first
  bool is_direct = from == HOST || to == HOST || are_peers(c, from, to);
  const char* op = to == HOST ? "_CopyToHost" : from == HOST ? "_CopyToDevice" : "_CopyFromPeer";
  if (!made->node && is_direct) {
    WEIR_TRY(add_copy(c, source, op, to == HOST ? from : to, made));
  } else if (!made->node) {
    if (!slots[0].node) WEIR_TRY(add_copy(c, source, "_CopyToHost", from, &slots[0]));
    WEIR_TRY(add_copy(c, slots[0], "_CopyToDevice", to, made));
  }
  *out_edge = *made;
  return NULL;
}

// Results are copied at the step's end, all at once, where the device can do that.
static bool is_collected(const copies_t* c, const weir_node_t* node, weir_edge_t edge, int from) {
  return weir_node_role(node) == WEIR_ROLE_RETVAL && from != HOST &&
         c->runtime->devices[from]->vtable->collect &&
         weir_dtype_is_plain(weir_dtype_base(weir_edge_dtype(edge)));
}

// Whether the kernel reads the memory of its device's peers, by those themselves.
static weir_status_t* takes_peers(const copies_t* c, const weir_node_t* node, int from, int to,
                                  bool* out_takes) {
  const weir_kernel_def_t* kernel = NULL;
  *out_takes = false;
  if (from == HOST || to == HOST || !are_peers(c, from, to)) return NULL;
  WEIR_TRY(find_kernel(c, node, &kernel));
  *out_takes = kernel && kernel->takes_peers;
  return NULL;
}

// A reference stays with its variable, and so do its readers.
static weir_status_t* visit_input(copies_t* c, weir_node_t* node, int i) {
  weir_edge_t edge = node->inputs[i];
  bool is_bound = weir_node_is_free_const(edge.node) && weir_node_role(node) != WEIR_ROLE_MERGE;
  if (is_bound || weir_dtype_is_ref(node->def.input_types[i])) return NULL;
  int from = HOST, to = HOST;
  WEIR_TRY(memory_of(c, edge.node, edge.index, true, &from));
  WEIR_TRY(memory_of(c, node, i, false, &to));
  bool stays = false;
  WEIR_TRY(takes_peers(c, node, from, to, &stays));
  if (from == to || stays || is_collected(c, node, edge, from)) return NULL;
  weir_edge_t copy = {.node = NULL};
  WEIR_TRY(copy_to(c, edge, from, to, &copy));
  return weir_graph_set_input(node, i, copy);
}

// The copy by which |node| reads a variable in another memory; NULL: input |i| is not read so.
static weir_node_t* find_read(const copies_t* c, const weir_node_t* node, int i) {
  weir_node_t* read = NULL;
  weir_node_t* at = node->inputs[i].node;
  for (; (size_t)at->id >= c->first_new; at = at->inputs[0].node) read = at;
  return read && weir_dtype_is_ref(weir_edge_dtype(read->inputs[0])) ? read : NULL;
}

// A reader sees the variable as it is when all else that it waits for has come, so the copy waits
// for that, too.
static weir_status_t* delay_read(const copies_t* c, const weir_node_t* node, weir_node_t* read) {
  for (int i = 0; i < node->def.input_count; ++i) {
    weir_node_t* other = node->inputs[i].node;
    if (!find_read(c, node, i) && !weir_node_is_free_const(other))
      WEIR_TRY(weir_graph_add_control(read, other));
  }
  for (int i = 0; i < node->control_count; ++i)
    WEIR_TRY(weir_graph_add_control(read, node->control_inputs[i]));
  return NULL;
}

static weir_status_t* delay_reads(const copies_t* c, const weir_node_t* node) {
  if (weir_node_role(node) == WEIR_ROLE_MERGE) return NULL;  // which does not wait for all
  for (int i = 0; i < node->def.input_count; ++i) {
    weir_node_t* read = find_read(c, node, i);
    if (read) WEIR_TRY(delay_read(c, node, read));
  }
  return NULL;
}

static weir_status_t* init(copies_t* c, int* const* device_of) {
  size_t old = c->graph->node_count, count = old;
  for (size_t i = 0; i < old; ++i) {  // at most two copies an input
    count += 2 * (size_t)c->graph->nodes[i]->def.input_count;
  }
  c->first_new = old;
  c->device_of = weir_arena_array(c->arena, count + 1, sizeof(*c->device_of));
  c->made = weir_arena_array(c->arena, old + 1, sizeof(*c->made));
  if (!c->device_of || !c->made) return weir_out_of_memory();
  memcpy(c->device_of, *device_of, old * sizeof(**device_of));
  return NULL;
}

weir_status_t* weir_add_copies(const weir_runtime_t* runtime, weir_graph_t* graph,
                               weir_arena_t* arena, int** device_of) {
  copies_t c = {.runtime = runtime, .graph = graph, .arena = arena};
  WEIR_TRY(init(&c, device_of));
  for (size_t i = 0; i < c.first_new; ++i) {
    for (int k = 0; k < graph->nodes[i]->def.input_count; ++k)
      WEIR_TRY(visit_input(&c, graph->nodes[i], k));
    WEIR_TRY(delay_reads(&c, graph->nodes[i]));
  }
  *device_of = c.device_of;
  return NULL;
}
