// control.c — Control-flow contexts of scopes: values from outside a loop or branch are captured as
// nodes are added.
#include "api/control.h"

#include "eager/frame.h"

static bool is_free(weir_edge_t edge) { return weir_node_is_free_const(edge.node); }

// Nodes of another graph are passed on as they are: the graph refuses them, and says of which node.
static bool is_ours(const weir_scope_root_t* root, const weir_node_t* node) {
  return node && node->graph == root->graph;
}

static weir_control_t* owner_of(const weir_scope_root_t* root, const weir_node_t* node) {
  return (size_t)node->id < root->control_capacity ? root->controls[node->id] : NULL;
}

void weir_control_note(weir_scope_root_t* root, const weir_node_t* node, weir_control_t* control) {
  size_t needed = (size_t)node->id + 1;
  if (!control && needed > root->control_capacity) return;
  size_t before = root->control_capacity;
  if (needed > before) {
    if (!WEIR_GROW(root->controls, root->control_capacity, needed)) {
      if (!root->status) root->status = weir_out_of_memory();
      return;
    }
    memset(root->controls + before, 0, sizeof(*root->controls) * (root->control_capacity - before));
  }
  root->controls[node->id] = control;
}

// ---- values ----

static bool owns(const weir_scope_root_t* root, const weir_control_t* control, weir_edge_t edge) {
  const weir_control_t* owner = owner_of(root, edge.node);
  if (owner == control) return true;
  return control && owner && control->twin == owner && edge.index == control->side &&
         weir_node_role(edge.node) == WEIR_ROLE_SWITCH;
}

bool weir_control_owns(const weir_scope_t* scope, weir_edge_t edge) {
  return owns(scope->root, scope->control, edge);
}

static weir_edge_t enter(weir_control_t* frame, weir_edge_t value) {
  bool is_ref = weir_edge_dtype(value) != weir_dtype_base(weir_edge_dtype(value));
  weir_named_attr_t attrs[] = {weir_attr_string("frame_name", frame->frame_name),
                               weir_attr_bool("is_constant", true),
                               weir_attr_int("parallel_iterations", frame->parallel_iterations)};
  weir_node_t* node =
      weir_scope_add(frame->outside, is_ref ? "RefEnter" : "Enter", NULL, WEIR_EDGES(value),
                     (weir_attrs_t){.items = attrs, .count = WEIR_COUNT_OF(attrs)});
  if (node) weir_control_note(frame->outside->root, node, frame);
  return weir_scope_first(node);
}

static weir_edge_t split(weir_control_t* branch, weir_edge_t value) {
  bool is_ref = weir_edge_dtype(value) != weir_dtype_base(weir_edge_dtype(value));
  weir_node_t* node = weir_scope_add(branch->outside, is_ref ? "RefSwitch" : "Switch", NULL,
                                     WEIR_EDGES(value, branch->pred), WEIR_NO_ATTRS);
  if (node) weir_control_note(branch->outside->root, node, branch);
  return (weir_edge_t){.node = node, .index = branch->side};
}

static weir_edge_t recall(const weir_control_t* control, weir_edge_t outside) {
  for (const weir_capture_t* c = control->captures; c; c = c->next) {
    if (weir_edge_equal(c->outside, outside)) return c->inside;
  }
  return WEIR_NO_EDGE;
}

static weir_edge_t capture(weir_control_t* control, weir_edge_t outside) {
  weir_edge_t known = recall(control, outside);
  if (!weir_edge_is_none(known)) return known;
  if (control->twin) {
    known = recall(control->twin, outside);
    if (!weir_edge_is_none(known)) return (weir_edge_t){.node = known.node, .index = control->side};
  }
  weir_edge_t inside =
      control->kind == WEIR_CONTROL_FRAME ? enter(control, outside) : split(control, outside);
  weir_capture_t* kept = weir_scope_alloc(control->outside, 1, sizeof(*kept));
  if (!inside.node || !kept) return WEIR_NO_EDGE;
  *kept = (weir_capture_t){.outside = outside, .inside = inside, .next = control->captures};
  control->captures = kept;
  return inside;
}

static weir_status_t* used_outside(const weir_node_t* node, const weir_control_t* owner) {
  return WEIR_STATUS(
      INVALID_ARGUMENT, "'%s' is inside %s '%s' and is used outside of it: only results leave it",
      node->def.name, owner->kind == WEIR_CONTROL_BRANCH ? "a branch of" : "loop", owner->name);
}

