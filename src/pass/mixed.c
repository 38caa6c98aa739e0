// mixed.c — Automatic mixed precision: products and convolutions of floats compute in 16 bits, and
// so does what is between them; all else stays in float, with casts where the two meet.
//
// What an op is fit for, its definition says (weir_mixed_t in op/op.h). As in TensorFlow, ALLOW
// nodes are painted, then INFER and CLEAR nodes on a way from one to another, then CLEAR nodes
// beside painted ones; but none that a DENY node leads to by way of others that count. A node that
// has no kernel for the type on its device, or hands values round in a loop or past a branch, is
// not painted.
//
// A painted node keeps its name and place; its type attribute changes. Then every input whose type
// is not that of the edge gets a cast, one for all readers on a device. A constant is converted
// instead, so that it stays free of any loop. What was read of a reference variable is cast when
// its reader would have looked at it: what is ordered after an effect has a cast of its own, which
// waits for all that the reader waits for.
#include "base/string.h"
#include "device/device.h"
#include "pass/rewrite.h"
#include "tensor/cast.h"

// By node id.
enum {
  MOVING = 1 << 0,   // its outputs may be memory of a reference variable
  LATE = 1 << 1,     // it is ordered after an effect
  DENYING = 1 << 2,  // CLEAR, and a DENY or INFER node reads it, by way of others like it
  DENIED = 1 << 3,   // DENY, or reached from one
  BETWEEN = 1 << 4,  // reached from an ALLOW node
  PAINTED = 1 << 5,  // computes in 16 bits
};

typedef struct cast_t {
  int index;  // of the output that is cast
  weir_dtype_t type;
  const char* device;
  weir_edge_t result;
  struct cast_t* next;
} cast_t;

typedef struct mixed_t {
  weir_rewrite_t rewrite;
  weir_dtype_t type;
  const weir_node_def_t** narrow;  // by node id: the node in 16 bits; NULL: there is no such thing
  uint8_t* marks;
  cast_t** casts;  // by node id: of its outputs
} mixed_t;

weir_status_t* weir_mixed_parse(const char* text, weir_dtype_t* out_type) {
  weir_view_t name = weir_view_of(text);
  *out_type = WEIR_DTYPE_INVALID;
  if (!name.size || weir_view_is(name, "off")) return NULL;
  if (weir_view_is(name, "bf16") || weir_view_is(name, "bfloat16")) *out_type = WEIR_DTYPE_BFLOAT16;
  if (weir_view_is(name, "half") || weir_view_is(name, "fp16") || weir_view_is(name, "float16"))
    *out_type = WEIR_DTYPE_HALF;
  if (*out_type != WEIR_DTYPE_INVALID) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Mixed precision is 'bf16' or 'half', not '%s'", text);
}

// ---- what a node would be in 16 bits ----

static weir_mixed_t trait_of(const weir_node_t* node) {
  const weir_op_t* op = node->def.op;
  return op && op->def ? op->def->mixed : WEIR_MIXED_NONE;
}

// The type attribute of the first input that is of type float; NULL: none is, by an attribute.
static const char* float_attr(const weir_node_def_t* def) {
  for (int i = 0; i < def->op->input_count; ++i) {
    const char* name = def->op->inputs[i].type_attr;
    const weir_attr_t* value = name ? weir_attrs_find(def->attrs, name) : NULL;
    if (value && value->kind == WEIR_ATTR_TYPE && value->u.type == WEIR_DTYPE_FLOAT) return name;
  }
  return NULL;
}

static bool has_kernel(const weir_node_def_t* def, const char* device_type) {
  return weir_op_kernel(def, device_type) != NULL;
}

// Whether the device of |node| has code for |narrow|. A kind of device that has none for the node
// as it is borrows the CPU's.
static bool can_compute(const weir_node_t* node, const weir_node_def_t* narrow) {
  weir_device_name_t name;
  weir_status_t* status = weir_device_name_parse(weir_view_of(node->def.device), &name);
  bool is_own = !status && *name.type && has_kernel(&node->def, name.type);
  weir_status_destroy(status);
  return has_kernel(narrow, is_own ? name.type : WEIR_DEVICE_CPU);
}

