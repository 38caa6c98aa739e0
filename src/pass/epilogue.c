// epilogue.c — Products, convolutions and batch normalisations take over what follows them, a bias,
// an addend, an activation, where the device has a kernel that does it all while it has the
// elements at hand; gradients of batch normalisation take over the gradient of the activation
// before them.
//
// Which op does so, and how it is told, the op's definition says (weir_extended_t in op/op.h);
// which of those it can do on a device, the kernel (weir_kernel_def_t.tails). A node is taken over
// when nobody else reads or awaits what is before it, and runs where and when that does. So the new
// node waits for nothing that the last of them did not wait for, and nothing waits for it that did
// not wait for that one; but for those that read other outputs of a normalisation, its moments.
// They come to wait for the addend: it must not lead back to them, nor wait for an op that they do
// not await.
//
// Results: a batch normalisation's are the same bits, and so are its gradient's, as what is between
// the nodes is rounded all the same (batch_norm.cu). Products and convolutions add the bias to what
// they summed in float: in 16 bits that is one rounding less; and a library may choose another
// algorithm.
#include "graph/analysis.h"
#include "kernel/elementwise/elementwise.h"
#include "kernel/nn/activation.h"
#include "pass/alive.h"
#include "pass/device_kernels.h"
#include "pass/rewrite.h"

enum {
  MOST_TAILS = 3,          // a bias, an addend, an activation
  MOST_INPUTS = 8,         // of a node that is extended
  MOST_OUTPUTS = 6,        //
  SEARCH_LIMIT = 1 << 14,  // nodes
};

typedef struct epilogue_t {
  weir_rewrite_t rewrite;
  weir_loops_t loops;    // by node id, as all below
  const int* condition;  // when it is alive (alive.h)
  bool* is_live;
  bool* is_awaited;      // by control edges, or as a target
  bool* is_taken;        // it is part of another node by now
  bool* is_shared;       // output 0 is read more than once
  bool* has_more;        // outputs besides the first are read
  weir_node_t** reader;  // of output 0, the first one
  int* seen;             // the last search that came here; those of new nodes, too
  int search;
  size_t node_limit;  // nodes that |seen| and |stack| have room for
  weir_node_t** stack;
} epilogue_t;

// A node and what it takes over.
typedef struct chain_t {
  weir_node_t* base;
  const weir_op_t* op;
  const weir_kernel_def_t* kernel;
  weir_node_t* members[1 + MOST_TAILS];  // in topological order
  int member_count;
  int base_at;                    // among them
  const char* tails[MOST_TAILS];  // what the members besides are called
  int tail_count;
  weir_edge_t inputs[MOST_INPUTS + MOST_TAILS];
  int input_count;
  float alpha;  // of a LeakyRelu
} chain_t;

static weir_node_t* last_of(const chain_t* chain) {
  return chain->members[chain->member_count - 1];
}

// ---- what may be extended ----

static weir_extended_t extended_of(const weir_node_t* node) {
  const weir_op_t* op = node->def.op;
  return op && op->def ? op->def->extended : (weir_extended_t){.op = NULL};
}

static bool is_in(const weir_attr_def_t* def, const weir_attr_t* value) {
  bool is_there = def->allowed_string_count == 0;
  for (size_t i = 0; i < def->allowed_string_count && !is_there; ++i)
    is_there = weir_view_equal(def->allowed_strings[i], value->u.s);
  bool is_type = def->kind == WEIR_ATTR_TYPE && !def->is_list && def->allowed_types;
  return is_there && !(is_type && !(def->allowed_types >> value->u.type & 1));
}

// Whether |op| takes the values of all attributes that it has in common with |node|.
static bool takes_attrs(const weir_op_t* op, const weir_node_t* node) {
  for (int i = 0; i < op->attr_count; ++i) {
    const weir_attr_t* value = weir_attrs_find(node->def.attrs, op->attrs[i].name);
    if (value && !is_in(&op->attrs[i], value)) return false;
  }
  return true;
}