static weir_edge_t value_in(weir_scope_t* scope, weir_control_t* control, weir_edge_t edge) {
  weir_scope_root_t* root = scope->root;
  if (root->status || !edge.node) return WEIR_NO_EDGE;
  if (!is_ours(root, edge.node) || is_free(edge) || owns(root, control, edge)) return edge;
  if (!control) {
    weir_scope_fail(scope, used_outside(edge.node, owner_of(root, edge.node)));
    return WEIR_NO_EDGE;
  }
  weir_edge_t outside = value_in(scope, control->parent, edge);
  if (!outside.node || is_free(outside) || control->kind == WEIR_CONTROL_BODY) return outside;
  return capture(control, outside);
}

weir_edge_t weir_control_value(weir_scope_t* scope, weir_edge_t edge) {
  return value_in(scope, scope->control, edge);
}

bool weir_control_truth(weir_scope_t* scope, weir_edge_t pred) {
  weir_tensor_t* value = NULL;
  if (scope->root->status) return false;
  weir_status_t* status = weir_eager_read(scope->root->graph, pred, &value);
  if (status) weir_scope_fail(scope, status);
  bool is_true = value && value->count > 0 && *WEIR_TENSOR_DATA(value, const bool);
  weir_tensor_release(value);
  return is_true;
}

// ---- control inputs ----

// A value in the context of |node| that comes after it: what can enter a loop in its place.
static weir_edge_t token_after(weir_scope_t* outside, weir_node_t* node) {
  weir_scope_root_t* root = outside->root;
  for (const weir_capture_t* c = root->tokens; c; c = c->next) {
    if (c->outside.node == node) return c->inside;
  }
  weir_scope_t* after = weir_scope_after(outside, &node, 1);
  weir_edge_t token = weir_const_int(after, 0);
  weir_capture_t* kept = weir_scope_alloc(outside, 1, sizeof(*kept));
  if (!token.node || !kept) return WEIR_NO_EDGE;
  *kept =
      (weir_capture_t){.outside = weir_scope_first(node), .inside = token, .next = root->tokens};
  root->tokens = kept;
  return token;
}

// What stands for |node| as a control input in the context of |scope|.
static weir_node_t* control_in(weir_scope_t* scope, weir_node_t* node) {
  if (!is_ours(scope->root, node)) return node;
  const weir_control_t* owner = owner_of(scope->root, node);
  weir_control_t* frame = NULL;  // the outermost loop that is around |scope| but not around |node|
  weir_control_t* at = scope->control;
  for (; at && at != owner; at = at->parent) {
    if (at->kind == WEIR_CONTROL_FRAME) frame = at;
  }
  if (at != owner) {
    weir_scope_fail(scope, used_outside(node, owner));
    return NULL;
  }
  if (!frame) return node;
  return weir_control_value(scope, token_after(frame->outside, node)).node;
}

static weir_node_t** place_controls(weir_scope_t* scope, const weir_control_inputs_t* io,
                                    bool* has_own) {
  size_t count = (size_t)io->control_count;
  weir_node_t** controls = weir_scope_alloc(scope, count + 1, sizeof(*controls));
  for (size_t i = 0; controls && i < count && !scope->root->status; ++i) {
    controls[i] = control_in(scope, io->controls[i]);
    if (!controls[i]) return NULL;
    *has_own |= owner_of(scope->root, controls[i]) == scope->control;
  }
  return controls;
}

bool weir_control_place(weir_scope_t* scope, const char* op, weir_control_inputs_t* io) {
  bool is_free_const = !strcmp(op, "Const") && io->control_count == 0;
  bool has_own = !scope->control || is_free_const;
  size_t count = (size_t)io->inputs.count;
  weir_edge_t* inputs = weir_scope_alloc(scope, count + 1, sizeof(*inputs));
  if (!inputs) return false;
  for (size_t i = 0; i < count; ++i) {
    inputs[i] = io->inputs.items[i];
    if (!is_ours(scope->root, inputs[i].node)) continue;
    inputs[i] = weir_control_value(scope, inputs[i]);
    if (scope->root->status) return false;
    has_own |= !is_free(inputs[i]) && weir_control_owns(scope, inputs[i]);
  }
  weir_node_t** controls = place_controls(scope, io, &has_own);
  if (!controls || scope->root->status) return false;
  io->inputs = (weir_edges_t){.items = inputs, .count = (int)count};
  io->controls = controls;
  if (!has_own && scope->control->pivot) controls[io->control_count++] = scope->control->pivot;
  return true;
}

