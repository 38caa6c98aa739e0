// loop.h — Loops that collect values: what Loop, Scan and recurrent networks are made of.
#ifndef WEIR_ONNX_LOOP_H_
#define WEIR_ONNX_LOOP_H_

#include "onnx/import.h"

enum { ONNX_LOOP_MAX = 64 };  // states, and values that are collected, of one loop

typedef struct onnx_loop_t onnx_loop_t;
// One turn: |states| come as they were and are replaced; |collected| is set. |index| is the turn's
// number, an int64 scalar. Returns whether the loop goes on, a bool scalar; none: it does.
typedef weir_edge_t (*onnx_turn_fn_t)(onnx_loop_t* loop, onnx_call_t* call, weir_edge_t index,
                                      weir_edge_t* states, weir_edge_t* collected);
struct onnx_loop_t {
  onnx_call_t* call;
  onnx_turn_fn_t turn;
  void* user;
  weir_edge_t limit;   // turns, an int64 scalar; none: no limit
  weir_edge_t starts;  // whether there is a first turn, a bool scalar; none: there is
  int state_count;
  int collected_count;
  weir_dtype_t types[ONNX_LOOP_MAX];          // of what is collected
  const weir_shape_t* shapes[ONNX_LOOP_MAX];  // as far as they are known, never NULL
};

// Runs the loop. |states| are what it starts with, and then what it ends with; |collected| gets
// what all turns collected, each stacked along dimension 0.
void onnx_loop_run(onnx_loop_t* loop, weir_edge_t* states, weir_edge_t* collected);

#endif  // WEIR_ONNX_LOOP_H_
