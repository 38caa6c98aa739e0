// fold.c — Constant folding: nodes whose inputs are constants, and values that inference knows from
// shapes alone.
//
// One walk in topological order does both. A node whose inputs are constants is run and replaced by
// its results; a node whose value follows from shapes (Shape, Rank, Size, and slices of these) is
// replaced though its input is not constant. Each new constant may tell inference more about its
// readers, so these are inferred again on the way, and folded in their turn in the same walk.
//
// A constant is always alive, belongs to no loop, and waits for nothing; what it replaces was not
// so. Three repairs keep the difference unseen:
// - Deadness: the constant gets control edges from what the node waited for, or, where an input may
//   be dead, from its producer. If nothing can tell the deadness, the node is not folded.
// - Effects: the second kind of folding cuts a node off from its input. If only the shape of
//   something with a side effect was asked for, that would no longer run. Each such cut is noted,
//   and where an effect was lost the constant waits for the node again (keep_effects).
// - Order: by the same cut, two uses of a variable may lose the order that the graph gave them.
//   fold_order.c finds such pairs and puts the order back as a control edge.
//
// Folding that fails is no error: the node may be on a branch that never runs, and if it does run,
// it fails then. Large results are not kept unless they replace something as large.
#include "graph/analysis.h"
#include "pass/fold_order.h"
#include "pass/race.h"

// A constant larger than this is made only when it is no larger than what it is made from.
#define FOLD_LIMIT ((size_t)10 << 20)

typedef struct fold_t {
  weir_pass_ctx_t* ctx;
  weir_rewrite_t rewrite;
  const bool* conditional;  // weir_rewrite_mark_conditional
  const bool* races;        // weir_race_find
  bool* refined;            // by node id: more is known of its outputs than when the pass began
  bool* live;               // by node id: ran when the pass began
  weir_cut_t* cuts;
} fold_t;

static bool has_function(const weir_node_t* node) {
  for (size_t i = 0; i < node->def.attrs.count; ++i) {
    if (node->def.attrs.items[i].value.kind == WEIR_ATTR_FUNC) return true;
  }
  return false;
}

static bool is_foldable(const weir_node_t* node) {
  const weir_op_t* op = node->def.op;
  return op && op->def && op->role == WEIR_ROLE_NONE &&
         !(op->flags & (WEIR_OP_STATEFUL | WEIR_OP_NO_FOLD)) && node->def.input_count > 0 &&
         node->def.output_count > 0 && weir_rewrite_is_plain(node) && !has_function(node);
}

static weir_tensor_t* constant_of(weir_edge_t edge) {
  if (weir_node_role(edge.node) != WEIR_ROLE_CONST) return NULL;
  const weir_attr_t* value = weir_attrs_find(edge.node->def.attrs, "value");
  return value && value->kind == WEIR_ATTR_TENSOR && !value->is_list ? value->u.tensor : NULL;
}

// Control inputs a constant needs to be dead, and in the same loop, whenever |node| is: those of
// |node| and, for inputs that are constants, theirs. For other inputs that may be dead it is their
// producers: false when one cannot tell its deadness.
static weir_status_t* collect_controls(fold_t* fold, const weir_node_t* node, weir_node_t* constant,
                                       bool* out_possible) {
  for (int i = 0; i < node->control_count; ++i)
    WEIR_TRY(weir_graph_add_control(constant, node->control_inputs[i]));
  for (int i = 0; i < node->def.input_count; ++i) {
    weir_node_t* source = node->inputs[i].node;
    if (constant_of(node->inputs[i])) {
      for (int k = 0; k < source->control_count; ++k) {
        WEIR_TRY(weir_graph_add_control(constant, source->control_inputs[k]));
      }
    } else if ((size_t)source->id >= fold->rewrite.count || fold->conditional[source->id]) {
      if (!weir_rewrite_is_anchor(source)) {
        *out_possible = false;
        return NULL;
      }
      WEIR_TRY(weir_graph_add_control(constant, source));
    }
  }
  *out_possible = true;
  return NULL;
}

static weir_status_t* add_cut(fold_t* fold, weir_node_t* constant, weir_node_t* node) {
  weir_cut_t* cut = weir_arena_alloc(&fold->rewrite.arena, sizeof(*cut));
  if (!cut) return weir_out_of_memory();
  *cut = (weir_cut_t){.constant = constant, .node = node, .next = fold->cuts};
  fold->cuts = cut;
  return NULL;
}