// Finds the op that extends |node| and its device's kernel of that. False: there is none, or it can
// do nothing besides.
static bool find_extended(const weir_graph_t* graph, weir_node_t* node, chain_t* out_chain) {
  weir_extended_t extended = extended_of(node);
  const char* kind = extended.op ? weir_pass_kernel_type(node) : NULL;
  if (!kind || node->def.input_count > MOST_INPUTS || node->def.output_count > MOST_OUTPUTS)
    return false;
  weir_node_def_t def = node->def;
  def.op = weir_registry_find(graph->registry, weir_view_of(extended.op));
  if (!def.op || !weir_rewrite_is_plain(node) || !takes_attrs(def.op, node)) return false;
  const weir_kernel_def_t* kernel = weir_pass_find_kernel(&def, kind);
  *out_chain = (chain_t){.base = node,
                         .op = def.op,
                         .kernel = kernel,
                         .members = {node},
                         .member_count = 1,
                         .input_count = node->def.input_count,
                         .alpha = 0.2F};
  for (int i = 0; i < node->def.input_count; ++i) out_chain->inputs[i] = node->inputs[i];
  return kernel && kernel->tails;
}

// The number of |tail| among what the kernel can do; -1: it cannot.
static int place_of(const chain_t* chain, const char* tail) {
  weir_view_t rest = weir_view_of(chain->kernel->tails);
  weir_view_t part;
  for (int i = 0; weir_view_next(&rest, ',', &part); ++i) {
    if (weir_view_is(weir_view_trim(part), tail)) return i;
  }
  return -1;
}

// Whether it can do |tail| after what the chain has already. In a list, all begins with a bias.
static bool can_do(const chain_t* chain, const char* tail) {
  int place = place_of(chain, tail);
  bool is_list = extended_of(chain->base).form == WEIR_EXTENDED_LIST;
  if (chain->tail_count == 0) return place >= 0 && (!is_list || strcmp(tail, "BiasAdd") == 0);
  return place > place_of(chain, chain->tails[chain->tail_count - 1]);
}

static bool is_alike(const epilogue_t* e, const weir_node_t* a, const weir_node_t* b) {
  return strcmp(a->def.device, b->def.device) == 0 && e->condition[a->id] == e->condition[b->id] &&
         e->loops.inside[a->id] == e->loops.inside[b->id];
}

// ---- what those that read moments come to wait for ----

static void visit(epilogue_t* e, weir_node_t* node, size_t* depth) {
  if ((size_t)node->id >= e->node_limit || e->seen[node->id] == e->search) return;
  e->seen[node->id] = e->search;
  e->stack[(*depth)++] = node;
}

static void visit_sources(epilogue_t* e, const weir_node_t* node, size_t* depth) {
  for (int i = 0; i < node->def.input_count; ++i) {
    if (!weir_node_is_back_edge(node, node->inputs[i].node))
      visit(e, weir_rewrite_edge(&e->rewrite, node->inputs[i]).node, depth);
  }
  for (int i = 0; i < node->control_count; ++i)
    visit(e, weir_rewrite_node(&e->rewrite, node->control_inputs[i]), depth);
}

// Marks all that |node| waits for as seen. False when it takes too long.
static bool mark_sources(epilogue_t* e, weir_node_t* node) {
  size_t depth = 0;
  ++e->search;
  visit(e, node, &depth);
  for (int budget = SEARCH_LIMIT; depth > 0; --budget) {
    if (budget == 0) return false;
    visit_sources(e, e->stack[--depth], &depth);
  }
  return true;
}

// Whether |source| may be awaited by whoever awaits |base|: it does not lead to it, and waits for
// no op that waits but those that it waits for.
static bool may_await(epilogue_t* e, weir_node_t* base, weir_node_t* source) {
  source = weir_rewrite_node(&e->rewrite, source);
  if (!mark_sources(e, base)) return false;
  int known = e->search++;
  size_t depth = 0;
  // What the base waits for needs no second look.
  if ((size_t)source->id >= e->node_limit) return false;
  if (e->seen[source->id] != known) visit(e, source, &depth);
  for (int budget = SEARCH_LIMIT; depth > 0; --budget) {
    weir_node_t* node = e->stack[--depth];
    if (budget == 0 || weir_rewrite_may_wait(node)) return false;
    for (int i = 0; i < node->def.input_count + node->control_count; ++i) {
      weir_node_t* next =
          i < node->def.input_count
              ? weir_rewrite_edge(&e->rewrite, node->inputs[i]).node
              : weir_rewrite_node(&e->rewrite, node->control_inputs[i - node->def.input_count]);
      if (next == base || (size_t)next->id >= e->node_limit) return false;
      if (e->seen[next->id] != known) visit(e, next, &depth);
    }
  }
  return true;
}