static weir_status_t* make_narrow(mixed_t* m, const weir_node_t* node, const char* attr,
                                  weir_node_def_t* out) {
  weir_arena_t* arena = &node->graph->arena;
  size_t count = node->def.attrs.count;
  weir_named_attr_t* attrs = weir_arena_array(arena, count, sizeof(*attrs));
  if (!attrs) return weir_out_of_memory();
  for (size_t i = 0; i < count; ++i) {
    attrs[i] = node->def.attrs.items[i];
    if (strcmp(attrs[i].name, attr) == 0) attrs[i] = weir_attr_type(attrs[i].name, m->type);
  }
  *out = node->def;
  out->attrs = (weir_attrs_t){.items = attrs, .count = count};
  WEIR_TRY(weir_op_arg_types(out->op, out->name, out->attrs, false, arena, &out->input_types,
                             &out->input_count));
  return weir_op_arg_types(out->op, out->name, out->attrs, true, arena, &out->output_types,
                           &out->output_count);
}

// How many inputs may be memory of a reference variable.
static int count_moving(const mixed_t* m, const weir_node_t* node) {
  int count = 0;
  for (int i = 0; i < node->def.input_count; ++i)
    count += (m->marks[node->inputs[i].node->id] & MOVING) != 0;
  return count;
}

// Whether casts of those inputs can wait for all others that |node| waits for.
static bool can_be_awaited(const mixed_t* m, const weir_node_t* node, int moving_count) {
  for (int i = 0; i < node->def.input_count; ++i) {
    const weir_node_t* source = node->inputs[i].node;
    bool is_only_moving = moving_count == 1 && m->marks[source->id] & MOVING;
    if (!is_only_moving && !weir_rewrite_is_anchor(source)) return false;
  }
  return true;
}

// Of the nodes that make up control flow only those that bring a value into a loop once and for all
// change, so that its cast is outside.
static bool has_good_role(const weir_node_t* node) {
  weir_role_t role = weir_node_role(node);
  if (role != WEIR_ROLE_ENTER) return role == WEIR_ROLE_NONE;
  const weir_attr_t* is_constant = weir_attrs_find(node->def.attrs, "is_constant");
  return is_constant && is_constant->kind == WEIR_ATTR_BOOL && is_constant->u.b;
}

static bool can_change(const mixed_t* m, const weir_node_t* node) {
  const weir_op_t* op = node->def.op;
  weir_mixed_t trait = trait_of(node);
  if (trait == WEIR_MIXED_NONE || trait == WEIR_MIXED_DENY || !has_good_role(node) ||
      (op->flags & WEIR_OP_STATEFUL) || !weir_rewrite_is_plain(node)) {
    return false;
  }
  // A view of a variable is one: who reads it looks at the variable.
  int moving_count = count_moving(m, node);
  if (!moving_count) return true;
  bool is_late = m->marks[node->id] & LATE;
  return !weir_node_may_share(node) && (!is_late || can_be_awaited(m, node, moving_count));
}

static weir_status_t* find_narrow(mixed_t* m, const weir_node_t* node) {
  const char* attr = can_change(m, node) ? float_attr(&node->def) : NULL;
  const weir_attr_def_t* type = attr ? weir_op_attr(node->def.op, attr) : NULL;
  if (!type || (type->allowed_types && !(type->allowed_types >> m->type & 1))) return NULL;
  weir_node_def_t* narrow = weir_arena_alloc(&m->rewrite.arena, sizeof(*narrow));
  if (!narrow) return weir_out_of_memory();
  WEIR_TRY(make_narrow(m, node, attr, narrow));
  if (can_compute(node, narrow)) m->narrow[node->id] = narrow;
  return NULL;
}

// ---- state ----

static uint8_t state_marks(const mixed_t* m, const weir_pass_ctx_t* ctx, const weir_node_t* node) {
  uint8_t marks = 0;
  bool may_share = weir_node_may_share(node);
  if (weir_node_role(node) == WEIR_ROLE_ARG && ctx->has_moving_args) marks |= MOVING;
  for (int i = 0; i < node->def.input_count; ++i) {
    const weir_node_t* source = node->inputs[i].node;
    bool is_ref = weir_dtype_is_ref(weir_edge_dtype(node->inputs[i]));
    if (may_share && (is_ref || m->marks[source->id] & MOVING)) marks |= MOVING;
    if (m->marks[source->id] & LATE || weir_rewrite_has_effect(source)) marks |= LATE;
  }
  for (int i = 0; i < node->control_count; ++i) {
    const weir_node_t* source = node->control_inputs[i];
    if (m->marks[source->id] & LATE || weir_rewrite_has_effect(source)) marks |= LATE;
  }
  return marks;
}

