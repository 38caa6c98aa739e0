// fold_order.c — Which orders between uses of state went with the edges that folding cut.
//
// Uses of state are looked at 64 at a time: a bit each. Two sweeps over the graph find which of
// them come before each node, by the edges that are left and by those that were cut, too.
#include "pass/fold_order.h"

#include "base/string.h"

typedef struct order_t {
  weir_rewrite_t* rewrite;
  const bool* live;
  const weir_node_t** state;  // by node id: the variable, or other holder of state, whose handle or
                              // memory its outputs may be; NULL: none
  const weir_node_t** used;   // by node id: whose state it reads or writes; NULL: none
  weir_node_t** users;        // the nodes that do
  size_t user_count;
  size_t* number;  // by node id: its place in |users|, from 1; 0: it is none
  bool has_writer;
  const weir_cut_t** cuts_of;  // by node id: of a constant, linked by |same|
  uint64_t* before;            // by node id: users of this round that come before it or are it
  uint64_t* before_cut;        // the same with the edges that were cut
  bool* seen;
  weir_node_t** stack;
} order_t;

// ---- who uses which state ----

static const weir_node_t kAny;  // it may be any

static const weir_node_t* join(const weir_node_t* a, const weir_node_t* b) {
  if (!a || !b || a == b) return a ? a : b;
  return &kAny;
}

static bool is_handle(weir_edge_t edge) {
  weir_dtype_t type = weir_edge_dtype(edge);
  return weir_dtype_is_ref(type) || weir_dtype_base(type) == WEIR_DTYPE_RESOURCE;
}

// What its inputs may be the state, or the memory, of.
static const weir_node_t* state_of_inputs(const order_t* order, const weir_node_t* node) {
  const weir_node_t* state = NULL;
  for (int i = 0; i < node->def.input_count; ++i) {
    const weir_node_t* source = node->inputs[i].node;
    bool is_old = (size_t)source->id < order->rewrite->count;
    if (is_old) state = join(state, order->state[source->id]);
    if (is_old && !order->state[source->id] && is_handle(node->inputs[i])) state = &kAny;
  }
  return state;
}

static bool hands_on(const weir_node_t* node) {
  weir_role_t role = weir_node_role(node);
  if (role >= WEIR_ROLE_SWITCH && role <= WEIR_ROLE_NEXT_ITERATION) return true;
  if (weir_node_may_share(node)) return true;
  for (int i = 0; i < node->def.output_count; ++i) {
    if (is_handle((weir_edge_t){.node = (weir_node_t*)node, .index = i})) return true;
  }
  return false;
}

static bool only_reads(const weir_node_t* node) {
  return weir_node_has(node, WEIR_OP_SNAPSHOT) || !weir_rewrite_has_effect(node);
}

static void find_users(order_t* order) {
  for (size_t i = 0; i < order->rewrite->count; ++i) {
    weir_node_t* node = order->rewrite->order[i];
    bool is_holder = weir_node_role(node) == WEIR_ROLE_VARIABLE;
    const weir_node_t* state = is_holder ? node : state_of_inputs(order, node);
    if (is_holder || hands_on(node)) order->state[node->id] = state;
    if (is_holder || !state || !order->live[node->id]) continue;
    order->used[node->id] = state;
    order->users[order->user_count++] = node;
    order->number[node->id] = order->user_count;
    order->has_writer |= !only_reads(node);
  }
}

static weir_view_t name_of(const weir_node_t* holder) {
  const weir_attr_t* shared = weir_attrs_find(holder->def.attrs, "shared_name");
  bool is_shared = shared && shared->kind == WEIR_ATTR_STRING && !shared->is_list;
  return is_shared && shared->u.s.size ? shared->u.s : weir_view_of(holder->def.name);
}

// Whether it makes a difference which of the two comes first.
static bool is_conflict(const order_t* order, const weir_node_t* a, const weir_node_t* b) {
  const weir_node_t *x = order->used[a->id], *y = order->used[b->id];
  if (only_reads(a) && only_reads(b)) return false;
  return x == &kAny || y == &kAny || weir_view_equal(name_of(x), name_of(y));
}

// ---- what comes before what ----

static uint64_t before_constant(const order_t* order, const weir_node_t* constant,
                                const uint64_t* before, bool has_cut) {
  uint64_t mask = 0;
  for (int i = 0; i < constant->control_count; ++i) mask |= before[constant->control_inputs[i]->id];
  if (!has_cut) return mask;
  for (const weir_cut_t* cut = order->cuts_of[constant->id]; cut; cut = cut->same)
    mask |= before[cut->node->id];
  return mask;
}