// ---- what follows ----

static bool have_same_shape(weir_edge_t a, weir_edge_t b) {
  const weir_shape_t *x = weir_edge_shape(a), *y = weir_edge_shape(b);
  if (!x || !y || x->rank < 0 || x->rank != y->rank) return false;
  for (int i = 0; i < x->rank; ++i) {
    if (x->dims[i] < 0 || x->dims[i] != y->dims[i]) return false;
  }
  return true;
}

// Whether a bias of |node| is along the channels of |base|, in the one layout there is.
static bool has_same_layout(const weir_node_t* base, const weir_node_t* node) {
  const weir_attr_t* own = weir_attrs_find(base->def.attrs, "data_format");
  const weir_attr_t* bias = weir_attrs_find(node->def.attrs, "data_format");
  return own && bias ? weir_attr_equal(own, bias) : !bias || weir_view_is(bias->u.s, "NHWC");
}

// Whether |extra| is spread over all but the last dimension of what |base| gives, its channels: a
// bias by another name.
static bool is_spread(const weir_node_t* base, weir_edge_t extra) {
  const weir_attr_t* layout = weir_attrs_find(base->def.attrs, "data_format");
  const weir_shape_t *x = base->shapes[0], *vector = weir_edge_shape(extra);
  return (!layout || weir_view_is(layout->u.s, "NHWC")) && x && x->rank >= 2 && vector &&
         vector->rank == 1 && vector->dims[0] > 0 && vector->dims[0] == x->dims[x->rank - 1];
}

// What |node|, which reads output 0 of |last|, is called where it is taken over, and what it reads
// besides. NULL: it is nothing like it.
static const char* tail_name(const chain_t* chain, const weir_node_t* node,
                             weir_edge_t* out_extra) {
  const weir_op_t* op = node->def.op;
  weir_scalar_t scalar = op && op->def ? op->def->scalar : (weir_scalar_t){.kind = 0};
  bool is_sum = scalar.function == WEIR_BINARY_ADD && node->def.input_count == 2;
  const weir_node_t* last = last_of(chain);
  *out_extra = WEIR_NO_EDGE;
  if (scalar.kind == WEIR_SCALAR_ACTIVATION && node->def.input_count == 1) return node->def.op_name;
  if (scalar.kind == WEIR_SCALAR_BIAS && is_sum) {
    *out_extra = node->inputs[1];
    bool is_bias = node->inputs[0].node == last && has_same_layout(chain->base, node);
    return is_bias ? "BiasAdd" : NULL;
  }
  if ((scalar.kind == WEIR_SCALAR_BINARY || scalar.kind == WEIR_SCALAR_BINARY_SAME) && is_sum) {
    *out_extra = node->inputs[node->inputs[0].node == last ? 1 : 0];
    if (chain->tail_count == 0 && is_spread(chain->base, *out_extra)) return "BiasAdd";
    return have_same_shape(*out_extra, (weir_edge_t){.node = (weir_node_t*)last}) ? "Add" : NULL;
  }
  return NULL;
}

// A LeakyRelu has a parameter, for which there is an attribute or the kernel cannot do it.
static void take_parameter(chain_t* chain, const weir_node_t* node) {
  const weir_attr_t* alpha = weir_attrs_find(node->def.attrs, "alpha");
  if (alpha) chain->alpha = alpha->u.f;
}

// Takes the node that reads what the chain gives into it. False: it ends here.
static bool take_next(epilogue_t* e, chain_t* chain) {
  weir_node_t *base = chain->base, *last = last_of(chain), *next = e->reader[last->id];
  weir_edge_t extra;
  if (chain->tail_count == MOST_TAILS || !next || e->is_shared[last->id] ||
      e->is_awaited[last->id] || e->is_taken[next->id] || !is_alike(e, base, next) ||
      !weir_rewrite_is_plain(next))
    return false;
  const char* tail = tail_name(chain, next, &extra);
  if (!tail || !can_do(chain, tail)) return false;
  if (e->has_more[base->id] &&
      (next->control_count > 0 || (extra.node && !may_await(e, base, extra.node))))
    return false;
  if (extra.node) chain->inputs[chain->input_count++] = extra;
  chain->tails[chain->tail_count++] = tail;
  chain->members[chain->member_count++] = next;
  take_parameter(chain, next);
  return true;
}

