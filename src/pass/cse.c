// cse.c — Common subexpressions: of equal nodes with equal inputs, one computes for all.
#include "pass/rewrite.h"

typedef struct cse_t {
  weir_rewrite_t rewrite;
  weir_node_t** slots;  // hash table of the nodes kept so far; open addressing, a power of two
  uint64_t* hashes;     // by node id
  size_t mask;          // slots - 1
} cse_t;

static bool is_mergeable(const weir_node_t* node) {
  const weir_op_t* op = node->def.op;
  if (!op || !op->def || (op->flags & WEIR_OP_STATEFUL) || node->def.output_count == 0)
    return false;
  // Roles of control flow have identity: a Merge of a loop, an Enter, are not what their inputs say
  // alone.
  return (op->role == WEIR_ROLE_NONE || op->role == WEIR_ROLE_CONST) && weir_rewrite_is_plain(node);
}

static bool is_commutative(const weir_node_t* node) {
  return weir_node_has(node, WEIR_OP_COMMUTATIVE) && node->def.input_count == 2;
}

static uint64_t hash_edge(weir_edge_t edge) {
  return weir_hash_mix(((uint64_t)(uint32_t)edge.node->id << 32 | (uint32_t)edge.index) + 1);
}

static uint64_t hash_node(const weir_node_t* node) {
  uint64_t hash = weir_hash_bytes(node->def.op_name, strlen(node->def.op_name), 1);
  hash = weir_hash_bytes(node->def.device, strlen(node->def.device), hash);
  for (size_t i = 0; i < node->def.attrs.count; ++i) {
    hash = weir_hash_mix(hash ^ weir_attr_hash(&node->def.attrs.items[i].value));
  }
  if (is_commutative(node)) {
    hash = weir_hash_mix(hash ^ (hash_edge(node->inputs[0]) + hash_edge(node->inputs[1])));
  } else {
    for (int i = 0; i < node->def.input_count; ++i)
      hash = weir_hash_mix(hash ^ hash_edge(node->inputs[i]));
  }
  uint64_t controls = 0;  // a sum: their order means nothing
  for (int i = 0; i < node->control_count; ++i)
    controls += weir_hash_mix((uint64_t)node->control_inputs[i]->id + 1);
  return weir_hash_mix(hash ^ controls);
}

static bool are_inputs_equal(const weir_node_t* a, const weir_node_t* b) {
  bool is_equal = true;
  for (int i = 0; i < a->def.input_count; ++i)
    is_equal = is_equal && weir_edge_equal(a->inputs[i], b->inputs[i]);
  if (is_equal || !is_commutative(a)) return is_equal;
  return weir_edge_equal(a->inputs[0], b->inputs[1]) && weir_edge_equal(a->inputs[1], b->inputs[0]);
}

// Control inputs have no repeats, so sets of the same size are equal when one holds the other.
static bool are_controls_equal(const weir_node_t* a, const weir_node_t* b) {
  if (a->control_count != b->control_count) return false;
  for (int i = 0; i < a->control_count; ++i) {
    bool is_found = false;
    for (int k = 0; k < b->control_count && !is_found; ++k)
      is_found = a->control_inputs[i] == b->control_inputs[k];
    if (!is_found) return false;
  }
  return true;
}

static bool are_nodes_equal(const weir_node_t* a, const weir_node_t* b) {
  if (a->def.op != b->def.op || a->def.input_count != b->def.input_count ||
      a->def.output_count != b->def.output_count || a->def.attrs.count != b->def.attrs.count ||
      strcmp(a->def.device, b->def.device) != 0 || !are_inputs_equal(a, b) ||
      !are_controls_equal(a, b)) {
    return false;
  }
  for (size_t i = 0; i < a->def.attrs.count; ++i) {
    const weir_named_attr_t* x = &a->def.attrs.items[i];
    const weir_named_attr_t* y = &b->def.attrs.items[i];
    if (strcmp(x->name, y->name) != 0 || !weir_attr_equal(&x->value, &y->value)) return false;
  }
  return true;
}

// The earlier node equal to |node|; NULL when it is the first of its kind, which it then stands
// for.
static weir_node_t* find_or_keep(cse_t* cse, weir_node_t* node) {
  uint64_t hash = hash_node(node);
  cse->hashes[node->id] = hash;
  size_t at = (size_t)hash & cse->mask;
  for (; cse->slots[at]; at = (at + 1) & cse->mask) {
    if (cse->hashes[cse->slots[at]->id] == hash && are_nodes_equal(cse->slots[at], node))
      return cse->slots[at];
  }
  cse->slots[at] = node;
  return NULL;
}

static weir_status_t* visit(cse_t* cse, weir_node_t* node) {
  WEIR_TRY(weir_rewrite_inputs(&cse->rewrite, node, NULL));
  weir_node_t* twin = is_mergeable(node) ? find_or_keep(cse, node) : NULL;
  if (!twin) return NULL;
  for (int i = 0; i < node->def.output_count; ++i) {
    weir_edge_t from = {.node = node, .index = i};
    weir_edge_t to = {.node = twin, .index = i};
    WEIR_TRY(weir_rewrite_replace_edge(&cse->rewrite, from, to));
  }
  weir_rewrite_replace_node(&cse->rewrite, node, twin);
  return NULL;
}

weir_status_t* weir_pass_cse(weir_pass_ctx_t* ctx) {
  cse_t cse = {0};
  weir_status_t* status = weir_rewrite_init(&cse.rewrite, ctx->graph);
  if (status) goto done;
  size_t slot_count = 16;
  while (slot_count < cse.rewrite.count * 2) slot_count *= 2;
  cse.mask = slot_count - 1;
  cse.slots = weir_arena_array(&cse.rewrite.arena, slot_count, sizeof(*cse.slots));
  cse.hashes = weir_arena_array(&cse.rewrite.arena, cse.rewrite.count + 1, sizeof(*cse.hashes));
  if (!cse.slots || !cse.hashes) status = weir_out_of_memory();
  for (size_t i = 0; i < cse.rewrite.count && !status; ++i)
    status = visit(&cse, cse.rewrite.order[i]);
  if (!status) status = weir_rewrite_finish(&cse.rewrite, ctx);
done:
  weir_rewrite_free(&cse.rewrite);
  return status;
}
