// control.c — Conditionals and loops of ONNX, whose branches and bodies are graphs.
#include "weir/control.h"

#include "onnx/loop.h"

static weir_edge_t scalar(onnx_call_t* call, weir_edge_t x) {
  return onnx_rank(x) == 0 ? x : onnx_reshape(call, x, onnx_ints(call, NULL, 0));
}

static const onnx_graph_t* need_graph(onnx_call_t* call, const char* name) {
  const onnx_attr_t* attr = onnx_attr(call, name);
  if (!attr || !attr->graph) onnx_fail(call, "has no graph %s", name);
  return attr ? attr->graph : NULL;
}

// ---- If ----

static void branch(weir_scope_t* scope, weir_edge_t* outs, onnx_call_t* outer, const char* name) {
  onnx_call_t call = *outer;
  call.scope = scope;
  const onnx_graph_t* graph = need_graph(&call, name);
  if (!graph) return;
  if (graph->output_count != outer->output_count) {
    onnx_fail(&call, "has %d outputs, but %s gives %d", outer->output_count, name,
              graph->output_count);
    return;
  }
  onnx_translate_graph(&call, scope, graph, NULL, 0, outs);
  // A value from around is the branch's only by way of it.
  for (int i = 0; i < graph->output_count; ++i) outs[i] = ADD(&call, "Identity", outs[i]);
}
static void then_branch(weir_scope_t* scope, weir_edge_t* outs, void* user) {
  branch(scope, outs, user, "then_branch");
}
static void else_branch(weir_scope_t* scope, weir_edge_t* outs, void* user) {
  branch(scope, outs, user, "else_branch");
}
static void if_else(onnx_call_t* call) {
  weir_edge_t cond = scalar(call, onnx_in(call, 0));
  if (onnx_failed(call)) return;
  weir_cond(call->scope, cond, then_branch, else_branch, call, call->outputs, call->output_count);
}

// ---- what Loop and Scan collect ----

static bool read_collected(onnx_call_t* call, onnx_loop_t* loop, const onnx_graph_t* graph,
                           int first) {
  loop->collected_count = graph->output_count - first;
  bool is_good = loop->collected_count >= 0 && loop->collected_count <= ONNX_LOOP_MAX &&
                 loop->state_count <= ONNX_LOOP_MAX && loop->state_count >= 0;
  if (!is_good) {
    onnx_refuse(call, "of %d states, and %d values collected", loop->state_count,
                loop->collected_count);
    return false;
  }
  for (int i = 0; i < loop->collected_count; ++i) {
    const onnx_port_t* port = &graph->outputs[first + i];
    loop->types[i] = port->dtype;
    if (!port->is_tensor || port->dtype == WEIR_DTYPE_INVALID) {
      onnx_refuse(call, "that collects '%.*s', whose type is not known", WEIR_VIEW_ARG(port->name));
      return false;
    }
    loop->shapes[i] = weir_shape_make(&call->importer->arena, port->rank, port->dims);
    if (!loop->shapes[i]) {
      weir_scope_fail(call->scope, weir_out_of_memory());
      return false;
    }
  }
  return true;
}

// ---- Loop ----

static weir_edge_t loop_turn(onnx_loop_t* loop, onnx_call_t* call, weir_edge_t index,
                             weir_edge_t* states, weir_edge_t* collected) {
  const onnx_graph_t* graph = loop->user;
  weir_edge_t args[ONNX_LOOP_MAX + 2], results[2 * ONNX_LOOP_MAX + 1] = {{0}};
  args[0] = index;
  args[1] = onnx_bool(call, true);  // it would not be here otherwise
  for (int i = 0; i < loop->state_count; ++i) args[2 + i] = states[i];
  onnx_translate_graph(call, call->scope, graph, args, 2 + loop->state_count, results);
  if (onnx_failed(call)) return WEIR_NO_EDGE;
  for (int i = 0; i < loop->state_count; ++i) states[i] = results[1 + i];
  for (int i = 0; i < loop->collected_count; ++i) collected[i] = results[1 + loop->state_count + i];
  return scalar(call, results[0]);
}

static void loop_op(onnx_call_t* call) {
  const onnx_graph_t* graph = need_graph(call, "body");
  weir_edge_t states[ONNX_LOOP_MAX], collected[ONNX_LOOP_MAX] = {{0}};
  if (!graph) return;
  onnx_loop_t loop = {.call = call,
                      .turn = loop_turn,
                      .user = (void*)graph,
                      .state_count = WEIR_MAX(call->input_count - 2, 0)};
  if (onnx_has_in(call, 0)) loop.limit = scalar(call, onnx_in(call, 0));
  if (onnx_has_in(call, 1)) loop.starts = scalar(call, onnx_in(call, 1));
  if (!read_collected(call, &loop, graph, 1 + loop.state_count)) return;
  for (int i = 0; i < loop.state_count; ++i) states[i] = onnx_in(call, 2 + i);
  onnx_loop_run(&loop, states, collected);
  for (int i = 0; i < loop.state_count; ++i) onnx_out(call, i, states[i]);
  for (int i = 0; i < loop.collected_count; ++i) onnx_out(call, loop.state_count + i, collected[i]);
}