// ---- the gradient of an activation before ----

static bool is_same_edge(const epilogue_t* e, weir_edge_t a, weir_edge_t b) {
  return weir_edge_equal(weir_rewrite_edge(&e->rewrite, a), weir_rewrite_edge(&e->rewrite, b));
}

static bool have_same_attr(const weir_node_t* a, const weir_node_t* b, const char* name) {
  const weir_attr_t *x = weir_attrs_find(a->def.attrs, name),
                    *y = weir_attrs_find(b->def.attrs, name);
  return x && y && weir_attr_equal(x, y);
}

// Whether |base| is the gradient of |forward|, an extended node without an addend: y is made of x.
static bool is_gradient_of(const epilogue_t* e, const weir_node_t* base,
                           const weir_node_t* forward) {
  const char* of = extended_of(base).of;
  if (!of || strcmp(forward->def.op_name, of) != 0 || forward->def.input_count != 5 ||
      !have_same_attr(base, forward, "epsilon") || !have_same_attr(base, forward, "is_training") ||
      !have_same_attr(base, forward, "data_format"))
    return false;
  bool is_training = weir_attrs_bool(base->def.attrs, "is_training");
  weir_edge_t moments[2];
  for (int i = 0; i < 2; ++i)
    moments[i] = is_training ? (weir_edge_t){.node = (weir_node_t*)forward, .index = 3 + i}
                             : forward->inputs[3 + i];
  return is_same_edge(e, base->inputs[1], forward->inputs[0]) &&
         is_same_edge(e, base->inputs[2], forward->inputs[1]) &&
         is_same_edge(e, base->inputs[3], moments[0]) &&
         is_same_edge(e, base->inputs[4], moments[1]);
}

static bool take_before(const epilogue_t* e, chain_t* chain) {
  weir_node_t *base = chain->base, *before = base->inputs[0].node;
  const weir_op_t* op = before->def.op;
  weir_scalar_t scalar = op && op->def ? op->def->scalar : (weir_scalar_t){.kind = 0};
  const char* tail = "Relu";
  if (scalar.kind != WEIR_SCALAR_ACTIVATION_GRAD || scalar.function != WEIR_ACTIVATION_RELU ||
      before->def.input_count != 2 || !can_do(chain, tail) || e->is_shared[before->id] ||
      e->is_awaited[before->id] || e->is_taken[before->id] || !is_alike(e, base, before) ||
      !weir_rewrite_is_plain(before))
    return false;
  weir_edge_t y = weir_rewrite_edge(&e->rewrite, before->inputs[1]);
  if (y.index != 0 || !is_gradient_of(e, base, y.node) ||
      !weir_view_is(weir_attrs_string(y.node->def.attrs, "activation_mode"), tail))
    return false;
  chain->inputs[0] = before->inputs[0];
  chain->inputs[chain->input_count++] = y.node->inputs[2];
  chain->inputs[chain->input_count++] = y;
  chain->members[0] = before;
  chain->members[1] = base;
  chain->member_count = 2;
  chain->base_at = 1;
  chain->tails[chain->tail_count++] = tail;
  return true;
}

// ---- the new node ----

typedef struct draft_t {
  const chain_t* chain;
  weir_named_attr_t* attrs;
  size_t attr_count;
  weir_view_t names[1 + MOST_TAILS], ops[1 + MOST_TAILS], outputs[MOST_OUTPUTS];
  weir_view_t tails[MOST_TAILS];
  weir_dtype_t types[MOST_TAILS];  // of 'args'
} draft_t;

static void put(draft_t* d, weir_named_attr_t attr) { d->attrs[d->attr_count++] = attr; }

// Which edge output |i| was.
static weir_edge_t output_of(const chain_t* chain, int i) {
  return (weir_edge_t){.node = i == 0 ? last_of(chain) : chain->base, .index = i};
}