static uint64_t before_inputs(const order_t* order, const weir_node_t* node, uint64_t* before,
                              bool has_cut) {
  uint64_t mask = 0;
  for (int i = 0; i < node->def.input_count + node->control_count; ++i) {
    const weir_node_t* source = i < node->def.input_count
                                    ? node->inputs[i].node
                                    : node->control_inputs[i - node->def.input_count];
    bool is_new = (size_t)source->id >= order->rewrite->count;
    if (is_new && !before[source->id])
      before[source->id] = before_constant(order, source, before, has_cut);
    mask |= before[source->id];
  }
  return mask;
}

static void sweep(const order_t* order, size_t first, uint64_t* before, bool has_cut) {
  const weir_rewrite_t* rewrite = order->rewrite;
  memset(before, 0, sizeof(*before) * rewrite->graph->node_count);
  for (size_t i = 0; i < rewrite->count; ++i) {
    const weir_node_t* node = rewrite->order[i];
    before[node->id] = before_inputs(order, node, before, has_cut);
    size_t place = order->number[node->id] - 1 - first;  // wraps for those that are no users
    if (place < 64) before[node->id] |= UINT64_C(1) << place;
  }
}

// ---- what is lost ----

// Lets the constants through which |user| came after |bits| wait again.
static weir_status_t* restore(order_t* order, weir_node_t* user, uint64_t bits) {
  size_t top = 0;
  memset(order->seen, 0, order->rewrite->graph->node_count);
  order->stack[top++] = user;
  while (top) {
    weir_node_t* node = order->stack[--top];
    for (const weir_cut_t* cut = order->cuts_of[node->id]; cut; cut = cut->same) {
      if (order->before_cut[cut->node->id] & bits)
        WEIR_TRY(weir_graph_add_control(node, cut->node));
    }
    for (int i = 0; i < node->def.input_count + node->control_count; ++i) {
      weir_node_t* source = i < node->def.input_count
                                ? node->inputs[i].node
                                : node->control_inputs[i - node->def.input_count];
      if (order->seen[source->id]) continue;
      order->seen[source->id] = true;
      order->stack[top++] = source;
    }
  }
  return NULL;
}

static weir_status_t* keep_after(order_t* order, size_t first, weir_node_t* user) {
  uint64_t lost = order->before_cut[user->id] & ~order->before[user->id];
  uint64_t bits = 0;
  for (size_t k = 0; lost >> k; ++k) {
    if ((lost >> k & 1) && is_conflict(order, order->users[first + k], user))
      bits |= UINT64_C(1) << k;
    if (k == 63) break;
  }
  return bits ? restore(order, user, bits) : NULL;
}

static weir_status_t* init(order_t* order, weir_cut_t* cuts) {
  weir_arena_t* arena = &order->rewrite->arena;
  size_t count = order->rewrite->graph->node_count + 1;
  order->state = weir_arena_array(arena, count, sizeof(*order->state));
  order->used = weir_arena_array(arena, count, sizeof(*order->used));
  order->users = weir_arena_array(arena, count, sizeof(*order->users));
  order->before = weir_arena_array(arena, count, sizeof(*order->before));
  order->before_cut = weir_arena_array(arena, count, sizeof(*order->before_cut));
  order->seen = weir_arena_array(arena, count, sizeof(*order->seen));
  order->stack = weir_arena_array(arena, count, sizeof(*order->stack));
  order->number = weir_arena_array(arena, count, sizeof(*order->number));
  order->cuts_of = weir_arena_array(arena, count, sizeof(*order->cuts_of));
  bool is_good = order->number && order->cuts_of && order->state && order->used && order->users &&
                 order->before && order->before_cut && order->seen && order->stack;
  if (!is_good) return weir_out_of_memory();
  for (weir_cut_t* cut = cuts; cut; cut = cut->next) {
    cut->same = order->cuts_of[cut->constant->id];
    order->cuts_of[cut->constant->id] = cut;
  }
  return NULL;
}

weir_status_t* weir_fold_keep_order(const weir_pass_ctx_t* ctx, weir_rewrite_t* rewrite,
                                    weir_cut_t* cuts) {
  order_t order = {.rewrite = rewrite};
  bool* live = NULL;
  if (!cuts) return NULL;
  WEIR_TRY(weir_rewrite_mark_live(ctx, &rewrite->arena, &live));
  order.live = live;
  WEIR_TRY(init(&order, cuts));
  find_users(&order);
  for (size_t first = 0; first < order.user_count && order.has_writer; first += 64) {
    sweep(&order, first, order.before, false);
    sweep(&order, first, order.before_cut, true);
    for (size_t i = 0; i < order.user_count; ++i)
      WEIR_TRY(keep_after(&order, first, order.users[i]));
  }
  return NULL;
}