// ---- Scan ----

typedef struct scan_t {
  const onnx_graph_t* graph;
  onnx_call_t* call;
  int input_count;  // that are scanned
  weir_edge_t length;
} scan_t;

// Element |index| of an attribute that is a list.
static int64_t listed(const onnx_call_t* call, const char* name, int index) {
  int count = 0;
  const int64_t* list = onnx_attr_ints(call, name, &count);
  return index < count ? list[index] : 0;
}

static weir_edge_t scan_turn(onnx_loop_t* loop, onnx_call_t* call, weir_edge_t index,
                             weir_edge_t* states, weir_edge_t* collected) {
  const scan_t* scan = loop->user;
  weir_edge_t args[2 * ONNX_LOOP_MAX], results[2 * ONNX_LOOP_MAX] = {{0}};
  for (int i = 0; i < loop->state_count; ++i) args[i] = states[i];
  for (int i = 0; i < scan->input_count; ++i) {
    weir_edge_t at = index;
    if (listed(scan->call, "scan_input_directions", i))
      at = ADD(call, "Sub", ADD(call, "Sub", scan->length, onnx_int(call, 1)), index);
    weir_edge_t x = onnx_in(scan->call, loop->state_count + i);
    args[loop->state_count + i] =
        ADD(call, "GatherV2", x, at, onnx_int(call, listed(scan->call, "scan_input_axes", i)));
  }
  onnx_translate_graph(call, call->scope, scan->graph, args, loop->state_count + scan->input_count,
                       results);
  if (onnx_failed(call)) return WEIR_NO_EDGE;
  for (int i = 0; i < loop->state_count; ++i) states[i] = results[i];
  for (int i = 0; i < loop->collected_count; ++i) collected[i] = results[loop->state_count + i];
  return WEIR_NO_EDGE;
}

// What was collected, from the front or the back, with the turns along another axis.
static weir_edge_t laid_out(onnx_call_t* call, weir_edge_t y, int index) {
  int64_t axis = listed(call, "scan_output_axes", index), perm[WEIR_MAX_RANK];
  if (listed(call, "scan_output_directions", index)) y = ADD(call, "ReverseV2", y, INTS(call, 0));
  if (axis == 0) return y;
  int rank = onnx_need_rank(call, y);
  if (axis < 0) axis += rank;
  for (int i = 0; i < rank; ++i) perm[i] = i < axis ? i + 1 : i == axis ? 0 : i;
  return onnx_transpose(call, y, perm, rank);
}

static void scan_op(onnx_call_t* call) {
  scan_t scan = {.graph = need_graph(call, "body"),
                 .call = call,
                 .input_count = (int)onnx_attr_int(call, "num_scan_inputs", 0)};
  weir_edge_t states[ONNX_LOOP_MAX], collected[ONNX_LOOP_MAX] = {{0}};
  if (!scan.graph) return;
  onnx_loop_t loop = {.call = call,
                      .turn = scan_turn,
                      .user = &scan,
                      .state_count = call->input_count - scan.input_count};
  if (scan.input_count < 1 || scan.input_count > ONNX_LOOP_MAX || loop.state_count < 0) {
    onnx_fail(call, "scans %d of %d inputs", scan.input_count, call->input_count);
    return;
  }
  if (!read_collected(call, &loop, scan.graph, loop.state_count)) return;
  weir_edge_t first = onnx_in(call, loop.state_count);
  scan.length = ADD(call, "GatherV2", onnx_shape(call, first),
                    onnx_int(call, listed(call, "scan_input_axes", 0)), onnx_int(call, 0));
  loop.limit = scan.length;
  for (int i = 0; i < loop.state_count; ++i) states[i] = onnx_in(call, i);
  onnx_loop_run(&loop, states, collected);
  for (int i = 0; i < loop.state_count; ++i) onnx_out(call, i, states[i]);
  for (int i = 0; i < loop.collected_count && !onnx_failed(call); ++i)
    onnx_out(call, loop.state_count + i, laid_out(call, collected[i], i));
}

const onnx_row_t onnx_control_rows[] = {ONNX_OP("If", 1, if_else),
                                        ONNX_OP("Loop", 1, loop_op),
                                        ONNX_OP("Scan", 9, scan_op),
                                        {.op = NULL}};
