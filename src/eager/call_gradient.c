// call_gradient.c — Gradients of nodes that call functions: a function of its own, made when it is
// first asked for, that is given what the call was given and the gradients of what it gave.
//
// It computes the body once more, for the values within it are nobody's. So a body with side
// effects has no gradient here. The call of the gradient is a node like any other, with a gradient
// likewise.
#include <inttypes.h>
#include <stdio.h>

#include "eager/frame.h"
#include "graph/function.h"
#include "graph/function_gradient.h"
#include "graph/lower.h"

typedef struct weir_eager_gradient_t {
  const char* name;  // of the function
  const weir_grad_part_t* parts;
  int count;
} gradient_t;

// What the node calls with all its inputs: a function; or the op itself, a loop or conditional.
static weir_func_t callee_of(const weir_node_def_t* def) {
  weir_func_t func;
  if (weir_node_callee(def, &func)) return func;
  return (weir_func_t){.name = weir_view_of(def->op_name), .attrs = def->attrs};
}

static weir_status_t* keep(weir_eager_op_t* op, const char* name,
                           const weir_partial_gradient_t* partial, const gradient_t** out) {
  size_t count = (size_t)partial->count;
  gradient_t* gradient = weir_arena_alloc(&op->arena, sizeof(*gradient));
  weir_grad_part_t* parts = weir_arena_array(&op->arena, count + 1, sizeof(*parts));
  if (!gradient || !parts) return weir_out_of_memory();
  if (count) memcpy(parts, partial->parts, count * sizeof(*parts));
  *gradient = (gradient_t){.name = weir_arena_strndup(&op->arena, name, strlen(name)),
                           .parts = parts,
                           .count = partial->count};
  *out = gradient;
  return gradient->name ? NULL : weir_out_of_memory();
}

static weir_status_t* make_locked(weir_eager_t* eager, weir_eager_op_t* op,
                                  const gradient_t** out) {
  weir_function_library_t* library = eager->graph->library;
  weir_func_t func = callee_of(&op->def);
  weir_partial_gradient_t partial = {.count = 0};
  WEIR_TRY(weir_function_instantiate_partial(library, eager->graph->registry, &func, &partial));
  // Relaxed: only distinctness matters.
  int64_t id = atomic_fetch_add_explicit(&eager->next_id, 1, memory_order_relaxed);
  char name[256];
  snprintf(name, sizeof(name), "gradient_of_%.*s_%" PRId64, (int)WEIR_MIN(func.name.size, 200),
           func.name.data, id);
  weir_status_t* status = weir_function_library_add_body(library, name, &partial.body);
  if (!status) status = keep(op, name, &partial, out);
  weir_function_body_free(&partial.body);
  return status;
}

static weir_status_t* find_gradient(weir_eager_t* eager, weir_eager_op_t* op,
                                    const gradient_t** out) {
  *out = atomic_load_explicit(&op->gradient, memory_order_acquire);  // pairs with the release
  if (*out) return NULL;
  weir_status_t* status = NULL;
  weir_mutex_lock(&eager->make_mu);
  *out = atomic_load_explicit(&op->gradient, memory_order_relaxed);
  if (!*out) status = make_locked(eager, op, out);
  if (!status) atomic_store_explicit(&op->gradient, *out, memory_order_release);
  weir_mutex_unlock(&eager->make_mu);
  return status;
}

// What stands for the gradient of a result. Through some none flows: nobody looks at that.
static weir_edge_t gradient_of_result(weir_grad_ctx_t* g, int i) {
  weir_dtype_t type = weir_dtype_base(g->node->output_types[i]);
  bool has_zeros = weir_dtype_is_plain(type) || type == WEIR_DTYPE_VARIANT;
  return weir_grad_has_dy(g, i) || has_zeros ? weir_grad_dy(g, i) : weir_grad_output(g, i);
}

static void set_part(weir_grad_ctx_t* g, const weir_grad_part_t* part, weir_edge_t value) {
  weir_grad_value_t* dx = &g->dxs[part->arg];
  if (part->kind == WEIR_GRAD_VALUES) dx->values = value;
  else if (part->kind == WEIR_GRAD_INDICES) dx->indices = value;
  else dx->dense_shape = value;
}

static weir_status_t* add_call(weir_grad_ctx_t* g, const gradient_t* gradient,
                               weir_arena_t* scratch, weir_edge_t* out_first) {
  const weir_node_def_t* node = g->node;
  size_t count = (size_t)node->input_count + (size_t)node->output_count;
  weir_edge_t* inputs = weir_arena_array(scratch, count, sizeof(*inputs));
  weir_dtype_t* types = weir_arena_array(scratch, count, sizeof(*types));
  weir_dtype_t* results = weir_arena_array(scratch, (size_t)gradient->count, sizeof(*results));
  if (!inputs || !types || !results) return weir_out_of_memory();
  for (int i = 0; i < gradient->count; ++i) results[i] = gradient->parts[i].type;
  for (int i = 0; i < (int)count; ++i) {
    int output = i - node->input_count;
    inputs[i] = output < 0 ? weir_grad_input(g, i) : gradient_of_result(g, output);
    types[i] = weir_dtype_base(output < 0 ? node->input_types[i] : node->output_types[output]);
  }
  weir_func_t func = {.name = weir_view_of(gradient->name)};
  *out_first = weir_grad_node_with(
      g, "PartitionedCall", (weir_edges_t){.items = inputs, .count = (int)count},
      WEIR_ATTRS(weir_attr_types("Tin", types, count),
                 weir_attr_types("Tout", results, (size_t)gradient->count),
                 weir_attr_func("f", &func)));
  return NULL;
}

weir_status_t* weir_eager_build_call_grad(weir_grad_ctx_t* g) {
  weir_eager_t* eager = weir_eager_of(g->self.node->graph);
  const gradient_t* gradient = NULL;
  weir_arena_t scratch = {0};
  weir_edge_t first = WEIR_NO_EDGE;
  WEIR_TRY(find_gradient(eager, weir_eager_node_op(g->self.node), &gradient));
  if (!gradient->count) return NULL;
  weir_status_t* status = add_call(g, gradient, &scratch, &first);
  weir_arena_free(&scratch);
  for (int i = 0; i < gradient->count && !status && !g->builder->status; ++i)
    set_part(g, &gradient->parts[i], weir_build_output(first, i));
  if (status) return status;
  return g->builder->status ? weir_status_copy(g->builder->status) : NULL;
}