// ---- adding what contexts are made of ----

weir_scope_t* weir_control_scope(weir_control_t* control) {
  weir_scope_t* scope = weir_scope_alloc(control->outside, 1, sizeof(*scope));
  if (!scope) return control->outside;
  *scope = (weir_scope_t){.root = control->outside->root,
                          .prefix = control->outside->prefix,
                          .device = control->outside->device,
                          .variable_device = control->outside->variable_device,
                          .variable_device_arg = control->outside->variable_device_arg,
                          .control = control};
  return scope;
}

weir_node_t* weir_control_add(weir_scope_t* scope, const char* op, weir_edges_t inputs,
                              weir_control_t* owner) {
  weir_scope_root_t* root = scope->root;
  if (root->status) return NULL;
  weir_graph_builder_t builder;
  weir_graph_builder_init(&builder, root->graph, scope->prefix);
  builder.device = scope->device;
  weir_edge_t first = WEIR_NO_EDGE;
  weir_mutex_lock(&root->graph->mu);
  weir_status_t* status =
      weir_graph_builder_vtable.add(&builder.base, op, inputs, WEIR_NO_ATTRS, op, &first);
  weir_mutex_unlock(&root->graph->mu);
  if (status) {
    weir_scope_fail(scope, status);
    return NULL;
  }
  weir_control_note(root, first.node, owner);
  return first.node;
}

// ---- lifting ----

typedef struct lift_t {
  weir_scope_t* scope;
  weir_capture_t* known;
} lift_t;

static weir_edge_t lift(lift_t* l, weir_edge_t edge);

static weir_node_t* lift_node(lift_t* l, weir_node_t* node) {
  weir_scope_root_t* root = l->scope->root;
  size_t count = (size_t)node->def.input_count;
  weir_edge_t* inputs = weir_scope_alloc(l->scope, count + 1, sizeof(*inputs));
  const char* name = weir_arena_printf(&root->arena, "%s/outside", node->def.name);
  if (!inputs || !name) return NULL;
  for (size_t i = 0; i < count; ++i) {
    inputs[i] = lift(l, node->inputs[i]);
    if (!inputs[i].node) return NULL;
  }
  weir_scope_t bare = {.root = root, .prefix = "", .device = l->scope->device};
  return weir_scope_add(&bare, node->def.op_name, name,
                        (weir_edges_t){.items = inputs, .count = (int)count}, node->def.attrs);
}

static weir_edge_t lift(lift_t* l, weir_edge_t edge) {
  weir_scope_root_t* root = l->scope->root;
  if (root->status || !is_ours(root, edge.node)) return edge;
  if (is_free(edge) || !owner_of(root, edge.node)) return edge;
  weir_role_t role = weir_node_role(edge.node);
  bool is_capture = role == WEIR_ROLE_SWITCH || role == WEIR_ROLE_ENTER;
  if (is_capture) {
    const weir_control_t* owner = owner_of(root, edge.node);
    for (const weir_capture_t* c = owner->captures; c; c = c->next) {
      if (c->inside.node == edge.node) return lift(l, c->outside);
    }
  }
  bool is_plain = role == WEIR_ROLE_NONE || role == WEIR_ROLE_CONST || role == WEIR_ROLE_VARIABLE;
  if (!is_plain) {
    weir_scope_fail(l->scope,
                    WEIR_STATUS(INVALID_ARGUMENT,
                                "a variable cannot start from '%s', which belongs to '%s': its "
                                "initial value must not depend on what happens there",
                                edge.node->def.name, owner_of(root, edge.node)->name));
    return WEIR_NO_EDGE;
  }
  for (const weir_capture_t* c = l->known; c; c = c->next) {
    if (c->outside.node == edge.node)
      return (weir_edge_t){.node = c->inside.node, .index = edge.index};
  }
  weir_node_t* copy = lift_node(l, edge.node);
  weir_capture_t* kept = weir_scope_alloc(l->scope, 1, sizeof(*kept));
  if (!copy || !kept) return WEIR_NO_EDGE;
  *kept = (weir_capture_t){.outside = edge, .inside = weir_scope_first(copy), .next = l->known};
  l->known = kept;
  return (weir_edge_t){.node = copy, .index = edge.index};
}

weir_edge_t weir_control_lift(weir_scope_t* scope, weir_edge_t edge) {
  lift_t l = {.scope = scope};
  return lift(&l, edge);
}