// |constant| was computed from the inputs of |node|: what these were cut off from, it is, too.
static weir_status_t* inherit_cuts(fold_t* fold, const weir_node_t* node, weir_node_t* constant) {
  for (int i = 0; i < node->def.input_count; ++i) {
    const weir_node_t* source = node->inputs[i].node;
    if ((size_t)source->id < fold->rewrite.count) continue;
    for (weir_cut_t* cut = fold->cuts; cut; cut = cut->next) {
      if (cut->constant == source) WEIR_TRY(add_cut(fold, constant, cut->node));
    }
  }
  return NULL;
}

// Adds a Const with |value| in place of output |index| of |node|. |is_evaluated|: all inputs are
// constants.
static weir_status_t* replace_output(fold_t* fold, weir_node_t* node, int index,
                                     weir_tensor_t* value, bool is_evaluated, bool* out_done) {
  weir_graph_t* graph = node->graph;
  const char* name = weir_arena_printf(&graph->arena, "%s_folded", node->def.name);
  if (!name) return weir_out_of_memory();
  weir_node_params_t params = {.op = "Const",
                               .name = name,
                               .unique_name = true,
                               .device = node->def.device,
                               .attrs = WEIR_ATTRS(weir_attr_type("dtype", weir_tensor_type(value)),
                                                   weir_attr_tensor("value", value))};
  weir_node_t* constant = NULL;
  WEIR_TRY(weir_graph_add(graph, &params, &constant));
  WEIR_TRY(collect_controls(fold, node, constant, out_done));
  if (!*out_done) return NULL;
  weir_edge_t to = {.node = constant, .index = 0};
  WEIR_TRY(
      weir_rewrite_replace_edge(&fold->rewrite, (weir_edge_t){.node = node, .index = index}, to));
  WEIR_TRY(inherit_cuts(fold, node, constant));
  // Who waits for the node itself waits for its inputs too, so control edges stay with it.
  if (!is_evaluated) return add_cut(fold, constant, node);
  if (index == 0) weir_rewrite_replace_node(&fold->rewrite, node, constant);
  return NULL;
}

static weir_status_t* replace_outputs(fold_t* fold, weir_node_t* node, weir_tensor_t* const* values,
                                      bool is_evaluated, bool* out_done) {
  *out_done = true;
  for (int i = 0; i < node->def.output_count && *out_done; ++i) {
    WEIR_TRY(replace_output(fold, node, i, values[i], is_evaluated, out_done));
  }
  return NULL;
}

// ---- evaluation ----

// Bytes of a tensor of |shape|; SIZE_MAX when they are too many to count, 0 when the shape is not
// known.
static size_t size_of_shape(weir_dtype_t dtype, const weir_shape_t* shape) {
  if (!weir_shape_is_full(shape)) return 0;
  size_t size = weir_dtype_size(dtype);
  for (int i = 0; i < shape->rank; ++i) {
    if (__builtin_mul_overflow(size, (size_t)shape->dims[i], &size)) return SIZE_MAX;
  }
  return size;
}

static bool gather_constants(const weir_node_t* node, weir_tensor_t** inputs, size_t* out_size) {
  *out_size = 0;
  for (int i = 0; i < node->def.input_count; ++i) {
    inputs[i] = constant_of(node->inputs[i]);
    if (!inputs[i]) return false;
    *out_size += weir_tensor_byte_size(inputs[i]);
  }
  return true;
}

static bool is_too_large(size_t size, size_t input_size) {
  return size > FOLD_LIMIT && size > input_size;
}

static bool promises_too_much(const weir_node_t* node, size_t input_size) {
  for (int i = 0; i < node->def.output_count; ++i) {
    if (is_too_large(size_of_shape(node->def.output_types[i], node->shapes[i]), input_size))
      return true;
  }
  return false;
}

static bool are_outputs_usable(const weir_node_t* node, weir_tensor_t* const* outputs,
                               size_t input_size) {
  for (int i = 0; i < node->def.output_count; ++i) {
    if (!outputs[i] || weir_tensor_type(outputs[i]) != node->def.output_types[i]) return false;
    if (is_too_large(weir_tensor_byte_size(outputs[i]), input_size)) return false;
  }
  return true;
}

static weir_status_t* evaluate(fold_t* fold, weir_node_t* node, bool* out_done) {
  const weir_evaluator_t* evaluator = &fold->ctx->evaluator;
  weir_tensor_t** inputs =
      weir_arena_array(&fold->rewrite.arena, (size_t)node->def.input_count, sizeof(*inputs));
  weir_tensor_t** outputs =
      weir_arena_array(&fold->rewrite.arena, (size_t)node->def.output_count, sizeof(*outputs));
  if (!inputs || !outputs) return weir_out_of_memory();
  size_t input_size = 0;
  if (!evaluator->evaluate || !gather_constants(node, inputs, &input_size)) return NULL;
  if (promises_too_much(node, input_size)) return NULL;
  weir_status_t* status = evaluator->evaluate(evaluator->self, node, inputs, outputs);
  if (status) {
    // The node may be on a branch that never runs; if it does run, it fails then.
    weir_status_destroy(status);
    status = NULL;
  } else if (are_outputs_usable(node, outputs, input_size)) {
    status = replace_outputs(fold, node, outputs, true, out_done);
  }
  for (int i = 0; i < node->def.output_count; ++i) weir_tensor_release(outputs[i]);
  return status;
}

