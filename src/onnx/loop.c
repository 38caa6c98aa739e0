// loop.c — Builds loops: values that are collected go through lists of tensors.
#include "onnx/loop.h"

#include "weir/control.h"

// What the loop's variables are: the turn's number, whether it goes on, states, lists.
enum { VAR_INDEX, VAR_GOES_ON, VAR_STATES };

static weir_edge_t goes_on(weir_scope_t* scope, const weir_edge_t* vars, void* user) {
  const onnx_loop_t* loop = user;
  onnx_call_t call = *loop->call;
  call.scope = scope;
  if (!loop->limit.node) return ADD(&call, "Identity", vars[VAR_GOES_ON]);
  return ADD(&call, "LogicalAnd", ADD(&call, "Less", vars[VAR_INDEX], loop->limit),
             vars[VAR_GOES_ON]);
}

static void turn(weir_scope_t* scope, weir_edge_t* vars, void* user) {
  onnx_loop_t* loop = user;
  onnx_call_t call = *loop->call;
  weir_edge_t collected[ONNX_LOOP_MAX] = {{0}};
  weir_edge_t* lists = vars + VAR_STATES + loop->state_count;
  call.scope = scope;
  weir_edge_t next = loop->turn(loop, &call, vars[VAR_INDEX], vars + VAR_STATES, collected);
  for (int i = 0; i < loop->collected_count; ++i)
    lists[i] = ADD_WITH(&call, "TensorListPushBack",
                        WEIR_ATTRS(weir_attr_type("element_dtype", loop->types[i])), lists[i],
                        collected[i]);
  if (next.node) vars[VAR_GOES_ON] = next;
  vars[VAR_INDEX] = ADD(&call, "AddV2", vars[VAR_INDEX], onnx_int(&call, 1));
}

// The shape of elements of a list: a vector, or -1 for an unknown rank.
static weir_edge_t shape_edge(onnx_call_t* call, const weir_shape_t* shape) {
  return shape->rank < 0 ? onnx_int(call, -1) : onnx_ints(call, shape->dims, shape->rank);
}

void onnx_loop_run(onnx_loop_t* loop, weir_edge_t* states, weir_edge_t* collected) {
  onnx_call_t* call = loop->call;
  int count = VAR_STATES + loop->state_count + loop->collected_count;
  weir_edge_t vars[VAR_STATES + 2 * ONNX_LOOP_MAX];
  weir_dims_t shapes[VAR_STATES + 2 * ONNX_LOOP_MAX];
  weir_edge_t* lists = vars + VAR_STATES + loop->state_count;
  vars[VAR_INDEX] = onnx_int(call, 0);
  vars[VAR_GOES_ON] = loop->starts.node ? loop->starts : onnx_bool(call, true);
  for (int i = 0; i < loop->state_count; ++i) vars[VAR_STATES + i] = states[i];
  for (int i = 0; i < loop->collected_count; ++i)
    lists[i] = ADD_WITH(call, "EmptyTensorList",
                        WEIR_ATTRS(weir_attr_type("element_dtype", loop->types[i])),
                        shape_edge(call, loop->shapes[i]), onnx_number(call, WEIR_DTYPE_INT32, -1));
  for (int i = 0; i < count; ++i) {
    bool is_state = i >= VAR_STATES && i < VAR_STATES + loop->state_count;
    shapes[i] = is_state ? (weir_dims_t){NULL, -1, true} : (weir_dims_t){NULL, 0, true};
  }
  if (onnx_failed(call)) return;
  weir_while_loop(call->scope, vars, count, goes_on, turn, loop, vars, .parallel_iterations = 1,
                  .shapes = {shapes, count});
  for (int i = 0; i < loop->state_count; ++i) states[i] = vars[VAR_STATES + i];
  for (int i = 0; i < loop->collected_count && !onnx_failed(call); ++i)
    collected[i] = ADD_WITH(call, "TensorListStack",
                            WEIR_ATTRS(weir_attr_type("element_dtype", loop->types[i])), lists[i],
                            onnx_cast(call, shape_edge(call, loop->shapes[i]), WEIR_DTYPE_INT32));
}