static weir_status_t* name_members(draft_t* d, weir_arena_t* arena) {
  const chain_t* chain = d->chain;
  for (int i = 0; i < chain->member_count; ++i) {
    d->names[i] = weir_view_of(chain->members[i]->def.name);
    d->ops[i] = weir_view_of(chain->members[i]->def.op_name);
  }
  int count = chain->base->def.output_count;
  for (int i = 0; i < count; ++i) {
    const char* name = output_of(chain, i).node->def.name;
    const char* text = i ? weir_arena_printf(arena, "%s:%d", name, i) : name;
    if (!text) return weir_out_of_memory();
    d->outputs[i] = weir_view_of(text);
  }
  put(d, weir_attr_strings("_names", d->names, (size_t)chain->member_count));
  put(d, weir_attr_strings("_ops", d->ops, (size_t)chain->member_count));
  put(d, weir_attr_strings("_outputs", d->outputs, (size_t)count));
  put(d, weir_attr_int("_base", chain->base_at));
  return NULL;
}

static void put_list(draft_t* d) {
  const chain_t* chain = d->chain;
  int first = chain->base->def.input_count, count = chain->input_count - first;
  for (int i = 0; i < count; ++i) d->types[i] = weir_edge_dtype(chain->inputs[first + i]);
  for (int i = 0; i < chain->tail_count; ++i) d->tails[i] = weir_view_of(chain->tails[i]);
  put(d, weir_attr_strings("fused_ops", d->tails, (size_t)chain->tail_count));
  put(d, weir_attr_int("num_args", count));
  if (weir_op_attr(chain->op, "TArgs")) put(d, weir_attr_types("TArgs", d->types, (size_t)count));
  put(d, weir_attr_float("leakyrelu_alpha", chain->alpha));
}

static void put_mode(draft_t* d) {
  const chain_t* chain = d->chain;
  bool has_side = chain->input_count == chain->base->def.input_count + 1;
  const char* last = chain->tails[chain->tail_count - 1];
  put(d, weir_attr_string("activation_mode", strcmp(last, "Add") == 0 ? "Identity" : last));
  put(d, weir_attr_int("num_side_inputs", has_side));
}

static weir_status_t* list_attrs(draft_t* d, weir_arena_t* arena) {
  const chain_t* chain = d->chain;
  const weir_op_t* op = chain->op;
  d->attrs = weir_arena_array(arena, (size_t)op->attr_count + 8, sizeof(*d->attrs));
  if (!d->attrs) return weir_out_of_memory();
  for (int i = 0; i < op->attr_count; ++i) {
    const weir_attr_t* value = weir_attrs_find(chain->base->def.attrs, op->attrs[i].name);
    if (value) put(d, (weir_named_attr_t){.name = op->attrs[i].name, .value = *value});
  }
  if (extended_of(chain->base).form == WEIR_EXTENDED_LIST) put_list(d);
  else put_mode(d);
  return name_members(d, arena);
}

static weir_status_t* add_node(epilogue_t* e, const chain_t* chain, weir_node_t** out_node) {
  weir_node_t* last = last_of(chain);
  draft_t d = {.chain = chain};
  WEIR_TRY(list_attrs(&d, &e->rewrite.arena));
  const char* name = weir_arena_printf(&last->graph->arena, "%s_extended", last->def.name);
  if (!name) return weir_out_of_memory();
  weir_node_params_t params = {.op = chain->op->name,
                               .name = name,
                               .unique_name = true,
                               .device = last->def.device,
                               .inputs = {.items = chain->inputs, .count = chain->input_count},
                               .attrs = {.items = d.attrs, .count = d.attr_count}};
  WEIR_TRY(weir_graph_add(last->graph, &params, out_node));
  for (int i = 0; i < chain->member_count; ++i) {
    const weir_node_t* member = chain->members[i];
    for (int k = 0; k < member->control_count; ++k)
      WEIR_TRY(weir_graph_add_control(*out_node, member->control_inputs[k]));
  }
  return NULL;
}