// ---- values known by inference ----

static weir_status_t* tensor_of_ints(weir_dtype_t dtype, const weir_shape_t* shape,
                                     const int64_t* values, weir_tensor_t** out_tensor) {
  WEIR_TRY(weir_tensor_create(dtype, shape->rank, shape->dims, out_tensor));
  for (int64_t i = 0; i < (*out_tensor)->count; ++i) {
    if (dtype == WEIR_DTYPE_INT32) {
      WEIR_TENSOR_DATA(*out_tensor, int32_t)[i] = (int32_t)values[i];
    } else {
      WEIR_TENSOR_DATA(*out_tensor, int64_t)[i] = values[i];
    }
  }
  return NULL;
}

// Whether inference knows every element of output |index|: the shape of a tensor, its rank or size,
// or parts of these.
static bool is_value_known(const weir_node_t* node, int index) {
  const weir_shape_t* values = node->values_as_shape[index];
  const weir_shape_t* shape = node->shapes[index];
  weir_dtype_t dtype = node->def.output_types[index];
  if (!values || !weir_shape_is_full(values) || !weir_shape_is_full(shape) || shape->rank > 1)
    return false;
  if (dtype != WEIR_DTYPE_INT32 && dtype != WEIR_DTYPE_INT64) return false;
  if (values->rank != (shape->rank == 0 ? 1 : shape->dims[0])) return false;
  for (int i = 0; i < values->rank; ++i) {
    if (dtype == WEIR_DTYPE_INT32 && values->dims[i] > INT32_MAX)
      return false;  // the kernel reports it
  }
  return true;
}

static weir_status_t* materialise(fold_t* fold, weir_node_t* node, bool* out_done) {
  for (int i = 0; i < node->def.output_count; ++i) {
    if (!is_value_known(node, i)) return NULL;
  }
  weir_tensor_t** values =
      weir_arena_array(&fold->rewrite.arena, (size_t)node->def.output_count, sizeof(*values));
  if (!values) return weir_out_of_memory();
  weir_status_t* status = NULL;
  for (int i = 0; i < node->def.output_count && !status; ++i) {
    status = tensor_of_ints(node->def.output_types[i], node->shapes[i],
                            node->values_as_shape[i]->dims, &values[i]);
  }
  if (!status) status = replace_outputs(fold, node, values, false, out_done);
  for (int i = 0; i < node->def.output_count; ++i) weir_tensor_release(values[i]);
  return status;
}

// ---- the walk ----

// Keeps what was known before: a caller may have said more of an output than its op can infer.
static void merge_known(weir_node_t* node, const weir_shape_t* const* shapes,
                        const weir_shape_t* const* values, const weir_handle_info_t* const* handles,
                        bool has_failed) {
  for (int i = 0; i < node->def.output_count; ++i) {
    const weir_shape_t* merged = NULL;
    if (has_failed || !weir_shape_merge(&node->graph->arena, shapes[i], node->shapes[i], &merged))
      merged = shapes[i];
    node->shapes[i] = merged;
    if (has_failed || !node->values_as_shape[i]) node->values_as_shape[i] = values[i];
    if (has_failed || !node->handles[i]) node->handles[i] = handles[i];
  }
}

// Infers |node| again after an input became a constant, and notes it when that told something new.
static weir_status_t* refine(fold_t* fold, weir_node_t* node, bool has_changed) {
  for (int i = 0; i < node->def.input_count && !has_changed; ++i) {
    size_t id = (size_t)node->inputs[i].node->id;
    has_changed = id < fold->rewrite.count && fold->refined[id];
  }
  // A Merge is left as it is: everything in its loop was inferred from what it says.
  if (!has_changed || !node->shapes || !node->def.output_count ||
      weir_node_role(node) == WEIR_ROLE_MERGE)
    return NULL;
  size_t count = (size_t)node->def.output_count;
  weir_arena_t* arena = &fold->rewrite.arena;
  const weir_shape_t** shapes = weir_arena_array(arena, count, sizeof(*shapes));
  const weir_shape_t** values = weir_arena_array(arena, count, sizeof(*values));
  const weir_handle_info_t** handles = weir_arena_array(arena, count, sizeof(*handles));
  if (!shapes || !values || !handles) return weir_out_of_memory();
  memcpy(shapes, node->shapes, count * sizeof(*shapes));
  memcpy(values, node->values_as_shape, count * sizeof(*values));
  memcpy(handles, node->handles, count * sizeof(*handles));
  weir_status_t* status = weir_graph_infer(node);
  merge_known(node, shapes, values, handles, status != NULL);
  weir_status_destroy(status);  // what is wrong shows when the node runs, if it ever does
  for (size_t i = 0; i < count; ++i) {
    bool is_same =
        weir_shape_equal(shapes[i], node->shapes[i]) && values[i] == node->values_as_shape[i];
    if (!is_same) fold->refined[node->id] = true;
  }
  return NULL;
}