static void mark_state(mixed_t* m, const weir_pass_ctx_t* ctx) {
  size_t count = m->rewrite.count;
  for (size_t i = 0; i < 2 * count; ++i) {  // twice: for what a loop carries round
    const weir_node_t* node = m->rewrite.order[i % count];
    m->marks[node->id] = state_marks(m, ctx, node);
  }
}

// ---- painting ----

static bool takes_narrow(const mixed_t* m, const weir_node_t* node, int input) {
  const weir_node_def_t* narrow = m->narrow[node->id];
  return narrow && narrow->input_types[input] != node->def.input_types[input];
}

static bool gives_narrow(const mixed_t* m, weir_edge_t edge) {
  const weir_node_def_t* narrow = m->narrow[edge.node->id];
  return narrow && narrow->output_types[edge.index] != edge.node->def.output_types[edge.index];
}

// Whether the value of input |input| is in 16 bits if both of its ends are.
static bool is_link(const mixed_t* m, const weir_node_t* node, int input) {
  return takes_narrow(m, node, input) && gives_narrow(m, node->inputs[input]);
}

static bool is_marked(const mixed_t* m, const weir_node_t* node, uint8_t marks) {
  return m->marks[node->id] & marks;
}

static bool has_linked_source(const mixed_t* m, const weir_node_t* node, uint8_t marks) {
  for (int i = 0; i < node->def.input_count; ++i) {
    if (is_link(m, node, i) && is_marked(m, node->inputs[i].node, marks)) return true;
  }
  return false;
}

// Tells the CLEAR nodes that |node| reads that what a DENY node gives them must not lose bits.
static void mark_denying(mixed_t* m, const weir_node_t* node) {
  weir_mixed_t trait = trait_of(node);
  bool is_strict = trait == WEIR_MIXED_DENY;
  if (!is_strict && trait != WEIR_MIXED_INFER && !is_marked(m, node, DENYING)) return;
  for (int i = 0; i < node->def.input_count; ++i) {
    weir_node_t* source = node->inputs[i].node;
    bool is_read = is_strict || takes_narrow(m, node, i);
    if (is_read && trait_of(source) == WEIR_MIXED_CLEAR && gives_narrow(m, node->inputs[i]))
      m->marks[source->id] |= DENYING;
  }
}

static void mark_denied(mixed_t* m, const weir_node_t* node) {
  weir_mixed_t trait = trait_of(node);
  bool is_denied = trait == WEIR_MIXED_DENY;
  bool can_be = trait == WEIR_MIXED_INFER || is_marked(m, node, DENYING);
  for (int i = 0; i < node->def.input_count && can_be && !is_denied; ++i)
    is_denied = takes_narrow(m, node, i) && is_marked(m, node->inputs[i].node, DENIED);
  if (is_denied) m->marks[node->id] |= DENIED;
}

static void mark_between(mixed_t* m, const weir_node_t* node) {
  if (!m->narrow[node->id]) return;
  if (trait_of(node) == WEIR_MIXED_ALLOW) m->marks[node->id] |= PAINTED;
  else if (!is_marked(m, node, DENIED) && has_linked_source(m, node, PAINTED | BETWEEN))
    m->marks[node->id] |= BETWEEN;
}

static bool paint(mixed_t* m, const weir_node_t* node) {
  bool is_new = !is_marked(m, node, PAINTED);
  m->marks[node->id] |= PAINTED;
  return is_new;
}

static bool is_clear(const mixed_t* m, const weir_node_t* node) {
  return m->narrow[node->id] && trait_of(node) == WEIR_MIXED_CLEAR && !is_marked(m, node, DENIED);
}