static weir_status_t* replace(epilogue_t* e, const chain_t* chain) {
  weir_node_t* node = NULL;
  WEIR_TRY(add_node(e, chain, &node));
  WEIR_CHECK(node);
  for (int i = 0; i < chain->base->def.output_count; ++i) {
    weir_edge_t from = output_of(chain, i);
    node->shapes[i] = from.node->shapes[from.index];
    WEIR_TRY(weir_rewrite_replace_edge(&e->rewrite, from, (weir_edge_t){.node = node, .index = i}));
  }
  for (int i = 0; i < chain->member_count; ++i) {
    e->is_taken[chain->members[i]->id] = true;
    weir_rewrite_replace_node(&e->rewrite, chain->members[i], node);
  }
  return NULL;
}

static weir_status_t* extend(epilogue_t* e, weir_node_t* node) {
  chain_t chain;
  if (e->is_taken[node->id] || !find_extended(e->rewrite.graph, node, &chain)) return NULL;
  if (extended_of(node).form == WEIR_EXTENDED_GRAD) take_before(e, &chain);
  else
    while (take_next(e, &chain)) continue;
  return chain.tail_count > 0 ? replace(e, &chain) : NULL;
}

// ---- the pass ----

static void note_sources(epilogue_t* e, weir_node_t* node) {
  for (int i = 0; i < node->def.input_count; ++i) {
    weir_edge_t edge = node->inputs[i];
    if (edge.index > 0) {
      e->has_more[edge.node->id] = true;
    } else {
      e->is_shared[edge.node->id] = e->reader[edge.node->id] != NULL;
      e->reader[edge.node->id] = node;
    }
  }
  for (int i = 0; i < node->control_count; ++i) e->is_awaited[node->control_inputs[i]->id] = true;
}

static weir_status_t* init(epilogue_t* e, const weir_pass_ctx_t* ctx) {
  weir_arena_t* arena = &e->rewrite.arena;
  WEIR_TRY(weir_rewrite_init(&e->rewrite, ctx->graph));
  size_t count = e->rewrite.count + 1;
  WEIR_TRY(weir_alive_find(ctx->graph, e->rewrite.order, e->rewrite.count, arena, &e->condition));
  WEIR_TRY(weir_loops_find(ctx->graph, e->rewrite.order, e->rewrite.count, arena, &e->loops));
  WEIR_TRY(weir_rewrite_mark_live(ctx, arena, &e->is_live));
  e->is_awaited = weir_arena_array(arena, count, sizeof(*e->is_awaited));
  e->is_taken = weir_arena_array(arena, count, sizeof(*e->is_taken));
  e->is_shared = weir_arena_array(arena, count, sizeof(*e->is_shared));
  e->has_more = weir_arena_array(arena, count, sizeof(*e->has_more));
  e->reader = weir_arena_array(arena, count, sizeof(*e->reader));
  e->node_limit = 2 * count;  // a new node stands for two or more
  e->seen = weir_arena_array(arena, e->node_limit, sizeof(*e->seen));
  e->stack = weir_arena_array(arena, e->node_limit, sizeof(weir_node_t*));
  if (!e->is_awaited || !e->is_taken || !e->is_shared || !e->has_more || !e->reader || !e->seen ||
      !e->stack)
    return weir_out_of_memory();
  for (size_t k = 0; k < e->rewrite.count; ++k) {
    weir_node_t* node = e->rewrite.order[k];
    if (e->is_live[node->id]) note_sources(e, node);
  }
  for (int i = 0; i < ctx->target_count; ++i) e->is_awaited[ctx->targets[i]->id] = true;
  return NULL;
}

static bool has_candidates(const weir_graph_t* graph) {
  chain_t chain;
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (find_extended(graph, graph->nodes[i], &chain)) return true;
  }
  return false;
}

weir_status_t* weir_pass_epilogue(weir_pass_ctx_t* ctx) {
  epilogue_t e = {.search = 0};
  if (!has_candidates(ctx->graph)) return NULL;
  weir_status_t* status = init(&e, ctx);
  for (size_t k = 0; k < e.rewrite.count && !status; ++k) {
    weir_node_t* node = e.rewrite.order[k];
    if (e.is_live[node->id]) status = extend(&e, node);
  }
  if (!status) status = weir_rewrite_finish(&e.rewrite, ctx);
  weir_rewrite_free(&e.rewrite);
  return status;
}