static weir_status_t* visit(fold_t* fold, weir_node_t* node) {
  bool has_changed = false;
  WEIR_TRY(weir_rewrite_inputs(&fold->rewrite, node, &has_changed));
  WEIR_TRY(refine(fold, node, has_changed));
  if (!is_foldable(node) || (fold->races && fold->races[node->id])) return NULL;
  bool is_done = false;
  WEIR_TRY(materialise(fold, node, &is_done));
  return is_done ? NULL : evaluate(fold, node, &is_done);
}

// ---- side effects ----

// Whether |node| has an effect, ran when the pass began, and would run no more.
static bool is_lost(const fold_t* fold, const bool* live, const weir_node_t* node) {
  bool had_run = (size_t)node->id < fold->rewrite.count && fold->live[node->id];
  return had_run && !live[node->id] &&
         (weir_rewrite_has_effect(node) || weir_rewrite_reads_reference(node));
}

typedef struct loss_t {
  const fold_t* fold;
  const bool* live;
  bool is_any;
} loss_t;

static void look_for_loss(void* arg, weir_reach_t* reach, weir_edge_t edge) {
  loss_t* loss = arg;
  if (loss->is_any || loss->live[edge.node->id]) return;
  loss->is_any = is_lost(loss->fold, loss->live, edge.node);
  weir_reach_add(reach, edge.node);
}

// Whether |node| or something it needs is lost.
static bool needs_lost_effect(const fold_t* fold, const bool* live, weir_node_t* node,
                              weir_reach_t* reach) {
  loss_t loss = {.fold = fold, .live = live};
  look_for_loss(&loss, reach, (weir_edge_t){.node = node, .index = -1});
  weir_reach_walk(reach, look_for_loss, &loss);
  return loss.is_any;
}

// A shape may have been all that was asked of a node with a side effect: then the constant waits
// for that node.
static weir_status_t* keep_effects(fold_t* fold) {
  if (!fold->cuts) return NULL;
  weir_arena_t* arena = &fold->rewrite.arena;
  bool* live = NULL;
  WEIR_TRY(weir_rewrite_mark_live(fold->ctx, arena, &live));
  bool is_any_lost = false;
  for (size_t i = 0; i < fold->rewrite.count; ++i)
    is_any_lost = is_any_lost || is_lost(fold, live, fold->rewrite.order[i]);
  if (!is_any_lost) return NULL;
  weir_reach_t reach;
  WEIR_TRY(weir_reach_init(&reach, fold->ctx->graph, arena));
  for (weir_cut_t* cut = fold->cuts; cut; cut = cut->next) {
    if (live[cut->node->id] || !fold->live[cut->node->id]) continue;
    memset(reach.is_reached, 0, fold->ctx->graph->node_count);
    if (needs_lost_effect(fold, live, cut->node, &reach))
      WEIR_TRY(weir_graph_add_control(cut->constant, cut->node));
  }
  return NULL;
}

weir_status_t* weir_pass_fold(weir_pass_ctx_t* ctx) {
  fold_t fold = {.ctx = ctx};
  weir_status_t* status = weir_rewrite_init(&fold.rewrite, ctx->graph);
  if (status) goto done;
  status = weir_rewrite_mark_conditional(&fold.rewrite, &fold.conditional);
  if (status) goto done;
  status = weir_rewrite_mark_live(ctx, &fold.rewrite.arena, &fold.live);
  if (status) goto done;
  status = weir_race_find(&fold.rewrite, &fold.races);
  if (status) goto done;
  fold.refined =
      weir_arena_array(&fold.rewrite.arena, fold.rewrite.count + 1, sizeof(*fold.refined));
  if (!fold.refined) status = weir_out_of_memory();
  for (size_t i = 0; i < fold.rewrite.count && !status; ++i)
    status = visit(&fold, fold.rewrite.order[i]);
  if (!status) status = weir_rewrite_finish(&fold.rewrite, ctx);
  if (!status) status = keep_effects(&fold);
  if (!status) status = weir_fold_keep_order(ctx, &fold.rewrite, fold.cuts);
done:
  weir_rewrite_free(&fold.rewrite);
  return status;
}