static void paint_between(mixed_t* m, const weir_node_t* node) {
  for (int i = 0; i < node->def.input_count && is_marked(m, node, PAINTED); ++i) {
    weir_node_t* source = node->inputs[i].node;
    if (is_link(m, node, i) && is_marked(m, source, BETWEEN)) paint(m, source);
  }
}

static bool paint_clear_after(mixed_t* m, const weir_node_t* node) {
  return is_clear(m, node) && has_linked_source(m, node, PAINTED) && paint(m, node);
}

static bool paint_clear_before(mixed_t* m, const weir_node_t* node) {
  bool has_changed = false;
  for (int i = 0; i < node->def.input_count && is_marked(m, node, PAINTED); ++i) {
    weir_node_t* source = node->inputs[i].node;
    if (is_link(m, node, i) && is_clear(m, source)) has_changed = paint(m, source) || has_changed;
  }
  return has_changed;
}

static void paint_all(mixed_t* m, const bool* is_live) {
  size_t count = m->rewrite.count;
  weir_node_t** order = m->rewrite.order;
  for (size_t i = 0; i < count; ++i) {
    if (!is_live[order[i]->id]) m->narrow[order[i]->id] = NULL;
  }
  for (size_t i = count; i-- > 0;) mark_denying(m, order[i]);
  for (size_t i = 0; i < count; ++i) mark_denied(m, order[i]);
  for (size_t i = 0; i < count; ++i) mark_between(m, order[i]);
  for (size_t i = count; i-- > 0;) paint_between(m, order[i]);
  bool has_changed = true;
  while (has_changed) {
    has_changed = false;
    for (size_t i = 0; i < count; ++i) has_changed |= paint_clear_after(m, order[i]);
    for (size_t i = count; i-- > 0;) has_changed |= paint_clear_before(m, order[i]);
  }
}

// ---- casts ----

static weir_status_t* convert(mixed_t* m, weir_edge_t edge, weir_dtype_t type,
                              weir_edge_t* out_edge) {
  const weir_node_t* node = edge.node;
  const weir_tensor_t* value = weir_attrs_tensor(node->def.attrs, "value");
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_tensor_create(type, value->rank, value->dims, &tensor));
  weir_node_params_t params = {
      .op = "Const",
      .unique_name = true,
      .device = node->def.device,
      .attrs = WEIR_ATTRS(weir_attr_type("dtype", type), weir_attr_tensor("value", tensor))};
  weir_status_t* status =
      weir_cast_elements(type, weir_tensor_data(tensor), weir_tensor_type(value),
                         WEIR_TENSOR_DATA(value, void), weir_tensor_count(value));
  params.name =
      weir_arena_printf(&m->rewrite.arena, "%s_%s", node->def.name, weir_dtype_name(type));
  if (!status && !params.name) status = weir_out_of_memory();
  if (!status) status = weir_graph_add(node->graph, &params, &out_edge->node);
  weir_tensor_release(tensor);
  return status;
}

static weir_status_t* add_cast(mixed_t* m, weir_edge_t edge, weir_dtype_t type, const char* device,
                               weir_edge_t* out_edge) {
  out_edge->index = 0;
  if (weir_node_is_free_const(edge.node)) return convert(m, edge, type, out_edge);
  weir_node_params_t params = {
      .op = "Cast",
      .name =
          weir_arena_printf(&m->rewrite.arena, "%s_%s", edge.node->def.name, weir_dtype_name(type)),
      .unique_name = true,
      .device = device,
      .inputs = WEIR_EDGES(edge),
      .attrs = WEIR_ATTRS(weir_attr_type("DstT", type))};
  if (!params.name) return weir_out_of_memory();
  return weir_graph_add(edge.node->graph, &params, &out_edge->node);
}

// The cast that all readers of |edge| on |device| share.
static weir_status_t* find_cast(mixed_t* m, weir_edge_t edge, weir_dtype_t type, const char* device,
                                weir_edge_t* out_edge) {
  cast_t** list = &m->casts[edge.node->id];
  for (cast_t* cast = *list; cast; cast = cast->next) {
    if (cast->index != edge.index || cast->type != type || strcmp(cast->device, device)) continue;
    *out_edge = cast->result;
    return NULL;
  }
  cast_t* cast = weir_arena_alloc(&m->rewrite.arena, sizeof(*cast));
  if (!cast) return weir_out_of_memory();
  *cast = (cast_t){.index = edge.index, .type = type, .device = device, .next = *list};
  WEIR_TRY(add_cast(m, edge, type, device, &cast->result));
  *list = cast;
  *out_edge = cast->result;
  return NULL;
}

