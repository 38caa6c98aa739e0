// unread.c — Values that nobody reads are not computed: whoever awaited them awaits their inputs.
//
// Gradients bring many: that of the data, say, which control edges tie to those of the variables.
#include "pass/rewrite.h"

typedef struct unread_t {
  weir_rewrite_t rewrite;
  bool* live;     // by node id, as are the next ones
  bool* is_read;  // an output of it is, or it is a target
  bool* is_idle;  // what gives way to its inputs
} unread_t;

// Whether control edges from its inputs say all that a control edge from |node| does.
static bool is_replaceable(const weir_node_t* node) {
  if (weir_node_role(node) != WEIR_ROLE_NONE || weir_rewrite_has_effect(node) ||
      weir_rewrite_reads_reference(node) || weir_node_has(node, WEIR_OP_NO_FOLD) ||
      !weir_rewrite_is_plain(node) || node->def.input_count == 0 || node->def.output_count == 0) {
    return false;
  }
  for (int i = 0; i < node->def.input_count; ++i) {
    if (!weir_rewrite_is_anchor(node->inputs[i].node)) return false;
  }
  return true;
}

// Readers come before what they read. A loop's back edge does not, but its end is never replaced.
static void mark_idle(unread_t* u) {
  for (size_t k = u->rewrite.count; k-- > 0;) {
    const weir_node_t* node = u->rewrite.order[k];
    if (!u->live[node->id]) continue;
    u->is_idle[node->id] = !u->is_read[node->id] && is_replaceable(node);
    for (int i = 0; i < node->def.input_count && !u->is_idle[node->id]; ++i)
      u->is_read[node->inputs[i].node->id] = true;
  }
}

static weir_status_t* visit(unread_t* u, weir_node_t* node) {
  WEIR_TRY(weir_rewrite_inputs(&u->rewrite, node, NULL));
  if (!u->is_idle[node->id]) return NULL;
  const weir_node_def_t* def = &node->def;
  const char* name = weir_arena_printf(&node->graph->arena, "%s_unread", def->name);
  if (!name) return weir_out_of_memory();
  weir_node_params_t params = {.op = "NoOp",
                               .name = name,
                               .unique_name = true,
                               .device = def->device,
                               .control_inputs = node->control_inputs,
                               .control_count = node->control_count};
  weir_node_t* after = NULL;
  WEIR_TRY(weir_graph_add(node->graph, &params, &after));
  for (int i = 0; i < def->input_count; ++i) {
    weir_node_t* source = weir_rewrite_node(&u->rewrite, node->inputs[i].node);
    WEIR_TRY(weir_graph_add_control(after, source));
  }
  weir_rewrite_replace_node(&u->rewrite, node, after);
  return NULL;
}

weir_status_t* weir_pass_unread(weir_pass_ctx_t* ctx) {
  if (ctx->is_part) return NULL;  // the master knows the targets, and has done it
  unread_t u = {0};
  weir_status_t* status = weir_rewrite_init(&u.rewrite, ctx->graph);
  if (!status) status = weir_rewrite_mark_live(ctx, &u.rewrite.arena, &u.live);
  if (!status) {
    u.is_read = weir_arena_array(&u.rewrite.arena, u.rewrite.count + 1, sizeof(bool));
    u.is_idle = weir_arena_array(&u.rewrite.arena, u.rewrite.count + 1, sizeof(bool));
    if (!u.is_read || !u.is_idle) status = weir_out_of_memory();
  }
  if (!status) {
    for (int i = 0; i < ctx->target_count; ++i) u.is_read[ctx->targets[i]->id] = true;
    mark_idle(&u);
  }
  for (size_t i = 0; i < u.rewrite.count && !status; ++i) status = visit(&u, u.rewrite.order[i]);
  if (!status) status = weir_rewrite_finish(&u.rewrite, ctx);
  weir_rewrite_free(&u.rewrite);
  return status;
}