// A cast that runs when |node| could have run. |sources| are its inputs as they were.
static weir_status_t* add_late_cast(mixed_t* m, const weir_node_t* node, const weir_edge_t* sources,
                                    int input, weir_edge_t* out_edge) {
  weir_dtype_t type = node->def.input_types[input];
  WEIR_TRY(add_cast(m, sources[input], type, node->def.device, out_edge));
  for (int i = 0; i < node->def.input_count; ++i) {
    if (i != input && !weir_node_is_free_const(sources[i].node))
      WEIR_TRY(weir_graph_add_control(out_edge->node, sources[i].node));
  }
  for (int i = 0; i < node->control_count; ++i)
    WEIR_TRY(weir_graph_add_control(out_edge->node, node->control_inputs[i]));
  return NULL;
}

// Casts the inputs of |node| that do not come in the type it takes.
static weir_status_t* cast_inputs(mixed_t* m, weir_node_t* node) {
  size_t count = (size_t)node->def.input_count;
  weir_edge_t* sources = NULL;  // copied at the first that is cast
  for (int i = 0; i < node->def.input_count; ++i) {
    weir_edge_t edge = node->inputs[i];
    weir_dtype_t type = node->def.input_types[i];
    if (weir_dtype_base(weir_edge_dtype(edge)) == weir_dtype_base(type)) continue;
    if (!sources) {
      sources = weir_arena_array(&m->rewrite.arena, count, sizeof(*sources));
      if (!sources) return weir_out_of_memory();
      memcpy(sources, node->inputs, count * sizeof(*sources));
    }
    bool is_late = is_marked(m, edge.node, MOVING) && is_marked(m, node, LATE);
    weir_edge_t cast = WEIR_NO_EDGE;
    if (is_late) WEIR_TRY(add_late_cast(m, node, sources, i, &cast));
    else WEIR_TRY(find_cast(m, edge, type, node->def.device, &cast));
    WEIR_TRY(weir_graph_set_input(node, i, cast));
  }
  return NULL;
}

// ---- the pass ----

static weir_status_t* init(mixed_t* m, const weir_pass_ctx_t* ctx) {
  WEIR_TRY(weir_rewrite_init(&m->rewrite, ctx->graph));
  size_t count = m->rewrite.count + 1;
  weir_arena_t* arena = &m->rewrite.arena;
  m->narrow = weir_arena_array(arena, count, sizeof(*m->narrow));
  m->marks = weir_arena_array(arena, count, sizeof(*m->marks));
  m->casts = weir_arena_array(arena, count, sizeof(*m->casts));
  return m->narrow && m->marks && m->casts ? NULL : weir_out_of_memory();
}

static weir_status_t* run(mixed_t* m, const weir_pass_ctx_t* ctx) {
  bool* is_live = NULL;
  size_t count = m->rewrite.count;
  weir_node_t** order = m->rewrite.order;
  WEIR_TRY(weir_rewrite_mark_live(ctx, &m->rewrite.arena, &is_live));
  mark_state(m, ctx);
  for (size_t i = 0; i < count; ++i) WEIR_TRY(find_narrow(m, order[i]));
  paint_all(m, is_live);
  for (size_t i = 0; i < count; ++i) {
    if (is_marked(m, order[i], PAINTED)) order[i]->def = *m->narrow[order[i]->id];
  }
  for (size_t i = 0; i < count; ++i) WEIR_TRY(cast_inputs(m, order[i]));
  return NULL;
}

weir_status_t* weir_pass_mixed(weir_pass_ctx_t* ctx) {
  if (ctx->mixed == WEIR_DTYPE_INVALID) return NULL;
  mixed_t m = {.type = ctx->mixed};
  weir_status_t* status = init(&m, ctx);
  if (!status) status = run(&m, ctx);
  weir_rewrite_free(&m.rewrite);
  return status;
}
